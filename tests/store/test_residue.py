"""Erased means no byte is left: the files are searched for it, and the search itself is put to the test."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from strikeout import Quotes
from strikeout.store.residue import Needles, needles_of, needles_of_integers, scan
from strikeout.store.sqlite import SqliteStore
from tests.store.books import quotes


def forms(needles: Needles, what: str) -> dict[str, bytes]:
    return {form: needle for needle, (of, form) in needles.found.items() if of == what}


def one(**changes: object) -> Quotes:
    few = quotes(2, seed=77)
    return type(few)(**{"ids": few.ids, "contracts": few.contracts, "observed": few.observed, **changes})


def test_every_number_and_name_of_a_book_is_found_before_it_is_erased(tmp_path):
    book = quotes(40)
    with SqliteStore.create(tmp_path / "a.book") as store:
        with store.writing() as tx:
            tx.add(book)
        needles = needles_of(book)
        found = {(hit.what, hit.form) for hit in scan(store.files(), needles)}
    # What the store writes: eight bytes little-endian of numbers, names as text.
    numbers = ("observed", "weight", "spread", "strike", "expiry", "forward", "discount", "label delta")
    assert found == {(name, "float64") for name in numbers} | {("id", "text")}


@pytest.mark.parametrize("form", ["float64", "decimal text", "hexadecimal text"])
@pytest.mark.parametrize("offset", [0, 1, 5, 4093, 70_001])
def test_a_number_is_found_in_every_form_at_any_byte(tmp_path, form, offset):
    path = tmp_path / "plan.json"
    needle = forms(needles_of(one(observed=[12.3456789, 8.7654321])[:1]), "observed")[form]
    path.write_bytes(bytes(offset) + needle + b"}")
    (hit,) = scan([path], needles_of(one(observed=[12.3456789, 8.7654321])[:1]))
    assert (hit.what, hit.form, hit.path, hit.offset) == ("observed", form, path, offset)


def test_a_number_across_two_blocks_of_reading_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("strikeout.store.residue.BLOCK", 64)
    path = tmp_path / "x"
    needle = forms(needles_of(one()[:1]), "observed")["float64"]
    for offset in range(40, 140):
        path.write_bytes(b"\1" * offset + needle + b"\1" * 90)
        assert {hit.offset for hit in scan([path], needles_of(one()[:1]))} == {offset}


def test_footprints_are_found_in_their_bytes(tmp_path):
    rows = np.array([[-(2**40) - 12345, 7], [2**50 + 1, 2**41 + 3]])
    needles = needles_of_integers("footprint", rows, retained=rows[1:, :1])
    path = tmp_path / "x"
    path.write_bytes(b"..." + rows.tobytes())
    assert [(hit.form, hit.value, hit.offset) for hit in scan([path], needles)] == [
        ("int64", str(-(2**40) - 12345), 3),
        ("int64", str(2**41 + 3), 27),
    ]


@pytest.mark.parametrize("text", [b"112.3456789", b"12.34567891", b"0x12.3456789", b"12.3456789e-4"])
def test_a_number_that_is_part_of_another_is_not_it(tmp_path, text):
    path = tmp_path / "x.csv"
    needles = needles_of(one(observed=[12.3456789, 8.7654321])[:1])
    path.write_bytes(b"a," + text + b",b\n")
    assert scan([path], needles) == []
    path.write_bytes(b"a,-12.3456789,b\n")
    assert [hit.value for hit in scan([path], needles)] == ["12.3456789"]


def test_what_a_retained_quote_has_too_is_not_looked_for():
    book = one(observed=[12.3456789, 12.3456789], ids=["SPX-1", "SPX-1-long"])

    def looked_for(erased: Quotes, retained: Quotes) -> set[str]:
        return {what for what, _ in needles_of(erased, retained=retained).found.values()}

    assert {"observed", "id"} & looked_for(book[:1], book[1:]) == set()
    assert {"observed", "id"} & looked_for(book[1:], book[:1]) == {"id"}


def test_a_file_that_is_gone_holds_nothing(tmp_path):
    assert scan([tmp_path / "gone"], needles_of(one())) == []


def test_two_hundred_random_erasures_leave_no_byte(tmp_path):
    """One book that lives: imports, strike-outs, pages rewritten, and 200 erasures of 1 to 60 quotes."""
    draw = np.random.default_rng(4)
    with SqliteStore.create(tmp_path / "a.book") as store:
        for turn in range(200):
            with store.writing() as tx:
                if tx.now.counts().retained < 700:
                    tx.add(quotes(int(draw.integers(200, 900)), seed=1000 + turn))
                tx.strike(draw.choice(tx.now.quotes().ids, 5, replace=False), entry=turn)
                held = tx.now.quotes(struck=None)
                tx.put("state", "s", held.observed.tobytes())
                for shard in tx.now.shards():  # as doubles, which the scan looks for
                    prices = held.only(list(tx.now.members(shard))).observed
                    tx.put_shard_data(shard, "footprints", prices.tobytes())
                    tx.put_shard_data(shard, "states", np.add.accumulate(prices).tobytes())
            gone = held.only(draw.choice(held.ids, int(draw.integers(1, 61)), replace=False))
            left = held.without(gone.ids)
            with store.writing() as tx:
                tx.erase(gone.ids)
                tx.put("state", "s", left.observed.tobytes())
            assert scan(store.files(), needles_of(gone, retained=left)) == [], turn
        assert store.faults() == []


def test_an_erasure_rewrites_the_file_and_gives_the_space_back(tmp_path):
    path = tmp_path / "a.book"
    with SqliteStore.create(path) as store:
        with store.writing() as tx:
            tx.add(quotes(3000))
        with store.writing() as tx:
            tx.erase(quotes(3000).ids[1:])
        assert store._connection.execute("PRAGMA freelist_count").fetchone() == (0,)
        assert sum(file.stat().st_size for file in store.files() if not file.name.endswith("-shm")) < 80_000


def without_care(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "_scrub", lambda _: None)


def test_without_emptying_the_log_the_scan_finds_what_is_left(tmp_path, monkeypatch):
    """The negative control of the test above: the same erasure, careless."""
    without_care(monkeypatch)
    with SqliteStore.create(tmp_path / "a.book") as store:
        store._connection.execute("PRAGMA secure_delete = OFF")
        with store.writing() as tx:
            tx.add(quotes(600))
        gone = store.now.named(["q-0-0003", "q-0-0400"])
        with store.writing() as tx:
            tx.erase(gone.ids)
        hits = scan(store.files(), needles_of(gone, retained=store.now.quotes()))
        assert {hit.what for hit in hits} >= {"id", "observed", "strike"}


def test_an_erasure_that_a_crash_cut_short_is_finished_when_the_book_is_opened(tmp_path, monkeypatch):
    path, copied = tmp_path / "a.book", tmp_path / "copied.book"
    with SqliteStore.create(path) as store:
        with store.writing() as tx:
            tx.add(quotes(600))
        gone = store.now.named(["q-0-0003", "q-0-0400"])
        with monkeypatch.context() as careless:
            without_care(careless)
            with store.writing() as tx:
                tx.erase(gone.ids)
        left = store.now.quotes()
        for end in ("", "-wal"):  # the files as a crash after the commit leaves them
            shutil.copy(f"{path}{end}", f"{copied}{end}")
    needles = needles_of(gone, retained=left)
    assert scan([Path(f"{copied}-wal")], needles) != []
    with SqliteStore.open(copied) as store:
        assert scan(store.files(), needles) == []
        assert store.faults() == []
