"""Heston is a Model: parameters by name or in order, a name that tells kernels apart, errors that say what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.errors import ParameterError, UsageError
from strikeout.kernels import compiled
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts
from tests.kernels.kernel_choice import each_kernel
from tests.raising import raises

TRUTH = {
    "mean_reversion": 2.0,
    "long_variance": 0.06,
    "vol_of_vol": 0.30,
    "correlation": -0.6,
    "initial_variance": 0.06,
}
BOOK = Contracts(
    forward=100.0,
    strike=[80.0, 95.0, 100.0, 105.0, 120.0],
    expiry=[0.12, 0.12, 0.24, 0.24, 0.36],
    discount=0.99,
    is_call=[True, False, True, False, True],
)


def test_it_is_a_model():
    assert isinstance(Heston(), Model)


@each_kernel
def test_parameters_by_name_and_in_order_give_the_same_bits(kernel):
    vector = [TRUTH[name] for name in Heston().parameters.names]
    backwards = dict(reversed(TRUTH.items()))
    expected = Heston(kernel).price(vector, BOOK).tobytes()
    assert Heston(kernel).price(TRUTH, BOOK).tobytes() == expected
    assert Heston(kernel).price(backwards, BOOK).tobytes() == expected


@each_kernel
def test_price_and_linearize_give_the_same_prices(kernel):
    assert Heston(kernel).price(TRUTH, BOOK).tobytes() == Heston(kernel).linearize(TRUTH, BOOK)[0].tobytes()


@each_kernel
def test_prices_scale_with_the_currency(kernel):
    """The same book in a currency of eight to one: powers of two change no bit."""
    other = Contracts(
        forward=8.0 * BOOK.forward,
        strike=8.0 * BOOK.strike,
        expiry=BOOK.expiry,
        discount=BOOK.discount,
        is_call=BOOK.is_call,
    )
    assert (8.0 * Heston(kernel).price(TRUTH, BOOK)).tobytes() == Heston(kernel).price(TRUTH, other).tobytes()


def test_the_name_tells_apart_what_could_move_a_bit():
    names = {Heston("numpy", expiries).name for expiries in ("shared", "scattered")}
    if compiled.native() is not None:
        names |= {Heston("native", expiries).name for expiries in ("shared", "scattered")}
        assert len(names) == 4
    assert len(names) >= 2


@pytest.mark.parametrize(
    ("name", "value", "need"),
    [
        ("mean_reversion", 0.0, "above 0"),
        ("mean_reversion", -1.0, "above 0"),
        ("long_variance", 0.0, "above 0"),
        ("vol_of_vol", 1e-4, "at least 0.001"),
        ("correlation", 1.0, "between -1 and 1"),
        ("correlation", -1.5, "between -1 and 1"),
        ("initial_variance", -0.01, "above 0"),
        ("mean_reversion", np.nan, "finite"),
        ("initial_variance", np.inf, "finite"),
    ],
)
@pytest.mark.parametrize("ask", [Heston.price, Heston.linearize], ids=["price", "linearize"])
def test_a_parameter_outside_the_domain_is_refused_by_name(ask, name, value, need):
    with raises(ParameterError, parameter=name) as caught:
        ask(Heston("numpy"), {**TRUTH, name: value}, BOOK)
    assert need in caught.value.sentence


def test_a_missing_and_an_unknown_name_are_both_told():
    wrong = {**TRUTH, "kappa": 2.0}
    del wrong["mean_reversion"]
    with pytest.raises(ParameterError) as caught:
        Heston("numpy").price(wrong, BOOK)
    assert caught.value.missing == ["mean_reversion"]
    assert caught.value.unknown == ["kappa"]


@pytest.mark.parametrize("wrong", [[2.0, 0.06, 0.3, -0.6], np.ones((5, 1)), 2.0], ids=["four", "a column", "one"])
def test_a_vector_of_the_wrong_shape_is_refused(wrong):
    with raises(ParameterError):
        Heston("numpy").price(wrong, BOOK)


def test_strikes_that_are_no_numbers_cannot_get_in():
    for strike in (np.nan, np.inf, 0.0, -1.0):
        with raises(UsageError, column="strike", row=0):
            Contracts(forward=100.0, strike=strike, expiry=1.0, discount=1.0, is_call=True)


@pytest.mark.parametrize("wrong", [{"kernel": "fortran"}, {"expiries": "monthly"}])
def test_an_unknown_kernel_or_layout_is_refused(wrong):
    with pytest.raises(UsageError, match="unknown"):
        Heston(**wrong)


@each_kernel
def test_an_option_95_standard_deviations_out_of_the_money_is_worth_nothing(kernel):
    """v0 and long variance of 1e-4 over a day: 5 % out of the money is 95 standard deviations."""
    book = Contracts(forward=100.0, strike=[95.0, 105.0], expiry=1 / 365, discount=1.0, is_call=[False, True])
    price = Heston(kernel).price([2.0, 1e-4, 0.1, -0.5, 1e-4], book)
    assert np.all(np.abs(price) < 1e-9)
