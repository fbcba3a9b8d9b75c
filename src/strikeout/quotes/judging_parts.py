"""The rules about the market, applied to a file that is not in memory: part by part, each of whole moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.checks.frames import market_of
from strikeout.quotes.checks.market import applies, check_market, unchecked
from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.checks.stale import LOOKED_AT
from strikeout.quotes.findings import WITHOUT_FORWARD, WITHOUT_FORWARD_NOW
from strikeout.quotes.forward_table import Forwards
from strikeout.quotes.forwards import is_derived, with_forwards
from strikeout.quotes.judging import LOOK_BACK, Beside, beside_others, places_told, without_forward
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rowwise import book_of
from strikeout.quotes.scratch import Place
from strikeout.quotes.sifting import LABEL, WORK, Sifted, unpacked
from strikeout.quotes.slices import MOMENT_LABELS, slice_numbers

Rows = NDArray[np.intp]
Share = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Verdict:
    """What came of the rules: how many sound rows were cut, what was not run and why, how forwards were found."""

    cut: int
    unchecked: Mapping[str, str]
    forwards: Forwards | None


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of a file once more, in parts that hold all rows of a moment; ``gappy`` are labels with empty cells."""

    sifted: Sifted
    places: tuple[list[Place], ...]
    gappy: frozenset[str]
    at_once: int

    @staticmethod
    def of(sifted: Sifted, at_once: int) -> Parts:
        """The rows that are left, in parts of so many or, where a moment has more, of so much more."""
        count = max(1, -(-int(np.count_nonzero(sifted.findings.kept)) // at_once))
        places: tuple[list[Place], ...] = tuple([] for _ in range(count))
        gappy: set[str] = set()
        for rows in sifted.blocks():
            labels = unpacked(rows, LABEL)
            gappy |= {one.name for one in labels.get_columns() if one.dtype != pl.String and one.null_count()}
            for part, some in _divided(rows, _moments(labels), count):
                places[part].append(sifted.scratch.put(some))
        return Parts(sifted, places, frozenset(gappy), at_once)

    def quotes(self, rows: pl.DataFrame) -> Quotes:
        """Rows put away as quotes again, with stand-ins for forwards that are derived."""
        return book_of(rows["id"], unpacked(rows, WORK), unpacked(rows, LABEL), gappy=self.gappy)

    def rows(self, part: int) -> pl.DataFrame:
        """The rows of a part that no rule has taken out so far, in the order of the file."""
        rows = self.sifted.scratch.all(self.places[part])
        return rows.filter(pl.Series(self.sifted.findings.kept[rows["at"].to_numpy()])) if rows.width else rows

    def sample(self, count: int) -> Quotes:
        """The first quotes that are left, with the forwards of their slices."""
        first = np.flatnonzero(self.sifted.findings.kept)[:count]
        found: list[tuple[Rows, Quotes]] = []
        for part in range(len(self.places)):
            rows = self.rows(part)
            here = np.flatnonzero(np.isin(rows["at"].to_numpy(), first)) if rows.width else np.empty(0, np.intp)
            if here.size:
                found.append((rows["at"].to_numpy()[here], with_forwards(self.quotes(rows))[0][here]))
        from strikeout.quotes.joining import stacked

        if not found:
            return self.quotes(self.sifted.scratch.get(self.sifted.places[0]).clear())
        at, quotes = found[0]
        for more, others in found[1:]:
            at, quotes = np.concatenate([at, more]), stacked(quotes, others)
        return quotes[np.argsort(at)]


def judged_in_parts(parts: Parts, checks: Checks, beside: Beside | None, *, progress: Share) -> Verdict:
    """Puts every rule about the market to the rows; those it rejects, and those without a forward, are taken out.

    Args:
        beside: gives quotes on which forwards may rest too, asked for only where those of the file do not give one.
    """
    findings = parts.sifted.findings
    sound = int(np.count_nonzero(findings.kept))
    held: Quotes | None = None
    trial = _Trial(parts, checks, None)
    if not trial.run(progress, give_up=beside is not None) and beside is not None:
        held = beside()
        trial = _Trial(parts, checks, held)
        trial.run(progress, give_up=False)
    lost = 0
    for place in trial.lost:
        issues = parts.sifted.scratch.get(place)
        lost += issues.height
        findings.add(issues, WITHOUT_FORWARD)
    for place in trial.found:
        findings.add(parts.sifted.scratch.get(place))
    for issues in trial.looked_back():
        findings.add(issues)
    cut = sound - lost - int(np.count_nonzero(findings.kept))
    slices = trial.slices
    if cut:
        slices = _refitted(parts, held)
    return Verdict(cut, trial.unchecked(), _in_order(slices))


class _Trial:
    """One way through the parts. What it finds is put away first: it may turn out that forwards rest on more quotes."""

    def __init__(self, parts: Parts, checks: Checks, held: Quotes | None) -> None:
        self._parts, self._checks, self._held = parts, checks, held
        self._columns: list[str] = []
        self._past: list[list[Place]] = [[] for _ in range(max(1, len(parts.places) // 2))]
        self.lost: list[Place] = []
        self.found: list[Place] = []
        self.slices: list[tuple[Rows, Forwards]] = []

    def run(self, progress: Share, *, give_up: bool) -> bool:
        """Looks at every part; where it may ``give_up``, stops at the first row without a forward and says False."""
        parts, scratch = self._parts, self._parts.sifted.scratch
        checks = replace(self._checks, off=self._checks.off | LOOK_BACK)
        for part in range(len(parts.places)):
            rows = parts.rows(part)
            progress(part / len(parts.places))
            if not rows.height:
                continue
            rules = parts.sifted.rules(rows)
            made, forwards, lost = _carried(parts.quotes(rows), self._held)
            if lost.any() and give_up:
                return False
            if lost.any():
                self.lost.append(scratch.put(_placed(without_forward(rules, np.flatnonzero(lost)), rows["at"])))
            if forwards is not None:
                self.slices.append((_firsts(parts.quotes(rows), rows["at"]), forwards))
            left = rows.select("at", "row").filter(pl.Series(~lost))
            market = market_of(made, left["at"], left["row"])
            numbering = rules.table.numbering
            issues = check_market(market, checks, numbering=numbering, places=places_told(rules))
            self.found.append(scratch.put(issues))
            self._columns = market.columns
            if not LOOK_BACK & self._checks.off and all(applies(code, market.columns) for code in LOOK_BACK):
                past = market.select(name for name in LOOKED_AT if name in market.columns)
                for some, those in _divided(past, past["strike"].hash(), len(self._past)):
                    self._past[some].append(scratch.put(those))
        return True

    def looked_back(self) -> Iterator[pl.DataFrame]:
        """What the rule finds that looks back in time, strike by strike."""
        rules = self._parts.sifted.rules(pl.DataFrame({"at": [], "row": []}))
        checks = replace(self._checks, off=self._checks.off | (frozenset(RULES) - LOOK_BACK))
        for places in self._past:
            past = self._parts.sifted.scratch.all(places)
            if past.height:
                yield check_market(past.sort("at"), checks, numbering=rules.table.numbering, places=places_told(rules))

    def unchecked(self) -> Mapping[str, str]:
        """The rules that were not run, and why."""
        if not self._columns:  # not a row is left: the columns are those it would have had
            first = self._parts.sifted.scratch.get(self._parts.sifted.places[0]).clear()
            self._columns = market_of(self._parts.quotes(first)).columns
        return unchecked(self._columns, self._checks)


def _refitted(parts: Parts, held: Quotes | None) -> list[tuple[Rows, Forwards]]:
    """Once rules have left rows out: the forwards of those that stay, and the rows that have none any more."""
    slices = []
    for part in range(len(parts.places)):
        rows = parts.rows(part)
        quotes = parts.quotes(rows) if rows.height else None
        if quotes is None or not is_derived(quotes).any():
            continue
        _, forwards, lost = _carried(quotes, None)
        if lost.any() and held is not None:
            _, forwards, lost = _carried(quotes, held)
        if forwards is not None:
            slices.append((_firsts(quotes, rows["at"]), forwards))
        issues = _placed(without_forward(parts.sifted.rules(rows), np.flatnonzero(lost)), rows["at"])
        parts.sifted.findings.add(issues, WITHOUT_FORWARD_NOW)
    return slices


def _carried(quotes: Quotes, held: Quotes | None) -> tuple[Quotes, Forwards | None, NDArray[np.bool_]]:
    if held is None:
        return with_forwards(quotes)
    names = [name for name in MOMENT_LABELS if name in quotes.labels]
    mine, theirs = (_moments(_texts(book, names)) for book in (quotes, held))
    made, _, lost = beside_others(quotes, held[theirs.is_in(mine.unique().implode()).to_numpy()])
    return made, None, lost


def _texts(quotes: Quotes, names: list[str]) -> pl.DataFrame:
    blank = np.full(len(quotes), "", object)
    columns = {name: quotes.labels.get(name, blank).astype(str).tolist() for name in names}
    return (
        pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)) if names else pl.DataFrame({"": blank.tolist()})
    )


def _moments(labels: pl.DataFrame) -> pl.Series:
    """A number that rows of one moment share."""
    key = pl.Series([0], dtype=pl.UInt64).new_from_index(0, labels.height)
    for name in (name for name in MOMENT_LABELS if name in labels.columns):
        key = (key + labels[name].cast(pl.String).fill_null("").hash()).hash()
    return key


def _divided(rows: pl.DataFrame, key: pl.Series, count: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows by the rest of their key, those of one rest in the order they come."""
    if count == 1:
        if rows.height:
            yield 0, rows
        return
    number = (key % count).to_numpy()
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(count + 1))
    gathered = rows[order]
    for part in range(count):
        if edges[part + 1] > edges[part]:
            yield part, gathered[int(edges[part]) : int(edges[part + 1])]


def _placed(issues: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
    return issues.with_columns(at.gather(issues["at"]).alias("at"))


def _firsts(quotes: Quotes, at: pl.Series) -> Rows:
    """The place in the file of the first row of every slice whose forward is derived."""
    rests = np.flatnonzero(is_derived(quotes))
    labels = {name: column[rests] for name, column in quotes.labels.items()}
    _, first = slice_numbers(labels, quotes.contracts.expiry[rests])
    places: Rows = at.to_numpy()[rests[first]]
    return places


def _in_order(slices: list[tuple[Rows, Forwards]]) -> Forwards | None:
    """The slices of all parts, in the order they come in the file."""
    if not slices:
        return None
    order = np.argsort(np.concatenate([first for first, _ in slices]))
    return Forwards.joined([forwards for _, forwards in slices], order)
