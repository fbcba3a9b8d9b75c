"""A model nobody has thought of here, from its characteristic function: under 60 lines, and everything works."""

from __future__ import annotations

import inspect

import numpy as np

import strikeout as so


# --- the model --------------------------------------------------------------------------------
def normal_inverse_gaussian(z, T, theta):
    """Barndorff-Nielsen (1997): Brownian motion on an inverse Gaussian clock; steepness, asymmetry, size a year."""
    steepness, asymmetry, size = theta
    a = 1j * z
    still = np.sqrt(steepness**2 - asymmetry**2)
    moved = np.sqrt(steepness**2 - (asymmetry + a) ** 2)
    once = np.sqrt(steepness**2 - (asymmetry + 1.0) ** 2)
    each = still - moved - a * (still - once)  # the last term keeps E[S_T] at the forward
    by_steepness = steepness * (1.0 / still - 1.0 / moved - a * (1.0 / still - 1.0 / once))
    by_asymmetry = -asymmetry / still + (asymmetry + a) / moved - a * (-asymmetry / still + (asymmetry + 1.0) / once)
    return size * T * each, (size * T * by_steepness, size * T * by_asymmetry, T * each)


SPACE = so.ParameterSpace(
    names=("steepness", "asymmetry", "size"),
    lower=np.array([6.0, -5.0, 0.01]),
    upper=np.array([60.0, 4.0, 3.0]),
    starts=np.array([[15.0, -3.0, 0.4], [25.0, -1.0, 0.8]]),
)
MODEL = so.CharacteristicModel("normal-inverse-gaussian", SPACE, log_cf=normal_inverse_gaussian)
# --- that is all --------------------------------------------------------------------------------

TRUTH = (12.0, -4.0, 0.3)
YEARS, STRIKES = (0.25, 0.5, 1.0), (70.0, 80.0, 90.0, 95.0, 100.0, 105.0, 110.0, 120.0)
CONTRACTS = so.Contracts(
    forward=100.0,
    strike=np.tile(STRIKES, 3),
    expiry=np.repeat(YEARS, 8),
    discount=0.98,
    is_call=np.tile([True, False], 12),
)


def quotes() -> so.Quotes:
    prices = MODEL.price(TRUTH, CONTRACTS)
    noise = 1e-3 * np.random.default_rng(7).standard_normal(len(prices))
    return so.Quotes(ids=[f"q{i}" for i in range(24)], contracts=CONTRACTS, observed=prices + noise)


def test_it_is_under_60_lines():
    lines = inspect.getsource(inspect.getmodule(quotes)).splitlines()
    begin, end = (next(i for i, line in enumerate(lines) if mark in line) for mark in ("# --- the", "# --- that"))
    assert 0 < end - begin - 1 < 60


def test_it_keeps_every_promise():
    found = so.check_model(MODEL, CONTRACTS)
    assert found.holds, found.summary()


def test_it_calibrates_and_forgets_to_the_bit_with_a_certificate():
    book, gone = quotes(), ["q2", "q9", "q23"]
    calibration = so.calibrate(book, MODEL)
    assert calibration.converged
    for (name, found), truth in zip(calibration.parameters.items(), TRUTH, strict=True):
        assert abs(found - truth) <= 4.0 * calibration.standard_errors[name]
    done = so.forget(calibration, ids=gone)
    fresh = so.calibrate(book.without(gone), MODEL)
    assert done.parameters == fresh.parameters
    assert done.calibration.state.digest() == fresh.state.digest()
    assert so.verify(done.certificate, book.without(gone), model=MODEL).holds
    assert so.restore(done).parameters == calibration.parameters
