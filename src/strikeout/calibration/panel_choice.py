"""Whether quotes are calibrated as a panel where that is left open: decided by counts, never by a price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.panel_groups import latent_of, values_of
from strikeout.calibration.settings import Settings
from strikeout.errors import UsageError
from strikeout.models.model import Model
from strikeout.wording import Argument

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


class LeftOpen(str):
    """The word "auto" where nobody said it just now: a default, or how a book was asked for the last time.

    It equals the word in every other way. Where quotes have a label called so, a word that was said may mean the label;
    one that was not means what it always does.
    """

    __slots__ = ()


AUTO = LeftOpen("auto")  # what panel= is where the choice is left open
PLAIN = "none"  # what the command line calls None
LABEL = "date"
ROOM = 2  # quotes at least, for every parameter a panel would have


@dataclass(frozen=True)
class PanelChoice:
    """A panel by ``label``, or a plain calibration where that is None; ``why`` says in a clause why it is none.

    ``why`` is empty where there is nothing to choose: one date at most, or a model without a latent parameter.
    """

    label: str | None
    dates: int = 0
    why: str = ""


def panel_choice(dates: NDArray[Any] | None, model: Model, settings: Settings) -> PanelChoice:
    """A panel where there are several dates, each quote has one, and there are quotes enough.

    Enough are two for every parameter that a panel would have: those shared, and one a date. Where only quotes out of
    the money count, half of all are taken to: which ones do may hang on a forward that is found from prices. A bad
    feed can therefore move parameters, but not change what is a parameter.

    Args:
        dates: the label date of every quote, out of the money or not; None where the quotes have none.
        settings: what was asked besides. A panel knows a squared loss only, and finds its latent parameter itself.

    >>> from strikeout.models.heston import Heston
    >>> dates = np.repeat(["2024-01-05", "2024-01-08"], [6, 6])
    >>> panel_choice(dates, Heston(), Settings()).label
    'date'
    >>> panel_choice(dates[1:], Heston(), Settings()).why
    '11 quotes are fewer than 2 for each of the 6 parameters of a panel'
    """
    try:
        latent = latent_of(model)
    except UsageError:  # nothing in it that could change from date to date
        return PanelChoice(None)
    if dates is None:
        return PanelChoice(None)
    values, missing = values_of(dates)
    count = len(np.unique(values[~missing]))
    if count < 2:
        return PanelChoice(None, count)
    counting = len(dates) if settings.select == "all" else len(dates) // 2
    parameters = len(model.parameters) - 1 + count
    if settings.loss != "squared":
        why = f"a panel does not know a {settings.loss} loss"
    elif latent in (settings.fixed or {}):
        why = f"{latent} is fixed"
    elif missing.any():
        why = f"{int(missing.sum()):,} of {len(dates):,} quotes have no {LABEL}"
    elif counting < ROOM * parameters:
        kind = "" if settings.select == "all" else " out of the money"
        why = f"{counting:,} quotes{kind} are fewer than {ROOM} for each of the {parameters:,} parameters of a panel"
    else:
        return PanelChoice(LABEL, count)
    return PanelChoice(None, count, why)


def chosen_panel(quotes: Quotes, model: Model, settings: Settings) -> str | None:
    """The label of the panel these quotes are calibrated as: the one asked for, or the one that follows from them.

    Raises:
        UsageError: "auto" was asked for, not just left at it, and a label is called so; or "none", for None.
    """
    is_said = not isinstance(settings.panel, LeftOpen)
    if is_said and settings.panel in (AUTO, PLAIN) and settings.panel in quotes.labels:
        _refuse_word(settings.panel)
    if settings.panel == PLAIN:
        raise UsageError(
            Argument("panel", "none"),
            " is not a label of the quotes. Give ",
            Argument("panel", None),
            " for one value for all of them.",
        )
    if settings.panel != AUTO:
        return settings.panel
    return panel_choice(quotes.labels.get(LABEL), model, settings).label


def _refuse_word(label: str) -> NoReturn:
    """That a label called like one of the words for a panel cannot be one."""
    raise UsageError(
        f"The quotes have a label {label!r}, and ",
        Argument("panel", label),
        ' has another meaning: "auto" is a panel by date if there are several dates and enough quotes, "none" is no '
        "panel. Rename the label, or name another panel (",
        Argument("panel", "date"),
        "), or none (",
        Argument("panel", None),
        ").",
        panel=label,
    )
