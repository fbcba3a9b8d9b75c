"""Which way a book is calibrated when nobody says: moments where it is large and nothing is lost, quotes otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.calibration.settings import Settings
from strikeout.desk.roads import FARTHEST, FEWEST, OF_THE_MODEL, REFUSED, Road, travelled, unsuited
from tests.desk.behind import entered

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
    assert version.asking["through"] == "moments"
    assert (version.road.asked, version.road.entry) == ("auto", 3)
    assert version.road.error == so.states.interpolation_error(so.calibrate(so.moments_of(large), so.Heston()), large)
    assert version.road.error < FARTHEST
    assert "standard errors from the optimum of the quotes themselves (entry 3)" in book.summary()


def test_what_comes_and_goes_keeps_to_the_road_whatever_the_count_is_then(book, large):
    road = book.status().version.road
    change = book.apply(book.forget(ids=large.ids[:100], reason="test"))
    assert len(book.quotes()) < FEWEST
    assert change.after.asking["through"] == "moments"
    assert change.after.road == road
    assert dict(change.after.parameters) == so.calibrate(so.moments_of(large[100:]), so.Heston()).parameters
    assert book.verify().holds, book.verify().summary()
    assert book.restore(change.entry).after.road == road


def test_an_erasure_takes_the_error_that_was_measured_with_the_quotes_and_keeps_the_road(book, large):
    road = book.status().version.road
    assert any("how far off moments were" in text for text in book.erase(ids=large.ids[:50]).gone)
    after = book.erase(ids=large.ids[:50], yes=True).change.after
    assert after.road == replace(road, error=None)
    assert [version.road.error for version in book._records.versions()] == [None, None]
    assert after.road.sentence.endswith("how far from the optimum of the quotes themselves is not known")
    assert book.verify().holds, book.verify().summary()


def test_an_erasure_of_quotes_set_aside_takes_the_error_that_was_measured_with_them(book, large):
    book.apply(book.forget(ids=large.ids[:5], reason="test"))
    book.erase(ids=large.ids[:5], yes=True)
    assert [version.road.error for version in book._records.versions()] == [None, None]
    assert book.verify().holds, book.verify().summary()
    book.calibrate()
    kept = book.status().version.road.error
    book.apply(book.forget(ids=large.ids[5:10], reason="test"))
    book.calibrate()
    book.erase(ids=large.ids[5:10], yes=True)
    errors = [version.road.error for version in book._records.versions()]
    assert errors[:-1] == [None] * 4, "measured with them"
    assert errors[-1] not in (None, kept), "measured without them"
    assert book.verify().holds, book.verify().summary()


def test_an_error_that_was_altered_is_found(book):
    records = book._records
    version = records.version()
    road = replace(version.road, error=1e-9).to_plain()
    altered = replace(version, asking={**version.asking, "road": road})
    with records.store.writing() as store:
        store.put("calibration", store.pages("calibration")[-1], canonical(altered.to_plain()))
    assert any("The error of the calibration of entry 3 is not" in reason for reason in book.verify().reasons)


def test_a_count_that_decided_the_road_says_when_it_was_counted(tmp_path, large):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(large[:140])
        book.calibrate()
        road = book.learn(large[140:300]).after.road
        assert road.sentence == "through quotes: 140 quotes in entry 3, fewer than 10,000"


def test_calibrating_again_decides_again(book, large):
    book.apply(book.forget(ids=large.ids[:100], reason="test"))
    again = book.calibrate().after
    assert (again.asking["through"], again.road.why) == ("quotes", "9,920 quotes in entry 5, fewer than 10,000")
    assert again.road.asked == "auto"


def test_a_road_that_was_named_stays_named(book):
    book.calibrate(through="quotes")
    assert book.calibrate().after.road == Road("quotes", "quotes", "as asked", None, 5)
    assert book.calibrate(through="auto").after.asking["through"] == "moments"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"panel": "date"}, "a panel tells"),
        ({"loss": "huber"}, "squared price residuals only"),
        ({"residual": "implied_vol"}, "squared price residuals only"),
        ({"select": "otm"}, "cannot choose among quotes"),
    ],
)
def test_what_moments_do_not_know_goes_through_quotes(large, how, why):
    assert why in unsuited(so.Heston(), Settings(**how), large)
    assert unsuited(so.Heston(), Settings(), large) is None


def test_few_quotes_and_scattered_expiries_go_through_quotes(large):
    assert unsuited(so.Heston(), Settings(), large[:-21]) == "9,999 quotes, fewer than 10,000"
    c = large.contracts
    scattered = so.Contracts(
        forward=c.forward,
        strike=c.strike,
        expiry=np.linspace(0.1, 2.0, len(large)),
        discount=c.discount,
        is_call=c.is_call,
    )
    ticks = so.Quotes(ids=large.ids, contracts=scattered, observed=large.observed)
    assert "nodes, no fewer than the 10,020 quotes" in unsuited(so.Heston(), Settings(), ticks)


def test_forwards_that_rest_on_other_quotes_keep_a_book_on_the_road_of_quotes(large):
    derived = so.Quotes(
        ids=large.ids,
        contracts=large.contracts,
        observed=large.observed,
        labels={"forward_from": np.full(len(large), "parity", object)},
    )
    assert "cannot be refitted" in unsuited(so.Heston(), Settings(), derived)


def test_moments_that_would_be_too_far_off_are_not_taken():
    """A smile with all but a corner in it: 32 polynomials a panel miss it by about a standard error."""
    quotes = so.synthetic.random_quotes(20_000, maturities=12, seed=1, theta=CORNERED)
    found, road = travelled(so.Heston(), Settings(), "auto", quotes)
    assert found.moments is None
    assert road.error > FARTHEST
    off = "moments would be off by more than 0.0005 standard errors"
    assert road.sentence == f"through quotes: {off}: {road.error:.2g}"
    assert road.unmeasured().sentence == f"through quotes: {off}"


def test_a_model_that_moments_refuse_goes_through_quotes(large):
    found, road = travelled(so.SVI(), Settings(starts=1), "auto", large[:])
    assert (found.moments, road.through) == (None, "quotes")
    assert road.why == OF_THE_MODEL


FAR = ["q0000000", "q0000002"]


@pytest.fixture
def off_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A book, not calibrated yet, that would go through moments, were it not for two quotes far from the money."""
    monkeypatch.setattr("strikeout.desk.roads.FEWEST", 1_000)
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
    said = [json.dumps(version.to_plain()) for version in book._records.versions()]
    bytes_ = book.path.read_bytes().decode("latin-1")
    return [text for text in (*FAR, "1.234e-05") for where in (*said, bytes_) if text in where]


def test_the_reason_a_book_keeps_for_refused_moments_names_no_quote(off_the_grid):
    book = off_the_grid
    road = book.calibrate().after.road
    assert road.why == "moments cannot hold 2 quotes in entry 3, off their grid or too large for them"
    done = book.erase(ids=FAR, yes=True)
    assert (done.residue, found_in(book)) == (0, [])
    assert done.change.after.road.why == REFUSED, "how many there were is not said once they are erased"
    assert book.verify().holds, book.verify().summary()


def test_a_version_made_before_books_kept_their_road_is_read_and_calibrated_as_it_was(book, large):
    records = book._records
    plain = records.version().to_plain()
    del plain["asking"]["road"]
    with entered(book) as store:
        store.put("calibration", records.store.pages("calibration")[-1], json.dumps(plain).encode())
    assert book.status().version.road is None
    assert book.forget(ids=large.ids[:2]).count == 2
    assert book.calibrate().after.asking["through"] == "moments"
