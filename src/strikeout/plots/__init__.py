"""Pictures of a calibration: smiles, residuals, one page with both, and a map of influence. matplotlib, no window.

Each function takes a `Calibration` and gives back a figure, or writes a file.
"""

from __future__ import annotations

from strikeout.plots.influence_map import plot_influence_map, write_influence_map
from strikeout.plots.page import calibration_page
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.writing import write_plot

__all__ = [
    "calibration_page",
    "plot_influence_map",
    "plot_residuals",
    "plot_smiles",
    "write_influence_map",
    "write_plot",
]
