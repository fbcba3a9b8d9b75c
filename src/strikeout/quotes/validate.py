"""Apply the market rules to the rows of a source, some whole timestamps at a time.

All quotes of one underlying, class, date and time are in one partition, so a rule finds in a partition what it would
find in the whole file. The one rule that looks back in time gets partitions of whole strikes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from strikeout.kernels.arrays import Mask, Rows
from strikeout.quotes.checks.catalogue import RULES, Checks
from strikeout.quotes.checks.market import CHECKED, applies, check_market, unchecked
from strikeout.quotes.checks.slices import LOOKED_AT
from strikeout.quotes.chunked_reader import LABEL, WORK, Chunks, row_hash, unpacked
from strikeout.quotes.columns import once
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.forwards import FORWARD_FROM, NEEDED, Forwards, derived, is_derived, with_forwards
from strikeout.quotes.issues import DUPLICATE, IN_THE_MARKET, WITHOUT_FORWARD, WITHOUT_FORWARD_NOW
from strikeout.quotes.parity import AMERICAN_MID, LABELS, MOMENT_LABELS, slice_numbers
from strikeout.quotes.quotes import Quotes, stacked
from strikeout.quotes.row_values import book_of, duplicate_issues, duplicates
from strikeout.quotes.rules import Rules
from strikeout.quotes.spill import Place
from strikeout.text import printable

Beside = Callable[[], Quotes]
Share = Callable[[float], None]
LOOK_BACK = frozenset({"Q210"})
RANKS = {code: IN_THE_MARKET + place for place, code in enumerate(CHECKED)}
OWN = ("strike", "is_call", "expiry_years", "forward", "discount", "observed")
NUMBERS = ("bid", "ask", "iv", "spot", "volume", "open_interest", AMERICAN_MID)
WORDS = ("underlying", "root", "quote_time", "exercise", "settlement", "deliverable", "source")
KNOWN = frozenset({*NUMBERS, *LABELS.values(), *WORDS})  # every label that a rule looks at
_NO_ROWS = np.empty(0, np.intp)
NO_FORWARD = (
    "its slice gives no forward; add forward and discount, or spot, rate and dividend_yield, or its calls and puts."
)


def remove_duplicates(chunks: Chunks, at_once: int) -> None:
    """Remove rows that repeat an earlier one, and those whose id another row has with other values."""
    ordered = np.sort(chunks.fingerprints)
    is_shared = np.zeros(len(ordered), bool)
    is_shared[1:] = ordered[1:] == ordered[:-1]
    shared = np.unique(ordered[is_shared])
    if not shared.size:
        return
    count = -(-2 * int(is_shared.sum()) // at_once)  # passes over the chunks, so that each holds few rows
    for group in np.array_split(shared, count):
        alike = pl.Series(group).implode()
        rows = pl.concat([chunk.filter(chunk["id"].hash().is_in(alike)) for chunk in chunks.rows()])
        good = pl.Series([True]).new_from_index(0, rows.height)
        repeats, clashes = duplicates(rows["id"], unpacked(rows, WORK), unpacked(rows, LABEL), good)
        for issues in duplicate_issues(chunks.rules(rows), repeats, clashes):
            chunks.log.add(_placed(issues, rows["at"]), DUPLICATE)


@dataclass(frozen=True, eq=False)
class Partitions:
    """The rows of a source in partitions that hold all rows of a timestamp.

    ``gappy`` are labels with empty cells.
    """

    chunks: Chunks
    places: tuple[list[Place], ...]
    gappy: frozenset[str]

    @staticmethod
    def of(chunks: Chunks, at_once: int) -> Partitions:
        """Divide the rows that are left into partitions of about ``at_once`` rows; a timestamp is never divided."""
        count = max(1, -(-int(np.count_nonzero(chunks.log.kept)) // at_once))
        places: tuple[list[Place], ...] = tuple([] for _ in range(count))
        gappy: set[str] = set()
        for rows in chunks.rows():
            labels = unpacked(rows, LABEL)
            gappy |= {one.name for one in labels.get_columns() if one.dtype != pl.String and one.null_count()}
            for part, some in divided(_looked_at(rows), row_hash(labels, MOMENT_LABELS), count) if count > 1 else ():
                places[part].append(chunks.store.put(some))
        return Partitions(chunks, places if count > 1 else (list(chunks.places),), frozenset(gappy))

    def quotes(self, rows: pl.DataFrame) -> Quotes:
        """Return stored rows as quotes, with placeholders for forwards that are derived."""
        return book_of(rows["id"], unpacked(rows, WORK), unpacked(rows, LABEL), gappy=self.gappy)

    def rows(self, part: int) -> pl.DataFrame:
        """Return the rows of a partition that no rule has removed so far, in the order of the file."""
        rows = self.chunks.store.all(self.places[part])
        return self.chunks.kept(rows) if rows.width else rows

    def sample(self, count: int) -> Quotes:
        """Return the first quotes, with the forwards of their slices."""
        rows = pl.concat([rows.head(count) for rows in self.chunks.rows()]).head(count)
        quotes = self.quotes(rows)
        if not is_derived(quotes).any():
            return quotes
        found = []
        for part in range(len(self.places)):
            here = self.rows(part)
            wanted = np.isin(here["at"].to_numpy(), rows["at"].to_numpy()) if here.width else np.empty(0, bool)
            if wanted.any():
                made = derived(self.quotes(here))[0][wanted]
                c, source = made.contracts, made.labels[FORWARD_FROM]
                found += list(zip(here["at"].filter(wanted), c.forward, c.discount, source, made.observed, strict=True))
        _, forward, discount, sources, observed = zip(*sorted(found), strict=True)
        c, labels = quotes.contracts, {**quotes.labels, FORWARD_FROM: np.array(sources, object)}
        contracts = Contracts(forward=forward, discount=discount, strike=c.strike, expiry=c.expiry, is_call=c.is_call)
        own = {name: getattr(quotes, name) for name in ("ids", "weight", "spread")}
        return Quotes._trusted(contracts=contracts, labels=labels, observed=np.array(observed), **own)


@dataclass(frozen=True, eq=False)
class Verdict:
    """The result of the rules: number of sound rows removed, rules that were not run and why, forwards by slice.

    ``held`` are the quotes elsewhere on which forwards depend, None if they depend on the rows of the file alone.
    """

    cut: int
    unchecked: Mapping[str, str]
    forwards: Forwards | None
    held: Quotes | None
    made: Quotes | None = None  # the quotes with forwards, if one partition was all of them

    def complete(self, quotes: Quotes) -> tuple[Quotes, Forwards | None]:
        """Return the quotes that were read with the forwards of their slices, and how these were found."""
        if self.made is not None:
            return self.made, self.forwards
        if self.held is not None and not self.cut:
            return beside_others(quotes, self.held)[:2]
        made, forwards, lost = with_forwards(quotes)
        return beside_others(quotes, self.held)[:2] if lost.any() and self.held is not None else (made, forwards)


def apply_rules(parts: Partitions, checks: Checks, beside: Beside | None, *, progress: Share) -> Verdict:
    """Apply every market rule; remove the rows it rejects, and those without a forward.

    Forwards depend only on quotes that are kept: if a rule removes some, the forwards are found again without them.

    Args:
        beside: returns quotes on which forwards may depend too; called only if those of the file do not give one.
    """
    log = parts.chunks.log
    sound = int(np.count_nonzero(log.kept))
    held: Quotes | None = None
    found = _RulePass(parts, checks, None)
    if not found.run(progress, give_up=beside is not None) and beside is not None:
        held = beside()
        found = _RulePass(parts, checks, held)
        found.run(progress, give_up=False)
    lost = 0
    store = parts.chunks.store
    for place in found.lost:
        issues = store.get(place)
        lost += issues.height
        log.add(issues, WITHOUT_FORWARD)
    for place in found.found:
        log.add(store.get(place), RANKS)
    for issues in found.looked_back():
        log.add(issues, RANKS)
    cut = sound - lost - int(np.count_nonzero(log.kept))
    slices = _refit(parts, held) if cut else found.slices
    made = None if cut else found.made
    return Verdict(cut, found.unchecked(), _in_order(slices), held, made)


class _RulePass:
    """One pass over the partitions. Its findings are buffered: the pass is repeated if forwards need more quotes."""

    def __init__(self, parts: Partitions, checks: Checks, held: Quotes | None) -> None:
        self._parts, self._checks, self._held = parts, checks, held
        self._columns: list[str] = []
        self._past: list[list[Place]] = [[] for _ in range(max(1, len(parts.places) // 2))]
        self.lost: list[Place] = []
        self.found: list[Place] = []
        self.slices: list[tuple[Rows, Forwards]] = []
        self.made: Quotes | None = None

    def run(self, progress: Share, *, give_up: bool) -> bool:
        """Check every partition; with ``give_up`` return False at the first row without a forward."""
        parts, store = self._parts, self._parts.chunks.store
        is_whole = len(parts.places) == 1
        checks = self._checks if is_whole else replace(self._checks, off=self._checks.off | LOOK_BACK)
        for part in range(len(parts.places)):
            rows = parts.rows(part)
            progress(part / len(parts.places))
            if not rows.height:
                continue
            rules = parts.chunks.rules(rows)
            quotes = parts.quotes(rows) if is_derived_by(rows) else None
            made, forwards, lost = (None, None, None) if quotes is None else _with_forwards(quotes, self._held)
            if lost is not None and lost.any():
                if give_up:
                    return False
                self.lost.append(store.put(_placed(without_forward(rules, np.flatnonzero(lost)), rows["at"])))
            if quotes is not None and forwards is not None:  # of one partition the slices are in order
                self.slices.append((_NO_ROWS if is_whole else _firsts(quotes, rows["at"]), forwards))
            self.made = made if is_whole and self._held is None else None
            market = _market(rows, made, lost)
            issues = check_market(market, checks, numbering=rules.table.numbering, places=column_names(rules))
            self.found.append(store.put(issues))
            self._columns = market.columns
            if not is_whole and not LOOK_BACK & self._checks.off and all(applies(c, market.columns) for c in LOOK_BACK):
                past = market.select(name for name in LOOKED_AT if name in market.columns)
                for some, those in divided(past, past["strike"].hash(), len(self._past)):
                    self._past[some].append(store.put(those))
        return True

    def looked_back(self) -> Iterator[pl.DataFrame]:
        """Yield the findings of the rule that looks back in time, by strike."""
        rules = self._parts.chunks.rules(pl.DataFrame({"at": [], "row": []}))
        checks = replace(self._checks, off=self._checks.off | (frozenset(RULES) - LOOK_BACK))
        for places in self._past:
            past = self._parts.chunks.store.all(places)
            if past.height:
                yield check_market(past.sort("at"), checks, numbering=rules.table.numbering, places=column_names(rules))

    def unchecked(self) -> Mapping[str, str]:
        """Return the rules that were not run, and why."""
        if not self._columns:  # no row is left: the columns are those that one would have
            first = self._parts.chunks.store.get(self._parts.chunks.places[0]).clear()
            self._columns = _market(first, None, None).columns
        return unchecked(self._columns, self._checks)


def column_names(rules: Rules) -> dict[str, str]:
    """Return the source's name of each canonical column; "price" is the column from which the price is computed."""
    table, layout = rules.table, rules.layout
    called = {role: table.called(role) if table.profile else name for role, name in layout.places.items()}
    price = next(role for role in ("price", "bid", "iv") if role in layout.used)
    return {role: printable(name) for role, name in {"price": called[price], **called}.items()}


