"""A crowded day, 51 expiries and over ten thousand quotes: every picture is made, nothing left out in silence."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from benchmarks import chains
from strikeout.plots import plot, plot_data
from strikeout.plots.influence_map import TALL
from strikeout.plots.writing import OF_QUOTES

NAME = "SPX 2026-07-22"


@pytest.fixture(scope="module")
def crowded(shared_data):
    shared_data(f"chains/{chains.DAYS[NAME][0]}.parquet")
    return so.calibrate(chains.day(NAME), so.Heston(), weights="spread")


@pytest.mark.parametrize("kind", OF_QUOTES)
def test_no_two_names_beside_a_picture_overlap(crowded, kind):
    figure = plot(crowded, kind)
    figure.draw_without_rendering()
    for axes in figure.axes:
        for side in (axes.xaxis, axes.yaxis):
            boxes = [label.get_window_extent() for label in side.get_ticklabels() if label.get_text()]
            boxes = [box for box in boxes if box.width > 1.0]
            assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[n + 1 :])


def test_every_quote_is_in_a_cell(crowded):
    found = plot_data(crowded, "residuals")
    assert np.sum(found["count"]) == len(crowded.quotes) > 10_000
    assert len(found["expiries"]) == 51
    assert len(plot(crowded, "residuals").axes[0].get_yticks()) <= TALL


def test_what_the_smiles_leave_out_is_counted(crowded):
    notes = plot_data(crowded, "smiles")["notes"]
    assert "9 of 51 expiries, evenly chosen" in notes
    assert any("quotes outside the ranges shown" in note for note in notes)
