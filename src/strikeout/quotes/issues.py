"""What is wrong with which row: issues with stable codes and one sentence each, their log, and the table of counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import polars as pl

from strikeout.kernels.arrays import Mask
from strikeout.quotes.checks.catalogue import RULES
from strikeout.tables import Cell, Table, TextFormat, number

if TYPE_CHECKING:
    from strikeout.quotes.spill import Place, Spill

# Codes are stable; docs/reference/row-codes.md explains each.
CODES: Mapping[str, str] = {code: rule.name for code, rule in RULES.items()}
# ``at`` is a position in the table, ``row`` its number as a person finds it; ``others`` are the positions of other
# quotes that a finding depends on.
SCHEMA: Mapping[str, Any] = {
    "at": pl.Int64,
    "code": pl.String,
    "row": pl.Int64,
    "column": pl.String,
    "sentence": pl.String,
    "is_rejected": pl.Boolean,
    "others": pl.List(pl.Int64),
}
REPEATED = "Q201"  # not a fault, but the row is not counted twice
MISSING = "Q101"
# Expired, no market, exercising is optimal: rows of any vendor's file that can be read and are not quotes.
NO_QUOTE = ("Q105", "Q114", "Q117")
LISTED = 100  # issues of a log that are kept to be shown
# Issues of one row are listed in the order in which the rules are run.
BY_ITSELF, DUPLICATE, WITHOUT_FORWARD, IN_THE_MARKET, WITHOUT_FORWARD_NOW = 0, 1, 2, 3, 100


class QuotesWarning(UserWarning):
    """Some rows are not quotes, or are doubtful."""


@dataclass(frozen=True)
class RowIssue:
    """One thing wrong with one row. ``row`` is a line of a CSV (the header is line 1), else a position from 0.

    ``is_rejected``: the row is left out because of it.
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
    """Every issue of a table, in the order of its rows: `RowIssue`s, stored by column since there may be millions.

    ``names`` has the columns ``at`` and ``id`` of the rows that became quotes, sorted by ``at``.
    """

    frame: pl.DataFrame
    names: pl.DataFrame | None = None

    @staticmethod
    def joined(parts: Sequence[pl.DataFrame], names: pl.DataFrame | None = None) -> Issues:
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
        return RowIssue(*self._shown()[position].row(0))

    def __iter__(self) -> Iterator[RowIssue]:
        return (RowIssue(*values) for values in self._shown().iter_rows())

    def _shown(self) -> pl.DataFrame:
        return self.frame.select("code", "row", "column", "sentence", "is_rejected")

    @property
    def counts(self) -> dict[str, int]:
        """Number of issues per code."""
        return dict(self.frame.group_by("code").len().sort("code").iter_rows())

    @property
    def distinct(self) -> int:
        """Number of issues; one found in both the call and the put of a wide row is counted once."""
        return self._shown().n_unique()

    def listed(self, count: int) -> tuple[RowIssue, ...]:
        """Return the first issues, ``count`` at most; an issue of both the call and the put of one row is one."""
        return tuple(RowIssue(*values) for values in self._shown().unique(maintain_order=True).head(count).iter_rows())

    def examples(self) -> tuple[RowIssue, ...]:
        """Return the first issue of every code, in the order of codes."""
        first = self._shown().unique("code", keep="first", maintain_order=True).sort("code")
        return tuple(RowIssue(*values) for values in first.iter_rows())

    def first_rejected(self) -> RowIssue | None:
        """Return the first issue that rejects a row; None if no row is rejected."""
        return next(iter(Issues(self.frame.filter("is_rejected")[:1])), None)

    def ids(self, *codes: str) -> list[str]:
        """Return the ids of the quotes in issues with these codes (all codes if none is given), in file order.

        Every quote that a finding depends on is named, since the rule does not determine which of them is wrong.
        Rejected rows are not quotes and are not among them.
        """
        if self.names is None:
            return []
        meant = self.frame.filter(pl.col("code").is_in(codes)) if codes else self.frame
        at = pl.concat([meant["at"], meant["others"].explode().drop_nulls()]).unique()
        return self.names.filter(pl.col("at").is_in(at.implode()))["id"].to_list()

    def rejections(self) -> str:
        """Return the counts of issues that reject rows, as text."""
        return worded(Issues(self.frame.filter("is_rejected")).counts)

    def flags(self, *, besides: str = "") -> str:
        """Return how many rows are doubtful and kept, by code, as text."""
        # A row that one rule rejects is not kept because another would only flag it. A row that a rule flags twice is
        # one row here, as in the table of rules.
        rejected = self.frame.filter("is_rejected")["at"].unique()
        kept = self.frame.filter(~pl.col("at").is_in(rejected.implode()))
        return worded(dict(sorted(_rows(kept).items())), besides=besides)


