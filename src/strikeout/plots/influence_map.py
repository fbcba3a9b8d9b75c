"""A map of influence: the dates, expiries and strikes on which the parameters depend.

A cell is an expiry by moneyness, or by a label.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.assurance.influence import deletions_by
from strikeout.calibration.fit_errors import expiry_names
from strikeout.kernels import black
from strikeout.kernels.arrays import Floats, Rows
from strikeout.plots import style
from strikeout.plots.style import WHOLE, View, caption, is_panel
from strikeout.quotes.conditions import literal
from strikeout.quotes.contracts import Contracts
from strikeout.statistics.groups import column_of
from strikeout.statistics.shards import DAYS_PER_YEAR
from strikeout.tables import Cell, Table, number
from strikeout.text import duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes


EDGES = np.array([7.0, 14.0, 30.0, 60.0, 91.0, 182.0, 365.0, 730.0, 1825.0])  # days
BUCKETS = ("1w", "2w", "1m", "2m", "3m", "6m", "1y", "2y", "5y", "over 5y")
RATIOS = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 2.0])
CELL = 0.5  # standard deviations of the log-price: the width of a column of moneyness
FARTHEST = 6.0  # what lies beyond is in the outermost columns
MOST_NAMES = 6  # across
TALL = 26  # rows that can all be named
MINUS = "\N{MINUS SIGN}"  # as matplotlib writes it everywhere else


@dataclass(frozen=True, eq=False)
class Axis:
    """One side of a map: a name per cell, and the cell of each quote. Moneyness has edges beside its names.

    ``conditions`` select the quotes of each cell in SQL; empty if no condition does.
    """

    label: str
    names: tuple[str, ...]
    place: Rows
    edges: tuple[float, ...] = ()
    conditions: tuple[str, ...] = ()

    def ticks(self, at_most: int) -> tuple[list[float], list[str]]:
        """Return positions and texts of ticks: whole numbers at their edges, or evenly chosen names of cells."""
        if self.edges:
            whole = [
                (n - 0.5, f"{edge:g}".replace("-", MINUS)) for n, edge in enumerate(self.edges) if edge == round(edge)
            ]
            return [at for at, _ in whole], [text for _, text in whole]
        chosen = np.unique(np.linspace(0, len(self.names) - 1, min(at_most, len(self.names))).round().astype(int))
        return chosen.astype(float).tolist(), [self.names[n][:10] for n in chosen]


def expiry_axis(quotes: Quotes, *, at_most: int) -> Axis:
    """Return one row per expiry; buckets of fixed edges if there are more than ``at_most``."""
    dates, place = expiry_names(quotes)
    if "expiry_date" in quotes.labels and len(dates) <= at_most and len(np.unique(quotes.contracts.expiry)) <= at_most:
        conditions = tuple(f"expiry_date = {literal(date)}" for date in dates)
        return Axis("expiry", tuple(dates), place, conditions=conditions)
    column = "maturity" if "maturity" not in quotes.labels else f"expiry_years * {DAYS_PER_YEAR:g}"
    days = np.round(quotes.contracts.expiry * 365.0, 6)
    distinct, row = np.unique(days, return_inverse=True)
    if len(distinct) <= at_most:
        edges = [None, *(shortest_between(low, high) for low, high in pairwise(distinct.tolist())), None]
        conditions = tuple(_range(column, low, high) for low, high in pairwise(edges))
        return Axis("expiry", tuple(duration(day / 365.0) for day in distinct), row.ravel(), conditions=conditions)
    held, row = np.unique(np.searchsorted(EDGES, days), return_inverse=True)
    names = tuple(f"to {BUCKETS[i]}" if i < len(EDGES) else BUCKETS[i] for i in held)
    limits = [None, *EDGES.tolist(), None]
    # Rounded as above, so that 30 days that are 30 + 1e-14 in years times 365 are in the same cell.
    conditions = tuple(_range(f"round({column}, 6)", limits[i], limits[i + 1], is_upper=True) for i in held)
    return Axis("expiry", names, row.ravel(), conditions=conditions)


def label_axis(quotes: Quotes, by: str) -> Axis:
    """Return one column per value of a label."""
    names, place = np.unique(column_of(quotes, by).astype(str), return_inverse=True)
    is_column = by in quotes.labels or by == "month"
    quoted = by if by.isidentifier() else '"' + by.replace('"', '""') + '"'
    conditions = tuple(f"{quoted} = {literal(name)}" for name in names.tolist()) if is_column else ()
    label = "quote date" if by == "date" else by
    return Axis(label, tuple(names.tolist()), place.ravel(), conditions=conditions)


def ratio_axis(quotes: Quotes) -> Axis:
    """Return strike over forward in fixed ranges, which a condition can select."""
    column = "moneyness" if "moneyness" not in quotes.labels else "strike / forward"
    ratio = quotes.contracts.strike / quotes.contracts.forward
    held, place = np.unique(np.searchsorted(RATIOS, ratio, side="right"), return_inverse=True)
    limits = [None, *RATIOS.tolist(), None]
    conditions = tuple(_range(column, limits[i], limits[i + 1]) for i in held)
    names = tuple(
        f"below {limits[i + 1]:g}"
        if limits[i] is None
        else f"from {limits[i]:g}"
        if limits[i + 1] is None
        else f"{limits[i]:g} to {limits[i + 1]:g}"
        for i in held
    )
    return Axis("strike / forward", names, place.ravel(), conditions=conditions)


def shortest_between(low: float, high: float) -> float:
    """Return a number between two others with as few decimals as possible.

    >>> shortest_between(43.45, 86.9), shortest_between(0.25, 0.26)
    (65.0, 0.255)
    """
    middle = 0.5 * (low + high)
    return next((x for x in (round(middle, digits) for digits in range(9)) if low < x < high), middle)


def _range(column: str, low: float | None, high: float | None, *, is_upper: bool = False) -> str:
    """Return the condition that a column is between two values; the lower one belongs to it, or the upper one."""
    at_least, at_most = (">", "<=") if is_upper else (">=", "<")
    parts = [f"{column} {at_least} {low:.9g}"] if low is not None else []
    parts += [f"{column} {at_most} {high:.9g}"] if high is not None else []
    return " and ".join(parts) or f"{column} is not null"


def moneyness_axis(calibration: Calibration, quotes: Quotes) -> Axis:
    """Return ln(strike / forward) in standard deviations to expiry, at the model's at-the-money volatility.

    The same column then means the same for a week and for five years. For a panel, the volatility of its last group.
    """
    contracts = quotes.contracts
    expiries, which = np.unique(contracts.expiry, return_inverse=True)
    at_the_money = Contracts(forward=1.0, strike=1.0, expiry=expiries, discount=1.0, is_call=True)
    parameters = calibration.parameters
    if is_panel(calibration):
        panel: Any = calibration
        parameters = panel.theta(panel.groups[-1])
    prices = calibration.model.price(parameters, at_the_money)
    deviation = black.implied_volatility(prices, 1.0, 1.0, expiries, 1.0, True) * np.sqrt(expiries)
    usual = float(np.nanmedian(deviation)) if np.isfinite(deviation).any() else sqrt(0.04)
    deviation = np.where(np.isfinite(deviation) & (deviation > 0.0), deviation, usual)
    most = round(FARTHEST / CELL)
    cell = np.floor(contracts.log_moneyness / deviation[which.ravel()] / CELL)
    place = np.clip(cell, -most, most - 1).astype(np.intp)
    first, last = int(place.min()), int(place.max())
    edges = tuple(CELL * n for n in range(first, last + 2))
    names = tuple(f"{low:.9g} to {high:g}" for low, high in pairwise(edges))
    return Axis("ln(strike / forward), standard deviations to expiry", names, place - first, edges)


def name_sides(panel: Axes, down: Axis, across: Axis) -> None:
    """Write the names of a map's cells beside it, as many as can be read."""
    panel.grid(visible=False)
    panel.set_facecolor(style.NOTHING)
    panel.set_yticks(*down.ticks(TALL))
    panel.set_xticks(*across.ticks(MOST_NAMES))
    panel.set_ylabel(down.label)
    panel.set_xlabel(across.label)


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
    count: Rows
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
    """
    found = influence_map(calibration, by=by, down=down, view=view)
    return figure_of_map(found, title=title, caption=caption(calibration, view))


def figure_of_map(found: InfluenceMap, *, title: str | None = None, caption: str = "") -> Figure:
    """Return a figure of a map that was computed before."""
    from matplotlib.colors import LogNorm

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
