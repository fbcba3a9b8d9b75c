"""An owner of quotes, or a person with an old file, wants to change what the states of several owners add up to."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.assurance.state_codec import StateKind, decode_moments, encode, encode_moments
from strikeout.errors import RefusedError, StrikeoutError, UsageError
from strikeout.scale import exchange, joint_state, read_states, write_states
from strikeout.statistics.moments import Moments
from strikeout.store.keyring import Keyring

QUOTES = so.paper.quotes("small", seed=7)
STATE = so.states.moments_of(QUOTES[:40])


@pytest.fixture
def north(tmp_path):
    return write_states(STATE, tmp_path / "north.states", owner="north", key=tmp_path / "north.key")


@pytest.fixture
def south(tmp_path):
    return write_states(
        so.states.moments_of(QUOTES[40:90]), tmp_path / "south.states", owner="south", key=tmp_path / "s.key"
    )


def test_by_signing_in_the_name_of_another(tmp_path, north, south):
    trusted = {"north": north.public, "south": south.public}
    write_states(STATE, tmp_path / "forged.states", owner="south", key=tmp_path / "north.key")
    with pytest.raises(RefusedError) as refused:
        read_states(tmp_path / "forged.states", key=trusted)
    assert refused.value.facts["owner"] == "south"
    assert read_states(tmp_path / "north.states", key=trusted).owner == "north"


def test_by_taking_part_under_two_names(tmp_path, north):
    """One that withdraws under one name would stay under the other."""
    again = write_states(STATE, tmp_path / "again.states", owner="north 2", key=tmp_path / "north.key")
    with pytest.raises(UsageError) as refused:
        joint_state([north, again], without=["north"])
    assert refused.value.facts["owner"] == "north 2"


def test_by_giving_an_older_file_once_more(tmp_path, north):
    """The signature is as good as ever; only who knows the latest digest can tell."""
    old = (tmp_path / "north.states").read_bytes()
    latest = write_states(
        so.states.moments_of(QUOTES[:30]), tmp_path / "north.states", owner="north", key=tmp_path / "north.key"
    )
    assert len(read_states(tmp_path / "north.states", key=north.public, digest=latest.state.digest()).state) == 30
    (tmp_path / "north.states").write_bytes(old)
    with pytest.raises(RefusedError):
        read_states(tmp_path / "north.states", key=north.public, digest=latest.state.digest())


@pytest.mark.parametrize("change", ["owner", "count", "digest", "public", "format"])
def test_by_changing_a_field_of_the_head(tmp_path, north, change):
    data = (tmp_path / "north.states").read_bytes()
    line, _, rest = data.partition(b"\n")
    head = exchange.parse(line)
    for value in ("x", 7, None, [], {"a": 1}, "00" * 32):
        (tmp_path / "changed").write_bytes(canonical({**head, change: value}) + b"\n" + rest)
        with pytest.raises(RefusedError):
            read_states(tmp_path / "changed", key={"north": north.public, "x": north.public})


def forged(**arrays: object) -> bytes:
    """A state with other arrays in it, as an owner with a key of his own can write it."""
    basis = STATE.basis
    facts = {"basis": [basis.expiries, basis.nodes, basis.expiry_nodes], "weights": STATE.weights}
    own = {"cells": STATE.cells, "words": STATE.words, "counts": STATE.counts}
    facts |= {name: value for name, value in arrays.items() if name in facts}
    return encode(StateKind.MOMENTS, facts, own | {name: value for name, value in arrays.items() if name in own})


def swapped() -> np.ndarray:
    cells = STATE.cells.copy()
    cells[[0, 1]] = cells[[1, 0]]
    return cells


def negative() -> np.ndarray:
    words = STATE.words.copy()
    words[0, -1, 2] = np.uint64(1) << np.uint64(63)
    return words


COUNTS = STATE.counts
FORGERIES = {
    "counts that overflow": {"counts": np.full_like(COUNTS, 2**62)},
    "counts whose sum overflows": {"counts": np.full_like(COUNTS, 2**63 // len(COUNTS))},
    "no quotes": {"counts": np.zeros_like(COUNTS)},
    "fewer than no quotes": {"counts": -COUNTS},
    "fewer counts": {"counts": COUNTS[:-1]},
    "counts of another type": {"counts": COUNTS.astype(float)},
    "words of another width": {"words": STATE.words[:, :-1]},
    "words of another type": {"words": STATE.words.astype(np.int64)},
    "a negative weight": {"words": negative()},
    "cells in another order": {"cells": swapped()},
    "a cell twice": {"cells": STATE.cells[np.r_[0, 0, 2 : len(COUNTS)]]},
    "a cell that is no number": {"cells": np.where(STATE.cells == STATE.cells[0, 0], np.nan, STATE.cells)},
    "a basis without end": {"basis": ["shared", 10**9, 12]},
    "weights that are a list": {"weights": ["given"]},
}


@pytest.mark.parametrize("name", FORGERIES)
def test_by_sums_that_no_quotes_have(name):
    with pytest.raises(RefusedError):
        decode_moments(forged(**FORGERIES[name]))


def test_an_honest_state_is_read():
    """The control."""
    assert decode_moments(forged()) == STATE
    assert Moments.total([decode_moments(encode_moments(STATE)), STATE]).count == 2 * STATE.count


def test_by_a_file_that_fills_the_memory(tmp_path, north, monkeypatch):
    monkeypatch.setattr(exchange, "LARGEST", 1000)
    with pytest.raises(RefusedError):
        read_states(tmp_path / "north.states", key=north.public)


@pytest.mark.parametrize("seed", range(60))
def test_by_any_changed_byte(tmp_path, north, seed):
    draw, data = np.random.default_rng(seed), bytearray((tmp_path / "north.states").read_bytes())
    data[draw.integers(len(data) if seed % 2 else 300)] ^= 1 << int(draw.integers(8))
    (tmp_path / "changed").write_bytes(data)
    with pytest.raises(StrikeoutError):
        read_states(tmp_path / "changed", key=north.public)


def test_an_owner_that_signs_nonsense_is_refused_with_a_sentence(tmp_path):
    """Trusted, and still not believed: the head is signed and says what the state is not."""
    keys = Keyring.generate()
    signer = keys.signer()
    for rest in (b"", b"junk", encode_moments(STATE)[:-8], b"{}\n"):
        head = {"format": exchange.FORMAT, "owner": "o", "public": signer.public, "count": 1, "digest": "00"}
        body = canonical(head) + b"\n" + rest
        (tmp_path / "o.states").write_bytes(body + signer.sign(body).encode())
        with pytest.raises(RefusedError):
            read_states(tmp_path / "o.states", key=signer.public)
