"""A map of influence: the dates, expiries and strikes on which the parameters depend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from strikeout.assurance.influence import deletions_by
from strikeout.plots import style
from strikeout.plots.cells import Axis, expiry_axis, label_axis, moneyness_axis, name_sides, ratio_axis
from strikeout.plots.view import WHOLE, View, caption
from strikeout.tables import Cell, Table, number

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
    count: NDArray[np.intp]
    moves: dict[str, Floats]  # of each parameter if the cell is struck out, in standard errors

    @property
    def expiries(self) -> tuple[str, ...]:
        return self.down.names

    @property
    def columns(self) -> tuple[str, ...]:
        """The dates, values of the label, or ranges of moneyness."""
        return self.across.names

    def largest(self) -> tuple[str, str]:
        """Return the column and the expiry with the largest distance."""
        row, column = np.unravel_index(np.nanargmax(self.distance), self.distance.shape)
        return self.columns[column], self.expiries[row]

    def first(self, most: int, *, least: float = 0.0) -> list[tuple[str, str]]:
        """Return the most influential cells in words, each with the condition that selects its quotes.

        Args:
            least: the share of the largest distance below which a cell is left out.
        """
        if not self.down.conditions or not self.across.conditions:
            return []
        order = np.argsort(-np.nan_to_num(self.distance, nan=-1.0, posinf=np.inf), axis=None, kind="stable")[:most]
        places = [divmod(place, len(self.columns)) for place in order.tolist()]
        return [
            (
                f"{self.columns[column]}, {self.expiries[row]}",
                f"{self.across.conditions[column]} and {self.down.conditions[row]}",
            )
            for row, column in places
            if self.count[row, column] and self.distance[row, column] >= least * self.distance[places[0]]
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a cell without quotes is None; the text "all" if everything depends on it."""
        cells = style.plain(self.distance)
        for row, column in np.argwhere(np.isinf(self.distance)).tolist():
            cells[row][column] = "all"
        return {
            "across": self.across.label,
            "columns": list(self.columns),
            "expiries": list(self.expiries),
            "cooks_distance": cells,
            "count": self.count.tolist(),
            "moves": {name: style.plain(moves) for name, moves in self.moves.items()},
        }

    def to_table(self, most: int | None = None) -> Table:
        """Return one row per cell with quotes, the most influential first; all of them, or the first ones."""
        heads = (self.across.label, "expiry", "quotes", "Cook's distance", *(f"{name}, SE" for name in self.moves))
        order = np.argsort(-np.nan_to_num(self.distance, nan=-1.0, posinf=np.inf), axis=None, kind="stable")
        order = order[self.count.ravel()[order] > 0][:most]
        places = [divmod(place, len(self.columns)) for place in order.tolist()]
        rows: list[list[Cell]] = [
            [
                self.columns[column],
                self.expiries[row],
                number(int(self.count[row, column]), ",d"),
                number(float(self.distance[row, column]), ".3g"),
                *(number(float(moves[row, column]), "+.2g") for moves in self.moves.values()),
            ]
            for row, column in places
        ]
        return Table(heads, rows, numbers=tuple(range(2, len(heads))), whole=(0, 1))


def influence_map(
    calibration: Calibration, *, by: str | None = None, down: str | None = None, view: View = WHOLE
) -> InfluenceMap:
    """Return the effect of striking out each expiry and date; for a single day, each expiry and range of moneyness.

    Args:
        by: the label across, instead of the date; "moneyness" for strike over forward.
        down: the label down, instead of the expiry in calendar days.
        view: chooses the expiries and the date whose quotes make cells; the calibration stays that of all quotes.

    Raises:
        UsageError: the quotes have no such label, or none has the expiry or date of the view.
        RefusedError: the quotes do not determine the parameters.
    """
    shown = view.rows(calibration.used)
    quotes = calibration.used[np.flatnonzero(shown)]
    rows = expiry_axis(quotes, at_most=MOST_EXPIRIES) if down is None else label_axis(quotes, down)
    is_single_day = by is None and not _has_several_dates(quotes)
    across = (
        moneyness_axis(calibration, quotes)
        if is_single_day
        else ratio_axis(quotes)
        if by == "moneyness" and by not in quotes.labels
        else label_axis(quotes, by or "date")
    )
    shape = len(rows.names), len(across.names)
    size = shape[0] * shape[1]
    cell = np.full(len(shown), size, np.intp)  # quotes that are not shown are a group of their own, left out below
    cell[shown] = rows.place * shape[1] + across.place
    groups, found, names = deletions_by(calibration, cell)
    place = groups.keys["group"]

    def laid_out(values: Floats, empty: float = np.nan) -> Floats:
        cells = np.full(size + 1, empty)
        cells[place] = values
        return cells[:size].reshape(shape)

    moves = {name: laid_out(found.dfbetas[:, n]) for n, name in enumerate(names)}
    count = laid_out(found.count.astype(float), 0.0).astype(np.intp)
    return InfluenceMap(rows, across, laid_out(found.cooks_d), count, moves)


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
    found = influence_map(calibration, by=by, down=down, view=view)
    return figure_of_map(found, title=title, caption=caption(calibration, view))


def figure_of_map(found: InfluenceMap, *, title: str | None = None, caption: str = "") -> Figure:
    """Return a figure of a map that was computed before."""
    shades = np.where(np.isfinite(found.distance) & (found.distance > 0.0), found.distance, np.nan)
    top = float(np.nanmax(shades)) if np.isfinite(shades).any() else 1.0
    with style.styled():
        figure = style.blank(height=1.75 + 0.28 * max(len(found.expiries), 3))
        column, expiry = found.largest()
        where = f"expiry {expiry}, {column} deviations" if found.across.edges else f"{column}, {expiry}"
        style.title(figure, title or f"Influence: {where} moves the parameters most", caption=caption)
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
