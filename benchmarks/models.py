"""Calibrations of the characteristic-function models on real days, beside Heston's on the same quotes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import strikeout as so
from benchmarks import chains
from benchmarks.rows import Result, Row

DAYS = ("SPX 2020-09-04", "SPX 2022-06-10", "SPX 2023-06-09")
MOST = 10.0  # times Heston's time
MODELS: dict[str, Callable[[], Any]] = {
    "Bates": so.Bates,
    "DoubleHeston": so.DoubleHeston,
    "VarianceGamma": so.VarianceGamma,
}


def merton() -> so.CharacteristicModel:
    """A user's own model: Merton's jumps from their characteristic function alone, derivatives by dual numbers."""

    def log_cf(z: Any, T: float, theta: Any) -> Any:
        vol, intensity, mean, deviation = theta
        drift = np.exp(mean + 0.5 * deviation**2) - 1.0
        jumps = np.exp(1j * z * mean - 0.5 * deviation**2 * z * z) - 1.0 - 1j * z * drift
        return T * (intensity * jumps - 0.5 * vol**2 * (z * z + 1j * z))

    space = so.ParameterSpace(
        ("vol", "intensity", "mean", "deviation"),
        np.array([0.02, 0.01, -1.0, 0.02]),
        np.array([1.0, 10.0, 0.5, 1.0]),
        np.array([[0.15, 0.5, -0.1, 0.15], [0.1, 1.0, -0.15, 0.1]]),
    )
    return so.CharacteristicModel("merton", space, log_cf=log_cf)


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """One task per day and model: Heston must take at least a tenth of the model's time."""
    rows: list[Row] = []
    facts: dict[str, float | str] = {}
    for name in DAYS[:1] if is_quick else DAYS:
        try:
            quotes = chains.day(name)
        except FileNotFoundError:
            rows.append(
                Row(name, "strikeout", note="the reference chains are not installed beside the repository: skipped")
            )
            continue
        if is_quick:
            quotes = quotes.only(quotes.ids[::40].tolist())
        facts[f"quotes, {name}"] = float(len(quotes))
        rounds = 1 if is_quick else 3
        heston, _ = _taken(so.Heston(), quotes, rounds)
        for model, make in {**MODELS, "CharacteristicModel": merton}.items():
            taken, found = _taken(make(), quotes, rounds)
            task, required = f"{model}, {name}", None if is_quick else 1.0 / MOST
            rows.append(
                Row(task, "strikeout", taken, 1.0, note=f"RMSE {found.rmse:.3g}, {found.termination.name.lower()}")
            )
            rows.append(Row(task, "Heston", heston, heston / taken, required, note=f"at most {MOST:g} times its time"))
    return Result("models", is_quick, tuple(rows), facts)


def _taken(model: Any, quotes: so.Quotes, rounds: int) -> tuple[float, so.results.Calibration]:
    """Return the fewest seconds of the processor that a calibration took, and the calibration."""
    best = float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            begun = time.process_time()
            found = so.calibrate(quotes, model)
            best = min(best, time.process_time() - begun)
    return best, found
