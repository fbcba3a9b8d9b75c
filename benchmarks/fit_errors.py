"""Fit errors of every real day by expiry, in volatility points, spreads and price: one table.

python -m benchmarks.fit_errors [--model heston] [--objective implied-vol] [--format csv]
"""

from __future__ import annotations

import argparse
import time

import strikeout as so
from benchmarks.chains import DAYS, day
from strikeout.cli.fit_options import OBJECTIVES
from strikeout.models.named import model_named
from strikeout.tables import Cell, Table, number

HEADINGS = ("day", "expiry", "quotes", "vol points", "spreads", "price", "status")


def rows_of(name: str, model: str, objective: str) -> list[tuple[Cell, ...]]:
    """Return one row per expiry of a day and one for all of them; one row with the reason if it is refused."""
    residual, weights = OBJECTIVES[objective]
    try:
        found = so.calibrate(day(name), model_named(model), residual=residual, weights=weights)  # type: ignore[arg-type]
    except so.StrikeoutError as error:
        return [(name, "all", number(len(day(name)), ",d"), *[number(None)] * 3, error.code)]
    errors = {**found.fit_errors.by_expiry, "all": found.fit_errors.overall}
    return [
        (
            name,
            expiry,
            number(error.count, ",d"),
            number(error.vol_points, ".3f"),
            number(error.spreads, ".2f"),
            number(error.price, ".4g"),
            found.termination.name.lower() if expiry == "all" else "",
        )
        for expiry, error in errors.items()
    ]


def main() -> None:
    """Print the table of all days."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--model", default="heston")
    asked.add_argument("--objective", default="implied-vol", choices=list(OBJECTIVES))
    asked.add_argument("--format", default="text", choices=["text", "csv", "latex", "markdown"])
    how = asked.parse_args()
    begun = time.perf_counter()
    rows = [row for name in DAYS for row in rows_of(name, how.model, how.objective)]
    print(Table(HEADINGS, rows, numbers=(2, 3, 4, 5)).to_text(how.format))
    print(f"\n{len(DAYS)} days, {how.model}, {how.objective}, {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
