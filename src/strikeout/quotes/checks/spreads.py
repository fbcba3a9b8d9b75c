"""Rules along the strikes of one expiry: gains without risk, every purchase at the ask and every sale at the bid."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.frames import FINDING, ROUNDING, is_american, laddered, report_rows, shown

Positions = NDArray[np.intp]
Floats = NDArray[np.float64]


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


def lower_hull(number: NDArray[Any], x: Floats, y: Floats) -> Positions:
    """Positions of the corners of the lower convex hull of each group; sorted by group, x and y.

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
