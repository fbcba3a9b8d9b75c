"""How often nominal 95 % intervals contain the true parameters, if the quotes of a day share an error.

python -m benchmarks.coverage [--panels 1000] [--days 25] [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

import strikeout as so
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.synthetic.heston_quotes import TRUTH, panel_quotes
from strikeout.tables import Table, number

DAYS = 25
SHARED = 3e-4  # standard deviation of each of the four common errors of a day, in currency
OWN = 1e-4  # of the error of each quote
EXPIRIES = (0.1, 0.25, 0.5, 1.0)
LEVELS = np.linspace(-0.3, 0.3, 21)
UNITS = ("independent", "cluster:date", "jackknife:date")


def shocked_panel(seed: int, days: int = DAYS) -> Quotes:
    """Return a synthetic panel of 84 quotes a day, in which all prices of a day share four errors.

    Their shapes in moneyness x and expiry t, both scaled to about one, are x, t, x t and x^2 - 1.
    """
    path = panel_quotes(days, seed=seed, noise=0.0)
    first = np.unique(path.labels["day"], return_index=True)[1]
    variance, dates = path.labels["variance"][first], path.labels["date"][first]
    day, years, level = (grid.ravel() for grid in np.meshgrid(np.arange(days), EXPIRIES, LEVELS, indexing="ij"))
    c = Contracts(forward=100.0, strike=100.0 * np.exp(level), expiry=years, discount=1.0, is_call=level >= 0.0)
    observed, rng = np.empty(len(day)), np.random.default_rng([seed, 7])
    for d in range(days):
        rows = np.flatnonzero(day == d)
        observed[rows] = so.Heston().price({**TRUTH, "initial_variance": float(variance[d])}, c[rows])
    x, t = level / np.std(level), (years - np.mean(years)) / np.std(years)
    shapes = np.stack([x, t, x * t, x * x - 1.0], axis=1)
    shared = np.sum(rng.standard_normal((days, 4))[day] * shapes, axis=1)
    noise = SHARED * shared + OWN * rng.standard_normal(len(day))
    names = [f"q{n}" for n in range(len(day))]
    return Quotes(ids=names, contracts=c, observed=observed + noise, labels={"date": dates[day]})


def covered(panels: Iterable[Quotes], level: float = 0.95) -> dict[str, dict[str, float]]:
    """Return, by unit and shared parameter, the share of panels whose interval contains the truth."""
    hits: dict[str, dict[str, list[bool]]] = {unit: {} for unit in UNITS}
    for quotes in panels:
        found = so.calibrate(quotes, so.Heston(), panel="date", starts=1)
        if not found.converged:
            raise RuntimeError(f"a synthetic panel did not converge: {found.termination}")
        for unit in UNITS:
            errors = replace(found, settings=replace(found.settings, errors=unit)).errors
            for name in found.parameters:
                low, high = errors.interval(name, level)
                hits[unit].setdefault(name, []).append(low <= TRUTH[name] <= high)
    return {unit: {name: float(np.mean(seen)) for name, seen in by_name.items()} for unit, by_name in hits.items()}


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--panels", type=int, default=1000)
    asked.add_argument("--days", type=int, default=DAYS)
    asked.add_argument("--quick", action="store_true", help="100 panels")
    how = asked.parse_args()
    count, begun = 100 if how.quick else how.panels, time.perf_counter()
    table = covered(shocked_panel(seed, how.days) for seed in range(count))
    names = list(next(iter(table.values())))
    rows = [(unit, *(number(100.0 * row[name], ".1f") for name in names)) for unit, row in table.items()]
    print(Table(("errors", *names), rows, numbers=tuple(range(1, len(names) + 1))).to_text("text"))
    print(
        f"\ncoverage of nominal 95 % intervals in %, {count:,} panels of {how.days} days, common daily errors;", end=" "
    )
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
