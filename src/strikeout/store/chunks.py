"""Encode quotes as bytes column by column, and decode them without loss.

    magic, length of the head (4 bytes), head (JSON: count, kind, columns), then the columns one after the other

Numbers are kept as they are, little-endian. An id is text; a text label is stored once per distinct value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Mask
from strikeout.quotes.contracts import Contracts, Features
from strikeout.quotes.forwards import FORWARD_FROM, is_derived, refitted, underived
from strikeout.quotes.quotes import Quotes, stacked

MAGIC = b"SQC1"
OPTION = ("forward", "strike", "expiry", "discount", "is_call")
OWN = ("observed", "weight", "spread")
# Quotes per chunk, which is a shard of the book. If it is larger, forgetting a few of a million quotes reads many more;
# if it is smaller, reading all quotes spends most of its time on the overhead per chunk.
CHUNK = 256


@dataclass(frozen=True, eq=False)
class Chunk:
    """The columns of some quotes: ids, the numbers of every quote, the columns of its contract or features, labels."""

    kind: str
    ids: list[str]
    own: dict[str, NDArray[Any]]
    described: dict[str, NDArray[Any]]
    labels: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, kept: Mask) -> Chunk:
        """Return the quotes that a mask selects."""
        return Chunk(
            self.kind,
            [name for name, keep in zip(self.ids, kept.tolist(), strict=True) if keep],
            *(
                {name: column[kept] for name, column in part.items()}
                for part in (self.own, self.described, self.labels)
            ),
        )


def kind_of(quotes: Quotes) -> str:
    """Return the kind of the quotes as text: options, or the names of the features."""
    if isinstance(quotes.contracts, Features):
        return "features " + ", ".join(quotes.contracts.names)
    return "options"


def refuse_other_kind(here: str | None, quotes: Quotes) -> None:
    """Raise UsageError if the book holds quotes of another kind."""
    if here is not None and len(quotes) and kind_of(quotes) != here:
        raise UsageError(
            f"The book holds quotes of {here}; those given are of {kind_of(quotes)}. Keep them in another book.",
            here=here,
        )


def chunk_of(quotes: Quotes) -> Chunk:
    """Return the columns of these quotes, with placeholders for derived forwards and discounts.

    A derived number depends on other quotes: if it were stored, it would remain after those are erased.
    """
    quotes = quotes if isinstance(quotes.contracts, Features) else underived(quotes)
    contracts = quotes.contracts
    described = (
        dict(contracts.columns)
        if isinstance(contracts, Features)
        else {name: getattr(contracts, name) for name in OPTION}
    )
    own = {name: getattr(quotes, name) for name in OWN}
    return Chunk(kind_of(quotes), quotes.ids.tolist(), own, described, dict(quotes.labels))


def in_chunks(chunks: Iterable[Quotes], size: int) -> Iterator[list[Quotes]]:
    """Regroup quotes into chunks of ``size``, the last one smaller; one list per input that completes a chunk.

    The result does not depend on how the input is divided, unless the names or types of labels change: there a
    chunk ends early.
    """
    left: Quotes | None = None
    for quotes in chunks:
        if left is not None and _labels(left) != _labels(quotes):
            yield [left]
            left = None
        complete = []
        if left is not None:
            missing = size - len(left)
            left, quotes = stacked(left, quotes[:missing]), quotes[missing:]
            if len(left) == size:
                complete.append(left)
                left = None
        whole = len(quotes) // size * size
        complete += [quotes[begin : begin + size] for begin in range(0, whole, size)]
        if whole < len(quotes):
            left = quotes[whole:]
        if complete:
            yield complete
    if left is not None:
        yield [left]


def _labels(quotes: Quotes) -> list[tuple[str, str]]:
    return [(name, column.dtype.kind) for name, column in quotes.labels.items()]


def encoded(chunk: Chunk) -> bytes:
    """Return a chunk as bytes; equal chunks give equal bytes."""
    head: dict[str, Any] = {"count": len(chunk), "kind": chunk.kind, "columns": []}
    parts: list[bytes] = []

    def keep(role: str, name: str, form: str, *blobs: bytes) -> None:
        head["columns"].append([role, name, form, [len(blob) for blob in blobs]])
        parts.extend(blobs)

    keep("id", "id", "text", *_texts(chunk.ids))
    for role, columns in (("own", chunk.own), ("described", chunk.described), ("label", chunk.labels)):
        for name, column in columns.items():
            if column.dtype.kind in "OU":
                texts = column.tolist()
                codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
                rows = np.fromiter(map(codes.__getitem__, texts), "<u4", len(texts))
                keep(role, name, column.dtype.kind, rows.tobytes(), *_texts(list(codes)))
            else:
                plain = column.astype(column.dtype.newbyteorder("<"), copy=False)
                keep(role, name, plain.dtype.str, plain.tobytes())
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *parts])


def decoded(data: bytes) -> Chunk:
    """Return the chunk that these bytes encode. The caller has compared their checksum."""
    if data[:4] != MAGIC:
        raise ValueError("not a chunk of quotes")
    place = 8 + int.from_bytes(data[4:8], "little")
    head = json.loads(data[8:place])
    ids: list[str] = []
    held: dict[str, dict[str, NDArray[Any]]] = {"own": {}, "described": {}, "label": {}}
    for role, name, form, lengths in head["columns"]:
        blobs = []
        for length in lengths:
            blobs.append(data[place : place + length])
            place += length
        if role == "id":
            ids = _split(blobs[0], blobs[1])
        elif form in "OU":
            values = np.array(_split(blobs[1], blobs[2]), object)
            column = values[np.frombuffer(blobs[0], "<u4")] if len(values) else np.empty(0, object)
            held[role][name] = column.astype("U") if form == "U" else column
        else:
            held[role][name] = np.frombuffer(blobs[0], form)
    return Chunk(head["kind"], ids, held["own"], held["described"], held["label"])


def _texts(texts: list[str]) -> tuple[bytes, bytes]:
    lengths = np.fromiter(map(len, texts), "<u4", len(texts))
    return lengths.tobytes(), "".join(texts).encode("utf-8", "surrogatepass")


def _split(lengths: bytes, data: bytes) -> list[str]:
    text = data.decode("utf-8", "surrogatepass")
    ends = np.cumsum(np.frombuffer(lengths, "<u4"), dtype=np.int64).tolist()
    return [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def quotes_of(chunks: Sequence[Chunk]) -> Quotes:
    """Return the quotes of these chunks in order. A label that a chunk lacks is empty (or not-a-number) there."""
    chunks = [chunk for chunk in chunks if len(chunk)]
    if not chunks:
        nothing = Contracts(forward=[], strike=[], expiry=[], discount=[], is_call=[])
        return Quotes(ids=[], contracts=nothing, observed=[])
    own = {name: np.concatenate([chunk.own[name] for chunk in chunks]) for name in OWN}
    described = {name: np.concatenate([chunk.described[name] for chunk in chunks]) for name in chunks[0].described}
    contracts = Contracts(**described) if chunks[0].kind == "options" else cast(Contracts, Features(described))
    names = dict.fromkeys(name for chunk in chunks for name in chunk.labels)
    return Quotes._trusted(
        ids=np.array([name for chunk in chunks for name in chunk.ids]),
        contracts=contracts,
        labels={name: _label(chunks, name) for name in names},
        **own,
    )


def retained_of(chunks: Sequence[Chunk]) -> Quotes:
    """Return the quotes of these chunks, with derived forwards refitted from these quotes alone."""
    quotes = quotes_of(chunks)
    return refitted(quotes, is_derived(quotes)) if FORWARD_FROM in quotes.labels else quotes


def _label(chunks: Sequence[Chunk], name: str) -> NDArray[Any]:
    columns = [chunk.labels.get(name) for chunk in chunks]
    known = [column for column in columns if column is not None]
    kinds = {column.dtype.kind for column in known}
    if len(known) == len(chunks) and (len(kinds) == 1 or kinds <= set("iufb")):
        return np.concatenate(known)
    # As in joining two books: a missing label is not-a-number among numbers, not-a-time among dates, else empty.
    blank: Any = np.nan if kinds <= set("iuf") else np.datetime64("NaT") if kinds == {"M"} else ""
    filled = [
        np.full(len(chunk), blank) if column is None else column for chunk, column in zip(chunks, columns, strict=True)
    ]
    return np.concatenate([part.astype(str).astype(object) for part in filled] if blank == "" else filled)
