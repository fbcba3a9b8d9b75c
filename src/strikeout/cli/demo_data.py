"""The numbers of the demo: three bad days of a feed, found by influence, struck out, undone, verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strikeout.assurance.influence import Influence, influence
from strikeout.assurance.verify import Verification
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.forget import forget
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.recompute import paper_step, restep
from strikeout.forgetting.update import restore
from strikeout.kernels import black
from strikeout.kernels.arrays import Floats
from strikeout.models.heston import Heston
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import moments_of
from strikeout.store.signing import verify
from strikeout.synthetic.heston_quotes import TRUTH

SLIPPED, STALE = "decimal point slipped: a tenth of the price", "stale: the prices of twenty days before"
STALE_BY = 20  # days
FAULTS: Mapping[int, str] = {45: SLIPPED, 90: STALE, 135: SLIPPED}
MONEYNESS = (-0.1, 0.0, 0.1)  # where the smiles are compared
STANDS_OUT = 100  # times the median Cook's distance: such a day of a feed is struck out


@dataclass(frozen=True)
class BadDay:
    """A day on which feed b was wrong."""

    date: str
    fault: str
    ids: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Story:
    """The quotes as they should be and as they arrived, the bad days, and every way to strike them out.

    ``forgetting`` strikes out the groups with a large ``influence``. Beside it: ``paper``, one step from the spoiled
    parameters, and ``paper_baseline``, the same step from raw quotes that the paper compares it with; one step from
    the ``robust`` reference; the optimum ``resolved`` from moments; and ``never_seen``, a calibration of the clean
    quotes without those that were struck out. ``restored`` is the calibration after undoing it. ``refuted`` checks the
    certificate against the quotes as they arrived, and must fail.
    """

    clean: Calibration
    arrived: Calibration
    bad_days: tuple[BadDay, ...]
    influence: Influence
    condition: str
    forgetting: Forgetting
    paper: dict[str, float]
    paper_baseline: dict[str, float]
    robust: dict[str, float]
    resolved: Calibration
    never_seen: Calibration
    restored: Calibration
    verification: Verification
    refuted: Verification

    @property
    def truth(self) -> Mapping[str, float]:
        return TRUTH

    @property
    def bad_ids(self) -> list[str]:
        return [name for day in self.bad_days for name in day.ids]

    @property
    def without(self) -> Calibration:
        """The calibration once the bad days are struck out."""
        return self.forgetting.calibration

    @property
    def is_as_never_seen(self) -> bool:
        """Whether parameters and state equal, bit for bit, those of quotes without the bad days from the start."""
        return _same(self.without, self.never_seen)

    @property
    def is_restored(self) -> bool:
        """Whether restoring the quotes gave the same bits as before."""
        return _same(self.restored, self.arrived)

    def errors(self, parameters: Mapping[str, float]) -> dict[str, float]:
        """Return how far each parameter is from the truth, in standard errors of the clean calibration."""
        precision = self.clean.standard_errors
        return {name: (x - self.truth[name]) / precision[name] for name, x in parameters.items()}

    def worst(self, parameters: Mapping[str, float]) -> float:
        """Return the largest of these errors."""
        return max(abs(error) for error in self.errors(parameters).values())

    def from_refit(self, parameters: Mapping[str, float]) -> float:
        """Return how far the parameters are from those of the retained quotes, in standard errors of these."""
        exact, error = self.without.parameters, self.without.standard_errors
        return max(abs(x - exact[name]) / error[name] for name, x in parameters.items())


def build_story(seed: int = 42) -> Story:
    """Compute the story: quotes, bad days, influence, strike-out, restoration and checks; the same bits every time."""
    book, model = two_feeds(paper_quotes("large", seed=seed)), Heston()
    spoiled, bad_days = with_bad_days(book)
    arrived = calibrate(spoiled, model)
    found = influence(arrived, ["date", "source"])
    condition = condition_of(found)
    forgetting = forget(arrived, where=condition)
    ids, retained = forgetting.ids, forgetting.calibration.quotes
    footprints, step = arrived.footprints, paper_step(arrived, ids)
    return Story(
        clean=calibrate(book, model),
        arrived=arrived,
        bad_days=bad_days,
        influence=found,
        condition=condition,
        forgetting=forgetting,
        paper=step.parameters,
        paper_baseline=restep(retained, arrived.model, step.equations.schema, ridge="paper").parameters,
        robust=downdate(footprints, ids).parameters,
        resolved=calibrate(moments_of(spoiled) - moments_of(spoiled.only(ids)), model),
        never_seen=calibrate(book.without(ids), model),
        restored=restore(forgetting, forgetting.calibration),
        verification=verify(forgetting.certificate, retained),
        refuted=verify(forgetting.certificate, spoiled),
    )


def condition_of(found: Influence) -> str:
    """Return the groups with a large influence as a condition in SQL on date and source."""
    out = found["cooks_d"] > STANDS_OUT * np.median(found["cooks_d"])
    dates, sources = found["date"][out].tolist(), found["source"][out].tolist()
    named = {
        feed: sorted(day for day, source in zip(dates, sources, strict=True) if source == feed) for feed in sources
    }
    parts = [f"source = '{feed}' and date in ({', '.join(map(repr, days))})" for feed, days in sorted(named.items())]
    return " or ".join(parts)


def two_feeds(book: Quotes) -> Quotes:
    """Return the same quotes, every other one from feed b."""
    source = np.where(np.arange(len(book)) % 2 == 0, "a", "b").astype(object)
    return Quotes(
        ids=book.ids, contracts=book.contracts, observed=book.observed, labels={**book.labels, "source": source}
    )


def with_bad_days(book: Quotes) -> tuple[Quotes, tuple[BadDay, ...]]:
    """Return the quotes as they arrived, with feed b wrong on three days, and these days."""
    observed, bad_days = book.observed.copy(), []
    day, source, dates = book.labels["day"], book.labels["source"], book.labels["date"]
    a_day = int(np.count_nonzero(day == 0))  # every day has the same grid of contracts
    for number, fault in FAULTS.items():
        rows = np.flatnonzero((day == number) & (source == "b"))
        observed[rows] = book.observed[rows] / 10 if fault == SLIPPED else book.observed[rows - STALE_BY * a_day]
        bad_days.append(BadDay(str(dates[rows[0]]), fault, tuple(book.ids[rows].tolist())))
    return book.with_observed(observed), tuple(bad_days)


def volatilities(calibration: Calibration) -> tuple[Floats, Floats]:
    """Return the expiries, and the model's implied volatilities at `MONEYNESS`, one row per expiry."""
    expiries = np.unique(calibration.quotes.contracts.expiry)
    k = np.tile(MONEYNESS, len(expiries))
    c = Contracts(forward=1.0, strike=np.exp(k), expiry=np.repeat(expiries, 3), discount=1.0, is_call=k >= 0)
    prices = calibration.model.price(calibration.parameters, c)
    smile = black.implied_volatility(prices, c.forward, c.strike, c.expiry, c.discount, c.is_call)
    return expiries, np.asarray(smile).reshape(len(expiries), 3)


def _same(one: Calibration, other: Calibration) -> bool:
    return one.parameters == other.parameters and bool(one.state.digest() == other.state.digest())
