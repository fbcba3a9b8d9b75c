"""States of all quotes of a book together: the sum of its footprints at their reference, or one state per group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.state_codec import (
    StateKind,
    decode,
    described_state,
    encode,
    refuse_damage,
    remade_state,
    shaped,
)
from strikeout.calibration.calibrate import fit
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.otm_filter import chosen
from strikeout.calibration.panels import AUTO, LABEL, grouped
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError, StrikeoutError
from strikeout.models.model import Model
from strikeout.models.named import described, remade
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.schema import Schema
from strikeout.statistics.second_order import SecondOrder, second_order_of
from strikeout.statistics.system import WHOLE, System

SAMPLED = 1 << 14  # quotes; of more, the reference is fitted to this many, spread evenly. Any point is a valid one


@dataclass(frozen=True, eq=False)
class BookLinearization:
    """The footprints of a plain book that is calibrated from its quotes, summed.

    ``equations`` is the sum of the footprints of the retained quotes at the reference of its schema, ``start`` the
    state of the same quotes at the model's first start, which identifies a version; None if a quote is too large for
    it. ``second_order`` is what one step leaves out. The reference was fitted in ``entry``, and stays until the book is
    calibrated again or a quote it was fitted to is erased. ``noise`` is the share by which footprints are perturbed,
    ``drift`` a bound on how far that can move the parameters.
    """

    model: Model
    entry: int
    equations: NormalEquations
    start: NormalEquations | None
    second_order: SecondOrder
    noise: float = 0.0
    drift: float = 0.0

    @property
    def schema(self) -> Schema:
        return self.equations.schema

    @property
    def reference(self) -> dict[str, float]:
        return dict(zip(self.schema.parameters, self.schema.reference, strict=True))

    def footprints(self, quotes: Quotes, how: Settings) -> Footprints:
        """Return the footprints of quotes at the reference, without noise.

        Raises:
            RefusedError: a quote is too large for the grid.
        """
        return footprints_of(quotes, self.model, self.schema.reference, residual=how.residual, weights=how.weights)

    def state_at_start(self, quotes: Quotes, how: Settings) -> NormalEquations:
        """Return the state of quotes at the model's first start.

        Raises:
            RefusedError: a quote is too large for the grid.
        """
        at = self.model.parameters.starts[0]
        return footprints_of(quotes, self.model, at, residual=how.residual, weights=how.weights).total()

    def second_order_of(self, quotes: Quotes, how: Settings) -> SecondOrder:
        """Return the second derivatives of residuals and prices of quotes at the reference.

        Raises:
            ParameterError: the reference is too close to the boundary of the model.
        """
        return second_order_of(quotes, self.model, self.reference, residual=how.residual, weights=how.weights)

    def to_bytes(self) -> bytes:
        """Return it as bytes; equal values give equal bytes."""
        states = {"equations": self.equations} | ({} if self.start is None else {"start": self.start})
        facts = {
            "model": described(self.model),
            "entry": self.entry,
            "noise": self.noise.hex(),
            "drift": self.drift.hex(),
            "states": {name: described_state(state) for name, state in states.items()},
        }
        arrays: dict[str, NDArray[Any]] = {name: state.words for name, state in states.items()}
        arrays |= {"residual": self.second_order.residual, "sensitivity": self.second_order.sensitivity}
        return encode(StateKind.LINEARIZATION, facts, arrays)

    @staticmethod
    def from_bytes(data: bytes) -> BookLinearization:
        """Return what ``to_bytes`` wrote.

        Raises:
            RefusedError: the bytes cannot be read, or this version lacks the model.
        """
        facts, arrays = decode(StateKind.LINEARIZATION, data)
        with refuse_damage(data):
            states = {name: remade_state(plain, arrays[name]) for name, plain in facts["states"].items()}
            size = len(states["equations"].schema.parameters)
            residual = shaped(arrays["residual"], size, size)
            sensitivity = shaped(arrays["sensitivity"], size, size, size)
            return BookLinearization(
                remade(facts["model"]),
                facts["entry"],
                states["equations"],
                states.get("start"),
                SecondOrder(residual, sensitivity),
                float.fromhex(facts["noise"]),
                float.fromhex(facts["drift"]),
            )


@dataclass(frozen=True, eq=False)
class GroupStates:
    """The state of every group of a panel at the model's first start, by the text of the group."""

    model: Model
    latent: str
    states: dict[str, NormalEquations]

    @staticmethod
    def of(calibration: Calibration) -> GroupStates | None:
        """Return the states of a panel; None for a plain calibration, or if a quote is too large for a state."""
        if calibration.panel is None:
            return None
        try:
            parts = calibration.state.blocks
        except RefusedError:
            return None
        return GroupStates(
            calibration.model, str(calibration.latent_name), {str(group): part for group, part in parts.items()}
        )

    def recomputed(self, held: Quotes, how: Settings) -> System:
        """Return the states of the quotes a book holds, at the same start.

        Raises:
            RefusedError: a quote is too large for the grid.
        """
        used, at = chosen(held, how.select), self.model.parameters.starts[0]
        label = LABEL if how.panel == AUTO else how.panel
        assert label is not None, "a panel has a label"
        parts = {
            group: footprints_of(used[rows], self.model, at, residual=how.residual, weights=how.weights).total()
            for group, rows in grouped(used, label).items()
        }
        return System(parts, self.latent)

    def to_bytes(self) -> bytes:
        """Return it as bytes; equal values give equal bytes."""
        groups = [[group, described_state(state)] for group, state in self.states.items()]
        facts = {"model": described(self.model), "latent": self.latent, "groups": groups}
        return encode(StateKind.GROUPS, facts, {str(i): state.words for i, state in enumerate(self.states.values())})

    @staticmethod
    def from_bytes(data: bytes) -> GroupStates:
        """Return what ``to_bytes`` wrote.

        Raises:
            RefusedError: the bytes cannot be read, or this version lacks the model.
        """
        facts, arrays = decode(StateKind.GROUPS, data)
        with refuse_damage(data):
            states = {group: remade_state(plain, arrays[str(i)]) for i, (group, plain) in enumerate(facts["groups"])}
            return GroupStates(remade(facts["model"]), facts["latent"], states)

    def words(self) -> NDArray[Any]:
        """Return the words of all states, one after the other."""
        return np.concatenate([np.empty(0, np.uint64), *(state.words.ravel() for state in self.states.values())])


def reference_of(calibration: Calibration) -> dict[str, float]:
    """Return the reference for the footprints of a book: that of the calibration, or of a part of a large book.

    Raises:
        RefusedError: the search ended at a point that is not a valid reference.
    """
    quotes = calibration.quotes
    if len(quotes) <= SAMPLED or calibration.loss == "huber":
        return calibration.references[WHOLE]
    part = quotes[np.linspace(0, len(quotes) - 1, SAMPLED).astype(np.intp)]
    try:
        found = fit(part, calibration.model, **calibration.settings.keywords())
    except StrikeoutError:  # a part may not determine what the whole determines
        return dict(calibration.parameters)
    return found.references[WHOLE]
