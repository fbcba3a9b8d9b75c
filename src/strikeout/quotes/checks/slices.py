"""Rules that compare quotes with each other.

Across one underlying and timestamp: units, put-call parity, expiries. Along the strikes of one expiry: gains without
risk, every purchase at the ask and every sale at the bid. Over time: quotes that did not change while the market
moved.

Findings about several quotes are explained by the fewest of them, by greedy cover. A quote with a wrong price is in
many findings: every neighbour whose bid is above its ask breaks a rule together with it. So the quote in most findings
is taken first, then the one in most of those left, until every finding has one of its quotes taken. Ties go to the
quote that other rules find more often, then to the one a finding is about, then to the lower expiry, strike and right:
nothing depends on the order of rows, nor on rows of other timestamps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.kernels.arrays import Floats, Rows
from strikeout.quotes.checks.rows import FINDING, ROUNDING, is_american, laddered, report_rows, shown

FEWEST = 4  # the median of fewer quotes is not informative
IN_THE_MONEY = 0.02  # of the forward
PERCENT = 3.0  # no market's median volatility is 300 %; in percent every one is above this


def odd_units(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q301: the median strike is ``limit`` times off the forward, the median volatility is above 3, or most prices
    cannot be those of options on this forward. One finding a slice; its quotes are those involved."""
    ratio, one = pl.col("strike") / pl.col("forward"), pl.col("discount") * pl.col("forward")
    intrinsic = pl.col("discount") * (pl.col("forward") - pl.col("strike")) * (2.0 * pl.col("is_call") - 1.0)
    bound = pl.col("discount") * pl.when("is_call").then(pl.col("forward")).otherwise(pl.col("strike"))
    # Only options that are worth something without volatility can be seen to be too cheap.
    low = (pl.col("observed") < 0.5 * intrinsic).filter(intrinsic > IN_THE_MONEY * one)
    high = pl.col("observed") > bound * (1.0 + 1e-9)
    iv = pl.col("iv").median() if "iv" in frame.columns else pl.lit(None, pl.Float64)
    is_odd = (
        (ratio > limit) | (ratio * limit < 1.0) | high | ((pl.col("observed") < 0.5 * intrinsic) & (intrinsic > 0.0))
    )
    is_odd |= pl.col("iv") > PERCENT if "iv" in frame.columns else False
    if not frame.select(is_odd.any()).item():  # no median is odd either
        return pl.DataFrame(schema=FINDING)
    slices = (
        frame.group_by("slice", maintain_order=True)
        .agg(
            pl.len().alias("count"), ratio.median().alias("ratio"), iv.alias("iv"),
            pl.max_horizontal(pl.when(low.count() >= FEWEST).then(low.mean()), high.mean()).alias("outside"),
            pl.col("at").cast(pl.Int64).alias("all"),
        )
        .filter(pl.col("count") >= FEWEST)
    )  # fmt: skip
    strikes = slices.filter((pl.col("ratio") > limit) | (pl.col("ratio") * limit < 1.0))
    prices = slices.filter((pl.col("outside") > 0.5) & pl.col("ratio").is_between(1.0 / limit, limit))
    percent = slices.filter(pl.col("iv") > PERCENT)
    return pl.concat([
        pl.DataFrame(schema=FINDING),
        _found(strikes, "strike", "the median strike is ", shown("ratio", 3), " times the forward: another unit?"),
        _found(prices, "price", shown(100 * pl.col("outside"), 3), " % of the prices that can be judged are below half "
              "of the intrinsic value or above the upper bound: another unit than the forward's?"),
        _found(percent, "iv", "the median volatility is ", shown("iv", 3), ": in percent?"),
    ])  # fmt: skip


def _found(slices: pl.DataFrame, column: str, *words: pl.Expr | str) -> pl.DataFrame:
    count = pl.col("count").cast(pl.String)
    sentence = pl.concat_str([pl.lit(word) if isinstance(word, str) else word for word in words])
    return slices.select(
        pl.col("all").list.first().alias("at"),
        pl.lit(column).alias("column"),
        pl.concat_str(sentence, pl.lit(" ("), count, pl.lit(" quotes of one expiry; kept)")).alias("words"),
        pl.col("all").list.slice(1).alias("others"),
    )


