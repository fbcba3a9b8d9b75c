"""The fewest quotes that explain findings about several quotes, by greedy cover.

A quote with a wrong price is in many findings: every neighbour whose bid is above its ask breaks a rule together with
it. So the quote in most findings is taken first, then the one in most of those left, until every finding has one of its
quotes taken. Ties go to the quote that other rules find more often, then to the one a finding is about, then to the
lower expiry, strike and right: nothing depends on the order of rows, nor on rows of other timestamps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

import polars as pl

from strikeout.quotes.checks.frames import FINDING

PAIRED = ("Q302", "Q303", "Q304", "Q305")  # rules about several quotes, one of which is wrong
MOST_ROUNDS = 100

Find = Callable[[pl.DataFrame, str], pl.DataFrame]  # the findings of a rule in a frame


def with_shared(findings: Mapping[str, pl.DataFrame], frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the findings of each rule with ``shared``, the quote that explains them, and ``count``, how many it does.

    Both are null for a finding that shares no quote with another.
    """
    out = {}
    for code, found in findings.items():
        members = _members(found)
        taken = _cover(members, Counter(), _keys(frame, members))
        shared = {finding: (at, len(some)) for at, some in taken for finding in some if len(some) > 1}
        columns = [[shared.get(n, (None, None))[part] for n in range(found.height)] for part in (0, 1)]
        out[code] = found.with_columns(
            pl.Series("shared", columns[0], dtype=pl.Int64), pl.Series("count", columns[1], dtype=pl.Int64)
        )
    return out


def explained(frame: pl.DataFrame, codes: list[str], find: Find) -> dict[str, pl.DataFrame]:
    """Return a finding for each quote to reject, by rule: the fewest that leave no finding of these rules.

    Removing a quote can bring up another that it hid, so rules are run again without those taken, until none is left.
    """
    rows: dict[str, list[tuple[int, str, str, list[int]]]] = {code: [] for code in codes}
    left = frame
    for _ in range(MOST_ROUNDS):
        found = {code: find(left, code) for code in codes}
        pool = [(code, n) for code in codes for n in range(found[code].height)]
        if not pool:
            break
        members = [quotes for code in codes for quotes in _members(found[code])]
        others = Counter(
            at for code in PAIRED if code not in codes for some in _members(find(left, code)) for at in some
        )
        taken = _cover(members, others, _keys(left, members))
        for at, some in taken:
            for code in codes:
                mine = [n for n in some if pool[n][0] == code]
                if mine:
                    rows[code].append(_rejection(at, [members[n] for n in mine], found[code], pool[mine[0]][1]))
        gone = pl.Series([at for at, _ in taken], dtype=pl.Int64)
        hit = left.filter(pl.col("at").cast(pl.Int64).is_in(gone.implode()))["moment"].unique()
        left = left.filter(pl.col("moment").is_in(hit.implode()) & ~pl.col("at").cast(pl.Int64).is_in(gone.implode()))
    return {code: pl.DataFrame(some, schema=dict(FINDING), orient="row").sort("at") for code, some in rows.items()}


def _rejection(
    at: int, members: list[tuple[int, ...]], found: pl.DataFrame, example: int
) -> tuple[int, str, str, list[int]]:
    column, words = found.row(example, named=True)["column"], found.row(example, named=True)["words"]
    others = sorted({quote for some in members for quote in some} - {at})
    count = len(members)
    share = f"this quote is in {count} findings of this rule and explains them, such as: " if count > 1 else ""
    return at, column, share + words, others


def _members(found: pl.DataFrame) -> list[tuple[int, ...]]:
    """Return the quotes of every finding, the one it is about first."""
    return [(at, *(others or ())) for at, others in found.select("at", "others").iter_rows()]


def _keys(frame: pl.DataFrame, members: list[tuple[int, ...]]) -> dict[int, tuple[float, float, bool]]:
    wanted = pl.Series(sorted({at for some in members for at in some}), dtype=pl.Int64)
    rows = frame.select(pl.col("at").cast(pl.Int64), "expiry_years", "strike", "is_call")
    rows = rows.filter(pl.col("at").is_in(wanted.implode()))
    return {at: (years, strike, call) for at, years, strike, call in rows.iter_rows()}


def _cover(
    members: list[tuple[int, ...]], others: Mapping[int, int], keys: Mapping[int, tuple[float, float, bool]]
) -> list[tuple[int, list[int]]]:
    """Return the quotes taken, in turn, each with the findings that it explains and no earlier one does."""
    of: defaultdict[int, set[int]] = defaultdict(set)
    about: Counter[int] = Counter()
    for n, some in enumerate(members):
        about[some[0]] += 1
        for at in some:
            of[at].add(n)
    heap = [(-len(of[at]), (-others.get(at, 0), -about[at], keys[at]), at) for at in of]
    heapify(heap)
    open_ = set(range(len(members)))
    taken = []
    while open_:
        count, rank, at = heappop(heap)
        mine = of[at] & open_
        if len(mine) != -count:  # findings explained since: back to its place
            if mine:
                heappush(heap, (-len(mine), rank, at))
            continue
        taken.append((at, sorted(mine)))
        open_ -= mine
    return taken
