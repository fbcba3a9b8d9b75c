"""Footprints: one row of integers a quote, from that quote alone; all of them or none."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnknownIdError, UsageError
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import Schema
from tests.raising import raises

QUOTES = so.paper.quotes("small", seed=3)
HESTON = so.Heston()
START = HESTON.parameters.starts[0]
FOOTPRINTS = footprints_of(QUOTES, HESTON, START)


def test_a_row_is_the_weighted_sensitivities_and_residual_rounded_once():
    weights = np.linspace(0.5, 2.0, len(QUOTES))
    found = footprints_of(QUOTES, HESTON, START, weights=weights)
    price, jacobian = HESTON.linearize(START, QUOTES.contracts)
    real = np.sqrt(weights)[:, None] * np.column_stack([jacobian, QUOTES.observed - price])
    assert (found.rows == np.rint(np.ldexp(real, found.schema.grid))).all()
    assert found.ids.tolist() == QUOTES.ids.tolist()
    assert found.schema.weights == "own"


def test_a_row_does_not_depend_on_the_other_quotes():
    some = QUOTES.ids[[5, 77, 200, 539]]
    assert (footprints_of(QUOTES.only(some), HESTON, START).rows == FOOTPRINTS.only(some).rows).all()


def test_implied_volatilities_leave_footprints_too():
    found = footprints_of(QUOTES, HESTON, START, residual="implied_vol", weights="none")
    real = np.ldexp(found.rows.astype(float), -found.schema.grid)
    model = so.calibrate(QUOTES, HESTON, residual="implied_vol", weights="none")
    # One Gauss-Newton step per pass from the start leads to the optimum that calibrate finds.
    theta = START
    for _ in range(12):
        theta = theta + footprints_of(QUOTES, HESTON, theta, residual="implied_vol", weights="none").total().step()
    np.testing.assert_allclose(theta, list(model.parameters.values()), rtol=1e-6)
    assert np.abs(real[:, -1]).max() < 1.0  # volatilities, not prices


def test_only_and_without_keep_the_order_of_the_book_and_part_it():
    some = QUOTES.ids[[9, 2, 5]]
    assert FOOTPRINTS.only(some).ids.tolist() == QUOTES.ids[[2, 5, 9]].tolist()
    kept = FOOTPRINTS.without(some)
    assert kept.ids.tolist() == QUOTES.without(some).ids.tolist()
    assert kept.total() + FOOTPRINTS.only(some).total() == FOOTPRINTS.total()


@pytest.mark.parametrize("as_given", [list, tuple, np.array, set])
def test_places_are_row_numbers_however_the_ids_are_given(as_given):
    some = QUOTES.ids[[9, 2, 5]].tolist()
    assert sorted(FOOTPRINTS.places(as_given(some)).tolist()) == [2, 5, 9]
    assert FOOTPRINTS.places(as_given(some)).dtype == np.int64


def test_no_ids_have_no_places():
    assert FOOTPRINTS.places([]).tolist() == []
    assert FOOTPRINTS.without([]).total() == FOOTPRINTS.total()


def test_unknown_and_repeated_ids_are_refused_by_name():
    first = str(QUOTES.ids[0])
    with raises(UnknownIdError, ids=["no-such-quote"]):
        FOOTPRINTS.places([first, "no-such-quote"])
    with raises(UnknownIdError, ids=["small-000-30-90"]):
        FOOTPRINTS.places([first, first])
    with pytest.raises(UsageError, match="never row numbers"):
        FOOTPRINTS.places([0, 1])
    with pytest.raises(UsageError, match="never row numbers"):
        FOOTPRINTS.places(np.array([0, 1]))


def test_a_quote_of_weight_zero_leaves_nothing_and_is_not_counted():
    weights = np.ones(len(QUOTES))
    weights[[3, 8]] = 0.0
    found = footprints_of(QUOTES, HESTON, START, weights=weights)
    silent = QUOTES.ids[[3, 8]]
    assert not found.rows[[3, 8]].any()
    assert found.total().count == len(QUOTES) - 2
    assert found.total().less(found, found.places(silent)) == found.total()
    assert found.total() == footprints_of(QUOTES.without(silent), HESTON, START, weights=np.ones(538)).total()


def test_an_empty_book_leaves_nothing_behind():
    nothing = footprints_of(QUOTES[[]], HESTON, START)
    assert len(nothing) == 0
    assert nothing.schema == FOOTPRINTS.schema
    assert nothing.total() + FOOTPRINTS.total() == FOOTPRINTS.total()


def test_one_price_too_large_for_the_grid_refuses_the_whole_batch_by_name():
    prices = QUOTES.observed.copy()
    prices[[4, 7]] = 1e12
    with raises(RefusedError, column="residual", ids=["small-000-60-100", "small-001-30-100"]) as raised:
        footprints_of(QUOTES.with_observed(prices), HESTON, START)
    assert raised.value.ids == QUOTES.ids[[4, 7]].tolist()
    assert raised.value.column == "residual"


def test_a_coarser_grid_takes_larger_prices():
    prices = QUOTES.observed.copy()
    prices[4] = 1e12
    coarse = footprints_of(QUOTES.with_observed(prices), HESTON, START, grid=20)
    assert abs(coarse.rows[4, -1] - 1e12 * 2**20) < 1e-9 * 1e12 * 2**20


class Silent(so.Heston):
    """Has no sensitivity to give at one strike."""

    def linearize(self, theta, contracts):
        price, jacobian = super().linearize(theta, contracts)
        return price, np.where((contracts.strike == 100.0)[:, None] & (np.arange(5) == 2), np.nan, jacobian)


def test_a_model_without_a_number_refuses_the_whole_batch_and_names_the_column():
    with raises(RefusedError, column="vol_of_vol", largest=2097152.0) as raised:
        footprints_of(QUOTES, Silent(), START)
    assert len(raised.value.ids) == int((QUOTES.contracts.strike == 100.0).sum())


def test_the_digest_names_the_footprints_whatever_their_order():
    rows = np.random.default_rng(1).permutation(len(QUOTES))
    assert footprints_of(QUOTES[rows], HESTON, START).digest() == FOOTPRINTS.digest()
    assert FOOTPRINTS.without(QUOTES.ids[:1]).digest() != FOOTPRINTS.digest()
    swapped = Footprints(FOOTPRINTS.schema, QUOTES.ids[::-1].copy(), FOOTPRINTS.rows)
    assert swapped.digest() != FOOTPRINTS.digest()


def test_footprints_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        FOOTPRINTS.rows[0, 0] = 1


def test_rows_that_do_not_match_are_refused():
    schema = Schema("line", ("slope",), reference=(0.0,), exponents=(41, 41), residual="price", weights="none")
    with raises(UsageError, count=1):
        Footprints(schema, np.array(["a"]), np.zeros((1, 3), np.int64))
    with raises(UsageError, id="a", repeats=1):
        Footprints(schema, np.array(["a", "a"]), np.zeros((2, 2), np.int64))
