"""The states of a panel's groups as a book keeps them: one page, which ``verify`` finds anew group by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.book.linearization import described_state, remade_state
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.otm_filter import chosen
from strikeout.calibration.panels import AUTO, LABEL, grouped
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError
from strikeout.models.model import Model
from strikeout.models.named import described, remade
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.system import System

FORMAT = "strikeout groups 1"
PAGE = "groups"  # its name on the shelf of states


@dataclass(frozen=True, eq=False)
class GroupStates:
    """What the quotes of every group leave behind at the model's first start, by the text of the group."""

    model: Model
    latent: str
    states: dict[str, NormalEquations]

    @staticmethod
    def of(calibration: Calibration) -> GroupStates | None:
        """Those of a panel; None of a plain calibration, or where a quote is too large for a state."""
        if calibration.panel is None:
            return None
        try:
            parts = calibration.state.blocks
        except RefusedError:
            return None
        return GroupStates(
            calibration.model, str(calibration.latent_name), {str(group): part for group, part in parts.items()}
        )

    def anew(self, held: Quotes, how: Settings) -> System:
        """The states of the quotes a book holds, at the same start.

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
        """A line that says what follows, then the words of every state, little-endian."""
        head = {
            "format": FORMAT,
            "model": described(self.model),
            "latent": self.latent,
            "groups": [[group, described_state(state)] for group, state in self.states.items()],
        }
        return b"\n".join([canonical(head), b"".join(x.words.astype("<u8").tobytes() for x in self.states.values())])

    @staticmethod
    def from_bytes(data: bytes) -> GroupStates:
        """What ``to_bytes`` wrote.

        Raises:
            RefusedError: the bytes are none, or not all of them are there.
        """
        line, _, rest = data.partition(b"\n")
        head: Any = from_canonical(line)
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise RefusedError(f"A page of {len(data):,} bytes is not {FORMAT!r}. Calibrate the book again.")
        states = {}
        for group, plain in head["groups"]:
            states[group], rest = remade_state(plain, rest)
        if rest:
            raise RefusedError(f"A page of {len(data):,} bytes has more in it than it says. Calibrate the book again.")
        return GroupStates(remade(head["model"]), head["latent"], states)

    def words(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The words of all states, one after the other."""
        return np.concatenate([np.empty(0, np.uint64), *(state.words.ravel() for state in self.states.values())])