def beside_others(quotes: Quotes, held: Quotes) -> tuple[Quotes, Forwards | None, Mask]:
    """Return the same as ``with_forwards``, for forwards that depend on these quotes and on others that are held."""
    held = held[~np.isin(held.ids, quotes.ids)]
    everything, forwards, nowhere = with_forwards(stacked(held, quotes))
    return everything[np.isin(everything.ids, quotes.ids)], forwards, nowhere[len(held) :]


def without_forward(rules: Rules, at: Rows) -> pl.DataFrame:
    """Return an issue for each of these rows of the table: it has no forward."""
    fails = np.zeros(rules.frame.height, bool)
    fails[at] = True
    return rules.failures("Q116", "strike", pl.Series(fails), NO_FORWARD)


def is_derived_by(rows: pl.DataFrame) -> bool:
    """Return whether the forward of any of these rows depends on its slice."""
    name = LABEL + FORWARD_FROM
    return name in rows.columns and not rows[name].is_in(["given", ""]).all()


def _looked_at(rows: pl.DataFrame) -> pl.DataFrame:
    """Drop labels that no rule and no forward needs, and ids unless forwards depend on other quotes."""
    wanted = {LABEL + name for name in (*KNOWN, *NEEDED, FORWARD_FROM)}
    wanted |= {"id"} if LABEL + FORWARD_FROM in rows.columns else set()
    return rows.select(
        name for name in rows.columns if name in wanted or name in ("at", "row") or name.startswith(WORK)
    )


