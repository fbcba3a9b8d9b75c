"""Every exact state comes back from its bytes to the bit, and no other bytes are read as one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance import state_codec
from strikeout.assurance.state_codec import ShardRows, StateKind
from strikeout.book import state_store
from strikeout.book.linearization import BookLinearization
from strikeout.errors import RefusedError

HAS = np.arange(600) % 3 != 1


@dataclass(frozen=True)
class Case:
    kind: StateKind
    data: bytes
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    is_same: Callable[[Any], bool]


@pytest.fixture(scope="module", params=[None, "date"], ids=["plain", "panel"])
def found(request) -> so.results.Calibration:
    quotes = so.synthetic.random_quotes(600, maturities=6, seed=7)
    dates = [f"2024-01-{2 + row % 3:02d}" for row in range(len(quotes))]
    dated = so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"date": dates})
    return so.calibrate(dated, so.Heston(), panel=request.param)


@pytest.fixture(scope="module")
def cases(found) -> dict[StateKind, Case]:
    taken = state_store.compute_footprints(found, entry=7)
    linearization, footprints = taken.linearization, taken.footprints
    schema, first = linearization.schema, next(iter(footprints.blocks.values()))
    system = replace(footprints.system, held=frozenset())
    moments = so.states.moments_of(found.quotes, basis=so.states.Basis("scattered", nodes=8, expiry_nodes=4))
    rows = ShardRows(HAS[: len(first)], first.rows[HAS[: len(first)]])
    listed = [
        Case(
            StateKind.FOOTPRINTS,
            state_codec.encode_footprints(schema, rows),
            lambda data: state_codec.decode_footprints(schema, data, columns=linearization.columns),
            lambda value: state_codec.encode_footprints(schema, value),
            lambda value: np.array_equal(value.has, rows.has) and np.array_equal(value.rows, rows.rows),
        ),
        Case(
            StateKind.SHARD,
            state_codec.encode_state(schema, system),
            lambda data: state_codec.decode_state(schema, linearization.schemas, linearization.latent, data),
            lambda value: state_codec.encode_state(schema, value),
            lambda value: value == system,
        ),
        Case(
            StateKind.LINEARIZATION,
            linearization.to_bytes(),
            BookLinearization.from_bytes,
            BookLinearization.to_bytes,
            lambda value: (
                (value.system, value.start, value.entry, value.model.name, value.panel, value.references)
                == (footprints.system, found.state, 7, found.model.name, found.panel, dict(found.references))
            ),
        ),
        Case(
            StateKind.MOMENTS,
            state_codec.encode_moments(moments),
            state_codec.decode_moments,
            state_codec.encode_moments,
            lambda value: value == moments,
        ),
    ]
    return {case.kind: case for case in listed}


EVERY_KIND = pytest.mark.parametrize("kind", StateKind)


def with_header(data: bytes, **changes: Any) -> bytes:
    line, _, rest = data.partition(b"\n")
    header = {**json.loads(line), **changes}
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode() + b"\n" + rest


@EVERY_KIND
def test_a_state_comes_back_to_the_bit(cases, kind):
    case = cases[kind]
    value = case.decode(case.data)
    assert case.is_same(value)
    assert case.encode(value) == case.data


def test_footprints_are_found_by_their_place_in_the_shard(cases, found):
    case, first = cases[StateKind.FOOTPRINTS], next(iter(found.footprints.blocks.values()))
    assert np.array_equal(case.decode(case.data).at(np.array([3, 5])), first.rows[[3, 5]])


@EVERY_KIND
@pytest.mark.parametrize("cut", [0, 3, 45, 200, -1])
def test_bytes_that_end_too_soon_are_refused(cases, kind, cut):
    with pytest.raises(RefusedError):
        cases[kind].decode(cases[kind].data[:cut])


@EVERY_KIND
def test_bytes_of_another_kind_format_or_length_are_refused(cases, kind):
    case = cases[kind]
    others = [other.data for other in cases.values() if other.kind is not kind]
    changed = [with_header(case.data, format="strikeout state 0"), with_header(case.data, facts={})]
    changed += [with_header(case.data, arrays=[]), with_header(case.data, arrays=[["rows", "<O8", [1]]])]
    for data in (*others, *changed, case.data + b"\0", b"null\n", b"[]\n", b"1\n"):
        with pytest.raises(RefusedError):
            case.decode(data)


def test_states_at_another_reference_are_refused(cases, found):
    schema = found.state.schema
    with pytest.raises(RefusedError):
        state_codec.decode_footprints(schema, cases[StateKind.FOOTPRINTS].data)
    with pytest.raises(RefusedError):
        state_codec.decode_state(schema, {"": schema}, None, cases[StateKind.SHARD].data)


@EVERY_KIND
def test_all_values_have_eight_bytes_after_a_header_of_one_line(cases, kind):
    """A search for residue compares them word by word from the end."""
    line, _, rest = cases[kind].data.partition(b"\n")
    header = json.loads(line)
    assert header["kind"] == kind.value
    assert len(rest) == 8 * sum(int(np.prod(shape)) for _, _, shape in header["arrays"])
