"""The peers are right, to the accuracy we print beside their speed: a wrong opponent is no opponent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import jax_peer, numpy_peer, paper_peer, scipy_peer
from strikeout.paper import heston as paper_scheme
from strikeout.quotes.contracts import Contracts

pytest.importorskip("scipy", reason="the NumPy peer takes its normal distribution from SciPy")

TRUTH = np.array([2.0, 0.06, 0.30, -0.6, 0.06])
START = np.array([1.0, 0.04, 0.20, -0.3, 0.04])
PRICES = Path(__file__).parents[3] / "shared" / "data" / "reference" / "heston_prices.json"


def book(count: int, maturities: int, seed: int = 3) -> Contracts:
    rng = np.random.default_rng(seed)
    expiry = (30 + rng.permutation(np.arange(count) % maturities)) / 252
    return Contracts(
        forward=100 * np.exp(0.05 * rng.standard_normal(count)),
        strike=rng.uniform(80, 120, count),
        expiry=expiry,
        discount=np.exp(-0.01 * expiry),
        is_call=rng.random(count) < 0.5,
    )


def exact(theta: np.ndarray, contracts: Contracts) -> tuple[np.ndarray, np.ndarray]:
    return paper_scheme.linearize(
        theta,
        contracts.forward,
        contracts.strike,
        contracts.expiry,
        contracts.discount,
        contracts.is_call,
        u_max=200.0,
        nodes=1600,
        step=1e-4,
    )


@pytest.mark.parametrize("theta", [TRUTH, START], ids=["truth", "start"])
@pytest.mark.parametrize(("count", "maturities"), [(60, 3), (60, 60), (60, 40), (1, 1)])
def test_the_numpy_peer_prices_and_differentiates_rightly(theta: np.ndarray, count: int, maturities: int):
    contracts = book(count, maturities)
    prices, jacobian = numpy_peer.linearize(theta, numpy_peer.prepare(contracts))
    expected, gradient = exact(theta, contracts)
    # A mesh of 48 nodes is converged here: what is left is rounding on forwards of about 100.
    np.testing.assert_allclose(prices, expected, rtol=0, atol=1e-11)
    # The yardstick's central differences err by the square of their step, 1e-8, on forwards of about 100.
    np.testing.assert_allclose(jacobian, gradient, rtol=0, atol=2e-6)


def test_more_expiries_than_a_block_and_more_rows_than_a_group_change_nothing():
    many = book(3 * numpy_peer.EXPIRIES_A_BLOCK, 3 * numpy_peer.EXPIRIES_A_BLOCK)
    tall = book(numpy_peer.ROWS_A_GROUP + 5, 1)
    for contracts in (many, tall):
        picked = np.array([0, 1, len(contracts) // 2, len(contracts) - 1])
        whole = numpy_peer.price(TRUTH, numpy_peer.prepare(contracts))
        part = numpy_peer.price(TRUTH, numpy_peer.prepare(contracts[picked]))
        np.testing.assert_allclose(whole[picked], part, rtol=0, atol=1e-11)


@pytest.mark.parametrize("maturities", [3, 60])
def test_the_numpy_peer_s_pass_is_the_sum_over_its_rows(maturities: int):
    contracts = book(60, maturities)
    rng = np.random.default_rng(5)
    observed, weight = rng.uniform(0, 20, 60), rng.uniform(0.5, 2, 60)
    prices, jacobian = numpy_peer.linearize(TRUTH, numpy_peer.prepare(contracts))
    rows = np.column_stack([observed - prices, jacobian])
    sums = numpy_peer.accumulate(TRUTH, numpy_peer.prepare(contracts, observed, weight))
    np.testing.assert_allclose(sums, (rows * weight[:, None]).T @ rows, rtol=0, atol=60 * 1e-14 * np.abs(sums).max())


def test_the_paper_s_loop_sums_the_same_normal_equations():
    contracts = book(6, 3)
    observed = np.linspace(1, 10, 6)
    ours = numpy_peer.accumulate(TRUTH, numpy_peer.prepare(contracts, observed))
    loop = paper_peer.accumulate(TRUTH, contracts, observed)
    # Central differences of relative step 1e-4 on one side, analytic derivatives on the other.
    np.testing.assert_allclose(loop, ours, rtol=0, atol=1e-7 * np.abs(ours).max())


def test_the_numpy_peer_reproduces_published_prices():
    if not PRICES.exists():
        pytest.skip(f"the reference prices are not here: {PRICES}")
    lewis = [row for row in json.loads(PRICES.read_text()) if row["id"].startswith("lewis_T1")]
    assert lewis
    for row in lewis:
        contract, theta = _reference(row)
        found = numpy_peer.price(theta, numpy_peer.prepare(contract))[0]
        # vol_of_vol = 1 is far from ordinary: the fixed mesh is off by up to 1e-6 of the forward.
        assert abs(found - float(row["computed"])) < 1e-6 * contract.forward[0]


@pytest.mark.parametrize("method", scipy_peer.METHODS)
def test_scipy_over_the_numpy_peer_finds_the_truth_in_a_book_without_noise(method: str):
    contracts = book(60, 3)
    observed = numpy_peer.price(TRUTH, numpy_peer.prepare(contracts))
    fit = scipy_peer.calibrate(contracts, observed, START, method=method)
    assert fit.says_converged
    np.testing.assert_allclose(fit.theta, TRUTH, rtol=1e-5)


def test_quantlib_finds_the_truth_in_a_book_without_noise():
    pytest.importorskip("QuantLib", reason="QuantLib is not installed")
    from benchmarks.peers import quantlib_peer

    contracts = book(30, 3)
    observed = numpy_peer.price(TRUTH, numpy_peer.prepare(contracts))
    helpers = quantlib_peer.prepare(contracts, observed)
    # Its finite differences and its own stopping rule leave four to five digits.
    np.testing.assert_allclose(quantlib_peer.calibrate(helpers, START), TRUTH, rtol=1e-3)


def test_quantlib_prices_the_same_book():
    pytest.importorskip("QuantLib", reason="QuantLib is not installed")
    from benchmarks.peers import quantlib_peer

    contracts = book(30, 3)
    observed = numpy_peer.price(TRUTH, numpy_peer.prepare(contracts))
    helpers = quantlib_peer.prepare(contracts, observed)
    kept = contracts[helpers.rows]
    value = observed[helpers.rows] - kept.intrinsic
    found = quantlib_peer.price(TRUTH, helpers) * kept.scale / quantlib_peer.SPOT
    np.testing.assert_allclose(found, value, rtol=0, atol=1e-9)


def test_quantlib_refuses_an_expiry_between_two_days():
    pytest.importorskip("QuantLib", reason="QuantLib is not installed")
    from benchmarks.peers import quantlib_peer

    between = Contracts(forward=100.0, strike=100.0, expiry=30.5 / 252, discount=1.0, is_call=True)
    with pytest.raises(ValueError, match="falls between"):
        quantlib_peer.prepare(between, np.array([3.0]))


def test_the_jax_peer_s_formula_prices_the_same_book():
    # With NumPy as the array module; what JAX adds is compilation and derivatives.
    prepared = numpy_peer.prepare(book(60, 3))
    found = np.empty(60)
    found[prepared.order] = jax_peer.prices(np, TRUTH, prepared)
    np.testing.assert_allclose(found, numpy_peer.price(TRUTH, prepared), rtol=0, atol=1e-11)


def _reference(row: dict[str, Any]) -> tuple[Contracts, np.ndarray]:
    years, rate, dividend = (float(row[name]) for name in ("t_years", "rate", "dividend"))
    contract = Contracts(
        forward=float(row["spot"]) * np.exp((rate - dividend) * years),
        strike=float(row["strike"]),
        expiry=years,
        discount=np.exp(-rate * years),
        is_call=row["cp_flag"] == "C",
    )
    return contract, np.array([float(row[name]) for name in ("kappa", "theta", "sigma", "rho", "v0")])