@dataclass(frozen=True, eq=False)
class IssueSummary:
    """Counts of the issues of a file that is read in chunks: the methods of `Issues`, without holding every issue.

    ``first`` are the first of them, LISTED at most; ``distinct`` is how many there are.
    """

    counts: dict[str, int]
    first: tuple[RowIssue, ...]
    distinct: int
    _rejected: dict[str, int]
    _flagged: dict[str, int]
    _first_rejected: RowIssue | None
    _examples: tuple[RowIssue, ...]

    def __len__(self) -> int:
        return sum(self.counts.values())

    def listed(self, count: int) -> tuple[RowIssue, ...]:
        """Return the first issues, LISTED at most."""
        return self.first[:count]

    def examples(self) -> tuple[RowIssue, ...]:
        """Return the first issue of every code, in the order of codes."""
        return self._examples

    def first_rejected(self) -> RowIssue | None:
        """Return the first issue that rejects a row."""
        return self._first_rejected

    def rejections(self) -> str:
        """Return the counts of issues that reject rows, as text."""
        return worded(self._rejected)

    def flags(self, *, besides: str = "") -> str:
        """Return how many rows are doubtful and kept, by code, as text."""
        return worded(self._flagged, besides=besides)


def worded(counts: Mapping[str, int], besides: str = "") -> str:
    """Return counts by code as text: "Q103 crossed market: 2, Q114 no market: 7"."""
    return ", ".join(f"{code} {CODES[code]}: {count:,}" for code, count in counts.items() if code != besides)


