"""Forwards by put-call parity, whatever the quotes: a function of the slice, or an honest none."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.errors import RefusedError
from strikeout.kernels.parity import Quotes
from strikeout.quotes.forwards import derived, underived
from strikeout.quotes.parity import PAIRS, parity_lines
from tests.quotes.chains import chain

numbers = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
strikes = st.sampled_from([1e-3, 1.0, 50.0, 90.0, 95.0, 100.0, 105.0, 110.0, 1e5])
spreads = st.one_of(st.just(np.nan), st.floats(min_value=0.0, max_value=1e4))
years = st.floats(min_value=1e-5, max_value=50.0)
quote = st.tuples(st.integers(0, 3), strikes, st.booleans(), numbers, spreads)


def lines(rows, known, ages, american):
    s, strike, is_call, observed, spread = zip(*rows, strict=True)
    columns = Quotes(np.array(s, np.intp), *map(np.array, (strike, is_call, observed, spread)))
    return parity_lines(columns, years=np.array(ages), discount=np.array(known), american=np.array(american))


def bits(found):
    return [
        getattr(found, name).tobytes() for name in ("forward", "discount", "pairs", "r_squared", "implied", "error")
    ]


slices = st.tuples(
    st.lists(quote, min_size=1, max_size=40),
    st.lists(st.one_of(st.just(np.nan), st.floats(min_value=0.5, max_value=1.1)), min_size=4, max_size=4),
    st.lists(years, min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
)


@example(([(0, 1.0, True, 0.0, 0.1), (0, 1.0, False, 1.0, 0.1)], [np.nan] * 4, [1.0] * 4, [False] * 4))
@given(slices)
def test_any_quotes_give_a_forward_that_can_be_one_or_none(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lines(*case)
    known = np.isfinite(found.forward)
    assert (found.forward[known] > 0.0).all()
    assert (found.discount[known] > 0.0).all()
    assert (found.pairs[known] >= PAIRS).all()
    assert np.isnan(found.discount[~known]).all()


@given(slices, st.randoms(use_true_random=False))
def test_the_order_of_the_quotes_changes_no_bit(case, random):
    rows, *rest = case
    mixed = list(rows)
    random.shuffle(mixed)
    assert bits(lines(mixed, *rest)) == bits(lines(rows, *rest))


@given(slices)
def test_a_slice_is_fitted_as_if_it_were_alone(case):
    rows, *rest = case
    whole = lines(*case)
    for number in {row[0] for row in rows}:
        alone = lines([row for row in rows if row[0] == number], *rest)
        for name in ("forward", "discount", "pairs", "r_squared", "implied", "error"):
            assert getattr(alone, name)[number].tobytes() == getattr(whole, name)[number].tobytes()


@cache
def book() -> so.Quotes:
    return so.inspect_quotes(chain(dates=("2024-03-01", "2024-03-04"), expiries=("2024-04-05", "2024-12-06"))).quotes


@settings(max_examples=40)
@given(st.sets(st.integers(0, 167), max_size=120), st.sets(st.integers(0, 167), max_size=60))
def test_in_one_step_or_two_what_is_left_has_the_forwards_of_a_book_of_its_own(first, second):
    gone = sorted(first | second)
    left = np.setdiff1d(np.arange(len(book())), gone)
    fresh, report = derived(underived(book())[left])
    steps = [book().ids[sorted(first)], book().ids[sorted(second - first)]]
    try:
        once, twice = book().without(book().ids[gone]), book().without(steps[0]).without(steps[1])
    except RefusedError:
        reject()  # a slice had too few pairs, if only on the way
    assert "none" not in report.source
    for found in (once, twice):
        assert (found.contracts.forward == fresh.contracts.forward).all()
        assert (found.contracts.discount == fresh.contracts.discount).all()
