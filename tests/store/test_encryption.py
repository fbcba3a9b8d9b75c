"""An encrypted book: nothing of a quote in the file, and after an erasure every older copy is unreadable."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

import strikeout as so
from strikeout.errors import NotABookError, RefusedError, UnknownIdError
from strikeout.store.residue import needles_of, scan
from strikeout.store.shard_keys import ShardKeys, key_name, shard_key_file
from strikeout.store.sqlite import SqliteStore
from tests.store.books import bits, quotes
from tests.store.story import Replay, content, step
from tests.store.test_crash import killed, needs_fork


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An encrypted book of 600 quotes in three chunks, closed."""
    target = tmp_path / "a.book"
    with SqliteStore.create(target, is_encrypted=True) as store, store.writing() as tx:
        tx.add(quotes(600))
        tx.append(b"first")
    return target


def test_an_encrypted_book_gives_back_every_bit(path):
    with SqliteStore.open(path) as store:
        assert bits(store.now.quotes()) == bits(quotes(600))
        assert store.faults() == []


def test_no_number_of_a_quote_is_in_the_file_of_an_encrypted_book(path, tmp_path):
    needles = needles_of(quotes(600))
    assert {hit.what for hit in scan([path], needles)} == {"id"}  # names are what a book is searched by
    with SqliteStore.create(tmp_path / "plain.book") as store, store.writing() as tx:
        tx.add(quotes(600))
    assert {"strike", "observed"} <= {hit.what for hit in scan([tmp_path / "plain.book"], needles)}


def test_a_copy_made_before_an_erasure_can_no_longer_be_read(path, tmp_path):
    backup = tmp_path / "backup" / "a.book"
    backup.parent.mkdir()
    shutil.copy(path, backup)
    with SqliteStore.open(path) as store, store.writing() as tx:
        tx.erase(["q-0-0003"])
    shutil.copy(shard_key_file(path), shard_key_file(backup))  # the keys as they are now
    with SqliteStore.open(backup) as store:
        with pytest.raises(RefusedError, match="an erasure has destroyed it"):
            store.now.named(["q-0-0003"])
        # Chunks without an erased quote keep their keys.
        assert bits(store.now.named(["q-0-0400"])) == bits(quotes(600).only(["q-0-0400"]))
        assert any("destroyed" in sentence for sentence in store.faults())
    with SqliteStore.open(path) as store:
        assert bits(store.now.quotes()) == bits(quotes(600).without(["q-0-0003"]))
        assert store.faults() == []


def test_a_state_in_a_copy_made_before_an_erasure_can_no_longer_be_read(path, tmp_path):
    state = random.Random(2).randbytes(504)
    with SqliteStore.open(path) as store, store.writing() as tx:
        tx.put("state", "moments", state)
        tx.put("calibration", "1", b"results stay")
    backup = tmp_path / "backup" / "a.book"
    backup.parent.mkdir()
    shutil.copy(path, backup)
    assert state[:16] not in backup.read_bytes()
    with SqliteStore.open(path) as store:
        assert store.now.page("state", "moments") == state
        with store.writing() as tx:
            tx.erase(["q-0-0003"])
            tx.put("state", "moments", state[::-1])
        assert store.now.page("state", "moments") == state[::-1]
        assert store.faults() == []
    shutil.copy(shard_key_file(path), shard_key_file(backup))
    with SqliteStore.open(backup) as store:
        with pytest.raises(RefusedError, match="an erasure has destroyed it"):
            store.now.page("state", "moments")
        assert store.now.page("calibration", "1") == b"results stay"


