"""Somebody wants an entry that was acknowledged to vanish, or another in its place, by what processes do to the file.

SQLite's locks are lost to a process when any of its descriptors of the file is closed. So none may be: not when a book
is opened twice, not when it is erased from, not when code that knows nothing of books copies it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import strikeout as so
from strikeout.errors import BookError, RefusedError, UsageError
from strikeout.store.bookfile import Connection
from tests.laws.clerks import A_DAY, MODEL, Clerk, quotes

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here to be killed")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with so.Book.create(tmp_path / "px.book", who="before") as book:
        book.import_quotes(quotes(0, 4 * A_DAY))
        book.calibrate(MODEL, starts=1, panel=None)
    return tmp_path / "px.book"


@pytest.fixture
def clerks() -> Iterator[list[Clerk]]:
    hired = [Clerk(name) for name in "ABC"]
    yield hired
    for clerk in hired:
        clerk.gone()


def done(clerk: Clerk, verb: str, path: Path, number: int, *, then_close: bool = False) -> list[tuple[int, str, str]]:
    clerk.ask(verb, path, number, then_close=then_close)
    told = clerk.answer()
    assert told.code == "", told.sentence
    return [(entry, clerk.name, what) for entry, what in told.entries]


LOOSENING = ["look", "open twice", "erase", "copy the file"]


@needs_fork
@pytest.mark.parametrize("loosening", LOOSENING)
@pytest.mark.parametrize("end", ["kill", "close"])
def test_an_entry_is_there_whatever_the_process_that_wrote_it_did_before(path, clerks, loosening, end):
    first, second, third = clerks
    said = done(first, loosening, path, 1)
    said += done(second, "forget", path, 2, then_close=True)  # closing, it must not believe to be the last
    said += done(first, "forget", path, 3)
    if end == "kill":
        first.kill()
        clerks.remove(first)
        clerks.append(Clerk("D"))
    else:
        said += done(third, "import", path, 4, then_close=True)
        done(first, "close", path, 5)
    with so.Book.open(path) as book:
        assert [(entry.number, entry.who, entry.what) for entry in book.log()[3:]] == said
        assert book.verify().holds, book.verify().summary()


AUDITED = """
    import os, sys, threading
    from pathlib import Path
    sys.path.insert(0, {root!r})
    import strikeout as so
    from tests.laws.clerks import A_DAY, MODEL, quotes
    path, opened, watching = Path({path!r}), [], False
    def listen(event, arguments):
        if watching and event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            if os.path.basename(os.fsdecode(arguments[0])) in (path.name, path.name + "-shm"):
                opened.append(os.fsdecode(arguments[0]))
    book = so.Book.open(path)
    sys.addaudithook(listen)
    watching = True
    again = so.Book.open(path)
    book.import_quotes(quotes(30, 40)); book.calibrate(MODEL, starts=1, panel=None)
    book.forget(ids=["q000001", "q000002"]); book.restore(); book.learn(quotes(40, 44))
    book.roll(quotes(44, 50), window=5); again.erase(ids=["q000044"]); book.rotate_key()
    book.export({export!r}); again.verify(); again.close(); book.status()
    from strikeout.store import diagnostics
    diagnostics.book(path)
    watching = False
    print(opened)
