"""A heat map of residuals: where the model is too dear or too cheap, in units of the spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from strikeout.plots import style
from strikeout.plots.cells import TALL, Axis, expiry_axis, moneyness_axis, name_sides
from strikeout.wording import agreeing, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

Floats = NDArray[np.float64]

MOST_EXPIRIES = 60
FULL = 0.9  # of the cells lie within the colours; the rest has the strongest one


@dataclass(frozen=True, eq=False)
class ResidualMap:
    """The mean residual, observed - model, of every expiry and column of moneyness; not-a-number where none is quoted.

    ``unit`` is what residuals are counted in: each quote's own spread, or the RMSE of all where spreads are unknown.
    """

    expiries: Axis
    moneyness: Axis
    mean: Floats  # (expiries, columns)
    count: NDArray[np.intp]
    unit: str
    left_out: int  # quotes without a spread, where others have one

    @property
    def strongest(self) -> float:
        """The residual that has the strongest colour."""
        sizes = np.abs(self.mean[np.isfinite(self.mean)])
        return float(np.quantile(sizes, FULL)) if sizes.size and sizes.max() > 0.0 else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a cell without quotes is None."""
        return {
            "unit": self.unit,
            "expiries": list(self.expiries.names),
            "moneyness": list(self.moneyness.names),
            "mean": style.plain(self.mean),
            "count": self.count.tolist(),
            "strongest": self.strongest,
            "left_out": self.left_out,
        }


def residual_map(calibration: Calibration) -> ResidualMap:
    """The residuals of a calibration by expiry and moneyness.

    Raises:
        UsageError: the calibration holds no quotes, or quotes that are no options.
    """
    quotes, residual = calibration.used, calibration.residuals
    known = np.isfinite(quotes.spread) & (quotes.spread > 0.0)
    has_spreads = bool(known.any())
    with np.errstate(divide="ignore", invalid="ignore"):
        size = residual / (quotes.spread if has_spreads else (calibration.rmse or 1.0))
    used = known if has_spreads else np.ones(len(quotes), bool)
    down, across = expiry_axis(quotes, at_most=MOST_EXPIRIES), moneyness_axis(calibration, quotes)
    cells = (len(down.names), len(across.names))
    place = (down.place * cells[1] + across.place)[used]
    count = np.bincount(place, minlength=cells[0] * cells[1])
    total = np.bincount(place, size[used], minlength=cells[0] * cells[1])
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    unit = "spreads" if has_spreads else "RMSE"
    return ResidualMap(down, across, mean.reshape(cells), count.reshape(cells), unit, int(np.count_nonzero(~used)))


def plot_residual_map(calibration: Calibration, *, title: str | None = None) -> Figure:
    """A figure of the mean residual, expiry by moneyness: blue where the market is dearer, orange where cheaper.

    Residuals are in spreads of the quotes; in RMSE where no spread is known. A tenth of the cells may lie beyond the
    strongest colour, so that a single bad one does not pale all others.

    Raises:
        UsageError: the calibration holds no quotes, or quotes that are no options.
    """
    found = residual_map(calibration)
    rows = len(found.expiries.names)
    with style.styled():
        figure = style.blank(height=1.5 + max(0.2 * min(rows, TALL), 0.085 * rows, 0.8))
        style.title(figure, title or f"Residuals in {found.unit}, by expiry and moneyness")
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
            gone = f"without a spread {agreeing(found.left_out, 'is', 'are')} left out"
            figure.supxlabel(f"{many(found.left_out, 'quote')} {gone}", fontsize=8.5)
    return figure
