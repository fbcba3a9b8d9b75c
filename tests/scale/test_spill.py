"""States on disk: what a driver holds in memory does not grow with the partitions."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

import strikeout as so
from strikeout.models.heston import Heston
from strikeout.scale import At, spill
from strikeout.scale.partition import Plan, seal, states_of, unseal
from strikeout.scale.spill import RunningSum, Spill

TAGS = ("licence",)


@pytest.fixture(scope="module")
def sealed(lake):
    """The sealed states of one partition."""
    plan = Plan(lake, TAGS)
    name = lake.partitions[0]
    return seal(*states_of(plan, name, lake.content(name)))


def held_after(count, lake, sealed):
    """Bytes of memory that are in use once the states of so many partitions were kept."""
    kept = Spill(Plan(lake, TAGS))
    parts = []
    tracemalloc.start()
    for _ in range(count):
        parts += kept.keep(sealed, unseal(sealed)[1])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held, parts


def test_ten_times_as_many_partitions_take_hardly_more_memory(lake, sealed):
    few, _ = held_after(8, lake, sealed)
    many, parts = held_after(80, lake, sealed)
    each = (many - few) / 72  # of further partitions: names, counts and places, and a sum of 2^k states now and then
    assert each < 2_000 < 0.1 * len(sealed)
    assert len(parts) == 160


def test_a_state_is_read_as_it_was_written(lake, sealed):
    _, parts = held_after(3, lake, sealed)
    states = [part.state for part in unseal(sealed)[1]]
    assert [part.state for part in parts] == 3 * states


@pytest.mark.parametrize("count", range(9))
def test_a_running_sum_is_the_sum_however_often_it_is_asked_for(lake, sealed, count):
    plan = Plan(lake, TAGS)
    state = unseal(sealed)[1][0].state
    running = RunningSum(plan)
    for n in range(count):
        running.add(state)
        assert running.total() == plan.total([state] * (n + 1))
    assert running.total() == plan.total([state] * count)


@pytest.mark.parametrize("at", [None, At(Heston(expiries="shared")), At(Heston(expiries="shared"), panel="date")])
def test_sums_from_disk_have_the_bits_of_those_in_memory(lake, monkeypatch, at):
    def every():
        found = so.scale.gather(lake, tags=TAGS, at=at, engine="here")
        fewer = replace(found, parts=found.parts[1:])
        return [
            one.total().digest()
            for one in (found, found.without(licence="L3"), found.only(partition=lake.partitions[1]), fewer)
        ]

    in_memory = every()
    monkeypatch.setattr(spill, "MOST_SUMS", 1)
    assert every() == in_memory
    assert len(set(in_memory)) == 4


def test_the_states_of_a_gathering_leave_no_file_behind(lake, tmp_path):
    cache = tmp_path / "cache"
    gathered = so.scale.gather(lake, tags=TAGS, cache=cache, engine="here")
    assert {path.suffix for path in cache.rglob("*") if path.is_file()} == {".states"}
    for path in cache.rglob("*.states"):
        path.unlink()
    assert gathered.without(licence="L3").parts[0].state.count > 0  # it needs none of the cache
