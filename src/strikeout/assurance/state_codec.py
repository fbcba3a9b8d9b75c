"""Exact states as bytes and back: one format for everything that is computed from quotes and stored.

    header   one line of canonical JSON: format, kind, the facts of the kind, and name, type and shape of every array
    arrays   in the order of the header; little-endian, eight bytes per value

Equal values give equal bytes. All values have eight bytes so that a search for residue can compare them word by word
from the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.arrays import Integers, Mask, Rows, Words
from strikeout.statistics.moments import Basis, Moments
from strikeout.statistics.normal_equations import NormalEquations, Schema
from strikeout.statistics.system import Group, System

FORMAT = "strikeout state 1"
MOST_QUOTES = 1 << 40  # of a state; sums of several states stay far below 2^63
TYPES = {"f": "<f8", "i": "<i8", "u": "<u8"}  # by NumPy's kind of number


class StateKind(StrEnum):
    """What is encoded. A book stores the first two per shard, the others once."""

    FOOTPRINTS = "footprints"
    SHARD = "shard"
    LINEARIZATION = "linearization"
    MOMENTS = "moments"


@dataclass(frozen=True, eq=False)
class ShardRows:
    """The footprints of a shard: which of its members have one, and those rows in their order.

    Quotes that are struck out keep their rows, so that they can be restored.
    """

    has: Mask
    rows: Integers

    def at(self, places: Rows) -> Integers:
        """Return the rows of members that have one, by their places in the shard."""
        found: Integers = self.rows[np.cumsum(self.has)[places] - 1]
        return found

    def with_rows(self, places: Rows, rows: Integers) -> ShardRows:
        """Return these rows and rows for more members."""
        whole = np.zeros((len(self.has), rows.shape[1]), np.int64)
        whole[self.has] = self.rows
        whole[places] = rows
        has = self.has.copy()
        has[places] = True
        return ShardRows(has, whole[has])


def encode(kind: StateKind, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of one state."""
    types = {name: TYPES[array.dtype.kind] for name, array in arrays.items()}
    framing = [[name, types[name], list(array.shape)] for name, array in arrays.items()]
    header = canonical({"format": FORMAT, "kind": kind.value, "facts": dict(facts), "arrays": framing})
    return b"\n".join([header, b"".join(array.astype(types[name]).tobytes() for name, array in arrays.items())])


