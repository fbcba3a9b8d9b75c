"""Whether a book is calibrated from its quotes or from their moments, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np

from strikeout.assurance.issue import THROUGH_MOMENTS
from strikeout.book.spec import CalibrationSpec, Through
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.moment_error import interpolation_error
from strikeout.calibration.panels import chosen_panel
from strikeout.calibration.settings import Settings
from strikeout.errors import StrikeoutError, UsageError
from strikeout.models.model import Model
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.basis import Basis
from strikeout.text import Argument, many

Asked = Literal["auto", "quotes", "moments"]

FEWEST = 10_000  # quotes; below, forgetting from quotes takes no longer than writing the result to disk
FARTHEST = THROUGH_MOMENTS / 2  # standard errors from the optimum of the quotes: half of what certificates then claim


class SourceReason(StrEnum):
    """Why a book is calibrated from its quotes or from their moments; the values are kept in books."""

    REQUESTED = "requested"
    REPRESENTED = "represented"  # "auto": moments represent the quotes
    PANEL = "panel"
    FORMER_PANEL = "former panel"
    OBJECTIVE = "objective"
    SELECTION = "selection"
    FEW_QUOTES = "few quotes"
    MANY_NODES = "many nodes"
    DERIVED_FORWARDS = "derived forwards"
    OFF_GRID = "off grid"
    UNSUPPORTED = "unsupported"
    NO_FIT = "no fit"
    NOT_CONVERGED = "not converged"
    TOO_FAR = "too far"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class FitSource:
    """What a calibration of a book was made from, what was asked for, and why.

    A forget or a learn keeps the source without measuring again: to measure is to read every quote. An erasure keeps a
    source, so none of its facts may identify a quote.
    """

    through: Through
    asked: Asked
    reason: SourceReason
    error: float | None = None  # distance of the optimum of the quotes from that of the moments, in standard errors
    entry: int | None = None  # of the ledger, in which the source was chosen and its facts measured
    count: int | None = None  # quotes held then, or quotes that moments cannot represent (OFF_GRID)
    nodes: int | None = None  # of the moments (MANY_NODES)

    @property
    def sentence(self) -> str:
        """The source in a line."""
        why = "as asked" if self.asked == self.through else self._reason()
        when = "" if self.entry is None else f" (entry {self.entry})"
        if self.through == "moments":
            far = "an unknown distance" if self.error is None else f"{self.error:.2g} standard errors"
            return f"moments: {why}; {far} from the optimum of the quotes{'' if self.error is None else when}"
        measured = self.reason is SourceReason.TOO_FAR and self.error is not None
        return f"quotes: {why}" + (f": {self.error:.2g}{when}" if measured else "")

    def _reason(self) -> str:
        when = "" if self.entry is None else f" in entry {self.entry}"
        quotes = many(self.count or 0, "quote")
        held = f"{quotes}{when}"
        some = "some of the quotes" if self.count is None else held
        return {
            SourceReason.REQUESTED: "as asked",
            SourceReason.REPRESENTED: f"moments represent the {held}",
            SourceReason.PANEL: "moments do not support panels",
            SourceReason.FORMER_PANEL: "as before, when the book was a panel",
            SourceReason.OBJECTIVE: "moments support squared price residuals only",
            SourceReason.SELECTION: "moments cannot select among quotes",
            SourceReason.FEW_QUOTES: f"{held}, fewer than {FEWEST:,}",
            SourceReason.MANY_NODES: f"moments have {self.nodes or 0:,} nodes, no fewer than the {held}",
            SourceReason.DERIVED_FORWARDS: "forwards are derived from other quotes, and moments cannot be refitted",
            SourceReason.OFF_GRID: f"moments cannot represent {some}: off the grid, or too large",
            SourceReason.UNSUPPORTED: "moments do not support this model or these settings",
            SourceReason.NO_FIT: "no calibration is found from moments",
            SourceReason.NOT_CONVERGED: "from moments the search does not converge",
            SourceReason.TOO_FAR: f"moments would be off by more than {FARTHEST:g} standard errors",
            SourceReason.UNMEASURED: "the error of moments cannot be measured",
        }[self.reason]

    def unmeasured(self) -> FitSource:
        """Return the source without what was measured on quotes that are erased now."""
        return replace(self, error=None, count=None if self.reason is SourceReason.OFF_GRID else self.count)

    def onward(self, after: Calibration) -> FitSource:
        """Return the source of the next calibration, whatever the number of quotes is then."""
        if after.is_panel:
            return replace(self, reason=SourceReason.PANEL)
        return replace(self, reason=SourceReason.FORMER_PANEL) if self.reason is SourceReason.PANEL else self

    def to_plain(self) -> dict[str, Any]:
        """Return it for JSON; the error as ``float.hex`` writes it."""
        error = None if self.error is None else self.error.hex()
        facts = {"error": error, "entry": self.entry, "count": self.count, "nodes": self.nodes}
        return {"asked": self.asked, "reason": self.reason.value, **facts}

    @staticmethod
    def of(options: Mapping[str, Any]) -> FitSource:
        """Return the source of a version, from how it was asked for."""
        plain = options["source"]
        error = None if plain["error"] is None else float.fromhex(plain["error"])
        facts = (error, plain["entry"], plain["count"], plain["nodes"])
        return FitSource(options["through"], plain["asked"], SourceReason(plain["reason"]), *facts)


def calibrate_from(
    model: Model, settings: Settings, asked: Asked, held: Quotes, *, entry: int | None = None, **options: Any
) -> tuple[Calibration, FitSource]:
    """Calibrate the quotes of a book from the source that was asked for; with "auto", from the one that suits.

    "auto" takes moments if the book is large and nothing is lost: ``FEWEST`` quotes or more, more quotes than nodes of
    the moments, no derived forwards, squared price residuals, and an optimum within ``FARTHEST`` standard errors of
    that of the quotes, measured. Otherwise it takes the quotes.

    Args:
        entry: of the ledger, which the calibration will have.
        options: those that change no bit, such as ``progress``.

    Raises:
        UsageError: an unknown source, an invalid setting, or one that moments do not support if asked for.
        RefusedError: the quotes give no calibration, or lack what it needs.
    """
    if asked not in get_args(Asked):
        raise UsageError(Argument("through", asked), f" is unknown. Use one of {', '.join(get_args(Asked))}.")
    if asked == "moments":
        found = CalibrationSpec(model, settings, "moments").calibrate(held, **options)
        return found, FitSource("moments", asked, SourceReason.REQUESTED, _error_of(found, held), entry)
    if asked == "quotes":
        source = FitSource("quotes", asked, SourceReason.REQUESTED, None, entry)
        return CalibrationSpec(model, settings).calibrate(held, **options), source
    source = preferred_source(model, settings, held, entry=entry)
    if source.through == "moments":
        try:
            found = CalibrationSpec(model, settings, "moments").calibrate(held, **options)
            source = replace(source, error=_error_of(found, held))
            reason = _unusable(found, source.error)
            if reason is None:
                return found, source
            source = replace(source, through="quotes", reason=reason)
        except StrikeoutError as error:
            source = _refused(source, error)
    return CalibrationSpec(model, settings).calibrate(held, **options), source


def preferred_source(model: Model, settings: Settings, held: Quotes, *, entry: int | None = None) -> FitSource:
    """Return the source that "auto" tries first for these quotes and settings."""
    count, nodes = len(held), None
    reason = _unsupported(model, settings, held)
    if reason is None:
        cells, _ = Basis().cells(held.contracts)
        nodes = len(np.unique(cells, axis=0)) * Basis().size
        reason = None if nodes < count else SourceReason.MANY_NODES
    if reason is None:
        return FitSource("moments", "auto", SourceReason.REPRESENTED, None, entry, count)
    return FitSource("quotes", "auto", reason, None, entry, count, nodes)


def _unsupported(model: Model, settings: Settings, held: Quotes) -> SourceReason | None:
    if chosen_panel(held, model, settings) is not None:
        return SourceReason.PANEL
    if settings.loss != "squared" or settings.residual != "price":
        return SourceReason.OBJECTIVE
    if settings.select != "all":
        return SourceReason.SELECTION
    if len(held) < FEWEST:
        return SourceReason.FEW_QUOTES
    return SourceReason.DERIVED_FORWARDS if is_derived(held).any() else None


def _unusable(found: Calibration, error: float | None) -> SourceReason | None:
    if not found.converged:
        return SourceReason.NOT_CONVERGED
    if error is None:
        return SourceReason.UNMEASURED
    return SourceReason.TOO_FAR if error > FARTHEST else None


def _refused(source: FitSource, error: StrikeoutError) -> FitSource:
    """Return why moments were refused, without naming a quote."""
    if "ids" in error.facts:
        return replace(source, through="quotes", reason=SourceReason.OFF_GRID, count=len(error.ids))
    reason = SourceReason.UNSUPPORTED if isinstance(error, UsageError) else SourceReason.NO_FIT
    return replace(source, through="quotes", reason=reason)


def _error_of(found: Calibration, held: Quotes) -> float | None:
    """Measure the interpolation error; None if there is no such number."""
    try:
        error = interpolation_error(found, held)
    except (StrikeoutError, ArithmeticError, ValueError):  # nothing is determined, or nothing is left over
        return None
    return error if isfinite(error) else None
