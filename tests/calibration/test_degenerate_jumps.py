"""Fitted jumps that are not what jumps are for are named in the warnings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import strikeout as so
from strikeout.calibration.warnings import degenerate_jumps
from strikeout.synthetic import random_quotes

QUOTES = random_quotes(60, maturities=4, seed=1)
ORDINARY = {
    "mean_reversion": 2.0, "long_variance": 0.05, "vol_of_vol": 0.5, "correlation": -0.5, "initial_variance": 0.05,
    "jump_intensity": 0.5, "jump_mean": -0.1, "jump_deviation": 0.15,
}  # fmt: skip


def warned(**changed: float) -> list[str]:
    return degenerate_jumps(SimpleNamespace(parameters={**ORDINARY, **changed}, quotes=QUOTES))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        {"jump_intensity": 0.002},
        {"jump_intensity": 20.0, "jump_mean": 0.0155, "jump_deviation": 0.001},  # where Bates ends on a real day
        {"jump_mean": 0.001, "jump_deviation": 0.002},
    ],
    ids=["rare", "of one size", "smaller than a day's move"],
)
def test_degenerate_jumps_are_named(changed):
    assert len(warned(**changed)) == 1
    assert warned() == []


def test_the_warning_is_among_those_of_a_calibration():
    fixed = {**ORDINARY, "jump_intensity": 0.002}
    del fixed["initial_variance"], fixed["long_variance"]
    found = so.calibrate(QUOTES, so.Bates(), fixed=fixed)
    assert set(degenerate_jumps(found)) <= set(found.warnings)
    assert len(degenerate_jumps(found)) == 1
    assert degenerate_jumps(so.calibrate(QUOTES, so.Heston())) == []
