"""Single days of real options: our calibration against QuantLib's best of 40 random starts, and ours from the same 40.

Both see the same quotes (at most `FEW` of a day, evenly chosen: QuantLib takes its time), the same objective and the
same starts. QuantLib's ends are compared by its own prices, the best of them with ours by exact ones. Ours is also
sent from the 40 starts over the whole chain. A wrong minimum is an end that calls itself converged at a cost above the
best known one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from benchmarks import chains
from benchmarks.peers import quantlib_peer
from benchmarks.rows import Result, Row
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of, weights_of

Floats = NDArray[np.float64]

OBJECTIVES: dict[str, dict[str, Any]] = {
    "price": {"weights": "none"},
    "vega": {"weights": "vega"},
    "implied_vol": {"weights": "none", "residual": "implied_vol"},
}
FEW = 100
# In the order of the parameters' names; all but the correlation are drawn evenly in their logarithm.
LOW = np.array([0.1, 0.005, 0.05, -0.95, 0.005])
HIGH = np.array([20.0, 0.5, 3.0, 0.5, 0.5])
SAME = 1e-6  # of the cost: ends closer than this are one minimum; they differ by less than 1e-12 where we converge
AS_GOOD = 1e-9  # of the cost: what prices good to 1e-11 of the forward, and their order of summation, can leave open
THERE = 1e-3  # of the cost: an end of QuantLib's this close is counted as the best, so early does it stop


@dataclass(frozen=True)
class Ends:
    """Where starts ended: the least cost, how many reached it, were content elsewhere, or failed by their own word."""

    best: float
    theta: Floats
    there: int
    elsewhere: int
    failed: int
    seconds: float  # of processor, a start


@dataclass(frozen=True)
class Race:
    """One day under one objective."""

    day: str
    objective: str
    ours: so.results.Calibration
    random: Ends
    whole: Ends
    whole_count: int
    quantlib: Ends | None
    quantlib_cost: float  # of its best end, by exact prices

    @property
    def is_as_good(self) -> bool:
        """Ours costs no more than QuantLib's best end."""
        return self.quantlib is None or self.ours.cost <= self.quantlib_cost * (1.0 + AS_GOOD)

    @property
    def wrong(self) -> int:
        """Our ends, of the few quotes and of the whole chain, that are content with a wrong minimum."""
        return self.random.elsewhere + self.whole.elsewhere


def random_starts(count: int, *, seed: int = 0) -> list[Floats]:
    """Starts as a user might throw them, the same for every candidate."""
    rng, is_log = np.random.default_rng(seed), LOW > 0.0
    drawn = []
    for _ in range(count):
        share = rng.random(len(LOW))
        evenly = LOW + share * (HIGH - LOW)
        drawn.append(np.where(is_log, np.abs(LOW) * (HIGH / np.abs(LOW)) ** share, evenly))
    return drawn


def race(day: str, objective: str, *, starts: int = 40, few: int = FEW, with_peer: bool = True) -> Race:
    """One day under one objective, all from the same starts.

    Raises:
        FileNotFoundError: the reference chains are not there.
    """
    how, points = OBJECTIVES[objective], random_starts(starts)
    whole = chains.day(day)
    quotes = chains.thinned(whole, few)
    ours = so.calibrate(quotes, so.Heston(), **how)
    peer = _quantlib(quotes, how, points) if with_peer else None
    cost = float("inf") if peer is None else _cost(quotes, how, peer.theta)
    return Race(
        day=day,
        objective=objective,
        ours=ours,
        random=_ours(quotes, how, points, ours),
        whole=_ours(whole, how, points, so.calibrate(whole, so.Heston(), **how)),
        whole_count=len(whole),
        quantlib=peer,
        quantlib_cost=cost,
    )


def run(*, is_quick: bool, is_full: bool) -> Result:
    """Every day under every objective; quick mode takes two days, four starts and few quotes."""
    days = ("DAX 2002-07-05", "SPX 2011-05-11") if is_quick else tuple(chains.DAYS)
    if not chains.DATA.is_dir():
        note = "not installed: the reference chains are not in ../shared/data beside the repository"
        return Result("markets", is_quick, (Row("single days", "strikeout", note=note),), {})
    has_peer = find_spec("QuantLib") is not None
    starts, few = (4, 40) if is_quick else (40, 4 * FEW if is_full else FEW)
    races = [race(day, name, starts=starts, few=few, with_peer=has_peer) for day in days for name in OBJECTIVES]
    return Result("markets", is_quick, tuple(row for one in races for row in _rows(one, starts)), _facts(races, starts))


def _ours(quotes: so.Quotes, how: dict[str, Any], points: list[Floats], best: so.results.Calibration) -> Ends:
    model, began = so.Heston(), time.process_time()
    ends = [so.calibrate(quotes, model, starts=model.parameters.named(point), **how) for point in points]
    seconds = (time.process_time() - began) / len(points)
    least = min([best, *ends], key=lambda end: end.cost)
    there = [end.cost <= least.cost * (1.0 + SAME) for end in [best, *ends]]
    content = [end.converged for end in [best, *ends]]
    wrong = sum(ok and not good for ok, good in zip(content, there, strict=True))
    theta = np.array(list(least.parameters.values()))
    return Ends(least.cost, theta, sum(there[1:]), wrong, len(points) - sum(there[1:]) - wrong, seconds)


