"""Models with parameters for every expiry: smiles, surfaces and term structures."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError, UsageError
from strikeout.kernels import black
from strikeout.models.expiries import ladder, settled
from tests.models.books import CASES, CONTRACTS
from tests.raising import raises

SMILES = ["sabr", "normal-sabr", "svi", "raw-svi"]


@pytest.mark.parametrize("name", SMILES)
def test_a_pass_over_smiles_is_the_sum_over_rows(name):
    case = CASES[name]
    weight = np.linspace(0.5, 2.0, len(CONTRACTS))
    observed = case.quotes().observed
    price, jacobian = case.suited.linearize(case.truth, CONTRACTS)
    rows = np.sqrt(weight)[:, None] * np.column_stack([jacobian, observed - price])
    expected = (rows[:, :, None] * rows[:, None, :]).sum(axis=0)
    root = np.sqrt(weight)
    sums = case.suited.accumulate_scaled(
        case.truth, CONTRACTS, root * CONTRACTS.scale, root * (observed - CONTRACTS.intrinsic)
    )
    found = np.zeros_like(expected)
    found[np.triu_indices(len(found))] = sums
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    # A residual is taken from the price less its intrinsic value: 1e-16 of a price of 50 against residuals of 2e-3.
    np.testing.assert_allclose(found, np.triu(expected), rtol=0, atol=1e-11 * scale.max())
    assert (np.abs(found - np.triu(expected)) <= 1e-10 * scale).all()


@pytest.mark.parametrize("name", SMILES)
def test_a_smile_among_others_is_the_smile_alone(name):
    case = CASES[name]
    rows = CONTRACTS.expiry == 1.0
    together = case.suited.price(case.truth, CONTRACTS)[rows]
    width = len(case.model.parameters)
    alone = case.model.price(case.truth[2 * width : 3 * width], CONTRACTS[rows])
    assert (together == alone).all()


@pytest.mark.parametrize("name", SMILES)
def test_an_expiry_without_a_smile_has_no_price(name):
    case = CASES[name]
    other = so.Contracts(forward=100.0, strike=100.0, expiry=[0.5, 0.7], discount=1.0, is_call=True)
    price, jacobian = case.suited.linearize(case.truth, other)
    assert np.isnan(price).tolist() == [False, True]
    assert np.isnan(jacobian[1]).any()


@pytest.mark.parametrize("model", [so.SABR(), so.SVI(), so.SSVI(), so.BlackScholes("quoted")])
def test_one_set_of_parameters_is_not_taken_for_several_expiries(model):
    with raises(UsageError, count=4):
        model.price(model.parameters.starts[0], CONTRACTS)
    with raises(UsageError, count=4):  # nor silently where moments stand for the quotes
        so.calibrate(so.states.moments_of(CASES["svi"].quotes()), model)


def test_moments_know_smiles_whose_expiries_are_named():
    """To what the basis resolves: a thousandth of a standard error here."""
    quotes = CASES["sabr"].quotes()
    named = so.SABR(expiries=(0.1, 0.5, 1.0, 2.0), unit=128.0)
    found, expected = so.calibrate(so.states.moments_of(quotes), named), so.calibrate(quotes, named)
    assert found.converged
    for name, value in found.parameters.items():
        assert abs(value - expected.parameters[name]) <= 1e-3 * expected.standard_errors[name]


def test_a_book_of_one_expiry_has_plain_names():
    quotes = CASES["sabr"].quotes()
    one = quotes[CONTRACTS.expiry == 0.5]
    assert list(so.calibrate(one, so.SABR()).parameters) == ["alpha", "correlation", "vol_of_vol"]
    assert list(so.calibrate(quotes, so.SABR()).parameters)[:2] == ["alpha[0.1]", "correlation[0.1]"]


def test_expiries_that_cannot_be_are_refused():
    for given in ((), (0.0, 1.0), (float("nan"),)):
        with pytest.raises(UsageError, match="years above zero"):
            settled(given, "SABR")
    with pytest.raises(UsageError, match="too close"):
        so.SVI(expiries=(0.5, 0.5 + 1e-9))
    with raises(UsageError, given="monthly"):
        so.SABR(expiries="monthly")  # type: ignore[arg-type]
    assert so.SABR(expiries=[2.0, 1.0, 1.0]).expiries == (1.0, 2.0)  # type: ignore[arg-type]


def test_options_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match=r"beta=1\.5"):
        so.SABR(beta=1.5)
    with raises(UsageError, volatility="black"):
        so.SABR(volatility="black")  # type: ignore[arg-type]
    with raises(UsageError, form="jw"):
        so.SVI("jw")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="border"):
        so.DoubleHeston(border=100.0)
    with raises(ParameterError, parameter="correlation", value=-2.0):
        so.SABR().price({"alpha": 0.2, "correlation": -2.0, "vol_of_vol": 0.3}, CONTRACTS[:1])


def test_total_variance_is_linear_between_knots_and_keeps_its_rate_outside():
    years, T = (0.5, 1.0, 2.0), np.array([0.1, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0])
    rate = np.array([0.04, 0.06, 0.05])
    expected = [0.004, 0.02, 0.04, 0.06, 0.08, 0.10, 0.2]  # 0.02, 0.06 and 0.10 at the knots
    np.testing.assert_allclose(ladder(years, T).total(rate), expected, rtol=1e-15)
    np.testing.assert_allclose(ladder(years, T).by_rate(np.ones(7), 3) @ rate, expected, rtol=1e-15)


def test_flat_black_scholes_is_blacks_formula_to_the_bit():
    price, jacobian = so.BlackScholes().linearize([0.25], CONTRACTS)
    c = CONTRACTS
    assert (price == black.price(c.forward, c.strike, c.expiry, 0.25, c.discount, c.is_call)).all()
    assert (jacobian[:, 0] == black.vega(c.forward, c.strike, c.expiry, 0.25, c.discount)).all()


def test_a_variance_that_falls_is_called_calendar_arbitrage():
    model = so.BlackScholes((0.5, 1.0))
    assert model.arbitrage([0.2, 0.2]) == ()
    assert "0.02 at 0.5 years to 0.01" in model.arbitrage([0.2, 0.1])[0]
    surface = so.SSVI((0.5, 1.0))
    assert surface.arbitrage([-0.5, 1.0, 0.5, 0.04, 0.04]) == ()
    assert "calendar" in surface.arbitrage([-0.5, 1.0, 0.5, 0.04, 0.01])[0]


def test_a_slice_of_the_surface_is_a_natural_smile_is_a_raw_one():
    rho, eta, gamma, variance, T = -0.6, 1.2, 0.4, 0.05, 0.5
    c = CONTRACTS[CONTRACTS.expiry == T]
    theta = variance * T
    phi = eta * theta**-gamma * (1.0 + theta) ** (gamma - 1.0)
    surface = so.SSVI((T,)).price([rho, eta, gamma, variance], c)
    natural = so.SVI("natural", expiries=(T,))
    letters = natural.raw([variance, rho, phi])["[0.5]"]
    raw = so.SVI("raw").price(so.SVI.of_letters(**letters), c)
    np.testing.assert_allclose(natural.price([variance, rho, phi], c), surface, rtol=0, atol=1e-12)
    np.testing.assert_allclose(raw, surface, rtol=0, atol=1e-12)


def test_axel_vogts_smile_has_butterfly_arbitrage_and_with_half_its_slope_it_has_none():
    """Gatheral and Jacquier (2014), example 3.1: (a, b, m, rho, sigma) = (-0.0410, 0.1331, 0.3586, 0.3060, 0.4153)."""
    a, b, m, rho, sigma = -0.0410, 0.1331, 0.3586, 0.3060, 0.4153
    found = so.SVI("raw").arbitrage(so.SVI.of_letters(a, b, rho, m, sigma))
    assert len(found) == 1
    assert "butterfly" in found[0]
    lowest = a + b * sigma * np.sqrt(1.0 - rho * rho)  # of the smile with half the slope, too
    half = so.SVI.of_letters(lowest - 0.5 * b * sigma * np.sqrt(1.0 - rho * rho), 0.5 * b, rho, m, sigma)
    assert so.SVI("raw").arbitrage(half) == ()


def test_wings_steeper_than_lees_bound_are_said():
    found = so.SVI("raw").arbitrage([0.7, 2.25, 0.75, 0.0, 0.5])
    assert any("Lee" in sentence for sentence in found)


def test_smiles_that_cross_are_said():
    found = so.SVI("natural", expiries=(0.5, 1.0)).arbitrage([0.09, -0.5, 3.0, 0.02, -0.5, 3.0])
    assert any("calendar" in sentence for sentence in found)


def test_a_calibration_says_what_arbitrage_it_found():
    steep = so.SSVI((0.5, 1.0))
    c = CONTRACTS[(CONTRACTS.expiry == 0.5) | (CONTRACTS.expiry == 1.0)]
    prices = steep.price([-0.5, 1.0, 0.5, 0.05, 0.02], c)  # total variance 0.025, then 0.02
    quotes = so.Quotes(ids=[f"q{i}" for i in range(len(c))], contracts=c, observed=prices)
    assert any("calendar" in sentence for sentence in so.calibrate(quotes, so.SSVI()).warnings)
    assert any("calendar" in sentence for sentence in so.calibrate(quotes, so.SVI()).warnings)


def test_one_smile_is_held_against_its_own_expiry():
    """theta phi^2 (1 + |rho|) is 0.04 T * 15^2 * 1.5: 13.5 at a year, 1.35 at a tenth."""
    theta, tenth = [0.04, -0.5, 15.0], CONTRACTS[CONTRACTS.expiry == 0.1]
    assert so.SVI("natural").raw(theta, tenth)["[0.1]"]["b"] == pytest.approx(0.5 * 0.004 * 15.0)
    assert so.SVI("natural").raw(theta)["[1]"]["b"] == pytest.approx(0.5 * 0.04 * 15.0)
    assert len(so.SVI("natural").arbitrage(theta, tenth)) <= len(so.SVI("natural").arbitrage(theta))
