"""A picture of a calibration as a file: the ending says which kind."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.errors import UsageError
from strikeout.plots.latent_path import plot_latent_path
from strikeout.plots.page import calibration_page
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.style import to_bytes
from strikeout.quotes.replacing import replace_file

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

KINDS = (".png", ".svg", ".html")


def check_ending(path: str | PathLike[str]) -> None:
    """Nothing where the ending is one we can write; to be asked before any work is done.

    Raises:
        UsageError: the ending is none of .png, .svg, .html.
    """
    if Path(path).suffix.lower() not in KINDS:
        raise UsageError(f"{Path(path).name}: a picture ends in {', '.join(KINDS)}. Give the file one of them.")


def write_plot(calibration: Calibration | PanelCalibration, path: str | PathLike[str]) -> Path:
    """Writes the smiles, of a panel its path, to a .png or .svg; or the whole page, with residuals, to an .html.

    Raises:
        UsageError: another ending, or the file cannot be written.
    """
    check_ending(path)
    ending = Path(path).suffix.lower()
    if ending == ".html":
        content = calibration_page(calibration).encode()
    else:
        kind: Literal["png", "svg"] = "png" if ending == ".png" else "svg"
        drawn = plot_latent_path(calibration) if isinstance(calibration, PanelCalibration) else plot_smiles(calibration)
        content = to_bytes(drawn, kind)
    return replace_file(path, lambda target: Path(target).write_bytes(content))
