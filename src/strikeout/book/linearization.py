"""The states of all quotes of a book together: the sum of its footprints at their reference, by group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.state_codec import (
    StateKind,
    counts_of,
    decode,
    described_schema,
    encode,
    refuse_damage,
    remade_blocks,
    remade_schema,
    shaped,
    words_of,
)
from strikeout.calibration.calibrate import fit
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import grouped
from strikeout.calibration.settings import Settings
from strikeout.calibration.standard_errors import Reason, Unit
from strikeout.calibration.step_errors import States, StepUnit, cluster_states, exchanged
from strikeout.errors import ParameterError, StrikeoutError
from strikeout.kernels import exact
from strikeout.kernels.arrays import Integers, Rows
from strikeout.models.model import Model, Theta
from strikeout.models.named import described, remade
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.losses import SQUARED
from strikeout.statistics.normal_equations import NormalEquations, Schema, schema_of
from strikeout.statistics.schur import shared_schema
from strikeout.statistics.second_order import SecondOrder, second_order_of
from strikeout.statistics.system import WHOLE, FootprintBlocks, Group, System

SAMPLED = 1 << 14  # quotes; of more, the reference is fitted to this many, spread evenly. Any point is a valid one


@dataclass(frozen=True, eq=False)
class BookLinearization:
    """The footprints of a book that is calibrated from its quotes, summed by group; a plain book has one group.

    ``system`` is the sum of the footprints of the retained quotes at the references of ``schemas``, ``start`` the state
    of the same quotes at the model's first start, which identifies a version; None if a quote is too large for it.
    ``second_order`` is what one step leaves out; a group at the boundary of the model has none. The references were
    fitted in ``entry``, those of later groups when the groups were added. They stay until the book is calibrated again
    or a quote they were fitted to is erased: a group whose quotes are all set aside is still in ``schemas``, so that
    its quotes can be restored. ``held`` are groups whose latent parameter does not move. ``clusters`` are the
    states of which standard errors after a step consist. ``noise`` is the share by which footprints are perturbed,
    ``drift`` a bound on how far that can move the parameters.
    """

    model: Model
    entry: int
    schemas: Mapping[Group, Schema]
    system: System
    start: System | None
    second_order: Mapping[Group, SecondOrder]
    unit: StepUnit
    clusters: States  # by the label of the unit; none in a panel, whose groups are its clusters, or with noise
    panel: str | None = None  # the label of the groups; None for a plain book
    held: frozenset[Group] = frozenset()
    noise: float = 0.0
    drift: float = 0.0

    @property
    def latent(self) -> str | None:
        """The parameter that every group has for itself; None for a plain book."""
        return self.system.latent

    @property
    def schema(self) -> Schema:
        """The schema of the shared parameters."""
        first = next(iter(self.schemas.values()))
        return first if self.latent is None else shared_schema(first, self.latent)

    @property
    def columns(self) -> int:
        """The number of columns of a footprint."""
        return next(iter(self.schemas.values())).columns

    @property
    def references(self) -> dict[Group, dict[str, float]]:
        """The parameters at which footprints are taken, by group."""
        return {group: dict(zip(one.parameters, one.reference, strict=True)) for group, one in self.schemas.items()}

    @property
    def zero(self) -> System:
        """The state of no quotes."""
        return System.of(NormalEquations.zero(self.schema)) if self.latent is None else System({}, self.latent)

    def groups_of(self, quotes: Quotes) -> dict[Group, Rows]:
        """Return row numbers by group; groups are text."""
        if self.panel is None:
            return {WHOLE: np.arange(len(quotes))}
        return {str(group): rows for group, rows in grouped(quotes, self.panel).items()} if len(quotes) else {}

    def footprints(self, quotes: Quotes, how: Settings) -> FootprintBlocks:
        """Return the footprints of quotes at the references, without noise."""
        return self._footprints(quotes, how, {group: schema.reference for group, schema in self.schemas.items()})

    def state_at_start(self, quotes: Quotes, how: Settings) -> System:
        """Return the state of quotes at the model's first start."""
        at = self.model.parameters.starts[0]
        footprints = self._footprints(quotes, how, dict.fromkeys(self.groups_of(quotes), at))
        return replace(footprints, held=frozenset()).system

    def _footprints(self, quotes: Quotes, how: Settings, at: Mapping[Group, Theta]) -> FootprintBlocks:
        blocks = {
            group: footprints_of(quotes[rows], self.model, at[group], residual=how.residual, weights=how.weights)
            for group, rows in self.groups_of(quotes).items()
        }
        return FootprintBlocks(blocks, self.latent, self.held)

    def second_order_of(self, quotes: Quotes, how: Settings) -> dict[Group, SecondOrder]:
        """Return the second derivatives of residuals and prices of quotes at the references, by group."""
        return {
            group: second_order_of(
                quotes[rows], self.model, self.schemas[group].reference, residual=how.residual, weights=how.weights
            )
            for group, rows in self.groups_of(quotes).items()
            if self.panel is None or group in self.second_order
        }

    def clusters_of(self, quotes: Quotes, how: Settings, taken: FootprintBlocks | None = None) -> States:
        """Return the states of the clusters that these quotes are in, as ``clusters`` has them.

        Args:
            taken: the footprints of these quotes, if they are computed already.
        """
        if self.panel is not None or self.unit.label is None or not len(quotes):
            return {}
        rows = self.footprints(quotes, how) if taken is None else taken
        return cluster_states(quotes, rows.blocks[WHOLE], self.unit.label)

    def total(self, rows: Integers, groups: Sequence[Group]) -> System:
        """Return the sum of footprints, given the group of each."""
        blocks: dict[Group, NormalEquations] = {}
        here = set(groups)
        for group in here:
            own = rows if len(here) == 1 else rows[np.array([name == group for name in groups], bool)]
            schema, counted = self.schemas[group], int(np.count_nonzero(np.logical_or.reduce(own != 0, axis=1)))
            blocks[group] = NormalEquations(schema, exact.change(exact.zero(schema.columns), own), counted)
        return System(blocks, self.latent) if blocks else self.zero

    def with_groups(self, after: Calibration) -> BookLinearization:
        """Return it with references for groups that a calibration adds: their latent parameters there."""
        held = {str(group) for group in after.latent_on_bound}
        return self.with_latent(after.latent, after.settings, held=held)

    def with_latent(
        self, latent: Mapping[Group, float], how: Settings, *, held: Collection[str] = ()
    ) -> BookLinearization:
        """Return it with references for the groups of a path that it does not have yet."""
        shared = dict(zip(self.schema.parameters, self.schema.reference, strict=True))
        new: dict[Group, dict[str, float]] = {
            str(group): {name: shared.get(name, value) for name in self.model.parameters.names}
            for group, value in latent.items()
            if str(group) not in self.schemas
        }
        if not new:
            return self
        residual, weights, size = how.residual, self.schema.weights, len(self.model.parameters)
        added = {g: schema_of(self.model, at, residual=residual, weights=weights) for g, at in new.items()}
        none = SecondOrder(np.zeros((size, size)), np.zeros((size, size, size)))
        return replace(
            self,
            schemas={**self.schemas, **added},
            second_order={**self.second_order, **dict.fromkeys(new, none)},
            held=self.held | ({*held} & new.keys()),
        )

    def exchange(self, removed: Quotes, added: Quotes, how: Settings) -> BookLinearization:
        """Return it without some quotes and with others, whose footprints are computed here and bear no noise."""
        system, start = self.system, self.start
        if len(removed):
            system = system - self.footprints(removed, how).system
            start = None if start is None else start - self.state_at_start(removed, how)
        if len(added):
            system = system + self.footprints(added, how).system
            start = None if start is None else start + self.state_at_start(added, how)
        return self.changed(system, start, how, removed=removed, added=added)

    def changed(
        self, system: System, start: System | None, how: Settings, *, removed: Quotes, added: Quotes
    ) -> BookLinearization:
        """Return it with other states, once quotes are removed and added."""
        lost, more = (self.clusters_of(some, how) for some in (removed, added))
        sums = dict(self.second_order)
        for quotes, sign in ((removed, -1), (added, 1)):
            for group, rows in self.groups_of(quotes).items() if len(quotes) else ():
                if group not in sums:
                    continue
                try:
                    own = self.second_order_of(quotes[rows], how)[group]
                except ParameterError:  # a group that was added with its parameter at the boundary of the model
                    del sums[group]
                else:
                    sums[group] = sums[group] + own if sign > 0 else sums[group] - own
        clusters = exchanged(self.clusters, lost, more)
        return replace(self, system=replace(system, held=self.held), start=start, second_order=sums, clusters=clusters)

    def to_bytes(self) -> bytes:
        """Return it as bytes; equal values give equal bytes."""
        clusters = {name: self.clusters[name] for name in sorted(self.clusters, key=str)}
        facts: dict[str, Any] = {
            "model": described(self.model),
            "entry": self.entry,
            "panel": self.panel,
            "latent": self.latent,
            "held": sorted(map(str, self.held)),
            "noise": self.noise.hex(),
            "drift": self.drift.hex(),
            "schemas": [[str(group), described_schema(schema)] for group, schema in self.schemas.items()],
            "system": counts_of(self.system.blocks),
            "start": None if self.start is None else self._described_start(self.start),
            "second_order": [str(group) for group in self.second_order],
            "unit": [None if self.unit.unit is None else self.unit.unit.value, self.unit.label, self.unit.reason.value],
            "clusters": counts_of(clusters),
        }
        size, sums = len(self.model.parameters), list(self.second_order.values())
        arrays: dict[str, NDArray[Any]] = {"system": words_of(self.system.blocks), "clusters": words_of(clusters)}
        arrays |= {} if self.start is None else {"start": words_of(self.start.blocks)}
        arrays |= {
            "residual": np.array([one.residual for one in sums]).reshape(len(sums), size, size),
            "sensitivity": np.array([one.sensitivity for one in sums]).reshape(len(sums), size, size, size),
        }
        return encode(StateKind.LINEARIZATION, facts, arrays)

    @staticmethod
    def _described_start(start: System) -> dict[str, Any]:
        schemas = [described_schema(block.schema) for block in start.blocks.values()]  # of all groups the same
        return {"schema": schemas[0] if schemas else None, **counts_of(start.blocks)}

    @staticmethod
    def from_bytes(data: bytes) -> BookLinearization:
        """Return what ``to_bytes`` wrote."""
        facts, arrays = decode(StateKind.LINEARIZATION, data)
        with refuse_damage(data):
            model, latent = remade(facts["model"]), facts["latent"]
            schemas: dict[Group, Schema] = {group: remade_schema(plain) for group, plain in facts["schemas"]}
            system = System(remade_blocks(facts["system"], arrays["system"], schemas), latent)
            start, plain = None, facts["start"]
            if plain is not None:
                at = (
                    {}
                    if plain["schema"] is None
                    else dict.fromkeys((group for group, _ in plain["groups"]), remade_schema(plain["schema"]))
                )
                start = System(remade_blocks(plain, arrays["start"], at), latent)
            size, groups = len(next(iter(schemas.values())).parameters), facts["second_order"]
            residual = shaped(arrays["residual"], len(groups), size, size)
            sensitivity = shaped(arrays["sensitivity"], len(groups), size, size, size)
            held, (unit, label, reason) = frozenset(facts["held"]), facts["unit"]
            named = dict.fromkeys((name for name, _ in facts["clusters"]["groups"]), next(iter(schemas.values())))
            return BookLinearization(
                model,
                facts["entry"],
                schemas,
                replace(system, held=held),
                start,
                {group: SecondOrder(*sums) for group, *sums in zip(groups, residual, sensitivity, strict=True)},
                StepUnit(None if unit is None else Unit(unit), label, Reason(reason)),
                remade_blocks(facts["clusters"], arrays["clusters"], named),
                facts["panel"],
                held,
                float.fromhex(facts["noise"]),
                float.fromhex(facts["drift"]),
            )


def by_text(system: System) -> System:
    """Return a system whose groups are text, as a book reads them back; its digest is the same."""
    if system.latent is None:
        return system
    blocks: dict[Group, NormalEquations] = {str(group): block for group, block in system.blocks.items()}
    return System(blocks, system.latent, frozenset(map(str, system.held)))


def references_of(calibration: Calibration) -> dict[Group, dict[str, float]]:
    """Return the references for the footprints of a book by group; of a large plain book those of a part of it."""
    quotes = calibration.quotes
    if calibration.is_panel or len(quotes) <= SAMPLED or calibration.loss != SQUARED:
        return {str(group): dict(reference) for group, reference in calibration.references.items()}
    part = quotes[np.linspace(0, len(quotes) - 1, SAMPLED).astype(np.intp)]
    try:
        found = fit(part, calibration.model, **calibration.settings.keywords())
    except StrikeoutError:  # a part may not determine what the whole determines
        return {WHOLE: dict(calibration.parameters)}
    return {WHOLE: found.references[WHOLE]}
