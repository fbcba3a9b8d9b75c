"""How far a greedy set of quotes moves a parameter, beside the quotes of the largest single influence: one table.

python -m benchmarks.masking [--count 11] [--target mean_reversion] [--format csv]
"""

from __future__ import annotations

import argparse

import numpy as np

import strikeout as so
from benchmarks.chains import DAYS, day
from strikeout.tables import Cell, Table, number

HEADINGS = ("quotes of", "quotes", "single, up", "greedy, up", "single, down", "greedy, down", "in common")


def row_of(name: str, *, count: int, target: str, residual: str) -> tuple[Cell, ...]:
    """Return the moves of a day in standard errors of independent quotes, after refits without each set."""
    found = so.calibrate(day(name), so.Heston(), residual=residual, weights="none")
    if not found.converged:
        return f"{name} ({found.termination.status})", number(len(found.used), ",d"), *([number(None)] * 4), ""
    effect = so.influence(found)
    order = np.argsort(effect[f"change_{target}"], kind="stable")
    worst = so.robustness(found, target, count=count)
    cells: list[Cell] = []
    common = []
    for rows, removal in ((order[::-1][:count], worst.raising), (order[:count], worst.lowering)):
        ids = effect["id"][rows]
        after = so.calibrate(found.used.without(ids), so.Heston(), **found.settings.keywords())
        moved = (after.parameters[target] - found.parameters[target]) / after.standard_errors[target]
        cells += [number(moved, "+.1f"), number(removal.moved, "+.1f")]
        common.append(len({str(x) for x in ids} & set(removal.ids)))
    return name, number(len(found.used), ",d"), *cells, " and ".join(map(str, common))


def main() -> None:
    """Print the table of all days that converge."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--count", type=int, default=11)
    asked.add_argument("--target", default="mean_reversion")
    asked.add_argument("--residual", default="price", choices=["price", "implied_vol"])
    asked.add_argument("--format", default="text", choices=["text", "csv", "latex", "markdown"])
    how = asked.parse_args()
    rows = [row_of(name, count=how.count, target=how.target, residual=how.residual) for name in DAYS if "SPX" in name]
    print(Table(HEADINGS, rows, numbers=(1, 2, 3, 4, 5)).to_text(how.format))


if __name__ == "__main__":
    main()
