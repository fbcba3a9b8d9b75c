"""Arrays of 192-bit integers against Python's own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.kernels import exact, words

wide = st.integers(min_value=-(2**191), max_value=2**191 - 1)


def wrapped(value: int) -> int:
    return (value + 2**191) % 2**192 - 2**191


@given(st.lists(wide, min_size=1, max_size=9), st.data())
def test_sums_of_groups_are_those_of_python_modulo_2_to_the_192(values, data):
    starts = sorted({0, *data.draw(st.lists(st.integers(0, len(values) - 1), max_size=3))})
    got = exact.to_integers(words.sums(exact.from_integers(values), np.array(starts)))
    ends = [*starts[1:], len(values)]
    assert got == [wrapped(sum(values[a:b])) for a, b in zip(starts, ends, strict=True)]


@given(st.lists(wide, min_size=1, max_size=5))
def test_what_is_negated_cancels(values):
    given = exact.from_integers(values)
    assert exact.to_integers(words.negated(given)) == [wrapped(-value) for value in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5), st.integers(0, 128))
def test_an_integer_is_placed_at_any_bit(values, at):
    got = exact.to_integers(words.placed(np.array(values, np.int64), at))
    assert got == [value << at for value in values]


@pytest.mark.parametrize("at", [1, 63, 64, 65, 127, 129, 191])
def test_bits_that_leave_at_the_top_are_gone(at):
    assert exact.to_integers(words.placed(np.array([-3, 5]), at)) == [wrapped(-3 << at), wrapped(5 << at)]


@given(st.lists(wide, min_size=1, max_size=5), st.integers(-200, 0))
def test_reading_errs_by_at_most_one_and_a_half_units_in_the_last_place(values, exponent):
    read = words.read(exact.from_integers(values), exponent).tolist()
    for got, value in zip(read, values, strict=True):
        unit = Fraction(2) ** exponent
        # A unit in the last place is at most 2^-52 of the value.
        assert abs(Fraction(got) - value * unit) <= (abs(value) * Fraction(3, 2**53) + 1) * unit
