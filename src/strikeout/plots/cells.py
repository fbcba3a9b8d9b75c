"""The cells of a map: expiry by moneyness, or by a label."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.fit_errors import expiry_names
from strikeout.kernels import black
from strikeout.plots import style
from strikeout.plots.view import is_panel
from strikeout.quotes.conditions import literal
from strikeout.quotes.contracts import Contracts
from strikeout.statistics.groups import column_of
from strikeout.statistics.shards import DAYS_PER_YEAR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

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
    place: Numbers
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


def length(years: float) -> str:
    """Return a time to expiry in words.

    >>> length(1 / 365), length(0.25), length(2.0)
    ('1 day', '91 days', '2 years')
    """
    days = years * 365
    number, unit = (f"{days:.0f}" if days > 9.5 else f"{days:.2g}", "day") if days < 360 else (f"{years:.3g}", "year")
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


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
        return Axis("expiry", tuple(length(day / 365.0) for day in distinct), row.ravel(), conditions=conditions)
    held, row = np.unique(np.searchsorted(EDGES, days), return_inverse=True)
    names = tuple(f"to {BUCKETS[i]}" if i < len(EDGES) else BUCKETS[i] for i in held)
    limits = [None, *EDGES.tolist(), None]
    # Rounded as above, so that 30 days that are 30 + 1e-14 in years times 365 are in the same cell.
    conditions = tuple(_range(f"round({column}, 6)", limits[i], limits[i + 1], is_upper=True) for i in held)
    return Axis("expiry", names, row.ravel(), conditions=conditions)


def label_axis(quotes: Quotes, by: str) -> Axis:
    """Return one column per value of a label.

    Raises:
        UsageError: the quotes have no such label.
    """
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
