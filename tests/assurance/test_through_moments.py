"""What is certified of an answer from moments: as near the optimum of the quotes as the moments can show, no nearer."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.certificate import Claim
from strikeout.assurance.issue import THROUGH_MOMENTS
from strikeout.calibration.from_moments import COARSEST
from strikeout.errors import UsageError
from strikeout.quotes.quotes import join

CORNERED = [0.5, 0.04, 1.0, -0.9, 0.04]  # its smile has all but a corner: 32 polynomials do not resolve it
SHARP = [2.0, 0.02, 0.5, -0.7, 0.01]


def struck(book: so.Quotes, gone: so.Quotes, **how: object) -> so.results.Forgetting:
    return so.forget(so.calibrate(so.states.moments_of(book, **how), so.Heston()), quotes=gone)


def test_moments_too_coarse_for_the_smile_certify_no_optimum_and_say_what_to_do():
    book = so.synthetic.random_quotes(2000, maturities=12, seed=3, theta=CORNERED)
    done = struck(book, book[:100])
    assert so.states.interpolation_error(done.calibration, book[100:]) > THROUGH_MOMENTS
    assert done.certificate.obstacles["OPTIMUM"] == "COARSE_MOMENTS"
    assert "or calibrate from the quotes" in done.certificate.clause(Claim.OPTIMUM)
    assert {made.name for made in done.certificate.claimed()} == {"STATE", "NEVER_SEEN"}
    found = so.verify(done.certificate, book[100:])
    assert found.holds, found.summary()


def test_more_polynomials_certify_it():
    book = so.synthetic.random_quotes(2000, maturities=12, seed=3, theta=CORNERED)
    done = struck(book, book[:100], basis=so.states.Basis(nodes=96))
    assert done.certificate.tolerance == THROUGH_MOMENTS
    assert so.verify(done.certificate, book[100:]).holds
    assert not any("polynomials" in text for text in done.calibration.warnings)


def test_what_the_moments_can_show_is_claimed_where_it_is_not_quite_a_thousandth():
    book = so.synthetic.random_quotes(3000, maturities=5, seed=3, theta=SHARP, noise=1e-3)
    done = struck(book, book[:100])
    claimed = done.certificate.tolerance
    bound = so.states.interpolation_bound(done.calibration)
    assert THROUGH_MOMENTS < bound <= claimed < 1.12 * bound  # upward, to two digits
    assert so.verify(done.certificate, book[100:]).holds


def test_a_book_whose_bad_feed_hid_how_coarse_its_moments_are_does_not_claim_too_much(tmp_path: Path):
    """Noise made the standard errors large and the error small in them; both change when the feed is struck out."""
    good = so.synthetic.random_quotes(9000, maturities=6, seed=4, theta=CORNERED, noise=5e-4)
    bad = so.synthetic.random_quotes(3000, maturities=6, seed=5, theta=CORNERED, noise=5.0)
    bad = so.Quotes(ids=np.char.add("bad-", bad.ids.astype(str)), contracts=bad.contracts, observed=bad.observed)
    with so.Book.create(tmp_path / "feed.book") as book:
        book.import_quotes(join(good, bad))
        assert book.calibrate().after.options["through"] == "moments"
        assert book.status().version.fit_source.error < THROUGH_MOMENTS
        made = book.forget(ids=bad.ids).certificate
        assert "OPTIMUM" not in made.claims
        assert so.verify(made, good).holds, so.verify(made, good).summary()
        assert book.verify().holds, book.verify().summary()


def test_a_calibration_from_coarse_moments_warns_and_one_from_fine_ones_does_not():
    book = so.synthetic.random_quotes(2000, maturities=12, seed=3, theta=CORNERED)
    coarse = so.calibrate(so.states.moments_of(book), so.Heston())
    assert so.states.interpolation_bound(coarse) > COARSEST
    said = [sentence for sentence in coarse.warnings if "polynomials" in sentence]
    assert len(said) == 1
    assert said[0] in coarse.summary()
    assert "Basis(nodes=96)" in said[0]
    assert not any("polynomials" in text for text in so.calibrate(book, so.Heston()).warnings)


def test_without_noise_nothing_is_said_in_standard_errors():
    book = so.paper.quotes("small")
    exact = book.with_observed(so.Heston().price([2.0, 0.06, 0.3, -0.6, 0.06], book.contracts))
    assert so.states.interpolation_bound(so.calibrate(so.states.moments_of(exact), so.Heston())) == inf


def test_a_bound_is_of_moments():
    with pytest.raises(UsageError, match="made from quotes"):
        so.states.interpolation_bound(so.calibrate(so.paper.quotes("small"), so.Heston()))
