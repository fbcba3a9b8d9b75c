"""Checksums of what is kept, and one sum over all of them: a byte that changed, or a row that vanished, is seen.

They find damage. Against malice there are the ledger's signatures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

SIZE = 32
_MODULUS = 1 << (8 * SIZE)


def checksum(kind: str, key: str | int, data: bytes) -> bytes:
    """Of one row: what kind it is, its key and its bytes. A damaged row may hold no bytes: of that there is none."""
    if not isinstance(data, bytes):
        return b""
    digest = blake2b(f"{kind}\0{key!r}\0".encode("utf-8", "backslashreplace"), digest_size=SIZE)
    digest.update(data)
    return digest.digest()


def chunk_sum(number: int, count: int, data: bytes) -> bytes:
    """Of a chunk of quotes."""
    return checksum(f"chunk of {count}", number, data)


def mark_sum(name: bytes, chunk: int, entry: int) -> bytes:
    """Of the mark that a quote is struck out."""
    return checksum(f"mark by {entry}", chunk, name)


@dataclass(frozen=True)
class Seal:
    """How many rows, quotes and marks there are, and the sum of the rows' checksums modulo 2^256.

    A sum, so that a change costs what it touches and not the whole book.
    """

    total: bytes = bytes(SIZE)
    rows: int = 0
    held: int = 0
    marked: int = 0

    def with_row(self, row: bytes) -> Seal:
        """Once a row of this checksum has come."""
        return self._moved(row, 1)

    def without_row(self, row: bytes) -> Seal:
        """Once a row of this checksum has gone."""
        return self._moved(row, -1)

    def counting(self, *, held: int = 0, marked: int = 0) -> Seal:
        """Once so many more quotes are held and marked."""
        return replace(self, held=self.held + held, marked=self.marked + marked)

    def _moved(self, row: bytes, sign: int) -> Seal:
        total = (int.from_bytes(self.total, "big") + sign * int.from_bytes(row, "big")) % _MODULUS
        return replace(self, total=total.to_bytes(SIZE, "big"), rows=self.rows + sign)
