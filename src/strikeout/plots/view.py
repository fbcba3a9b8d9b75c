"""Which quotes a picture shows, in which unit, and the caption that names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.fit_errors import expiry_names
from strikeout.errors import UsageError
from strikeout.text import printable

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

Unit = Literal["spreads", "vol_points", "price"]
UNITS: tuple[Unit, ...] = ("spreads", "vol_points", "price")
LISTED = 4  # expiries or dates that an error names


@dataclass(frozen=True)
class View:
    """What to show of a calibration.

    Args:
        expiries: dates of expiries; all of them if empty.
        date: one quote date; by default all, and for smiles of a panel its last one.
        unit: of residuals: "spreads" (the default if there are spreads), "vol_points" or "price".
        source: the name of the file or book, for the caption.
    """

    expiries: tuple[str, ...] = ()
    date: str | None = None
    unit: Unit | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in UNITS:
            raise UsageError(f"unit={self.unit!r}: not a unit of residuals. Use one of {', '.join(UNITS)}.")

    def rows(self, quotes: Quotes) -> NDArray[np.bool_]:
        """Return which quotes are shown.

        Raises:
            UsageError: an expiry or a date that no quote has.
        """
        shown = np.ones(len(quotes), bool)
        if self.expiries:
            names, place = expiry_names(quotes)
            _refuse_unknown("expiry", self.expiries, names)
            shown &= np.isin(place, [names.index(name) for name in self.expiries])
        if self.date is not None:
            dates = quotes.labels.get("date")
            texts = np.full(len(quotes), "", object) if dates is None else dates.astype(str)
            _refuse_unknown("date", (self.date,), sorted(set(texts.tolist()) - {""}))
            shown &= texts == self.date
        return shown


WHOLE = View()


def is_panel(calibration: Any) -> bool:
    """Return whether a calibration has a latent parameter per group."""
    return bool(getattr(calibration, "latent", None))


def caption(calibration: Any, view: View = WHOLE) -> str:
    """Return a line with underlying, dates, file, objective and fit error."""
    quotes = calibration.used
    parts = [*_values(quotes, "underlying", 3), *_span(quotes, view.date)]
    parts += [] if view.source is None else [view.source]
    weights = "" if calibration.weights == "none" else f", weights {calibration.weights}"
    residual = {"price": "price", "implied_vol": "implied volatility"}[calibration.residual]
    parts.append(f"{residual} residuals{weights}")
    return printable(" · ".join([*parts, f"fit error {calibration.fit_errors.sentence}"]))


def _values(quotes: Quotes, label: str, most: int) -> list[str]:
    if label not in quotes.labels:
        return []
    names = sorted({str(name) for name in quotes.labels[label].tolist()} - {"", "None"})
    return [", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")] if names else []


def _span(quotes: Quotes, date: str | None) -> list[str]:
    if date is not None:
        return [date]
    if "date" not in quotes.labels:
        return []
    dates = sorted({str(day) for day in quotes.labels["date"].tolist()} - {"", "None"})
    return [] if not dates else [dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"]


def _refuse_unknown(what: str, asked: tuple[str, ...], there: list[str]) -> None:
    missing = [name for name in asked if name not in there]
    if missing:
        some = ", ".join(there[:LISTED]) + (f" and {len(there) - LISTED} more" if len(there) > LISTED else "")
        raise UsageError(f"{what} {missing[0]!r}: no quote has it. There are {some or 'none'}.", missing=missing)
