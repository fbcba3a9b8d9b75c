"""A map of influence: which dates and expiries the parameters hang on."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from strikeout.assurance.groups import column_of
from strikeout.assurance.influence import influence
from strikeout.errors import UsageError
from strikeout.plots import style
from strikeout.quotes.replacing import replace_file

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import PanelCalibration

Floats = NDArray[np.float64]

PICTURES = (".png", ".svg")
MOST_EXPIRIES = 12  # beyond, expiries are put in fixed buckets: in a panel over days nearly every one is distinct
EDGES = np.array([7.0, 14.0, 30.0, 60.0, 91.0, 182.0, 365.0, 730.0, 1825.0])  # days
BUCKETS = ("1w", "2w", "1m", "2m", "3m", "6m", "1y", "2y", "5y", "over 5y")
MOST_NAMES = 8
DECADES = 4  # of Cook's distance shown below the largest; what is smaller has the palest colour


@dataclass(frozen=True, eq=False)
class InfluenceMap:
    """Cook's distance of every date and expiry.

    Not-a-number where nothing is quoted, infinite where the parameters hang on that cell alone.
    """

    dates: tuple[str, ...]
    expiries: tuple[str, ...]
    distance: Floats  # (expiries, dates)

    def largest(self) -> tuple[str, str]:
        """The date and the expiry with the largest distance."""
        row, column = np.unravel_index(np.nanargmax(self.distance), self.distance.shape)
        return self.dates[column], self.expiries[row]


def influence_map(calibration: Calibration | PanelCalibration, *, by: str = "date") -> InfluenceMap:
    """Every date and expiry struck out on its own, as a whole.

    Args:
        by: the label across, where it is not the date.

    Raises:
        UsageError: the quotes have no such label.
        RefusedError: the quotes do not determine the parameters.
    """
    quotes = calibration.book
    across, column = np.unique(column_of(quotes, by).astype(str), return_inverse=True)
    days = np.round(quotes.contracts.expiry * 365.0, 6)
    distinct, row = np.unique(days, return_inverse=True)
    names = tuple(f"{day:.4g} days" if day < 360 else f"{day / 365:.3g} years" for day in distinct)
    if len(distinct) > MOST_EXPIRIES:
        bucket = np.searchsorted(EDGES, days)
        held, row = np.unique(bucket, return_inverse=True)
        names = tuple(f"to {BUCKETS[i]}" if i < len(EDGES) else BUCKETS[i] for i in held)
    found = influence(calibration, row.ravel() * len(across) + column.ravel())
    distance = np.full(len(names) * len(across), np.nan)
    distance[found["group"]] = found["cooks_d"]
    return InfluenceMap(tuple(across.tolist()), names, distance.reshape(len(names), len(across)))


def plot_influence_map(
    calibration: Calibration | PanelCalibration, *, title: str | None = None, by: str = "date"
) -> Figure:
    """A figure of Cook's distance, date by expiry: how far the parameters move if that cell is struck out.

    A distance of 1 is a move to the edge of the joint region of about one standard error. Where the parameters would
    no longer be determined a cell is marked with a cross.

    Raises:
        UsageError: the quotes have no such label.
        RefusedError: the quotes do not determine the parameters.
    """
    found = influence_map(calibration, by=by)
    shown = np.where(np.isfinite(found.distance) & (found.distance > 0.0), found.distance, np.nan)
    top = float(np.nanmax(shown)) if np.isfinite(shown).any() else 1.0
    with style.styled():
        figure = style.blank(height=1.5 + 0.28 * max(len(found.expiries), 3))
        date, expiry = found.largest()
        style.title(figure, title or f"Influence: {date}, {expiry} moves the parameters most")
        panel = figure.subplots()
        panel.grid(visible=False)
        mesh = panel.pcolormesh(
            np.arange(len(found.dates) + 1) - 0.5,
            np.arange(len(found.expiries) + 1) - 0.5,
            np.clip(shown, top * 10.0**-DECADES, None),
            norm=LogNorm(vmin=top * 10.0**-DECADES, vmax=top),
            cmap="Blues",
            rasterized=shown.size > style.MANY,
        )
        lost_rows, lost_columns = np.nonzero(np.isinf(found.distance))
        panel.plot(lost_columns, lost_rows, linestyle="", marker="x", color=style.MODEL, markersize=5)
        panel.set_yticks(range(len(found.expiries)), found.expiries)
        places = np.unique(np.linspace(0, len(found.dates) - 1, min(MOST_NAMES, len(found.dates))).round().astype(int))
        panel.set_xticks(places, [found.dates[n][:10] for n in places])
        panel.set_xlabel("quote date" if by == "date" else by)
        panel.set_ylabel("expiry")
        figure.colorbar(mesh, ax=panel, label="Cook's distance", pad=0.01)
    return figure


def check_picture(path: str | PathLike[str]) -> None:
    """Nothing where the ending is one we can write; to be asked before any work is done.

    Raises:
        UsageError: the ending is neither .png nor .svg.
    """
    if Path(path).suffix.lower() not in PICTURES:
        raise UsageError(f"{Path(path).name}: a map ends in {' or '.join(PICTURES)}. Give the file one of them.")


def write_influence_map(
    calibration: Calibration | PanelCalibration, path: str | PathLike[str], *, by: str = "date"
) -> Path:
    """Writes the map to a .png or .svg.

    Raises:
        UsageError: another ending, the file cannot be written, or the quotes have no such label.
        RefusedError: the quotes do not determine the parameters.
    """
    check_picture(path)
    kind: Literal["png", "svg"] = "png" if Path(path).suffix.lower() == ".png" else "svg"
    content = style.to_bytes(plot_influence_map(calibration, by=by), kind)
    return replace_file(path, lambda target: Path(target).write_bytes(content))
