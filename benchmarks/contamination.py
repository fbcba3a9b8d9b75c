"""How far bad quotes move the shared parameters of a panel under every loss: one table.

python -m benchmarks.contamination [--panels 5] [--format csv]
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from strikeout.statistics.losses import NAMES
from strikeout.synthetic.heston_quotes import panel_quotes
from strikeout.tables import Cell, Table, number

DAYS, NOISE = 8, 0.01
CASES = ("bad day", "bad source", "scattered ticks", "bad expiry")


def spoil(quotes: so.Quotes, case: str, seed: int) -> tuple[so.Quotes, NDArray[np.bool_]]:
    """Return a panel with bad quotes, and which they are.

    bad day: every price of one day is a fifth too high. bad source: every fifth quote is 0.3 too high. scattered ticks:
    one quote in twenty has a tenth of its price, or ten times it. bad expiry: one of three is a twentieth too high.
    """
    random, observed, dates = np.random.default_rng(seed), quotes.observed.copy(), quotes.labels["date"]
    if case == "bad day":
        bad = dates == np.unique(dates)[DAYS // 2]
        observed[bad] *= 1.2
    elif case == "bad source":
        bad = np.arange(len(quotes)) % 5 == 0
        observed[bad] += 0.3
    elif case == "scattered ticks":
        bad = random.random(len(quotes)) < 0.05
        observed[bad] *= random.choice([0.1, 10.0], int(bad.sum()))
    else:
        days = np.round(365.0 * quotes.contracts.expiry)
        bad = days == np.unique(days)[1]
        observed[bad] *= 1.05
    return quotes.with_observed(observed), bad


def apart(found: so.results.Calibration, clean: so.results.Calibration) -> float:
    """Return the largest distance of a shared parameter, in standard errors of the clean quotes."""
    return max(abs(found.parameters[n] - v) / clean.standard_errors[n] for n, v in clean.parameters.items())


def main() -> None:
    """Print the table: the median and the largest distance over panels, and how many converged."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--panels", type=int, default=5)
    asked.add_argument("--format", default="text", choices=["text", "csv", "latex", "markdown"])
    how = asked.parse_args()
    found: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    shares: dict[str, list[float]] = {}
    for seed in range(how.panels):
        quotes = panel_quotes(DAYS, seed=seed, noise=NOISE)
        clean = so.calibrate(quotes, so.Heston(), panel="date", starts=1)
        for case in CASES:
            spoilt, bad = spoil(quotes, case, seed)
            shares.setdefault(case, []).append(float(np.mean(bad)))
            for loss in NAMES:
                end = so.calibrate(spoilt, so.Heston(), panel="date", loss=loss, starts=1)
                found.setdefault((case, loss), []).append((apart(end, clean), end.converged))
    rows: list[tuple[Cell, ...]] = []
    for (case, loss), ends in found.items():
        away = [distance for distance, _ in ends]
        converged = f"{sum(is_converged for _, is_converged in ends)} of {len(ends)}"
        share, middle = float(np.mean(shares[case])), float(np.median(away))
        rows.append((case, number(share, ".0%"), loss, number(middle, ".2g"), number(max(away), ".2g"), converged))
    heads = ("case", "bad quotes", "loss", "median, SE", "largest, SE", "converged")
    print(Table(heads, rows, numbers=(1, 3, 4)).to_text(how.format))


if __name__ == "__main__":
    main()
