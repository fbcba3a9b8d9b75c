"""Footprints and states of a book: taken when it is calibrated, and kept shard by shard."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from strikeout.assurance.perturbation import perturb, with_noise
from strikeout.book.linearization import PAGE, Standing, reference_of
from strikeout.book.state_codec import ShardRows, rows_from_bytes, rows_to_bytes, state_from_bytes, state_to_bytes
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.otm_filter import is_out_of_the_money
from strikeout.calibration.settings import Settings
from strikeout.errors import ParameterError, RefusedError
from strikeout.kernels import exact
from strikeout.kernels.exact import Integers
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.second_order import second_order_of
from strikeout.store.chunks import quotes_of
from strikeout.store.store import LEAVINGS, Reading, Writing

NOBODY = quotes_of([])
WHY = "no footprints"  # the page that says why there are none


class MissingFootprints(StrEnum):
    """Why a book keeps no footprints; the values are kept in books, and an erasure keeps them: none names a quote."""

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
class Taken:
    """What is to be kept of a calibration: how the book stands, and the footprint of every quote that counts."""

    standing: Standing
    footprints: Footprints


def taken(
    calibration: Calibration, *, entry: int, at: Standing | None = None, noise: float = 0.0
) -> Taken | MissingFootprints:
    """Return the footprints of a calibration's quotes, at its own reference or at the one of the book; or why there are
    none.

    Raises:
        UsageError: the noise is no share, or so large that a row leaves the grid.
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
    return Taken(Standing(calibration.model, found, *states, second_order, float(noise), float(drift)), footprints)


def start_of(calibration: Calibration) -> NormalEquations | None:
    """The state a version is named by; None where a quote is too large for one."""
    try:
        found: NormalEquations = calibration.state.reduced()
    except RefusedError:
        return None
    return found


def clear(store: Writing, *, why: MissingFootprints | None = None) -> None:
    """Remove the footprints and states of all shards, and keep the reason."""
    for what in LEAVINGS:
        store.unleave(what, store.shards_with(what))
    store.remove("state", PAGE)
    if why is None:
        store.remove("state", WHY)
    else:
        store.put("state", WHY, why.value.encode())


def keep(store: Writing, taken: Taken | MissingFootprints | None) -> None:
    """Keeps this in the place of all that was kept; nothing, and why, where there is nothing to keep."""
    if not isinstance(taken, Taken):
        clear(store, why=taken)
        return
    clear(store)
    schema, footprints = taken.standing.schema, taken.footprints
    places = dict(zip(footprints.ids.tolist(), range(len(footprints)), strict=True))
    for shard in store.shards():  # by name: quotes that were restored come last in a calibration, not in their shard
        found = np.array([places.get(name, -1) for name in store.members(shard)], np.int64)
        has = found >= 0
        if has.any():
            pick = found[has]
            store.leave(shard, "footprints", rows_to_bytes(schema, ShardRows.of(has, footprints.rows[pick])))
            store.leave(shard, "states", state_to_bytes(footprints.total(pick)))
    store.put("state", PAGE, taken.standing.to_bytes())


@dataclass(frozen=True, eq=False)
class Carried:
    """What is kept of a shard while the store takes some of its quotes away, none of which is in the state."""

    shard: int
    members: tuple[str, ...]
    rows: ShardRows | None
    state: bytes | None

    @staticmethod
    def of(store: Reading, standing: Standing, shard: int) -> Carried:
        """All that is kept of a shard.

        Raises:
            RefusedError: it cannot be read.
        """
        state = store.left(shard, "states")
        return Carried(shard, store.members(shard), rows_of(store, standing, shard), state)

    def put_back(self, store: Writing, standing: Standing) -> None:
        """Keeps it again, without the footprints of members that are gone."""
        if self.shard not in store.shards():
            return
        stay = set(store.members(self.shard))
        if self.state is not None:
            store.leave(self.shard, "states", self.state)
        if self.rows is not None:
            here = np.array([name in stay for name in self.members], bool)
            rows = self.rows.at(np.flatnonzero(here & self.rows.has))
            data = rows_to_bytes(standing.schema, ShardRows.of(self.rows.has[here], rows))
            store.leave(self.shard, "footprints", data)


def counting(quotes: Quotes, how: Settings) -> Quotes:
    """Those of quotes with forwards of their own that count in the objective."""
    return quotes if how.select == "all" or not len(quotes) else quotes[is_out_of_the_money(quotes.contracts)]


def rows_of(store: Reading, standing: Standing, shard: int) -> ShardRows | None:
    """The footprints that are kept of a shard; None where none are.

    Raises:
        RefusedError: they cannot be read.
    """
    data = store.left(shard, "footprints")
    return None if data is None else rows_from_bytes(standing.schema, data)


def state_of_shard(store: Reading, standing: Standing, shard: int) -> NormalEquations | None:
    """The state that is kept of a shard; None where none is.

    Raises:
        RefusedError: it cannot be read.
    """
    data = store.left(shard, "states")
    return None if data is None else state_from_bytes(standing.schema, data)


def noisy(rows: Integers, noise: float) -> Integers:
    """Rows with the noise of the book's footprints on them, drawn where nobody can draw it again.

    Raises:
        UsageError: a row leaves the grid with it.
    """
    return with_noise(rows, noise, np.random.default_rng()) if noise else rows


def summed(standing: Standing, rows: Integers) -> NormalEquations:
    """What these rows come to at the reference of the book."""
    schema = standing.schema
    counted = int(np.count_nonzero(np.logical_or.reduce(rows != 0, axis=1)))
    return NormalEquations(schema, exact.change(exact.zero(schema.columns), np.ascontiguousarray(rows)), counted)