class IssueLog:
    """The issues of a source by chunk, and the first rule that removed each row, one byte per row."""

    ORDER = sorted(RULES)
    KEPT = 255  # no rule removed the row; any other value is a place in ORDER

    def __init__(self, store: Spill) -> None:
        self._store = store
        self._places: list[list[Place]] = []
        self._begins: list[int] = []
        self.verdict = np.empty(0, np.uint8)

    def begin(self, height: int) -> int:
        """Begin a chunk of ``height`` rows; return the position of its first row."""
        begin = len(self.verdict)
        self.verdict = np.concatenate([self.verdict, np.full(height, self.KEPT, np.uint8)])
        self._places.append([])
        self._begins.append(begin)
        return begin

    @property
    def kept(self) -> Mask:
        """Whether each row is kept by every rule so far."""
        found: Mask = self.verdict == self.KEPT
        return found

    def removed_by(self, code: str) -> int:
        """Return how many rows this rule was the first to remove."""
        return int(np.count_nonzero(self.verdict == self.ORDER.index(code)))

    def unreadable(self, price_columns: set[str]) -> int:
        """Return how many rows cannot be read: rejected for more than an empty market (NO_QUOTE) or by a market rule.

        Args:
            price_columns: the source's names of bid, ask, price and volatility; an empty cell there is an empty market.
        """
        is_empty = (pl.col("code") == MISSING) & pl.col("column").is_in(sorted(price_columns))
        is_fault = pl.col("code").str.starts_with("Q1") & ~pl.col("code").is_in(NO_QUOTE) & ~is_empty
        return sum(
            found.filter(pl.col("is_rejected") & is_fault)["at"].n_unique()
            for _, found in self.chunks()
            if found.height
        )

    def add(self, issues: pl.DataFrame, rank: int | Mapping[str, int]) -> None:
        """Store issues and mark the rows they reject; ``rank``, maybe by code, is the order of issues of one row."""
        if not issues.height:
            return
        order = pl.lit(rank, pl.Int16) if isinstance(rank, int) else pl.col("code").replace_strict(dict(rank))
        issues = issues.with_columns(order.cast(pl.Int16).alias("rank")).sort("at", maintain_order=True)
        out = issues.filter(_removes())
        numbers = np.searchsorted(self.ORDER, out["code"].to_numpy()).astype(np.uint8)
        np.minimum.at(self.verdict, out["at"].to_numpy(), numbers)
        edges = np.searchsorted(issues["at"].to_numpy(), [*self._begins[1:], len(self.verdict)])
        for chunk, (begin, end) in enumerate(zip([0, *edges], edges, strict=False)):
            if end > begin:
                self._places[chunk].append(self._store.put(issues[int(begin) : int(end)]))

    def chunks(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the position of the first row of every chunk, and its issues in the order of its rows."""
        for begin, places in zip(self._begins, self._places, strict=True):
            found = self._store.all(places)
            yield begin, found.sort("at", "rank", maintain_order=True).drop("rank") if places else found

    def frame(self) -> pl.DataFrame:
        """Return every issue as one table."""
        return pl.concat([pl.DataFrame(schema=SCHEMA), *(found for _, found in self.chunks() if found.height)])

    def summary(self) -> IssueSummary:
        """Return the counts."""
        counts: dict[str, int] = {}
        rejected: dict[str, int] = {}
        flagged: dict[str, int] = {}
        first: list[RowIssue] = []
        examples: dict[str, RowIssue] = {}
        distinct, worst = 0, None
        for _, found in self.chunks():
            if not found.height:
                continue
            issues = Issues(found)
            _count(counts, issues.counts)
            _count(rejected, Issues(found.filter("is_rejected")).counts)
            became = self.verdict[found["at"].to_numpy()]
            is_out = (became != self.KEPT) & (became != self.ORDER.index(REPEATED))
            _count(flagged, _rows(found.filter(~pl.Series(is_out))))
            distinct += issues.distinct
            first += issues.listed(LISTED - len(first))
            worst = worst or issues.first_rejected()
            examples = {**{one.code: one for one in issues.examples()}, **examples}
        return IssueSummary(
            dict(sorted(counts.items())), tuple(first), distinct, dict(sorted(rejected.items())),
            dict(sorted(flagged.items())), worst, tuple(examples[code] for code in sorted(examples)),
        )  # fmt: skip

    def screening(self, unchecked: Mapping[str, str]) -> Screening:
        """Return the table of counts, rule by rule."""
        counts = np.bincount(self.verdict, minlength=self.KEPT + 1)
        removed = {code: int(counts[place]) for place, code in enumerate(self.ORDER) if counts[place]}
        flagged: dict[str, int] = {}
        for _, found in self.chunks():
            if found.height:
                is_kept = pl.Series(self.verdict[found["at"].to_numpy()] == self.KEPT)
                _count(flagged, _rows(found.filter(~_removes() & is_kept)))
        steps, left = [], len(self.verdict)
        for code in sorted(removed.keys() | flagged.keys()):
            left -= removed.get(code, 0)
            steps.append(Step(code, RULES[code].name, removed.get(code, 0), left, flagged.get(code, 0)))
        return Screening(len(self.verdict), tuple(steps), left, unchecked)


def _removes() -> pl.Expr:
    return pl.col("is_rejected") | (pl.col("code") == REPEATED)


def _rows(issues: pl.DataFrame) -> dict[str, int]:
    return dict(issues.group_by("code").agg(pl.col("at").n_unique()).iter_rows())


def _count(total: dict[str, int], more: dict[str, int]) -> None:
    for code, count in more.items():
        total[code] = total.get(code, 0) + count


@dataclass(frozen=True)
class Step:
    """One rule: how many rows it removed, how many were left then, and how many it flagged that are kept."""

    code: str
    name: str
    removed: int
    left: int
    flagged: int


@dataclass(frozen=True)
class Screening:
    """Number of rows, what each rule did in turn, and number of quotes.

    A row that several rules reject is counted once, under the first of them in the order of codes. A row that several
    rules flag is counted by each; a row that is removed is flagged by none. Rules that found nothing have no line.

    ``print(reading.screening.table("markdown"))`` is the table to paste.
    """

    rows: int
    steps: tuple[Step, ...]
    left: int
    unchecked: Mapping[str, str]  # rules that were not run, and why

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, for JSON."""
        steps = [asdict(step) for step in self.steps]
        return {"rows": self.rows, "steps": steps, "left": self.left, "unchecked": dict(self.unchecked)}

    def to_table(self) -> Table:
        """Return the counts as a table: rows in, one line per rule, quotes left."""
        lines: list[tuple[Cell, ...]] = [("", "rows in", "", number(self.rows, ",d"), "")]
        lines += [
            (
                step.code,
                step.name,
                _count_cell(step.removed),
                _count_cell(step.left, step.removed),
                _count_cell(step.flagged),
            )
            for step in self.steps
        ]
        lines.append(("", "quotes left", "", number(self.left, ",d"), ""))
        return Table(("code", "rule", "removed", "left", "flagged"), lines, numbers=(2, 3, 4), whole=(0,))

    def table(self, form: TextFormat = "text") -> str:
        """Return the table as "text", "markdown", "latex" (booktabs) or "csv"."""
        return self.to_table().to_text(form)


def _count_cell(count: int, unless_zero: int | None = None) -> Cell:
    shown = count if unless_zero is None else unless_zero
    return number(count, ",d") if shown else ""
