"""A heat map of residuals by expiry and moneyness, in spreads, volatility points or price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from strikeout.calibration.fit_errors import implied_volatilities
from strikeout.plots import style
from strikeout.plots.cells import TALL, Axis, expiry_axis, moneyness_axis, name_sides
from strikeout.plots.view import WHOLE, Unit, View, caption
from strikeout.text import agreeing, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

Floats = NDArray[np.float64]

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
    count: NDArray[np.intp]
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
    """Return the residuals of a calibration by expiry and moneyness.

    Raises:
        UsageError: the calibration holds no quotes, or quotes that are not options, or none in this view.
    """
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

    Raises:
        UsageError: the calibration holds no quotes, or quotes that are not options, or none in this view.
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
            cmap=style.APART,
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
