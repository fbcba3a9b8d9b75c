"""The quotes of a panel by group: by date, or by whatever label they are told apart by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.system import Group, rank
from strikeout.wording import Advice, Argument, many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

Rows = NDArray[np.intp]
LATENT = "initial_variance"  # of every model of stochastic variance: where the variance stood when the quote was made


def grouped(quotes: Quotes, panel: str) -> dict[Group, Rows]:
    """Row numbers by group, groups in order. Text stays text, dates become ISO text, numbers stay numbers.

    Raises:
        UsageError: the quotes have no such label, or some have no value of it.
    """
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
    names, number = np.unique(values, return_inverse=True)
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    return dict(sorted(zip(names.tolist(), parts, strict=True), key=lambda item: rank(item[0])))


def values_of(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of a label by which groups are told apart, and which of them are missing."""
    if column.dtype.kind == "M":
        return np.datetime_as_string(column), np.isnat(column)
    if column.dtype.kind == "f":
        return column, np.isnan(column)
    values = column.astype(str) if column.dtype.kind == "O" else column
    return values, values == "" if values.dtype.kind == "U" else np.zeros(len(values), bool)


def counted_groups(count: int, panel: str) -> str:
    """How many groups, in words.

    >>> counted_groups(1, "desk"), counted_groups(180, "date")
    ('1 group of desk', '180 dates')
    """
    return many(count, "date") if panel == "date" else f"{many(count, 'group')} of {panel}"


def latent_of(model: Model) -> str:
    """The parameter that every group of a panel has for itself: the model's ``latent``, or its initial_variance.

    Raises:
        UsageError: the model has neither.
    """
    latent = getattr(model, "latent", LATENT if LATENT in model.parameters.names else None)
    if latent is None:
        raise UsageError(
            f"{model.name} does not say which parameter changes from group to group, so it has no panel. ",
            Advice.NAME_LATENT,
            ".",
        )
    if latent not in model.parameters.names or len(model.parameters) < 2:
        raise UsageError(
            f"{model.name} has latent={latent!r}, and its parameters are {', '.join(model.parameters.names)}. A panel "
            "needs one of these as latent, and another to share."
        )
    return str(latent)


def shared_space(model: Model) -> ParameterSpace:
    """The parameters that all groups share, with their bounds and starts.

    Raises:
        UsageError: the model does not say which parameter is latent.
    """
    space = model.parameters
    k = space.names.index(latent_of(model))
    names = tuple(name for i, name in enumerate(space.names) if i != k)
    bounds = np.delete(space.lower, k), np.delete(space.upper, k)
    edges = tuple(name for name in space.edges if name in names)
    return ParameterSpace(names, *bounds, np.delete(space.starts, k, axis=1), edges)


def panel_form(model: Model, quotes: Quotes, groups: dict[Group, Rows]) -> Model:
    """The form of the model that suits the largest group: groups are priced one by one.

    Raises:
        UsageError: the model does not price row by row.
    """
    suited = getattr(model, "suited", None)
    if suited is None or not groups:
        return model
    largest = max(groups.values(), key=len)
    formed: Model = suited(quotes.contracts[largest])
    return formed
