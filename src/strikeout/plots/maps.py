"""Maps drawn as SVG: influence by date and expiry, residuals by moneyness and expiry."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats, Rows
from strikeout.plots.drawing import Drawing, element, short, text
from strikeout.plots.influence_map import DECADES, Axis, InfluenceMap, influence_map
from strikeout.plots.residuals import residual_map
from strikeout.plots.style import WHOLE, View
from strikeout.tables import Cell, Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 960.0, 84.0, 6.0, 6.0, 40.0
SHADES = 8  # of a size, h1 to h8 in the style sheet
SIDES = 4  # shades of each sign, d1 to d4 and n1 to n4
NAMES_ACROSS = 9
MOST_COLUMNS = 370  # dates across; more are shown by month
LISTED = 3  # cells named in the alternative text


@dataclass(frozen=True)
class Shading:
    """How the values of a map are shown: the class of each, what they are called, and the ends of the key."""

    name: str
    shade: Callable[[float], str]
    keys: Sequence[tuple[str, str]]  # (class, text)


def map_for_page(calibration: Calibration, by: str | None = None) -> InfluenceMap:
    """Return the influence by expiry and a label: by default the date, the month if there are many, or moneyness."""
    dates = calibration.used.labels.get("date")
    count = 0 if dates is None else len(np.unique(dates.astype(str)))
    return influence_map(
        calibration, by=by or ("month" if count > MOST_COLUMNS else "date" if count > 1 else "moneyness")
    )


def draw_influence(
    found: InfluenceMap, *, parameter: str | None = None, chosen: str | None = None, most: int | None = None
) -> Drawing:
    """Return a map of Cook's distance, or of the move of one parameter in standard errors.

    Args:
        parameter: colour the cells by the move of this parameter instead.
        chosen: the name of a column to mark.
        most: rows of the table; all cells by default.
    """
    if parameter is not None and parameter not in found.moves:
        names = ", ".join(found.moves)
        raise UsageError(f"{parameter!r} is not a parameter that is fitted. There are {names}.", parameter=parameter)
    values = found.distance if parameter is None else found.moves[parameter]
    shading = _by_size(values) if parameter is None else _by_sign(values, f"move of {parameter}", "standard errors")
    table = found.to_table(most)
    first = "; ".join(
        f"{row[0]}, expiry {row[1]}: {row[3].text if not isinstance(row[3], str) else row[3]}"
        for row in table.rows[:LISTED]
    )
    expiries = many(len(found.expiries), "expiry", "expiries")
    sides = f"{many(len(found.columns), 'column')} ({found.across.label}) by {expiries}"
    what = "Cook's distance" if parameter is None else f"The move of {parameter} in standard errors"
    tips = _tips(found.down, found.across, found.count, values)
    svg = _map(found.down, found.across, values, shading, tips=tips, chosen=chosen)
    alternative = f"{what} of each cell, {sides}. The largest Cook's distances: {first}."
    return Drawing(svg, table, f"Influence by {found.across.label} and expiry", alternative)


def draw_residuals(calibration: Calibration, *, view: View = WHOLE) -> Drawing:
    """Return a map of the mean residual, observed - model, by moneyness and expiry, in spreads or in RMSE."""
    found = residual_map(calibration, view=view)
    shading = _by_sign(found.mean, "observed - model", found.unit, strongest=found.strongest)
    rows: list[list[Cell]] = [
        [
            found.moneyness.names[column],
            found.expiries.names[row],
            number(int(found.count[row, column]), ",d"),
            number(float(found.mean[row, column]), "+.3g"),
        ]
        for row, column in np.argwhere(found.count > 0).tolist()
    ]
    heads = ("standard deviations", "expiry", "quotes", f"mean residual, {found.unit}")
    table = Table(heads, rows, numbers=(2, 3), whole=(0, 1))
    worst = ""
    if np.isfinite(found.mean).any():
        row, column = np.unravel_index(np.nanargmax(np.abs(found.mean)), found.mean.shape)
        where = f"{found.moneyness.names[column]} deviations, expiry {found.expiries.names[row]}"
        worst = f" The largest: {where}: {found.mean[row, column]:+.3g}."
    tips = _tips(found.expiries, found.moneyness, found.count, found.mean)
    svg = _map(found.expiries, found.moneyness, found.mean, shading, tips=tips, width=480.0)
    alternative = f"Mean residuals in {found.unit} by moneyness and expiry.{worst}"
    return Drawing(svg, table, f"Residuals in {found.unit}", alternative)


def _by_size(values: Floats) -> Shading:
    known = values[np.isfinite(values) & (values > 0.0)]
    top = float(known.max()) if known.size else 1.0
    low = top * 10.0**-DECADES

    def shade(value: float) -> str:
        if not isfinite(value):
            return "hx"
        part = 1.0 + log10(max(value, low) / top) / DECADES
        return f"h{min(max(ceil(part * SHADES), 1), SHADES)}"

    keys = [(f"h{n}", "") for n in range(1, SHADES + 1)]
    keys[0], keys[-1] = ("h1", short(low, 2)), (f"h{SHADES}", short(top, 2))
    return Shading("Cook's distance", shade, keys)


def _by_sign(values: Floats, name: str, unit: str, *, strongest: float | None = None) -> Shading:
    known = np.abs(values[np.isfinite(values)])
    top = strongest or (float(known.max()) if known.size and known.max() > 0.0 else 1.0)

    def shade(value: float) -> str:
        if not isfinite(value):
            return "hx"
        level = min(round(abs(value) / top * SIDES), SIDES)
        return "d0" if level == 0 else f"{'p' if value > 0 else 'n'}{level}"

    keys = [*((f"n{n}", "") for n in range(SIDES, 0, -1)), ("d0", ""), *((f"p{n}", "") for n in range(1, SIDES + 1))]
    keys[0], keys[-1] = (f"n{SIDES}", short(-top, 2)), (f"p{SIDES}", short(top, 2))
    return Shading(f"{name}, {unit}", shade, keys)


def _tips(down: Axis, across: Axis, count: Rows, values: Floats) -> dict[str, Any]:
    """Return the names and conditions of both sides, for the script that shows readouts and collects cells."""
    return {
        "data_x": json.dumps(across.names),
        "data_y": json.dumps(down.names),
        "data_where_x": json.dumps(across.conditions),
        "data_where_y": json.dumps(down.conditions),
        "count": count,
        "values": values,
    }


def _map(
    down: Axis,
    across: Axis,
    values: Floats,
    shading: Shading,
    *,
    tips: dict[str, Any],
    chosen: str | None = None,
    width: float = WIDTH,
) -> str:
    rows, columns = values.shape
    tall = 26.0 if rows <= 6 else 18.0 if rows <= 12 else 11.0
    height = TOP + tall * rows + BOTTOM
    wide = (width - LEFT - RIGHT) / columns
    gap = 0.0 if wide < 4.0 else 0.6
    count, numbers = tips.pop("count"), tips.pop("values")
    parts = []
    for row in range(rows):
        y = TOP + tall * (rows - 1 - row)  # short expiries at the bottom, as in the figures
        for column in range(columns):
            if not count[row, column]:
                continue
            value = float(numbers[row, column])
            shown = "all" if not isfinite(value) else f"{value:.3g}"
            parts.append(
                f'<rect x="{LEFT + wide * column:.2f}" y="{y:.1f}" width="{max(wide - gap, 0.5):.2f}" '
                f'height="{tall - 0.8:.1f}" class="{shading.shade(value)}" '
                f'data-c="{column}" data-r="{row}" data-v="{shown}" data-n="{count[row, column]}"/>'
            )
    names = [
        text(name[:14], LEFT - 6.0, TOP + tall * (rows - 1 - n) + tall / 2 + 3.5, class_="so-tick", text_anchor="end")
        for n, name in _sparse(down.names, int((height - BOTTOM) // 11))
    ]
    below = TOP + tall * rows
    for n, name in _sparse(across.names, min(NAMES_ACROSS, int((width - LEFT) // 95))):
        at = LEFT + wide * (n + 0.5)
        anchor, place = ("end", width - RIGHT) if at > width - 36.0 else ("middle", at)
        names.append(text(name[:14], place, below + 13.0, class_="so-tick", text_anchor=anchor))
    mark = [
        element(
            "rect", x=LEFT + wide * n - 0.5, y=TOP - 3.0, width=wide + 1.0, height=tall * rows + 5.0, class_="so-chosen"
        )
        for n, name in enumerate(across.names)
        if name == chosen
    ]
    back = element("rect", x=LEFT, y=TOP, width=width - LEFT - RIGHT, height=tall * rows, class_="so-empty")
    inside = [back, f'<g class="so-cells">{"".join(parts)}</g>', *mark, *names, *_key(shading, width, below + 20.0)]
    return element(
        "svg", *inside, class_="so-chart so-map", viewBox=f"0 0 {width:g} {height:g}", role="img",
        aria_label=shading.name, **tips,
    )  # fmt: skip


def _key(shading: Shading, width: float, y: float) -> list[str]:
    size = 11.0
    start = width - RIGHT - size * len(shading.keys) - 48.0
    parts = [text(shading.name, start - 58.0, y + 11.0, class_="so-tick", text_anchor="end")]
    parts += [
        element("rect", x=start + size * n, y=y + 3.0, width=size, height=9.0, class_=name)
        for n, (name, _) in enumerate(shading.keys)
    ]
    parts.append(text(shading.keys[0][1], start - 4.0, y + 11.0, class_="so-tick", text_anchor="end"))
    parts.append(text(shading.keys[-1][1], start + size * len(shading.keys) + 4.0, y + 11.0, class_="so-tick"))
    return parts


def _sparse(names: Sequence[str], most: int) -> list[tuple[int, str]]:
    """Return evenly chosen names with their places, as many as can be read."""
    count = min(max(most, 2), len(names))
    places = np.unique(np.linspace(0, len(names) - 1, count).round().astype(int))
    return [(n, names[n]) for n in places.tolist()]
