"""The path of a panel as a picture: every value, its band, and what is held."""

from __future__ import annotations

import json

import numpy as np
import pytest

import strikeout as so
from strikeout.plots import plot, plot_data, plot_latent_path, plot_residuals, plot_smiles, plot_variance, write_plot
from strikeout.plots.smiles import smiles_of
from strikeout.plots.writing import PICTURES
from tests.raising import raises

QUOTES = so.synthetic.panel_quotes(12, seed=3)
PANEL = so.calibrate(QUOTES, so.Heston(), panel="date")


def test_the_line_goes_through_every_value_in_the_order_of_the_days():
    axes = plot_latent_path(PANEL).axes[0]
    assert axes.lines[0].get_ydata() == pytest.approx(list(PANEL.latent.values()), abs=0)
    assert axes.get_xticklabels()[0].get_text() == "2024-01-02"
    assert axes.get_xticklabels()[-1].get_text() == "2024-01-17"


def test_the_band_is_two_standard_errors_to_either_side():
    drawn = plot_latent_path(PANEL).axes[0].collections[0].get_paths()[0].vertices
    last, error = PANEL.latent["2024-01-17"], PANEL.latent_standard_errors["2024-01-17"]
    ends = drawn[drawn[:, 0] == 11.0][:, 1]
    assert (ends.min(), ends.max()) == pytest.approx((last - 2 * error, last + 2 * error))


def test_a_value_on_its_bound_is_a_cross():
    held = so.calibrate(QUOTES, so.Heston(), panel="date", bounds={"initial_variance": (0.01, 0.0877)})
    crosses = plot_latent_path(held).axes[0].lines[1]
    assert crosses.get_ydata().tolist() == [0.0877]
    assert plot_latent_path(PANEL).axes[0].lines[1].get_ydata().size == 0


def test_the_smiles_of_a_panel_are_those_of_its_last_day_at_its_own_variance():
    smiles = smiles_of(PANEL)
    last = QUOTES[QUOTES.labels["date"] == "2024-01-17"]
    assert sum(len(smile.moneyness) for smile in smiles) == len(last)
    assert plot_smiles(PANEL).texts[0].get_text() == "Heston against the market, 2024-01-17"
    # The noise is 5e-4 of 100: the model's curve passes within a few hundredths of a volatility of every dot.
    for smile in smiles:
        near = np.interp(smile.moneyness, smile.curve_moneyness, smile.curve)
        assert near == pytest.approx(smile.volatility, abs=2e-3)


def test_the_total_variance_of_a_panel_names_its_last_day_and_counts_that_day_s_expiries_alone():
    figure = plot_variance(PANEL)
    said = [text.get_text() for text in figure.texts]
    assert said[0] == "Total variance by expiry, 2024-01-17"
    assert not any("expiries" in text for text in said[1:])  # all of that day are shown
    fewer = plot_variance(PANEL, at_most=2)
    of_the_day = np.unique(QUOTES[QUOTES.labels["date"] == "2024-01-17"].contracts.expiry).size
    assert f"2 of {of_the_day} expiries, evenly chosen" in [text.get_text() for text in fewer.texts]


def test_the_residuals_of_a_panel_are_drawn_like_any_others():
    assert len(plot_residuals(PANEL).axes) == 2


def test_a_panel_is_drawn_as_its_path_and_every_other_kind(tmp_path):
    panel = so.calibrate(so.synthetic.panel_quotes(6, seed=3), so.Heston(), panel="date")
    assert plot_data(panel)["values"] == list(panel.latent.values())
    for kind in PICTURES:
        written = json.loads(write_plot(panel, tmp_path / "a.json", kind).read_text(), parse_constant=pytest.fail)
        assert written == json.loads(json.dumps(plot_data(panel, kind)))
    assert write_plot(panel, tmp_path / "all.html").read_text().count("<svg") == 8


def test_a_plain_calibration_has_no_path():
    plain = so.calibrate(so.paper.quotes("small"), so.Heston())
    with raises(so.errors.StrikeoutError, mentions={"panel"}):
        plot(plain, "path")
