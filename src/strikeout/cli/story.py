"""The story the demo tells, as numbers: a book from two feeds, three bad days of one of them, three calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.kernels import black
from strikeout.models.heston import Heston
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.synthetic import PAPER_TRUTH, paper_quotes

Floats = NDArray[np.float64]

SLIPPED, STALE = "decimal point slipped: a tenth of the price", "stale: the prices of twenty days before"
STALE_BY = 20  # days
FAULTS: Mapping[int, str] = {45: SLIPPED, 90: STALE, 135: SLIPPED}
MONEYNESS = (-0.1, 0.0, 0.1)  # where the smiles are compared


@dataclass(frozen=True)
class BadDay:
    """A day on which feed b was wrong."""

    date: str
    fault: str
    ids: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Story:
    """The calibrations of the book as it should be, as it arrived, and without the bad days."""

    clean: Calibration
    arrived: Calibration
    without: Calibration
    bad_days: tuple[BadDay, ...]

    @property
    def truth(self) -> Mapping[str, float]:
        return PAPER_TRUTH

    @property
    def bad_ids(self) -> list[str]:
        return [name for day in self.bad_days for name in day.ids]

    def errors(self, calibration: Calibration) -> dict[str, float]:
        """How far each parameter is from the truth, in standard errors of the clean calibration."""
        precision = self.clean.standard_errors
        return {name: (x - self.truth[name]) / precision[name] for name, x in calibration.parameters.items()}


def story(seed: int = 42) -> Story:
    """Makes the book, breaks it and calibrates it three times; the same bits every time.

    Raises:
        Nothing: the book is ours, and its calibrations converge.
    """
    book = two_feeds(paper_quotes("large", seed=seed))
    arrived, bad_days = with_bad_days(book)
    ids = [name for day in bad_days for name in day.ids]
    model = Heston()
    return Story(
        clean=calibrate(book, model),
        arrived=calibrate(arrived, model),
        without=calibrate(arrived.without(ids), model),
        bad_days=bad_days,
    )


def two_feeds(book: Quotes) -> Quotes:
    """The same book, every other quote from feed b."""
    source = np.where(np.arange(len(book)) % 2 == 0, "a", "b").astype(object)
    return Quotes(
        ids=book.ids, contracts=book.contracts, observed=book.observed, labels={**book.labels, "source": source}
    )


def with_bad_days(book: Quotes) -> tuple[Quotes, tuple[BadDay, ...]]:
    """The book as it arrived, with feed b wrong on three days, and what went wrong."""
    observed, bad_days = book.observed.copy(), []
    day, source, dates = book.labels["day"], book.labels["source"], book.labels["date"]
    a_day = int(np.count_nonzero(day == 0))  # the book is the same grid of contracts every day, day after day
    for number, fault in FAULTS.items():
        rows = np.flatnonzero((day == number) & (source == "b"))
        observed[rows] = book.observed[rows] / 10 if fault == SLIPPED else book.observed[rows - STALE_BY * a_day]
        bad_days.append(BadDay(str(dates[rows[0]]), fault, tuple(book.ids[rows].tolist())))
    return book.with_observed(observed), tuple(bad_days)


def volatilities(calibration: Calibration) -> tuple[Floats, Floats]:
    """The expiries of the book, and the model's implied volatilities there (a row an expiry) at `MONEYNESS`."""
    expiries = np.unique(calibration.quotes.contracts.expiry)
    k = np.tile(MONEYNESS, len(expiries))
    c = Contracts(forward=1.0, strike=np.exp(k), expiry=np.repeat(expiries, 3), discount=1.0, is_call=k >= 0)
    prices = calibration.model.price(calibration.parameters, c)
    smile = black.implied_volatility(prices, c.forward, c.strike, c.expiry, c.discount, c.is_call)
    return expiries, np.asarray(smile).reshape(len(expiries), 3)