def test_footprints_and_state_of_a_shard_are_under_its_key_and_die_with_it(path, tmp_path):
    left = random.Random(3).randbytes(504)
    with SqliteStore.open(path) as store, store.writing() as tx:
        keys = shard_key_file(path).read_bytes()
        for shard in tx.now.shards():
            tx.put_shard_data(shard, "footprints", left)
            tx.put_shard_data(shard, "states", left[::-1])
    assert shard_key_file(path).read_bytes() == keys  # no key of their own
    backup = tmp_path / "backup" / "a.book"
    backup.parent.mkdir()
    shutil.copy(path, backup)
    assert left[:16] not in backup.read_bytes()
    with SqliteStore.open(path) as store:
        assert (store.now.shard_data(1, "footprints"), store.now.shard_data(1, "states")) == (left, left[::-1])
        with store.writing() as tx:
            tx.erase(["q-0-0003"])
            tx.put_shard_data(0, "states", left)
        assert (store.now.shard_data(0, "states"), store.now.shard_data(1, "states"), store.faults()) == (
            left,
            left[::-1],
            [],
        )
    shutil.copy(shard_key_file(path), shard_key_file(backup))
    with SqliteStore.open(backup) as store:
        for what in ("footprints", "states"):
            with pytest.raises(RefusedError, match="an erasure has destroyed it"):
                store.now.shard_data(0, what)
        assert store.now.shard_data(1, "states") == left[::-1]


def test_a_destroyed_key_is_nowhere_in_the_key_file(path):
    before = shard_key_file(path).read_bytes()
    with SqliteStore.open(path) as store, store.writing() as tx:
        tx.erase(["q-0-0003", "q-0-0300", "q-0-0599"])
    after = shard_key_file(path).read_bytes()
    old = [before[place : place + 48] for place in range(32, len(before), 48)]
    assert len(old) == 3
    assert not any(record[16:] in after for record in old)
    assert after[32 : len(before)] == bytes(3 * 48)


def test_an_erasure_cut_short_after_its_commit_destroys_the_keys_at_the_next_opening(path, monkeypatch):
    old = shard_key_file(path).read_bytes()[48:80]
    with monkeypatch.context() as cut:
        cut.setattr(SqliteStore, "_scrub", lambda _: None)
        with SqliteStore.open(path) as store, store.writing() as tx:
            tx.erase(["q-0-0003"])
    assert old in shard_key_file(path).read_bytes()
    SqliteStore.open(path).close()
    assert old not in shard_key_file(path).read_bytes()


def test_a_transaction_that_fails_leaves_the_book_and_its_keys_as_they_were(path):
    keys = shard_key_file(path).read_bytes()
    with SqliteStore.open(path) as store:
        with pytest.raises(UnknownIdError), store.writing() as tx:  # noqa: PT012
            tx.add(quotes(300, seed=1))
            tx.strike(["nobody"], entry=1)
        assert shard_key_file(path).read_bytes() == keys
        with store.writing() as tx:
            tx.add(quotes(300, seed=2))
    with SqliteStore.open(path) as store:
        assert store.now.counts().retained == 900
        assert store.faults() == []


def test_half_a_key_left_by_a_crash_is_written_over(path):
    with open(shard_key_file(path), "ab") as file:
        file.write(b"x" * 31)
    with SqliteStore.open(path) as store, store.writing() as tx:
        tx.add(quotes(300, seed=1))
    with SqliteStore.open(path) as store:
        assert store.faults() == []


def test_two_stores_open_at_once_read_what_the_other_wrote(path):
    with SqliteStore.open(path) as one, SqliteStore.open(path) as other:
        with one.writing() as tx:
            tx.add(quotes(300, seed=1))
        assert bits(other.now.named(["q-1-0007"])) == bits(quotes(300, seed=1).only(["q-1-0007"]))


def test_a_life_of_an_encrypted_book_is_that_of_any_book(tmp_path):
    replay = Replay()
    with SqliteStore.create(tmp_path / "a.book", is_encrypted=True) as store:
        for number in range(25):
            with store.writing() as tx:
                step(tx, number)
        mine, truth = content(store.now), replay.after(25)
        mine[3] = [page for page in mine[3] if page[0] != "setting"]
        assert mine == truth
        assert store.faults() == []


def test_a_book_without_its_keys_or_with_those_of_another_is_refused(path):
    keys = shard_key_file(path)
    kept = keys.read_bytes()
    keys.unlink()
    with pytest.raises(RefusedError, match="its keys in"):
        SqliteStore.open(path)
    ShardKeys.create(keys)
    with pytest.raises(RefusedError, match="does not hold the keys of this book"):
        SqliteStore.open(path)
    keys.write_bytes(kept)
    SqliteStore.open(path).close()


