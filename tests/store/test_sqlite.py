"""The book in a file keeps every promise of a store, and those only a file can break."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from strikeout.errors import BookError, BusyError, DamagedBookError, NewerBookError, NotABookError
from strikeout.store import bookfile
from strikeout.store.sqlite import SqliteStore
from strikeout.store.sqlite_layout import HEADER
from strikeout.store.store import Counts
from tests.raising import raises
from tests.store.books import bits, quotes
from tests.store.contract import StorePromises


@pytest.fixture
def store(tmp_path):
    with SqliteStore.create(tmp_path / "small.book", patience=0.05) as store:
        yield store


class TestSqlite(StorePromises):
    pass


@pytest.fixture
def written(tmp_path) -> Path:
    """A book that was written and closed."""
    path = tmp_path / "written.book"
    with SqliteStore.create(path) as store, store.writing() as tx:
        tx.add(quotes(600))
        tx.strike(["q-0-0005"], entry=0)
        tx.put("state", "s", b"state")
        tx.append(b"entry")
    return path


def header_changed(path: Path, offset: int, value: int) -> None:
    with open(path, "rb+") as file:
        file.seek(offset)
        file.write(value.to_bytes(4, "big"))


def test_a_closed_book_is_one_file_and_opens_as_it_was(written):
    assert [path.name for path in written.parent.iterdir()] == ["written.book"]
    with SqliteStore.open(written) as store:
        assert bits(store.now.quotes(struck=None)) == bits(quotes(600))
        assert (store.now.struck(), store.now.page("state", "s"), store.now.entries()) == (
            {"q-0-0005": 0},
            b"state",
            (b"entry",),
        )
        assert store.faults() == []


def test_the_ledger_is_read_once_until_this_or_another_connection_commits(written):
    with SqliteStore.open(written) as store, SqliteStore.open(written) as other:
        assert store.now.entries() is store.now.entries()
        with other.writing() as tx:
            tx.append(b"of another")
        assert store.now.entries() == (b"entry", b"of another")
        with store.writing() as tx:
            tx.append(b"own")
        assert store.now.entries() == other.now.entries() == (b"entry", b"of another", b"own")
        with store.reading() as book:
            with other.writing() as tx:
                before = book.entries()
                tx.append(b"later")
            assert book.entries() == before  # the snapshot
        assert store.now.entries()[-1] == b"later"


def test_the_settings_that_durability_and_erasure_rest_on_are_in_force(written):
    with SqliteStore.open(written) as store:
        found = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys", "user_version")
        }
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
        "foreign_keys": 1,
        "user_version": bookfile.VERSION,
    }


def test_making_a_book_overwrites_nothing(written):
    before = written.read_bytes()
    with pytest.raises(NotABookError) as refused:
        SqliteStore.create(written)
    assert refused.value.facts["path"] == str(written)
    assert written.read_bytes() == before


def test_a_book_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(NotABookError, match=r"folder of .* does not exist"):
        SqliteStore.create(tmp_path / "nowhere" / "a.book")


def test_opening_a_file_that_is_not_there_makes_none(tmp_path):
    with pytest.raises(NotABookError, match="There is no book"):
        SqliteStore.open(tmp_path / "none.book")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"id,price\na,1\n", b"SQLite format 3\0", os.urandom(5000)])
def test_a_file_that_is_no_book_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "x.book"
    path.write_bytes(content)
    with pytest.raises(NotABookError) as refused:
        SqliteStore.open(path)
    assert refused.value.facts["path"] == str(path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("x.book", content)]


def test_another_programs_sqlite_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "x.book"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE chunks (number)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(NotABookError, match="another program"):
        SqliteStore.open(path)
    assert path.read_bytes() == before


def test_a_book_of_a_newer_version_is_refused_and_left_alone(written):
    header_changed(written, 60, 99)
    before = written.read_bytes()
    with pytest.raises(NewerBookError) as refused:
        SqliteStore.open(written)
    assert refused.value.facts["version"] == 99
    assert written.read_bytes() == before


def test_a_newer_version_that_is_only_in_the_log_is_refused_too(written, tmp_path):
    connection = bookfile.connect(written)
    connection.execute("PRAGMA user_version = 99")
    copied = tmp_path / "copied.book"
    for end in ("", "-wal"):
        shutil.copy(f"{written}{end}", f"{copied}{end}")
    connection.close()
    assert copied.read_bytes()[60:64] == bookfile.VERSION.to_bytes(4, "big")
    with raises(NewerBookError, version=99):
        SqliteStore.open(copied)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.999])
def test_a_book_cut_short_is_refused_and_left_alone(written, share):
    whole = written.read_bytes()
    cut = whole[: max(HEADER, int(len(whole) * share))]
    written.write_bytes(cut)
    with pytest.raises(DamagedBookError, match=f"{len(cut):,} bytes"):
        SqliteStore.open(written)
    assert written.read_bytes() == cut


def test_a_book_of_an_earlier_version_is_refused_and_left_alone(written):
    header_changed(written, 60, bookfile.VERSION - 1)
    before = written.read_bytes()
    with raises(NotABookError, version=3):
        SqliteStore.open(written)
    assert written.read_bytes() == before


def test_a_second_writer_is_refused_in_a_sentence_and_may_come_back(written):
    with SqliteStore.open(written) as first, SqliteStore.open(written, patience=0.05) as second:
        with first.writing() as tx:
            tx.append(b"of the first")
            with pytest.raises(BusyError, match="being written by another process"), second.writing():
                pass
        with second.writing() as tx:
            tx.append(b"of the second")
        assert first.now.entries() == (b"entry", b"of the first", b"of the second")


def test_readers_do_not_wait_for_a_writer_and_see_one_moment(written):
    with SqliteStore.open(written) as writer, SqliteStore.open(written, patience=0.0) as reader:
        with reader.reading() as moment:
            assert moment.counts() == Counts(599, 1)
            with writer.writing() as tx:
                tx.add(quotes(10, seed=3))
                assert len(moment.quotes()) == 599
            assert (moment.counts(), len(moment.quotes())) == (Counts(599, 1), 599)
        assert reader.now.counts() == Counts(609, 1)


def test_a_block_inside_another_of_the_same_store_is_refused(written):
    with SqliteStore.open(written) as store:
        with store.reading() as moment:
            for block in (store.reading, store.writing):
                with pytest.raises(BusyError, match="block of this store that has not ended"), block():
                    pass
            assert moment.entries() == (b"entry",)
        assert store.faults() == []


def test_what_another_process_writes_during_a_check_is_no_fault(written):
    with SqliteStore.open(written) as checked, SqliteStore.open(written) as writer:
        written_meanwhile = []

        def write_once(question: str) -> None:
            if "FROM names" in question and not written_meanwhile:
                written_meanwhile.append(question)
                with writer.writing() as tx:
                    tx.add(quotes(300, seed=8))
                    tx.append(b"meanwhile")

        checked._connection.raw.set_trace_callback(write_once)
        assert checked.faults() == []
        assert written_meanwhile != []
        assert checked.now.counts() == Counts(899, 1)


def test_the_ledger_cannot_be_changed_even_with_sql(written):
    connection = sqlite3.connect(written)
    for change in ("DELETE FROM entries", "UPDATE entries SET data = x'00'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(change)
    connection.close()


def test_a_full_disk_is_told_and_what_was_held_is_still_there(written):
    with SqliteStore.open(written) as store:
        # The limit of pages stands for a full disk: SQLite answers both with the same code.
        store._connection.execute("PRAGMA max_page_count = 40")
        with (
            raises(BookError, disk="database or disk is full"),
            store.writing() as tx,
        ):
            tx.add(quotes(5000, seed=9))
        assert bits(store.now.quotes(struck=None)) == bits(quotes(600))
        assert store.faults() == []


def test_an_erasure_held_up_by_a_reader_says_so_and_is_finished_on_opening(written):
    with SqliteStore.open(written) as writer, SqliteStore.open(written) as reader:
        writer._connection.execute("PRAGMA busy_timeout = 50")
        with reader.reading() as moment:
            assert moment.counts().retained == 599
            with pytest.raises(BusyError), writer.writing() as tx:
                tx.erase(["q-0-0007"])
            assert writer.now.known(["q-0-0007"]).tolist() == [False]
            with writer.scrubbed():  # waits for it, but not for ever
                assert len(writer.faults()) == 1
    with SqliteStore.open(written) as store:
        assert store.faults() == []
