"""A value has one string of bytes, and other bytes are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.errors import RefusedError, UsageError

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
        ("\ud800", "no Unicode"),
        ({"\udfff": 1}, "no Unicode"),
    ],
)
def test_what_has_no_single_spelling_is_refused_and_named(value, found):
    with pytest.raises(UsageError, match=found):
        canonical(value)


def test_a_number_too_long_to_be_read_back_is_refused():
    with pytest.raises(UsageError, match="4300"):
        canonical(10**5000)


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
