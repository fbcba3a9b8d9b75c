"""Pictures of a calibration: smiles, residuals, total variance, influence, a panel's path. matplotlib, no window.

Each takes a calibration and returns a figure or plain values for JSON, or writes a file.
"""

from __future__ import annotations

from strikeout.plots.diagnostics import plot_diagnostics
from strikeout.plots.draw import draw
from strikeout.plots.drawing import Drawing
from strikeout.plots.influence_map import plot_influence_map
from strikeout.plots.page import calibration_page
from strikeout.plots.paths import plot_latent_path, plot_regimes, plot_variance_path
from strikeout.plots.residuals import plot_residual_map, plot_residuals
from strikeout.plots.smiles import plot_smiles, plot_variance
from strikeout.plots.style import View
from strikeout.plots.writing import plot, plot_data, write_plot

__all__ = [
    "Drawing",
    "View",
    "calibration_page",
    "draw",
    "plot",
    "plot_data",
    "plot_diagnostics",
    "plot_influence_map",
    "plot_latent_path",
    "plot_regimes",
    "plot_residual_map",
    "plot_residuals",
    "plot_smiles",
    "plot_variance",
    "plot_variance_path",
    "write_plot",
]
