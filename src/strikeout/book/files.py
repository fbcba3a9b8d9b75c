"""Create and open the file of a book, with its secrets or with the public key alone, and rotate its key."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from strikeout.book.known_files import remove
from strikeout.book.records import Position, Session, Snapshot, Why
from strikeout.book.results import Rotation
from strikeout.errors import DamagedBookError, RefusedError, UsageError
from strikeout.store.keyring import Keyring, key_file
from strikeout.store.ledger import check_bytes
from strikeout.store.store import Store

Clock = Callable[[], datetime]


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def person() -> str:
    """Return the name this process runs under."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def create(
    path: Path, *, who: str | None, clock: Clock, is_encrypted: bool, policies: Mapping[str, int]
) -> tuple[Session, Path]:
    """Create the file of a book and its key file; return the session and the real path.

    Args:
        policies: counts of the first entry.
    """
    from strikeout.store.bookfile import real_path, refuse_taken
    from strikeout.store.sqlite import SqliteStore

    target = real_path(path)
    refuse_taken(target)
    keyring, keys = Keyring.generate(), key_file(target.absolute())
    keyring.create(keys)

    def begin(store: Store) -> None:
        with Session(store, keyring, clock, who or person()).writing(Position(0, "")) as book:
            book.enter("create", None, counts=policies)

    try:
        store = SqliteStore.create(target, key=keyring.store_key(), is_encrypted=is_encrypted, begin=begin)
    except BaseException:
        keys.unlink(missing_ok=True)  # made just before, for a book that is not there
        raise
    return _session(store, target, keyring, who, clock), target


def open_file(path: Path, *, who: str | None, clock: Clock) -> tuple[Session, Path]:
    """Open the file of a book with its key file; finish what an erasure could not."""
    from strikeout.store.bookfile import real_path, recognise
    from strikeout.store.sqlite import SqliteStore

    target = real_path(path)
    recognise(target)  # a missing book is reported before missing keys
    keyring = Keyring.read(key_file(target.absolute()))
    store = SqliteStore.open(target, key=keyring.store_key())
    try:
        session = _session(store, target, keyring, who, clock)
        session.refuse_other_keys()
        with suppress(DamagedBookError):  # a list that was changed removes nothing; `verify` reports it
            seen = session.snapshot()
            remove(seen.files.condemned, seen.file_digest)
    except BaseException:
        store.close()
        raise
    return session, target


def open_public(path: Path, key: str | Sequence[str]) -> tuple[Session, Path]:
    """Open the file of a book for reading, without its secrets; its ledger must be signed with this public key."""
    from strikeout.store.bookfile import real_path
    from strikeout.store.sqlite import SqliteStore

    trusted, target = trusted_keys(key), real_path(path)
    store = SqliteStore.open(target, key=None)
    try:
        session = Session(store, Keyring.empty(), now, "")
        faults = check_bytes(store.now.entries())
        last = None if faults else session.ledger().public
        if last not in trusted:
            why = " ".join(faults) or f"its last entry is signed with {str(last)[:16]}..."
            raise RefusedError(f"{path}: the ledger is not one that this key signed: {why}", path=str(path))
    except BaseException:
        store.close()
        raise
    return session, target


def rotate_key(seen: Snapshot, path: Path, reason: Why) -> tuple[Session, Rotation]:
    """Rotate the key in the key file at this path; return the session that signs with the new one.

    The new key is in the file before the ledger names it, so there is always one that may sign.
    """
    session = seen.session
    # The key file changes only while this process alone may write to the book: two rotations at once would each
    # discard the key that the other has just named.
    with session.writing(seen.position) as book:
        due = session.ledger().public or ""
        ring = Keyring.read(path)
        ring.signer(due)  # refuses the key file of another book before it is touched
        if due == ring.signers[-1].public:  # otherwise a rotation was cut short before the ledger named its key
            ring = ring.only(due).with_new_signer()
            ring.replace_in(path)
        entry = book.rotate(reason, ring)
    new = ring.signers[-1].public
    renewed = replace(session, keyring=ring.only(new))
    with session.store.writing():
        Keyring.read(path).only(renewed.ledger().public or "").replace_in(path)
    return renewed, Rotation(entry, due, new)


def trusted_keys(key: str | Sequence[str]) -> tuple[str, ...]:
    """Return public keys, one or several."""
    from strikeout.store.signing import public_keys

    found = tuple(public_keys(key))
    if not found:
        raise UsageError("Give the public key that must have signed the ledger, as status shows it.")
    return found


def _session(store: Store, path: Path, keyring: Keyring, who: str | None, clock: Clock) -> Session:
    return Session(store, keyring, clock, who or person(), partial(Keyring.read, key_file(path.absolute())))
