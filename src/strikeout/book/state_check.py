"""States and footprints of a book found anew from its quotes, shard by shard, and held against those it keeps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from strikeout.book.group_states import GroupStates
from strikeout.book.linearization import Standing
from strikeout.book.records import Snapshot
from strikeout.book.state_codec import ShardRows
from strikeout.book.state_store import MissingFootprints, counting, rows_of, state_of_shard
from strikeout.calibration.otm_filter import chosen
from strikeout.kernels.exact import Integers
from strikeout.quotes.forwards import is_derived
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.store.store import LEAVINGS
from strikeout.wording import many

Found = tuple[bool | None, str]
BENDING = 1e-6  # of the largest number: sums in floating point depend on the order in which quotes came and went
NAMED = 5  # shards in a sentence


def check_states(records: Snapshot) -> Found:
    """Whether every shard's footprints and state, and their sum, are those of the quotes the book retains.

    Of footprints with noise on them the states are held against their sum; nobody can tell the noise from a change.

    Raises:
        StrikeoutError: something cannot be read.
    """
    store, standing, groups = records.store, records.linearization, records.groups
    if groups is not None:
        return _groups(records, groups)
    if standing is None:
        kept = [what for what in LEAVINGS if store.shards_with(what)]
        if kept:
            return False, f"Of shards {' and '.join(kept)} are kept, and nothing says at which reference."
        missing = records.no_footprints or MissingFootprints.LOST
        return None, f"The book keeps no footprints: {missing.clause}."
    held = store.quotes()
    is_current = records.is_current
    if not is_current and is_derived(held).any():
        return None, "Quotes came since the states were taken, and forwards may rest on them: calibrate again."
    used = chosen(held, records.settings.select)
    if not is_current:  # of quotes that came since nothing is kept, and the model may have no place for them
        known = {name for shard in store.shards_with("states") for name in store.members(shard)}
        used = used[np.array([name in known for name in used.ids.tolist()], bool)]
    footprints = standing.footprints(used, records.settings)
    odd, whole, last = [], NormalEquations.zero(standing.schema), -1
    for shard, is_sound, state in _shards(records, standing, footprints, is_current=is_current):
        odd += [] if is_sound else [shard]
        whole, last = whole if state is None else whole + state, shard
    if odd:
        named = ", ".join(map(str, odd[:NAMED])) + (", ..." if len(odd) > NAMED else "")
        return False, f"Shards whose footprints or state are not those of their quotes: {named} ({len(odd):,})."
    if whole != standing.equations:
        return False, "The state of the book is not the sum of the states of its shards."
    if last < 0:
        return False, "The book keeps a state of all its quotes, and none of any shard."
    return _whole(records, standing, footprints, is_current=is_current)


def _groups(records: Snapshot, groups: GroupStates) -> Found:
    """Whether the state of every group of a panel is that of the quotes retained."""
    version, held = records.version, records.store.quotes()
    if version is None or not records.is_current:
        return None, "Quotes came or went since the states of the groups were taken: calibrate again."
    anew = groups.anew(held, records.settings)
    found = {str(group): state for group, state in anew.blocks.items()}
    odd = sorted(name for name in found.keys() | groups.states.keys() if found.get(name) != groups.states.get(name))
    if odd:
        named = ", ".join(odd[:NAMED]) + (", ..." if len(odd) > NAMED else "")
        return False, f"Groups whose state is not that of their quotes: {named} ({len(odd):,})."
    if anew.digest() != version.state:
        return False, "The states of the groups are not those the calibration is named by."
    return True, f"The states of {many(len(found), 'group')} are those of the retained quotes, bit for bit."


def check_members(records: Snapshot) -> str | None:
    """Why a footprint may be of a quote the book does not hold; None where each belongs to one that it does."""
    standing, counts = records.linearization, records.store.shards()
    if standing is None:
        return None
    for shard in records.store.shards_with("footprints"):
        rows = rows_of(records.store, standing, shard)
        if rows is None or len(rows.has) != counts.get(shard):
            return f"Shard {shard} keeps footprints of other quotes than it holds."
    return None


def _shards(
    records: Snapshot, standing: Standing, footprints: Footprints, *, is_current: bool
) -> Iterator[tuple[int, bool, NormalEquations | None]]:
    """Every shard that keeps something or should: its number, whether that is sound, and its state."""
    store, live = records.store, dict(zip(footprints.ids.tolist(), range(len(footprints)), strict=True))
    for shard in store.shards():
        state, rows = state_of_shard(store, standing, shard), rows_of(store, standing, shard)
        members = store.members(shard)
        here = np.array([live.get(name, -1) for name in members], np.int64)
        if state is None and (rows is not None or (is_current and (here >= 0).any())):
            yield shard, False, None
        if state is None:
            continue
        if standing.noise:
            kept = rows is not None and bool(rows.has[here >= 0].all())
            yield shard, kept and rows is not None and _sums(rows.at(np.flatnonzero(here >= 0)), state), state
            continue
        sound = footprints.total(here[here >= 0]) == state
        if rows is not None:
            both = (here >= 0) & rows.has
            sound &= np.array_equal(rows.at(np.flatnonzero(both)), footprints.rows[here[both]])
            sound &= _is_set_aside(records, standing, members, rows, np.flatnonzero(rows.has & (here < 0)))
        yield shard, bool(sound), state


def _is_set_aside(
    records: Snapshot, standing: Standing, members: tuple[str, ...], rows: ShardRows, places: NDArray[np.intp]
) -> bool:
    """Whether rows of a shard that are of no quote that counts are of quotes set aside.

    Not every quote set aside has one: the model may have no place for its expiry any more.
    """
    if not len(places):
        return True
    store, settings = records.store, records.settings
    names, struck = [members[place] for place in places.tolist()], store.struck()
    aside = counting(store.named([name for name in names if name in struck]), settings)
    if len(aside) < len(names) or is_derived(aside).any():
        return False
    return np.array_equal(standing.footprints(aside.only(names), settings).rows, rows.at(places))


def _sums(rows: Integers, state: NormalEquations) -> bool:
    names = np.array([str(number) for number in range(len(rows))], "U8")
    return Footprints(state.schema, names, rows).total() == state


def _whole(records: Snapshot, standing: Standing, footprints: Footprints, *, is_current: bool) -> Found:
    version, settings = records.version, records.settings
    if is_current and version is not None:
        named = None if standing.start is None else standing.start.digest()
        if named != version.state:
            return False, "The state at the first start is not the one the calibration is named by."
        used = chosen(records.store.quotes(), settings.select)
        if standing.start is not None and standing.start != standing.started(used, settings):
            return False, "The state at the first start is not that of the quotes."
        found = standing.bent(used, settings)
        for kept, anew in (
            (standing.second_order.residual, found.residual),
            (standing.second_order.sensitivity, found.sensitivity),
        ):
            if not np.abs(kept - anew).max() <= BENDING * max(np.abs(anew).max(), 1e-300):
                return False, "What is kept of how prices bend is not that of the quotes."
    shards = len(records.store.shards_with("states"))
    noise = f", with noise of {standing.noise:g} on them" if standing.noise else ""
    what = f"{many(len(footprints), 'footprint')} in {many(shards, 'shard')}{noise}"
    return True, f"{what}, their states and the whole are those of the retained quotes, bit for bit."
