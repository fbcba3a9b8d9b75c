"""What was found in a file too large to keep: issues put away block by block, and one byte a row that says what became
of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.checks.market import CHECKED
from strikeout.quotes.issues import Issues, RowIssue, worded
from strikeout.quotes.screening import REPEATED, Screening, screening_by
from strikeout.quotes.spill import Place, Spill

CODES = sorted(RULES)
KEPT = 255  # of a row: no rule took it out. Else the place among CODES of the first that did
LISTED = 100  # issues that are kept to be shown
# Issues of one row are told in the order the rules are run in.
BY_ITSELF, AS_A_TWIN, WITHOUT_FORWARD, IN_THE_MARKET, WITHOUT_FORWARD_NOW = 0, 1, 2, 3, 100
_RANKS = {code: IN_THE_MARKET + place for place, code in enumerate(CHECKED)}


@dataclass(frozen=True, eq=False)
class Tally:
    """The issues of a large file, counted: what `Issues` says of them, without holding them.

    ``first`` are the first of them, LISTED at most, each told once; ``distinct`` is how many there are.
    """

    counts: dict[str, int]
    first: tuple[RowIssue, ...]
    distinct: int
    _rejected: dict[str, int]
    _flagged: dict[str, int]
    _first_rejected: RowIssue | None

    def __len__(self) -> int:
        return sum(self.counts.values())

    def listed(self, count: int) -> tuple[RowIssue, ...]:
        """The first issues, LISTED at most."""
        return self.first[:count]

    def first_rejected(self) -> RowIssue | None:
        """The first that keeps a row out."""
        return self._first_rejected

    def rejections(self) -> str:
        """The counts of what keeps rows out, in words."""
        return worded(self._rejected)

    def flags(self, *, besides: str = "") -> str:
        """How many rows are doubtful and stay in, by code, in words."""
        return worded(self._flagged, besides=besides)


class IssueLog:
    """Issues by the block their row is in, and what became of every row."""

    def __init__(self, scratch: Spill) -> None:
        self._scratch = scratch
        self._places: list[list[Place]] = []
        self._begins: list[int] = []
        self.verdict = np.empty(0, np.uint8)

    def begin(self, height: int) -> int:
        """Begins a block of so many rows; the position of the first."""
        begin = len(self.verdict)
        self.verdict = np.concatenate([self.verdict, np.full(height, KEPT, np.uint8)])
        self._places.append([])
        self._begins.append(begin)
        return begin

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows no rule has taken out so far."""
        found: NDArray[np.bool_] = self.verdict == KEPT
        return found

    def add(self, issues: pl.DataFrame, rank: int | None = None) -> None:
        """Puts issues away and takes out the rows they reject; ``rank`` is when in turn, by their codes where None."""
        if not issues.height:
            return
        order = pl.lit(rank, pl.Int16) if rank is not None else pl.col("code").replace_strict(_RANKS)
        issues = issues.drop("others").with_columns(order.cast(pl.Int16).alias("rank")).sort("at", maintain_order=True)
        out = issues.filter(_takes_out())
        numbers = np.searchsorted(CODES, out["code"].to_numpy()).astype(np.uint8)
        np.minimum.at(self.verdict, out["at"].to_numpy(), numbers)
        at = issues["at"].to_numpy()
        edges = np.searchsorted(at, [*self._begins[1:], len(self.verdict)])
        for block, (begin, end) in enumerate(zip([0, *edges], edges, strict=False)):
            if end > begin:
                self._places[block].append(self._scratch.put(issues[int(begin) : int(end)]))

    def blocks(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """The position of the first row of every block, and its issues in the order of its rows."""
        for begin, places in zip(self._begins, self._places, strict=True):
            found = self._scratch.all(places)
            yield begin, found.sort("at", "rank", maintain_order=True).drop("rank") if places else found

    def tally(self) -> Tally:
        """The issues counted."""
        counts: dict[str, int] = {}
        rejected: dict[str, int] = {}
        flagged: dict[str, int] = {}
        first: list[RowIssue] = []
        distinct, worst = 0, None
        for _, found in self.blocks():
            if not found.height:
                continue
            issues = Issues(found)
            _count(counts, issues.counts)
            _count(rejected, Issues(found.filter("is_rejected")).counts)
            _count(flagged, _rows(found.filter(~self._is_out(found))))
            distinct += issues.distinct
            first += issues.listed(LISTED - len(first))
            worst = worst or issues.first_rejected()
        return Tally(
            dict(sorted(counts.items())), tuple(first), distinct, dict(sorted(rejected.items())),
            dict(sorted(flagged.items())), worst,
        )  # fmt: skip

    def screening(self, unchecked: Mapping[str, str]) -> Screening:
        """From rows to quotes, rule by rule."""
        many = np.bincount(self.verdict, minlength=KEPT + 1)
        removed = {code: int(many[place]) for place, code in enumerate(CODES) if many[place]}
        flagged: dict[str, int] = {}
        for _, found in self.blocks():
            if found.height:
                _count(flagged, _rows(found.filter(~_takes_out() & self._is_kept(found))))
        return screening_by(removed, flagged, len(self.verdict), unchecked)

    def _is_kept(self, issues: pl.DataFrame) -> pl.Series:
        return pl.Series(self.verdict[issues["at"].to_numpy()] == KEPT)

    def _is_out(self, issues: pl.DataFrame) -> pl.Series:
        became = self.verdict[issues["at"].to_numpy()]
        return pl.Series((became != KEPT) & (became != CODES.index(REPEATED)))


def _takes_out() -> pl.Expr:
    return pl.col("is_rejected") | (pl.col("code") == REPEATED)


def _rows(issues: pl.DataFrame) -> dict[str, int]:
    return dict(issues.group_by("code").agg(pl.col("at").n_unique()).iter_rows())


def _count(total: dict[str, int], more: dict[str, int]) -> None:
    for code, count in more.items():
        total[code] = total.get(code, 0) + count