def divided(rows: pl.DataFrame, key: pl.Series, count: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the rows by the remainder of their key, those with one remainder in their order."""
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


def _refit(parts: Partitions, held: Quotes | None) -> list[tuple[Rows, Forwards]]:
    """Find the forwards again after rules removed rows; remove the rows that have none any more."""
    slices = []
    for part in range(len(parts.places)):
        rows = parts.rows(part)
        if not rows.height or not is_derived_by(rows):
            continue
        quotes = parts.quotes(rows)
        _, forwards, lost = _with_forwards(quotes, None)
        if lost.any() and held is not None:
            _, forwards, lost = _with_forwards(quotes, held)
        if forwards is not None:
            slices.append((_firsts(quotes, rows["at"]), forwards))
        issues = _placed(without_forward(parts.chunks.rules(rows), np.flatnonzero(lost)), rows["at"])
        parts.chunks.log.add(issues, WITHOUT_FORWARD_NOW)
    return slices


def _market(rows: pl.DataFrame, made: Quotes | None, lost: Mask | None) -> pl.DataFrame:
    """Return what rules see of the rows, under canonical names; rows in ``lost`` have no forward and are left out."""
    if lost is not None and lost.any():
        rows = rows.filter(~lost)
    work, labels = unpacked(rows, WORK), unpacked(rows, LABEL)
    columns = {name: rows[name] for name in ("at", "row")} | {name: work[name] for name in OWN}
    if made is not None:
        columns |= {"forward": pl.Series(made.contracts.forward), "discount": pl.Series(made.contracts.discount)}
        columns |= {"observed": pl.Series(made.observed)}  # of an American quote, which depends on both
    for name in (name for name in NUMBERS if name in labels.columns):
        if labels[name].dtype.is_numeric() or labels[name].dtype == pl.Boolean:
            columns[name] = labels[name].cast(pl.Float64).fill_nan(None)
    texts = {name: labels[name].cast(pl.String).fill_null("") for name in KNOWN if name in labels.columns}
    for name, label in LABELS.items():
        if label in texts:
            columns[name] = once(texts[label], _days)
    return pl.DataFrame(columns | {name: texts[name] for name in WORDS if name in texts})


def _days(texts: pl.Series) -> pl.Series:
    return texts.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)


def _with_forwards(quotes: Quotes, held: Quotes | None) -> tuple[Quotes, Forwards | None, Mask]:
    if held is None:
        return with_forwards(quotes)
    names = [name for name in MOMENT_LABELS if name in quotes.labels]
    mine, theirs = (row_hash(_texts(book, names), names) for book in (quotes, held))
    made, _, lost = beside_others(quotes, held[theirs.is_in(mine.unique().implode()).to_numpy()])
    return made, None, lost


def _texts(quotes: Quotes, names: list[str]) -> pl.DataFrame:
    blank = np.full(len(quotes), "", object)
    columns = {name: quotes.labels.get(name, blank).astype(str).tolist() for name in names}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)) if names else pl.DataFrame({"": blank})


def _placed(issues: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
    return issues.with_columns(at.gather(issues["at"]).alias("at"))


def _firsts(quotes: Quotes, at: pl.Series) -> Rows:
    """Return the position in the file of the first row of every slice whose forward is derived."""
    rests = np.flatnonzero(is_derived(quotes))
    labels = {name: column[rests] for name, column in quotes.labels.items()}
    _, first = slice_numbers(labels, quotes.contracts.expiry[rests])
    places: Rows = at.to_numpy()[rests[first]]
    return places


def _in_order(slices: list[tuple[Rows, Forwards]]) -> Forwards | None:
    """Return the slices of all partitions, in the order of the file."""
    if not slices:
        return None
    if len(slices) == 1:
        return slices[0][1]
    order = np.argsort(np.concatenate([first for first, _ in slices]))
    return Forwards.joined([forwards for _, forwards in slices], order)
