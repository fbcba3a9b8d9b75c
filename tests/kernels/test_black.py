"""Black's formula and its inverse: against 50-digit arithmetic, published numbers, and the laws both must obey.

How exact can it be? A price p known to eps has an implied volatility known to eps * p / vega, and the answer itself
is rounded to eps * volatility. `what_rounding_allows` is that, times small constants.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from strikeout.kernels import black
from tests.kernels.kernel_choice import under_each

EPS = 2.0**-52


@dataclass(frozen=True)
class Option:
    forward: float
    strike: float
    expiry: float
    discount: float
    is_call: bool
    volatility: float

    @property
    def distance(self) -> float:
        """|h|: how many total volatilities the strike is away from the forward."""
        return abs(float(np.log(self.strike / self.forward))) / (self.volatility * self.expiry**0.5)

    @property
    def is_out_of_the_money(self) -> bool:
        return self.is_call == (self.strike > self.forward)

    def price(self) -> float:
        return float(black.price(self.forward, self.strike, self.expiry, self.volatility, self.discount, self.is_call))

    def vega(self) -> float:
        return float(black.vega(self.forward, self.strike, self.expiry, self.volatility, self.discount))

    def implied(self, price: float) -> float:
        return float(
            black.implied_volatility(price, self.forward, self.strike, self.expiry, self.discount, self.is_call)
        )

    def exactly(self, volatility: float) -> tuple[mp.mpf, mp.mpf]:
        """Price and vega with the inputs taken as exact, in the working precision of mpmath."""
        F, K, T, D = (mp.mpf(v) for v in (self.forward, self.strike, self.expiry, self.discount))
        s = mp.mpf(volatility) * mp.sqrt(T)
        d1 = mp.log(F / K) / s + s / 2
        d2 = d1 - s
        value = F * mp.ncdf(d1) - K * mp.ncdf(d2) if self.is_call else K * mp.ncdf(-d2) - F * mp.ncdf(-d1)
        return D * value, D * F * mp.npdf(d1) * mp.sqrt(T)


def what_rounding_allows(option: Option, price: float) -> float:
    """The error in an implied volatility that rounding alone explains.

    8: out of the money 2.5 eps * volatility is the worst ever seen. 4: a time value in the money, or a distance to the
    upper bound, is formed with two roundings of the size of the price.
    """
    return EPS * (8.0 * option.volatility + 4.0 * price / option.vega())


@st.composite
def options(draw: st.DrawFn, *, out_of_the_money: bool | None = None) -> Option:
    """Total volatilities from 1e-5 to 12, strikes up to 36 of those from the forward but not beyond e^+-25."""
    total = 10.0 ** draw(st.floats(-5.0, 1.08))
    expiry = 10.0 ** draw(st.floats(-3.0, 1.5))
    distance = draw(st.one_of(st.just(0.0), st.floats(1e-9, 1.5), st.floats(1.0, 36.0)))
    moneyness = min(distance * total, 25.0) * draw(st.sampled_from([-1.0, 1.0]))
    forward = 10.0 ** draw(st.floats(-3.0, 5.0))
    strike = forward * float(np.exp(moneyness))
    is_call = draw(st.booleans()) if out_of_the_money is None else (strike > forward) == out_of_the_money
    option = Option(forward, strike, expiry, draw(st.floats(0.3, 1.1)), is_call, total / expiry**0.5)
    assume(option.price() > 1e-295 * max(forward, strike) and option.vega() > 0)
    return option


@given(options())
@settings(max_examples=300)
def test_prices_and_vegas_are_right_to_what_rounding_the_inputs_costs(option: Option) -> None:
    # Rounding x / s once moves ln(price) by h^2 eps; 1.5 such roundings go into h and 3 eps is the error of b itself.
    allowed = 6 * EPS * (1 + option.distance**2)
    with mp.workdps(60):
        price, vega = option.exactly(option.volatility)
        if option.is_out_of_the_money:
            assert abs(option.price() - price) <= allowed * price
        else:  # intrinsic value plus time value, each rounded
            time_value = price - mp.mpf(option.discount) * abs(mp.mpf(option.forward) - mp.mpf(option.strike))
            assert abs(option.price() - price) <= 4 * EPS * price + allowed * time_value
        # t^2 is as exact as h^2, and exp loses it as well: s^2 / 8 joins the exponent of the vega.
        total_squared = option.volatility**2 * option.expiry
        assert abs(option.vega() - vega) <= (allowed + EPS * total_squared) * vega


@given(options())
@settings(max_examples=300)
def test_the_implied_volatility_is_the_root_to_what_rounding_allows(option: Option) -> None:
    price = option.price()
    found = option.implied(price)
    assume(0 < found < np.inf)  # a time value or a distance to the bound that rounds to nothing has no more to tell
    with mp.workdps(60):
        # One Newton step in 60 digits: what is left after it is the square of 1e-15.
        exact, vega = option.exactly(found)
        assert abs((mp.mpf(price) - exact) / vega) <= what_rounding_allows(option, price)


@given(options(out_of_the_money=True), st.floats(-290.0, 0.0))
@settings(max_examples=300)
def test_any_price_between_the_bounds_is_priced_back(option: Option, exponent: float) -> None:
    price = 10.0**exponent * option.discount * min(option.forward, option.strike)
    found = option.implied(price)
    assume(0 < found < np.inf)
    again = Option(option.forward, option.strike, option.expiry, option.discount, option.is_call, found)
    # 6 eps of volatility is worth 6 eps * volatility * vega, about 6 h^2 eps of the price; pricing back costs as much.
    allowed = 6 * EPS * (1 + again.distance**2) * price + 6 * EPS * found * again.vega()
    assert abs(again.price() - price) <= allowed


def wing_grid() -> tuple[NDArray[np.float64], ...]:
    """Strikes and total volatilities that visit every branch: distances to 37, log-strikes to 20, both sides."""
    log_moneyness = np.r_[0.0, np.geomspace(1e-12, 20.0, 120)]
    distance = np.r_[np.geomspace(1e-6, 1.0, 40), np.linspace(1.02, 37.0, 120)]
    x, h = (grid.ravel() for grid in np.meshgrid(log_moneyness, distance))
    total = np.where(x > 0, x / h, h)
    sign = np.where(np.arange(x.size) % 2 == 0, 1.0, -1.0)
    keep = (total > 1e-13) & (total < 8.0)
    return np.exp(sign * x)[keep], total[keep]


def test_every_wing_and_every_seam_converges_in_the_fixed_number_of_steps() -> None:
    strike, total = wing_grid()
    is_call = strike > 1.0
    price = black.price(1.0, strike, 1.0, total, 1.0, is_call)
    found = black.implied_volatility(price, 1.0, strike, 1.0, 1.0, is_call)
    told = price > 1e-300
    allowed = EPS * (12.0 * total + 4.0 * price / black.vega(1.0, strike, 1.0, total, 1.0))
    assert np.count_nonzero(told) > 15_000
    assert np.all(np.abs(found - total)[told] <= allowed[told])


def everything() -> tuple[NDArray[np.float64], ...]:
    """A batch of all kinds: wings, middle, high, in the money, and rows without an answer."""
    generator = np.random.default_rng(20)
    n = 400
    expiry = 10.0 ** generator.uniform(-3, 1, n)
    volatility = 10.0 ** generator.uniform(-3, 1, n)
    strike = 100.0 * np.exp(volatility * np.sqrt(expiry) * generator.uniform(-20, 20, n).round())
    is_call = generator.random(n) < 0.5
    discount = generator.uniform(0.5, 1.0, n)
    price = black.price(100.0, strike, expiry, volatility, discount, is_call)
    price[::17], price[1::17], strike[2::17] = -1.0, 1e300, np.nan
    return price, np.full(n, 100.0), strike, expiry, discount, is_call, volatility


@given(st.lists(st.integers(0, 399), min_size=1, max_size=60))
def test_a_row_does_not_depend_on_its_neighbours(rows: list[int]) -> None:
    *quote, volatility = everything()
    _, forward, strike, expiry, discount, is_call = quote
    prices = black.price(forward, strike, expiry, volatility, discount, is_call)
    vegas = black.vega(forward, strike, expiry, volatility, discount)
    vols = black.implied_volatility(*quote)
    few = [column[rows] for column in quote]
    assert black.implied_volatility(*few).tobytes() == vols[rows].tobytes()
    assert black.price(*few[1:4], volatility[rows], *few[4:]).tobytes() == prices[rows].tobytes()
    assert black.vega(*few[1:4], volatility[rows], few[4]).tobytes() == vegas[rows].tobytes()


def test_builds_for_other_instructions_give_the_same_bits() -> None:
    *quote, volatility = everything()
    plain, *others = under_each(
        lambda: (black.price(*quote[1:4], volatility, *quote[4:]), black.implied_volatility(*quote))
    ).values()
    for other in others:
        for one, its in zip(plain, other, strict=True):
            np.testing.assert_array_equal(one, its)


def test_strides_shapes_and_blocks_do_not_change_a_bit() -> None:
    quote = everything()[:-1]
    vols = black.implied_volatility(*quote)
    assert black.implied_volatility(*(column[::-3] for column in quote)).tobytes() == vols[::-3].tobytes()
    square = black.implied_volatility(*(column.reshape(20, 20) for column in quote))
    assert square.shape == (20, 20)
    assert square.tobytes() == vols.tobytes()
    copies = -(-3 * black.BLOCK // vols.size)  # enough to cross three blocks
    many = black.implied_volatility(*(np.tile(column, copies) for column in quote))
    assert many.tobytes() == np.tile(vols, copies).tobytes()


@given(options(out_of_the_money=True), st.lists(st.floats(-250.0, -0.01), min_size=2, max_size=20, unique=True))
def test_a_higher_price_means_a_higher_volatility(option: Option, exponents: list[float]) -> None:
    price = option.discount * min(option.forward, option.strike) * 10.0 ** np.sort(exponents)
    price = price[np.r_[True, price[1:] > price[:-1] * (1 + 1e-9)]]  # closer than rounding can tell is no claim
    found = black.implied_volatility(
        price, option.forward, option.strike, option.expiry, option.discount, option.is_call
    )
    assert np.all(np.diff(found) > 0)


@given(options())
def test_call_minus_put_is_the_discounted_forward_minus_strike(option: Option) -> None:
    columns = (option.forward, option.strike, option.expiry, option.volatility, option.discount)
    difference = float(black.price(*columns, True)) - float(black.price(*columns, False))
    # Each price is rounded twice, at most to the size of the larger of forward and strike.
    scale = option.discount * max(option.forward, option.strike)
    assert abs(difference - option.discount * (option.forward - option.strike)) <= 4 * EPS * scale


@given(options())
def test_call_and_put_at_one_strike_imply_one_volatility(option: Option) -> None:
    twin = Option(option.forward, option.strike, option.expiry, option.discount, not option.is_call, option.volatility)
    one, other = option.implied(option.price()), twin.implied(twin.price())
    assume(0 < one < np.inf)
    assume(0 < other < np.inf)
    dearer = max(option.price(), twin.price())
    slack = what_rounding_allows(option, option.price()) + what_rounding_allows(twin, twin.price())
    # Where the time value drowns in the intrinsic value the first-order error bound itself stops being small.
    assume(EPS * dearer / option.vega() < 1e-3 * option.volatility)
    assert abs(one - other) <= 2 * slack


@pytest.mark.parametrize(("is_call", "intrinsic", "bound"), [(True, 0.9 * 20.0, 0.9 * 100.0), (False, 0.0, 0.9 * 80.0)])
def test_the_ends_of_the_price_range(is_call: bool, intrinsic: float, bound: float) -> None:
    asked = np.array([np.nextafter(intrinsic, -1), intrinsic, bound, np.nextafter(bound, 1000)])
    found = black.implied_volatility(asked, 100.0, 80.0, 0.5, 0.9, is_call)
    np.testing.assert_array_equal(found, [np.nan, 0.0, np.inf, np.nan])
    np.testing.assert_array_equal(black.price(100.0, 80.0, 0.5, [0.0, np.inf], 0.9, is_call), [intrinsic, bound])


@pytest.mark.parametrize("volatility", [1e-9, 0.2, 20.0])
def test_a_price_is_never_outside_its_bounds_not_even_by_a_bit(volatility: float) -> None:
    generator = np.random.default_rng(3)
    forward, strike, discount = generator.uniform(50.0, 150.0, (3, 5_000)) * [[1.0], [1.0], [0.01]]
    is_call = generator.random(5_000) < 0.5
    found = black.price(forward, strike, 1.0, volatility, discount, is_call)
    assert np.all(found >= discount * np.maximum(np.where(is_call, forward - strike, strike - forward), 0.0))
    assert np.all(found <= discount * np.where(is_call, forward, strike))


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_an_input_that_is_not_finite_and_above_zero_has_no_implied_volatility(column: int, value: float) -> None:
    quote = [8.0, 100.0, 100.0, 1.0, 1.0]
    quote[column] = value
    found = float(black.implied_volatility(*quote, is_call=True))
    if column == 0 and value == 0.0:
        assert found == 0.0  # at the money the intrinsic value is 0, so a price of 0 is that exactly
    else:
        assert np.isnan(found)


@pytest.mark.parametrize("column", [0, 1, 4])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_contract_that_is_none_has_no_price(column: int, value: float) -> None:
    contract = [100.0, 90.0, 1.0, 0.2, 1.0]
    contract[column] = value
    assert np.isnan(black.price(*contract, is_call=True))
    assert np.isnan(black.vega(*contract))


def test_a_negative_volatility_or_expiry_has_no_price_and_an_expired_option_is_worth_its_intrinsic_value() -> None:
    assert np.isnan(black.price(100.0, 90.0, 1.0, -0.2, 1.0, True))
    assert np.isnan(black.price(100.0, 90.0, -1.0, 0.2, 1.0, True))
    np.testing.assert_array_equal(black.price(100.0, [90.0, 100.0, 110.0], 0.0, 0.2, 1.0, True), [10.0, 0.0, 0.0])


def test_a_time_value_of_too_few_bits_has_no_implied_volatility() -> None:
    assert np.isnan(black.implied_volatility(1e-310, 1.0, 1.5, 1.0, 1.0, True))
    assert np.isfinite(black.implied_volatility(1e-307, 1.0, 1.5, 1.0, 1.0, True))


@pytest.mark.parametrize("table", ["black_roundtrip", "heston_implied_vols"])
def test_reference_volatilities_are_reproduced_to_their_last_digit(
    table: str, shared_data: Callable[[str], Path]
) -> None:
    """implied_vol.json: volatilities computed in high precision from the prices beside them, undiscounted."""
    data = json.loads(shared_data("reference/implied_vol.json").read_text())[table]
    rows = data if table == "black_roundtrip" else data["rows"]
    for row in rows:
        price = float(row.get("undiscounted_price", row.get("price")))
        expected = float(row.get("implied_vol", row.get("computed")))
        forward = float(row["forward"] if table == "black_roundtrip" else data["forward"])
        option = Option(forward, float(row["strike"]), float(row["t_years"]), 1.0, row["cp_flag"] == "C", expected)
        allowed = what_rounding_allows(option, price)
        if Decimal(row["strike"]) != Decimal(option.strike):  # 99.999 is no double, and that moves the price
            allowed += 0.5 * EPS * option.strike / option.vega()
        assert abs(option.implied(price) - expected) <= allowed, row


def test_compiled_prices_have_the_bits_of_their_twin() -> None:
    rng = np.random.default_rng(3)
    count = 4000
    F = 100.0 * np.exp(rng.normal(0.0, 0.5, count))
    K = F * np.exp(rng.normal(0.0, 0.6, count) * rng.choice([0.0, 1e-9, 1.0, 6.0], count))  # at the money to far away
    T, sigma = rng.uniform(1e-3, 3.0, count), rng.choice([0.0, 1e-8, 0.2, 3.0], count)  # with no volatility, and much
    D, is_call = rng.uniform(0.5, 1.0, count), rng.random(count) < 0.5
    for column in (F, K, D, T, sigma):  # rows that have no price
        column[rng.integers(0, count, 12)] = rng.choice([np.nan, np.inf, -1.0, 0.0], 12)
    with np.errstate(all="ignore"):
        used, twin = (price(F, K, T, sigma, D, is_call) for price in (black._price, black.price_twin))
        assert np.array_equal(used, twin, equal_nan=True)
        # Prices of Black's formula, both bounds, beyond the bounds, and far below what a volatility follows from.
        bound = D * np.where(is_call, F, K)
        share = rng.choice([1.0, 1.0, 1.0, 1e-290, 1e-3, 0.0, 1.5], count)
        prices = np.where(rng.random(count) < 0.9, used * share, bound - (bound - used) * share)
        found, defined = (
            volatility(prices, F, K, T, D, is_call)
            for volatility in (black._implied_volatility, black.implied_volatility_twin)
        )
        assert np.array_equal(found, defined, equal_nan=True)
        known = defined[np.isfinite(defined)]
        assert 0.2 * count < known.size < 0.9 * count
        assert np.isinf(defined).any()
        assert (known == 0.0).any()
