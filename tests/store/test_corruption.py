"""A byte that changed is seen: by the next read of it, or by ``faults``, and never as another book."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from strikeout.errors import DamagedBookError, StrikeoutError
from strikeout.store import bookfile
from strikeout.store.sqlite import SqliteStore
from strikeout.store.store import PAGE_KINDS, SHARD_DATA
from tests.store.books import bits, quotes

ENTRIES = tuple(random.Random(number).randbytes(300) for number in range(3))
STATE, SHARD = random.Random(9).randbytes(504), random.Random(10).randbytes(504)
FOOTPRINTS = random.Random(11).randbytes(700)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A small book, closed: one file."""
    path = tmp_path_factory.mktemp("sound") / "sound.book"
    with SqliteStore.create(path) as store, store.writing() as tx:
        tx.add(quotes(300))
        tx.strike(["q-0-0005", "q-0-0200"], entry=1)
        tx.put("state", "shard-1", STATE)
        tx.put_shard_data(0, "footprints", FOOTPRINTS)
        tx.put_shard_data(0, "states", SHARD)
        tx.put_shard_data(1, "states", SHARD[::-1])
        tx.put("calibration", "0", b'{"mean_reversion":"0x1.8p+0"}')
        for entry in ENTRIES:
            tx.append(entry)
    return path


READ: tuple[Callable[[SqliteStore], Any], ...] = (
    lambda store: [
        (what, shard, store.now.shard_data(shard, what)) for what in SHARD_DATA for shard in store.now.shards_with(what)
    ],
    lambda store: bits(store.now.quotes(struck=None)),
    lambda store: bits(store.now.quotes()),
    lambda store: sorted(store.now.struck().items(), key=lambda mark: mark[1]),
    lambda store: store.now.counts(),
    lambda store: [(kind, name, store.now.page(kind, name)) for kind in PAGE_KINDS for name in store.now.pages(kind)],
    lambda store: store.now.entries(),
    lambda store: store.now.contents(),
    lambda store: bits(store.now.named(["q-0-0007"])),
    lambda store: sum(store.now.shards().values()),
)


def content(store: SqliteStore) -> list[Any]:
    return [read(store) for read in READ]


def found_in(path: Path) -> list[str]:
    """What opening and checking a book finds wrong."""
    try:
        with SqliteStore.open(path) as store:
            return store.faults()
    except StrikeoutError as error:
        return [error.sentence]


def flipped(sound: Path, path: Path, place: int, bit: int) -> None:
    changed = bytearray(sound.read_bytes())
    changed[place] ^= 1 << bit
    path.write_bytes(changed)


def test_a_sound_book_is_sound(sound):
    assert found_in(sound) == []


WATCHED = {
    "entry 0": ENTRIES[0],
    "entry 2": ENTRIES[2],
    "state": STATE,
    "state of a shard": SHARD,
    "footprints": FOOTPRINTS,
}


@pytest.mark.parametrize("what", WATCHED)
def test_every_byte_of_the_ledger_and_the_states_is_watched(sound, tmp_path, what):
    data = WATCHED[what]
    path, begin, draw = tmp_path / "flipped.book", sound.read_bytes().index(data), random.Random(1)
    # The checksum stands before the bytes it is of, 32 more; but for entries so does a tag, 16 more.
    missed = []
    for place in range(begin - (32 if what.startswith("entry") else 48), begin + len(data)):
        flipped(sound, path, place, draw.randrange(8))
        if not found_in(path):
            missed.append(place - begin)
    assert missed == []


def every_flip(sound: Path, path: Path, places: list[int]) -> list[int]:
    """The places where a flip is neither found nor without effect."""
    with SqliteStore.open(sound) as store:
        truth = content(store)
    draw, missed = random.Random(2), []
    for place in places:
        flipped(sound, path, place, draw.randrange(8))
        if not found_in(path):
            with SqliteStore.open(path) as store:
                if content(store) != truth:
                    missed.append(place)
    return missed


def test_no_flipped_byte_gives_another_book_unnoticed(sound, tmp_path):
    """Some bytes of a file are of nothing (unused space, counters): there a flip has no effect. Sampled here."""
    size = sound.stat().st_size
    sample = [*range(100), *random.Random(3).sample(range(100, size), 400)]
    assert every_flip(sound, tmp_path / "flipped.book", sample) == []


@pytest.mark.slow
def test_no_flipped_byte_anywhere_gives_another_book_unnoticed(sound, tmp_path):
    assert every_flip(sound, tmp_path / "flipped.book", list(range(sound.stat().st_size))) == []


def test_a_damaged_page_is_refused_when_it_is_read(sound, tmp_path):
    path = tmp_path / "flipped.book"
    flipped(sound, path, sound.read_bytes().index(STATE) + 7, 0)
    with SqliteStore.open(path) as store:
        with pytest.raises(DamagedBookError, match=r"'shard-1'.*'state'"):
            store.now.page("state", "shard-1")
        assert store.now.entries() == ENTRIES


def test_a_damaged_state_of_a_shard_is_refused_when_it_is_read(sound, tmp_path):
    path = tmp_path / "flipped.book"
    flipped(sound, path, sound.read_bytes().index(SHARD) + 7, 0)
    with SqliteStore.open(path) as store:
        with pytest.raises(DamagedBookError, match=r"shard 0 \(states\)"):
            store.now.shard_data(0, "states")
        assert store.now.shard_data(0, "footprints") == FOOTPRINTS


