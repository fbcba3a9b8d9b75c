"""The numbers of a picture as JSON are those that are drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest

import strikeout as so
from strikeout.plots import plot, plot_data, write_plot
from strikeout.plots.writing import OF_QUOTES


@pytest.fixture(scope="module")
def calibration():
    book = so.synthetic.random_quotes(300, maturities=4, seed=2)
    spread = np.where(np.arange(300) % 3 == 0, np.nan, 0.03)
    return so.calibrate(
        so.Quotes(ids=book.ids, contracts=book.contracts, observed=book.observed, spread=spread), so.Heston()
    )


@pytest.mark.parametrize("kind", OF_QUOTES)
def test_every_kind_is_json_without_a_number_that_is_none(calibration, tmp_path, kind):
    written = json.loads(write_plot(calibration, tmp_path / "a.json", kind).read_text(), parse_constant=pytest.fail)
    assert written == plot_data(calibration, kind)
    assert written["kind"] == kind
    assert written["quotes"] == 300


def test_the_dots_of_the_smiles_are_those_of_the_data(calibration):
    panels = plot_data(calibration, "smiles")["panels"]
    for axes, panel in zip(plot(calibration, "smiles").axes, panels, strict=False):
        otm = np.array(panel["market"]["is_out_of_the_money"])
        for dots, rows in zip(axes.collections[-2:], (~otm, otm), strict=True):
            np.testing.assert_array_equal(dots.get_offsets()[:, 0], np.array(panel["market"]["log_moneyness"])[rows])
            np.testing.assert_array_equal(dots.get_offsets()[:, 1], np.array(panel["market"]["volatility"])[rows])
        line = axes.lines[0].get_xydata()
        np.testing.assert_array_equal(line[:, 1], np.array(panel["model"]["volatility"], float))


@pytest.mark.parametrize(("kind", "cells"), [("residuals", "mean"), ("influence", "cooks_distance")])
def test_the_cells_of_a_map_are_those_of_the_data(calibration, kind, cells):
    data = np.array(plot_data(calibration, kind)[cells], float)
    mesh = np.ma.filled(plot(calibration, kind).axes[0].collections[0].get_array().astype(float), np.nan)
    seen = np.isfinite(mesh)
    assert mesh.shape == data.shape
    # The palest colour of influence stands for everything four decades below the largest.
    floor = 1e-4 * np.nanmax(data) if kind == "influence" else -np.inf
    np.testing.assert_array_equal(mesh[seen], np.maximum(data[seen], floor))


def test_a_bid_that_is_not_known_is_null(calibration):
    bids = [bid for panel in plot_data(calibration, "smiles")["panels"] for bid in panel["market"]["bid"]]
    assert None in bids
    assert any(isinstance(bid, float) for bid in bids)


def test_moments_hold_nothing_to_draw():
    moments = so.calibrate(so.states.moments_of(so.paper.quotes("small")), so.Heston())
    for kind in OF_QUOTES:
        with pytest.raises(so.errors.StrikeoutError, match="made from moments"):
            plot(moments, kind)


def test_only_the_quotes_that_count_are_drawn():
    book = so.synthetic.random_quotes(300, maturities=4, seed=2)
    some = so.calibrate(book, so.Heston(), select="otm")
    assert 0 < len(some.quotes) < 300
    drawn = sum(len(p["market"]["volatility"]) + p["missing"] for p in plot_data(some, "smiles")["panels"])
    assert drawn == len(some.quotes)
    assert np.sum(plot_data(some, "residuals")["count"]) == len(some.quotes)
