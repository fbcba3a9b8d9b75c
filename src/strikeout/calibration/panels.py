"""Panels: quotes by group, the latent parameter of a model, and when "auto" makes a panel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.settings import Settings
from strikeout.errors import UsageError
from strikeout.kernels.arrays import Mask, Rows
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.system import Group, rank
from strikeout.text import Advice, Argument, many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

LATENT = "initial_variance"  # of every model of stochastic variance: the variance at the time of the quote
AUTO = "auto"  # panel= if the quotes decide
PLAIN = "none"  # what the command line calls None
LABEL = "date"
FEWEST = 2  # quotes per parameter of a panel
NAMED = 3  # groups a sentence names before it counts the rest


def grouped(quotes: Quotes, panel: str) -> dict[Group, Rows]:
    """Return row numbers by group, groups in order. Text stays text, dates become ISO text, numbers stay numbers."""
    if not isinstance(panel, str):
        raise UsageError(
            Argument("panel", panel),
            ": give the name of a label of the quotes, such as ",
            Argument("panel", "date"),
            ".",
        )
    if panel not in quotes.labels:
        known = ", ".join(quotes.labels) or "none"
        raise UsageError(
            Argument("panel", panel),
            f" is not a label of the quotes; they have {known}. Give one of these, or ",
            Advice.ADD_LABEL,
            ".",
            panel=panel,
        )
    values, missing = values_of(quotes.labels[panel])
    if missing.any():
        raise UsageError(
            f"{int(missing.sum()):,} of {len(quotes):,} quotes have no {panel}: {quotes.ids[missing][0]} is the first. "
            "Give them one, or leave them out.",
            ids=quotes.ids[missing].tolist(),
        )
    if len(values) and (values == values[0]).all():  # one day is rolled in at a time, and needs no sorting
        return {values[:1].tolist()[0]: np.arange(len(values))}
    names, number = np.unique(values, return_inverse=True)
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    return dict(sorted(zip(names.tolist(), parts, strict=True), key=lambda item: rank(item[0])))


def values_of(column: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Return the values of a label that distinguish groups, and which of them are missing."""
    if column.dtype.kind == "M":
        return np.datetime_as_string(column), np.isnat(column)
    if column.dtype.kind == "f":
        return column, np.isnan(column)
    values = column.astype(str) if column.dtype.kind == "O" else column
    return values, values == "" if values.dtype.kind == "U" else np.zeros(len(values), bool)


def counted_groups(count: int, panel: str) -> str:
    """Return the number of groups in words.

    >>> counted_groups(1, "desk"), counted_groups(180, "date")
    ('1 group of desk', '180 dates')
    """
    return many(count, "date") if panel == "date" else f"{many(count, 'group')} of {panel}"


def latent_of(model: Model) -> str:
    """Return the parameter that every group of a panel has for itself: ``model.latent``, or initial_variance."""
    latent = getattr(model, "latent", LATENT if LATENT in model.parameters.names else None)
    if latent is None:
        raise UsageError(
            f"{model.name} does not name a parameter that changes from group to group, so it has no panel. ",
            Advice.NAME_LATENT,
            ".",
            model=model.name,
        )
    if latent not in model.parameters.names or len(model.parameters) < 2:
        raise UsageError(
            f"{model.name} has latent={latent!r}, and its parameters are {', '.join(model.parameters.names)}. A panel "
            "needs one of these as latent, and another to share."
        )
    return str(latent)


def shared_space(model: Model, latent: str | None) -> ParameterSpace:
    """Return the parameters that all groups share, with their bounds and starts; all of them without a latent one."""
    return model.parameters if latent is None else _without(model.parameters, latent)


@lru_cache(maxsize=64)
def _without(space: ParameterSpace, latent: str) -> ParameterSpace:
    k = space.names.index(latent)
    names = tuple(name for i, name in enumerate(space.names) if i != k)
    bounds = np.delete(space.lower, k), np.delete(space.upper, k)
    edges = tuple(name for name in space.edges if name in names)
    more = np.delete(space.more_starts, k, axis=1) if len(space.more_starts) else space.more_starts
    return ParameterSpace(names, *bounds, np.delete(space.starts, k, axis=1), edges, more, stages=space.stages)


def panel_form(model: Model, quotes: Quotes, groups: dict[Group, Rows]) -> Model:
    """Return the form of the model that suits the largest group: groups are priced one by one."""
    suited = getattr(model, "suited", None)
    if suited is None or not groups:
        return model
    largest = max(groups.values(), key=len)
    formed: Model = suited(quotes.contracts[largest])
    return formed


@dataclass(frozen=True)
class PanelChoice:
    """A panel by ``label``, or a plain calibration if that is None; ``why`` is the reason as a clause.

    ``why`` is empty if there is nothing to choose: one date at most, or a model without a latent parameter.
    """

    label: str | None
    dates: int = 0
    why: str = ""

    def sentence(self, latent: str) -> str:
        """Return what the choice means for the latent parameter, if it was the other one before."""
        if self.label is not None:
            return f"{latent}: one for each of {counted_groups(self.dates, self.label)} from here on"
        left = self.why or (f"{self.dates} date is left" if self.dates == 1 else "no date is left")
        return f"{latent}: one value from here on, since {left}"


