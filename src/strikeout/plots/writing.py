"""A picture of a calibration as a file: the ending says which kind of file, a word which picture."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from strikeout.calibration.calibration import Calibration
from strikeout.errors import UsageError
from strikeout.plots import style
from strikeout.plots.influence_map import influence_map, plot_influence_map
from strikeout.plots.latent_path import path_data, plot_latent_path
from strikeout.plots.page import calibration_page
from strikeout.plots.residual_map import plot_residual_map, residual_map
from strikeout.plots.smiles import plot_smiles, smiles_data
from strikeout.plots.variance import plot_variance, variance_data
from strikeout.quotes.atomic_write import replace_file
from strikeout.wording import Argument

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration

Picture = Literal["smiles", "residuals", "variance", "influence", "path"]
OF_QUOTES: tuple[Picture, ...] = ("smiles", "residuals", "variance", "influence")  # of any calibration
PICTURES: tuple[Picture, ...] = (*OF_QUOTES, "path")  # of a panel
ENDINGS = (".png", ".svg", ".pdf", ".html", ".json")


def check_ending(path: str | PathLike[str]) -> None:
    """Nothing where the ending is one we can write; to be asked before any work is done.

    Raises:
        UsageError: the ending is none of .png, .svg, .pdf, .html, .json.
    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(f"{Path(path).name}: a picture ends in {', '.join(ENDINGS)}. Give the file one of them.")


def first_kind(calibration: Calibration) -> Picture:
    """What is drawn where no kind is asked for: of a panel its path, else the smiles."""
    return "path" if calibration.is_panel else "smiles"


def plot(calibration: Calibration, kind: Picture | None = None, *, by: str | None = None) -> Figure:
    """A figure of one kind: smiles, residuals (a heat map), variance (total variance by expiry), influence, or path.

    Without a kind it is the smiles, of a panel its path.

    Args:
        by: the label across a map of influence.

    Raises:
        UsageError: another kind, ``by`` with anything but influence, or the calibration holds no quotes.
        RefusedError: influence of quotes that do not determine the parameters.
    """
    kind = _kind(calibration, kind, by)
    if kind == "influence":
        return plot_influence_map(calibration, by=by)
    if calibration.is_panel and kind == "path":
        return plot_latent_path(calibration)
    return {"smiles": plot_smiles, "residuals": plot_residual_map, "variance": plot_variance}[kind](calibration)


def plot_data(calibration: Calibration, kind: Picture | None = None, *, by: str | None = None) -> dict[str, Any]:
    """What ``plot`` draws, as plain values for JSON; a number that does not exist is None.

    Raises:
        UsageError, RefusedError: as ``plot``.
    """
    kind = _kind(calibration, kind, by)
    drawn = {
        "smiles": lambda: smiles_data(calibration),
        "residuals": lambda: residual_map(calibration).to_dict(),
        "variance": lambda: variance_data(calibration),
        "influence": lambda: influence_map(calibration, by=by).to_dict(),
        "path": lambda: path_data(calibration),
    }
    return {"kind": kind, "model": calibration.model.name, "quotes": calibration.count, **drawn[kind]()}


def write_plot(
    calibration: Calibration,
    path: str | PathLike[str],
    kind: Picture | None = None,
    *,
    by: str | None = None,
) -> Path:
    """Writes a picture to a .png, .svg or .pdf, its numbers to a .json, or a page to an .html.

    Without a kind it is the smiles, of a panel its path, and the page has the summary and every picture; with one, only
    that.

    Raises:
        UsageError: another ending or kind, or the file cannot be written.
        RefusedError: influence of quotes that do not determine the parameters.
    """
    check_ending(path)
    _kind(calibration, kind, by)
    content = _content(calibration, Path(path).suffix.lower(), kind, by)
    return replace_file(path, lambda target: Path(target).write_bytes(content))


def _content(calibration: Calibration, ending: str, kind: Picture | None, by: str | None) -> bytes:
    if ending == ".html":
        figures = None if kind is None else {str(kind): plot(calibration, kind, by=by)}
        return calibration_page(calibration, figures=figures).encode()
    if ending == ".json":
        return (json.dumps(plot_data(calibration, kind, by=by), allow_nan=False) + "\n").encode()
    return style.to_bytes(plot(calibration, kind, by=by), style.format_of(ending))


def _kind(calibration: Calibration, kind: Picture | None, by: str | None) -> Picture:
    """The picture that is meant, where there is one."""
    is_panel = calibration.is_panel
    meant = kind or first_kind(calibration)
    if meant not in PICTURES:
        raise UsageError(f"kind={kind!r} is no picture. Use one of {', '.join(PICTURES)}.")
    if meant == "path" and not is_panel:
        raise UsageError(
            "kind='path' is the path of a panel's latent parameter. Calibrate with ",
            Argument("panel", "date"),
            " first.",
        )
    if by is not None and meant != "influence":
        raise UsageError(f"by={by!r} goes with kind='influence'; the {meant} have no label across. Leave it out.")
    return meant