"""


def test_no_verb_opens_the_file_of_a_book_that_is_open(path, tmp_path, root):
    code = textwrap.dedent(AUDITED.format(root=str(root), path=str(path), export=str(tmp_path / "out.csv")))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")


def test_a_cell_that_opens_the_book_again_works_and_so_does_the_first(path):
    book = so.Book.open(path)
    first = book
    book = so.Book.open(path)
    book.import_quotes(quotes(30, 32))
    first.import_quotes(quotes(40, 42))
    assert [entry.number for entry in book.log()] == [1, 2, 3, 4, 5]
    first.close()
    book.import_quotes(quotes(50, 52))
    assert book.verify().holds
    book.close()
    assert not path.with_name("px.book-wal").exists()  # the last to close clears the log away


def test_a_book_that_nobody_has_any_more_is_let_go(path):
    so.Book.open(path).import_quotes(quotes(30, 32))
    assert not path.with_name("px.book-wal").exists()


@pytest.mark.parametrize("what", ["delete", "replace", "move"])
def test_nothing_is_written_to_a_file_that_has_lost_its_name(path, tmp_path, what):
    copied = tmp_path / "copied.book"
    shutil.copy(path, copied)
    with so.Book.open(path) as book:
        if what == "delete":
            path.unlink()
        elif what == "replace":
            copied.replace(path)
        else:
            path.rename(tmp_path / "moved.book")
        with pytest.raises(BookError, match="moved, deleted or replaced while it was open"):
            book.import_quotes(quotes(30, 32))


def test_a_log_that_was_deleted_is_noticed_before_anything_is_acknowledged(path):
    with so.Book.open(path) as book:
        book.import_quotes(quotes(30, 32))
        path.with_name("px.book-wal").unlink()
        with pytest.raises(BookError, match=r"log of .* was deleted or replaced"):
            book.import_quotes(quotes(40, 42))


@needs_fork
def test_a_book_that_was_open_at_a_fork_is_not_used_by_the_child(path):
    with so.Book.open(path) as book:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for use in (book.status, lambda: so.Book.open(path)):
                try:
                    use()
                except UsageError as error:
                    said.append("forked" in error.sentence)
            book.close()
            os.write(writer, repr(said).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with os.fdopen(reader) as answers:
            assert answers.read() == "[True, True]"
        subprocess.run([sys.executable, "-m", "strikeout", "restore", str(path)], check=False, capture_output=True)
        assert path.with_name("px.book-wal").exists()  # the child has not loosened the hold of its parent
        assert book.import_quotes(quotes(30, 32)).entry == 4


def test_a_book_is_for_the_thread_that_opened_it_and_another_opens_its_own(path):
    found: list[object] = []

    def elsewhere() -> None:
        try:
            book.status()
        except UsageError as error:
            found.append("another thread" in error.sentence)
        with so.Book.open(path) as mine:
            found.append(mine.import_quotes(quotes(30, 32)).entry)

    with so.Book.open(path) as book:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert found == [True, 4]
        assert book.import_quotes(quotes(40, 42)).entry == 5


def test_a_closed_book_says_that_it_is_closed(path):
    book = so.Book.open(path)
    book.close()
    book.close()
    with pytest.raises(UsageError, match="is closed"):
        book.status()


def test_threads_that_open_and_close_one_book_lose_nothing(path):
    wrong: list[BaseException] = []

    def work(begin: int) -> None:
        try:
            for turn in range(6):
                with so.Book.open(path) as book:
                    while True:
                        try:
                            book.import_quotes(quotes(begin + 10 * turn, begin + 10 * turn + 2))
                            break
                        except RefusedError:
                            continue
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    with so.Book.open(path) as book:
        assert len(book.log()) == 3 + 18
        assert book.verify().holds


CUT_SHORT = """
import sys
import strikeout as so
from strikeout.store.sqlite import SqliteStore
SqliteStore._scrub = lambda _: None  # the process ends after the commit, before the file is rewritten
with so.Book.open(sys.argv[1]) as book:
    book.erase(ids=book.quotes().ids[:2], reason="test")
"""


def test_an_erasure_that_another_process_did_not_finish_is_finished_by_verify(path):
    """The other process may be in the middle of it: a book that is open here must not be called damaged for that."""
    with so.Book.open(path) as held:
        held.verify()
        subprocess.run([sys.executable, "-c", CUT_SHORT, str(path)], check=True, timeout=60)
        found = held.verify()
        assert found.holds, found.summary()
        assert held.residue().is_clean


EMPTYING = """
import fcntl, sys, time
index = open(sys.argv[1] + "-shm", "rb+")
fcntl.lockf(index, fcntl.LOCK_EX, 1, 121)  # SQLite's lock of a process that copies the log into the file
print("held", flush=True)
sys.stdin.readline()
time.sleep(0.3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes a lock of SQLite where Linux has it")
@pytest.mark.parametrize("verb", ["verify", "erase", "residue"])
def test_a_process_that_empties_the_log_is_waited_for(path, verb):
    """SQLite refuses a second one at once, so `verify` called a book damaged that another process was erasing."""
    with so.Book.open(path) as held:
        subprocess.run([sys.executable, "-c", CUT_SHORT, str(path)], check=True, timeout=60)
        code = [sys.executable, "-c", EMPTYING, str(path)]
        with subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "held\n"
            other.stdin.write("go\n")
            other.stdin.flush()
            if verb == "verify":
                found = held.verify()
                assert found.holds, found.summary()
            elif verb == "erase":
                assert held.erase(ids=held.quotes().ids[:2], reason="test").search.is_clean
            else:
                assert held.residue().is_clean


def test_finishing_one_erasure_does_not_mark_a_later_one_as_finished(path, monkeypatch):
    """Another process may erase and be killed after the file was rewritten and before that is noted."""
    execute = Connection.execute

    def with_another(connection, question, values=()):
        found = execute(connection, question, values)
        if question == "VACUUM":
            monkeypatch.undo()
            subprocess.run([sys.executable, "-c", CUT_SHORT, str(path)], check=True, timeout=60)
        return found

    with so.Book.open(path) as held:
        monkeypatch.setattr(Connection, "execute", with_another)
        held.erase(ids=held.quotes().ids[:2], reason="test")
        assert len(held._session.store.faults()) == 1
        assert held.verify().holds
        assert held._session.store.faults() == []
