"""American quotes in panels, influence, pictures and books: removal leaves the bits of never having seen it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout import american
from strikeout.assurance.influence import influence
from strikeout.plots import plot_data
from strikeout.plots.writing import OF_QUOTES
from strikeout.quotes.forwards import forwards_of
from tests.american.test_reading import same

pytestmark = pytest.mark.filterwarnings("ignore::strikeout.quotes.issues.QuotesWarning")
SPOT, RATE, DIVIDEND = 100.0, 0.045, 0.013
DAYS = {"2024-03-01": 0.04, "2024-03-04": 0.06}
EXPIRIES = ("2024-05-17", "2025-03-21")
PAID = {"2024-07-12": 0.7, "2025-01-10": 0.7}
SLICE = "XYZ 2024-03-04 2025-03-21"  # at the money of this slice a call and a put are removed
GONE = (pl.col("quote_date") == "2024-03-04") & (pl.col("expiry") == "2025-03-21") & (pl.col("strike") == 100.0)


def chain() -> pl.DataFrame:
    """Two days of American prices with noise within the spreads; volatility falls with the strike."""
    draw, rows = np.random.default_rng(5), []
    strikes = np.arange(80.0, 121.0, 4.0)
    for day, variance in DAYS.items():
        for expiry in EXPIRIES:
            years = (np.datetime64(expiry) - np.datetime64(day)).astype(int) / 365
            sigma = np.sqrt(variance + (0.05 - variance) * years / (years + 0.5)) - 0.12 * np.log(strikes / SPOT)
            for right in "CP":
                mids = american.price(
                    spot=SPOT, strike=strikes, expiry=years, rate=RATE, dividend_yield=DIVIDEND, volatility=sigma,
                    is_call=right == "C",
                ) + draw.uniform(-0.02, 0.02, len(strikes))  # fmt: skip
                rows += [(day, expiry, K, right, p - 0.03, p + 0.03) for K, p in zip(strikes, mids, strict=True)]
    names = ["quote_date", "expiry", "strike", "right", "bid", "ask"]
    made = pl.DataFrame(rows, schema=names, orient="row")
    now = pl.when(pl.col("right") == "C").then(SPOT - pl.col("strike")).otherwise(pl.col("strike") - SPOT)
    return made.filter((pl.col("bid") + pl.col("ask")) / 2 > now + 0.01).with_columns(
        spot=SPOT,
        underlying=pl.lit("XYZ"),
        exercise=pl.lit("A"),
        feed=pl.when(GONE).then(pl.lit("bad")).otherwise("right"),
    )


@dataclass(frozen=True, eq=False)
class Case:
    """A chain read whole, and as a file that never had the two quotes."""

    whole: so.Quotes
    never: so.Quotes

    @property
    def ids(self) -> np.ndarray:
        return np.setdiff1d(self.whole.ids, self.never.ids)


# Without a rate the removal moves forward and discount of the slice; with dividends forward and borrow.
HOW: dict[str, dict[str, Any]] = {
    "forward and discount move": {},
    "the borrow moves": {"constants": {"rate": RATE}, "dividends": PAID},
}


@cache
def read(name: str) -> Case:
    frame = chain()
    return Case(*(so.read_quotes(rows, **HOW[name]) for rows in (frame, frame.filter(~GONE))))


@pytest.fixture(params=list(HOW))
def case(request: pytest.FixtureRequest) -> Case:
    return read(request.param)


@cache
def fitted(quotes: so.Quotes, panel: str | None = None) -> so.results.Calibration:
    if panel:
        return so.calibrate(quotes, so.Heston(), select="otm", panel=panel, starts=1)
    return so.calibrate(quotes, so.BlackScholes(), select="otm")


def test_the_two_quotes_move_what_the_case_is_named_after(case):
    assert len(case.ids) == 2
    before, after = (forwards_of(quotes) for quotes in (case.whole, case.never))
    for name in ("forward", "borrow"):
        moved = getattr(before, name) != getattr(after, name)
        assert np.flatnonzero(moved).tolist() == [before.names.index(SLICE)]


def test_a_panel_forgets_american_quotes_as_if_never_seen(case):
    done = so.forget(fitted(case.whole, "date"), ids=case.ids)
    never = fitted(case.never, "date")
    assert done.parameters == never.parameters
    assert done.calibration.latent == never.latent
    assert [refit.name for refit in done.refits] == [SLICE]
    assert so.verify(done.certificate, case.never)
    assert not so.verify(done.certificate, case.whole)


def test_confirmed_influence_refits_forwards_and_conversions(case):
    calibration = fitted(case.whole)
    found = influence(calibration, by="feed", confirm=3)
    row = found["feed"].tolist().index("bad")
    left = case.whole.without(case.ids[np.isin(case.ids, calibration.quotes.ids)])
    assert not same(left, case.whole.only(left.ids))  # a retained quote has another European price
    moved = fitted(left).parameters["volatility"] - calibration.parameters["volatility"]
    assert found["confirmed_volatility"][row] == moved


@pytest.mark.parametrize("kind", OF_QUOTES)
def test_pictures_after_forgetting_are_those_of_a_file_that_never_had_the_quotes(case, kind):
    done = so.forget(fitted(case.whole), ids=case.ids).calibration
    assert plot_data(done, kind) == plot_data(fitted(case.never), kind)
    assert plot_data(done, kind) != plot_data(fitted(case.whole), kind)


def test_influence_after_forgetting_is_that_of_a_file_that_never_had_the_quotes(case):
    after, never = (
        influence(one) for one in (so.forget(fitted(case.whole), ids=case.ids).calibration, fitted(case.never))
    )
    for name in never.columns:
        assert after[name].tolist() == never[name].tolist()


def test_a_book_restores_american_quotes_with_the_bits_they_had(case, tmp_path):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(case.whole)
        book.calibrate(so.BlackScholes(), select="otm")
        book.forget(ids=case.ids, reason="bad-feed")
        assert book.calibration().parameters == fitted(case.never).parameters
        assert same(book.quotes().only(case.never.ids), case.never)
        book.restore()
        assert book.calibration().parameters == fitted(case.whole).parameters
        assert same(book.quotes().only(case.whole.ids), case.whole)
        assert book.verify()


def test_an_erased_american_quote_leaves_neither_its_mid_nor_the_forward_it_moved(case, tmp_path):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(case.whole)
        book.calibrate(so.BlackScholes(), select="otm")
        book.erase(ids=case.ids, reason="licence")
        assert same(book.quotes().only(case.never.ids), case.never)
        assert book.calibration().parameters == fitted(case.never).parameters
        assert book.verify()
    gone = case.whole.only(case.ids)
    old = case.whole.contracts.forward[case.whole.ids == case.never.ids[-1]]
    assert old[0] != case.never.contracts.forward[-1]
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for number in (*gone.labels["american_mid"], *gone.observed, *old):
        assert np.float64(number).tobytes() not in held
        assert repr(float(number)).encode() not in held
    assert np.float64(case.never.labels["american_mid"][0]).tobytes() in held  # the search finds what is there


def test_a_lake_converts_american_quotes_as_a_file_alone_does(tmp_path):
    chain().with_columns(rate=RATE).write_parquet(tmp_path / "chain.parquet")
    lake = so.scale.Lake(tmp_path, each=("underlying",))
    alone, european = (so.read_quotes(tmp_path / "chain.parquet", exercise=style) for style in ("auto", "european"))
    state = so.scale.gather(lake, engine="here").total()
    assert state == so.states.moments_of(alone)
    assert state != so.states.moments_of(european)
