"""Create and open the file of a book.

A new file appears only when it is complete, and an existing file is never overwritten.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from strikeout.errors import BookError, BusyError, DamagedBookError, NewerBookError, NotABookError, UsageError
from strikeout.store import holding

APPLICATION = int.from_bytes(b"STRK", "big")  # marks the file as a book: bytes 68 to 71
_DISK = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
}
PATIENCE = 2.0  # seconds a writer waits for another
BESIDE = ("-wal", "-shm", "-journal")
DRAFT = ".new"  # end of the name of a book that is being created
VERSION = 4  # of the tables
# Columns of fixed size come first: behind `data`, SQLite would have to walk through all of its pages to find them.
TABLES = """
    CREATE TABLE chunks (
        number INTEGER PRIMARY KEY, count INTEGER NOT NULL, sum BLOB NOT NULL, tag BLOB NOT NULL, data BLOB NOT NULL
    );
    CREATE TABLE names (id BLOB PRIMARY KEY, chunk INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE marks (id BLOB PRIMARY KEY REFERENCES names, entry INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE footprints (
        shard INTEGER PRIMARY KEY REFERENCES chunks, sum BLOB NOT NULL, tag BLOB NOT NULL, data BLOB NOT NULL
    );
    CREATE TABLE states (
        shard INTEGER PRIMARY KEY REFERENCES chunks, sum BLOB NOT NULL, tag BLOB NOT NULL, data BLOB NOT NULL
    );
    CREATE TABLE pages (
        kind TEXT NOT NULL, name TEXT NOT NULL, sum BLOB NOT NULL, tag BLOB NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID;
    CREATE TABLE entries (number INTEGER PRIMARY KEY, sum BLOB NOT NULL, data BLOB NOT NULL);
    CREATE TABLE seal (
        one INTEGER PRIMARY KEY CHECK (one = 1), total BLOB NOT NULL, rows INTEGER NOT NULL, held INTEGER NOT NULL,
        marked INTEGER NOT NULL, scrub INTEGER NOT NULL, sums BLOB NOT NULL
    );
    CREATE TRIGGER entries_stay BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
    CREATE TRIGGER entries_hold BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""


class Connection:
    """A connection to the file of a book, for the thread that made it.

    The file is held (see ``holding``) until the connection is closed or garbage collected.
    """

    def __init__(self, path: Path, raw: sqlite3.Connection, hold: holding.Hold) -> None:
        self.path = path  # as it was given, for messages
        self.raw = raw
        self.hold = hold
        self.entries: tuple[tuple[int, int], tuple[bytes, ...]] | None = None  # of the ledger, at this version
        self._thread = threading.get_ident()
        self._closing = weakref.finalize(self, holding.let_go, hold, raw.close)

    def execute(self, question: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run one SQL statement and return its cursor."""
        self._check()
        with translate_errors(self.path):
            return self.raw.execute(question, values)

    def executemany(self, change: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one SQL statement once per row."""
        self._check()
        with translate_errors(self.path):
            self.raw.executemany(change, rows)

    def version(self) -> tuple[int, int] | None:
        """Return what every commit changes, of this connection or another one; None within a transaction."""
        self._check()
        if self.in_transaction:
            return None
        return self.execute("PRAGMA data_version").fetchone()[0], self.raw.total_changes

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._closing.alive and self.raw.in_transaction

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._closing()

    def _check(self) -> None:
        if not self._closing.alive:
            raise UsageError(f"{self.path} is closed. Open it again.", path=str(self.path))
        if self.hold.process != os.getpid():
            raise UsageError(
                f"{self.path} was opened before this process was forked from another. Open it in a process that is "
                'started afresh (multiprocessing: the method "spawn"), or close it before forking.',
                path=str(self.path),
            )
        if self._thread != threading.get_ident():
            raise UsageError(
                f"{self.path} was opened in another thread. Open it in this one too: a book may be open several times.",
                path=str(self.path),
            )


def real_path(path: str | Path) -> Path:
    """Return the path of a book's file, with a symbolic link resolved.

    The log, the keys and the plan of a book are beside its file, not beside a link to it.
    """
    given = Path(path)
    try:
        return given.resolve() if given.is_symlink() else given
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NotABookError(f"{given}: there is no book ({why}). Give another path.", path=str(given)) from error


def create(path: Path, *, first: Callable[[Connection], None] | None = None) -> None:
    """Create the file of a book. It appears under its name only when it is complete.

    Args:
        first: writes what is in it from the beginning.
    """
    refuse_taken(path)
    draft = path.with_name(f"{path.name}.{os.getpid()}{DRAFT}")
    try:
        _make(draft)
        if first is not None:
            connection = connect(draft)
            try:
                first(connection)
            finally:
                connection.close()
        with open(draft, "rb+") as file:  # no other process has it open: only this one uses the draft's name
            os.fsync(file.fileno())
        os.link(draft, path)  # unlike a rename, fails if another process has created the book meanwhile
        _sync_folder(path.parent)
    except FileExistsError as error:
        raise NotABookError(f"{path} exists already. Open it, or choose another name.", path=str(path)) from error
    except OSError as error:
        raise BookError(f"{path} cannot be written: {error.strerror}.", path=str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


def refuse_taken(path: Path) -> None:
    """Raise NotABookError if a book cannot be created under this name."""
    if path.exists():
        raise NotABookError(f"{path} exists already. Open it, or choose another name.", path=str(path))
    if not path.parent.is_dir():
        raise NotABookError(f"The folder of {path} does not exist. Make it first.", path=str(path))


def _make(draft: Path) -> None:
    with translate_errors(draft):
        raw = sqlite3.connect(draft, isolation_level=None)
        try:
            raw.execute(f"PRAGMA application_id = {APPLICATION}")
            raw.execute("PRAGMA journal_mode = WAL")
            raw.execute("BEGIN IMMEDIATE")
            for statement in _statements(TABLES):
                raw.execute(statement)
            raw.execute("INSERT INTO seal VALUES (1, zeroblob(32), 0, 0, 0, 0, x'')")
            raw.execute(f"PRAGMA user_version = {VERSION}")
            raw.execute("COMMIT")
        finally:
            raw.close()


def connect(path: Path, *, patience: float = PATIENCE) -> Connection:
    """Connect to the file of a book. Only SQLite reads the file; ``holding`` explains why."""
    recognise(path)
    raw, hold = holding.take(path, lambda: _connected(path, patience))
    return Connection(path, raw, hold)


def recognise(path: Path) -> None:
    """Raise NotABookError if the file is not a book. Reads it without locks or log, and changes nothing."""
    try:
        found = path.stat()
    except FileNotFoundError as error:
        raise NotABookError(f"There is no book {path}. Make it with: strikeout init {path}", path=str(path)) from error
    except OSError as error:
        raise NotABookError(f"{path} cannot be read: {error.strerror}.", path=str(path)) from error
    if found.st_nlink > 1:
        _clear_draft(path, found)
        found = path.stat()
    holding.refuse_second_name(path, found)
    size = found.st_size
    try:
        with translate_errors(path):
            raw = _opened(path, "mode=ro&immutable=1", 0.0)
            try:
                ((application,),) = raw.execute("PRAGMA application_id")
            finally:
                raw.close()
    except DamagedBookError as error:
        if getattr(error.__cause__, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT:
            return  # the missing pages may be in the log; SQLite checks again with the log
        raise _no_book(path, size) from error
    if size == 0:
        raise _no_book(path, size)
    if application != APPLICATION:
        raise NotABookError(f"{path} is a SQLite file of another program, not a book. Choose a book.", path=str(path))


def _clear_draft(path: Path, found: os.stat_result) -> None:
    """Remove the draft name of a book if a crash left it beside the final one."""
    for draft in path.parent.glob(f"{_literal(path.name)}.*{DRAFT}"):
        if os.path.samestat(draft.stat(), found):
            draft.unlink(missing_ok=True)


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _no_book(path: Path, size: int) -> NotABookError:
    return NotABookError(
        f"{path} is not a book: its {size:,} bytes do not begin as a book does. If it was one, it is damaged: "
        "restore it from a copy.",
        path=str(path),
    )


def _opened(path: Path, how: str, patience: float) -> sqlite3.Connection:
    # `Connection` checks the thread, with its own message; the garbage collector may close a connection in any thread.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )


def _connected(path: Path, patience: float) -> sqlite3.Connection:
    with translate_errors(path):
        raw = _opened(path, "mode=rw", patience)
        try:
            _refuse_short(path, raw)
            _refuse_other(path, raw.execute("PRAGMA user_version").fetchone()[0])  # with its log, if any
            for setting in ("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON", "temp_store = MEMORY"):
                raw.execute(f"PRAGMA {setting}")
            raw.execute(f"PRAGMA journal_size_limit = {1 << 22}")
            if raw.execute(_SCHEMA).fetchall() != _expected():
                raise damaged(path, "its tables are not those of a book")
        except BaseException:
            raw.close()
            raise
    return raw


def _refuse_short(path: Path, raw: sqlite3.Connection) -> None:
    """Raise DamagedBookError if the file is shorter than its pages and no log holds the missing ones."""
    raw.execute("BEGIN")  # no process can shorten the file during a read transaction
    try:
        ((count,),), ((size,),) = raw.execute("PRAGMA page_count"), raw.execute("PRAGMA page_size")
        log, length = holding.log_of(path), path.stat().st_size
        is_short = length < count * size and not (log.exists() and log.stat().st_size)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_CORRUPT:
            raise
        is_short, length = True, path.stat().st_size
    finally:
        raw.execute("ROLLBACK")
    if is_short:
        raise damaged(path, f"its {length:,} bytes are truncated, or no longer those of a book")


_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


@cache
def _expected() -> list[tuple[Any, ...]]:
    """Return SQLite's schema of a book. An added trigger or view could change what is written or read."""
    raw = sqlite3.connect(":memory:")
    try:
        for statement in _statements(TABLES):
            raw.execute(statement)
        return raw.execute(_SCHEMA).fetchall()
    finally:
        raw.close()


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for part in script.split(";"):
        pending += part + ";"
        if sqlite3.complete_statement(pending):
            if pending.strip(" \n;"):
                yield pending.strip()
            pending = ""


def _refuse_other(path: Path, version: int) -> None:
    if version > VERSION:
        raise NewerBookError(
            f"{path} was written by a newer strikeout: its tables are version {version}, and this one reads "
            f"{VERSION}. Update strikeout; nothing was changed.",
            path=str(path),
            version=version,
        )
    if version < VERSION:
        raise NotABookError(
            f"{path} has tables of version {version}, from before the first release; this strikeout reads {VERSION}. "
            "Create the book again from the files its quotes were imported from.",
            path=str(path),
            version=version,
        )


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise the errors of SQLite as errors of this package."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise BusyError(
                f"{path} is being written by another process. Try again when it is done; nothing was changed.",
                path=str(path),
            ) from error
        if code in _DISK:
            raise BookError(
                f"{path} cannot be read or written: {error}. What it held is still there.",
                path=str(path),
                disk=str(error),
            ) from error
        raise damaged(path, str(error)) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the text of an error may quote damaged bytes
        raise damaged(path, str(error)) from error


def damaged(path: Path, what: str) -> DamagedBookError:
    """Return the error for bytes that are not those that were written."""
    return DamagedBookError(
        f"{path} is damaged: {what}. Nothing was changed; restore the book from a copy.", path=str(path)
    )


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # other systems cannot open a folder to sync its entries
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
