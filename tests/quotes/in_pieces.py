"""A file read as a whole and in pieces, held against each other to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from strikeout.quotes.chunked_reader import Sifted
from strikeout.quotes.forwards import underived
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.reading import Reading, inspect_quotes
from strikeout.quotes.survey import Survey, survey_quotes

COLUMNS = ("forward", "strike", "expiry", "discount", "is_call")


def read_both_ways(path: Path, *, size: int, at_once: int, **options: Any) -> tuple[Reading, Survey]:
    """The reading of the file, and its survey in blocks and parts of these sizes; the caller closes the survey."""
    return inspect_quotes(path, **options), survey_quotes(path, size=size, at_once=at_once, **options)


def issues_of(survey: Survey) -> pl.DataFrame:
    sifted: Sifted = survey._sifted
    found = [issues for _, issues in sifted.findings.blocks() if issues.height]
    return pl.concat(found) if found else pl.DataFrame()


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


def assert_same(reading: Reading, survey: Survey, folder: Path) -> None:
    """Everything that a reading says, the survey says; word by word and bit by bit."""
    for name in ("source", "rows", "count", "rejected", "repeated", "cut", "columns", "numbering", "layout"):
        assert getattr(reading, name) == getattr(survey, name), name
    assert dict(reading.routes) == dict(survey.routes)
    assert dict(reading.unchecked) == dict(survey.unchecked)
    assert reading.screening == survey.screening
    found = issues_of(survey)
    if len(reading.issues):
        assert reading.issues.frame.drop("others").rows() == found.rows()
    else:
        assert not found.height
    assert reading.issues.counts == survey.issues.counts
    assert reading.issues.rejections() == survey.issues.rejections()
    assert reading.issues.flags() == survey.issues.flags()
    assert reading.issues.listed(100) == survey.issues.listed(100)
    assert reading.issues.distinct == survey.issues.distinct
    assert reading.issues.first_rejected() == survey.issues.first_rejected()
    pieces = list(survey.pieces())
    assert sum(map(len, pieces)) == reading.count
    whole, begin = underived(reading.quotes), 0
    for piece in pieces:
        assert_same_quotes(whole[begin : begin + len(piece)], piece)
        begin += len(piece)
    if reading.count:
        assert_same_quotes(reading.sample(3), survey.sample(3))
    if reading.rejected:
        for read, name in ((reading, "whole.csv"), (survey, "pieces.csv")):
            read.write_quarantine(folder / name)
        assert (folder / "whole.csv").read_bytes() == (folder / "pieces.csv").read_bytes()
    if reading.forwards is None:
        assert survey.forwards is None
    else:
        assert survey.forwards is not None
        assert reading.forwards.to_frame().rows() == survey.forwards.to_frame().rows()
