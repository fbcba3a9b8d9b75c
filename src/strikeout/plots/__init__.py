"""Pictures of a calibration: smiles, residuals, and one page with both. matplotlib, without a window.

Each function takes a `Calibration` and gives back a figure, or writes a file.
"""

from __future__ import annotations

from strikeout.plots.page import calibration_page
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.writing import write_plot

__all__ = ["calibration_page", "plot_residuals", "plot_smiles", "write_plot"]
