"""A small record to test with: an import, strike-outs, a change of keys; the same bytes every time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from strikeout.store.keyring import Keyring, Signer
from strikeout.store.ledger import Act, Ledger, Reason

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
RING = Keyring((Signer.from_seed(bytes(range(32))),), bytes(32))
TOUCHED = (b"SPX 4500 C 2024-06-21 103.25", b"SPX 4600 C 2024-06-21 58.5")
STATE = sha256(b"the state").hexdigest()
CERTIFICATE = sha256(b"the certificate").hexdigest()
FORGET = Act(
    "desk-1",
    "forget",
    NOON,
    why=Reason("bad-feed", "décimal shift", "OPS-17"),
    counts={"forgotten": 2, "retained": 538},
    digests={"state": STATE},
    touched=TOUCHED,
    certificate=CERTIFICATE,
)


def act(what: str, minutes: int = 0) -> Act:
    return Act("desk-1", what, NOON + timedelta(minutes=minutes))


def record(length: int = 4, ring: Keyring = RING) -> Ledger:
    """An import, then strike-outs."""
    ledger = Ledger().append(act("import"), ring)
    for _ in range(length - 1):
        ledger = ledger.append(FORGET, ring)
    return ledger


def rotated() -> tuple[Ledger, Keyring]:
    """Two entries under the old key, the hand-over, and two under the new, the first of which takes over."""
    both = replace(RING, signers=(*RING.signers, Signer.from_seed(bytes(32))))
    ledger = record(2).rotate(act("rotate"), both)
    after = both.only(ledger.public)
    return ledger.append(act("calibrate"), after), after


def flips(row: bytes) -> list[bytes]:
    """The bytes with one bit changed, for every bit."""
    return [row[:n] + bytes([row[n] ^ 1 << bit]) + row[n + 1 :] for n in range(len(row)) for bit in range(8)]
