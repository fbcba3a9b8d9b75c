"""A store in one file, with the SQLite of the standard library. Committed transactions survive a power failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from strikeout.errors import BookError, BusyError, RefusedError
from strikeout.store import bookfile, holding
from strikeout.store.bookfile import BESIDE, PATIENCE, Connection, real_path
from strikeout.store.checksums import UNKEYED, Sealer
from strikeout.store.shard_keys import HEAD, ShardKeys, key_name, shard_key_file
from strikeout.store.sqlite_reading import SqliteReading, faults
from strikeout.store.sqlite_writing import SqliteWriting
from strikeout.store.store import ENCRYPTION, Reading, Writing

SETTLING = 5  # attempts to find the log empty
REWRITING = 15  # times the patience: how long another process may take to rewrite a large file after an erasure
PAUSE = 0.01  # seconds between attempts that SQLite refuses at once


class SqliteStore:
    """A ``Store`` in a file. Use ``create`` or ``open``, then close it or use it in a ``with`` block."""

    def __init__(self, connection: Connection, sealer: Sealer | None, keys: ShardKeys | None) -> None:
        self._connection, self._sealer, self._keys = connection, sealer, keys
        self._path = connection.path
        self.now = SqliteReading(connection, sealer, keys)

    @staticmethod
    def create(
        path: str | Path,
        *,
        key: bytes = UNKEYED,
        patience: float = PATIENCE,
        is_encrypted: bool = False,
        begin: Callable[[SqliteStore], None] | None = None,
    ) -> SqliteStore:
        """Create a book in a new file that contains only what ``begin`` writes. The file appears once it is complete.

        Args:
            key: the secret that rows are sealed with; see ``checksums``.
            is_encrypted: encrypt its quotes, with the keys in a separate file; see ``shard_keys``.
            begin: writes the first transactions.
        """
        target = real_path(path)
        bookfile.refuse_taken(target)
        keys = ShardKeys.create(shard_key_file(target)) if is_encrypted else None

        def fill(connection: Connection) -> None:
            store = SqliteStore(connection, Sealer(key), keys)
            if keys is not None:
                with store.writing() as transaction:
                    transaction.put("setting", ENCRYPTION, keys.book)
            if begin is not None:
                begin(store)

        try:
            bookfile.create(target, first=fill)
        except BaseException:
            if is_encrypted:
                shard_key_file(target).unlink(missing_ok=True)
            raise
        return SqliteStore.open(target, key=key, patience=patience)

    @staticmethod
    def open(path: str | Path, *, key: bytes | None = UNKEYED, patience: float = PATIENCE) -> SqliteStore:
        """Open the book in a file. An erasure that a crash interrupted is finished first.

        Args:
            key: the secret that rows are sealed with. None to open the book without it: then the book can
                be read, but not checked for rows that were written without the key.
            patience: seconds to wait for another writer before BusyError is raised.
        """
        target = real_path(path)
        connection, sealer = bookfile.connect(target, patience=patience), None if key is None else Sealer(key)
        try:
            book = SqliteReading(connection, sealer).page("setting", ENCRYPTION)
            store = SqliteStore(
                connection, sealer, None if book is None else ShardKeys.open(shard_key_file(target), book)
            )
            store._finish_erasure()
        except BaseException:
            connection.close()
            raise
        return store

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        self._begin("BEGIN")
        try:
            yield self.now
        finally:
            if self._connection.in_transaction:  # a failing disk ends the transaction
                self._connection.execute("ROLLBACK")

    @contextmanager
    def settled(self) -> Iterator[Reading]:
        log = holding.log_of(self._connection.hold.path)
        for _ in range(SETTLING):
            is_empty = self._empty_log()
            with self.reading() as book:
                book.counts()  # takes the snapshot: from now on no other process copies its log into the file
                if is_empty and not (log.exists() and log.stat().st_size):
                    yield book
                    return
        raise BusyError(
            f"{self._path}: another process reads or writes it, so its log cannot be emptied. Try again later.",
            path=str(self._path),
        )

    @contextmanager
    def scrubbed(self) -> Iterator[Reading]:
        end = time.monotonic() + REWRITING * self._patience
        while True:
            self._finish_erasure()
            with self.reading() as book:
                if self._sealer is None or not self._unfinished() or time.monotonic() >= end:
                    yield book
                    return
            time.sleep(PAUSE)  # another process rewrites the file, or has erased quotes since

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        if self._sealer is None:
            raise RefusedError(f"{self._path} was opened without its key, and can only be read.")
        self._begin("BEGIN IMMEDIATE")
        try:
            self._connection.hold.check()
            transaction = SqliteWriting(self._connection, self._sealer, self._keys)
            yield transaction
            transaction.settle()
            if self._keys is not None:
                self._keys.settle()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._keys is not None:
                self._keys.forgo()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.hold.check()
        if transaction.erased:
            try:
                self._scrub()
            except BookError as error:
                if "disk" not in error.facts:
                    raise
                raise BookError(
                    f"The quotes are erased from {self._path} and the ledger records that, but old bytes are still in "
                    f"the file, which could not be rewritten: {error.facts['disk']}. Free space for a second copy "
                    "of the book on its disk, then open the book again: that finishes the erasure.",
                    path=str(self._path),
                    disk=error.facts["disk"],
                ) from error

    def faults(self) -> list[str]:
        if self._connection.in_transaction:
            return faults(self.now)
        with self.reading():  # one snapshot, so that concurrent writes are not reported as faults
            return faults(self.now)

    def files(self) -> tuple[Path, ...]:
        real = self._connection.hold.path
        beside = (real.with_name(real.name + end) for end in ("", *BESIDE))
        return tuple(path for path in beside if path.exists())

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, how: str) -> None:
        if self._connection.in_transaction:
            raise BusyError(
                f"{self._path} is being read or written by a block of this store that has not ended. End it first."
            )
        self._connection.execute(how)

    @property
    def _patience(self) -> float:
        ((milliseconds,),) = self.now.rows("PRAGMA busy_timeout")
        return float(milliseconds) / 1000

    def _unfinished(self) -> int:
        """Return the number of the last erasure after which the file was not rewritten; 0 if there is none."""
        return next((number for (number,) in self.now.rows("SELECT scrub FROM seal")), 0)

    def _finish_erasure(self) -> None:
        if self._sealer is not None and self._unfinished():
            # If another process writes or the disk is full, the book can be used; `faults` reports the old bytes.
            with suppress(BusyError), _suppress_full_disk():
                self._scrub()

    def _scrub(self) -> None:
        """Destroy unused keys, rewrite the file without the erased quotes, and empty its log."""
        number = self._unfinished()
        if self._keys is not None:
            self._destroy_spent(self._keys)
        self._empty_old_log()
        # Zeroed on deletion already (secure_delete); rewritten so that erasure does not depend on one setting.
        self._connection.execute("VACUUM")
        # Another process may have erased more since: that erasure is not finished by this.
        self._connection.execute("UPDATE seal SET scrub = 0 WHERE scrub = ?", (number,))
        self._empty_old_log()

    def _destroy_spent(self, keys: ShardKeys) -> None:
        self._connection.execute("BEGIN IMMEDIATE")  # so that no other writer has uncommitted keys
        try:
            question = "SELECT substr(data, 1, ?1) FROM chunks UNION ALL SELECT substr(data, 1, ?1) FROM pages"
            heads = self.now.rows(question, (HEAD,))
            keys.keep_only({name for (head,) in heads if (name := key_name(head)) is not None})
        finally:
            self._connection.execute("ROLLBACK")

    def _empty_log(self) -> bool:
        """Copy the log into the file and return whether it is empty then.

        SQLite waits for readers and writers, but not for another process that empties the log at the same time.
        """
        end = time.monotonic() + self._patience
        while True:
            ((busy, _, _),) = self.now.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            if not busy or time.monotonic() >= end:
                return not busy
            time.sleep(PAUSE)

    def _empty_old_log(self) -> None:
        if not self._empty_log():
            raise BusyError(
                f"The quotes are erased from {self._path}, but another process is reading an older snapshot of the "
                "book, which keeps old bytes in its log. Open the book again when that process is done."
            )


@contextmanager
def _suppress_full_disk() -> Iterator[None]:
    """Suppress the error of a full or failing disk."""
    try:
        yield
    except BookError as error:
        if "disk" not in error.facts:
            raise
