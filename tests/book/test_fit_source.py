"""What a book is calibrated from by default: moments if it is large and nothing is lost, quotes otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.book.spec import (
    FARTHEST,
    FEWEST,
    FitSource,
    SourceReason,
    calibrate_from,
    preferred_source,
)
from strikeout.calibration.settings import Settings

CORNERED = {
    "mean_reversion": 0.5,
    "long_variance": 0.04,
    "vol_of_vol": 1.0,
    "correlation": -0.9,
    "initial_variance": 0.04,
}


@pytest.fixture(scope="module")
def large() -> so.Quotes:
    return so.synthetic.random_quotes(FEWEST + 20, maturities=8, seed=5)


@pytest.fixture
def book(tmp_path: Path, large: so.Quotes):
    with so.Book.create(tmp_path / "large.book") as made:
        made.import_quotes(large)
        made.calibrate()
        yield made


def test_a_large_book_goes_through_moments_and_says_how_far_off_they_are(book, large):
    version = book.status().version
    assert version.options["through"] == "moments"
    assert (version.fit_source.asked, version.fit_source.entry) == ("auto", 3)
    assert version.fit_source.error == so.states.interpolation_error(
        so.calibrate(so.states.moments_of(large), so.Heston()), large
    )
    assert version.fit_source.error < FARTHEST
    assert version.fit_source.sentence in book.summary()


def test_what_comes_and_goes_keeps_the_source_whatever_the_count_is_then(book, large):
    source = book.status().version.fit_source
    change = book.forget(ids=large.ids[:100], reason="test")
    assert len(book.quotes()) < FEWEST
    assert change.after.options["through"] == "moments"
    assert change.after.fit_source == source
    assert dict(change.after.parameters) == so.calibrate(so.states.moments_of(large[100:]), so.Heston()).parameters
    assert book.verify().holds, book.verify().summary()
    assert book.restore(change.entry).after.fit_source == source


def test_an_erasure_takes_the_error_that_was_measured_with_the_quotes_and_keeps_the_source(book, large):
    source = book.status().version.fit_source
    assert any("the error of moments" in text for text in book.plan_erase(ids=large.ids[:50]).gone)
    after = book.erase(ids=large.ids[:50]).change.after
    assert after.fit_source == replace(source, error=None)
    assert [version.fit_source.error for version in book.snapshot().versions] == [None, None]
    assert f"{source.error:.2g} standard errors" not in after.fit_source.sentence
    assert book.verify().holds, book.verify().summary()


def test_an_erasure_of_quotes_set_aside_takes_the_error_that_was_measured_with_them(book, large):
    book.forget(ids=large.ids[:5], reason="test")
    book.erase(ids=large.ids[:5])
    assert [version.fit_source.error for version in book.snapshot().versions] == [None, None]
    assert book.verify().holds, book.verify().summary()
    book.calibrate()
    kept = book.status().version.fit_source.error
    book.forget(ids=large.ids[5:10], reason="test")
    book.calibrate()
    book.erase(ids=large.ids[5:10])
    errors = [version.fit_source.error for version in book.snapshot().versions]
    assert errors[:-1] == [None] * 4, "measured with them"
    assert errors[-1] not in (None, kept), "measured without them"
    assert book.verify().holds, book.verify().summary()


def test_an_error_that_was_altered_is_found(book):
    records = book.snapshot()
    version = records.version
    source = replace(version.fit_source, error=1e-9).to_plain()
    altered = replace(version, options={**version.options, "source": source})
    with records.session.store.writing() as store:
        store.put("calibration", store.now.pages("calibration")[-1], canonical(altered.to_plain()))
    assert any("The error of the calibration of entry 3 is not" in reason for reason in book.verify().reasons)


def test_a_count_that_decided_the_source_says_when_it_was_counted(tmp_path, large):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(large[:140])
        book.calibrate()
        source = book.learn(large[140:300]).after.fit_source
        assert (source.reason, source.count, source.entry) == (SourceReason.FEW_QUOTES, 140, 3)


def test_calibrating_again_decides_again(book, large):
    book.forget(ids=large.ids[:100], reason="test")
    again = book.calibrate().after
    assert again.fit_source == FitSource("quotes", "auto", SourceReason.FEW_QUOTES, None, 5, 9_920)


def test_a_source_that_was_named_stays_named(book):
    book.calibrate(through="quotes")
    assert book.calibrate().after.fit_source == FitSource("quotes", "quotes", SourceReason.REQUESTED, None, 5)
    assert book.calibrate(through="auto").after.options["through"] == "moments"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"panel": "date"}, SourceReason.PANEL),
        ({"loss": "huber"}, SourceReason.OBJECTIVE),
        ({"residual": "implied_vol"}, SourceReason.OBJECTIVE),
        ({"select": "otm"}, SourceReason.SELECTION),
    ],
)
def test_settings_that_moments_do_not_support_are_fitted_from_quotes(large, how, reason):
    found = preferred_source(so.Heston(), Settings(**how), large)
    assert (found.through, found.reason) == ("quotes", reason)
    assert preferred_source(so.Heston(), Settings(), large).through == "moments"


def test_few_quotes_and_scattered_expiries_go_through_quotes(large):
    few = preferred_source(so.Heston(), Settings(), large[:-21])
    assert (few.through, few.reason, few.count) == ("quotes", SourceReason.FEW_QUOTES, 9_999)
    c = large.contracts
    scattered = so.Contracts(
        forward=c.forward,
        strike=c.strike,
        expiry=np.linspace(0.1, 2.0, len(large)),
        discount=c.discount,
        is_call=c.is_call,
    )
    ticks = so.Quotes(ids=large.ids, contracts=scattered, observed=large.observed)
    many = preferred_source(so.Heston(), Settings(), ticks)
    assert (many.through, many.reason, many.count) == ("quotes", SourceReason.MANY_NODES, 10_020)
    assert many.nodes >= 10_020


def test_forwards_that_rest_on_other_quotes_are_fitted_from_quotes(large):
    derived = so.Quotes(
        ids=large.ids,
        contracts=large.contracts,
        observed=large.observed,
        labels={"forward_from": np.full(len(large), "parity", object)},
    )
    assert preferred_source(so.Heston(), Settings(), derived).reason is SourceReason.DERIVED_FORWARDS


def test_moments_that_would_be_too_far_off_are_not_taken():
    """A smile with all but a corner in it: 32 polynomials a panel miss it by about a standard error."""
    quotes = so.synthetic.random_quotes(20_000, maturities=12, seed=1, theta=CORNERED)
    found, source = calibrate_from(so.Heston(), Settings(), "auto", quotes)
    assert found.moments is None
    assert source.error > FARTHEST
    assert (source.through, source.reason) == ("quotes", SourceReason.TOO_FAR)
    assert source.unmeasured().error is None


def test_a_model_that_moments_refuse_goes_through_quotes(large):
    found, source = calibrate_from(so.SVI(), Settings(starts=1), "auto", large[:])
    assert (found.moments, source.through) == (None, "quotes")
    assert source.reason is SourceReason.UNSUPPORTED


FAR = ["q0000000", "q0000002"]


@pytest.fixture
def off_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A book, not calibrated yet, that would go through moments, were it not for two quotes far from the money."""
    monkeypatch.setattr("strikeout.book.spec.FEWEST", 1_000)
    quotes = so.synthetic.random_quotes(1_000, maturities=2, seed=5)
    c, is_far = quotes.contracts, np.isin(quotes.ids, FAR)
    far = so.Contracts(
        forward=c.forward,
        strike=np.where(is_far, 1.234e-5, c.strike),
        expiry=c.expiry,
        discount=c.discount,
        is_call=c.is_call & ~is_far,
    )
    observed = np.where(is_far, 1.1e-6, quotes.observed)
    with so.Book.create(tmp_path / "far.book") as made:
        made.import_quotes(so.Quotes(ids=quotes.ids, contracts=far, observed=observed))
        yield made


def found_in(book: so.Book) -> list[str]:
    """Which of the erased ids, and of the numbers of a refusal, a version says or a page of the file holds."""
    said = [json.dumps(version.to_plain()) for version in book.snapshot().versions]
    bytes_ = book.path.read_bytes().decode("latin-1")
    return [text for text in (*FAR, "1.234e-05") for where in (*said, bytes_) if text in where]


def test_the_reason_a_book_keeps_for_refused_moments_names_no_quote(off_the_grid):
    book = off_the_grid
    source = book.calibrate().after.fit_source
    assert (source.reason, source.count) == (SourceReason.OFF_GRID, 2)
    done = book.erase(ids=FAR)
    assert (done.residue, found_in(book)) == (0, [])
    after = done.change.after.fit_source
    assert (after.reason, after.count) == (SourceReason.OFF_GRID, None), "the count is gone with the quotes"
    assert book.verify().holds, book.verify().summary()
