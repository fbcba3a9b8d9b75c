"""Which way a book is calibrated, through its quotes or through their moments, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np

from strikeout.assurance.issuing import THROUGH_MOMENTS
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.interpolation import interpolation_error
from strikeout.calibration.panel_calibration import AnyCalibration, PanelCalibration
from strikeout.calibration.panel_choice import chosen_panel
from strikeout.calibration.settings import Settings
from strikeout.desk.asking import Asking, Through
from strikeout.errors import StrikeoutError, UsageError
from strikeout.models.model import Model
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.basis import Basis
from strikeout.wording import many

Asked = Literal["auto", "quotes", "moments"]

FEWEST = 10_000  # quotes, from which on a forget through quotes takes longer than writing it to the disk does
FARTHEST = THROUGH_MOMENTS / 2  # standard errors from the optimum of the quotes: half of what certificates then claim
OF_A_PANEL = "a panel tells its quotes apart"
TOO_FAR = f"moments would be off by more than {FARTHEST:g} standard errors"
# Why moments were refused. None of these may name a quote, nor may what is made of them: an erasure keeps a road.
OF_THE_MODEL = "moments do not know this model or these settings"
NO_FIT = "through moments no calibration is found"
CANNOT_HOLD = "moments cannot hold"
REFUSED = f"{CANNOT_HOLD} some of the quotes it was decided with"


@dataclass(frozen=True)
class Road:
    """The way a calibration of a book was made, what was asked for, and why it came to that.

    ``error`` is how far the optimum of the quotes themselves was from that of their moments, in standard errors, when
    the book was calibrated in ``entry``; None where that was not looked at, or quotes it was measured with are erased.
    A forget or a learn takes the same road without measuring again: to measure is to read every quote.
    """

    through: Through
    asked: Asked
    why: str
    error: float | None = None
    entry: int | None = None

    @property
    def sentence(self) -> str:
        """The road in a line."""
        said = f"through {self.through}: {'as asked' if self.asked == self.through else self.why}"
        when = "" if self.entry is None else f" (entry {self.entry})"
        if self.through == "moments" and self.error is None:
            return f"{said}; how far from the optimum of the quotes themselves is not known"
        if self.through == "moments":
            return f"{said}; {self.error:.2g} standard errors from the optimum of the quotes themselves{when}"
        return said if self.error is None or self.why != TOO_FAR else f"{said}: {self.error:.2g}{when}"

    def unmeasured(self) -> Road:
        """The same road, once quotes that its error was measured with are erased: without the error, and without how
        many quotes moments could not hold."""
        return replace(self, error=None, why=REFUSED if self.why.startswith(CANNOT_HOLD) else self.why)

    def onward(self, after: AnyCalibration) -> Road:
        """The road of the next calibration, whatever the count is then; a reason that held of a panel goes with it."""
        if isinstance(after, PanelCalibration):
            return replace(self, why=OF_A_PANEL)
        return replace(self, why="as before, when it was a panel") if self.why == OF_A_PANEL else self

    def to_plain(self) -> dict[str, Any]:
        """For JSON; the error as ``float.hex`` writes it."""
        error = None if self.error is None else self.error.hex()
        return {"asked": self.asked, "why": self.why, "error": error, "entry": self.entry}

    @staticmethod
    def of(asking: Mapping[str, Any]) -> Road | None:
        """The road of a version, from how it was asked for; None of one made before books kept it."""
        plain = asking.get("road")
        if plain is None:
            return None
        error = None if plain["error"] is None else float.fromhex(plain["error"])
        return Road(asking["through"], plain["asked"], plain["why"], error, plain["entry"])


def travelled(
    model: Model, settings: Settings, asked: Asked, held: Quotes, *, entry: int | None = None, **options: Any
) -> tuple[AnyCalibration, Road]:
    """The calibration of the quotes a book holds by the road that was asked for, or by the one that suits.

    "auto" takes moments where a book is large and nothing is lost by it: ``FEWEST`` quotes or more, none of whose
    forwards rests on others, more of them than nodes of the moments; squared price residuals; and an optimum within
    ``FARTHEST`` standard errors of that of the quotes themselves, measured. Otherwise it takes the quotes.

    Args:
        entry: of the ledger, with which it comes; what is counted and measured is of then.
        options: those that change no bit, such as ``progress``.

    Raises:
        UsageError: an unknown road, or a setting that cannot be, or that moments do not know though they were asked
            for.
        RefusedError: the quotes give no calibration, or lack what it needs.
    """
    if asked not in get_args(Asked):
        raise UsageError(f"through={asked!r} is unknown. Use one of {', '.join(get_args(Asked))}.")
    if asked == "quotes":
        return Asking(model, settings).calibrate(held, **options), Road("quotes", asked, "as asked", None, entry)
    if asked == "moments":
        found = Asking(model, settings, "moments").calibrate(held, **options)
        return found, Road("moments", asked, "as asked", _off(found, held), entry)
    why, error = unsuited(model, settings, held, entry=entry), None
    if why is None:
        try:
            found = Asking(model, settings, "moments").calibrate(held, **options)
            error = _off(found, held)
            if not found.converged:
                why = "through moments the search does not converge"
            elif error is None or error > FARTHEST:
                why = TOO_FAR if error is not None else "how far off moments would be cannot be measured"
            else:
                why = f"{_counted(held, entry)}, which moments stand for"
                return found, Road("moments", asked, why, error, entry)
        except StrikeoutError as refusal:
            why = _refused(refusal, entry)
    return Asking(model, settings).calibrate(held, **options), Road("quotes", asked, why, error, entry)


def unsuited(model: Model, settings: Settings, held: Quotes, *, entry: int | None = None) -> str | None:
    """Why moments are not tried for these quotes and settings, with ``entry``; None where they are."""
    if chosen_panel(held, model, settings) is not None:
        return OF_A_PANEL
    if settings.loss != "squared" or settings.residual != "price":
        return "moments know squared price residuals only"
    if settings.select != "all":
        return "moments cannot choose among quotes"
    if len(held) < FEWEST:
        return f"{_counted(held, entry)}, fewer than {FEWEST:,}"
    if is_derived(held).any():
        return "forwards rest on other quotes, and moments cannot be refitted"
    cells, _ = Basis().cells(held.contracts)
    nodes = len(np.unique(cells, axis=0)) * Basis().size
    return None if nodes < len(held) else f"moments have {nodes:,} nodes, no fewer than the {_counted(held, entry)}"


def _refused(refusal: StrikeoutError, entry: int | None) -> str:
    """Why moments were refused, in a clause that names no quote."""
    if "ids" in refusal.facts:
        when = "" if entry is None else f" in entry {entry}"
        return f"{CANNOT_HOLD} {many(len(refusal.ids), 'quote')}{when}, off their grid or too large for them"
    return OF_THE_MODEL if isinstance(refusal, UsageError) else NO_FIT


def _counted(held: Quotes, entry: int | None) -> str:
    """How many quotes, and when: a road is kept, and the count may be another by the time it is read."""
    return many(len(held), "quote") + ("" if entry is None else f" in entry {entry}")


def _off(found: AnyCalibration, held: Quotes) -> float | None:
    """The interpolation error, measured; None where there is no such number."""
    assert isinstance(found, Calibration), "a panel is never made from moments"
    try:
        error = interpolation_error(found, held)
    except (StrikeoutError, ArithmeticError, ValueError):  # nothing is determined, or nothing is left over
        return None
    return error if isfinite(error) else None
