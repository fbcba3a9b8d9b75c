"""Which quotes are meant: by name, by condition, or the quotes themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.settings import Settings, chosen
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.evidence import STEPS, Unsupported, unsupported
from strikeout.forgetting.refusal import refuse_everything
from strikeout.kernels.arrays import Rows
from strikeout.models.model import Model
from strikeout.quotes.forwards import Refit, is_derived, refits
from strikeout.quotes.names import Names, as_names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments, moments_of
from strikeout.text import many


@dataclass(frozen=True, eq=False)
class Request:
    """Which quotes to strike out, and the book they are in; None if only moments are held.

    Ids and quotes are copied when they are first needed: a step needs none of them.
    """

    book: Quotes | None
    places: Rows  # where the book has the quotes to strike out, in the order they were given
    counting: Quotes | None  # the quotes of the objective; others only stand in the book
    given: Quotes | Moments | None = None  # what is to be struck out of moments

    @property
    def count(self) -> int:
        """How many quotes are to be struck out."""
        return len(self.places) if self.given is None else len(self.given)

    @cached_property
    def ids(self) -> Names:
        """Of the quotes to strike out, in the order of the book; empty if moments are given."""
        if self.book is not None:
            return self.book.ids[np.sort(self.places)]
        return self.given.ids if isinstance(self.given, Quotes) else np.empty(0, "U1")

    @cached_property
    def used(self) -> Names:
        """Those of the ids that count in the objective."""
        if self.counting is self.book or self.counting is None:
            return self.ids
        return self.ids[np.isin(self.ids, self.counting.ids)]

    @property
    def rows(self) -> Rows:
        """Where the quotes of the objective are that are to be struck out."""
        return self.places if self.counting is self.book or self.counting is None else self.counting.places(self.used)

    @cached_property
    def forgotten(self) -> Quotes | Moments:
        """The quotes behind the ids, or their moments."""
        if self.given is not None:
            return self.given
        assert self.book is not None
        return self.book[np.sort(self.places)]

    @cached_property
    def retained(self) -> Quotes:
        """The other quotes of the book."""
        assert self.book is not None
        return self.book.without(self.ids)

    @property
    def refits(self) -> tuple[Refit, ...]:
        """The slices whose forwards change without these quotes."""
        return () if self.book is None or "forward_from" not in self.book.labels else self._refits

    @cached_property
    def _refits(self) -> tuple[Refit, ...]:
        assert self.book is not None
        return refits(self.book, self.retained)


def request_of(
    calibration: Calibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
    everything: bool = False,
) -> Request:
    """Return what is to be struck out of a calibration, checked against its book; nothing is changed.

    Args:
        everything: let a request for the whole book pass, for a preview.
    """
    if not isinstance(calibration, Calibration):
        raise UsageError(
            f"What quotes are struck out of is a calibration; got a {type(calibration).__name__}. "
            "Give what so.calibrate returned, or the .calibration of an earlier forget.",
            kind=type(calibration).__name__,
        )
    if (ids is not None) + (where is not None) + (quotes is not None) != 1:
        raise UsageError('Give exactly one of ids=[...], where="..." and quotes=...: what to forget.')
    if calibration.moments is not None:
        return _of_moments(calibration, quotes)
    if isinstance(quotes, Moments):
        raise UsageError("This calibration was made from quotes: give the ones to forget by ids, where or quotes.")
    book = calibration.book
    # A list is looked up as it is; what is not found there is looked at more closely, and refused in a sentence.
    names: ArrayLike = ids if isinstance(ids, list) else names_of(book, ids=ids, where=where, quotes=quotes)
    places = book.places(names)
    if len(places) == len(book) and not everything:
        refuse_everything(len(book))
    return Request(book, places, calibration.quotes)


def slices_of(request: Request) -> str:
    """Return the number of slices whose forward is refitted, in words."""
    count = len(request.refits)
    return many(count, "slice")


def unstepped(calibration: Calibration, operator: str, request: Request) -> Unsupported | None:
    """Return why an operator cannot strike these quotes out of a calibration; None if it can."""
    if operator in STEPS and request.refits:
        return Unsupported.FORWARDS
    if operator in STEPS and request.counting is not request.book and not len(request.used):
        return Unsupported.NOT_COUNTED
    why = unsupported(operator, calibration.settings, is_panel=calibration.is_panel)
    if why is not None or operator not in STEPS or getattr(calibration.asked, "expiries", None) != "quoted":
        return why
    names = model_left(calibration.asked, request.retained, calibration.settings).parameters.names
    return None if names == calibration.model.parameters.names else Unsupported.EXPIRY


def names_of(
    book: Quotes, *, ids: ArrayLike | None = None, where: str | None = None, quotes: Quotes | None = None
) -> Names:
    """Return the ids given, those of the quotes a condition holds for, or those of the quotes given."""
    if where is not None:
        from strikeout.quotes.selection import select  # loads SQLite

        return select(book, where)
    if quotes is not None:
        return quotes.ids
    return as_names([ids] if isinstance(ids, str) else [] if ids is None else ids)


def moments_for(calibration: Calibration, quotes: Quotes | Moments) -> Moments:
    """Return the moments of these quotes on the grid and with the weighting of a calibration; moments are taken as they
    are.
    """
    if isinstance(quotes, Moments):
        return quotes
    weights, held = calibration.settings.weights, calibration.moments
    if weights == "own":
        raise UsageError(
            "The moments were taken with weights of your own, which are not kept. Give moments in place of quotes: "
            "moments_of(quotes, weights=...)."
        )
    return moments_of(quotes, weights=weights, basis=None if held is None else held.basis)


def refuse_derived(quotes: Quotes) -> None:
    """Raise RefusedError if the forward of a quote is derived from its slice, which moments do not contain."""
    if is_derived(quotes).any():
        raise RefusedError(
            "The forwards of these quotes were derived from their slices, and moments do not show whether the forward "
            "of another quote depends on them. Work from the quotes, or in a book; or take moments "
            "of quotes whose forwards are given."
        )


def _of_moments(calibration: Calibration, quotes: Quotes | Moments | None) -> Request:
    if quotes is None:
        raise RefusedError(
            "This calibration was made from moments and holds no quotes to find ids or conditions in. "
            "Give the quotes to strike out themselves: forget(calibration, quotes=...)."
        )
    held = len(calibration.moments)
    if len(quotes) >= held:
        refuse_everything(held)
    if isinstance(quotes, Quotes):
        refuse_derived(quotes)
    return Request(None, np.empty(0, np.intp), None, quotes)


NAMED = 6  # parameters a sentence names before it counts the rest


def model_left(model: Model, retained: Quotes, settings: Settings) -> Model:
    """Return the model with the parameters of the expiries of these quotes; as given if it has none per expiry."""
    if getattr(model, "expiries", None) != "quoted":
        return model
    formed: Model = model.suited(chosen(retained, settings.select).contracts)  # type: ignore[attr-defined]
    return formed


def check_expiries(model: Model, settings: Settings) -> None:
    """Raise RefusedError if bounds, fixed or starts name parameters of an expiry that is no longer quoted."""
    names, starts = model.parameters.names, settings.starts
    points = () if isinstance(starts, int) else (starts,) if isinstance(starts, Mapping) else starts
    started = [name for point in points for name in point]
    for setting, given in (("bounds", settings.bounds), ("fixed", settings.fixed), ("starts", started)):
        gone = [name for name in dict.fromkeys(given or ()) if name not in names]
        if gone:
            raise RefusedError(
                f"{setting} names {_some(gone)}, and without quotes of its expiry a parameter is removed: what is "
                f"left has {_some(names)}. Calibrate the retained quotes with {setting}={{...}} for these.",
                gone=gone,
                parameters=list(names),
            )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
