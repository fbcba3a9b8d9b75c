"""Footprints and states of a book: computed when it is calibrated, stored per shard, updated as quotes change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from strikeout.assurance.perturbation import perturb, with_noise
from strikeout.assurance.state_codec import (
    ShardRows,
    StateKind,
    decode_footprints,
    decode_state,
    encode_footprints,
    encode_state,
)
from strikeout.book.linearization import BookLinearization, by_text, references_of
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.settings import Settings, is_out_of_the_money
from strikeout.calibration.standard_errors import Reason, cluster_numbers
from strikeout.calibration.step_errors import StepUnit
from strikeout.errors import ParameterError, RefusedError
from strikeout.kernels.arrays import Rows
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.second_order import SecondOrder, second_order_of
from strikeout.statistics.system import WHOLE, FootprintBlocks, Group, System
from strikeout.store.chunks import quotes_of
from strikeout.store.store import SHARD_DATA, Reading, Writing

NO_QUOTES = quotes_of([])
ABSENT = -1
MOST_CLUSTERS = 1 << 12  # of more, the book stores no states: each has about 500 bytes, written at every change
WHY = "no footprints"  # the page with the reason why none are stored


class MissingFootprints(StrEnum):
    """Why a book stores no footprints; the values are stored in books and survive an erasure: none names a quote."""

    NOT_CALIBRATED = "not calibrated"
    MOMENTS = "moments"
    PERTURBED_PANEL = "perturbed panel"
    AT_BOUNDARY = "at boundary"
    TOO_LARGE = "too large"
    NO_REFERENCE = "no reference"
    LOST = "lost"
    ERASED = "erased"

    @property
    def clause(self) -> str:
        """The reason in words."""
        return {
            MissingFootprints.NOT_CALIBRATED: "it is not calibrated yet",
            MissingFootprints.MOMENTS: "it is calibrated from moments, which are its state",
            MissingFootprints.PERTURBED_PANEL: "it is a panel, and only footprints of a plain book are perturbed",
            MissingFootprints.AT_BOUNDARY: "the reference is too close to the boundary of the model to judge a step",
            MissingFootprints.TOO_LARGE: "a quote is too large for the integer grid; strike it out or weigh it less",
            MissingFootprints.NO_REFERENCE: "no reference was found to take them at",
            MissingFootprints.LOST: "those of quotes that were added or removed are missing or too large; calibrate "
            "again to take them",
            MissingFootprints.ERASED: "their reference was fitted to quotes that are erased; calibrate again to take "
            "them",
        }[self]


@dataclass(frozen=True, eq=False)
class FootprintSet:
    """The footprint of every quote that counts, by group, and their linearization."""

    linearization: BookLinearization
    footprints: FootprintBlocks


def compute_footprints(
    calibration: Calibration, *, entry: int, at: BookLinearization | None = None, noise: float = 0.0
) -> FootprintSet | MissingFootprints:
    """Return the footprints of a calibration's quotes, or the reason why there are none.

    Args:
        entry: of the ledger, in which a new reference is fitted.
        at: the linearization whose references are used; None for new references.
    """
    if noise and calibration.is_panel:
        return MissingFootprints.PERTURBED_PANEL
    how, model = calibration.settings, calibration.model
    try:
        references = references_of(calibration) if at is None else at.references
    except (RefusedError, ParameterError):
        return MissingFootprints.NO_REFERENCE
    blocks: dict[Group, Footprints] = {}
    second_order: dict[Group, SecondOrder] = {}
    for group in calibration.blocks:
        asked = (calibration.quotes_of(group), model, references[str(group)])
        try:
            blocks[str(group)] = footprints_of(*asked, residual=how.residual, weights=how.weights)
        except ParameterError:
            return MissingFootprints.AT_BOUNDARY
        except RefusedError:
            return MissingFootprints.TOO_LARGE
        with suppress(ParameterError):  # a group at the boundary of the model: no step is judged then
            second_order[str(group)] = second_order_of(*asked, residual=how.residual, weights=how.weights)
    if not second_order:
        return MissingFootprints.AT_BOUNDARY
    held, drift = frozenset(map(str, calibration.latent_on_bound)), 0.0
    if noise:
        perturbed = perturb(blocks[WHOLE], noise, draw=np.random.default_rng())
        blocks, drift = {WHOLE: perturbed.footprints}, perturbed.drift.value
    footprints = FootprintBlocks(blocks, calibration.latent_name, held)
    linearization = BookLinearization(
        model,
        entry if at is None else at.entry,
        {group: rows.schema for group, rows in blocks.items()},
        footprints.system,
        start_of(calibration),
        second_order,
        step_unit(calibration, noise),
        {},
        calibration.panel,
        held,
        float(noise),
        float(drift),
    )
    clusters = linearization.clusters_of(calibration.quotes, how, footprints)
    return FootprintSet(replace(linearization, clusters=clusters), footprints)


def step_unit(calibration: Calibration, noise: float) -> StepUnit:
    """Return the unit of standard errors after a step of the book; no label if no states of clusters are kept."""
    unit = StepUnit.of(calibration)
    if calibration.is_panel or unit.label is None:
        return unit
    if noise:  # exact states would show what noise hides, and no step is taken
        return replace(unit, label=None, reason=Reason.STEP)
    is_many = len(np.unique(cluster_numbers(calibration.quotes, unit.label))) > MOST_CLUSTERS
    return replace(unit, label=None, reason=Reason.MANY_CLUSTERS) if is_many else unit


def start_of(calibration: Calibration) -> System | None:
    """Return the state at the first start, which identifies a version; None if a quote is too large for it."""
    try:
        return by_text(calibration.state)
    except RefusedError:
        return None


def clear_footprints(store: Writing, *, why: MissingFootprints | None = None) -> None:
    """Remove the footprints and states of all shards, and store the reason."""
    for what in SHARD_DATA:
        store.remove_shard_data(what, store.now.shards_with(what))
    store.remove("state", StateKind.LINEARIZATION.value)
    if why is None:
        store.remove("state", WHY)
    else:
        store.put("state", WHY, why.value.encode())


class RowOrder:
    """The row of every name, found for one shard after another.

    Members of a shard mostly follow each other in a calibration too, and are then found without a lookup. Not always:
    quotes that are struck out are missing there, and quotes that were restored are last.
    """

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._next = 0

    @cached_property
    def _row(self) -> dict[str, int]:
        return dict(zip(self._names, range(len(self._names)), strict=True))

    def find(self, members: Sequence[str]) -> Rows:
        """Return the row of each member, or `ABSENT`."""
        begin, end = self._next, self._next + len(members)
        if self._names[begin:end] == list(members):
            self._next = end
            return np.arange(begin, end)
        found = np.array([self._row.get(name, ABSENT) for name in members], np.intp)
        self._next += int(np.count_nonzero((found >= begin) & (found < end)))
        return found


def replace_footprints(store: Writing, new: FootprintSet | MissingFootprints | None) -> None:
    """Store these footprints and their states instead of all earlier ones; or none, and the reason."""
    if not isinstance(new, FootprintSet):
        clear_footprints(store, why=new)
        return
    clear_footprints(store)
    linearization = new.linearization
    blocks = new.footprints.blocks
    groups = list(blocks)
    group = np.repeat(np.arange(len(groups)), [len(footprints) for footprints in blocks.values()])
    parts = [footprints.rows for footprints in blocks.values()]
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    order = RowOrder([name for footprints in blocks.values() for name in footprints.ids.tolist()])
    for shard in store.now.shards():
        found = order.find(store.now.members(shard))
        has = found != ABSENT
        if has.any():
            own = found[has]
            values = ShardRows(has, rows[own])
            state = linearization.total(values.rows, [groups[number] for number in group[own].tolist()])
            store.put_shard_data(shard, "footprints", encode_footprints(linearization.schema, values))
            store.put_shard_data(shard, "states", encode_state(linearization.schema, state))
    store.put("state", StateKind.LINEARIZATION.value, linearization.to_bytes())


def in_objective(quotes: Quotes, how: Settings) -> Quotes:
    """Return the quotes that count in the objective; their forwards must not be placeholders."""
    return quotes if how.select == "all" or not len(quotes) else quotes[is_out_of_the_money(quotes.contracts)]


def stored_rows(store: Reading, linearization: BookLinearization, shard: int) -> ShardRows | None:
    """Return the stored footprints of a shard; None if there are none."""
    data = store.shard_data(shard, "footprints")
    if data is None:
        return None
    return decode_footprints(linearization.schema, data, columns=linearization.columns)


def stored_state(store: Reading, linearization: BookLinearization, shard: int) -> System | None:
    """Return the stored state of a shard; None if there is none."""
    data = store.shard_data(shard, "states")
    if data is None:
        return None
    return decode_state(linearization.schema, linearization.schemas, linearization.latent, data)


@dataclass(frozen=True, eq=False)
class SavedShard:
    """Footprints and state of a shard, saved while the store erases members that are not part of the state."""

    shard: int
    members: tuple[str, ...]
    rows: ShardRows | None
    state: bytes | None

    @staticmethod
    def of(store: Reading, linearization: BookLinearization, shard: int) -> SavedShard:
        """Return what is stored for a shard."""
        state = store.shard_data(shard, "states")
        return SavedShard(shard, store.members(shard), stored_rows(store, linearization, shard), state)

    def write(self, store: Writing, linearization: BookLinearization) -> None:
        """Store it again, without the footprints of erased members."""
        if self.shard not in store.now.shards():
            return
        stay = set(store.now.members(self.shard))
        if self.state is not None:
            store.put_shard_data(self.shard, "states", self.state)
        if self.rows is not None:
            here = np.array([name in stay for name in self.members], bool)
            rows = ShardRows(self.rows.has[here], self.rows.at(np.flatnonzero(here & self.rows.has)))
            store.put_shard_data(self.shard, "footprints", encode_footprints(linearization.schema, rows))


@dataclass(frozen=True, eq=False)
class ShardUpdate:
    """The state of one shard before and after a change, and its footprints if they change."""

    before: System
    after: System
    rows: ShardRows | None = None


def shard_updates(
    store: Reading, linearization: BookLinearization, how: Settings, *, removed: Quotes, added: Quotes
) -> dict[int, ShardUpdate] | None:
    """Return the updates of the shards that these quotes are in, by number. No other shard is read.

    None if they cannot be computed: a shard that had quotes has no state, or a footprint is missing and the shard
    cannot be rebuilt from its own quotes, because of noise or because forwards depend on other quotes.

    Args:
        removed: quotes that no longer count, struck out already or not; without derived forwards.
        added: quotes that count from now on.
    """
    removed, added = in_objective(removed, how), in_objective(added, how)
    new = linearization.footprints(added, how) if len(added) else None
    groups: dict[str, Group] = {}
    for quotes in (removed, added):
        for group, rows in linearization.groups_of(quotes).items():
            groups |= dict.fromkeys(quotes.ids[rows].tolist(), group)
    out, into = removed.ids.tolist(), added.ids.tolist()
    homes = store.shards_of([*out, *into])
    found: dict[int, ShardUpdate] = {}
    for shard in sorted(set(homes.values())):
        leaving, joining = ([name for name in names if homes[name] == shard] for names in (out, into))
        update = _ShardChange(store, linearization, how, shard, leaving, joining, groups).update(new)
        if update is None:
            return None
        found[shard] = update
    return found


@dataclass(frozen=True, eq=False)
class _ShardChange:
    """The ids that are removed from one shard and added to it, and the groups they are in."""

    store: Reading
    linearization: BookLinearization
    how: Settings
    shard: int
    out: Sequence[str]
    into: Sequence[str]
    groups: Mapping[str, Group]

    def update(self, new: FootprintBlocks | None) -> ShardUpdate | None:
        """Return the update of the shard; None if it cannot be computed.

        Args:
            new: footprints of all quotes that are added.
        """
        store, linearization, members = self.store, self.linearization, self.store.members(self.shard)
        before = stored_state(store, linearization, self.shard)
        rows = stored_rows(store, linearization, self.shard)
        if before is None:
            others = [name for name in members if name not in {*store.struck(), *self.into}]
            if self.out or rows is not None or len(in_objective(store.named(others), self.how)):
                return None
            before = linearization.zero
            rows = ShardRows(np.zeros(len(members), bool), np.zeros((0, linearization.columns), np.int64))
        at = {name: place for place, name in enumerate(members)}
        if rows is None or not rows.has[[at[name] for name in self.out]].all():
            return self._rebuilt(members, before)
        fresh = [name for name in self.into if not rows.has[at[name]]]
        more = None
        if fresh:
            assert new is not None, "added quotes have footprints"
            for group, places in new.places(fresh).items():
                found = new.blocks[group]
                # Noise is drawn from the system's entropy, so that it cannot be drawn again.
                noise, draw = linearization.noise, np.random.default_rng()
                values = with_noise(found.rows[places], noise, draw) if noise else found.rows[places]
                where = np.array([at[name] for name in found.ids[places].tolist()], np.intp)
                rows = more = rows.with_rows(where, values)
        after = before - self._sum(rows, at, self.out) + self._sum(rows, at, self.into)
        return ShardUpdate(before, after, more)

    def _sum(self, rows: ShardRows, at: Mapping[str, int], names: Sequence[str]) -> System:
        """Return the sum of the rows of these members."""
        some = rows.at(np.array([at[name] for name in names], np.intp))
        return self.linearization.total(some, [self.groups[name] for name in names])

    def _rebuilt(self, members: Sequence[str], before: System) -> ShardUpdate | None:
        """Return the update of a shard rebuilt from its retained quotes; the removed ones need no footprint."""
        away = {*self.store.struck(), *self.out}
        stay = self.store.named([name for name in members if name not in away])
        # A state rebuilt without its noise would look like one that lost quotes, and derived forwards are placeholders
        # if the rest of the book is not read.
        if self.linearization.noise or is_derived(stay).any():
            return None
        state = self.linearization.footprints(in_objective(stay, self.how), self.how).system
        return ShardUpdate(before, replace(state, held=frozenset()))


def summed(linearization: BookLinearization, updates: Mapping[int, ShardUpdate]) -> System:
    """Return the state of the whole book once its shards are updated."""
    system = linearization.system
    for update in updates.values():
        system = system - update.before + update.after
    return replace(system, held=linearization.held)


@dataclass(frozen=True, eq=False)
class StateUpdate:
    """How footprints and states change with a book: all are replaced, or those of some quotes added and subtracted.

    It is made before the transaction and written in it, once the quotes are added or removed.
    """

    footprints: FootprintSet | MissingFootprints | None = None  # None for moments
    linearization: BookLinearization | None = None
    how: Settings = field(default_factory=Settings)
    removed: Quotes = NO_QUOTES
    added: Quotes = NO_QUOTES
    start: System | None = None  # of the retained quotes, at the model's first start

    def write(self, store: Writing) -> None:
        """Write it; if the updates cannot be computed, the book stores no footprints until it is calibrated again."""
        if self.linearization is None:
            replace_footprints(store, self.footprints)
            return
        try:
            updates = shard_updates(store.now, self.linearization, self.how, removed=self.removed, added=self.added)
        except RefusedError:  # an added quote is too large for the grid
            updates = None
        if updates is None:
            clear_footprints(store, why=MissingFootprints.LOST)
        else:
            self._write_updates(store, self.linearization, updates)

    def _write_updates(self, store: Writing, before: BookLinearization, updates: Mapping[int, ShardUpdate]) -> None:
        how = self.how
        removed, added = in_objective(self.removed, how), in_objective(self.added, how)
        for shard, update in updates.items():
            store.put_shard_data(shard, "states", encode_state(before.schema, update.after))
            if update.rows is not None:
                store.put_shard_data(shard, "footprints", encode_footprints(before.schema, update.rows))
        after = before.changed(summed(before, updates), self.start, how, removed=removed, added=added)
        store.put("state", StateKind.LINEARIZATION.value, after.to_bytes())


def state_update(
    after: Calibration,
    linearization: BookLinearization,
    *,
    entry: int,
    removed: Quotes = NO_QUOTES,
    added: Quotes = NO_QUOTES,
) -> StateUpdate:
    """Return how footprints and states change when quotes are added and removed, at the same reference.

    If forwards depend on these quotes, the form of the model changes, a panel becomes a plain calibration or the
    reverse, or other clusters are the usual ones, every footprint is computed again.
    """
    if after.moments is not None:
        return StateUpdate()
    is_same = after.panel == linearization.panel and after.model.name == linearization.model.name
    is_unit = is_same and step_unit(after, linearization.noise) == linearization.unit
    if is_unit and not is_derived(removed).any() and not is_derived(added).any():
        return StateUpdate(None, linearization.with_groups(after), after.settings, removed, added, start_of(after))
    at = linearization.with_groups(after) if is_same else None
    return StateUpdate(compute_footprints(after, entry=entry, at=at, noise=linearization.noise))
