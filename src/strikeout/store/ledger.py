"""The ledger of a book: append-only, chained and signed, with proofs against a root of 32 bytes.

The chain detects entries that were changed, removed or inserted. It does not detect that all entries were rewritten
under another key: to detect that, give ``check`` the keyring or the first public key. Nor does it detect that the last
entries were removed: to detect that, keep a ``Head`` elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from strikeout.errors import RefusedError, UsageError
from strikeout.store import merkle
from strikeout.store.entry import CLOCK_BACK, Act, Entry, Reason, ReasonCode, seconds_back
from strikeout.store.keyring import Keyring, is_hex
from strikeout.text import agreeing, many

__all__ = [
    "Act",
    "Entry",
    "Head",
    "Ledger",
    "LedgerReader",
    "Reason",
    "ReasonCode",
    "SetCommitment",
    "check_bytes",
    "commitment_of",
    "entry_after",
    "keyed_certificate",
]

FIRST = "0" * 64  # `previous` of the first entry


@dataclass(frozen=True)
class Head:
    """The length of a ledger and its root at that time, which determine all entries up to there."""

    size: int
    root: str

    def __str__(self) -> str:
        return f"{self.size}:{self.root}"

    @staticmethod
    def parse(text: str) -> Head:
        """Return the head that a text represents.

        Raises:
            UsageError: the text is not a head.
        """
        size, _, root = text.strip().partition(":")
        if not (size.isascii() and size.isdigit() and is_hex(root, merkle.WIDTH)):
            raise UsageError(f"A head of a ledger is NUMBER:64 hexadecimal digits; found {text!r}.", text=text)
        return Head(int(size), root)


@dataclass(frozen=True)
class Ledger:
    """All entries in order. Appending returns a new ledger."""

    entries: tuple[Entry, ...] = ()

    @staticmethod
    def from_bytes(rows: Sequence[bytes]) -> Ledger:
        """Return the ledger of these stored entries. Nothing is checked; ``check`` does that."""
        return Ledger(tuple(_read(row, place) for place, row in enumerate(rows, 1)))

    def append(self, act: Act, keyring: Keyring, *, next_public: str = "") -> Ledger:
        """Return this ledger with one more entry, signed with the key that is due; digests in it are keyed."""
        last = self.entries[-1] if self.entries else None
        return Ledger((*self.entries, entry_after(last, act, keyring=keyring, next_public=next_public)))

    def rotate(self, act: Act, keyring: Keyring) -> Ledger:
        """Return this ledger with two more entries: the old key names the newest one, which signs the second entry.

        Write in this order: ``keyring.with_new_signer()`` to the key file, this ledger to the book,
        ``keyring.only(ledger.public)`` to the key file.
        """
        newest = keyring.signers[-1].public
        if newest == keyring.signer(self.public).public:
            raise RefusedError("rotate: the keyring has no new key. Use keyring.with_new_signer().")
        # Without the second entry, a forged ledger could end by naming the book's key and pass for one signed with it.
        return self.append(act, keyring, next_public=newest).append(act, keyring)

    @property
    def public(self) -> str | None:
        """The key that must sign the next entry; None for an empty ledger, which accepts any."""
        return self.entries[-1].next_signer() if self.entries else None

    def check(
        self, *, keyring: Keyring | None = None, first_public: str | None = None, head: Head | None = None
    ) -> list[str]:
        """Return one message per fault; empty if numbers, chain, signatures and keys are all valid.

        Args:
            keyring: the last entry must be signed with one of its keys.
            first_public: the first entry must be signed with this key.
            head: the ledger must begin with the entries that this head covers.
        """
        found, previous, due, last = [], FIRST, first_public, ""
        for place, entry in enumerate(self.entries, 1):
            if entry.number != place:
                found.append(f"Entry {place} of the ledger has the number {entry.number}.")
            if entry.previous != previous:
                found.append(f"Entry {place} does not follow from the one before it: an entry was changed or removed.")
            if due is not None and entry.public != due:
                found.append(f"Entry {place} is signed with the key {entry.public[:16]}..., not with {due[:16]}....")
            if not entry.is_signed():
                found.append(f"Entry {place} was changed after it was signed, or never signed with its key.")
            if entry.counts.get(CLOCK_BACK, 0) != seconds_back(last or entry.at, entry.at):
                found.append(f"Entry {place} is dated before the one it follows, and does not record that.")
            previous, due, last = entry.hash().hex(), entry.next_signer(), entry.at
        return found + self._check_last(keyring) + self._check_head(head)

    def root(self, size: int | None = None) -> str:
        """Return the root over the first ``size`` entries, or over all, 64 hexadecimal digits."""
        if size is None:
            return self._root
        if not 0 <= size <= len(self):
            raise UsageError(f"root: {many(size, 'entry', 'entries')} asked for; the ledger has {len(self)}.")
        return merkle.root(self._leaves[:size]).hex()

    def head(self) -> Head:
        """Return the head. Keep it elsewhere to detect that entries up to here were changed or removed."""
        return Head(len(self), self.root())

    def inclusion(self, number: int) -> tuple[bytes, ...]:
        """Return the proof that entry ``number`` is under ``root()``; see ``merkle.verify_inclusion``, from 0."""
        self[number]
        return merkle.inclusion_proof(self._leaves, number - 1)

    def consistency(self, old: Head) -> tuple[bytes, ...]:
        """Return the proof that this ledger only grew since ``old``; check it with ``merkle.verify_consistency``."""
        return merkle.consistency_proof(self._leaves, old.size)

    def to_bytes(self) -> list[bytes]:
        """Return each entry as it is stored."""
        return [entry.to_bytes() for entry in self.entries]

    def __getitem__(self, number: int) -> Entry:
        """Return the entry with this number, from 1."""
        if not 1 <= number <= len(self):
            raise UsageError(f"Ledger: entry {number} asked for; it has {len(self)}, numbered from 1.", number=number)
        return self.entries[number - 1]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    @cached_property
    def _leaves(self) -> list[bytes]:
        return [entry.hash() for entry in self.entries]

    @cached_property
    def _root(self) -> str:
        return merkle.root(self._leaves).hex()

    def _check_last(self, keyring: Keyring | None) -> list[str]:
        if keyring is None or not self.entries or self.entries[-1].public in {s.public for s in keyring.signers}:
            return []
        return [
            f"The last entry is signed with the key {self.entries[-1].public[:16]}..., which is not in the key file: "
            "the ledger was written with another key, or the file belongs to another book."
        ]

    def _check_head(self, head: Head | None) -> list[str]:
        if head is None:
            return []
        if head.size > len(self):
            return [
                f"The ledger has {many(len(self), 'entry', 'entries')} and had {head.size:,}: the last "
                f"{head.size - len(self):,} {agreeing(head.size - len(self), 'is', 'are')} missing."
            ]
        if self.root(head.size) != head.root:
            return [f"The first {head.size} entries are not those of the given head: the ledger was rewritten."]
        return []


class LedgerReader:
    """A reader of a stored ledger that does not parse the same bytes twice.

    Parsing an entry checks all of its fields, which takes longer than fetching it. A command that reads the ledger five
    times would spend most of its time on that.
    """

    def __init__(self) -> None:
        self._rows: tuple[bytes, ...] = ()
        self._ledger = Ledger()

    def read(self, rows: Sequence[bytes]) -> Ledger:
        """Return the ledger of these stored entries, as ``Ledger.from_bytes`` does."""
        if rows is self._rows:
            return self._ledger
        rows = tuple(rows)
        same = len(self._rows) if rows[: len(self._rows)] == self._rows else 0
        if same < len(rows) or not same:
            later = (_read(row, place) for place, row in enumerate(rows[same:], same + 1))
            self._rows, self._ledger = rows, Ledger((*self._ledger.entries[:same], *later))
        return self._ledger


def entry_after(last: Entry | None, act: Act, *, keyring: Keyring, next_public: str = "") -> Entry:
    """Return the entry that follows the last one. Its cost does not depend on the length of the ledger."""
    from strikeout import __version__

    signer = keyring.signer(last.next_signer() if last else None)
    back = seconds_back(last.at, act.moment()) if last else 0
    entry = Entry(
        number=last.number + 1 if last else 1,
        at=act.moment(),
        who=act.who,
        what=act.what,
        why=act.why,
        # Not refused: if a clock was once ahead, the book would be locked until that time. It is recorded instead.
        counts={**act.counts, **({CLOCK_BACK: back} if back else {})},
        digests={name: keyring.commit(f"digest {name}", text.encode()) for name, text in act.digests.items()},
        reading=act.reading,
        touched=act.commitment or commitment_of(act.touched, keyring),
        certificate=act.certificate and keyed_certificate(act.certificate, keyring),
        software=f"strikeout {__version__}",
        previous=last.hash().hex() if last else FIRST,
        public=signer.public,
        next_public=next_public,
    )
    return entry.signed(signer)


def keyed_certificate(digest: str, keyring: Keyring) -> str:
    """Return the commitment to a certificate in the ledger.

    A plain digest would remain after an erasure: with the retained quotes one could add a guess, calibrate, and compare
    the digest of the resulting certificate.
    """
    return keyring.commit("digest certificate", digest.encode())


def check_bytes(
    rows: Sequence[bytes],
    *,
    keyring: Keyring | None = None,
    first_public: str | None = None,
    head: Head | None = None,
) -> list[str]:
    """Return one message per fault of a stored ledger, as ``Ledger.check`` does, unreadable entries included."""
    found, entries = [], []
    for place, row in enumerate(rows, 1):
        try:
            entries.append(_read(row, place))
        except RefusedError as error:
            found.append(error.sentence)
    return found or Ledger(tuple(entries)).check(keyring=keyring, first_public=first_public, head=head)


class SetCommitment:
    """A commitment to a set of quotes that are added in order, some at a time; see ``commitment_of``."""

    def __init__(self, keyring: Keyring) -> None:
        self._running = keyring.committing("set")
        self._is_empty = True

    def add(self, touched: Sequence[bytes]) -> None:
        """Add quotes in ascending order, all above those added before."""
        # Lengths come first, so that no two sets give the same bytes.
        lengths = list(map(len, touched))
        written = {length: length.to_bytes(8, "little") for length in set(lengths)}
        framed = zip(map(written.__getitem__, lengths), touched, strict=True)
        self._running.update(b"".join(chain.from_iterable(framed)))
        self._is_empty = self._is_empty and not touched

    def __str__(self) -> str:
        return "" if self._is_empty else self._running.hexdigest()


def commitment_of(touched: Sequence[bytes], keyring: Keyring) -> str:
    """Return the commitment to a set of quotes, independent of their order; empty for none."""
    found = SetCommitment(keyring)
    found.add(sorted(touched))
    return str(found)


def _read(row: bytes, place: int) -> Entry:
    try:
        return Entry.from_bytes(row)
    except RefusedError as error:
        raise RefusedError(f"Entry {place} of the ledger cannot be read: {error.sentence}", number=place) from error
