"""Where a panel was left open: what is left of the quotes decides anew, as it would have without the others."""

from __future__ import annotations

import numpy as np

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.panel_calibration import AnyCalibration, PanelCalibration
from strikeout.calibration.panel_choice import AUTO, LABEL, PanelChoice, chosen_panel, panel_choice
from strikeout.calibration.panel_groups import counted_groups, latent_of
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.panel import panel_recalibrate
from strikeout.forgetting.panel_forgetting import PanelForgetting
from strikeout.forgetting.recalibrate import settings_for
from strikeout.forgetting.refusal import determined
from strikeout.forgetting.request import Request, slices_of
from strikeout.quotes.quotes import Quotes
from strikeout.wording import Argument


def calibrated_again(quotes: Quotes, before: AnyCalibration) -> AnyCalibration:
    """A cold calibration of these quotes, asked for as ``before`` was; a panel takes over the states it can.

    Raises:
        UnidentifiedError: there are too few quotes for the parameters.
        RefusedError: a quote lacks what is needed.
    """
    if isinstance(before, PanelCalibration) and chosen_panel(quotes, before.asked, before.settings) == before.panel:
        return panel_recalibrate(quotes, before)
    found: AnyCalibration = calibrate(quotes, before.asked, **settings_for(quotes, before.settings).keywords())
    return found


def crossing(calibration: AnyCalibration, request: Request) -> PanelChoice | None:
    """What the quotes that are left are calibrated as, where it is not what there was before; else None."""
    book = request.book
    if calibration.settings.panel != AUTO or book is None or not 0 < len(request.ids) < len(book):
        return None
    dates = book.labels.get(LABEL)
    kept = None if dates is None else dates[~np.isin(book.ids, request.ids)]
    choice = panel_choice(kept, calibration.asked, calibration.settings)
    is_panel = isinstance(calibration, PanelCalibration)
    return None if is_panel == (choice.label is not None) else choice


def forget_across(
    calibration: AnyCalibration,
    request: Request,
    choice: PanelChoice,
    *,
    operator: str | None = None,
    tolerance: float | None = None,
) -> Forgetting | PanelForgetting:
    """``forget`` where a panel becomes a plain calibration, or the reverse: the retained quotes, from cold starts.

    Raises:
        UsageError: another operator than recalibrate is asked for; a step stays among the parameters it began with.
        UnidentifiedError: the retained quotes do not determine the parameters.
        RefusedError: they lead out of the model's bounds, or no optimum was found.
    """
    said = _said(choice, latent_of(calibration.asked))
    if operator not in (None, "recalibrate"):
        raise UsageError(
            Argument("operator", operator),
            f": {said}, and one step keeps the parameters it began with. Leave ",
            Argument("operator"),
            " out, or calibrate with ",
            Argument("panel"),
            " given in full.",
        )
    try:
        found = determined(calibrated_again(request.retained, calibration))
    except RefusedError as error:  # perhaps only because the parameters are others now
        remedy = (" With ", Argument("panel", LABEL), " the book stays a panel.")
        raise error.extended(
            f" ({said}.", *(remedy if isinstance(calibration, PanelCalibration) else ()), ")"
        ) from error
    path: tuple[str, ...] = ("forwards refit: " + slices_of(request),) if request.refits else ()
    path += (said,) if tolerance is None else (said, "downdate passed over: a step stays among its parameters")
    path += ("recalibrate: the retained quotes, from cold starts",)
    values = dict(found.parameters)
    if isinstance(found, PanelCalibration):
        assert isinstance(request.forgotten, Quotes)
        struck, latent = (request.ids, calibration, request.forgotten), dict(found.latent)
        return PanelForgetting(
            *struck, values, latent, "recalibrate", path, tolerance=tolerance, refits=request.refits, _calibrated=found
        )
    return Forgetting(
        calibration, values, "recalibrate", tolerance=tolerance, _request=request, _path=path, _calibrated=found
    )


def _said(choice: PanelChoice, latent: str) -> str:
    if choice.label is not None:
        return f"{latent}: one for each of {counted_groups(choice.dates, choice.label)} from here on"
    left = choice.why or (f"{choice.dates} date is left" if choice.dates == 1 else "no date is left")
    return f"{latent}: one value from here on, since {left}"
