"""Footprints and states of a book in step with its quotes: what comes is added, what goes is subtracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from strikeout.book.linearization import PAGE, Standing
from strikeout.book.state_codec import ShardRows, rows_to_bytes, state_to_bytes
from strikeout.book.state_store import (
    NOBODY,
    MissingFootprints,
    Taken,
    clear,
    counting,
    keep,
    noisy,
    rows_of,
    start_of,
    state_of_shard,
    summed,
    taken,
)
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError
from strikeout.kernels.exact import Integers
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.store.store import Reading, Writing


@dataclass(frozen=True, eq=False)
class Touched:
    """What becomes of one shard: its state, and its footprints where they change."""

    before: NormalEquations
    after: NormalEquations
    rows: ShardRows | None = None
    is_healed: bool = False  # a footprint was missing, and the state was built again from the quotes of the shard


def touched(
    store: Reading, standing: Standing, how: Settings, *, gone: Quotes, come: Quotes
) -> dict[int, Touched] | None:
    """What comes of the shards that some quotes leave and others join, by number; of these alone anything is read.

    None where what is kept cannot tell: there is no state of a shard that had quotes, or a footprint is missing and the
    shard cannot be built again from its own quotes, since there is noise on it or forwards rest on other quotes.

    Args:
        gone: quotes that count no longer, struck out already or not; without derived forwards.
        come: quotes that count from now on.

    Raises:
        RefusedError: a quote is too large for the grid, or what is kept cannot be read.
    """
    gone, come = counting(gone, how), counting(come, how)
    news = standing.footprints(come, how) if len(come) else None
    names = [*gone.ids.tolist(), *come.ids.tolist()]
    homes, found = store.shards_of(names), {}
    for shard in sorted(set(homes.values())):
        out = [name for name in gone.ids.tolist() if homes[name] == shard]
        into = [name for name in come.ids.tolist() if homes[name] == shard]
        one = _one(store, standing, how, shard, out, into, news)
        if one is None:
            return None
        found[shard] = one
    return found


def move(
    store: Writing,
    standing: Standing,
    how: Settings,
    changes: Mapping[int, Touched],
    *,
    gone: Quotes,
    come: Quotes,
    start: NormalEquations | None,
) -> None:
    """Keeps what becomes of these shards, and of the whole.

    Args:
        start: of what is retained, at the model's first start.

    Raises:
        ParameterError: the reference is too close to where the model ends.
    """
    second_order, whole = standing.second_order, standing.equations
    gone, come = counting(gone, how), counting(come, how)
    if len(gone):
        second_order = second_order - standing.bent(gone, how)
    if len(come):
        second_order = second_order + standing.bent(come, how)
    for shard, one in changes.items():
        whole = whole + (one.after - one.before)
        store.leave(shard, "states", state_to_bytes(one.after))
        if one.rows is not None:
            store.leave(shard, "footprints", rows_to_bytes(standing.schema, one.rows))
    store.put("state", PAGE, replace(standing, equations=whole, start=start, second_order=second_order).to_bytes())


@dataclass(frozen=True, eq=False)
class Following:
    """What becomes of footprints and states with a change of the book: all of them anew, or some added and subtracted.

    Made before the transaction that the change is kept in, and kept in it, once the quotes have come and gone.
    """

    taken: Taken | MissingFootprints | None = None  # None for a panel, and for moments
    standing: Standing | None = None
    how: Settings = field(default_factory=Settings)
    gone: Quotes = NOBODY
    come: Quotes = NOBODY
    start: NormalEquations | None = None

    def keep(self, store: Writing) -> None:
        """Keeps it; where what was kept cannot tell, nothing is kept until the book is calibrated again."""
        if self.standing is None:
            keep(store, self.taken)
            return
        sides = {"gone": self.gone, "come": self.come}
        try:
            changes = touched(store, self.standing, self.how, **sides)
        except RefusedError:  # a quote that comes is too large for the grid
            changes = None
        if changes is None:
            clear(store, why=MissingFootprints.LOST)
        else:
            move(store, self.standing, self.how, changes, **sides, start=self.start)


def following(
    after: Calibration, standing: Standing, *, entry: int, gone: Quotes = NOBODY, come: Quotes = NOBODY
) -> Following:
    """What follows for a book when quotes come and go, at the reference it has.

    Where forwards rest on quotes that come or go, or the model takes another form, every footprint is taken anew.
    """
    if after.is_panel or after.moments is not None:
        return Following()
    if after.model.name == standing.schema.model and not is_derived(gone).any() and not is_derived(come).any():
        return Following(None, standing, after.settings, gone, come, start_of(after))
    same = after.model.name == standing.schema.model
    return Following(taken(after, entry=entry, at=standing if same else None, noise=standing.noise))


def _one(
    store: Reading,
    standing: Standing,
    how: Settings,
    shard: int,
    out: Sequence[str],
    into: Sequence[str],
    news: Footprints | None,
) -> Touched | None:
    schema = standing.schema
    before, rows = state_of_shard(store, standing, shard), rows_of(store, standing, shard)
    members = store.members(shard)
    if before is None:
        others = [name for name in members if name not in {*store.struck(), *into}]
        if out or rows is not None or len(counting(store.named(others), how)):
            return None
        before, rows = NormalEquations.zero(schema), ShardRows(np.zeros(len(members), bool), _no_rows(standing))
    at = {name: place for place, name in enumerate(members)}
    leaving, joining = _places(at, out), _places(at, into)
    if rows is None or not rows.has[leaving].all():
        return _healed(store, standing, how, members, before, out)
    fresh = joining[~rows.has[joining]]
    more = None
    if len(fresh):
        assert news is not None, "quotes that join have footprints"
        new = news.only([members[place] for place in fresh.tolist()])
        order = _places(at, new.ids.tolist())
        rows = more = rows.with_rows(order, noisy(new.rows, standing.noise))
    after = before - summed(standing, rows.at(leaving)) + summed(standing, rows.at(joining))
    return Touched(before, after, more)


def _healed(
    store: Reading,
    standing: Standing,
    how: Settings,
    members: Sequence[str],
    before: NormalEquations,
    out: Sequence[str],
) -> Touched | None:
    """The shard built again from the quotes of it that stay: none of those that go needs a footprint."""
    away = {*store.struck(), *out}
    stay = store.named([name for name in members if name not in away])
    # Without its noise a state could not be told from one that lost some; without the book a forward is a stand-in.
    if standing.noise or is_derived(stay).any():
        return None
    stay = counting(stay, how)
    return Touched(before, standing.footprints(stay, how).total(), is_healed=True)


def _places(at: Mapping[str, int], names: Sequence[str]) -> NDArray[np.intp]:
    return np.array([at[name] for name in names], np.intp)


def _no_rows(standing: Standing) -> Integers:
    return np.zeros((0, standing.schema.columns), np.int64)
