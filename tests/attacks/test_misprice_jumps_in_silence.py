"""An attacker wants prices of jump models that are wrong without a word.

The characteristic function of jumps of nearly one size is almost periodic: it falls to exp(-2 n), n the expected number
of jumps, and comes back. A rule that stops where it has fallen leaves out what comes back: up to 1e-3 of the forward.
"""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from tests.kernels.kernel_choice import KERNELS, each_kernel
from tests.models import characteristic_functions as cf
from tests.reference import extended

PROMISED = 1e-10  # of the forward
# Forty expected jumps of -0.4, all but equal. Lewis' integral in 25 digits of mpmath, u from 0 to 210.
THETA, T = (0.5, 0.02, 0.3, -0.5, 0.005, 8.0, -0.4, 0.002), 5.0
VALUES = {-0.5: 0.4179263281313868225, 0.0: 0.7515454180700095762, 0.5: 0.6814339745599406880}


def contracts(k, T):
    strike = np.exp(np.asarray(k, float))
    return so.Contracts(forward=1.0, strike=strike, expiry=T, discount=1.0, is_call=strike > 1.0)


def test_the_reference_itself_gives_the_25_digits():
    found = extended.on_the_line(THETA, T, contracts(list(VALUES), T).log_moneyness)
    np.testing.assert_allclose(found, list(VALUES.values()), rtol=0, atol=1e-15)


@each_kernel
def test_bates_with_jumps_of_one_size_over_years(kernel):
    price = so.Bates(kernel).price(THETA, contracts(list(VALUES), T))
    np.testing.assert_allclose(price, list(VALUES.values()), rtol=0, atol=1e-13)


def of_ones_own() -> so.CharacteristicModel:
    """Bates' model as a user would write it, bounds as those of ``Bates``."""
    return so.CharacteristicModel("bates", so.Bates().parameters, log_cf=cf.bates)


def test_a_characteristic_function_of_ones_own_that_comes_back_is_noticed():
    price = of_ones_own().price(THETA, contracts(list(VALUES), T))
    np.testing.assert_allclose(price, list(VALUES.values()), rtol=0, atol=1e-13)


def test_and_held_against_a_longer_line_by_check_model():
    model = of_ones_own()
    sound = so.check_model(model, points=4)
    assert [finding.promise for finding in sound.findings if finding.promise == "inversion"] == ["inversion"]
    assert "inversion" not in [finding.promise for finding in sound.broken]

    def many_small(z, T, theta):
        """A hundred thousand jumps a year of one size: back only 200 times as far as the rule goes."""
        vol, size = theta
        lam, a = 1e5, 1j * z
        jumps = lam * T * (np.exp(a * size) - 1.0 - a * (np.exp(size) - 1.0))
        return jumps - 0.5 * T * vol**2 * (z * z + a)

    space = so.ParameterSpace(("vol", "size"), np.array([1e-8, 1e-4]), np.array([1e-7, 2e-3]), np.array([[5e-8, 1e-3]]))
    found = so.check_model(so.CharacteristicModel("small jumps", space, log_cf=many_small), points=1)
    broken = {finding.promise: finding.sentence for finding in found.broken}
    assert "comes back" in broken["inversion"]


# --- all over the bounds ---------------------------------------------------------------------------------------------


def drawn(space: so.ParameterSpace, rng: np.random.Generator) -> np.ndarray:
    """A point inside the bounds; what is above zero is drawn by its logarithm."""
    theta, above = rng.uniform(space.lower, space.upper), space.lower > 0.0
    theta[above] = np.exp(rng.uniform(np.log(space.lower[above]), np.log(space.upper[above])))
    return theta


def slice_of(model: so.Model, number: int, seed: int) -> tuple[np.ndarray, so.Contracts]:
    """Parameters, and strikes of one expiry. Every third slice of Bates' is where it was wrong: years, narrow jumps."""
    rng = np.random.default_rng([seed, number])
    theta, T = drawn(model.parameters, rng), float(np.exp(rng.uniform(np.log(1 / 365), np.log(10.0))))
    if number % 3 == 0 and isinstance(model, so.Bates):
        theta[5:] = rng.uniform(1.0, 20.0), rng.uniform(-1.0, 1.0), np.exp(rng.uniform(np.log(1e-3), np.log(0.05)))
        T = float(rng.uniform(2.0, 10.0))
    k = np.r_[0.0, rng.normal(0.0, 0.4, 3) * np.sqrt(T), rng.uniform(-1.0, 1.0, 2)]
    return theta, contracts(np.sort(k), T)


def held_to_the_promise(model: so.Model, slices: range, seed: int) -> tuple[int, int]:
    """How many slices were compared as a whole, and how many lack a price; the others need too long a reference."""
    compared = absent = 0
    for number in slices:
        theta, some = slice_of(model, number, seed)
        price, T = model.price(theta, some), float(some.expiry[0])
        priced = np.flatnonzero(~np.isnan(price))  # of one slice some strikes may be within reach and others not
        absent += len(priced) < len(price)
        if isinstance(model, so.VarianceGamma):
            priced = priced[::3]
            expected = extended.on_the_clock(theta, T, some.log_moneyness[priced].tolist()) if len(priced) else None
        else:
            expected = extended.on_the_line(theta, T, some.log_moneyness[priced]) if len(priced) else None
        if expected is None:
            continue
        compared += not np.isnan(price).any()
        np.testing.assert_allclose(price[priced], expected, rtol=0, atol=PROMISED, err_msg=str((theta.tolist(), T)))
    return compared, absent


MODELS = {"bates": so.Bates, "double-heston": so.DoubleHeston, "variance-gamma": so.VarianceGamma}


@pytest.mark.parametrize(
    ("name", "count", "most"), [("bates", 45, 20), ("double-heston", 20, 4), ("variance-gamma", 5, 3)]
)
def test_every_slice_is_right_or_has_no_price(name, count, most):
    compared, absent = held_to_the_promise(MODELS[name](kernel=KERNELS[0]), range(count), seed=1)
    assert absent <= most
    assert compared >= 0.9 * (count - absent)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("name", MODELS)
def test_two_thousand_slices_of_every_model_are_right_or_have_no_price(name, part):
    compared, absent = held_to_the_promise(MODELS[name](kernel=KERNELS[0]), range(250 * part, 250 * (part + 1)), seed=2)
    assert compared >= 0.9 * (250 - absent)
    assert compared > 100
