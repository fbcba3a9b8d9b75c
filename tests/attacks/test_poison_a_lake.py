"""A person who can write to the cache of a lake, or runs one of its workers, wants other quotes to be counted.

Whoever seals false states anew (the seal has no key) is found by ``verify``, which computes partitions again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import strikeout as so
from strikeout.errors import RefusedError
from strikeout.scale.partition import seal, unseal
from tests.scale.conftest import DAYS, day_of_quotes

NEW = "2024-03-07"


@pytest.fixture
def folder(tmp_path):
    """Two days, one file each."""
    place = tmp_path / "lake"
    place.mkdir()
    for seed, date in enumerate(DAYS[:2]):
        so.write_quotes(day_of_quotes(date, seed), place / f"{date}.parquet")
    return place


def gathered(folder, **how):
    return so.scale.gather(so.scale.Lake(folder), cache=folder.parent / "cache", engine="here", **how)


def cached(folder):
    """The files of the cache by the partition that they are of."""
    files = (path for path in (folder.parent / "cache").rglob("*.states"))
    return {unseal(path.read_bytes())[0].partition: path for path in files}


def test_by_putting_states_from_before_a_removal_back(folder):
    before = gathered(folder)
    (first, *_) = cached(folder)
    kept = cached(folder)[first].read_bytes()
    day = so.read_quotes(folder / first)
    so.write_quotes(day[10:], folder / first)
    after = gathered(folder)
    assert after.count == before.count - 10
    place = next(path for path in (folder.parent / "cache").rglob("*.states") if _count(path, first) == len(day) - 10)
    place.write_bytes(kept)
    again = gathered(folder)
    assert (again.count, again.reused) == (after.count, 1)
    assert again.total() == after.total()


def _count(path, partition):
    receipt, _ = unseal(path.read_bytes())
    return receipt.count if receipt.partition == partition else None


def test_by_putting_one_partition_in_the_place_of_another(folder):
    honest = gathered(folder)
    first, second = cached(folder).values()
    second.write_bytes(first.read_bytes())
    again = gathered(folder)
    assert again.total() == honest.total()
    assert again.reused == 1


def test_by_sealing_false_states_anew_which_verify_finds(folder):
    honest = gathered(folder)
    (path, other) = cached(folder).values()
    receipt, parts = unseal(path.read_bytes())
    _, others = unseal(other.read_bytes())
    path.write_bytes(seal(receipt, [replace(parts[0], state=others[0].state)]))
    poisoned = gathered(folder)
    assert poisoned.total() != honest.total()
    assert poisoned.verify(share=1.0).wrong == (receipt.partition,)


@dataclass(frozen=True)
class Dishonest:
    """An engine with a worker that changes its answers."""

    change: object
    workers: int = 1

    def answers(self, task, batches):
        return (self.change(task(batch)) for batch in batches)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda answer: replace(answer, sealed=()), id="nothing"),
        pytest.param(lambda answer: replace(answer, sealed=answer.sealed * 2), id="twice"),
        pytest.param(
            lambda answer: replace(answer, sealed=tuple(map(_renamed, answer.sealed))), id="of another partition"
        ),
    ],
)
def test_by_answering_for_other_partitions_than_asked(folder, change):
    with pytest.raises(RefusedError) as refused:
        so.scale.gather(so.scale.Lake(folder), engine=Dishonest(change))
    assert len(refused.value.facts["asked"]) == 1
    assert refused.value.facts["answered"] != refused.value.facts["asked"]


def _renamed(sealed):
    receipt, parts = unseal(sealed)
    return seal(replace(receipt, partition=NEW), parts)