def test_a_damaged_quote_is_refused_when_it_is_read(sound, tmp_path):
    path = tmp_path / "flipped.book"
    price = quotes(300).observed[7].tobytes()
    flipped(sound, path, sound.read_bytes().index(price), 0)
    with (
        SqliteStore.open(path) as store,
        pytest.raises(DamagedBookError, match="chunk 0 of the quotes is not as it was"),
    ):
        store.now.quotes()


# x'712d302d30303035' is q-0-0005, ..36 is q-0-0006, ..39 is q-0-0009.
# What a hand with an editor of SQL may do; checksums of single rows do not see these, the seal does.
TRIGGER = next(line.strip() for line in bookfile.TABLES.splitlines() if "entries_stay" in line)
TAMPERING = {
    "an entry is taken from the end": ["DROP TRIGGER entries_stay", "DELETE FROM entries WHERE number = 2", TRIGGER],
    "an entry is taken from the middle": ["DROP TRIGGER entries_stay", "DELETE FROM entries WHERE number = 1", TRIGGER],
    "the ledger is open to changes": ["DROP TRIGGER entries_stay"],
    "a trigger is put in": ["CREATE TRIGGER x AFTER INSERT ON chunks BEGIN DELETE FROM marks; END"],
    "a view is put in": ["CREATE VIEW other AS SELECT * FROM chunks"],
    "a state is taken away": ["DELETE FROM pages WHERE kind = 'state'"],
    "footprints are taken away": ["DELETE FROM footprints"],
    "the state of a shard is taken away": ["DELETE FROM states WHERE shard = 1"],
    "the state of a shard is that of another": [
        "UPDATE states SET (data, sum) = (SELECT data, sum FROM states WHERE shard = 1) WHERE shard = 0"
    ],
    "a chunk is taken away": ["DELETE FROM chunks WHERE number = 1"],
    "a strike-out is taken away": ["DELETE FROM marks WHERE id = x'712d302d30303035'"],
    "a strike-out is of another entry": ["UPDATE marks SET entry = 2 WHERE id = x'712d302d30303035'"],
    "a strike-out is of another quote": ["UPDATE marks SET id = x'712d302d30303036' WHERE id = x'712d302d30303035'"],
    "a name is taken from the index": ["DELETE FROM names WHERE id = x'712d302d30303039'"],
    "a name points to another chunk": ["UPDATE names SET chunk = 1 WHERE id = x'712d302d30303039'"],
    "a page is of another kind": ["UPDATE pages SET kind = 'plan' WHERE kind = 'state'"],
    "a count is off": ["UPDATE seal SET held = held + 1"],
    "the seal is gone": ["DELETE FROM seal"],
}


def test_the_entry_that_is_missing_is_named(sound, tmp_path):
    path = tmp_path / "changed.book"
    path.write_bytes(sound.read_bytes())
    with SqliteStore.open(path) as store:
        for change in TAMPERING["an entry is taken from the middle"]:
            store._connection.execute(change)
        assert "Entry 1 of the ledger is not as it was written." in store.faults()
        with pytest.raises(DamagedBookError, match="entry 1 of the ledger is not as it was written"):
            store.now.entries()


@pytest.mark.parametrize("changes", TAMPERING.values(), ids=TAMPERING.keys())
def test_a_row_that_came_went_or_moved_is_found(sound, tmp_path, changes):
    path = tmp_path / "changed.book"
    path.write_bytes(sound.read_bytes())
    with SqliteStore.open(path) as store:
        store._connection.execute("PRAGMA foreign_keys = OFF")
        for change in changes:
            store._connection.execute(change)
    assert found_in(path) != []


COLUMNS = {
    "chunks": ("count", "sum", "tag", "data"),
    "names": ("chunk",),
    "marks": ("entry",),
    "footprints": ("sum", "tag", "data"),
    "states": ("sum", "tag", "data"),
    "pages": ("sum", "tag", "data"),
    "entries": ("sum", "data"),
    "seal": ("total", "rows", "held", "marked", "sums"),  # of `scrub` opening the book makes what it should be
}


@pytest.fixture(scope="module")
def unguarded(sound, tmp_path_factory) -> Path:
    """The sound book, into whose columns SQLite lets anything be written."""
    path = tmp_path_factory.mktemp("unguarded") / "unguarded.book"
    path.write_bytes(sound.read_bytes())
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        tables.execute("DROP TRIGGER entries_hold")
        tables.execute("PRAGMA writable_schema = ON")
        tables.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
    return path


def guarded(sound: Path, path: Path) -> None:
    """Puts the schema back as it was; what is in the rows stays."""
    with closing(sqlite3.connect(sound)) as tables:
        schema = tables.execute("SELECT sql, name FROM sqlite_schema WHERE type = 'table'").fetchall()
        (trigger,) = tables.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries_hold'").fetchone()
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        tables.execute(trigger)
        tables.execute("PRAGMA writable_schema = ON")
        tables.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", schema)


@pytest.mark.parametrize("value", ["NULL", "'x'"])
@pytest.mark.parametrize("table", COLUMNS)
def test_a_column_that_became_another_type_is_damage_and_no_error_of_our_own(sound, unguarded, tmp_path, table, value):
    """A flipped bit in the header of a row does this, and SQLite looks at no constraint when a row is read."""
    for column in COLUMNS[table]:
        path = tmp_path / f"{column}.book"
        path.write_bytes(unguarded.read_bytes())
        with closing(sqlite3.connect(path, isolation_level=None)) as tables:
            tables.execute(f"UPDATE {table} SET {column} = {value}")
        guarded(sound, path)
        assert found_in(path) != [], column
        with suppress(StrikeoutError), SqliteStore.open(path) as store:
            for read in READ:
                with suppress(StrikeoutError):
                    read(store)