def panel_choice(dates: NDArray[Any] | None, model: Model, settings: Settings) -> PanelChoice:
    """Choose a panel if there are several dates, each quote has one, and there are enough quotes.

    Enough are two for every parameter of the panel: the shared ones, and one per date. If only quotes out of the money
    count, half of all are assumed to: which ones do may depend on a forward that is fitted to prices. A bad feed can
    therefore move parameters, but not change what is a parameter.

    Args:
        dates: the label date of every quote, out of the money or not; None if the quotes have none.
        settings: what was asked besides. A robust loss makes a panel only if it is asked for by its label, and a panel
            estimates its latent parameter, so it may not be fixed.

    >>> from strikeout.models.heston import Heston
    >>> dates = np.repeat(["2024-01-05", "2024-01-08"], [6, 6])
    >>> panel_choice(dates, Heston(), Settings()).label
    'date'
    >>> panel_choice(dates[1:], Heston(), Settings()).why
    '11 quotes are fewer than 2 for each of the 6 parameters of a panel'
    """
    try:
        latent = latent_of(model)
    except UsageError:  # no parameter that could change from date to date
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
        why = f"auto keeps one value under a {settings.loss} loss"
    elif latent in (settings.fixed or {}):
        why = f"{latent} is fixed"
    elif missing.any():
        why = f"{int(missing.sum()):,} of {len(dates):,} quotes have no {LABEL}"
    elif counting < FEWEST * parameters:
        kind = "" if settings.select == "all" else " out of the money"
        why = f"{counting:,} quotes{kind} are fewer than {FEWEST} for each of the {parameters:,} parameters of a panel"
    else:
        return PanelChoice(LABEL, count)
    return PanelChoice(None, count, why)


def chosen_panel(quotes: Quotes, model: Model, settings: Settings) -> str | None:
    """Return the label of the panel these quotes are calibrated as; None for a plain calibration.

    "auto" always means the choice of ``panel_choice``, also if the quotes have a label of that name.
    """
    panel = settings.panel
    if panel == PLAIN and panel not in quotes.labels:
        raise UsageError(
            Argument("panel", "none"),
            " is not a label of the quotes. Give ",
            Argument("panel", None),
            " for one value for all of them.",
        )
    return panel_choice(quotes.labels.get(LABEL), model, settings).label if panel == AUTO else panel


def latent_moves(
    before: Mapping[Any, float], after: Mapping[Any, float], *, name: str, label: str, is_done: bool = False
) -> list[str]:
    """Return one sentence each for the groups that are removed, added and kept; none if one of the paths is empty.

    Args:
        is_done: whether it has happened already.

    >>> was, now = {"2024-01-05": 0.04, "2024-01-08": 0.05}, {"2024-01-08": 0.0501}
    >>> for sentence in latent_moves(was, now, name="initial_variance", label="date"):
    ...     print(sentence)
    2024-01-05 is removed as a whole, and initial_variance 0.04 with it
    1 date stays: initial_variance moves most on 2024-01-08, from 0.05 to 0.0501
    """
    if not before or not after:
        return []
    gone = {group: value for group, value in before.items() if group not in after}
    new = {group: value for group, value in after.items() if group not in before}
    stay = [group for group in after if group in before]
    lines = []
    if gone:
        them = "it" if len(gone) == 1 else "them"
        lines.append(f"{_listed(gone)} {_be(gone, is_done)} removed as a whole, and {name} {_span(gone)} with {them}")
    if new:
        lines.append(f"{_listed(new)} {_be(new, is_done)} added, with {name} {_span(new)}")
    if stay:
        most = max(stay, key=lambda group: abs(after[group] - before[group]))
        moves = f"{'moved' if is_done else 'moves'} most {'on' if label == 'date' else 'in'} {most}"
        moves = f"{moves}, from {before[most]:.6g} to {after[most]:.6g}" if before[most] != after[most] else "as it was"
        verb = "stayed" if is_done else "stays" if len(stay) == 1 else "stay"
        lines.append(f"{counted_groups(len(stay), label)} {verb}: {name} {moves}")
    return lines


def _be(groups: Mapping[Any, float], is_done: bool) -> str:
    return ("was" if is_done else "is") if len(groups) == 1 else ("were" if is_done else "are")


def _listed(groups: Mapping[Any, float]) -> str:
    shown, rest = ", ".join(map(str, list(groups)[:NAMED])), len(groups) - NAMED
    return f"{shown}{f' and {rest:,} more' if rest > 0 else ''}"


def _span(groups: Mapping[Any, float]) -> str:
    low, high = min(groups.values()), max(groups.values())
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
