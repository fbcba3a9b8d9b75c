"""What ``latent=`` of ``calibrate`` asks for: the prior on the path of a panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from strikeout.calibration.settings import FREE
from strikeout.errors import UsageError
from strikeout.text import Argument

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

SMOOTHED, FILTERED = "smoothed", "filtered"


@dataclass(frozen=True)
class Prior:
    """A prior on the path of a panel: which dates a date learns from, and how strong it is (1 for the model's own).

    >>> Prior.asked("smoothed:2"), Prior.asked("free")
    (Prior(kind='smoothed', strength=2.0), None)
    """

    kind: str
    strength: float = 1.0

    @staticmethod
    def asked(text: str) -> Prior | None:
        """Return the prior that a text asks for; None for "free"."""
        kind, colon, strength = text.partition(":") if isinstance(text, str) else (text, "", "")
        if kind not in (FREE, SMOOTHED, FILTERED) or (colon and kind == FREE):
            raise UsageError(
                Argument("latent", text),
                f" is unknown. Use {FREE}, {SMOOTHED} or {FILTERED}, the last two also with a strength: {SMOOTHED}:2.",
            )
        try:
            value = float(strength) if colon else 1.0
        except ValueError:
            value = -1.0
        if not value >= 0.0:
            raise UsageError(Argument("latent", text), ": the strength is 0 (no prior), 1 (the model's), or more.")
        return None if kind == FREE else Prior(kind, value)

    @property
    def sentence(self) -> str:
        """What a date follows from, and the strength."""
        source = "all dates" if self.kind == SMOOTHED else "its own quotes and earlier dates"
        return f"{self.kind}: each date follows from {source} by the model's dynamics, strength {self.strength:g}"


def refuse_prior(panel: Calibration, what: str) -> None:
    """Raise UsageError if the path of a panel has a prior, which ``what`` does not support."""
    if panel.has_prior:
        raise UsageError(
            f"{what}: with a prior on its path, a panel is not at the optimum of its quotes. Calibrate with ",
            Argument("latent", FREE),
            ".",
        )
