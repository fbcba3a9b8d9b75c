"""A picture of a calibration as a file: the ending chooses the format, a word the picture."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from strikeout.errors import UsageError
from strikeout.plots import style
from strikeout.plots.diagnostics import diagnostics_data, plot_diagnostics
from strikeout.plots.influence_map import influence_map, plot_influence_map
from strikeout.plots.page import calibration_page
from strikeout.plots.paths import path_data, plot_latent_path
from strikeout.plots.residuals import plot_residual_map, residual_map
from strikeout.plots.smiles import plot_smiles, plot_variance, smiles_data, variance_data
from strikeout.plots.style import WHOLE, View, caption, is_panel
from strikeout.quotes.writing import replace_file
from strikeout.text import Argument

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration


Picture = Literal["smiles", "residuals", "variance", "influence", "diagnostics", "path"]
OF_QUOTES: tuple[Picture, ...] = ("smiles", "residuals", "variance", "influence", "diagnostics")  # of any calibration
PICTURES: tuple[Picture, ...] = (*OF_QUOTES, "path")  # of a panel
ENDINGS = (".png", ".svg", ".pdf", ".html", ".json")


def check_ending(path: str | PathLike[str]) -> None:
    """Raise UsageError if the ending is not one of .png, .svg, .pdf, .html, .json."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{Path(path).name}: a picture ends in {', '.join(ENDINGS)}. Give the file one of them.", endings=ENDINGS
        )


def first_kind(calibration: Calibration) -> Picture:
    """Return the default picture: the path of a panel, else the smiles."""
    return "path" if is_panel(calibration) else "smiles"


def plot(calibration: Calibration, kind: Picture | None = None, *, by: str | None = None, view: View = WHOLE) -> Figure:
    """Return a figure of one kind: smiles, residuals (a map), total variance, influence, diagnostics, or path.

    Without a kind it is the smiles, for a panel its path.

    Args:
        by: the label across a map of influence.
        view: the expiries, the date and the unit of residuals to show, and the name of the source for the caption.
    """
    kind = _kind(calibration, kind, by)
    if kind == "influence":
        return plot_influence_map(calibration, by=by, view=view)
    drawn = {
        "smiles": plot_smiles,
        "residuals": plot_residual_map,
        "variance": plot_variance,
        "diagnostics": plot_diagnostics,
        "path": plot_latent_path,
    }
    return drawn[kind](calibration, view=view)


def plot_data(
    calibration: Calibration, kind: Picture | None = None, *, by: str | None = None, view: View = WHOLE
) -> dict[str, Any]:
    """Return what ``plot`` draws, as plain values for JSON; a number that does not exist is None."""
    kind = _kind(calibration, kind, by)
    drawn = {
        "smiles": lambda: smiles_data(calibration, view=view),
        "residuals": lambda: residual_map(calibration, view=view).to_dict(),
        "variance": lambda: variance_data(calibration, view=view),
        "influence": lambda: influence_map(calibration, by=by, view=view).to_dict(),
        "diagnostics": lambda: diagnostics_data(calibration),
        "path": lambda: path_data(calibration),
    }
    facts = {"kind": kind, "model": calibration.model.name, "quotes": calibration.count}
    return {**facts, "caption": caption(calibration, view), **drawn[kind]()}


def write_plot(
    calibration: Calibration,
    path: str | PathLike[str],
    kind: Picture | None = None,
    *,
    by: str | None = None,
    view: View = WHOLE,
) -> Path:
    """Write a picture to a .png, .svg or .pdf, its numbers to a .json, or a page to an .html.

    Without a kind it is the smiles, for a panel its path, and the page has the summary and every picture; with one,
    only that.
    """
    check_ending(path)
    _kind(calibration, kind, by)
    content = _content(calibration, Path(path).suffix.lower(), kind, by=by, view=view)
    return replace_file(path, lambda target: Path(target).write_bytes(content))


def _content(calibration: Calibration, ending: str, kind: Picture | None, *, by: str | None, view: View) -> bytes:
    if ending == ".html":
        figures = None if kind is None else {str(kind): plot(calibration, kind, by=by, view=view)}
        return calibration_page(calibration, figures=figures, view=view).encode()
    if ending == ".json":
        return (json.dumps(plot_data(calibration, kind, by=by, view=view), allow_nan=False) + "\n").encode()
    return style.to_bytes(plot(calibration, kind, by=by, view=view), style.format_of(ending))


def _kind(calibration: Calibration, kind: Picture | None, by: str | None) -> Picture:
    """Return the picture to draw, or raise UsageError if there is none."""
    meant = kind or first_kind(calibration)
    if meant not in PICTURES:
        raise UsageError(f"kind={kind!r} is not a picture. Use one of {', '.join(PICTURES)}.", picture=kind)
    if meant == "path" and not is_panel(calibration):
        raise UsageError(
            "kind='path' is the path of a panel's latent parameter. Calibrate with ",
            Argument("panel", "date"),
            " first.",
        )
    if by is not None and meant != "influence":
        raise UsageError(
            f"by={by!r} goes with kind='influence'; the {meant} have no label across. Leave it out.", by=by
        )
    return meant
