"""States gathered from a lake: the bits of the quotes whatever the engine, and removal as if never seen."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout.errors import NothingMeantError, RefusedError, UnreadableFileError, UsageError
from strikeout.scale import Here, Processes
from strikeout.states import Moments
from tests.scale.conftest import DAYS, day_of_quotes

HESTON = so.Heston()


@pytest.fixture(scope="module")
def gathered(lake):
    return so.scale.gather(lake, tags="licence", engine="here")


@dataclass(frozen=True)
class Shuffled:
    """An engine that does everything an engine may do: any order, some batches twice."""

    seed: int
    workers: int = 2

    def answers(self, task, batches):
        order = np.random.default_rng(self.seed).permutation(2 * len(batches)) % len(batches)
        return (task(batches[place]) for place in order)


@dataclass(frozen=True)
class Tampering:
    """An engine that answers one batch twice and changes what comes back."""

    change: object
    workers: int = 2

    def answers(self, task, batches):
        for batch in batches:
            yield task(batch)
        yield self.change(task(batches[0]))


def whole(days):
    return Moments.total([so.states.moments_of(quotes) for quotes in days])


def test_the_sum_is_the_moments_of_all_quotes(days, gathered):
    assert gathered.total() == whole(days)
    assert gathered.count == sum(map(len, days))
    assert so.calibrate(gathered, HESTON).parameters == so.calibrate(whole(days), HESTON).parameters


@pytest.mark.parametrize("engine", [Shuffled(0), Shuffled(1), Processes(2)], ids=["order 0", "order 1", "processes"])
def test_engine_order_and_repeats_change_no_bit(lake, gathered, engine):
    found = so.scale.gather(lake, tags="licence", engine=engine)
    assert found.digest() == gathered.digest()
    assert [part.state.digest() for part in found.parts] == [part.state.digest() for part in gathered.parts]


def test_a_licence_removed_by_tag_was_never_seen(days, gathered):
    never = whole([quotes[quotes.labels["licence"] != "L3"] for quotes in days])
    left = gathered.without(licence="L3")
    assert left.total() == never
    assert left.count < gathered.count
    assert so.calibrate(left, HESTON).parameters == so.calibrate(never, HESTON).parameters


def test_removal_by_tag_reads_no_file(days, lake, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(lake.path, copy)
    found = so.scale.gather(so.scale.Lake(copy), tags="licence", engine="here")
    shutil.rmtree(copy)
    assert len(found.without(licence="L3").total()) == sum((q.labels["licence"] != "L3").sum() for q in days)


def test_a_partition_is_a_tag_too(days, gathered):
    left = gathered.without(partition=f"{DAYS[0]}.parquet")
    assert left.total() == whole(days[1:])
    assert gathered.only(partition=[f"{day}.parquet" for day in DAYS[:2]]).total() == whole(days[:2])


def test_quotes_removed_by_condition_were_never_seen(days, gathered):
    left = gathered.without_quotes("strike > 110", partitions=[f"{DAYS[1]}.parquet"])
    never = [q[q.contracts.strike <= 110.0] if place == 1 else q for place, q in enumerate(days)]
    assert left.total() == whole(never)


def test_forwards_that_depend_on_removed_quotes_are_refitted(tmp_path):
    T, K, right = (one.ravel() for one in np.meshgrid([0.1, 0.5, 1.0], np.arange(80.0, 121.0, 5.0), ["C", "P"]))
    contracts = so.Contracts(forward=100.0, strike=K, expiry=T, discount=1.0, is_call=right == "C")
    draws = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "id": [f"q{i}" for i in range(len(K))],
            "underlying": "SPX",
            "date": "2024-03-01",
            "licence": np.where(draws.random(len(K)) < 0.3, "L3", "L1"),
            "strike": K,
            "expiry_years": T,
            "right": right,
            "price": HESTON.price([2.0, 0.04, 0.4, -0.7, 0.05], contracts) + draws.normal(0.0, 1e-3, len(K)),
        }
    )
    frame.write_parquet(tmp_path / "day.parquet")
    lake = so.scale.Lake(tmp_path, constants={"rate": 0.0}, forwards="parity")
    found = so.scale.gather(lake, tags="licence", engine="here")
    assert found.receipts[0].is_joint
    quotes = lake.read("day.parquet").quotes
    never = quotes.without(quotes.ids[quotes.labels["licence"] == "L3"])
    assert found.without(licence="L3").total() == so.states.moments_of(never)
    assert found.only(licence="L1").total() != so.states.moments_of(never)


def test_the_cache_answers_for_unchanged_files_only(lake, days, tmp_path):
    copy, kept = tmp_path / "copy", tmp_path / "states"
    shutil.copytree(lake.path, copy)
    first = so.scale.gather(so.scale.Lake(copy), cache=kept, engine="here")
    second = so.scale.gather(so.scale.Lake(copy), cache=kept, engine="here")
    assert (first.reused, second.reused) == (0, len(days))
    assert first.digest() == second.digest()
    so.write_quotes(days[0][:-1], copy / f"{DAYS[0]}.parquet")
    third = so.scale.gather(so.scale.Lake(copy), cache=kept, engine="here")
    assert third.reused == len(days) - 1
    assert third.total() == whole([days[0][:-1], *days[1:]])


def test_a_damaged_file_of_the_cache_is_computed_again(lake, tmp_path):
    first = so.scale.gather(lake, cache=tmp_path, engine="here")
    for place, file in enumerate(sorted(tmp_path.rglob("*.states"))):
        data = bytearray(file.read_bytes())
        data[place * len(data) // 8] ^= 1
        file.write_bytes(data[: len(data) - (place == 3)])
    again = so.scale.gather(lake, cache=tmp_path, engine="here")
    assert (again.reused, again.digest()) == (0, first.digest())


def test_verify_finds_a_state_that_the_files_do_not_have(gathered):
    assert gathered.verify(share=1.0).is_equal
    wrong = replace(gathered, parts=gathered.parts[1:])
    found = wrong.verify(share=1.0)
    assert found.checked == len(DAYS)
    assert found.wrong == (gathered.parts[0].partition,)


def test_a_book_in_two_partitions_is_refused(days, tmp_path):
    so.write_quotes(days[0], tmp_path / "a.parquet")
    so.write_quotes(days[0][:3], tmp_path / "b.parquet")
    with pytest.raises(RefusedError) as caught:
        so.scale.gather(tmp_path, engine="here")
    assert caught.value.partitions == ["a.parquet", "b.parquet"]


def test_quotes_that_moments_cannot_hold_are_left_out_and_listed(days, tmp_path):
    quotes = days[0]
    weight = quotes.weight.copy()
    weight[5] = 1e13
    odd = so.Quotes(
        ids=quotes.ids,
        contracts=quotes.contracts,
        observed=quotes.observed,
        weight=weight,
        labels=dict(quotes.labels),
    )
    so.write_quotes(odd, tmp_path / "a.parquet")
    receipt = so.scale.gather(tmp_path, engine="here").receipts[0]
    assert (receipt.left_out, receipt.left_out_ids, receipt.count) == (1, (str(quotes.ids[5]),), len(quotes) - 1)


def test_a_partition_that_cannot_be_read_is_named(days, tmp_path):
    so.write_quotes(days[0], tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("no,quotes\n1,2\n")
    with pytest.raises(RefusedError) as caught:
        so.scale.gather(tmp_path, engine="here")
    assert caught.value.partition == "b.csv"


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda answer: replace(answer, canary="0" * 64), "worker"),
        (lambda answer: replace(answer, sealed=answer.sealed[:-1]), "workers"),
    ],
    ids=["other arithmetic", "two answers"],
)
def test_an_answer_that_cannot_be_right_is_refused(lake, change, fact):
    with pytest.raises(RefusedError) as caught:
        so.scale.gather(lake, engine=Tampering(change))
    assert fact in caught.value.facts


def test_lots_without_an_answer_are_refused(lake):
    @dataclass(frozen=True)
    class Losing:
        workers: int = 2

        def answers(self, task, batches):
            return map(task, batches[:-1])

    with pytest.raises(RefusedError) as caught:
        so.scale.gather(lake, engine=Losing())
    assert caught.value.batches == 1


def test_several_underlyings_are_not_added_up_unless_pooled(days, tmp_path):
    so.write_quotes(days[0], tmp_path / "a.parquet")
    so.write_quotes(day_of_quotes(DAYS[0], 9, underlying="NDX", forward=200.0), tmp_path / "b.parquet")
    found = so.scale.gather(tmp_path, tags="underlying", engine="here")
    assert found.underlyings == ("NDX", "SPX")
    with pytest.raises(UsageError):
        so.calibrate(found, HESTON)
    assert found.only(underlying="SPX").total() == so.states.moments_of(days[0])
    assert len(found.total(pool=True)) == found.count


def test_names_that_mean_nothing_are_refused(gathered, tmp_path):
    with pytest.raises(UsageError):
        gathered.without(source="x")
    with pytest.raises(UsageError):
        gathered.without()
    with pytest.raises(NothingMeantError):
        gathered.without(licence="L9")
    with pytest.raises(UnreadableFileError):
        so.scale.gather(tmp_path)
    with pytest.raises(UsageError):
        so.scale.gather(gathered.plan.lake, engine="abacus")


def test_parts_of_a_path_are_columns(days, tmp_path):
    folder = tmp_path / "licence=L7"
    folder.mkdir()
    quotes = days[0]
    plain = so.Quotes(
        ids=quotes.ids,
        contracts=quotes.contracts,
        observed=quotes.observed,
        labels={name: quotes.labels[name] for name in ("underlying", "date")},
    )
    so.write_quotes(plain, folder / "a.parquet")
    found = so.scale.gather(tmp_path, tags="licence", engine="here")
    assert [part.tags for part in found.parts] == [("L7",)]
    assert found.total() == so.states.moments_of(quotes)


def test_here_is_the_definition_of_every_engine(lake):
    assert list(Here().answers(len, [(1, 2), ()])) == [2, 0]
    assert Processes(3).workers == 3
    assert lake.partitions == tuple(f"{day}.parquet" for day in DAYS)
