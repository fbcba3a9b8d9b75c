"""Standard errors of real days and panels, clustered over independent: one table.

python -m benchmarks.error_units [--format csv]
"""

from __future__ import annotations

import argparse
from math import isfinite

import strikeout as so
from benchmarks.chains import DATA, DAYS, day
from strikeout.tables import Cell, Table, number

PANELS = ("panel_spx_weekly_2011_h1", "panel_deribit_btc_2025-12_2026-04")
HEADINGS = ("quotes of", "clusters", "mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance")


def row_of(name: str, found: so.results.Calibration) -> tuple[Cell, ...]:
    """Return how many times the error of independent quotes each error is."""
    errors = found.errors
    many = "too few" if not errors.basis.corrections else f"{errors.clusters[0]} by {errors.labels[0]}"
    ratios = [errors.ratios.get(head) for head in HEADINGS[2:]]
    return name, many, *(number(x if x is not None and isfinite(x) else None, ".2f") for x in ratios)


def main() -> None:
    """Print the table of all days and panels."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--format", default="text", choices=["text", "csv", "latex", "markdown"])
    how = asked.parse_args()
    rows = []
    for name in DAYS:
        found = so.calibrate(day(name), so.Heston(), residual="implied_vol", weights="none")
        rows.append(row_of(name if found.converged else f"{name} (not converged)", found))
    for name in PANELS:
        quotes = so.read_quotes(DATA / f"{name}.parquet", max_reject=1.0)
        found = so.calibrate(quotes, so.Heston(), panel="date", residual="price", select="otm")
        rows.append(row_of(name if found.converged else f"{name} (not converged)", found))
    print(Table(HEADINGS, rows, numbers=(2, 3, 4, 5, 6)).to_text(how.format))


if __name__ == "__main__":
    main()
