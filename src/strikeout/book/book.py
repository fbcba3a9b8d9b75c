"""A book in a file: the desk's verbs on ``NAME.book``."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from strikeout.book.desk import Desk
from strikeout.book.fit_source import Asked
from strikeout.book.known_files import remove
from strikeout.book.records import SMALLEST, SMALLEST_ERASURE, Position, Records, Why
from strikeout.book.results import Audit, Change, Rotation
from strikeout.book.spec import as_the_last_time
from strikeout.calibration.panels import AUTO
from strikeout.errors import DamagedBookError, UsageError
from strikeout.models.model import Model
from strikeout.store.keyring import Keyring, key_file
from strikeout.store.ledger import Head
from strikeout.store.store import Store
from strikeout.wording import many

Clock = Callable[[], datetime]


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def person() -> str:
    """The name this process runs under."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


class Book(Desk):
    """Quotes, calibrations and the record of every change, in one file that lasts.

    Open it with ``with``; every verb of it is one transaction. See ``Desk`` for the verbs.

    >>> import tempfile, strikeout as so
    >>> folder = Path(tempfile.mkdtemp())
    >>> with so.Book.create(folder / "small.book") as book:
    ...     _ = book.import_quotes(so.paper.quotes("small"))
    ...     _ = book.calibrate()
    ...     _ = book.apply(book.forget(where="date < '2024-01-10'"))
    ...     book.verify().holds
    True
    """

    def __init__(self, records: Records, *, path: Path) -> None:
        super().__init__(records)
        self.path = path
        self._place = path.absolute()  # whatever folder the process works in later

    @staticmethod
    def create(
        path: str | PathLike[str],
        *,
        who: str | None = None,
        clock: Clock = now,
        is_encrypted: bool = False,
        smallest_erasure: int = SMALLEST,
    ) -> Book:
        """A new book; its secrets go to ``NAME.book.key`` beside it, or where STRIKEOUT_KEY_FILE says.

        Args:
            who: the name its entries carry; the one this process runs under where not given.
            is_encrypted: quotes and states are kept under keys in ``NAME.book.shardkeys``, which an erasure destroys.
            smallest_erasure: an erasure of fewer quotes comes with a warning: results of before give them away.

        Raises:
            UsageError: the smallest erasure is not a number of quotes, 1 or more.
            BookError: there is a file already, or none can be made there.
            RefusedError: there is a key file already, or none can be written. Then there is no book either.
        """
        from strikeout.store.bookfile import real_path, refuse_taken
        from strikeout.store.sqlite import SqliteStore

        if type(smallest_erasure) is not int or smallest_erasure < 1:
            raise UsageError(f"smallest_erasure={smallest_erasure!r}: give a number of quotes, 1 or more.")
        target = real_path(Path(path))
        refuse_taken(target)
        keyring, keys = Keyring.generate(), key_file(target.absolute())
        keyring.create(keys)

        def begin(store: Store) -> None:
            with Records(store, keyring, clock, who or person()).writing(Position(0, "")) as book:
                book.enter("create", None, counts={SMALLEST_ERASURE: smallest_erasure})

        try:
            key = keyring.store_key()
            store = SqliteStore.create(target, key=key, is_encrypted=is_encrypted, begin=begin)
        except BaseException:
            keys.unlink(missing_ok=True)  # made a moment ago, for a book that is not there
            raise
        return _on(store, target, keyring, who, clock)

    @staticmethod
    def open(
        path: str | PathLike[str], *, who: str | None = None, clock: Clock = now, is_two_person: bool = False
    ) -> Book:
        """The book in this file.

        Args:
            who: the name its entries carry; the one this process runs under where not given.
            is_two_person: whether quotes are forgotten and erased only once a second person approved it.

        Raises:
            BookError: there is no such file, it is no book, of a newer version, or damaged; it is left as it is.
            RefusedError: its key file is gone, damaged, open to others or another book's.
        """
        from strikeout.store.bookfile import real_path, recognise
        from strikeout.store.sqlite import SqliteStore

        target = real_path(Path(path))
        recognise(target)  # that there is no such book is to be said before that it has no keys
        keyring = Keyring.read(key_file(target.absolute()))
        store = SqliteStore.open(target, key=keyring.store_key())
        try:
            book = _on(store, target, keyring, who, clock, is_two_person=is_two_person)
            book._records.refuse_other_keys()
            with suppress(DamagedBookError):  # a list that somebody changed removes nothing; `verify` tells of it
                remove(book._records.files().condemned, book._records.file_digest)  # what an erasure could not finish
        except BaseException:
            store.close()
            raise
        return book

    @staticmethod
    def verify_copy(path: str | PathLike[str], *, key: str | Sequence[str], head: Head | None = None) -> Audit:
        """Checks a copy of a book without its key file: bytes, ledger, counts, states, parameters and certificates.

        Anybody can: nothing secret is read. Whether labels, quotes set aside and pages are as the last entry commits
        to, and whether an erased quote is back, only the key file can tell; ``Audit.has_key`` is False.

        Args:
            key: the public key that must have signed the last entry, 64 hexadecimal digits as ``status`` gives it, or
                several of them.
            head: of the ledger, kept elsewhere since: finds a ledger that was cut short or written anew.

        Raises:
            UsageError: ``key`` is no public key.
            BookError: there is no such file, it is no book, of a newer version, or damaged.
            RefusedError: its quotes are encrypted, and their keys are not beside it.
        """
        from strikeout.book.audit import audit_copy
        from strikeout.store.signing import public_keys
        from strikeout.store.sqlite import SqliteStore

        trusted = public_keys(key)
        if not trusted:
            raise UsageError("verify_copy: give the public key that must have signed the ledger, as status gives it.")
        with SqliteStore.open(Path(path), key=None) as store, store.reading():
            return audit_copy(Records(store, Keyring.empty(), now, ""), keys=trusted, head=head)

    def calibrate(
        self,
        model: Model | None = None,
        *,
        through: Asked | None = None,
        perturb: float | None = None,
        reason: Why = None,
        fresh: bool = False,
        **settings: Any,
    ) -> Change:
        """Calibrates the quotes the book holds, and keeps the result as its current version.

        What is not said is as it was the last time, as on the command line: ``book.calibrate(loss="huber")`` changes
        the loss and nothing else. Another model has other parameters, so bounds, fixed parameters and starts of one's
        own do not follow it; nor do moments follow a setting that they may not know.

        Args:
            model, through, perturb, reason, settings: as ``Desk.calibrate`` takes them.
            fresh: what is not said is at its default instead.

        Raises:
            RefusedError: the book is empty, or its quotes cannot be calibrated.
            UsageError: an unknown setting, or one that a book cannot keep.
        """
        progress = {name: settings.pop(name) for name in ("progress",) if name in settings}
        sources = {name: value for name, value in (("through", through), ("perturb", perturb)) if value is not None}
        said, last = {**settings, **sources}, self._records.asking()
        if fresh:
            said = {"panel": AUTO, **said}  # something is said, so nothing is as the last time
        elif last is not None and (said or model is not None):
            said |= as_the_last_time(last, given=said, model=model)
        return super().calibrate(said.pop("model", model), reason=reason, **progress, **said)

    def rotate_key(self, *, reason: Why = None) -> Rotation:
        """From now on a new key signs the ledger; the old one hands over, signed, and leaves the key file.

        What is signed stays checkable, and commitments stay what they are. A rotation that a crash cut short is
        finished: the new key is in the file before the ledger names it, so there is always one that may sign.

        Raises:
            RefusedError: the key file cannot be read or written, or the book moved meanwhile.
        """
        records, path = self._records, key_file(self._place)
        seen = records.position()
        # The key file changes only while this process alone may write to the book: two rotations at once would each
        # throw away the key that the other has just named.
        with records.writing(seen) as book:
            due = records.ledger().public or ""
            ring = Keyring.read(path)
            ring.signer(due)  # refuses the key file of another book before it is touched
            if due == ring.signers[-1].public:  # otherwise a rotation was cut short before the ledger named its key
                ring = ring.only(due).with_new_signer()
                ring.replace_in(path)
            entry = book.rotate(reason, ring)
        new = ring.signers[-1].public
        self._records, self._last = replace(records, keyring=ring.only(new)), None
        with records.store.writing():
            due_now = self._records.ledger().public or ""
            Keyring.read(path).only(due_now).replace_in(path)
        return Rotation(entry, due, new)

    def close(self) -> None:
        """Lets go of the file. What was written stays."""
        self._records.store.close()

    def __enter__(self) -> Book:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        status = self.status()
        held, entries = many(status.held, "quote"), many(status.entries, "entry", "entries")
        return f"<Book {self.path.name}: {held}, {entries}; {status.sentence}>"

    @property
    def plan_path(self) -> Path:
        """Where the command line keeps a plan until it is applied."""
        return self.path.with_name(self.path.name + ".plan.json")

    @property
    def _called(self) -> str:
        return str(self.path)

    def _plans(self) -> tuple[Path, ...]:
        return (self._place.with_name(self.plan_path.name),)


def _on(
    store: Store, path: Path, keyring: Keyring, who: str | None, clock: Clock, *, is_two_person: bool = False
) -> Book:
    reread = partial(Keyring.read, key_file(path.absolute()))
    return Book(Records(store, keyring, clock, who or person(), is_two_person, reread), path=path)
