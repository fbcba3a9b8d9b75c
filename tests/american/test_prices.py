"""American prices, vegas and implied volatilities against QuantLib, published tables and themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strikeout import american
from strikeout.errors import UsageError
from strikeout.kernels import american as kernel
from strikeout.kernels import black
from strikeout.kernels.compiled import native
from strikeout.kernels.normal import CENTRE, COEFFICIENTS

REFERENCE = Path(__file__).parents[1] / "reference"
needs_native = pytest.mark.skipif(native() is None, reason="the compiled kernel is not built")
# The contracts of published tables of exact prices. What they print could not be consulted, so the digits are those of
# QuantLib's QdFp engine (20 nodes), recomputed by test_the_digits_of_the_tables_are_quantlibs, to the places that the
# tables print. Printed digits that could be consulted are in tests/reference/american_tables.json, with their sources.
# Huang, Subrahmanyam and Yu (Review of Financial Studies 9, 1996), table 1, also in Ju and Zhong (1999): puts on a spot
# of 40 with rate 4.88 %; the rows are strikes 35, 40 and 45, the columns 0.0833, 0.3333 and 0.5833 years.
TREES = {
    0.2: [[0.0062, 0.2004, 0.4328], [0.8522, 1.5798, 1.9905], [5.0000, 5.0883, 5.2670]],
    0.3: [[0.0774, 0.6975, 1.2198], [1.3099, 2.4826, 3.1697], [5.0597, 5.7056, 6.2436]],
    0.4: [[0.2466, 1.3460, 2.1549], [1.7681, 3.3875, 4.3527], [5.2868, 6.5098, 7.3830]],
}
# Ju and Zhong (Journal of Derivatives, winter 1999), the long calls: three years, strike 100, by yield, rate and
# volatility, for spots of 80, 90, 100, 110 and 120.
LONG_CALLS = {
    (0.07, 0.03, 0.2): [2.580, 5.167, 9.066, 14.443, 21.414],
    (0.07, 0.03, 0.4): [11.326, 15.722, 20.793, 26.494, 32.781],
    (0.07, 0.00001, 0.3): [5.518, 8.842, 13.143, 18.454, 24.791],
    (0.03, 0.07, 0.3): [12.145, 17.368, 23.348, 29.964, 37.103],
}
# Barone-Adesi and Whaley (Journal of Finance 42, 1987), table I: calls and puts of three months, rate 8 %, cost of
# carry -4 %, volatility 20 %, strike 100, for spots of 80 to 120.
THREE_MONTHS = {True: [0.03, 0.58, 3.52, 10.36, 20.00], False: [20.41, 11.25, 4.40, 1.12, 0.18]}
DOUBLE = [  # puts with yield < rate < 0: years, rate, yield, volatility
    (1.0, -0.01, -0.05, 0.1),
    (5.0, -0.005, -0.02, 0.1),
    (10.0, -0.01, -0.04, 0.2),
    (20.0, -0.01, -0.03, 0.25),  # the boundaries meet before expiry
]


def grid(name: str = "american_grid.json") -> tuple[dict[str, Any], np.ndarray]:
    table = {key: np.array(column) for key, column in json.loads((REFERENCE / name).read_text()).items()}
    return table, table.pop("price")


def assert_close(given: dict[str, Any], expected: np.ndarray) -> None:
    # The reference itself is good to 3e-9 of spot: its distance to the fine resolution on 2,000 contracts.
    assert np.abs(american.price(**given) - expected).max() <= 1e-8 * 100.0
    assert np.abs(american.price(**given, accuracy=1e-10) - expected).max() <= 3e-9 * 100.0


def test_prices_agree_with_quantlibs_collocation_to_1e_8_of_spot():
    assert_close(*grid())


def test_the_hardest_of_ten_thousand_contracts_agree_with_quantlib_too():
    given, expected = grid("american_hard.json")
    assert np.abs(american.price(**given) - expected).max() <= 1e-8 * 100.0
    # What is left of QuantLib's error with 50 nodes: with 80 it is closer on every one of these contracts but two.
    assert np.abs(american.price(**given, accuracy=1e-10) - expected).max() <= 1.5e-9 * 100.0


@needs_native
@pytest.mark.parametrize("rates", ["one boundary", "two boundaries"])
def test_twice_as_many_nodes_change_no_price_by_more_than_asked_for(rates):
    from tests.reference.make_american_grid import contracts

    given = contracts(120 if rates == "one boundary" else 12, seed=4)
    if rates == "two boundaries":
        lower, upper = -0.0005 - 0.3 * given["dividend_yield"] - 0.02, -0.0005 - 0.2 * given["dividend_yield"]
        calls = given["is_call"]
        given |= {"rate": np.where(calls, lower, upper), "dividend_yield": np.where(calls, upper, lower)}
    expected = of_64_nodes(given)
    assert np.abs(american.price(**given) - expected).max() <= 1e-8 * 100.0
    assert np.abs(american.price(**given, accuracy=1e-10) - expected).max() <= 1e-10 * 100.0


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seed"), [(2_000, 1), (10_000, 2)])
def test_prices_agree_with_quantlibs_collocation_on_thousands_of_contracts(count, seed):
    from tests.reference.make_american_grid import contracts, converged, converged_further

    given = contracts(count, seed)
    expected, found = np.array(converged(given)), american.price(**given)
    far = np.flatnonzero(np.abs(found - expected) > 5e-9 * 100.0)  # there 20 nodes of QuantLib may be too few
    expected[far] = converged_further({name: column[far] for name, column in given.items()})
    assert np.abs(found - expected).max() <= 1e-8 * 100.0


@pytest.mark.parametrize("count", [100, pytest.param(2_000, marks=pytest.mark.slow)])
def test_prices_asked_for_to_1e_10_agree_with_an_independent_boundary(count):
    from tests.reference.american_boundary import price
    from tests.reference.make_american_grid import COLUMNS, contracts

    given = contracts(2_000, 1)
    found = american.price(**given, accuracy=1e-10)
    rows = list(zip(*(given[name].tolist() for name in COLUMNS), strict=True))
    worst = max(abs(price(rows[i]) - found[i]) for i in range(2_000 - count, 2_000)) / 100.0
    print(f"worst difference {worst:.1e} of spot")
    assert worst <= 1e-10


def test_the_hardest_of_ten_thousand_contracts_agree_with_an_independent_boundary():
    from tests.reference.american_boundary import price
    from tests.reference.make_american_grid import COLUMNS

    given, _ = grid("american_hard.json")
    found = american.price(**given, accuracy=1e-10)
    rows = zip(*(given[name].tolist() for name in COLUMNS), strict=True)
    expected = np.array([price(row, n=96) for row in rows])  # 48 nodes are 4e-10 of spot off here
    assert np.abs(found - expected).max() <= 1e-10 * 100.0  # 1.1e-10 with 48 nodes at our finest


def test_where_quantlib_and_ours_differ_by_more_than_1e_10_thirty_digits_are_on_our_side():
    from tests.reference.american_boundary import ARBITRATED, DIGITS_30, QUANTLIB_80, price
    from tests.reference.make_american_grid import COLUMNS

    ours = american.price(**dict(zip(COLUMNS, ARBITRATED, strict=True)), accuracy=1e-10)
    assert abs(float(ours) - DIGITS_30) <= 5e-11 * 100.0
    assert abs(QUANTLIB_80 - DIGITS_30) >= 1.5e-10 * 100.0
    assert abs(price(ARBITRATED) - DIGITS_30) <= 5e-12 * 100.0  # the float reference of the test above


@needs_native
def test_prices_asked_for_to_1e_10_are_those_of_64_nodes_on_two_thousand_contracts():
    from tests.reference.make_american_grid import contracts

    given = contracts(2_000, 1)
    assert np.abs(american.price(**given, accuracy=1e-10) - of_64_nodes(given)).max() <= 1e-10 * 100.0


def of_64_nodes(given: dict[str, Any]) -> np.ndarray:
    most = kernel.nodes(64, 64, 256).flat()
    finest = native().American([most] * 5, np.array(COEFFICIENTS), CENTRE, 1e-13, 1e9, 1e-12)
    columns = [given[name] for name in ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility")]
    found = np.empty((2, len(given["spot"])))
    finest.prices(columns, given["is_call"], False, found.reshape(-1), 1)
    assert np.isfinite(found).all()
    return found[0]


def tables() -> list[tuple[dict[str, Any], np.ndarray, int]]:
    """The contracts of the tables, their prices, and the places that these have."""
    rest = {"spot": 40.0, "rate": 0.0488, "dividend_yield": 0.0, "is_call": False}
    years, strikes = np.meshgrid([0.0833, 0.3333, 0.5833], [35.0, 40.0, 45.0])
    found = [
        ({**rest, "strike": strikes, "expiry": years, "volatility": sigma}, np.array(prices), 4)
        for sigma, prices in TREES.items()
    ]
    spots = np.array([80.0, 90.0, 100.0, 110.0, 120.0])
    for (dividend, rate, sigma), prices in LONG_CALLS.items():
        rest = {"strike": 100.0, "expiry": 3.0, "rate": rate, "dividend_yield": dividend, "is_call": True}
        found.append(({**rest, "spot": spots, "volatility": sigma}, np.array(prices), 3))
    for is_call, prices in THREE_MONTHS.items():
        rest = {"strike": 100.0, "expiry": 0.25, "rate": 0.08, "dividend_yield": 0.12, "volatility": 0.2}
        found.append(({**rest, "spot": spots, "is_call": is_call}, np.array(prices), 2))
    return found


@pytest.mark.parametrize("number", range(9))
def test_the_contracts_of_published_tables_have_quantlibs_prices(number):
    given, expected, places = tables()[number]
    assert np.abs(american.price(**given) - expected).max() <= 0.5001 * 10.0**-places


# Printed approximations, and how far they are from the exact price, of prices above 0.5 relatively: both papers state
# errors of this size. A wrong sign, day count or exchange of rate and yield is far outside.
PRINTED = {"short puts": 0.004, "long calls": 0.01, "quadratic approximation": 0.012}


def printed(name: str) -> tuple[dict[str, Any], np.ndarray]:
    """A table of printed numbers: contracts, and what the publication gives."""
    published = json.loads((REFERENCE / "american_tables.json").read_text())
    (table,) = (table for table in published["tables"] if table["name"] == name)
    given = dict(zip(published["columns"], map(np.array, zip(*table["rows"], strict=True)), strict=True))
    return given, given.pop("printed")


def test_the_printed_premium_of_andersen_lake_and_offengenden_is_reproduced_to_its_twelve_digits():
    given, expected = printed("converged premium")
    columns = [given[name] for name in ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility")]
    premium = kernel.prices(columns, given["is_call"], fine=True, vega=False)[1]
    assert np.round(premium, 12).tolist() == expected.tolist()


@pytest.mark.parametrize("name", PRINTED)
def test_printed_approximations_are_as_close_as_they_are_said_to_be(name):
    given, expected = printed(name)
    found = american.price(**given)
    off = np.abs(found - expected) / np.maximum(found, 0.5)
    assert PRINTED[name] / 2.0 < off.max() < PRINTED[name]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9))
def test_the_digits_of_the_tables_are_quantlibs(number):
    from tests.reference.make_american_grid import COLUMNS, converged

    given, expected, places = tables()[number]
    columns = np.broadcast_arrays(*(given[name] for name in COLUMNS))
    found = converged(dict(zip(COLUMNS, (column.reshape(-1) for column in columns), strict=True)))
    assert np.array_equal(np.round(found, places), expected.reshape(-1))


@pytest.mark.parametrize(("expiry", "rate", "dividend_yield", "volatility"), DOUBLE)
def test_two_boundaries_agree_with_finite_differences(expiry, rate, dividend_yield, volatility):
    spots = np.array([30.0, 60.0, 80.0, 100.0, 120.0])
    given = {"strike": 100.0, "expiry": expiry, "rate": rate, "dividend_yield": dividend_yield}
    given |= {"volatility": volatility, "is_call": False, "spot": spots}
    found = american.price(**given)
    expected = [finite_differences(spot, expiry, rate, dividend_yield, volatility) for spot in spots]
    assert np.abs(found - expected).max() < 2e-5 * 100.0  # what the grid of 800 by 800 points is off by
    assert np.abs(found - american.price(**given, accuracy=1e-10)).max() < 1e-8 * 100.0
    rest = {name: value for name, value in given.items() if name != "volatility"}
    assert american.implied_volatility(price=found, **rest)[-1] == pytest.approx(volatility, abs=1e-6)
    european = black.price(
        spots * np.exp((rate - dividend_yield) * expiry), 100.0, expiry, volatility, np.exp(-rate * expiry), False
    )
    assert (found - european).max() > 1e-3 * 100.0  # exercising early is worth something: the case is not empty


def finite_differences(spot, expiry, rate, dividend_yield, volatility):
    """A put with strike 100 by QuantLib: two grids, extrapolated in the number of time steps."""
    import QuantLib as ql  # noqa: N813

    today = ql.Date(1, 1, 2024)
    ql.Settings.instance().evaluationDate = today
    days = ql.Actual365Fixed()
    process = ql.BlackScholesMertonProcess(
        ql.QuoteHandle(ql.SimpleQuote(spot)),
        ql.YieldTermStructureHandle(ql.FlatForward(today, dividend_yield * expiry, days)),
        ql.YieldTermStructureHandle(ql.FlatForward(today, rate * expiry, days)),
        ql.BlackVolTermStructureHandle(ql.BlackConstantVol(today, ql.NullCalendar(), volatility * expiry**0.5, days)),
    )
    option = ql.VanillaOption(ql.PlainVanillaPayoff(ql.Option.Put, 100.0), ql.AmericanExercise(today, today + 365))
    found = []
    for steps in (400, 800):
        option.setPricingEngine(ql.FdBlackScholesVanillaEngine(process, steps, 800, 20))
        found.append(option.NPV())
    return 2.0 * found[1] - found[0]


def test_a_put_is_european_if_waiting_costs_nothing():
    given = {"spot": 100.0, "strike": [80.0, 100.0, 120.0], "expiry": 2.0, "volatility": 0.3, "is_call": False}
    found = american.price(rate=-0.01, dividend_yield=0.02, **given)
    expected = black.price(100.0 * np.exp(-0.03 * 2), given["strike"], 2.0, 0.3, np.exp(0.02), False)
    assert np.abs(found - expected).max() < 1e-12


def test_a_call_without_dividends_is_european():
    found = american.price(
        spot=100.0, strike=90.0, expiry=1.0, rate=0.05, dividend_yield=0.0, volatility=0.2, is_call=True
    )
    assert found == pytest.approx(black.price(100.0 * np.exp(0.05), 90.0, 1.0, 0.2, np.exp(-0.05), True), abs=1e-12)


def test_deep_in_the_money_the_price_is_what_exercising_pays():
    given = {"spot": 50.0, "strike": 100.0, "expiry": 1.0, "rate": 0.05, "dividend_yield": 0.0, "volatility": 0.2}
    assert american.price(**given, is_call=False) == 50.0
    assert american.vega(**given, is_call=False) == 0.0


def test_an_options_bits_do_not_depend_on_the_other_options():
    given, _ = grid()
    whole = american.price(**given)
    alone = [american.price(**{name: column[i] for name, column in given.items()}) for i in range(0, 200, 9)]
    assert whole[::9].tobytes() == np.array(alone).tobytes()
    assert american.price(**{name: column[::-1] for name, column in given.items()})[::-1].tobytes() == whole.tobytes()


@needs_native
def test_every_instruction_set_gives_the_same_bits():
    given, prices = grid()
    module = native()
    before = module.instructions()
    found = []
    try:
        for name in ("plain", "avx2"):
            module.use_instructions(name)
            answers = american.price(**given), american.vega(**given), implied(given, prices)
            found.append(b"".join(answer.tobytes() for answer in answers))
    finally:
        module.use_instructions(before)
    assert found[0] == found[1]


@needs_native
def test_the_compiled_kernel_agrees_with_its_twin_to_rounding():
    given, prices = grid()
    columns = [given[name][:40] for name in ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility")]
    accuracy, calls = kernel.accuracy_of(False), given["is_call"][:40]
    compiled = kernel.prices(columns, calls, fine=False, vega=True)
    with np.errstate(all="ignore"):
        rows = [[float(column[i]) for column in columns] for i in range(40)]
        twin = np.array([kernel.price_twin(row, bool(calls[i]), accuracy, vega=True) for i, row in enumerate(rows)]).T
        volatility = [kernel.volatility_twin(prices[i], rows[i], bool(calls[i]), accuracy) for i in range(40)]
    assert np.abs(compiled[:2] - twin[:2]).max() < 1e-12 * 100.0
    assert np.abs(compiled[2] - twin[2]).max() < 1e-8 * 100.0  # rounding over the step of the difference
    found = kernel.volatilities(prices[:40], columns, calls, fine=False)
    assert np.array_equal(np.isnan(found), np.isnan(volatility))
    assert np.nanmax(np.abs(found - volatility)) < 1e-7


def implied(given: dict[str, Any], prices: np.ndarray) -> np.ndarray:
    rest = {name: column for name, column in given.items() if name != "volatility"}
    return american.implied_volatility(price=prices, **rest)


def test_implied_volatilities_give_the_price_back():
    given, prices = grid()
    found, slope = implied(given, prices), american.vega(**given)
    intrinsic = np.maximum(np.where(given["is_call"], 1.0, -1.0) * (100.0 - given["strike"]), 0.0)
    answerable = prices > intrinsic + 1e-6 * 100.0
    assert answerable.sum() > 150
    assert np.isfinite(found[answerable]).all()
    off = np.abs(found - given["volatility"])[answerable] * slope[answerable]
    assert off.max() < 2e-8 * 100.0  # the accuracy of a price, at both ends


def test_a_price_that_exercising_pays_has_no_implied_volatility():
    rest = {"spot": 50.0, "strike": 100.0, "expiry": 1.0, "rate": 0.05, "dividend_yield": 0.0, "is_call": False}
    found = american.implied_volatility(price=[49.0, 50.0, 100.0, np.nan, -1.0], **rest)
    assert np.isnan(found).all()


def test_vega_is_the_slope_of_the_price():
    given, _ = grid()
    step = 1e-3
    up = american.price(**{**given, "volatility": given["volatility"] * (1 + step)}, accuracy=1e-10)
    down = american.price(**{**given, "volatility": given["volatility"] * (1 - step)}, accuracy=1e-10)
    slope = (up - down) / (2 * step * given["volatility"])
    assert np.abs(american.vega(**given) - slope).max() < 3e-4 * 100.0  # second order of the step


def test_rows_outside_the_range_of_an_argument_have_no_price():
    good = {"spot": 100.0, "strike": 100.0, "expiry": 1.0, "rate": 0.05, "dividend_yield": 0.0, "volatility": 0.2}
    for name in ("spot", "strike", "expiry", "volatility"):
        for bad in (0.0, -1.0, np.nan, np.inf):
            found = american.price(**{**good, name: [good[name], bad]}, is_call=False)
            assert np.isfinite(found[0])
            assert np.isnan(found[1])


@pytest.mark.parametrize(
    "change", [{"accuracy": 1e-12}, {"strike": [1.0, 2.0, 3.0], "spot": [1.0, 2.0]}, {"rate": "much"}, {"is_call": "C"}]
)
def test_arguments_that_make_no_sense_are_refused(change):
    good = {"spot": 100.0, "strike": 100.0, "expiry": 1.0, "rate": 0.05, "dividend_yield": 0.0, "volatility": 0.2}
    with pytest.raises(UsageError):
        american.price(**{**good, "is_call": False, **change})
