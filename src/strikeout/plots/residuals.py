"""Residuals, observed minus model: over log-moneyness, by date, which shows a bad day, and as a heat map by expiry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.fit_errors import implied_volatilities
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.plots import style
from strikeout.plots.influence_map import TALL, Axis, expiry_axis, moneyness_axis, name_sides
from strikeout.plots.style import WHOLE, Unit, View, caption
from strikeout.text import agreeing, many

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration

MOST_EXPIRIES = 60
FULL = 0.9  # of the cells lie within the colours; the rest has the strongest one


@dataclass(frozen=True, eq=False)
class ResidualMap:
    """The mean residual, observed - model, of every expiry and column of moneyness; not-a-number without quotes.

    ``unit`` is the unit of residuals: each quote's own spread, volatility points, price, or the RMSE of all.
    """

    expiries: Axis
    moneyness: Axis
    mean: Floats  # (expiries, columns)
    count: Rows
    unit: str
    left_out: int  # quotes that have no residual in this unit

    @property
    def strongest(self) -> float:
        """The residual that has the strongest colour."""
        sizes = np.abs(self.mean[np.isfinite(self.mean)])
        return float(np.quantile(sizes, FULL)) if sizes.size and sizes.max() > 0.0 else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a cell without quotes is None."""
        return {
            "unit": self.unit,
            "expiries": list(self.expiries.names),
            "moneyness": list(self.moneyness.names),
            "mean": style.plain(self.mean),
            "count": self.count.tolist(),
            "strongest": self.strongest,
            "left_out": self.left_out,
        }


def residual_map(calibration: Calibration, *, view: View = WHOLE) -> ResidualMap:
    """Return the residuals of a calibration by expiry and moneyness."""
    size, unit = residuals_in(calibration, view.unit)
    quotes, shown = calibration.used, view.rows(calibration.used)
    quotes, size = (quotes, size) if shown.all() else (quotes[shown], size[shown])
    used = np.isfinite(size)
    down, across = expiry_axis(quotes, at_most=MOST_EXPIRIES), moneyness_axis(calibration, quotes)
    cells = (len(down.names), len(across.names))
    place = (down.place * cells[1] + across.place)[used]
    count = np.bincount(place, minlength=cells[0] * cells[1])
    total = np.bincount(place, size[used], minlength=cells[0] * cells[1])
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return ResidualMap(down, across, mean.reshape(cells), count.reshape(cells), unit, int(np.count_nonzero(~used)))


def residuals_in(calibration: Calibration, unit: Unit | None) -> tuple[Floats, str]:
    """Return the residuals in a unit, not-a-number for quotes without it, and its name.

    Without a unit it is the spread; the RMSE if no spread is known.
    """
    quotes, residual = calibration.used, calibration.residuals
    known = np.isfinite(quotes.spread) & (quotes.spread > 0.0)
    if unit == "vol_points":
        market, model = implied_volatilities(quotes, residual)
        return 100.0 * (market - model), "volatility points"
    if unit == "price":
        return residual, "price"
    if unit == "spreads" or known.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(known, residual / quotes.spread, np.nan), "spreads"
    return residual / (calibration.rmse or 1.0), "RMSE"


def plot_residual_map(calibration: Calibration, *, title: str | None = None, view: View = WHOLE) -> Figure:
    """Return a figure of the mean residual, expiry by moneyness: blue if the market is dearer, orange if cheaper.

    Residuals are in spreads of the quotes, in RMSE if no spread is known, or in the unit of the view. A tenth of the
    cells may lie beyond the strongest colour, so that a single bad one does not pale all others.
    """
    found = residual_map(calibration, view=view)
    rows = len(found.expiries.names)
    with style.styled():
        figure = style.blank(height=1.75 + max(0.2 * min(rows, TALL), 0.085 * rows, 0.8))
        headline = title or f"Residuals in {found.unit}, by expiry and moneyness"
        style.title(figure, headline, caption=caption(calibration, view))
        panel = figure.subplots()
        mesh = panel.pcolormesh(
            np.arange(len(found.moneyness.names) + 1) - 0.5,
            np.arange(rows + 1) - 0.5,
            found.mean,
            cmap=style.apart(),
            vmin=-found.strongest,
            vmax=found.strongest,
            rasterized=found.mean.size > style.MANY,
        )
        name_sides(panel, found.expiries, found.moneyness)
        figure.colorbar(
            mesh, ax=panel, label=f"observed - model, {found.unit}", pad=0.01, extend="both", extendfrac=0.02
        )
        if found.left_out:
            gone = f"without a residual in {found.unit} {agreeing(found.left_out, 'is', 'are')} left out"
            figure.supxlabel(f"{many(found.left_out, 'quote')} {gone}", fontsize=8.5)
    return figure


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


def _draw(panel: Axes, x: Floats, residuals: Floats, picks: Mask, rmse: float) -> None:
    panel.axhspan(-2 * rmse, 2 * rmse, color=style.FAINT, alpha=0.12, linewidth=0)
    panel.axhline(0.0, color=style.FAINT, linewidth=0.8)
    are_many = len(x) > style.MANY // 3
    for rows, colour, size, opacity in ((~picks, style.MARKET, 5.0, 0.5), (picks, style.MODEL, 9.0, 0.9)):
        panel.scatter(x[rows], residuals[rows], s=size, color=colour, alpha=opacity, linewidth=0, rasterized=are_many)


def _short(date: str) -> str:
    return date if len(date) <= 10 else date[:10]
