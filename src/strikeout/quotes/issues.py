"""What was wrong with which row: stable codes, and one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import polars as pl

from strikeout.quotes.checks.catalogue import RULES

# Codes are stable; docs/reference/row-codes.md explains each.
CODES: Mapping[str, str] = {code: rule.name for code, rule in RULES.items()}
# ``at`` is a position in the table, ``row`` its number as a person finds it; ``others`` are the positions of other
# quotes that a finding rests on.
SCHEMA: Mapping[str, Any] = {
    "at": pl.Int64,
    "code": pl.String,
    "row": pl.Int64,
    "column": pl.String,
    "sentence": pl.String,
    "is_rejected": pl.Boolean,
    "others": pl.List(pl.Int64),
}


class QuotesWarning(UserWarning):
    """Some rows were left out of the book, or are doubtful."""


@dataclass(frozen=True)
class RowIssue:
    """One thing wrong with one row. ``row`` is a line of a CSV (the header is line 1), else a position from 0.

    ``is_rejected``: the row stays out of the book for it.
    """

    code: str
    row: int
    column: str
    sentence: str
    is_rejected: bool

    def __str__(self) -> str:
        return f"{self.code} {self.sentence}"


@dataclass(frozen=True, eq=False)
class Issues(Sequence[RowIssue]):
    """Every issue of a table, in the order of its rows: `RowIssue`s, held by column since there may be millions.

    ``names`` are the ids of the table's rows, null where a row did not become a quote.
    """

    frame: pl.DataFrame
    names: pl.Series | None = None

    @staticmethod
    def joined(parts: Sequence[pl.DataFrame], names: pl.Series | None = None) -> Issues:
        return Issues(pl.concat([pl.DataFrame(schema=SCHEMA), *parts]).sort("at", maintain_order=True), names)

    def __len__(self) -> int:
        return self.frame.height

    @overload
    def __getitem__(self, position: int) -> RowIssue: ...
    @overload
    def __getitem__(self, position: slice) -> Issues: ...
    def __getitem__(self, position: int | slice) -> RowIssue | Issues:
        if isinstance(position, slice):
            return Issues(self.frame[position], self.names)
        return RowIssue(*self._told()[position].row(0))

    def __iter__(self) -> Iterator[RowIssue]:
        return (RowIssue(*values) for values in self._told().iter_rows())

    def _told(self) -> pl.DataFrame:
        return self.frame.select("code", "row", "column", "sentence", "is_rejected")

    @property
    def counts(self) -> dict[str, int]:
        """How many issues have each code."""
        return dict(self.frame.group_by("code").len().sort("code").iter_rows())

    @property
    def distinct(self) -> int:
        """How many there are, one that is found in the call and in the put of a wide row counted once."""
        return self._told().n_unique()

    def listed(self, count: int) -> tuple[RowIssue, ...]:
        """The first issues, so many at most; what is wrong with the call and the put of one row is told once."""
        return tuple(RowIssue(*values) for values in self._told().unique(maintain_order=True).head(count).iter_rows())

    def first_rejected(self) -> RowIssue | None:
        """The first that keeps a row out; None where all rows stay."""
        return next(iter(Issues(self.frame.filter("is_rejected")[:1])), None)

    def ids(self, *codes: str) -> list[str]:
        """The ids of the quotes that issues with these codes speak of (all codes if none is given), in file order.

        Every quote that a finding rests on is named, since it cannot be told which of them is wrong. Rejected rows have
        become no quotes and are not among them.
        """
        if self.names is None:
            return []
        meant = self.frame.filter(pl.col("code").is_in(codes)) if codes else self.frame
        at = pl.concat([meant["at"], meant["others"].explode().drop_nulls()]).unique().sort()
        return self.names.gather(at).drop_nulls().to_list()

    def rejections(self) -> str:
        """The counts of what keeps rows out, in words."""
        return worded(Issues(self.frame.filter("is_rejected")).counts)

    def flags(self, *, besides: str = "") -> str:
        """How many rows are doubtful and stay in, by code, in words."""
        # What one rule rejects does not stay in because another would only flag it. A row that a rule finds fault with
        # twice is one row here, as in the table of rules.
        rejected = self.frame.filter("is_rejected")["at"].unique()
        kept = self.frame.filter(~pl.col("at").is_in(rejected.implode()))
        rows = dict(kept.group_by("code").agg(pl.col("at").n_unique()).sort("code").iter_rows())
        return worded(rows, besides=besides)


def worded(counts: Mapping[str, int], besides: str = "") -> str:
    """Counts by code in words: "Q103 crossed market: 2, Q114 no market: 7"."""
    return ", ".join(f"{code} {CODES[code]}: {count:,}" for code, count in counts.items() if code != besides)
