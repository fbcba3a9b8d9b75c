"""A file read as one chunk and in many, compared to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from strikeout.quotes.forwards import underived
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.reading import Chunking, Reading, inspect_quotes

COLUMNS = ("forward", "strike", "expiry", "discount", "is_call")


def in_chunks(path: Any, *, size: int = 0, at_once: int = 500_000, **options: Any) -> Reading:
    """The reading of a file in chunks on disk; the caller closes it."""
    own = {name: options.pop(name) for name in ("folder", "progress") if name in options}
    return inspect_quotes(path, chunking=Chunking(size=size, at_once=at_once, **own), **options)


def read_both_ways(path: Path, *, size: int, at_once: int, **options: Any) -> tuple[Reading, Reading]:
    """The reading of the file in memory, and on disk in chunks and partitions of these sizes."""
    return inspect_quotes(path, **options), in_chunks(path, size=size, at_once=at_once, **options)


def assert_same_quotes(first: Quotes, second: Quotes) -> None:
    assert first.ids.tolist() == second.ids.tolist()
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first.contracts, name), getattr(second.contracts, name))
    for name in ("observed", "weight", "spread"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert list(first.labels) == list(second.labels)
    for name, label in first.labels.items():
        assert label.dtype == second.labels[name].dtype, name
        np.testing.assert_array_equal(label, second.labels[name])


def assert_same(reading: Reading, chunked: Reading, folder: Path) -> None:
    """Assert that both readings have the same quotes, issues, counts and files, bit by bit."""
    for name in ("source", "rows", "count", "rejected", "repeated", "cut", "columns", "numbering", "layout"):
        assert getattr(reading, name) == getattr(chunked, name), name
    assert dict(reading.routes) == dict(chunked.routes)
    assert dict(reading.unchecked) == dict(chunked.unchecked)
    assert reading.screening == chunked.screening
    assert reading.issues.frame.rows() == chunked._chunks.log.frame().rows()
    assert reading.issues.counts == chunked.issues.counts
    assert reading.issues.rejections() == chunked.issues.rejections()
    assert reading.issues.flags() == chunked.issues.flags()
    assert reading.issues.listed(100) == chunked.issues.listed(100)
    assert reading.issues.distinct == chunked.issues.distinct
    assert reading.issues.first_rejected() == chunked.issues.first_rejected()
    chunks = list(chunked.chunks())
    assert sum(map(len, chunks)) == reading.count
    whole, begin = underived(reading.quotes), 0
    for chunk in chunks:
        assert_same_quotes(whole[begin : begin + len(chunk)], chunk)
        begin += len(chunk)
    if reading.count:
        assert_same_quotes(reading.sample(3), chunked.sample(3))
    if reading.rejected:
        for read, name in ((reading, "whole.csv"), (chunked, "chunks.csv")):
            read.write_quarantine(folder / name)
        assert (folder / "whole.csv").read_bytes() == (folder / "chunks.csv").read_bytes()
    if reading.forwards is None:
        assert chunked.forwards is None
    else:
        assert chunked.forwards is not None
        assert reading.forwards.to_frame().rows() == chunked.forwards.to_frame().rows()
