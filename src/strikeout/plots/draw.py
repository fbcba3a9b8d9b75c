"""Interactive pictures for notebooks and pages of your own: ``so.draw``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from strikeout.assurance.influence import Influence
from strikeout.errors import UsageError
from strikeout.plots.drawing import Drawing
from strikeout.plots.influence_map import Axis, InfluenceMap, figure_of_map
from strikeout.plots.maps import draw_influence, draw_residuals, map_for_page
from strikeout.plots.panels import draw_path, draw_smiles
from strikeout.plots.style import WHOLE, View, caption, is_panel
from strikeout.plots.writing import PICTURES, plot
from strikeout.quotes.conditions import literal

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

KINDS = tuple(kind for kind in PICTURES if kind != "variance")


def draw(
    what: Calibration | Influence,
    kind: str | None = None,
    *,
    by: str | None = None,
    parameter: str | None = None,
    view: View = WHOLE,
) -> Drawing:
    """Return an interactive picture: smiles, residuals, influence or path of a calibration, or the map of influences.

    In a notebook it is shown as HTML with readouts; ``figure()`` is the same picture by matplotlib, and ``table`` has
    its numbers. Without a kind it is the smiles, for a panel its path, for influences their map.

    Args:
        by: the label across a map of influence; "moneyness" for strike over forward.
        parameter: colour a map of influence by the move of this parameter.
        view: the expiries and the date to show.

    Raises:
        UsageError: another kind, an unknown label or parameter, or influences that are not in groups.
        RefusedError: influence of quotes that do not determine the parameters.
    """
    if isinstance(what, Influence):
        found = map_of(what)
        return draw_influence(found, parameter=parameter).drawn_by(lambda: figure_of_map(found))
    kind = kind or ("path" if is_panel(what) else "smiles")
    if kind not in KINDS:
        raise UsageError(f"draw: {kind!r} is not a picture. Use one of {', '.join(KINDS)}.", kind=kind)
    if kind == "influence":
        mapped = map_for_page(what, by)
        drawn = draw_influence(mapped, parameter=parameter)
        return drawn.drawn_by(lambda: figure_of_map(mapped, caption=caption(what, view)))
    drawers = {"smiles": draw_smiles, "residuals": draw_residuals, "path": draw_path}
    return drawers[kind](what, view=view).drawn_by(lambda: plot(what, kind, view=view))


def map_of(found: Influence) -> InfluenceMap:
    """Return the map of influences that were measured by one or two labels."""
    keys = found.keys_of_rows
    if "id" in keys or len(keys) > 2:
        raise UsageError(
            "plot_map: a map needs groups by one or two labels. "
            'Measure them: influence(calibration, "date,source"), then plot_map().',
            keys=keys,
        )
    sides = [_axis(found, key) for key in keys]
    across, down = (
        (sides[0], sides[1]) if len(sides) == 2 else (sides[0], Axis("all", ("all",), np.zeros(found.rows, np.intp)))
    )
    shape = len(down.names), len(across.names)

    def laid_out(name: str, empty: float = np.nan) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        cells = np.full(shape, empty)
        cells[down.place, across.place] = found[name]
        return cells

    moves = {name.removeprefix("dfbetas_"): laid_out(name) for name in found.columns if name.startswith("dfbetas_")}
    return InfluenceMap(down, across, laid_out("cooks_d"), laid_out("count", 0.0).astype(np.intp), moves)


def _axis(found: Influence, key: str) -> Axis:
    values, place = np.unique(found[key], return_inverse=True)
    column = {"expiry": "expiry_years"}.get(key, key)
    names = tuple(f"{value:.6g}" if isinstance(value, float) else str(value) for value in values.tolist())
    return Axis(key, names, place.ravel(), conditions=tuple(f"{column} = {literal(value)}" for value in values))