@pytest.mark.skipif(os.name != "posix", reason="modes of files are of POSIX")
def test_keys_are_made_for_their_owner_alone_and_refused_where_others_can_read_them(path):
    keys = shard_key_file(path)
    assert keys.stat().st_mode & 0o777 == 0o600
    keys.chmod(0o644)
    with pytest.raises(RefusedError, match="chmod 600"):
        SqliteStore.open(path)


def test_the_folder_of_the_keys_can_be_named(tmp_path, monkeypatch):
    (tmp_path / "keys").mkdir()
    monkeypatch.setenv("STRIKEOUT_SHARD_KEYS", str(tmp_path / "keys"))
    SqliteStore.create(tmp_path / "a.book", is_encrypted=True).close()
    assert (tmp_path / "keys" / "a.book.shardkeys").exists()
    assert not (tmp_path / "a.book.shardkeys").exists()


def test_keys_are_never_overwritten(path):
    kept = shard_key_file(path).read_bytes()
    with pytest.raises(NotABookError):
        SqliteStore.create(path, is_encrypted=True)
    path.unlink()
    with pytest.raises(RefusedError, match="never overwritten"):
        SqliteStore.create(path, is_encrypted=True)
    assert shard_key_file(path).read_bytes() == kept
    assert not path.exists()


def test_bytes_moved_to_another_place_or_changed_do_not_open(tmp_path):
    keys, draw = ShardKeys.create(tmp_path / "k"), random.Random(1)
    sealed = keys.sealed(b"a price", place="chunk 1")
    assert keys.opened(sealed, place="chunk 1") == b"a price"
    with pytest.raises(RefusedError, match="does not open"):
        keys.opened(sealed, place="chunk 2")
    for place in range(20, len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1 << draw.randrange(8)
        with pytest.raises(RefusedError, match="does not open"):
            keys.opened(bytes(changed), place="chunk 1")


def test_a_book_made_with_encryption_forgets_erases_and_verifies(tmp_path):
    quotes = so.paper.quotes("small")
    with so.Book.create(tmp_path / "a.book", is_encrypted=True) as book:
        book.import_quotes(quotes)
        book.calibrate()
        book.forget(ids=quotes.ids[:5])
    backup = shutil.copy(tmp_path / "a.book", tmp_path / "copy")
    with so.Book.open(tmp_path / "a.book") as book:
        assert book.erase(ids=quotes.ids[3:8]).residue == 0
        assert book.verify().holds
    shutil.move(backup, tmp_path / "a.book")
    with so.Book.open(tmp_path / "a.book") as older, pytest.raises(RefusedError, match="destroyed"):
        older.quotes()


@needs_fork
def test_an_encrypted_book_killed_at_any_moment_has_the_keys_to_all_it_holds_and_no_others(tmp_path):
    path, draw, done, window = tmp_path / "a.book", random.Random(5), 0, 0.06
    SqliteStore.create(path, is_encrypted=True).close()
    for _ in range(40):

        def work(say, begin=done):
            with SqliteStore.open(path) as store:
                say(begin)
                for number in range(begin, begin + 50):
                    with store.writing() as tx:
                        step(tx, number)
                    say(number + 1)

        acknowledged = max(killed(work, after=draw.uniform(0, window)), default=done)
        with SqliteStore.open(path) as store:
            found = len(store.now.entries())
            assert acknowledged <= found <= acknowledged + 1
            assert store.faults() == []
        window = min(1.1 * window, 0.5) if found == done else max(0.95 * window, 0.01)  # as fast as the machine is
        done = found
    with SqliteStore.open(path) as store, store.writing() as tx:
        tx.erase(store.now.quotes().ids[:1])
    with SqliteStore.open(path) as store:
        assert store.faults() == []
        tables = ("chunks", "footprints", "states", "pages")
        heads = [
            data for (data,) in store.now.rows(" UNION ALL ".join(f"SELECT data FROM {table}" for table in tables))
        ]
        used = {key_name(data) for data in heads} - {None}
    data = shard_key_file(path).read_bytes()
    assert {data[place : place + 16] for place in range(32, len(data), 48)} - {bytes(16)} == used
    assert done > 4  # the kills fell into work, not into starting up
