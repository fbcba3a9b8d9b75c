"""When the retained quotes give no honest number, in a sentence; nothing has been changed by then."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from strikeout.calibration.panel_calibration import AnyCalibration, PanelCalibration
from strikeout.calibration.panel_summary import NAMED
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.wording import Argument, Mention, many

One = TypeVar("One", bound=AnyCalibration)


def determined(calibration: One) -> One:
    """The calibration itself, where it found parameters that its quotes determine, inside the model's own bounds.

    Raises:
        UnidentifiedError: the quotes leave a parameter free.
        RefusedError: a parameter ran into the model's own bound, or no optimum was found.
    """
    if calibration.converged:
        return calibration
    what, count = "quote" if calibration.count == 1 else "quotes", f"{calibration.count:,}"
    if calibration.termination is Termination.NOT_IDENTIFIED:
        free = calibration.unidentified
        named = "; ".join(f"{name} is {calibration.identifiability[name]}" for name in free)
        raise UnidentifiedError(
            f"The {count} retained {what} no longer determine the parameters: {named}. "
            f"Forget fewer quotes, or calibrate with {free[0]} fixed (",
            Argument("fixed", ...),
            ").",
            count=calibration.count,
            unidentified=list(free),
        )
    if calibration.termination is Termination.AT_BOUND:
        ran = [f"{name} ran into {bound:g}" for name, bound in calibration.on_bound.items()]
        if isinstance(calibration, PanelCalibration):
            held = list(calibration.latent_on_bound.items())
            ran += [f"{calibration.latent_name} of {group} ran into {bound:g}" for group, bound in held[:NAMED]]
            ran += [f"and so in {many(len(held) - NAMED, 'group')} more"] if len(held) > NAMED else []
        raise RefusedError(
            f"The {count} retained {what} lead out of the model's own bounds: {'; '.join(ran)}. "
            "Forget fewer quotes, or give bounds of your own (",
            Argument("bounds", ...),
            ") that make ending on one an answer.",
            count=calibration.count,
            on_bound=dict(calibration.on_bound),
        )
    raise RefusedError(
        f"No optimum was found for the {count} retained {what}: {calibration.termination}. "
        "Forget fewer quotes, or calibrate what is left with starts of your own.",
        count=calibration.count,
        termination=calibration.termination.name.lower(),
    )


def no_step(operator: str | None, why: str) -> tuple[str | Mention, ...]:
    """Return the parts of the message that an operator cannot be used, with the remedy."""
    leave = ("Leave ", Argument("operator"), ' out, or use "recalibrate".')
    return Argument("operator", operator), f": {why}. ", *leave


def refuse_step(free: tuple[str, ...], outside: tuple[str, ...], *, count: int) -> None:
    """Nothing, where one step determines all parameters and stays inside the bounds.

    Raises:
        UnidentifiedError: the ``count`` retained quotes leave these parameters free.
        RefusedError: the step takes these out of their bounds.
    """
    if free:
        raise UnidentifiedError(
            f"The {count:,} retained quotes no longer determine the parameters: {', '.join(free)} "
            f"{'is' if len(free) == 1 else 'are'} free. "
            f"Forget fewer quotes, or calibrate with {free[0]} fixed (",
            Argument("fixed", ...),
            ").",
            count=count,
            unidentified=list(free),
        )
    if outside:
        raise RefusedError(
            f"This leads out of the bounds in {', '.join(outside)}: it is no answer. Leave ",
            Argument("operator"),
            " out, and the retained quotes are calibrated again.",
            count=count,
            outside=list(outside),
        )


def refuse_everything(count: int) -> NoReturn:
    """Forgetting a whole book leaves no model to speak of.

    Raises:
        RefusedError: always.
    """
    raise RefusedError(
        f"All {count:,} quotes of the book were to be forgotten, and no quotes determine no parameters. "
        "Keep some, or drop the calibration itself.",
        count=count,
    )
