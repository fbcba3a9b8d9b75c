"""Where a book takes its footprints, and what all of them come to: one page beside what is kept of every shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
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
from strikeout.statistics.system import WHOLE

FORMAT = "strikeout standing 1"
PAGE = "standing"  # its name on the shelf of states
SAMPLED = 1 << 14  # quotes: of more, the reference is found from so many, spread evenly. Any point is a valid one


@dataclass(frozen=True, eq=False)
class Standing:
    """What a book that is calibrated through its quotes knows of all of them together.

    ``equations`` is the sum of every live footprint at the reference of its schema, ``start`` the state of the same
    quotes at the model's first start, by which a version is named; None if a quote is too large for it.
    ``second_order`` is what one step leaves out. The reference was found with ``entry``, and stays until the book is
    calibrated again or a quote it was found with is erased. ``noise`` is the share by which footprints are perturbed,
    ``drift`` how far that can move the parameters.
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
        """The footprints of quotes at the reference, without noise.

        Raises:
            RefusedError: a quote is too large for the grid.
        """
        return footprints_of(quotes, self.model, self.schema.reference, residual=how.residual, weights=how.weights)

    def started(self, quotes: Quotes, how: Settings) -> NormalEquations:
        """The state of quotes at the model's first start.

        Raises:
            RefusedError: a quote is too large for the grid.
        """
        at = self.model.parameters.starts[0]
        return footprints_of(quotes, self.model, at, residual=how.residual, weights=how.weights).total()

    def bent(self, quotes: Quotes, how: Settings) -> SecondOrder:
        """How residuals and prices of quotes bend around the reference.

        Raises:
            ParameterError: the reference is too close to where the model ends.
        """
        return second_order_of(quotes, self.model, self.reference, residual=how.residual, weights=how.weights)

    def to_bytes(self) -> bytes:
        """A line that says what follows, then the words of both states and the sums that bend, little-endian."""
        head = {
            "format": FORMAT,
            "model": described(self.model),
            "entry": self.entry,
            "noise": self.noise.hex(),
            "drift": self.drift.hex(),
            "states": [None if state is None else described_state(state) for state in (self.equations, self.start)],
        }
        states = [state.words.astype("<u8").tobytes() for state in (self.equations, self.start) if state is not None]
        bent = [sums.astype("<f8").tobytes() for sums in (self.second_order.residual, self.second_order.sensitivity)]
        return b"\n".join([canonical(head), b"".join([*states, *bent])])

    @staticmethod
    def from_bytes(data: bytes) -> Standing:
        """What ``to_bytes`` wrote.

        Raises:
            RefusedError: the bytes are none, not all of them are there, or the model is not known here.
        """
        line, _, rest = data.partition(b"\n")
        head: Any = from_canonical(line)
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise RefusedError(f"A page of {len(data):,} bytes is not {FORMAT!r}. Calibrate the book again.")
        states: list[NormalEquations | None] = []
        for plain in head["states"]:
            state, rest = (None, rest) if plain is None else remade_state(plain, rest)
            states.append(state)
        size = len(head["states"][0]["parameters"])
        if len(rest) != 8 * size * size * (1 + size):
            raise RefusedError(f"A page of {len(data):,} bytes is not all there. Calibrate the book again.")
        bent = np.frombuffer(rest, "<f8")
        second_order = SecondOrder(
            bent[: size * size].reshape(size, size), bent[size * size :].reshape(size, size, size)
        )
        numbers = (float.fromhex(head["noise"]), float.fromhex(head["drift"]))
        equations = cast(NormalEquations, states[0])
        return Standing(remade(head["model"]), head["entry"], equations, states[1], second_order, *numbers)


def reference_of(calibration: Calibration) -> dict[str, float]:
    """Where the footprints of a book are taken: ``Calibration.reference``, of a large book that of a part of it.

    Raises:
        RefusedError: the search ended where the model has no parameters at all.
    """
    quotes = calibration.quotes
    if len(quotes) <= SAMPLED or calibration.loss == "huber":
        return calibration.references[WHOLE]
    part = quotes[np.linspace(0, len(quotes) - 1, SAMPLED).astype(np.intp)]
    try:
        found = calibrate(part, calibration.model, **calibration.settings.keywords())
    except StrikeoutError:  # a part may lack what the whole determines
        return dict(calibration.parameters)
    return found.references[WHOLE]


def remade_state(plain: Mapping[str, Any], data: bytes) -> tuple[NormalEquations, bytes]:
    """The state that ``described_state`` described, its words first in these bytes; and the bytes after them.

    Raises:
        RefusedError: not all of its words are there.
    """
    schema = Schema(
        plain["model"],
        tuple(plain["parameters"]),
        tuple(map(float.fromhex, plain["reference"])),
        tuple(plain["exponents"]),
        plain["residual"],
        plain["weights"],
    )
    shape = (schema.columns * (schema.columns + 1) // 2, 3)
    length = 24 * shape[0]
    if len(data) < length:
        raise RefusedError(f"The words of a state end after {len(data):,} bytes. Calibrate the book again.")
    words = np.frombuffer(data[:length], "<u8").astype(np.uint64).reshape(shape)
    return NormalEquations(schema, words, plain["count"]), data[length:]


def described_state(state: NormalEquations) -> dict[str, Any]:
    """All of a state but its words, as plain values."""
    schema = state.schema
    return {
        "model": schema.model,
        "parameters": list(schema.parameters),
        "reference": [value.hex() for value in schema.reference],
        "exponents": list(schema.exponents),
        "residual": schema.residual,
        "weights": schema.weights,
        "count": state.count,
    }
