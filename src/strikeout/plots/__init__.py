"""Pictures of a calibration: smiles, residuals, a panel's path, one page of them, a map of influence. No window.

Each function takes a `Calibration` (or a `PanelCalibration`) and gives back a figure, or writes a file.
"""

from __future__ import annotations

from strikeout.plots.influence_map import plot_influence_map, write_influence_map
from strikeout.plots.latent_path import plot_latent_path
from strikeout.plots.page import calibration_page
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.writing import write_plot

__all__ = [
    "calibration_page",
    "plot_influence_map",
    "plot_latent_path",
    "plot_residuals",
    "plot_smiles",
    "write_influence_map",
    "write_plot",
]
