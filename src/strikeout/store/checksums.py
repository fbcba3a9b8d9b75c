"""Checksums of stored rows, and sums over all of them, to detect changed bytes and missing rows.

There are two of each. The checksum of a row and the sum of all checksums need no key: they detect damage, and anyone
can check them. To detect deliberate changes, every row also has a tag, which only the holder of the book's key can
compute, and every part of the book (its quotes, the marks, each kind of page) has a sum of keyed numbers, one per row.
Every entry of the ledger commits to these sums, so without the key no row can be changed, removed or restored
undetected.

They are sums so that the cost of a change depends on the rows it changes, not on the whole book. The number added per
row is secret, and a sum is stored under a mask that is new with every transaction (MSet-Add-Hash of Clarke and others,
ASIACRYPT 2003): many copies of a book reveal nothing that would help to find other rows with the same sum.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

from strikeout.errors import UsageError
from strikeout.store.store import PAGE_KINDS, SHARD_DATA

SIZE = 32
NONCE = 16
TAG = 16
UNKEYED = bytes(SIZE)  # the key of a store without a ledger
QUOTES, MARKS = "quotes", "marks"
PARTS: tuple[str, ...] = (QUOTES, MARKS, *SHARD_DATA, *PAGE_KINDS)
_MODULUS = 1 << (8 * SIZE)


def checksum(kind: str, key: str | int, data: bytes) -> bytes:
    """Return the checksum of a row's kind, key and bytes; empty if a damaged row does not hold bytes."""
    if not isinstance(data, bytes):
        return b""
    digest = blake2b(f"{kind}\0{key!r}\0".encode("utf-8", "backslashreplace"), digest_size=SIZE)
    digest.update(data)
    return digest.digest()


def chunk_sum(number: int, count: int, data: bytes) -> bytes:
    """Return the checksum of a chunk of quotes."""
    return checksum(f"chunk of {count}", number, data)


def mark_sum(name: bytes, chunk: int, entry: int) -> bytes:
    """Return the checksum of the mark that a quote is struck out."""
    return checksum(f"mark by {entry}", chunk, name)


@dataclass(frozen=True)
class Sealer:
    """Tags and keyed sums of rows, computed from their checksums with the key of a book."""

    key: bytes

    def __post_init__(self) -> None:
        if len(self.key) != SIZE:
            raise UsageError(f"Sealer: a key has {SIZE} bytes, this one {len(self.key)}.")

    def tag(self, row: bytes) -> bytes:
        """Return the tag of a row with this checksum. It proves that a holder of the key wrote the row."""
        return blake2b(row, key=self.key, digest_size=TAG, person=b"strikeout tag").digest()

    def term(self, row: bytes) -> int:
        """Return what a row with this checksum adds to the sum of its part."""
        return int.from_bytes(blake2b(row, key=self.key, digest_size=SIZE, person=b"strikeout term").digest(), "big")

    def total(self, sums: Mapping[str, int]) -> str:
        """Return the keyed digest of all sums, 64 hexadecimal digits."""
        digest = blake2b(key=self.key, digest_size=SIZE, person=b"strikeout total")
        for part in PARTS:
            digest.update(sums[part].to_bytes(SIZE, "big"))
        return digest.hexdigest()

    def masked(self, sums: Mapping[str, int]) -> bytes:
        """Return the sums as they are stored."""
        nonce = secrets.token_bytes(NONCE)
        return nonce + b"".join(
            ((sums[part] + mask) % _MODULUS).to_bytes(SIZE, "big")
            for part, mask in zip(PARTS, self._masks(nonce), strict=True)
        )

    def unmasked(self, stored: bytes) -> dict[str, int]:
        """Return the sums that were stored: zeros for a book without rows, arbitrary numbers for damaged bytes."""
        if not stored:
            return dict.fromkeys(PARTS, 0)
        nonce, rest = stored[:NONCE], stored[NONCE:]
        found = (int.from_bytes(rest[SIZE * at : SIZE * (at + 1)], "big") for at in range(len(PARTS)))
        return {part: (one - mask) % _MODULUS for part, one, mask in zip(PARTS, found, self._masks(nonce), strict=True)}

    def _masks(self, nonce: bytes) -> list[int]:
        mask = blake2b(nonce, key=self.key, digest_size=SIZE, person=b"strikeout mask").digest()
        return [self.term(mask + part.encode()) for part in PARTS]


@dataclass(frozen=True)
class Seal:
    """How many rows, quotes and marks there are, and the sum of the rows' checksums modulo 2^256."""

    total: bytes = bytes(SIZE)
    rows: int = 0
    held: int = 0
    marked: int = 0


class Tally:
    """The seal and the keyed sums of a book, updated as rows are added and removed.

    ``sums`` is None without the key: then only the seal is updated.
    """

    def __init__(
        self, seal: Seal | None = None, *, sealer: Sealer | None, sums: Mapping[str, int] | None = None
    ) -> None:
        begun = Seal() if seal is None else seal
        self._seal, self._total, self._rows = begun, int.from_bytes(begun.total, "big"), begun.rows
        self._sealer = sealer
        self.sums = None if sealer is None else dict.fromkeys(PARTS, 0) if sums is None else dict(sums)

    def add(self, part: str, rows: Iterable[bytes]) -> None:
        """Add rows with these checksums. Entries of the ledger have no keyed sum, since they are signed."""
        self._move(part, rows, 1)

    def remove(self, part: str, rows: Iterable[bytes]) -> None:
        """Subtract rows with these checksums."""
        self._move(part, rows, -1)

    def count(self, *, held: int = 0, marked: int = 0) -> None:
        """Add to the numbers of quotes and marks."""
        self._seal = replace(self._seal, held=self._seal.held + held, marked=self._seal.marked + marked)

    @property
    def seal(self) -> Seal:
        """The current seal."""
        return replace(self._seal, total=self._total.to_bytes(SIZE, "big"), rows=self._rows)

    def _move(self, part: str, rows: Iterable[bytes], sign: int) -> None:
        plain = keyed = count = 0
        is_keyed = self._sealer is not None and part in PARTS
        for row in rows:
            plain += int.from_bytes(row, "big")
            count += 1
            if is_keyed and self._sealer is not None:
                keyed += self._sealer.term(row)
        self._total = (self._total + sign * plain) % _MODULUS
        self._rows += sign * count
        if is_keyed and self.sums is not None:
            self.sums[part] = (self.sums[part] + sign * keyed) % _MODULUS
