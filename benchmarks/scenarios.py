"""The scenario bank: decimal shifts, stale days, bad ticks, sentinels, whole expiries and strikes, 1 to 97 % at random.

Every one is struck out with a tolerance and held against the best of several starts on the retained quotes, with the
paper's one step beside it. No timing here: the question is whether an answer is within what it promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from benchmarks import books
from benchmarks.rows import Result, Row
from strikeout.errors import RefusedError
from strikeout.forgetting.paper_step import paper_step

TOLERANCE = 0.06  # standard errors

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scenario:
    """A book, bad quotes and all, and which of them are to be struck out."""

    kind: str
    name: str
    quotes: so.Quotes
    struck: Mask

    @property
    def ids(self) -> NDArray[np.str_]:
        return self.quotes.ids[self.struck]


@dataclass(frozen=True)
class Outcome:
    """What forgetting came to: errors in standard errors of the optimum of the retained quotes, worst parameter.

    ``refused`` is the sentence of a refusal, ``identified`` whether the retained quotes determine the parameters at
    all. Where they do not there is no optimum to be compared with.
    """

    kind: str
    name: str
    identified: bool
    refused: str | None
    operator: str
    error: float
    paper_error: float

    @property
    def is_kept(self) -> bool:
        """Within the tolerance where there is an answer, refused where there is none."""
        return self.error <= TOLERANCE if self.identified else self.refused is not None


def bank(size: Literal["small", "large"], *, seed: int) -> Iterator[Scenario]:
    """All scenarios on one of the paper's books; ``seed`` makes the book and picks the days."""
    book = so.paper.quotes(size, seed=seed)
    rng = np.random.default_rng(seed)
    day, days, clean = book.labels["day"], int(book.labels["day"].max()) + 1, book.observed

    def block(length: int) -> Mask:
        begin = int(rng.integers(1, days - length))
        return (day >= begin) & (day < begin + length)

    def scaled(struck: Mask, factor: float | NDArray[np.float64]) -> so.Quotes:
        return book.with_observed(np.where(struck, clean * factor, clean))

    for share in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97):
        yield Scenario("random", f"{share:.0%} at random", book, rng.random(len(book)) < share)
    for length in (1, 5, 20, 60):
        yield Scenario("days", f"{length} days in a row", book, block(length))
    for term in np.unique(book.labels["expiry_days"]):
        yield Scenario("expiry", f"the {term}-day expiry", book, book.labels["expiry_days"] == term)
        yield Scenario("expiry", f"all but the {term}-day expiry", book, book.labels["expiry_days"] != term)
    for strike in np.unique(book.contracts.strike):
        yield Scenario("strike", f"strike {strike:g}", book, book.contracts.strike == strike)
    for length in (1, 5, 15):
        for factor in (0.1, 0.7, 0.97, 0.999, 1.1, 10.0):
            struck = block(length)
            yield Scenario("decimal", f"prices x {factor:g}, {length} days", scaled(struck, factor), struck)
    for length in (1, 4, 8):
        struck = block(length)
        before = clean[day == day[struck].min() - 1]
        stale = clean.copy()
        stale[struck] = np.tile(before, length)
        yield Scenario("stale", f"{length} days stale", book.with_observed(stale), struck)
    for share in (0.003, 0.01, 0.05):
        for spread in (0.01, 0.5):
            struck = rng.random(len(book)) < share
            ticks = np.exp(spread * rng.standard_normal(len(book)))
            yield Scenario("ticks", f"{share:.1%} bad ticks of {spread:.0%}", scaled(struck, ticks), struck)
    for value in (0.0, 9999.99, 1e12):
        struck = rng.random(len(book)) < 0.004
        yield Scenario("sentinel", f"{value:g} for a price", book.with_observed(np.where(struck, value, clean)), struck)
    for cents in (1.0, 5.0):
        struck = block(10)
        biased = book.with_observed(np.where(struck, clean + cents / 100.0, clean))
        yield Scenario("bias", f"{cents:g} cents too high, 10 days", biased, struck)


def judge(scenario: Scenario) -> Outcome:
    """Strikes out with the tolerance, and compares with the best of six starts, the truth among them."""
    model, names = so.Heston(), so.Heston().parameters.names
    starts = [*model.parameters.starts, books.TRUTH, books.START]
    named = [dict(zip(names, map(float, start), strict=True)) for start in starts]
    optimum = so.calibrate(scenario.quotes.without(scenario.ids), model, starts=named)
    calibration = so.calibrate(scenario.quotes, model)
    operator, error, refused = "none", inf, None
    try:
        forgetting = so.forget(calibration, ids=scenario.ids, tolerance=TOLERANCE)
        operator, error = forgetting.operator, _apart(forgetting.parameters, optimum)
    except RefusedError as refusal:
        refused = refusal.sentence
    try:
        paper = _apart(paper_step(calibration, scenario.ids).parameters, optimum)
    except RefusedError:  # a sentinel that no grid holds
        paper = inf
    return Outcome(scenario.kind, scenario.name, optimum.converged, refused, operator, error, paper)


def _apart(parameters: dict[str, float], optimum: so.Calibration) -> float:
    errors = [abs(x - optimum.parameters[n]) / optimum.standard_errors[n] for n, x in parameters.items()]
    return max(error if isfinite(error) else inf for error in errors)


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Every scenario of the bank on both books, over several seeds; quick mode takes one of each."""
    seeds = {"small": (7,)} if is_quick else {"small": (7, 42, 99), "large": (7, 42, 99)}
    outcomes = [judge(one) for size, chosen in seeds.items() for seed in chosen for one in bank(size, seed=seed)]  # type: ignore[arg-type]
    rows = []
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        ours = [outcome for outcome in outcomes if outcome.kind == kind]
        told = [outcome for outcome in ours if outcome.identified]
        steps = sum(outcome.operator == "downdate" for outcome in told)
        worst = max((outcome.error for outcome in told), default=0.0)
        paper = [outcome.paper_error for outcome in told]
        kept = sum(outcome.is_kept for outcome in ours)
        note = (
            f"{kept} of {len(ours)} as promised: {len(told)} within {worst:.1e} SE ({steps} by one step), "
            f"{sum(outcome.refused is not None for outcome in ours)} refused"
        )
        rows.append(Row(kind, f"forget, tolerance {TOLERANCE:g} SE", note=note))
        if paper:
            rows.append(Row(kind, "the paper's one step", note=f"{np.median(paper):.1e} SE, worst {max(paper):.1e}"))
    facts: dict[str, float | str] = {
        "scenarios": len(outcomes),
        "as promised": sum(outcome.is_kept for outcome in outcomes),
        "not as promised": ", ".join(outcome.name for outcome in outcomes if not outcome.is_kept) or "none",
    }
    return Result("scenarios", is_quick, tuple(rows), facts)
