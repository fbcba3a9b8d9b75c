"""Footprints and states of a book: computed when it is calibrated, stored per shard, updated as quotes change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

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
from strikeout.book.linearization import BookLinearization, reference_of
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.otm_filter import is_out_of_the_money
from strikeout.calibration.settings import Settings
from strikeout.errors import ParameterError, RefusedError
from strikeout.kernels import exact
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.second_order import second_order_of
from strikeout.store.chunks import quotes_of
from strikeout.store.store import SHARD_DATA, Reading, Writing

NO_QUOTES = quotes_of([])
WHY = "no footprints"  # the page with the reason why none are stored


class MissingFootprints(StrEnum):
    """Why a book stores no footprints; the values are stored in books and survive an erasure: none names a quote."""

    NOT_CALIBRATED = "not calibrated"
    MOMENTS = "moments"
    PANEL = "panel"
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
            MissingFootprints.PANEL: "it is a panel, for which the states of the groups are kept",
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
    """The footprint of every quote that counts, and their linearization."""

    linearization: BookLinearization
    footprints: Footprints


def compute_footprints(
    calibration: Calibration, *, entry: int, at: BookLinearization | None = None, noise: float = 0.0
) -> FootprintSet | MissingFootprints:
    """Return the footprints of a calibration's quotes, or the reason why there are none.

    Args:
        entry: of the ledger, in which a new reference is fitted.
        at: the linearization whose reference is used; None for a new reference.

    Raises:
        UsageError: the noise is not a share, or it is too large for the grid.
    """
    how = calibration.settings
    try:
        reference = reference_of(calibration) if at is None else at.reference
    except (RefusedError, ParameterError):
        return MissingFootprints.NO_REFERENCE
    asked = (calibration.quotes, calibration.model, reference)
    try:
        footprints = footprints_of(*asked, residual=how.residual, weights=how.weights)
        second_order = second_order_of(*asked, residual=how.residual, weights=how.weights)
    except ParameterError:
        return MissingFootprints.AT_BOUNDARY
    except RefusedError:
        return MissingFootprints.TOO_LARGE
    found, drift = entry if at is None else at.entry, 0.0
    if noise:
        perturbed = perturb(footprints, noise, draw=np.random.default_rng())
        footprints, drift = perturbed.footprints, perturbed.drift.value
    states = footprints.total(), start_of(calibration)
    sums = BookLinearization(calibration.model, found, *states, second_order, float(noise), float(drift))
    return FootprintSet(sums, footprints)


def start_of(calibration: Calibration) -> NormalEquations | None:
    """Return the state at the first start, which identifies a version; None if a quote is too large for it."""
    try:
        found: NormalEquations = calibration.state.reduced()
    except RefusedError:
        return None
    return found


def clear_footprints(store: Writing, *, why: MissingFootprints | None = None) -> None:
    """Remove the footprints and states of all shards, and store the reason."""
    for what in SHARD_DATA:
        store.remove_shard_data(what, store.shards_with(what))
    store.remove("state", StateKind.LINEARIZATION.value)
    if why is None:
        store.remove("state", WHY)
    else:
        store.put("state", WHY, why.value.encode())


def replace_footprints(store: Writing, new: FootprintSet | MissingFootprints | None) -> None:
    """Store these footprints and their states instead of all earlier ones; or none, and the reason."""
    if not isinstance(new, FootprintSet):
        clear_footprints(store, why=new)
        return
    clear_footprints(store)
    schema, footprints = new.linearization.schema, new.footprints
    places = dict(zip(footprints.ids.tolist(), range(len(footprints)), strict=True))
    # By name: quotes that were restored are last in a calibration, but not in their shard.
    for shard in store.shards():
        found = np.array([places.get(name, -1) for name in store.members(shard)], np.int64)
        has = found >= 0
        if has.any():
            pick = found[has]
            rows = ShardRows(has, footprints.rows[pick])
            store.put_shard_data(shard, "footprints", encode_footprints(schema, rows))
            store.put_shard_data(shard, "states", encode_state(footprints.total(pick)))
    store.put("state", StateKind.LINEARIZATION.value, new.linearization.to_bytes())


def in_objective(quotes: Quotes, how: Settings) -> Quotes:
    """Return the quotes that count in the objective; their forwards must not be placeholders."""
    return quotes if how.select == "all" or not len(quotes) else quotes[is_out_of_the_money(quotes.contracts)]


def stored_rows(store: Reading, linearization: BookLinearization, shard: int) -> ShardRows | None:
    """Return the stored footprints of a shard; None if there are none.

    Raises:
        RefusedError: they cannot be read.
    """
    data = store.shard_data(shard, "footprints")
    return None if data is None else decode_footprints(linearization.schema, data)


def stored_state(store: Reading, linearization: BookLinearization, shard: int) -> NormalEquations | None:
    """Return the stored state of a shard; None if there is none.

    Raises:
        RefusedError: it cannot be read.
    """
    data = store.shard_data(shard, "states")
    return None if data is None else decode_state(linearization.schema, data)


@dataclass(frozen=True, eq=False)
class SavedShard:
    """Footprints and state of a shard, saved while the store erases members that are not part of the state."""

    shard: int
    members: tuple[str, ...]
    rows: ShardRows | None
    state: bytes | None

    @staticmethod
    def of(store: Reading, linearization: BookLinearization, shard: int) -> SavedShard:
        """Return what is stored for a shard.

        Raises:
            RefusedError: it cannot be read.
        """
        state = store.shard_data(shard, "states")
        return SavedShard(shard, store.members(shard), stored_rows(store, linearization, shard), state)

    def write(self, store: Writing, linearization: BookLinearization) -> None:
        """Store it again, without the footprints of erased members."""
        if self.shard not in store.shards():
            return
        stay = set(store.members(self.shard))
        if self.state is not None:
            store.put_shard_data(self.shard, "states", self.state)
        if self.rows is not None:
            here = np.array([name in stay for name in self.members], bool)
            rows = ShardRows(self.rows.has[here], self.rows.at(np.flatnonzero(here & self.rows.has)))
            store.put_shard_data(self.shard, "footprints", encode_footprints(linearization.schema, rows))


@dataclass(frozen=True, eq=False)
class ShardUpdate:
    """The state of one shard before and after a change, and its footprints if they change."""

    before: NormalEquations
    after: NormalEquations
    rows: ShardRows | None = None
    is_rebuilt: bool = False  # a footprint was missing, and the state was rebuilt from the quotes of the shard


def shard_updates(
    store: Reading, linearization: BookLinearization, how: Settings, *, removed: Quotes, added: Quotes
) -> dict[int, ShardUpdate] | None:
    """Return the updates of the shards that these quotes are in, by number. No other shard is read.

    None if they cannot be computed: a shard that had quotes has no state, or a footprint is missing and the shard
    cannot be rebuilt from its own quotes, because of noise or because forwards depend on other quotes.

    Args:
        removed: quotes that no longer count, struck out already or not; without derived forwards.
        added: quotes that count from now on.

    Raises:
        RefusedError: a quote is too large for the grid, or stored data cannot be read.
    """
    removed, added = in_objective(removed, how), in_objective(added, how)
    new = linearization.footprints(added, how) if len(added) else None
    out, into = removed.ids.tolist(), added.ids.tolist()
    homes = store.shards_of([*out, *into])
    found: dict[int, ShardUpdate] = {}
    for shard in sorted(set(homes.values())):
        here = [[name for name in names if homes[name] == shard] for names in (out, into)]
        update = _ShardChange(store, linearization, how, shard, *here).update(new)
        if update is None:
            return None
        found[shard] = update
    return found


@dataclass(frozen=True, eq=False)
class _ShardChange:
    """The ids that are removed from one shard and added to it."""

    store: Reading
    linearization: BookLinearization
    how: Settings
    shard: int
    out: Sequence[str]
    into: Sequence[str]

    def update(self, new: Footprints | None) -> ShardUpdate | None:
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
            schema = linearization.schema
            before = NormalEquations.zero(schema)
            rows = ShardRows(np.zeros(len(members), bool), np.zeros((0, schema.columns), np.int64))
        at = {name: place for place, name in enumerate(members)}
        leaving, joining = ([at[name] for name in names] for names in (self.out, self.into))
        if rows is None or not rows.has[leaving].all():
            return self._rebuilt(members, before)
        fresh = [members[place] for place in joining if not rows.has[place]]
        more = None
        if fresh:
            assert new is not None, "added quotes have footprints"
            found = new.only(fresh)
            # Noise is drawn from the system's entropy, so that it cannot be drawn again.
            noise, draw = linearization.noise, np.random.default_rng()
            values = with_noise(found.rows, noise, draw) if noise else found.rows
            rows = more = rows.with_rows(np.array([at[name] for name in found.ids.tolist()], np.intp), values)
        after = before - self._sum(rows, leaving) + self._sum(rows, joining)
        return ShardUpdate(before, after, more)

    def _sum(self, rows: ShardRows, places: list[int]) -> NormalEquations:
        """Return the sum of the rows of these members."""
        schema, some = self.linearization.schema, rows.at(np.array(places, np.intp))
        counted = int(np.count_nonzero(np.logical_or.reduce(some != 0, axis=1)))
        return NormalEquations(schema, exact.change(exact.zero(schema.columns), np.ascontiguousarray(some)), counted)

    def _rebuilt(self, members: Sequence[str], before: NormalEquations) -> ShardUpdate | None:
        """Return the update of a shard rebuilt from its retained quotes; the removed ones need no footprint."""
        away = {*self.store.struck(), *self.out}
        stay = self.store.named([name for name in members if name not in away])
        # A state rebuilt without its noise would look like one that lost quotes, and derived forwards are placeholders
        # if the rest of the book is not read.
        if self.linearization.noise or is_derived(stay).any():
            return None
        state = self.linearization.footprints(in_objective(stay, self.how), self.how).total()
        return ShardUpdate(before, state, is_rebuilt=True)


@dataclass(frozen=True, eq=False)
class StateUpdate:
    """How footprints and states change with a book: all are replaced, or those of some quotes added and subtracted.

    It is made before the transaction and written in it, once the quotes are added or removed.
    """

    footprints: FootprintSet | MissingFootprints | None = None  # None for a panel, and for moments
    linearization: BookLinearization | None = None
    how: Settings = field(default_factory=Settings)
    removed: Quotes = NO_QUOTES
    added: Quotes = NO_QUOTES
    start: NormalEquations | None = None  # of the retained quotes, at the model's first start

    def write(self, store: Writing) -> None:
        """Write it; if the updates cannot be computed, the book stores no footprints until it is calibrated again.

        Raises:
            ParameterError: the reference is too close to the boundary of the model.
        """
        if self.linearization is None:
            replace_footprints(store, self.footprints)
            return
        try:
            updates = shard_updates(store, self.linearization, self.how, removed=self.removed, added=self.added)
        except RefusedError:  # an added quote is too large for the grid
            updates = None
        if updates is None:
            clear_footprints(store, why=MissingFootprints.LOST)
        else:
            self._write_updates(store, self.linearization, updates)

    def _write_updates(self, store: Writing, before: BookLinearization, updates: Mapping[int, ShardUpdate]) -> None:
        second_order, equations, how = before.second_order, before.equations, self.how
        removed, added = in_objective(self.removed, how), in_objective(self.added, how)
        if len(removed):
            second_order = second_order - before.second_order_of(removed, how)
        if len(added):
            second_order = second_order + before.second_order_of(added, how)
        for shard, update in updates.items():
            equations = equations + (update.after - update.before)
            store.put_shard_data(shard, "states", encode_state(update.after))
            if update.rows is not None:
                store.put_shard_data(shard, "footprints", encode_footprints(before.schema, update.rows))
        after = replace(before, equations=equations, start=self.start, second_order=second_order)
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

    If forwards depend on these quotes, or the form of the model changes, every footprint is computed again.
    """
    if after.is_panel or after.moments is not None:
        return StateUpdate()
    is_same_model = after.model.name == linearization.schema.model
    if is_same_model and not is_derived(removed).any() and not is_derived(added).any():
        return StateUpdate(None, linearization, after.settings, removed, added, start_of(after))
    at = linearization if is_same_model else None
    return StateUpdate(compute_footprints(after, entry=entry, at=at, noise=linearization.noise))
