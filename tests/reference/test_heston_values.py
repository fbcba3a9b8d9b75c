"""Published and certified Heston numbers, reproduced by both kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strikeout.kernels import black
from strikeout.models.heston import Heston
from strikeout.paper.heston import Heston as PaperHeston
from strikeout.quotes.contracts import Contracts
from tests.kernels.kernel_choice import each_kernel

Data = Callable[[str], Path]
NAMES = ("kappa", "theta", "sigma", "rho", "v0")  # as the files write them, in our order


def read(shared_data: Data, name: str) -> Any:
    return json.loads(shared_data(f"reference/{name}.json").read_text())


def contracts_of(rows: list[dict[str, Any]]) -> Contracts:
    spot, strike, t, rate, dividend = (
        np.array([float(row[name]) for row in rows]) for name in ("spot", "strike", "t_years", "rate", "dividend")
    )
    is_call = [row.get("cp_flag", "C") == "C" for row in rows]
    forward = spot * np.exp((rate - dividend) * t)
    return Contracts(forward=forward, strike=strike, expiry=t, discount=np.exp(-rate * t), is_call=is_call)


def parameters_of(row: dict[str, Any]) -> list[float]:
    return [float(row[name]) for name in NAMES]


def corners(shared_data: Data) -> list[tuple[str, list[float], Contracts, np.ndarray, np.ndarray]]:
    found = []
    for case in read(shared_data, "heston_corners")["slices"]:
        k = np.array([row["log_moneyness"] for row in case["rows"]], float)
        contracts = Contracts(forward=1.0, strike=np.exp(k), expiry=case["expiry"], discount=1.0, is_call=True)
        price = np.array([float(row["price"]) for row in case["rows"]])
        gradient = np.array([[float(x) for x in row["gradient"]] for row in case["rows"]])
        found.append((f"{case['name']} T={case['expiry']:.4g}", case["theta"], contracts, price, gradient))
    return found


# ln(exp(k)) is k to an ulp, and a price moves by less than that; no allowance is made for it.
@each_kernel
def test_prices_at_the_corners_are_right_to_1e_11_of_the_forward(kernel, shared_data):
    """60 slices of 13 strikes, T from a day to ten years, 45 digits. Worst measured: 5.1e-13."""
    off = {
        name: np.abs(Heston(kernel).price(theta, contracts) - price).max()
        for name, theta, contracts, price, _ in corners(shared_data)
    }
    assert {name: worst for name, worst in off.items() if not worst <= 1e-11} == {}


@each_kernel
def test_sensitivities_at_the_corners_are_right_to_1e_9_of_the_forward(kernel, shared_data):
    """The largest of these derivatives is about 2. Worst measured: 6.7e-11."""
    off = {
        name: np.abs(Heston(kernel).linearize(theta, contracts)[1] - gradient).max()
        for name, theta, contracts, _, gradient in corners(shared_data)
    }
    assert {name: worst for name, worst in off.items() if not worst <= 1e-9} == {}


def test_the_corners_would_show_a_wrong_price(shared_data):
    """The paper's small mesh, one of its published schemes, is found out in most corners."""
    scheme = PaperHeston(U_max=50.0, N_u=180)
    off = [
        np.abs(scheme.price(theta, contracts) - price).max() for _, theta, contracts, price, _ in corners(shared_data)
    ]
    assert np.mean(np.array(off) > 1e-11) > 0.5


@each_kernel
def test_published_prices_are_reproduced_to_the_accuracy_asked_of_them(kernel, shared_data):
    """Against `computed` (ball arithmetic): several published figures are wrong in their last digits."""
    cases = [row for row in read(shared_data, "heston_prices") if row.get("model", "heston") == "heston"]
    assert len(cases) > 20
    off = {}
    for row in cases:
        found = Heston(kernel).price(parameters_of(row), contracts_of([row]))[0]
        error = abs(found - float(row["computed"]))
        # The suggested tolerance is relative to the price, our promise to the forward; we take the wider of it and
        # 1e-13 of the forward, a hundredth of the promise. Worst measured: 5.1e-14.
        allowed = max(float(row["suggested_abs_tolerance_against_computed"]), 1e-13 * contracts_of([row]).scale[0])
        if not error <= allowed:
            off[row["id"]] = (error, allowed)
    assert off == {}


@each_kernel
def test_certified_sensitivities_are_reproduced(kernel, shared_data):
    rows = read(shared_data, "heston_gradients")
    assert rows
    for row in rows:
        contracts = contracts_of([row])
        price, jacobian = Heston(kernel).linearize(parameters_of(row), contracts)
        expected = [float(row[f"d_{name}"]) for name in NAMES]
        assert price[0] == pytest.approx(float(row["price"]), rel=0, abs=1e-11 * contracts.scale[0]), row["id"]
        # 1e-9 of the forward is the promise; ordinary parameters keep it a hundred times over.
        np.testing.assert_allclose(jacobian[0], expected, rtol=0, atol=1e-11 * contracts.scale[0], err_msg=row["id"])


@each_kernel
def test_the_calibration_case_of_cui_and_others_has_their_prices_and_sensitivities(kernel, shared_data):
    case = read(shared_data, "cui_2017_case")
    market = {name: case[name] for name in ("spot", "rate", "dividend")}
    contracts = contracts_of([{**market, **row} for row in case["quotes"]])
    price, jacobian = Heston(kernel).linearize(parameters_of(case["true_parameters"]), contracts)
    assert len(contracts) == 40
    # The file's t_years are rounded to 15 digits: 1e-15 in T moves a price by no more.
    np.testing.assert_allclose(price, [float(row["price"]) for row in case["quotes"]], rtol=0, atol=1e-13)
    expected = [[float(row[f"d_{name}"]) for name in NAMES] for row in case["quotes"]]
    np.testing.assert_allclose(jacobian, expected, rtol=0, atol=1e-10)  # worst measured: 9.5e-12


@each_kernel
def test_implied_volatilities_of_heston_prices_are_those_of_the_reference(kernel, shared_data):
    case = read(shared_data, "implied_vol")["heston_implied_vols"]
    spot = {"spot": case["forward"], "rate": 0.0, "dividend": 0.0}
    contracts = contracts_of([{**spot, **row} for row in case["rows"]])
    price = Heston(kernel).price(parameters_of(case), contracts)
    expected = np.array([float(row["price"]) for row in case["rows"]])
    np.testing.assert_allclose(price, expected, rtol=0, atol=1e-11 * 100)
    # An error of 1e-11 of the forward is one of 1e-11 / vega in volatility, so only where there is a vega to speak of.
    vol = np.array([float(row["computed"]) for row in case["rows"]])
    c = contracts
    vega = black.vega(c.forward, c.strike, c.expiry, vol, c.discount)
    seen = vega > 1e-4 * c.forward
    assert seen.sum() >= 10
    found = black.implied_volatility(
        price[seen], *(x[seen] for x in (c.forward, c.strike, c.expiry, c.discount, c.is_call))
    )
    assert np.all(np.abs(found - vol[seen]) <= 1e-11 * 100 / vega[seen])