def decode(kind: StateKind, data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and arrays that ``encode`` wrote."""
    line, _, rest = data.partition(b"\n")
    header = from_canonical(line)
    with refuse_damage(data):
        if (header["format"], header["kind"]) != (FORMAT, kind.value):
            raise ValueError(f"expected {FORMAT!r} of {kind.value}, got {header['format']!r} of {header['kind']}")
        arrays, begin = {}, 0
        for name, form, shape in header["arrays"]:
            if form not in TYPES.values():
                raise ValueError(f"{name} has the unknown type {form!r}")
            count = prod(shape)
            values = np.frombuffer(rest, form, count, begin)
            arrays[name] = values.astype(values.dtype.newbyteorder("=")).reshape(shape)  # a copy, so it is aligned
            arrays[name].flags.writeable = False
            begin += 8 * count
        if begin != len(rest):
            raise ValueError(f"expected {begin:,} bytes after the header, got {len(rest):,}")
        return dict(header["facts"]), arrays


@contextmanager
def refuse_damage(data: bytes) -> Iterator[None]:
    """Turn any error of reading damaged bytes into RefusedError."""
    try:
        yield
    except (UsageError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError) as error:
        raise RefusedError(
            f"A state of {len(data):,} bytes cannot be read: {error}. Calibrate the book again.", count=len(data)
        ) from error


def encode_footprints(schema: Schema, shard: ShardRows) -> bytes:
    """Return the footprints of a shard as bytes.

    Args:
        schema: of the shared parameters.
    """
    bits = np.packbits(shard.has, bitorder="little").tobytes().hex()
    facts = {"schema": schema.digest(), "members": len(shard.has), "has": bits}
    return encode(StateKind.FOOTPRINTS, facts, {"rows": shard.rows})


def decode_footprints(schema: Schema, data: bytes, *, columns: int | None = None) -> ShardRows:
    """Return the footprints that ``encode_footprints`` wrote.

    Args:
        columns: of a row; those of the schema if not given. In a panel a row has one more, of the latent parameter.
    """
    facts, arrays = decode(StateKind.FOOTPRINTS, data)
    with refuse_damage(data):
        _check_schema(facts, schema)
        bits = np.frombuffer(bytes.fromhex(facts["has"]), np.uint8)
        has = np.unpackbits(bits, count=facts["members"], bitorder="little").astype(bool)
        return ShardRows(has, shaped(arrays["rows"], int(has.sum()), columns or schema.columns))


def encode_state(schema: Schema, state: System) -> bytes:
    """Return the state of a shard as bytes.

    Args:
        schema: of the shared parameters; a state without groups has none.
    """
    facts = {"schema": schema.digest(), **counts_of(state.blocks)}
    return encode(StateKind.SHARD, facts, {"words": words_of(state.blocks)})


def decode_state(schema: Schema, schemas: Mapping[Group, Schema], latent: str | None, data: bytes) -> System:
    """Return the state that ``encode_state`` wrote.

    Args:
        schemas: by group.
        latent: the parameter that every group has for itself; None for a plain book.
    """
    facts, arrays = decode(StateKind.SHARD, data)
    with refuse_damage(data):
        _check_schema(facts, schema)
        return System(remade_blocks(facts, arrays["words"], schemas), latent)


def counts_of(blocks: Mapping[Group, NormalEquations]) -> dict[str, Any]:
    """Return the number of quotes of every block, by the text of its group, as facts."""
    return {"groups": [[str(group), block.count] for group, block in blocks.items()]}


def words_of(blocks: Mapping[Group, NormalEquations]) -> Words:
    """Return the words of all blocks in one array, in the order of ``counts_of``."""
    return np.stack([block.words for block in blocks.values()]) if blocks else np.empty((0, 0, 3), np.uint64)


def remade_blocks(
    facts: Mapping[str, Any], words: NDArray[Any], schemas: Mapping[Group, Schema]
) -> dict[Group, NormalEquations]:
    """Return the blocks that ``counts_of`` and ``words_of`` described, by text."""
    groups = facts["groups"]
    if len(words) != len(groups):
        raise ValueError(f"expected the words of {len(groups)} groups, got {len(words)}")
    return {
        group: NormalEquations(schemas[group], _words(own, schemas[group]), count)
        for (group, count), own in zip(groups, words, strict=True)
    }


def encode_moments(moments: Moments) -> bytes:
    """Return moments as bytes."""
    basis = moments.basis
    facts = {"basis": [basis.expiries, basis.nodes, basis.expiry_nodes], "weights": moments.weights}
    arrays = {"cells": moments.cells, "words": moments.words, "counts": moments.counts}
    return encode(StateKind.MOMENTS, facts, arrays)


def decode_moments(data: bytes) -> Moments:
    """Return the moments that ``encode_moments`` wrote."""
    facts, arrays = decode(StateKind.MOMENTS, data)
    with refuse_damage(data):
        expiries, nodes, expiry_nodes = facts["basis"]
        basis = Basis(expiries, nodes=nodes, expiry_nodes=expiry_nodes)
        if not isinstance(facts["weights"], str):
            raise ValueError("the name of the weights is not text")
        cells, counts = arrays["cells"], arrays["counts"]
        words = shaped(arrays["words"], len(counts), 2 * basis.size + 2, 3)
        _check_cells(shaped(cells, len(counts), 2), words, counts)
        return Moments(basis, facts["weights"], cells, words, counts)


def _check_cells(cells: NDArray[Any], words: NDArray[Any], counts: NDArray[Any]) -> None:
    """Raise ValueError unless these are cells as sums of quotes have them.

    A file of another owner may hold anything: unsorted cells would be added up wrongly, and counts near 2^63 overflow.
    """
    if (cells.dtype.kind, words.dtype.kind, counts.dtype.kind) != ("f", "u", "i"):
        raise ValueError("cells, words or counts are numbers of another type")
    if not np.isfinite(cells).all() or not _is_ascending(cells):
        raise ValueError("the cells are not in ascending order")
    if counts.min(initial=1) < 1 or counts.max(initial=1) > MOST_QUOTES or counts.sum() > MOST_QUOTES:
        raise ValueError(f"a cell has 1 to {MOST_QUOTES:,} quotes, and all cells together no more")
    if (words[:, (0, -2, -1), 2].view(np.int64) < 0).any():
        raise ValueError("a sum of squares or weights is negative")


def _is_ascending(cells: NDArray[Any]) -> bool:
    before, after = cells[:-1], cells[1:]
    is_later = (before[:, 0] < after[:, 0]) | ((before[:, 0] == after[:, 0]) & (before[:, 1] < after[:, 1]))
    return bool(is_later.all())


def described_schema(schema: Schema) -> dict[str, Any]:
    """Return a schema as plain values."""
    return {
        "model": schema.model,
        "parameters": list(schema.parameters),
        "reference": [value.hex() for value in schema.reference],
        "exponents": list(schema.exponents),
        "residual": schema.residual,
        "weights": schema.weights,
    }


def remade_schema(plain: Mapping[str, Any]) -> Schema:
    """Return the schema that ``described_schema`` described."""
    return Schema(
        plain["model"],
        tuple(plain["parameters"]),
        tuple(map(float.fromhex, plain["reference"])),
        tuple(plain["exponents"]),
        plain["residual"],
        plain["weights"],
    )


def _words(words: NDArray[Any], schema: Schema) -> Words:
    return shaped(words, schema.columns * (schema.columns + 1) // 2, 3)


def shaped(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return the array if it has this shape."""
    if array.shape != shape:
        raise ValueError(f"expected an array of shape {shape}, got {array.shape}")
    return array


def _check_schema(facts: Mapping[str, Any], schema: Schema) -> None:
    if facts["schema"] != schema.digest():
        raise ValueError("it is at another reference than this book's")
