"""Footprints and states of a book, in step with its quotes: taken when it is calibrated, then added and subtracted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.perturbation import perturb, with_noise
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.choosing import is_out_of_the_money
from strikeout.calibration.panel_calibration import AnyCalibration
from strikeout.calibration.settings import Settings
from strikeout.desk.leavings import ShardRows, rows_from_bytes, rows_to_bytes, state_from_bytes, state_to_bytes
from strikeout.desk.standing import PAGE, Standing, reference_of
from strikeout.errors import ParameterError, RefusedError
from strikeout.kernels import exact
from strikeout.kernels.exact import Integers
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.bending import bending_of
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.store.chunks import quotes_of
from strikeout.store.store import LEAVINGS, Reading, Writing

NOBODY = quotes_of([])


@dataclass(frozen=True, eq=False)
class Taken:
    """What is to be kept of a calibration: how the book stands, and the footprint of every quote that counts."""

    standing: Standing
    footprints: Footprints


def taken(calibration: Calibration, *, entry: int, at: Standing | None = None, noise: float = 0.0) -> Taken | None:
    """The footprints of a calibration's quotes, at a reference of its own or where the book takes them already.

    None where a quote is too large to have one, or there is no reference; the book then keeps none.

    Raises:
        UsageError: the noise is no share, or so large that a row leaves the grid.
    """
    how = calibration.settings
    try:
        reference = reference_of(calibration) if at is None else at.reference
        asked = (calibration.quotes, calibration.model, reference)
        footprints = footprints_of(*asked, residual=how.residual, weights=how.weights)
        bending = bending_of(*asked, residual=how.residual, weights=how.weights)
    except (RefusedError, ParameterError):
        return None
    found, drift = entry if at is None else at.entry, 0.0
    if noise:
        noisy = perturb(footprints, noise, draw=np.random.default_rng())
        footprints, drift = noisy.footprints, noisy.drift.value
    states = footprints.total(), start_of(calibration)
    return Taken(Standing(calibration.model, found, *states, bending, float(noise), float(drift)), footprints)


def start_of(calibration: Calibration) -> NormalEquations | None:
    """The state a version is named by; None where a quote is too large for one."""
    try:
        found: NormalEquations = calibration.state
    except RefusedError:
        return None
    return found


def clear(store: Writing) -> None:
    """Takes all that is kept of shards and of the whole away."""
    for what in LEAVINGS:
        store.unleave(what, store.shards_with(what))
    store.remove("state", PAGE)


def keep(store: Writing, taken: Taken | None) -> None:
    """Keeps this in the place of all that was kept; nothing where there is nothing to keep."""
    clear(store)
    if taken is None:
        return
    schema, footprints = taken.standing.schema, taken.footprints
    places, row = {}, 0
    is_whole = len(footprints) == sum(store.shards().values())  # then the rows are in the order of the shards
    if not is_whole:
        places = dict(zip(footprints.ids.tolist(), range(len(footprints)), strict=True))
    for shard, count in store.shards().items():
        has = np.ones(count, bool)
        pick = np.arange(row, row + count)
        if not is_whole:
            found = [places.get(name, -1) for name in store.members(shard)]
            has = np.array(found) >= 0
            pick = np.array(found, np.int64)[has]
        row += count
        if has.any():
            store.leave(shard, "footprints", rows_to_bytes(schema, ShardRows.of(has, footprints.rows[pick])))
            store.leave(shard, "states", state_to_bytes(footprints.total(pick.astype(np.int64))))
    store.put("state", PAGE, taken.standing.to_bytes())


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

    None where what is kept cannot tell: there is no state of a shard that had quotes.

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
    bending, whole = standing.bending, standing.equations
    gone, come = counting(gone, how), counting(come, how)
    if len(gone):
        bending = bending - standing.bent(gone, how)
    if len(come):
        bending = bending + standing.bent(come, how)
    for shard, one in changes.items():
        whole = whole + (one.after - one.before)
        store.leave(shard, "states", state_to_bytes(one.after))
        if one.rows is not None:
            store.leave(shard, "footprints", rows_to_bytes(standing.schema, one.rows))
    store.put("state", PAGE, replace(standing, equations=whole, start=start, bending=bending).to_bytes())


@dataclass(frozen=True, eq=False)
class Following:
    """What becomes of footprints and states with a change of the book: all of them anew, or some added and subtracted.

    Made before the transaction that the change is kept in, and kept in it, once the quotes have come and gone.
    """

    taken: Taken | None = None
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
            clear(store)
        else:
            move(store, self.standing, self.how, changes, **sides, start=self.start)


def following(
    after: AnyCalibration, standing: Standing | None, *, entry: int, gone: Quotes = NOBODY, come: Quotes = NOBODY
) -> Following:
    """What follows for a book when quotes come and go, at the reference it has; nothing where it keeps no footprints.

    Where forwards rest on quotes that come or go, or the model takes another form, every footprint is taken anew.
    """
    if standing is None or not isinstance(after, Calibration) or after.moments is not None:
        return Following()
    if after.model.name == standing.schema.model and not is_derived(gone).any() and not is_derived(come).any():
        return Following(None, standing, after.settings, gone, come, start_of(after))
    same = after.model.name == standing.schema.model
    return Following(taken(after, entry=entry, at=standing if same else None, noise=standing.noise))


def rebuild(store: Writing, standing: Standing, how: Settings, shards: Iterable[int]) -> None:
    """Footprints and states of these shards from the quotes they retain, at the reference the book has; none of whose
    forwards rests on others.

    Raises:
        RefusedError: a quote is too large for the grid.
    """
    struck, there = store.struck(), store.shards()
    for shard in shards:
        members = store.members(shard) if shard in there else ()
        stay = counting(store.named([name for name in members if name not in struck]), how)
        if len(stay):
            footprints, names = standing.footprints(stay, how), set(stay.ids.tolist())
            has = np.array([name in names for name in members], bool)
            store.leave(shard, "footprints", rows_to_bytes(standing.schema, ShardRows.of(has, footprints.rows)))
            store.leave(shard, "states", state_to_bytes(footprints.total()))


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
        # Built again, a state has no noise in it, and could not be told from one that lost some.
        return None if standing.noise else _healed(store, standing, how, members, before, out)
    fresh = joining[~rows.has[joining]]
    more = None
    if len(fresh):
        assert news is not None, "quotes that join have footprints"
        new = news.only([members[place] for place in fresh.tolist()])
        order = _places(at, new.ids.tolist())
        noisy = with_noise(new.rows, standing.noise, np.random.default_rng()) if standing.noise else new.rows
        rows = more = rows.with_rows(order, noisy)
    after = before - _sum(standing, rows.at(leaving)) + _sum(standing, rows.at(joining))
    return Touched(before, after, more)


def _healed(
    store: Reading,
    standing: Standing,
    how: Settings,
    members: Sequence[str],
    before: NormalEquations,
    out: Sequence[str],
) -> Touched:
    """The shard built again from the quotes of it that stay: none of those that go needs a footprint."""
    away = {*store.struck(), *out}
    stay = counting(store.named([name for name in members if name not in away]), how)
    return Touched(before, standing.footprints(stay, how).total(), is_healed=True)


def _places(at: Mapping[str, int], names: Sequence[str]) -> NDArray[np.intp]:
    return np.array([at[name] for name in names], np.intp)


def _no_rows(standing: Standing) -> Integers:
    return np.zeros((0, standing.schema.columns), np.int64)


def _sum(standing: Standing, rows: Integers) -> NormalEquations:
    schema = standing.schema
    counted = int(np.count_nonzero(np.logical_or.reduce(rows != 0, axis=1)))
    return NormalEquations(schema, exact.change(exact.zero(schema.columns), np.ascontiguousarray(rows)), counted)
