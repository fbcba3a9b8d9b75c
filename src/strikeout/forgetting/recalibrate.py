"""Calibrate the retained quotes as if no others had ever been there: the standard for every other operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import calibrate_as
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import AUTO, LABEL, PanelChoice, chosen_panel, grouped, panel_choice
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError
from strikeout.forgetting.refusal import determined
from strikeout.forgetting.request import Request, check_expiries, model_left
from strikeout.quotes.contracts import Features
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.system import Group


def recalibrate(retained: Quotes, before: Calibration) -> Calibration:
    """Calibrate these quotes from cold starts, with the settings of ``before``: no other quote affects the result.

    The weights of a robust loss are determined by the retained quotes alone.
    """
    check_expiries(model_left(before.asked, retained, before.settings), before.settings)
    return determined(calibrate_again(retained, before))


def calibrate_again(quotes: Quotes, before: Calibration) -> Calibration:
    """Calibrate these quotes from cold starts, with the settings of ``before``; a panel reuses the states it can.

    The state of a group depends on its own quotes alone, at a reference that no quote can move, so the state of before
    is the one a fresh calibration would build, bit for bit.
    """
    how = settings_for(quotes, before.settings)
    label = None if how.panel is None else chosen_panel(quotes, before.asked, how)
    after = calibrate_as(quotes, before.asked, how, label)
    if label is None or before.panel != label or after.model.name != before.model.name:
        return after
    try:
        known = before.state
    except RefusedError:  # a quote is too large for the grid, perhaps the very one that is struck out
        return after
    touched = changed_groups(before.book, quotes, label)
    return replace(after, known=known.only(g for g in known.groups if g in after.latent and g not in touched))


def settings_for(retained: Quotes, settings: Settings) -> Settings:
    """Return settings with weights by id of these quotes only: the weight of a forgotten quote is forgotten too."""
    weights = settings.weights
    if not isinstance(weights, Mapping):
        return settings
    return replace(settings, weights={name: weights[name] for name in retained.ids.tolist() if name in weights})


def new_kind(calibration: Calibration, request: Request) -> PanelChoice | None:
    """Return the choice of "auto" for the retained quotes if it is not that of the calibration; else None."""
    book = request.book
    if calibration.settings.panel != AUTO or book is None or not 0 < request.count < len(book):
        return None
    dates = book.labels.get(LABEL)
    kept = None if dates is None else dates[~np.isin(book.ids, request.ids)]
    choice = panel_choice(kept, calibration.asked, calibration.settings)
    return None if calibration.panel == choice.label else choice


def changed_groups(before: Quotes, after: Quotes, panel: str) -> set[Group]:
    """Return the groups in which a quote was added, removed or changed.

    A quote changes if a bit of it is corrected, its forward is refitted, or it moves to another group, which changes
    both groups.
    """
    _, at, to = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
    gone, new = np.ones(len(before), bool), np.ones(len(after), bool)
    gone[at] = new[to] = False
    was, now = _group_of(before, panel), _group_of(after, panel)
    changed = was[at] != now[to]
    for old, other in zip(_columns(before), _columns(after), strict=True):
        changed |= old[at] != other[to]
    gone[at], new[to] = changed, changed
    return {*was[gone].tolist(), *now[new].tolist()}


def _group_of(quotes: Quotes, panel: str) -> NDArray[Any]:
    names = np.empty(len(quotes), object)
    for group, rows in grouped(quotes, panel).items():
        names[rows] = group
    return names


def _columns(quotes: Quotes) -> list[NDArray[Any]]:
    c = quotes.contracts
    described = list(c.columns.values()) if isinstance(c, Features) else [getattr(c, f.name) for f in fields(c)]
    columns = [quotes.observed, quotes.weight, quotes.spread, *described]
    return [column.view(np.int64) if column.dtype == np.float64 else column for column in columns]  # bits
