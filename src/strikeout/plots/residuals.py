"""Residuals: observed minus model, over log-moneyness and by date, where a bad day stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from strikeout.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from strikeout.calibration.calibration import Calibration

Floats = NDArray[np.float64]
MOST_DATES_NAMED = 4


def plot_residuals(
    calibration: Calibration,
    *,
    title: str | None = None,
    marked: ArrayLike = (),
    marked_as: str = "marked",
) -> Figure:
    """A figure of the residuals in price: over log-moneyness, and by quote date (by expiry where there are no dates).

    The band is twice the root mean square error, where all but a twentieth of normal noise would be.

    Args:
        marked: ids of quotes to draw in another colour, named by ``marked_as``.

    Raises:
        UnknownIdError: an id that no quote of the calibration has.
    """
    quotes, residuals = calibration.used, calibration.residuals
    dates = quotes.labels.get("date")
    picks = np.isin(quotes.ids, quotes.only(marked).ids)
    has_dates = dates is not None and len(np.unique(dates.astype(str))) > 1
    with style.styled():
        figure = style.blank(height=2.8)
        style.title(
            figure,
            title or f"Residuals, RMSE {calibration.rmse:.3g}",
            [(marked_as, style.MODEL, "o"), ("other quotes", style.MARKET, "o")] if picks.any() else (),
        )
        left, right = figure.subplots(1, 2, sharey=True)
        _draw(left, quotes.contracts.log_moneyness, residuals, picks, calibration.rmse)
        left.set_xlabel("log-moneyness, ln(strike / forward)")
        left.set_ylabel("observed - model, in price")
        if has_dates and dates is not None:
            names, places = np.unique(dates.astype(str), return_inverse=True)
            _draw(right, places.astype(float), residuals, picks, calibration.rmse)
            named = np.unique(np.linspace(0, len(names) - 1, min(MOST_DATES_NAMED, len(names))).round().astype(int))
            right.set_xticks(named, [_short(names[n]) for n in named])
            right.set_xlabel("quote date")
        else:
            _draw(right, quotes.contracts.expiry, residuals, picks, calibration.rmse)
            right.set_xlabel("expiry, years")
    return figure


def _draw(panel: Axes, x: Floats, residuals: Floats, picks: NDArray[np.bool_], rmse: float) -> None:
    panel.axhspan(-2 * rmse, 2 * rmse, color=style.FAINT, alpha=0.12, linewidth=0)
    panel.axhline(0.0, color=style.FAINT, linewidth=0.8)
    are_many = len(x) > style.MANY // 3
    for rows, colour, size, opacity in ((~picks, style.MARKET, 5.0, 0.5), (picks, style.MODEL, 9.0, 0.9)):
        panel.scatter(x[rows], residuals[rows], s=size, color=colour, alpha=opacity, linewidth=0, rasterized=are_many)


def _short(date: str) -> str:
    return date if len(date) <= 10 else date[:10]
