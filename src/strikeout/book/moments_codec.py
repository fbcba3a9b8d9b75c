"""Moments as bytes and back: the state of a book that forgets without reading the quotes it keeps."""

from __future__ import annotations

from typing import cast

import numpy as np

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.errors import RefusedError
from strikeout.statistics.basis import Basis
from strikeout.statistics.moments import Moments

FORMAT = "strikeout moments 1"
COLUMNS = {"cells": "<f8", "words": "<u8", "counts": "<i8"}


def to_bytes(moments: Moments) -> bytes:
    """A line that says what follows, then cells, words and counts, little-endian. Equal moments give equal bytes."""
    basis = moments.basis
    head = {
        "format": FORMAT,
        "basis": [basis.expiries, basis.nodes, basis.expiry_nodes],
        "weights": moments.weights,
        "shapes": {name: list(getattr(moments, name).shape) for name in COLUMNS},
    }
    columns = [getattr(moments, name).astype(form).tobytes() for name, form in COLUMNS.items()]
    return b"\n".join([canonical(head), b"".join(columns)])


def from_bytes(data: bytes) -> Moments:
    """What ``to_bytes`` wrote.

    Raises:
        RefusedError: the bytes are no moments, or not all of them are there.
    """
    line, _, rest = data.partition(b"\n")
    head = from_canonical(line)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise RefusedError(f"A state of {len(data):,} bytes is not {FORMAT!r}. Calibrate the book again.")
    expiries, nodes, expiry_nodes = head["basis"]
    arrays, place = [], 0
    for name, form in COLUMNS.items():
        shape = tuple(head["shapes"][name])
        length = 8 * int(np.prod(shape, dtype=np.int64))
        if len(rest) < place + length:
            raise RefusedError(f"A state of {len(data):,} bytes ends too soon. Calibrate the book again.")
        arrays.append(np.frombuffer(rest[place : place + length], form).reshape(shape))
        place += length
    basis = Basis(expiries, nodes=nodes, expiry_nodes=expiry_nodes)
    return Moments(basis, cast(str, head["weights"]), *arrays)
