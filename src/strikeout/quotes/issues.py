"""What was wrong with which row: stable codes, and one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import polars as pl

# Codes are stable; docs/reference/row-codes.md explains each. Q1xx: the row is rejected. Q2xx: the row is flagged.
CODES: Mapping[str, str] = {
    "Q101": "missing value",
    "Q102": "not a number",
    "Q103": "crossed market",
    "Q104": "not above zero",
    "Q105": "expired",
    "Q106": "negative price",
    "Q107": "right not understood",
    "Q108": "same id, other values",
    "Q109": "weight not above zero",
    "Q110": "date not understood",
    "Q111": "not finite",
    "Q112": "more fields than the header",
    "Q113": "out of range for its unit",
    "Q114": "no market",
    "Q201": "exact repeat, kept once",
    "Q202": "price outside the no-arbitrage bounds",
    "Q203": "American exercise",
    "Q204": "not a number in a column not needed",
}
SCHEMA = {"at": pl.Int64, "code": pl.String, "row": pl.Int64, "column": pl.String, "sentence": pl.String}


class QuotesWarning(UserWarning):
    """Some rows were left out of the book, or are doubtful."""


@dataclass(frozen=True)
class RowIssue:
    """One thing wrong with one row. ``row`` is a line of a CSV (the header is line 1), else a position from 0."""

    code: str
    row: int
    column: str
    sentence: str

    @property
    def is_rejected(self) -> bool:
        return self.code.startswith("Q1")

    def __str__(self) -> str:
        return f"{self.code} {self.sentence}"


@dataclass(frozen=True, eq=False)
class Issues(Sequence[RowIssue]):
    """Every issue of a table, in the order of its rows: `RowIssue`s, held by column since there may be millions."""

    frame: pl.DataFrame

    @staticmethod
    def joined(parts: Sequence[pl.DataFrame]) -> Issues:
        return Issues(pl.concat([pl.DataFrame(schema=SCHEMA), *parts]).sort("at", maintain_order=True))

    def __len__(self) -> int:
        return self.frame.height

    @overload
    def __getitem__(self, position: int) -> RowIssue: ...
    @overload
    def __getitem__(self, position: slice) -> Issues: ...
    def __getitem__(self, position: int | slice) -> RowIssue | Issues:
        if isinstance(position, slice):
            return Issues(self.frame[position])
        _, code, row, column, sentence = self.frame.row(position)
        return RowIssue(code, row, column, sentence)

    def __iter__(self) -> Iterator[RowIssue]:
        return (RowIssue(code, row, column, sentence) for _, code, row, column, sentence in self.frame.iter_rows())

    @property
    def counts(self) -> dict[str, int]:
        """How many issues have each code."""
        return dict(self.frame.group_by("code").len().sort("code").iter_rows())

    def tally(self, prefix: str = "Q", *, besides: str = "") -> str:
        """The counts in words: "Q101 missing value: 3, Q104 not above zero: 1"."""
        return ", ".join(
            f"{code} {CODES[code]}: {count:,}"
            for code, count in self.counts.items()
            if code.startswith(prefix) and code != besides
        )
