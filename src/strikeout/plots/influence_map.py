"""A map of influence: the dates, expiries and strikes on which the parameters depend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from strikeout.assurance.influence import influence
from strikeout.plots import style
from strikeout.plots.cells import Axis, expiry_axis, label_axis, moneyness_axis, name_sides
from strikeout.plots.view import WHOLE, View, caption

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]

MOST_EXPIRIES = 12  # beyond, expiries are put in fixed buckets: in a panel over days nearly every one is distinct
DECADES = 4  # of Cook's distance shown below the largest; what is smaller has the palest colour


@dataclass(frozen=True, eq=False)
class InfluenceMap:
    """Cook's distance of every expiry and date (or other label, or moneyness).

    Not-a-number for a cell without quotes, infinite if the parameters depend on that cell alone.
    """

    down: Axis
    across: Axis
    distance: Floats  # (expiries, columns)

    @property
    def expiries(self) -> tuple[str, ...]:
        return self.down.names

    @property
    def columns(self) -> tuple[str, ...]:
        """The dates, values of the label, or ranges of moneyness."""
        return self.across.names

    def largest(self) -> tuple[str, str]:
        """The column and the expiry with the largest distance."""
        row, column = np.unravel_index(np.nanargmax(self.distance), self.distance.shape)
        return self.columns[column], self.expiries[row]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a cell without quotes is None; the text "all" if everything depends on it."""
        cells = style.plain(self.distance)
        for row, column in np.argwhere(np.isinf(self.distance)).tolist():
            cells[row][column] = "all"
        return {
            "across": self.across.label,
            "columns": list(self.columns),
            "expiries": list(self.expiries),
            "cooks_distance": cells,
        }


def influence_map(calibration: Calibration, *, by: str | None = None, down: str | None = None) -> InfluenceMap:
    """Return the effect of striking out each expiry and date; for a single day, each expiry and range of moneyness.

    Args:
        by: the label across, instead of the date.
        down: the label down, instead of the expiry in calendar days.

    Raises:
        UsageError: the quotes have no such label.
        RefusedError: the quotes do not determine the parameters.
    """
    quotes = calibration.used
    rows = expiry_axis(quotes, at_most=MOST_EXPIRIES) if down is None else label_axis(quotes, down)
    is_single_day = by is None and not _has_several_dates(quotes)
    across = moneyness_axis(calibration, quotes) if is_single_day else label_axis(quotes, by or "date")
    found = influence(calibration, rows.place * len(across.names) + across.place)
    distance = np.full(len(rows.names) * len(across.names), np.nan)
    distance[found["group"]] = found["cooks_d"]
    return InfluenceMap(rows, across, distance.reshape(len(rows.names), len(across.names)))


def plot_influence_map(
    calibration: Calibration,
    *,
    title: str | None = None,
    by: str | None = None,
    down: str | None = None,
    view: View = WHOLE,
) -> Figure:
    """Return a figure of Cook's distance, date by expiry: how far the parameters move if that cell is struck out.

    For a single day, moneyness by expiry. A distance of 1 is a move to the edge of the joint region of about one
    standard error. A cross marks a cell without which the parameters are not determined.

    Raises:
        UsageError: the quotes have no such label.
        RefusedError: the quotes do not determine the parameters.
    """
    found = influence_map(calibration, by=by, down=down)
    shades = np.where(np.isfinite(found.distance) & (found.distance > 0.0), found.distance, np.nan)
    top = float(np.nanmax(shades)) if np.isfinite(shades).any() else 1.0
    with style.styled():
        figure = style.blank(height=1.75 + 0.28 * max(len(found.expiries), 3))
        column, expiry = found.largest()
        where = f"expiry {expiry}, {column} deviations" if found.across.edges else f"{column}, {expiry}"
        style.title(
            figure, title or f"Influence: {where} moves the parameters most", caption=caption(calibration, view)
        )
        panel = figure.subplots()
        mesh = panel.pcolormesh(
            np.arange(len(found.columns) + 1) - 0.5,
            np.arange(len(found.expiries) + 1) - 0.5,
            np.clip(shades, top * 10.0**-DECADES, None),
            norm=LogNorm(vmin=top * 10.0**-DECADES, vmax=top),
            cmap="Blues",
            rasterized=shades.size > style.MANY,
        )
        lost_rows, lost_columns = np.nonzero(np.isinf(found.distance))
        panel.plot(lost_columns, lost_rows, linestyle="", marker="x", color=style.MODEL, markersize=5)
        name_sides(panel, found.down, found.across)
        figure.colorbar(mesh, ax=panel, label="Cook's distance", pad=0.01)
    return figure


def _has_several_dates(quotes: Quotes) -> bool:
    dates = quotes.labels.get("date")
    return dates is not None and len(np.unique(dates.astype(str))) > 1
