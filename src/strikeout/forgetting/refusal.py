"""Errors for retained quotes that give no answer; nothing has been changed when they are raised."""

from __future__ import annotations

from typing import NoReturn

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import NAMED
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.text import Argument, Mention, many


def determined(calibration: Calibration) -> Calibration:
    """Return the calibration if its quotes determine its parameters, inside the model's own bounds."""
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
        space, latent = calibration.model.parameters, calibration.latent_name
        edge = space.lower[space.names.index(latent)] if latent in space.edges else None  # itself an answer
        held = [(group, bound) for group, bound in calibration.latent_on_bound.items() if bound != edge]
        ran += [f"{latent} of {group} ran into {bound:g}" for group, bound in held[:NAMED]]
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


def no_step(operator: str | None, why: str, *, instead: str = "recalibrate") -> tuple[str | Mention, ...]:
    """Return the parts of the message that an operator cannot be used, with the remedy."""
    return Argument("operator", operator), f": {why}. Leave ", Argument("operator"), f' out, or use "{instead}".'


def check_step(free: tuple[str, ...], outside: tuple[str, ...], *, count: int) -> None:
    """Check that one step determines all parameters and stays inside the bounds."""
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
            f"This leads out of the bounds in {', '.join(outside)}: it is not an answer. Leave ",
            Argument("operator"),
            " out, and the retained quotes are calibrated again.",
            count=count,
            outside=list(outside),
        )


def refuse_everything(count: int) -> NoReturn:
    """Raise RefusedError: forgetting a whole book leaves nothing to calibrate to."""
    raise RefusedError(
        f"All {count:,} quotes were to be forgotten, so nothing would determine the parameters. "
        "Keep some, or drop the calibration itself.",
        count=count,
    )
