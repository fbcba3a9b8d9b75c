"""How often the regimes of synthetic panels are found, and how often two are found in panels with one. No timing."""

from __future__ import annotations

import numpy as np

import strikeout as so
from benchmarks.rows import Result
from strikeout.calibration.regime_path import RegimePath
from strikeout.quotes.quotes import Quotes

DAYS = 60
KINDS = (((0.3, 0.6), 0.0), ((0.3, 0.6), 0.1), ((0.3, 0.4), 0.1), ((0.3, 0.3), 0.1))  # vol_of_vol, daily error


def missed(found: RegimePath, quotes: Quotes) -> int:
    """Return how many dates are in another regime than the true one."""
    truth = dict(zip(quotes.labels["date"].tolist(), quotes.labels["regime"].tolist(), strict=True))
    return sum(truth[date] != regime for date, regime in found.regimes.items())


def run(*, is_quick: bool, is_full: bool) -> Result:
    """Look for two regimes in panels with two and in panels with one; 20 of each, 3 in quick mode, 100 in full."""
    panels = 3 if is_quick else 100 if is_full else 20
    facts: dict[str, float | str] = {"panels of each kind": panels, "days": DAYS, "quotes per day": 15}
    for values, daily in KINDS:
        truth = " and ".join(f"{value:g}" for value in sorted(set(values)))
        facts[f"vol_of_vol {truth}, daily error {100 * daily:g} %"] = _found(panels, values, daily)
    return Result("regimes", is_quick, (), facts)


def _found(panels: int, values: tuple[float, float], daily: float) -> str:
    wrong, chosen, estimates, ratios = [], 0, [], []
    for seed in range(panels):
        quotes = so.synthetic.regime_quotes(DAYS, seed=seed, values=values, daily=daily)
        panel = so.calibrate(quotes, so.Heston(), panel="date", starts=1)
        one, found = panel.regimes(count=1), panel.regimes()
        if not found.converged:
            raise RuntimeError(f"the regimes of seed {seed} did not converge: {values}, {daily}")
        wrong.append(missed(found, quotes))
        chosen += found.bic < one.bic
        estimates.append([each["vol_of_vol"] for each in found.parameters])
        ratios.append(found.noise / found.noise_within)
    low, top = np.mean(estimates, axis=0)
    right = f"all dates right in {wrong.count(0)}, {100.0 * np.mean(wrong) / DAYS:.2g} % of dates wrong; "
    return (
        (right if values[0] != values[1] else "")
        + f"BIC prefers two in {chosen}; mean estimates {low:.3f} and {top:.3f}; "
        + f"dates disagree {np.sqrt(np.mean(ratios)):.3g} times as much as independent quotes"
    )
