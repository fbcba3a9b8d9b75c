"""The scenario bank: decimal shifts, stale days, bad ticks, sentinels, whole expiries and strikes, 1 to 97 % at random.

Every operator of ``scenario_operators``, and a file of your own (``--operator theirs.py``), forgets the quotes of every
scenario. Its answer is compared with the optimum of the retained quotes (the best of six starts), and with what it
claims. The question is accuracy and whether claims hold; times are medians of single calls, and rough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from benchmarks import books
from benchmarks.rows import Result, Row
from benchmarks.scenario_operators import OPERATORS, TOLERANCE, Operator, from_file
from strikeout.errors import RefusedError

Mask = NDArray[np.bool_]

ROUNDING = 1e-4  # standard errors: two searches of one optimum agree to far less


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
    """What one operator made of one scenario.

    ``error`` is that of the worst parameter, in standard errors of the optimum of the retained quotes; infinite if
    there is no answer. ``identified``: whether the retained quotes determine the parameters at all; if not, there is no
    optimum to compare with, and the right answer is a refusal.
    """

    operator: str
    kind: str
    name: str
    identified: bool
    is_refused: bool
    error: float
    claimed: float | None
    seconds: float
    failure: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether an answer is within what is claimed for it, or nothing is claimed or answered."""
        if self.is_refused or self.claimed is None:
            return True
        return self.identified and self.error <= max(self.claimed, ROUNDING)

    @property
    def is_right(self) -> bool:
        """Within the tolerance if there is an optimum, refused if there is none."""
        return self.error <= TOLERANCE if self.identified else self.is_refused


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


def judge(scenario: Scenario, operators: Sequence[Operator] = OPERATORS) -> list[Outcome]:
    """Let every operator forget, and compare with the best of six starts, the truth among them."""
    model, names = so.Heston(), so.Heston().parameters.names
    starts = [*model.parameters.starts, books.TRUTH, books.START]
    named = [dict(zip(names, map(float, start), strict=True)) for start in starts]
    optimum = so.calibrate(scenario.quotes.without(scenario.ids), model, starts=named)
    return [_judged(scenario, operator, optimum) for operator in operators]


def _judged(scenario: Scenario, operator: Operator, optimum: so.results.Calibration) -> Outcome:
    model, quotes, ids = so.Heston(), scenario.quotes, scenario.ids
    prepared = operator.prepare(quotes, model)
    begin, failure, answer = perf_counter(), "", None
    try:
        answer = operator.forget(quotes, model, ids, prepared)
    except RefusedError:
        pass
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    seconds = perf_counter() - begin
    parameters, claimed = answer if isinstance(answer, tuple) else (answer, None)
    error = inf if parameters is None else _apart(parameters, optimum)
    refused = parameters is None and not failure
    what = (operator.name, scenario.kind, scenario.name, optimum.converged)
    return Outcome(*what, refused, error, claimed, seconds, failure)


def _apart(parameters: Mapping[str, float], optimum: so.results.Calibration) -> float:
    errors = [abs(parameters[n] - x) / optimum.standard_errors[n] for n, x in optimum.parameters.items()]
    return max(error if isfinite(error) else inf for error in errors)


def run(*, is_quick: bool, is_full: bool, operator: Path | None = None) -> Result:  # noqa: ARG001 - all take both
    """Every scenario of the bank on both books, over several seeds; quick mode takes one of each.

    Args:
        operator: a Python file with an operator of your own; see ``scenario_operators``.

    Raises:
        ValueError: the file has no operator.
    """
    entered = (*OPERATORS, *((from_file(operator),) if operator is not None else ()))
    seeds = {"small": (7,)} if is_quick else {"small": (7, 42, 99), "large": (7, 42, 99)}
    scenarios = [one for size, chosen in seeds.items() for seed in chosen for one in bank(size, seed=seed)]  # type: ignore[arg-type]
    outcomes = [outcome for one in scenarios for outcome in judge(one, entered)]
    every = {one.name: [outcome for outcome in outcomes if outcome.operator == one.name] for one in entered}
    rows = [_row("all scenarios", name, found) for name, found in every.items()]
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        rows += [_row(kind, name, [one for one in found if one.kind == kind]) for name, found in every.items()]
    ours = every[OPERATORS[0].name]
    facts: dict[str, float | str] = {
        "scenarios": len(scenarios),
        "as promised": sum(outcome.is_right for outcome in ours),
        "not as promised": ", ".join(outcome.name for outcome in ours if not outcome.is_right) or "none",
    }
    for name, found in every.items():
        failures = [one.failure for one in found if one.failure]
        if failures:
            facts[f"failures of {name}"] = f"{len(failures)}, first: {failures[0]}"
    return Result("scenarios", is_quick, tuple(rows), facts)


def _row(task: str, name: str, found: list[Outcome]) -> Row:
    told = [one.error for one in found if one.identified and isfinite(one.error)]
    right, broken = sum(one.is_right for one in found), sum(not one.is_kept for one in found)
    claims = sum(one.claimed is not None for one in found)
    errors = f"error {np.median(told):.0e} SE, worst {max(told):.0e}; " if told else ""
    note = (
        f"{right} of {len(found)} within {TOLERANCE:g} SE or rightly refused; {errors}"
        f"{sum(one.is_refused for one in found)} refused; {broken} of {claims} claims broken"
    )
    return Row(task, name, float(np.median([one.seconds for one in found])), note=note)
