"""Give a book a new key to sign its ledger with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from strikeout.book.records import Session, Snapshot, Why
from strikeout.book.results import Rotation
from strikeout.store.keyring import Keyring


def rotate_key(seen: Snapshot, path: Path, reason: Why) -> tuple[Session, Rotation]:
    """Rotate the key in the key file at this path; return the session that signs with the new one.

    The new key is in the file before the ledger names it, so there is always one that may sign.

    Raises:
        RefusedError: the key file cannot be read or written, or the book moved meanwhile.
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
