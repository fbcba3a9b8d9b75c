"""Killed at any moment, or without power: the book is that before the step or that after it, never one in between."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import time
from pathlib import Path

import pytest

from strikeout.store import bookfile
from strikeout.store.residue import needles_of, scan
from strikeout.store.sqlite import SqliteStore
from tests.store.books import quotes
from tests.store.story import Replay, content, step

ROUNDS = 200
needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="processes are forked here to be killed in milliseconds"
)


def killed(work, *, after: float) -> list[int]:
    """Runs ``work(say)`` in a process of its own, kills it, and gives back the numbers it said before it died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            work(lambda number: os.write(writer, number.to_bytes(4, "big")))
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    select.select([reader], [], [], 10)  # the first word, or the end: the delay counts from there
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the writer failed by itself"
    said = b"".join(iter(lambda: os.read(reader, 4096), b""))
    os.close(reader)
    return [int.from_bytes(said[place : place + 4], "big") for place in range(0, len(said), 4)]


@needs_fork
def test_a_book_killed_two_hundred_times_is_never_torn_and_loses_nothing_it_acknowledged(tmp_path):
    path, replay, draw = tmp_path / "a.book", Replay(), random.Random(5)
    SqliteStore.create(path).close()
    done, window = 0, 0.04
    for _ in range(ROUNDS):

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
            # A step may be durable although the process died before it could say so.
            assert acknowledged <= found <= acknowledged + 1
            assert content(store.now) == replay.after(found)
            assert store.faults() == []
        window = min(1.1 * window, 0.5) if found == done else max(0.95 * window, 0.01)  # as fast as the machine is
        done = found
    assert done > ROUNDS // 10  # the kills fell into work, not into starting up


@needs_fork
def test_an_erasure_killed_at_any_moment_is_whole_or_not_begun_and_leaves_no_byte(tmp_path):
    draw, erased, window = random.Random(6), 0, 0.03
    for turn in range(40):
        path = tmp_path / f"{turn}.book"
        with SqliteStore.create(path) as store, store.writing() as tx:
            tx.add(quotes(2000, seed=turn))
        gone = quotes(2000, seed=turn)[100:160]

        def work(say, path=path, ids=gone.ids):
            with SqliteStore.open(path) as store:
                say(0)
                with store.writing() as tx:
                    tx.erase(ids)
                say(1)

        killed(work, after=draw.uniform(0, window))
        with SqliteStore.open(path) as store:
            known = set(store.now.known(gone.ids).tolist())
            assert known in ({True}, {False})
            if known == {False}:
                erased += 1
                assert scan(store.files(), needles_of(gone, retained=store.now.quotes())) == []
            assert store.faults() == []
        window = window / 1.2 if known == {False} else min(1.2 * window, 1.0)
    assert 0 < erased < 40  # both ends were met


@needs_fork
def test_a_book_whose_making_is_killed_is_not_there_or_whole(tmp_path):
    draw, made, window = random.Random(7), 0, 0.02
    for turn in range(40):
        path = tmp_path / f"{turn}.book"

        def work(say, path=path):
            say(0)
            SqliteStore.create(path).close()

        killed(work, after=draw.uniform(0, window))
        window = window / 1.2 if path.exists() else min(1.2 * window, 1.0)
        if path.exists():
            made += 1
            with SqliteStore.open(path) as store:
                assert (store.now.counts().retained, store.faults()) == (0, [])
    assert 0 < made < 40  # both ends were met


# Power loss. What was synced is there, anything later may be missing, cut or garbage. With synchronous=FULL SQLite
# syncs the log before a commit returns, and again before a checkpoint writes to the file. So a loss of power is: the
# log cut or garbled anywhere after the last commit; or the file with any mixture of old and new pages, the log whole.


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> tuple[Path, list[tuple[int, int]]]:
    """A book with its log, still unwritten to the file; how long the log was after each step."""
    path = tmp_path_factory.mktemp("recorded") / "a.book"
    store = SqliteStore.create(path)
    store._connection.execute("PRAGMA wal_autocheckpoint = 0")
    lengths, number = [(0, 0)], 0
    while len(lengths) < 14:
        with store.writing() as tx:
            step(tx, number, erasing=False)  # an erasure would write the log to the file
        number += 1
        lengths.append((number, Path(f"{path}-wal").stat().st_size))
    kept = path.with_name("kept.book")
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{kept}{end}")
    store.close()
    return kept, lengths


@pytest.mark.parametrize("rest", ["missing", "zeros", "garbage"])
def test_a_log_cut_anywhere_gives_the_last_step_that_was_synced(recorded, tmp_path, rest):
    kept, lengths = recorded
    log, draw, replay = Path(f"{kept}-wal").read_bytes(), random.Random(rest), Replay(erasing=False)
    path = tmp_path / "a.book"
    cuts = [draw.randrange(len(log)) for _ in range(40)] + [length for _, length in lengths]
    for cut in cuts:
        lost = len(log) - cut
        shutil.copy(kept, path)
        tail = {"missing": b"", "zeros": bytes(lost), "garbage": draw.randbytes(lost)}[rest]
        left = log[:cut] + tail
        Path(f"{path}-wal").write_bytes(left)
        Path(f"{path}-shm").unlink(missing_ok=True)
        with SqliteStore.open(path) as store:
            # By its bytes: where a step ends in zeros, zeros for the rest of it are what was written.
            whole = max(number for number, length in lengths if left[:length] == log[:length])
            assert content(store.now) == replay.after(whole), cut
            assert store.faults() == []


def test_a_checkpoint_that_wrote_any_of_its_pages_gives_the_last_step(recorded, tmp_path):
    kept, lengths = recorded
    old, log, draw = kept.read_bytes(), Path(f"{kept}-wal").read_bytes(), random.Random(8)
    done = tmp_path / "done.book"
    for end in ("", "-wal"):
        shutil.copy(f"{kept}{end}", f"{done}{end}")
    bookfile.connect(done).close()  # closing writes the log to the file
    new = done.read_bytes()
    page, truth, path = 4096, Replay(erasing=False).after(lengths[-1][0]), tmp_path / "a.book"
    for _ in range(60):
        share = draw.random()
        mixed = bytearray(old.ljust(len(new), b"\0"))
        for place in range(0, len(new), page):
            if draw.random() < share:
                mixed[place : place + page] = new[place : place + page]
        path.write_bytes(mixed[: max(page, page * draw.randint(len(old) // page, len(new) // page))])
        Path(f"{path}-wal").write_bytes(log)
        Path(f"{path}-shm").unlink(missing_ok=True)
        with SqliteStore.open(path) as store:
            assert content(store.now) == truth
            assert store.faults() == []
