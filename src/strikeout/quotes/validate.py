"""Apply the market rules to the rows of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.checks.frames import KNOWN, market_by, market_of
from strikeout.quotes.checks.market import CHECKED, applies, check_market, unchecked
from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.checks.stale import LOOKED_AT
from strikeout.quotes.chunked_reader import LABEL, WORK, Sifted, unpacked
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.forward_table import Forwards
from strikeout.quotes.forwards import FORWARD_FROM, NEEDED, derived, is_derived, with_forwards
from strikeout.quotes.issue_log import WITHOUT_FORWARD, WITHOUT_FORWARD_NOW
from strikeout.quotes.joining import stacked
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.row_values import book_of
from strikeout.quotes.rules import Rules
from strikeout.quotes.slices import MOMENT_LABELS, slice_numbers
from strikeout.quotes.spill import Place
from strikeout.wording import printable

Beside = Callable[[], Quotes]
PIECE = 1_000_000  # quotes looked at together, more or less
LOOK_BACK = frozenset({"Q210"})
NO_FORWARD = (
    "its slice gives no forward; add forward and discount, or spot, rate and dividend_yield, or its calls and puts."
)


@dataclass(frozen=True, eq=False)
class Judgement:
    """The quotes that stay and where in the table each was; what was found; how many sound rows were cut.

    ``unchecked`` are the rules that were not run, and why.
    """

    quotes: Quotes
    at: NDArray[np.intp]
    found: tuple[pl.DataFrame, ...]
    forwards: Forwards | None
    cut: int
    unchecked: Mapping[str, str]


def judged(quotes: Quotes, good: pl.Series, rules: Rules, checks: Checks, *, beside: Beside | None = None) -> Judgement:
    """The quotes with their forwards, without those that have none and those a rule was told to reject.

    Forwards rest on quotes of the book alone: where a rule leaves some out, they are found once more without them.

    Args:
        good: which rows of the table the quotes are.
        beside: quotes on which forwards may rest too, asked for only where those read do not give one.
    """
    quotes, forwards, at, lost = _located_forwards(quotes, good.arg_true().to_numpy().astype(np.intp), rules, beside)
    found, missing = _checked(quotes, at, rules, checks)
    rejected = found.filter("is_rejected")["at"].unique()
    if not rejected.len():
        return Judgement(quotes, at, (lost, found), forwards, 0, missing)
    kept = ~np.isin(at, rejected.to_numpy())
    quotes, forwards, at, more = _located_forwards(quotes[kept], at[kept], rules, beside)
    return Judgement(quotes, at, (lost, found, more), forwards, rejected.len(), missing)


def _checked(
    quotes: Quotes, at: NDArray[np.intp], rules: Rules, checks: Checks
) -> tuple[pl.DataFrame, Mapping[str, str]]:
    """What the rules find, and which were not run. A large book is looked at a piece at a time."""
    table, places = rules.table, places_told(rules)
    found = []
    for rows, asked in _pieces(quotes, checks):
        market = market_of(quotes if rows is None else quotes._rows(rows), *_where(at, rows, table.rows))
        found.append(check_market(market, asked, numbering=table.numbering, places=places))
    return _in_turn(pl.concat(found)), unchecked(market_of(quotes[:1]).columns, checks)


def places_told(rules: Rules) -> dict[str, str]:
    """What the source calls each canonical column; "price" is whatever the price is made of."""
    table, layout = rules.table, rules.layout
    called = {role: table.called(role) if table.profile else name for role, name in layout.places.items()}
    price = next(role for role in ("price", "bid", "iv") if role in layout.used)
    return {role: printable(name) for role, name in {"price": called[price], **called}.items()}


def _in_turn(found: pl.DataFrame) -> pl.DataFrame:
    """Issues in the order of the rules, whether they were looked for in one piece or in many."""
    turn = {code: place for place, code in enumerate(CHECKED)}
    by = pl.col("code").replace_strict(turn, return_dtype=pl.Int64)
    return found.sort(by, maintain_order=True)


def _where(at: NDArray[np.intp], rows: NDArray[np.intp] | None, numbers: pl.Series) -> tuple[pl.Series, pl.Series]:
    here = at if rows is None else at[rows]
    return pl.Series(here), numbers.gather(here)


def _pieces(quotes: Quotes, checks: Checks) -> Iterator[tuple[NDArray[np.intp] | None, Checks]]:
    """Rows to look at together, and what to look for: all quotes of a moment are in one piece, and once more, for the
    rule that looks back in time, all quotes of a strike."""
    count = -(-len(quotes) // PIECE)
    if count < 2:
        yield None, checks
        return
    others = frozenset(RULES) - LOOK_BACK
    moment = pl.Series(np.zeros(len(quotes), np.uint64))
    for name in (name for name in MOMENT_LABELS if name in quotes.labels):
        moment = (moment + pl.Series(quotes.labels[name].tolist()).hash()).hash()
    strike = pl.Series(quotes.contracts.strike).hash()
    for key, off in ((moment, LOOK_BACK), (strike, others)):
        piece = (key % count).to_numpy()
        for number in range(count):
            rows = np.flatnonzero(piece == number)
            if rows.size:
                yield rows, replace(checks, off=checks.off | off)


def _located_forwards(
    quotes: Quotes, at: NDArray[np.intp], rules: Rules, beside: Beside | None
) -> tuple[Quotes, Forwards | None, NDArray[np.intp], pl.DataFrame]:
    """The quotes that have a forward, and an issue for each that has none."""
    made, forwards, lost = with_forwards(quotes)
    if lost.any() and beside is not None:
        made, forwards, lost = beside_others(quotes, beside())
    return made, forwards, at[~lost], without_forward(rules, at[lost])


def beside_others(quotes: Quotes, held: Quotes) -> tuple[Quotes, Forwards | None, NDArray[np.bool_]]:
    """As ``with_forwards``, where forwards rest on these quotes and on others that are held."""
    held = held[~np.isin(held.ids, quotes.ids)]
    everything, forwards, nowhere = with_forwards(stacked(held, quotes))
    return everything[np.isin(everything.ids, quotes.ids)], forwards, nowhere[len(held) :]


def without_forward(rules: Rules, at: NDArray[np.intp]) -> pl.DataFrame:
    """An issue for each of these rows of the table: it has no forward."""
    fails = np.zeros(rules.frame.height, bool)
    fails[at] = True
    return rules.failures("Q116", "strike", pl.Series(fails), NO_FORWARD)


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of a file once more, in parts that hold all rows of a moment; ``gappy`` are labels with empty cells."""

    sifted: Sifted
    places: tuple[list[Place], ...]
    gappy: frozenset[str]

    @staticmethod
    def of(sifted: Sifted, at_once: int) -> Parts:
        """The rows that are left, in parts of so many or, where a moment has more, of so much more."""
        count = max(1, -(-int(np.count_nonzero(sifted.findings.kept)) // at_once))
        places: tuple[list[Place], ...] = tuple([] for _ in range(count))
        gappy: set[str] = set()
        for rows in sifted.blocks():
            labels = unpacked(rows, LABEL)
            gappy |= {one.name for one in labels.get_columns() if one.dtype != pl.String and one.null_count()}
            for part, some in divided(_looked_at(rows), moments(labels), count) if count > 1 else ():
                places[part].append(sifted.scratch.put(some))
        return Parts(sifted, places if count > 1 else (list(sifted.places),), frozenset(gappy))

    def quotes(self, rows: pl.DataFrame) -> Quotes:
        """Rows put away as quotes again, with stand-ins for forwards that are derived."""
        return book_of(rows["id"], unpacked(rows, WORK), unpacked(rows, LABEL), gappy=self.gappy)

    def rows(self, part: int) -> pl.DataFrame:
        """The rows of a part that no rule has taken out so far, in the order of the file."""
        rows = self.sifted.scratch.all(self.places[part])
        return rows.filter(pl.Series(self.sifted.findings.kept[rows["at"].to_numpy()])) if rows.width else rows

    def sample(self, count: int) -> Quotes:
        """The first quotes that are left, with the forwards of their slices; stand-ins where those are elsewhere."""
        heads = [rows.head(count) for rows in self.sifted.blocks()]
        rows = pl.concat(heads).head(count)
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
                found += list(zip(here["at"].filter(wanted), c.forward, c.discount, source, strict=True))
        _, forward, discount, sources = zip(*sorted(found), strict=True)
        c, labels = quotes.contracts, {**quotes.labels, FORWARD_FROM: np.array(sources, object)}
        contracts = Contracts(forward=forward, discount=discount, strike=c.strike, expiry=c.expiry, is_call=c.is_call)
        own = {name: getattr(quotes, name) for name in ("ids", "observed", "weight", "spread")}
        return Quotes._trusted(contracts=contracts, labels=labels, **own)


def is_derived_by(rows: pl.DataFrame) -> bool:
    """Whether the forward of any of these rows rests on its slice."""
    name = LABEL + FORWARD_FROM
    return name in rows.columns and not rows[name].is_in(["given", ""]).all()


def _looked_at(rows: pl.DataFrame) -> pl.DataFrame:
    """Without labels that no rule and no forward looks at, and without ids, unless forwards rest on other quotes."""
    wanted = {LABEL + name for name in (*KNOWN, *NEEDED, FORWARD_FROM)}
    wanted |= {"id"} if LABEL + FORWARD_FROM in rows.columns else set()
    return rows.select(
        name for name in rows.columns if name in wanted or name in ("at", "row") or name.startswith(WORK)
    )


def moments(labels: pl.DataFrame) -> pl.Series:
    """A number that rows of one moment share."""
    key = pl.Series([0], dtype=pl.UInt64).new_from_index(0, labels.height)
    for name in (name for name in MOMENT_LABELS if name in labels.columns):
        key = (key + labels[name].cast(pl.String).fill_null("").hash()).hash()
    return key


def divided(rows: pl.DataFrame, key: pl.Series, count: int) -> Iterator[tuple[int, pl.DataFrame]]:
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
