"""The file of a book: made whole or not at all, opened only if it is one, and never overwritten."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from strikeout.errors import BookError, BusyError, DamagedBookError, NewerBookError, NotABookError

APPLICATION = int.from_bytes(b"STRK", "big")  # marks the file as ours: bytes 68 to 71
HEADER = 100  # bytes; https://www.sqlite.org/fileformat.html, section 1.3
_DISK = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
}
PATIENCE = 2.0  # seconds a writer waits for another
BESIDE = ("-wal", "-shm", "-journal")

# Numbered from 1; the number of the last one applied is the file's version. Only ever add to the end.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE chunks (number INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL, sum BLOB NOT NULL);
    CREATE TABLE names (id BLOB PRIMARY KEY, chunk INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE marks (id BLOB PRIMARY KEY REFERENCES names, entry INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE pages (
        shelf TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, sum BLOB NOT NULL, PRIMARY KEY (shelf, name)
    ) WITHOUT ROWID;
    CREATE TABLE entries (number INTEGER PRIMARY KEY, data BLOB NOT NULL, sum BLOB NOT NULL);
    CREATE TABLE seal (
        one INTEGER PRIMARY KEY CHECK (one = 1), total BLOB NOT NULL, rows INTEGER NOT NULL, held INTEGER NOT NULL,
        marked INTEGER NOT NULL, scrub INTEGER NOT NULL
    );
    INSERT INTO seal VALUES (1, zeroblob(32), 0, 0, 0, 0);
    CREATE TRIGGER entries_stay BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
    CREATE TRIGGER entries_hold BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
    """,
    """
    CREATE TABLE footprints (shard INTEGER PRIMARY KEY REFERENCES chunks, data BLOB NOT NULL, sum BLOB NOT NULL);
    CREATE TABLE states (shard INTEGER PRIMARY KEY REFERENCES chunks, data BLOB NOT NULL, sum BLOB NOT NULL);
    """,
)


def create(path: Path, *, first: Callable[[sqlite3.Connection], None] | None = None) -> None:
    """Makes the file of an empty book. It appears under its name only when it is whole.

    Args:
        first: what to write before it appears.

    Raises:
        NotABookError: there is a file of that name already, or its folder does not exist.
        BookError: it cannot be written there.
    """
    if path.exists():
        raise NotABookError(f"{path} is there already. Open it, or choose another name.", path=str(path))
    if not path.parent.is_dir():
        raise NotABookError(f"The folder of {path} does not exist. Make it first.", path=str(path))
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with told(draft):
            connection = sqlite3.connect(draft, isolation_level=None)
            try:
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute("PRAGMA journal_mode = WAL")
                migrate(connection, MIGRATIONS)
                if first is not None:
                    first(connection)
            finally:
                connection.close()
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        os.link(draft, path)  # unlike a rename, refuses where another has made the book meanwhile
        _sync_folder(path.parent)
    except FileExistsError as error:
        raise NotABookError(f"{path} is there already. Open it, or choose another name.", path=str(path)) from error
    except OSError as error:
        raise BookError(f"{path} cannot be written: {error.strerror}.", path=str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


def connect(path: Path, *, patience: float = PATIENCE) -> sqlite3.Connection:
    """A connection to the file of a book, brought to this version's tables where it is older.

    Raises:
        NotABookError: there is no such file, or it is another program's.
        NewerBookError: it was written by a newer version.
        DamagedBookError: it is truncated or its bytes are off.
        BusyError: it is older, and another process is writing to it.
    """
    check_header(path)
    with told(path):
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
        try:
            for setting in ("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON", "temp_store = MEMORY"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(f"PRAGMA journal_size_limit = {1 << 22}")
            # As seen through the log beside the file, which may be newer than the header that was just read.
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            refuse_newer(path, version)
            if version < len(MIGRATIONS):
                migrate(connection, MIGRATIONS)
        except BaseException:
            connection.close()
            raise
    return connection


def migrate(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Applies the migrations that the file does not have yet, each as a whole.

    Raises:
        sqlite3.Error: one cannot be applied; those before it are kept.
    """
    for number in range(connection.execute("PRAGMA user_version").fetchone()[0], len(migrations)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been quicker.
            if connection.execute("PRAGMA user_version").fetchone()[0] == number:
                for statement in _statements(migrations[number]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for part in script.split(";"):
        pending += part + ";"
        if sqlite3.complete_statement(pending):
            if pending.strip(" \n;"):
                yield pending
            pending = ""


def check_header(path: Path) -> None:
    """Nothing, where the first bytes and the length are those of a book. Reads only.

    Raises:
        NotABookError: there is no such file, or it is another program's.
        NewerBookError: it was written by a newer version.
        DamagedBookError: it is shorter than it says.
    """
    try:
        with open(path, "rb") as file:
            header = file.read(HEADER)
            length = os.fstat(file.fileno()).st_size
    except FileNotFoundError as error:
        raise NotABookError(f"There is no book {path}. Make it with: strikeout init {path}", path=str(path)) from error
    except OSError as error:
        raise NotABookError(f"{path} cannot be read: {error.strerror}.", path=str(path)) from error
    if len(header) == HEADER and header.startswith(b"SQLite format 3\0"):
        if int.from_bytes(header[68:72], "big") == APPLICATION:
            refuse_newer(path, int.from_bytes(header[60:64], "big"))
            size = int.from_bytes(header[16:18], "big")
            needed = (65536 if size == 1 else size) * int.from_bytes(header[28:32], "big")
            wal = path.with_name(path.name + "-wal")
            # With a log beside it the file may rightly be shorter: its last pages are still in the log.
            if length < needed and not (wal.exists() and wal.stat().st_size):
                raise DamagedBookError(
                    f"{path} is cut short: {length:,} bytes of {needed:,} are there. Nothing was changed; "
                    "bring the book back from a copy.",
                    path=str(path),
                    found=length,
                    needed=needed,
                )
            return
        raise NotABookError(f"{path} is a SQLite file of another program, not a book. Choose a book.", path=str(path))
    raise NotABookError(
        f"{path} is no book: its {length:,} bytes do not begin as a book does. If it was one, it is damaged: "
        "bring it back from a copy.",
        path=str(path),
    )


def refuse_newer(path: Path, version: int) -> None:
    """Nothing, where this software knows the version of the tables.

    Raises:
        NewerBookError: it is newer.
    """
    if version > len(MIGRATIONS):
        raise NewerBookError(
            f"{path} was written by a newer strikeout: its tables are version {version}, and this one knows "
            f"{len(MIGRATIONS)}. Update strikeout; nothing was changed.",
            path=str(path),
            version=version,
        )


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Tells what SQLite found wrong in our words.

    Raises:
        BusyError: another process has the file.
        DamagedBookError: the file is not what was written.
        BookError: the disk is full, read-only or failing.
    """
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
                f"{path} cannot be read or written: {error}. What it held is still there.", path=str(path)
            ) from error
        raise damaged(path, str(error)) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the text of an error may quote damaged bytes
        raise damaged(path, str(error)) from error


def damaged(path: Path, what: str) -> DamagedBookError:
    """The error for bytes that are not those that were written."""
    return DamagedBookError(
        f"{path} is damaged: {what}. Nothing was changed; bring the book back from a copy.", path=str(path)
    )


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # where a folder can be opened, its entries can be made to last
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
