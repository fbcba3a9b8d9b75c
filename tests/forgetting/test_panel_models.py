"""Panels of other models than Heston: Bates', whose variance moves from day to day, and a function of one's own."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from tests.raising import raises

# The start of the search too: this is about panels, not about finding Bates' parameters from afar.
TRUTH = {
    "mean_reversion": 2.0,
    "long_variance": 0.06,
    "vol_of_vol": 0.3,
    "correlation": -0.6,
    "jump_intensity": 0.8,
    "jump_mean": -0.15,
    "jump_deviation": 0.12,
}


@pytest.fixture(scope="module")
def quotes():
    """Four days of Bates' prices on the contracts and at the variances of a Heston panel."""
    book, prices = so.synthetic.panel_quotes(4, seed=2), np.empty(60)
    for day in range(4):
        rows = np.flatnonzero(book.labels["day"] == day)
        theta = {**TRUTH, "initial_variance": book.labels["variance"][rows[0]]}
        prices[rows] = so.Bates().price(theta, book.contracts[rows])
    return book.with_observed(prices + 1e-6 * np.random.default_rng(0).standard_normal(60))


def calibrated(quotes):
    start = {**TRUTH, "mean_reversion": 2.2, "jump_intensity": 0.7, "initial_variance": 0.05}
    return so.calibrate(quotes, so.Bates(), panel="date", starts=start)


def test_a_day_is_forgotten_from_a_panel_of_bates_to_the_bit_and_the_certificate_holds(quotes):
    panel = calibrated(quotes)
    assert panel.converged
    for name, value in TRUTH.items():
        assert abs(panel.parameters[name] - value) <= 4.0 * panel.standard_errors[name]
    done = so.forget(panel, where="day = 2")
    rest = quotes[quotes.labels["day"] != 2]
    fresh = calibrated(rest)
    assert done.calibration.to_dict() == fresh.to_dict()
    assert done.calibration.state.digest() == fresh.state.digest()
    assert so.verify(done.certificate, rest).holds
    assert not so.verify(done.certificate, quotes).holds
    step, rebuilt = (so.forget(panel, where="day = 2", operator=name) for name in ("downdate", "restep"))
    assert step.parameters == rebuilt.parameters
    assert step.latent == rebuilt.latent


def test_a_model_that_does_not_say_what_changes_from_day_to_day_has_no_panel(quotes):
    with raises(so.errors.StrikeoutError, model="variance-gamma/native-contours-1-clock-3"):
        so.calibrate(quotes, so.VarianceGamma(), panel="date")


@pytest.mark.parametrize("ranges", [None, {"x": (0.0, 3.0)}])
def test_a_group_is_forgotten_from_a_panel_of_a_function_of_ones_own(ranges):
    """Six decays of one rate, each from its own level."""
    rng = np.random.default_rng(0)
    lab, x = np.repeat(np.arange(6), 12), rng.uniform(0.0, 3.0, 72)
    level = np.array([1.0, 1.5, 2.0, 2.5, 3.0, 0.7])[lab]
    y = level * np.exp(-0.7 * x) + 0.2 * x + 1e-3 * rng.standard_normal(72)
    quotes = so.Quotes.from_columns(ids=[f"q{i}" for i in range(72)], observed=y, labels={"lab": lab}, x=x)
    model = so.custom_model(
        "decay",
        parameters={"level": 1.0, "rate": 1.0, "drift": 0.1},
        price=lambda level, rate, drift, x: level * np.exp(-rate * x) + drift * x,
        latent="level",
        ranges=ranges,
    )
    panel = so.calibrate(quotes, model, panel="lab")
    done = so.forget(panel, where="lab = 3")
    rest = quotes[lab != 3]
    fresh = so.calibrate(rest, model, panel="lab")
    assert done.dropped == (3,)
    assert done.calibration.to_dict() == fresh.to_dict()
    assert done.calibration.state.digest() == fresh.state.digest()
    assert so.verify(done.certificate, rest, model=model).holds
    assert not so.verify(done.certificate, quotes, model=model).holds
    quick = so.forget(panel, where="lab = 3", tolerance=0.1)
    assert quick.operator == "downdate"
    assert quick.parameters == pytest.approx(fresh.parameters, rel=1e-6)
    assert set(so.influence(panel, "lab")["lab"].tolist()) == set(range(6))
