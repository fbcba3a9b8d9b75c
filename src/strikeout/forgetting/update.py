"""Bring quotes back, learn new ones, roll a window: in any order and batching, the result is that of a fresh start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.errors import UsageError
from strikeout.forgetting.forget import check_tolerance
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.online import Update, begin, update
from strikeout.forgetting.recalibrate import calibrate_again
from strikeout.forgetting.refusal import determined
from strikeout.forgetting.request import moments_for, names_of, refuse_derived
from strikeout.quotes.names import as_names
from strikeout.quotes.quotes import Quotes, join
from strikeout.statistics.moments import Moments
from strikeout.text import Argument


def restore(forgetting: Forgetting, calibration: Calibration | None = None) -> Calibration:
    """Return the calibration from before, bit for bit; or another one with the forgotten quotes brought back into it.

    Args:
        calibration: one that has moved on since (more forgotten, more learnt); the one of before where not given.

    Raises:
        UsageError: a forgotten quote is in that calibration already, or these are not a forgetting and a calibration.
        RefusedError: a quote lacks what the calibration needs.
    """
    if not isinstance(forgetting, Forgetting):
        raise UsageError(
            f"What is restored is what so.forget gave; got a {type(forgetting).__name__}.",
            kind=type(forgetting).__name__,
        )
    if calibration is None:
        return forgetting.before
    if not isinstance(calibration, Calibration):
        raise UsageError(
            f"Quotes are restored into a calibration; got a {type(calibration).__name__}.",
            kind=type(calibration).__name__,
        )
    back, weights = forgetting.forgotten, forgetting.before.settings.weights
    own = calibration.settings.weights
    if isinstance(own, Mapping) and isinstance(weights, Mapping):
        known = {name: weights[name] for name in forgetting.ids.tolist()}
        calibration = replace(calibration, settings=replace(calibration.settings, weights={**own, **known}))
    return learn(calibration, back)


@overload
def learn(calibration: Calibration | Update, quotes: Quotes | Moments, *, tolerance: None = None) -> Calibration: ...


@overload
def learn(calibration: Calibration | Update, quotes: Quotes | Moments, *, tolerance: float) -> Update: ...


def learn(
    calibration: Calibration | Update, quotes: Quotes | Moments, *, tolerance: float | None = None
) -> Calibration | Update:
    """Return the calibration of its quotes and these, from cold starts, as if all had been there from the beginning.

    Of a panel, the states of groups that none of these quotes is in are taken over as they are.

    Args:
        calibration: or an update, which is continued.
        tolerance: in standard errors of independent quotes. The result is an ``Update`` then: one step from the kept
            footprints if it is certified to be within the tolerance, otherwise the calibration.

    Raises:
        UsageError: an id is in the book already, a quote has no weight although weights were given by id, or these
            are not quotes.
        RefusedError: a quote lacks what the calibration needs.
    """
    if tolerance is not None:
        if not isinstance(quotes, Quotes):
            raise UsageError(f"A step learns quotes; got a {type(quotes).__name__}. Leave the tolerance out.")
        return _online(calibration, quotes, tolerance=tolerance, forget=None, where=None)
    calibration = _exact(calibration)
    if not isinstance(quotes, Quotes | Moments):
        raise UsageError(
            f"What is learnt is quotes; got a {type(quotes).__name__}. Read it with so.read_quotes first.",
            kind=type(quotes).__name__,
        )
    if not len(quotes):
        return calibration
    if calibration.moments is not None:
        if isinstance(quotes, Quotes):
            refuse_derived(quotes)
        moments = calibration.moments + moments_for(calibration, quotes)
        return calibrate_moments(moments, calibration.asked, calibration.settings)
    if isinstance(quotes, Moments):
        raise UsageError("This calibration was made from quotes: it can learn quotes, not moments.")
    return calibrate_again(join(calibration.book, quotes), calibration)


@overload
def roll(
    calibration: Calibration | Update,
    learn: Quotes,
    *,
    forget: ArrayLike | None = None,
    where: str | None = None,
    tolerance: None = None,
) -> Calibration: ...


@overload
def roll(
    calibration: Calibration | Update,
    learn: Quotes,
    *,
    forget: ArrayLike | None = None,
    where: str | None = None,
    tolerance: float,
) -> Update: ...


def roll(
    calibration: Calibration | Update,
    learn: Quotes,
    *,
    forget: ArrayLike | None = None,
    where: str | None = None,
    tolerance: float | None = None,
) -> Calibration | Update:
    """Return the window moved on: some quotes struck out, others learnt, calibrated once.

    The same bits as forgetting and learning one after the other, in either order. Of a panel, the states of groups in
    which no quote is added or removed are reused.

    Args:
        calibration: or an update, which is continued.
        forget: ids to strike out.
        where: or a condition in SQL.
        tolerance: as for ``learn``.

    Raises:
        UsageError: what to forget is given twice, or a quote to learn is in the book already and stays there.
        UnknownIdError: an id that no quote of the book has, or one given twice.
        RefusedError: what is left determines no parameters. Nothing is changed.
    """
    if forget is not None and where is not None:
        raise UsageError('Give one of forget=[...] and where="...", not both.')
    if tolerance is not None:
        return _online(calibration, learn, tolerance=tolerance, forget=forget, where=where)
    calibration = _exact(calibration)
    if calibration.moments is not None:
        raise UsageError(
            "roll names what to forget, and a calibration made from moments holds no names. Forget, then learn."
        )
    names = names_of(calibration.book, ids=[] if where is None and forget is None else forget, where=where)
    calibration.book.only(names)  # each known, and given once
    kept = calibration.book[~np.isin(calibration.book.ids, names)]  # forwards are found once both sets are together
    return determined(calibrate_again(join(kept, learn), calibration))


def _exact(calibration: Calibration | Update) -> Calibration:
    return calibration.calibration if isinstance(calibration, Update) else calibration


def _online(
    calibration: Calibration | Update,
    new: Quotes,
    *,
    tolerance: float,
    forget: ArrayLike | None,
    where: str | None,
) -> Update:
    """Learn and forget by one certified step from the footprints that are kept, or exactly."""
    if not tolerance > 0.0:
        raise UsageError(Argument("tolerance", tolerance), ": give a number of standard errors above zero.")
    check_tolerance(tolerance)
    if not isinstance(calibration, Update) and calibration.moments is not None:
        raise UsageError("A calibration made from moments has no footprints to step from. Leave the tolerance out.")
    last = calibration if isinstance(calibration, Update) else begin(calibration, tolerance)
    if where is not None:
        names = names_of(last.quotes, where=where)
    else:
        names = as_names([] if forget is None else [forget] if isinstance(forget, str) else forget)
    return update(last, new, names, tolerance)