def broken_parity(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q302: call minus put differs from D (F - K) by more than bid and ask allow, and ``limit`` of D F beyond that.

    For American options parity is an inequality that allows for early exercise, so they are left out.
    """
    sides = frame.filter(pl.col("bid").is_not_null() & pl.col("ask").is_not_null() & ~is_american(frame))
    puts = sides.filter(~pl.col("is_call")).select(
        "slice", "strike", pl.col("at").alias("put"), pl.col("bid").alias("put_bid"), pl.col("ask").alias("put_ask")
    )
    pairs = sides.filter("is_call").join(puts, on=["slice", "strike"], how="inner")
    carried = pl.col("discount") * (pl.col("forward") - pl.col("strike"))
    dear = pl.col("bid") - pl.col("put_ask") - carried  # what selling the call and buying the put gains
    cheap = carried - (pl.col("ask") - pl.col("put_bid"))  # and what the reverse does
    pairs = pairs.with_columns(pl.max_horizontal(dear, cheap).alias("gain"), (dear > cheap).alias("dear"))
    least = (limit + ROUNDING) * pl.col("discount") * pl.col("forward")
    word = pl.when("dear").then(pl.lit("dear")).otherwise(pl.lit("cheap"))
    return report_rows(
        pairs.filter(pl.col("gain") > least), "bid", "call minus put at strike ", shown("strike"), " is too ", word,
        " by ", shown("gain", 4), " against the forward ", shown("forward"), ", bid and ask paid; kept.",
        others=("put",),
    )  # fmt: skip


KIND = ("moment", "is_call", "american")


def calendar(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q305: a bid above what the next expiry costs at the ask, at the same strike over forward.

    Price over discounted forward cannot fall with the expiry at a fixed strike over forward, where rates and dividend
    yields are known. The next expiry seldom lists that very strike: two neighbours of it cost no less than it would.
    European options in the money are left to parity. American ones are held against the same strike, forwards apart.
    """
    rows = _ordered(_scaled(frame))
    outside = pl.when("is_call").then(pl.col("x") >= 1.0).otherwise(pl.col("x") <= 1.0)
    near = rows.filter((pl.col("bid") > 0) & pl.col("later").is_not_null() & (outside | pl.col("american")))
    far = rows.select(pl.col("term").alias("later"), "x", pl.col("x").alias("x_far"), "cost", "at")
    for side, strategy in (("low", "backward"), ("high", "forward")):
        named = far.rename({"cost": f"cost_{side}", "x_far": f"x_{side}", "at": f"at_{side}"})
        near = near.join_asof(named, on="x", by="later", strategy=strategy, check_sortedness=False)  # type: ignore[arg-type]
    near = near.drop_nulls(["x_low", "x_high"])
    if not near.height:
        return pl.DataFrame(schema=FINDING)
    apart = pl.col("x_high") - pl.col("x_low")
    share = pl.when(apart > 0).then((pl.col("x_high") - pl.col("x")) / apart).otherwise(1.0)
    cost = share * pl.col("cost_low") + (1.0 - share) * pl.col("cost_high")
    near = near.with_columns((cost * pl.col("unit")).alias("price"))
    least = (limit + ROUNDING) * pl.col("discount") * pl.col("forward")
    return report_rows(
        near.filter(pl.col("bid") > pl.col("price") + least), "bid", "the bid ", shown("bid"), " at strike ",
        shown("strike"), " is above ", shown("price"), ", what the next expiry costs at the same strike over forward; "
        "kept.", others=("at_low", "at_high"),
    )  # fmt: skip


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``term``, a number for each expiry of each kind, and ``later``, that of the next; sorted by x."""
    terms = rows.select(*KIND, "expiry_years").unique().sort(*KIND, "expiry_years").with_row_index("term")
    is_same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in KIND)
    terms = terms.with_columns(pl.when(is_same).then(pl.col("term") + 1).alias("later"))
    return rows.join(terms, on=[*KIND, "expiry_years"], how="left").sort("x", "at")


def _scaled(frame: pl.DataFrame) -> pl.DataFrame:
    """Return two-sided quotes with ``x``, their strike, and ``unit``, what their price is counted in."""
    american = is_american(frame).alias("american")
    rows = frame.filter(pl.col("bid").is_not_null() & pl.col("ask").is_not_null()).with_columns(american)
    x = pl.when("american").then(pl.col("strike")).otherwise(pl.col("strike") / pl.col("forward"))
    unit = pl.when("american").then(1.0).otherwise(pl.col("discount") * pl.col("forward"))
    kept = pl.col("at", "moment", "is_call", "american", "expiry_years", "strike", "forward", "discount", "bid", "ask")
    return rows.select(kept, x.alias("x"), unit.alias("unit")).with_columns(
        (pl.col("ask") / pl.col("unit")).alias("cost")
    )


def vertical(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q303: two strikes that can be traded against each other at a gain and without risk.

    Along x (see `laddered`) a price may not rise, nor fall by more than the discounted distance. So the bid at x is
    held against the lowest ask before it, and bid + D x against the lowest ask + D x after it: every pair of strikes is
    covered, not only neighbours. An American option can be exercised at once, so there D is 1.
    """
    slope = pl.when(is_american(frame)).then(1.0).otherwise(pl.col("discount"))
    ladder = laddered(frame.with_columns(slope.alias("slope"))).with_columns(
        (pl.col("slope") * pl.col("x")).alias("run")
    )
    least = _gain(limit)
    before = _cheapest(ladder, pl.col("ask"), reverse=False).filter(pl.col("bid") > pl.col("best") + least)
    after = _cheapest(ladder, pl.col("ask") + pl.col("run"), reverse=True).filter(
        pl.col("bid") + pl.col("run") > pl.col("best") + least
    )
    words = ("the bid ", shown("bid"), " at strike ", shown("strike"))
    risen = report_rows(
        before, "bid", *words, " is above the ask ", shown("best"), " of a strike that pays more; kept.",
        others=("partner",),
    )  # fmt: skip
    steep = report_rows(
        after, "bid", *words, " exceeds an ask by ", shown(pl.col("bid") + pl.col("run") - pl.col("best")),
        " more than the two strikes are apart; kept.", others=("partner",),
    )  # fmt: skip
    return pl.concat([risen, steep])


def _cheapest(ladder: pl.DataFrame, cost: pl.Expr, *, reverse: bool) -> pl.DataFrame:
    """For each rung the least cost among those before it (after it, reversed), and whose that is."""
    step = -1 if reverse else 1
    costs = ladder.with_columns(cost.alias("cost"))
    running = costs.with_columns(pl.col("cost").cum_min(reverse=reverse).over("ladder").alias("least"))
    holder: pl.Expr = pl.when(pl.col("cost") == pl.col("least")).then("at")
    holder = holder.backward_fill() if reverse else holder.forward_fill()
    return running.with_columns(
        pl.col("least").shift(step).over("ladder").alias("best"), holder.shift(step).over("ladder").alias("partner")
    )


def _gain(limit: float) -> pl.Expr:
    one = pl.col("discount") * (pl.col("forward") if limit else pl.col("strike"))
    return (limit + ROUNDING) * one


def butterfly(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q304: a bid above the lower convex hull of the asks of its ladder.

    The hull at x is the least that options of other strikes cost, two at most, whose payoff together is never below
    that of the one at x. All strikes of the ladder are covered, however far the wings are.
    """
    ladder = laddered(frame)
    number, x, ask = (ladder[name].to_numpy() for name in ("ladder", "x", "ask"))
    corners = lower_hull(number, x, ask)
    is_inside = np.ones(len(x), bool)
    is_inside[corners] = False
    inside = np.flatnonzero(is_inside)
    after = np.searchsorted(corners, inside)
    keep = (after > 0) & (after < len(corners))
    inside, left, right = inside[keep], corners[after[keep] - 1], corners[after[keep]]
    same = (number[left] == number[inside]) & (number[right] == number[inside]) & (x[right] > x[left])
    inside, left, right = inside[same], left[same], right[same]
    if not inside.size:
        return pl.DataFrame(schema=FINDING)
    share = (x[right] - x[inside]) / (x[right] - x[left])
    wings = pl.DataFrame({
        "wings": share * ask[left] + (1.0 - share) * ask[right],
        "left": ladder["at"].gather(left), "right": ladder["at"].gather(right),
    })  # fmt: skip
    above = ladder[inside].hstack(wings).filter(pl.col("bid") > pl.col("wings") + _gain(limit))
    return report_rows(
        above, "bid", "the bid ", shown("bid"), " at strike ", shown("strike"), " is above ", shown("wings"),
        ", what strikes on both sides of it cost for the same payoff or more; kept.", others=("left", "right"),
    )  # fmt: skip


def lower_hull(number: NDArray[Any], x: Floats, y: Floats) -> Rows:
    """Rows of the corners of the lower convex hull of each group; sorted by group, x and y.

    A point on or above the chord of its neighbours is not a corner, whichever neighbours: so all such points are
    removed at once, and the pass is repeated until none is. Of points at one x only the lowest, which is the first, can
    be one.
    """
    if not x.size:
        return np.empty(0, np.intp)
    first = np.ones(len(x), bool)
    first[1:] = (number[1:] != number[:-1]) | (x[1:] != x[:-1])
    is_corner, at = first.copy(), np.flatnonzero(first)
    n, x, y = number[at], x[at], y[at]
    while at.size > 2:
        over = (y[1:-1] - y[:-2]) * (x[2:] - x[:-2]) >= (y[2:] - y[:-2]) * (x[1:-1] - x[:-2])
        over &= n[:-2] == n[2:]
        if not over.any():
            break
        is_corner[at[1:-1][over]] = False
        unsettled = np.zeros(
            int(number[-1]) + 1, bool
        )  # groups that lost a point are looked at again, the rest are done
        unsettled[n[1:-1][over]] = True
        keep = unsettled[n]
        keep[1:-1] &= ~over
        at, n, x, y = at[keep], n[keep], x[keep], y[keep]
    return np.flatnonzero(is_corner)


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


CONTRACT = ("underlying", "root", "expiry", "strike", "is_call", "exercise", "settlement", "source")
WHEN = ("quote_date", "quote_time")
# Every column the rule needs, if it exists; the timestamp is numbered from the last of them.
LOOKED_AT = (
    "at", "row", *CONTRACT, *WHEN, "bid", "ask", "observed", "spot", "forward", "discount", "expiry_years",
)  # fmt: skip
UNKNOWN_SPREAD = 0.05  # if no spread is known, the price should have moved by this share of itself


def stale(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q210: the same quote as at its last appearance, though the underlying moved by more than ``limit``.

    And so far that Black's formula, at the volatility it was quoted at, moves by more than half the spread: a worthless
    option rightly stands still.
    """
    index = "spot" if "spot" in frame.columns else "forward"
    same = [name for name in CONTRACT if name in frame.columns]
    when = [name for name in WHEN if name in frame.columns]
    stood = [name for name in ("bid", "ask", "observed") if name in frame.columns]
    known = {*same, *when, *stood, index, "at", "moment", "forward", "discount", "expiry_years"}
    # Sorting by a hash of the contract is quicker than by its columns; that neighbours are equal is checked below.
    seen = frame.select(pl.col(sorted(known)), pl.struct(same).hash().alias("contract")).sort("contract", *when, "at")
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in same)
    unchanged = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in stood)
    # Two quotes of one contract at one time are duplicates; neither is an earlier appearance of the other.
    is_later = pl.col("moment") != pl.col("moment").shift(1)
    move = pl.col(index) / pl.col(index).shift(1) - 1.0
    held = seen.with_columns(move.alias("move"), pl.col("at").shift(1).alias("last")).filter(
        (is_same & is_later & unchanged & (move.abs() > limit)).fill_null(value=False)
    )
    if not held.height:
        return pl.DataFrame(schema=FINDING)
    moved = held.with_columns(_expected(held).alias("expected"))
    room = pl.col("observed").abs() * UNKNOWN_SPREAD
    if {"bid", "ask"} <= set(frame.columns):
        room = ((pl.col("ask") - pl.col("bid")) / 2).fill_null(room)
    return report_rows(
        moved.filter(pl.col("expected").fill_nan(None).abs() > room), "bid" if "bid" in stood else "price",
        "unchanged at ", shown("observed"), " while the underlying moved by ", shown(100 * pl.col("move"), 3),
        " %, which is worth ", shown("expected", 3), " here; kept.", others=("last",),
    )  # fmt: skip


def _expected(held: pl.DataFrame) -> pl.Series:
    """Return how far the price should have gone with the underlying, at the volatility it has."""
    from strikeout.kernels import black

    price, forward, strike, years, discount, is_call, move = (
        held[name].to_numpy()
        for name in ("observed", "forward", "strike", "expiry_years", "discount", "is_call", "move")
    )
    before = forward / (1.0 + move)
    volatility = black.implied_volatility(price, before, strike, years, discount, is_call)
    return pl.Series(black.price(forward, strike, years, volatility, discount, is_call) - price)
