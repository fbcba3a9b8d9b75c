"""Total variance is volatility squared times expiry, for the market and for the model."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.kernels import black
from strikeout.plots.smiles import MOST_SLICES, plot_variance, smiles_of, variance_data


@pytest.fixture(scope="module")
def calibration():
    return so.calibrate(so.synthetic.random_quotes(600, maturities=20, seed=3), so.Heston())


def test_the_market_is_black_s_total_variance_of_the_quotes(calibration):
    first, c = variance_data(calibration)["slices"][0], calibration.quotes.contracts
    rows = c.expiry == first["expiry_years"]
    vol = black.implied_volatility(
        calibration.quotes.observed[rows], c.forward[rows], c.strike[rows], c.expiry[rows], c.discount[rows],
        c.is_call[rows],
    )  # fmt: skip
    known = np.isin(c.log_moneyness[rows], first["market"]["log_moneyness"])
    # Squared, times the expiry: two roundings.
    np.testing.assert_allclose(
        first["market"]["total_variance"], (vol**2 * first["expiry_years"])[known], rtol=4e-16, atol=0
    )


def test_the_model_s_slices_do_not_cross(calibration):
    """Heston has no calendar arbitrage: at every moneyness total variance grows with expiry."""
    slices = variance_data(calibration)["slices"]
    assert [one["expiry_years"] for one in slices] == sorted(one["expiry_years"] for one in slices)
    at = [np.interp(0.0, one["model"]["log_moneyness"], one["model"]["total_variance"]) for one in slices]
    assert (np.diff(at) > 0.0).all()


def test_every_slice_is_drawn_and_the_figure_says_how_many_there_are(calibration):
    figure = plot_variance(calibration)
    panel = figure.axes[0]
    smiles = smiles_of(calibration, at_most=MOST_SLICES)
    assert [len(dots.get_offsets()) for dots in panel.collections] == [len(smile.moneyness) for smile in smiles]
    assert len(panel.lines) == MOST_SLICES
    assert panel.get_yscale() == "log"
    words = {text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text"))}
    assert "12 of 20 expiries, evenly chosen" in words


def test_a_single_expiry_can_be_drawn():
    calibration = so.calibrate(so.synthetic.random_quotes(60, maturities=1, seed=5), so.Heston())
    assert len(plot_variance(calibration).axes[0].lines) == 1
