"""What the quotes of a shard leave behind, as bytes and back: a footprint each, and the state they come to.

    footprints   SQF1, digest of the schema (32), members of the shard and columns (4 each), which members have a row (a
                 bit each, filled up to whole bytes), then their rows, int64
    states       SQS1, digest of the schema (32), count (8), then the words of the state, uint64

All little-endian; equal values give equal bytes. A row belongs to a place in the shard: quotes that are struck out keep
theirs, so that they can be restored, and where one is erased the store takes all of it away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError
from strikeout.kernels.exact import Integers
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.schema import Schema

FOOTPRINTS, STATE = b"SQF1", b"SQS1"
_HEAD = 4 + 32


@dataclass(frozen=True, eq=False)
class ShardRows:
    """The footprints of a shard: which of its members have one, and those rows in their order."""

    has: NDArray[np.bool_]
    rows: Integers

    @staticmethod
    def of(has: NDArray[np.bool_], rows: Integers) -> ShardRows:
        """These rows, one for each member that has one."""
        return ShardRows(has, np.ascontiguousarray(rows))

    def at(self, places: NDArray[np.intp]) -> Integers:
        """The rows of members that have one, by their places in the shard."""
        found: Integers = self.rows[np.cumsum(self.has)[places] - 1]
        return found

    def with_rows(self, places: NDArray[np.intp], rows: Integers) -> ShardRows:
        """With rows for these members too."""
        whole = np.zeros((len(self.has), rows.shape[1]), np.int64)
        whole[self.has] = self.rows
        whole[places] = rows
        has = self.has.copy()
        has[places] = True
        return ShardRows.of(has, whole[has])


def rows_to_bytes(schema: Schema, shard: ShardRows) -> bytes:
    """The footprints of a shard as bytes."""
    sizes = np.array([len(shard.has), schema.columns], "<u4").tobytes()
    bits = np.packbits(shard.has, bitorder="little").tobytes()
    return b"".join([FOOTPRINTS, _digest(schema), sizes, bits, shard.rows.astype("<i8", copy=False).tobytes()])


def rows_from_bytes(schema: Schema, data: bytes) -> ShardRows:
    """What ``rows_to_bytes`` wrote.

    Raises:
        RefusedError: the bytes are no footprints, of another schema, or not all of them are there.
    """
    _check(schema, data, FOOTPRINTS, "footprints")
    members, columns = np.frombuffer(data[_HEAD : _HEAD + 8], "<u4").tolist()
    begin = _HEAD + 8 + (members + 7) // 8
    has = np.unpackbits(np.frombuffer(data[_HEAD + 8 : begin], np.uint8), count=members, bitorder="little").astype(bool)
    if columns != schema.columns or len(data) != begin + 8 * columns * int(has.sum()):
        raise RefusedError(f"Footprints of {len(data):,} bytes are not all there. Calibrate the book again.")
    return ShardRows(has, np.frombuffer(data[begin:], "<i8").astype(np.int64).reshape(-1, columns))


def state_to_bytes(state: NormalEquations) -> bytes:
    """The state of a shard as bytes."""
    count = np.array([state.count], "<i8").tobytes()
    return b"".join([STATE, _digest(state.schema), count, state.words.astype("<u8", copy=False).tobytes()])


def state_from_bytes(schema: Schema, data: bytes) -> NormalEquations:
    """What ``state_to_bytes`` wrote.

    Raises:
        RefusedError: the bytes are no state, of another schema, or not all of them are there.
    """
    _check(schema, data, STATE, "state")
    shape = (schema.columns * (schema.columns + 1) // 2, 3)
    if len(data) != _HEAD + 8 + 8 * shape[0] * shape[1]:
        raise RefusedError(f"A state of {len(data):,} bytes is not all there. Calibrate the book again.")
    (count,) = np.frombuffer(data[_HEAD : _HEAD + 8], "<i8").tolist()
    words = np.frombuffer(data[_HEAD + 8 :], "<u8").astype(np.uint64).reshape(shape)
    return NormalEquations(schema, words, count)


def _digest(schema: Schema) -> bytes:
    return bytes.fromhex(schema.digest())


def _check(schema: Schema, data: bytes, magic: bytes, what: str) -> None:
    if data[:4] != magic or data[4:_HEAD] != _digest(schema):
        raise RefusedError(
            f"What is kept of a shard is no {what} at the reference of this book. Calibrate the book again."
        )
