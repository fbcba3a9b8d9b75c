"""Residuals: observed minus model, over log-moneyness and by date, which shows a bad day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from strikeout.plots import style
from strikeout.plots.residual_map import residuals_in
from strikeout.plots.view import WHOLE, View, caption

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
    view: View = WHOLE,
) -> Figure:
    """Return a figure of the residuals: over log-moneyness, and by quote date (by expiry if there are no dates).

    They are in price, or in the unit of the view. The band is twice the root mean square error, which contains all but
    a twentieth of normal noise.

    Args:
        marked: ids of quotes to draw in another colour, named by ``marked_as``.

    Raises:
        UnknownIdError: an id that no quote of the calibration has.
    """
    quotes, shown = calibration.used, view.rows(calibration.used)
    residuals, unit = residuals_in(calibration, view.unit or "price")
    quotes, residuals = (quotes, residuals) if shown.all() else (quotes[shown], residuals[shown])
    rmse = float(np.sqrt(np.nanmean(residuals * residuals)))
    dates = quotes.labels.get("date")
    picks = np.isin(quotes.ids, quotes.only(marked).ids)
    has_dates = dates is not None and len(np.unique(dates.astype(str))) > 1
    with style.styled():
        figure = style.blank(height=3.0)
        style.title(
            figure,
            title or f"Residuals, RMSE {rmse:.3g} {'in price' if unit == 'price' else unit}",
            [(marked_as, style.MODEL, "o"), ("other quotes", style.MARKET, "o")] if picks.any() else (),
            caption=caption(calibration, view),
        )
        left, right = figure.subplots(1, 2, sharey=True)
        _draw(left, quotes.contracts.log_moneyness, residuals, picks, rmse)
        left.set_xlabel("log-moneyness, ln(strike / forward)")
        left.set_ylabel(f"observed - model, {'in price' if unit == 'price' else unit}")
        if has_dates and dates is not None:
            names, places = np.unique(dates.astype(str), return_inverse=True)
            _draw(right, places.astype(float), residuals, picks, rmse)
            named = np.unique(np.linspace(0, len(names) - 1, min(MOST_DATES_NAMED, len(names))).round().astype(int))
            right.set_xticks(named, [_short(names[n]) for n in named])
            right.set_xlabel("quote date")
        else:
            _draw(right, quotes.contracts.expiry, residuals, picks, rmse)
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
