"""States exchanged between owners: signed, added up, and one of them withdrawn as if never there."""

from __future__ import annotations

import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from strikeout.scale import joint_state, read_states, write_states
from strikeout.states import Moments


@pytest.fixture
def owners(days, tmp_path):
    """Three owners with a day of quotes each: what is in their files."""
    made = []
    for name, quotes in zip(("north", "south", "west"), days, strict=False):
        write_states(
            so.states.moments_of(quotes), tmp_path / f"{name}.states", owner=name, key=tmp_path / f"{name}.key"
        )
        public = write_states(
            so.states.moments_of(quotes), tmp_path / f"{name}.states", owner=name, key=tmp_path / f"{name}.key"
        ).public
        made.append(read_states(tmp_path / f"{name}.states", key=public))
    return made


def test_an_owner_withdraws_as_if_never_there(owners, days):
    assert joint_state(owners) == Moments.total([so.states.moments_of(quotes) for quotes in days[:3]])
    left = joint_state(owners, without=["south"])
    never = Moments.total([so.states.moments_of(days[0]), so.states.moments_of(days[2])])
    assert left == never
    assert so.calibrate(left, so.Heston()).parameters == so.calibrate(never, so.Heston()).parameters


def test_every_changed_byte_is_refused(owners, tmp_path):
    file = tmp_path / "north.states"
    data = file.read_bytes()
    step = len(data) // 60
    refused = 0
    for place in range(0, len(data), step):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(RefusedError):
            read_states(file, key=owners[0].public)
        refused += 1
    assert refused >= 60


def test_only_trusted_keys_and_each_owner_once(owners, tmp_path):
    with pytest.raises(RefusedError) as caught:
        read_states(tmp_path / "north.states", key=owners[1].public)
    assert caught.value.public == owners[0].public
    with pytest.raises(UsageError):
        joint_state([*owners, owners[0]])
    with pytest.raises(UsageError):
        joint_state(owners, without=["east"])
    with pytest.raises(UsageError):
        write_states(owners[0].state, tmp_path / "x", owner=" ", key=tmp_path / "x.key")
    with pytest.raises(UsageError):
        read_states(tmp_path / "absent", key=owners[0].public)
    (tmp_path / "junk").write_bytes(b"junk" * 100)
    with pytest.raises(RefusedError):
        read_states(tmp_path / "junk", key=owners[0].public)
