"""A value has one string of bytes, and other bytes are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.assurance.canonical import DEEPEST, canonical, from_canonical, parse
from strikeout.errors import RefusedError, UsageError
from tests.raising import raises

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back_from_its_bytes(value):
    assert from_canonical(canonical(value)) == value


def test_the_order_of_keys_does_not_show():
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == canonical({"a": {"c": 3, "d": 2}, "b": 1})
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == b'{"a":{"c":3,"d":2},"b":1}'


def test_a_letter_outside_ascii_is_escaped():
    assert canonical(["é", "𝄞"]) == b'["\\u00e9","\\ud834\\udd1e"]'


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0.5, "0.5"),
        ({"price": {"of": [1, 2.0]}}, r"'of'\[1\]"),
        (float("nan"), "nan"),
        (np.float64(1), "float64"),
        (np.int64(1), "int64"),
        ({1: "a"}, "key 1"),
        (b"bytes", "bytes"),
        ({"a": {1, 2}}, "set"),
        ("\ud800", "not Unicode"),
        ({"\udfff": 1}, "not Unicode"),
    ],
)
def test_what_has_no_single_spelling_is_refused_and_named(value, found):
    with pytest.raises(UsageError, match=found):
        canonical(value)


def test_a_number_too_long_to_be_read_back_is_refused():
    assert from_canonical(canonical([10**63 - 1, 1 - 10**63])) == [10**63 - 1, 1 - 10**63]
    for number in (10**63, -(10**63), 10**5000):
        with raises(UsageError, place="the value"):
            canonical(number)


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_values_nested_too_deep_to_be_read_back_are_refused():
    assert from_canonical(canonical(nested(DEEPEST))) == nested(DEEPEST)
    for depth in (DEEPEST + 1, 500):
        with pytest.raises(UsageError, match="inside each other"):
            canonical(nested(depth))


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"[" * 5_700 + b"]" * 5_700,
        b"1" * 65,
        b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
        b"[1.5]",
        b"[NaN]",
    ],
    ids=lambda data: repr(data[:16]),
)
def test_what_would_take_the_program_down_is_a_refusal(data):
    with pytest.raises(RefusedError, match="cannot be read"):
        from_canonical(data)


def test_no_more_bytes_are_read_than_asked_for():
    assert parse(b'["a"]', most=5) == ["a"]
    with pytest.raises(ValueError, match="at most 4"):
        parse(b'["a"]', most=4)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"a":1,"a":1}',
        b'{"b":1,"a":1}',
        b'{"a": 1}',
        b'{"a":1}\n',
        b'{"a":1.0}',
        b'{"a":1e3}',
        b'{"a":NaN}',
        b'{"a":-0}',
        b'"\\u0041"',
        b'"\\u00E9"',
        b'"\\ud800"',
        '"é"'.encode(),
        b"[" * 100_000,
        b"\xff",
    ],
    ids=lambda data: repr(data[:16]),
)
def test_bytes_written_in_another_way_are_refused(data):
    with pytest.raises(RefusedError, match="Canonical bytes"):
        from_canonical(data)


def test_the_bytes_are_those_any_json_library_reads():
    assert json.loads(canonical({"a": [1, "x", None, True]})) == {"a": [1, "x", None, True]}