def _quantlib(quotes: so.Quotes, how: dict[str, Any], points: list[Floats]) -> Ends:
    residual = how.get("residual", "price")
    book = quantlib_peer.prepare(
        quotes.contracts,
        quotes.observed,
        weight=weights_of(quotes, how["weights"])[0],
        residual=residual,
        days_a_year=365,
    )
    if book.count < len(quotes):
        raise ValueError(f"QuantLib took {book.count} of {len(quotes)} quotes; both must see the same.")
    found, began = [], time.process_time()
    for point in points:
        try:
            theta = quantlib_peer.calibrate(book, point)
        except RuntimeError:  # its own engine gave up
            continue
        found.append((quantlib_peer.cost(book), theta, quantlib_peer.says_converged(book)))
    seconds = (time.process_time() - began) / len(points)
    best, theta, _ = min(found, key=lambda end: end[0])
    there = sum(cost <= best * (1.0 + THERE) for cost, _, _ in found)
    wrong = sum(content and cost > best * (1.0 + THERE) for cost, _, content in found)
    return Ends(best, theta, there, wrong, len(points) - there - wrong, seconds)


def _cost(quotes: so.Quotes, how: dict[str, Any], theta: Floats) -> float:
    """Of QuantLib's parameters by our prices, which want them inside the model's domain: it goes to its very edge."""
    edge = np.array([1e-9, 1e-9, 1e-3, 1e-9 - 1.0, 1e-9])
    inside = np.clip(theta, edge, [np.inf, np.inf, np.inf, 1.0 - 1e-9, np.inf])
    objective, _ = objective_of(quotes, **how)
    return float(linearize(objective, so.Heston(), inside.tolist()).cost)


def _rows(one: Race, starts: int) -> tuple[Row, ...]:
    task = f"{one.day}, {one.objective}"
    ours = Row(
        task,
        "strikeout",
        one.random.seconds,
        1.0,
        note=f"{one.ours.count} quotes: {_told(one.random, starts)}; "
        f"all {one.whole_count:,}: {_told(one.whole, starts)}"
        + ("" if one.ours.converged else f"; refused, {_why(one.ours)}"),
    )
    if one.quantlib is None:
        return ours, Row(task, "QuantLib", note="not installed: skipped")
    over = one.quantlib_cost / one.ours.cost - 1.0
    best = "the same cost" if abs(over) < SAME else f"{'+' if over > 0 else '-'}{_share(abs(over))} cost"
    if not one.is_as_good:
        best += f" (RMSE {_rmse(one.quantlib_cost, one.ours.count)} against {_rmse(one.ours.cost, one.ours.count)})"
    note = f"best: {best}; {_told(one.quantlib, starts)}"
    return ours, Row(task, "QuantLib", one.quantlib.seconds, one.quantlib.seconds / one.random.seconds, note=note)


def _why(calibration: so.results.Calibration) -> str:
    """The reason of a refusal with its numbers."""
    free = [f"{name} {calibration.identifiability[name]}" for name in calibration.unidentified]
    held = [f"{name} on its bound {bound:g}" for name, bound in calibration.on_bound.items()]
    return f"{calibration.termination.name.lower()}: {', '.join(free or held)}"


def _share(x: float) -> str:
    return f"{x:.1%}" if x >= 1e-3 else f"{x:.0e}"


def _rmse(cost: float, count: int) -> str:
    """Of a weighted residual: in the objective's own unit."""
    return f"{(cost / count) ** 0.5:.4g}"


def _told(ends: Ends, starts: int) -> str:
    words = [f"{ends.there} of {starts} starts there"]
    words += [f"{ends.elsewhere} wrong"] if ends.elsewhere else []
    words += [f"{ends.failed} not converged"] if ends.failed else []
    return ", ".join(words)


def _facts(races: list[Race], starts: int) -> dict[str, float | str]:
    peers = [one.quantlib for one in races if one.quantlib is not None]
    worse = [f"{one.day}, {one.objective}" for one in races if not one.is_as_good]
    on_edge = [one for one in races if one.ours.termination is so.results.Termination.CONVERGED_ON_EDGE]
    refused = [f"{one.day}, {one.objective}" for one in races if not one.ours.converged]
    return {
        "calibrations": len(races),
        "refused by ours, and why in the table": ", ".join(refused) or "none",
        "converged with a variance that begins at zero": ", ".join(f"{one.day}, {one.objective}" for one in on_edge)
        or "none",
        "worse than QuantLib's best, refused ones included": ", ".join(worse) or "none",
        "random starts of ours": 2 * starts * len(races),
        "of these content with a wrong minimum": sum(one.wrong for one in races),
        "random starts of QuantLib's": starts * len(peers),
        "of its starts content with a wrong minimum": sum(ends.elsewhere for ends in peers),
    }
