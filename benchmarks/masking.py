"""How far a greedy set of quotes moves a parameter, beside the quotes of the largest single influence: one table.

python -m benchmarks.masking [--count 11] [--target mean_reversion] [--residual implied_vol] [--weeks] [--format csv]
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl
from numpy.typing import NDArray

import strikeout as so
from benchmarks.chains import DATA, DAYS, quotes_of
from strikeout.tables import Cell, Table, number

WEEKS = "panel_spx_weekly_2011_h1"
HEADINGS = (
    "quotes of", "quotes", "single, any sign", "single, up", "greedy, up", "single, down", "greedy, down", "in common",
)  # fmt: skip


def row_of(name: str, quotes: so.Quotes, *, count: int, target: str, residual: str) -> tuple[Cell, ...]:
    """Return the moves of a day in standard errors of independent quotes, after refits without each set."""
    found = so.calibrate(quotes, so.Heston(), residual=residual, weights="none")
    if not found.converged:
        return f"{name} ({found.termination.status})", number(len(found.used), ",d"), *([number(None)] * 5), ""

    def moved(ids: NDArray[np.str_]) -> Cell:
        after = so.calibrate(found.used.without(ids), so.Heston(), **found.settings.keywords())
        return number((after.parameters[target] - found.parameters[target]) / after.standard_errors[target], "+.1f")

    effect = so.influence(found)
    change = effect[f"change_{target}"]
    order = np.argsort(change, kind="stable")
    worst = so.robustness(found, target, count=count)
    cells = [moved(effect["id"][np.argsort(-np.abs(change), kind="stable")[:count]])]
    common = []
    for rows, removal in ((order[::-1][:count], worst.raising), (order[:count], worst.lowering)):
        ids = effect["id"][rows]
        cells += [moved(ids), number(removal.moved, "+.1f")]
        common.append(len({str(x) for x in ids} & set(removal.ids)))
    return name, number(len(found.used), ",d"), *cells, " and ".join(map(str, common))


def main() -> None:
    """Print the table of all days that converge."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--count", type=int, default=11)
    asked.add_argument("--target", default="mean_reversion")
    asked.add_argument("--residual", default="price", choices=["price", "implied_vol"])
    asked.add_argument("--weeks", action="store_true", help="the 26 weekly closes of 2011 instead of single days")
    asked.add_argument("--format", default="text", choices=["text", "csv", "latex", "markdown"])
    how = asked.parse_args()
    days = {name: (file, date) for name, (file, date) in DAYS.items() if "SPX" in name}
    if how.weeks:
        dates = pl.read_parquet(DATA / f"{WEEKS}.parquet", columns=["quote_date"])["quote_date"].cast(pl.String)
        days = {f"SPX {date}": (WEEKS, date) for date in dates.str.slice(0, 10).unique().sort().to_list()}
    rows = [
        row_of(name, quotes_of(*one), count=how.count, target=how.target, residual=how.residual)
        for name, one in days.items()
    ]
    print(Table(HEADINGS, rows, numbers=(1, 2, 3, 4, 5, 6)).to_text(how.format))


if __name__ == "__main__":
    main()
