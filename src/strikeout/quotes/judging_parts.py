"""The rules about the market, applied to a file that is not in memory: part by part, each of whole moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.checks.frames import market_by
from strikeout.quotes.checks.market import applies, check_market, unchecked
from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.checks.stale import LOOKED_AT
from strikeout.quotes.findings import WITHOUT_FORWARD, WITHOUT_FORWARD_NOW
from strikeout.quotes.forward_table import Forwards
from strikeout.quotes.forwards import is_derived, with_forwards
from strikeout.quotes.judging import LOOK_BACK, Beside, beside_others, places_told, without_forward
from strikeout.quotes.parts import Parts, divided, is_derived_by, moments
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.scratch import Place
from strikeout.quotes.sifting import LABEL, WORK, unpacked
from strikeout.quotes.slices import MOMENT_LABELS, slice_numbers

Rows = NDArray[np.intp]
OWN = ("strike", "is_call", "expiry_years", "forward", "discount", "observed")
Share = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Verdict:
    """What came of the rules: how many sound rows were cut, what was not run and why, how forwards were found."""

    cut: int
    unchecked: Mapping[str, str]
    forwards: Forwards | None


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
            market, forwards, lost = _market(parts, rows, self._held)
            if lost.any() and give_up:
                return False
            if lost.any():
                self.lost.append(scratch.put(_placed(without_forward(rules, np.flatnonzero(lost)), rows["at"])))
            if forwards is not None:
                self.slices.append((_firsts(parts.quotes(rows), rows["at"]), forwards))
            numbering = rules.table.numbering
            issues = check_market(market, checks, numbering=numbering, places=places_told(rules))
            self.found.append(scratch.put(issues))
            self._columns = market.columns
            if not LOOK_BACK & self._checks.off and all(applies(code, market.columns) for code in LOOK_BACK):
                past = market.select(name for name in LOOKED_AT if name in market.columns)
                for some, those in divided(past, past["strike"].hash(), len(self._past)):
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
            self._columns = _market(self._parts, first, None)[0].columns
        return unchecked(self._columns, self._checks)


def _refitted(parts: Parts, held: Quotes | None) -> list[tuple[Rows, Forwards]]:
    """Once rules have left rows out: the forwards of those that stay, and the rows that have none any more."""
    slices = []
    for part in range(len(parts.places)):
        rows = parts.rows(part)
        if not rows.height or not is_derived_by(rows):
            continue
        quotes = parts.quotes(rows)
        _, forwards, lost = _carried(quotes, None)
        if lost.any() and held is not None:
            _, forwards, lost = _carried(quotes, held)
        if forwards is not None:
            slices.append((_firsts(quotes, rows["at"]), forwards))
        issues = _placed(without_forward(parts.sifted.rules(rows), np.flatnonzero(lost)), rows["at"])
        parts.sifted.findings.add(issues, WITHOUT_FORWARD_NOW)
    return slices


def _market(
    parts: Parts, rows: pl.DataFrame, held: Quotes | None
) -> tuple[pl.DataFrame, Forwards | None, NDArray[np.bool_]]:
    """The rows as rules look at them; how their forwards were found, and which rows, left out, have none."""
    work = unpacked(rows, WORK)
    own = {name: rows[name] for name in ("at", "row")}
    own |= {name: work[name] for name in OWN}
    labels = {column.name: column for column in unpacked(rows, LABEL).get_columns()}
    if not is_derived_by(rows):
        return market_by(own, labels), None, np.zeros(rows.height, bool)
    made, forwards, lost = _carried(parts.quotes(rows), held)
    own = {name: column.filter(~lost) for name, column in own.items()}
    own |= {"forward": pl.Series(made.contracts.forward), "discount": pl.Series(made.contracts.discount)}
    return market_by(own, {name: column.filter(~lost) for name, column in labels.items()}), forwards, lost


def _carried(quotes: Quotes, held: Quotes | None) -> tuple[Quotes, Forwards | None, NDArray[np.bool_]]:
    if held is None:
        return with_forwards(quotes)
    names = [name for name in MOMENT_LABELS if name in quotes.labels]
    mine, theirs = (moments(_texts(book, names)) for book in (quotes, held))
    made, _, lost = beside_others(quotes, held[theirs.is_in(mine.unique().implode()).to_numpy()])
    return made, None, lost


def _texts(quotes: Quotes, names: list[str]) -> pl.DataFrame:
    blank = np.full(len(quotes), "", object)
    columns = {name: quotes.labels.get(name, blank).astype(str).tolist() for name in names}
    return (
        pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)) if names else pl.DataFrame({"": blank.tolist()})
    )


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
