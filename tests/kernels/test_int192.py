"""Arrays of 192-bit integers against Python's own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.kernels import exact, int192

wide = st.integers(min_value=-(2**191), max_value=2**191 - 1)


def wrapped(value: int) -> int:
    return (value + 2**191) % 2**192 - 2**191


@given(st.lists(wide, min_size=1, max_size=9), st.data())
def test_sums_of_groups_are_those_of_python_modulo_2_to_the_192(values, data):
    starts = sorted({0, *data.draw(st.lists(st.integers(0, len(values) - 1), max_size=3))})
    got = exact.to_integers(int192.sums(exact.from_integers(values), np.array(starts)))
    ends = [*starts[1:], len(values)]
    assert got == [wrapped(sum(values[a:b])) for a, b in zip(starts, ends, strict=True)]


@given(st.lists(wide, min_size=1, max_size=9), st.data())
def test_the_compiled_sums_of_groups_have_the_bits_of_their_twin(values, data):
    starts = np.array(sorted({0, *data.draw(st.lists(st.integers(0, len(values) - 1), max_size=3))}))
    given = exact.from_integers(values * 4).reshape(4, -1, 3).swapaxes(0, 1)  # not contiguous
    assert int192.sums(given, starts).tolist() == int192.sums_twin(given, starts).tolist()


tables = st.dictionaries(
    st.tuples(st.sampled_from([0.25, 0.5, 1.0]), st.sampled_from([-2.0, -1.0, 0.0, 1.0])),
    st.tuples(wide, wide, st.integers(-3, 3)),
    max_size=8,
)


def table_of(rows: dict) -> int192.Table:
    keys = sorted(rows)
    sums = exact.from_integers([value for key in keys for value in rows[key][:2]]).reshape(-1, 2, 3)
    return int192.Table(np.array(keys).reshape(-1, 2), sums, np.array([rows[key][2] for key in keys], np.int64))


@given(tables, tables, st.booleans())
def test_two_tables_merge_key_by_key_and_the_twin_has_the_same_bits(a, b, subtract):
    sign, none = (-1 if subtract else 1), (0, 0, 0)
    wanted = {
        key: [x + sign * y for x, y in zip(a.get(key, none), b.get(key, none), strict=True)] for key in sorted({*a, *b})
    }
    for merged in (int192.merged, int192.merged_twin):
        got = merged(table_of(a), table_of(b), subtract=subtract)
        assert [tuple(key) for key in got.keys.tolist()] == list(wanted)
        assert exact.to_integers(got.sums) == [wrapped(x) for row in wanted.values() for x in row[:2]]
        assert got.counts.tolist() == [row[2] for row in wanted.values()]


def test_the_compiled_merge_refuses_tables_whose_keys_do_not_ascend():
    module = pytest.importorskip("strikeout.kernels._native")
    one = table_of({(0.5, 1.0): (1, 2, 1), (0.5, 2.0): (3, 4, 1)})
    swapped = int192.Table(np.ascontiguousarray(one.keys[::-1]), one.sums, one.counts)
    with pytest.raises(ValueError, match="ascend"):
        module.exact_merge(*one, *swapped, False)


@given(st.lists(wide, min_size=1, max_size=5))
def test_what_is_negated_cancels(values):
    given = exact.from_integers(values)
    assert exact.to_integers(int192.negated(given)) == [wrapped(-value) for value in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5), st.integers(0, 128))
def test_an_integer_is_placed_at_any_bit(values, at):
    got = exact.to_integers(int192.placed(np.array(values, np.int64), at))
    assert got == [value << at for value in values]


@pytest.mark.parametrize("at", [1, 63, 64, 65, 127, 129, 191])
def test_bits_that_leave_at_the_top_are_gone(at):
    assert exact.to_integers(int192.placed(np.array([-3, 5]), at)) == [wrapped(-3 << at), wrapped(5 << at)]


@given(st.lists(wide, min_size=1, max_size=5), st.integers(-200, 0))
def test_reading_errs_by_at_most_one_and_a_half_units_in_the_last_place(values, exponent):
    read = int192.read(exact.from_integers(values), exponent).tolist()
    for got, value in zip(read, values, strict=True):
        unit = Fraction(2) ** exponent
        # A unit in the last place is at most 2^-52 of the value.
        assert abs(Fraction(got) - value * unit) <= (abs(value) * Fraction(3, 2**53) + 1) * unit


@given(st.lists(wide, min_size=1, max_size=5), st.integers(-900, 800))
def test_the_compiled_reading_has_the_bits_of_its_twin(values, exponent):
    given = exact.from_integers([0, -1, *values])
    assert int192.read(given, exponent).tobytes() == int192.read_twin(given, exponent).tobytes()
