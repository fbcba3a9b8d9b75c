"""Calibration and verification ask the same of a parameter before they call it determined."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import strikeout as so
from tests.assurance.linear_model import Linear, book


@pytest.mark.parametrize("reach", [1e4, inf])
def test_a_parameter_of_either_sign_that_is_near_zero_is_certified_and_verified(reach):
    """Its standard error is far above its value, and above its start: small beside the room it has."""
    rng = np.random.default_rng(4)
    features = rng.normal(size=(40, 2)) * [1.0, 1e-3]
    model = Linear(features, reach=reach)
    quotes = book(features @ [3.0, 0.1] + 0.05 * rng.normal(size=40))
    found = so.calibrate(quotes, model)
    assert found.converged
    assert found.standard_errors["b1"] > 1.0
    done = so.forget(found, ids=["r0", "r1"])
    verdict = so.verify(done.certificate, quotes.without(["r0", "r1"]), model=model)
    assert "OPTIMUM" in done.certificate.claims
    assert verdict.holds, verdict.summary()


@pytest.mark.parametrize("asked", [None, {"correlation": (0.0, 0.999)}], ids=["as it is", "bounded"])
def test_bounds_that_were_asked_for_do_not_make_a_correlation_better_known(asked):
    theta = {"mean_reversion": 3.0, "long_variance": 0.06, "vol_of_vol": 0.5, "correlation": 0.9,
             "initial_variance": 0.03}  # fmt: skip
    known = {name: theta[name] for name in ("mean_reversion", "long_variance", "vol_of_vol")}
    quotes = so.synthetic.random_quotes(40, maturities=3, seed=16, theta=theta, noise=0.6)
    found = so.calibrate(quotes, so.Heston(), fixed=known, bounds=asked)
    rho, error = found.parameters["correlation"], found.standard_errors["correlation"]
    assert 1.0 - rho**2 < error < rho
    assert found.unidentified == ("correlation",)


def test_bounds_that_were_asked_for_do_not_make_a_correlation_next_to_one_less_known():
    theta = {"mean_reversion": 3.0, "long_variance": 0.06, "vol_of_vol": 0.5, "correlation": -0.02,
             "initial_variance": 0.03}  # fmt: skip
    quotes = so.synthetic.random_quotes(400, maturities=5, seed=8, theta=theta, noise=0.3)
    found = so.calibrate(quotes, so.Heston(), bounds={"correlation": (-0.9, 0.0)})
    assert 0.0 < -2.0 * found.parameters["correlation"] < found.standard_errors["correlation"] < 0.05
    assert found.converged
