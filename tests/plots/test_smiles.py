"""What the panels show is what the book and the model say."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.kernels import black
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import MOST_PANELS, plot_smiles, smiles_of
from tests.raising import raises


@pytest.fixture(scope="module")
def calibration():
    return so.calibrate(so.paper.quotes("small"), so.Heston())


@pytest.fixture(scope="module")
def many():
    """Twenty expiries with thirty quotes each."""
    return so.calibrate(so.synthetic.random_quotes(600, maturities=20, seed=3), so.Heston())


def words(figure):
    return "\n".join(text.get_text() for text in [*figure.texts, *figure.findobj(lambda a: hasattr(a, "get_text"))])


def test_every_quote_with_a_volatility_is_in_a_panel(calibration):
    smiles = smiles_of(calibration)
    assert [round(smile.expiry * 252) for smile in smiles] == [30, 60]
    assert sum(len(s.moneyness) + s.missing + s.beyond for s in smiles) == calibration.count


def test_the_dots_are_the_black_volatilities_of_the_quotes(calibration):
    smile, c = smiles_of(calibration)[0], calibration.quotes.contracts
    rows = np.flatnonzero(c.expiry == smile.expiry)
    prices = black.price(1.0, np.exp(smile.moneyness), smile.expiry, smile.volatility, 1.0, True)
    shown = np.isin(c.log_moneyness[rows], smile.moneyness)
    observed = (calibration.quotes.observed / c.scale)[rows][shown]
    # A few roundings of prices below one.
    np.testing.assert_allclose(np.sort(prices), np.sort(observed), rtol=0, atol=1e-14)


def test_the_curve_is_the_model_at_the_calibrated_parameters(calibration):
    smile = smiles_of(calibration)[1]
    contracts = so.Contracts(
        forward=250.0, strike=250.0 * np.exp(smile.curve_moneyness), expiry=smile.expiry, discount=0.9, is_call=True
    )
    prices = calibration.model.price(calibration.parameters, contracts)
    again = black.price(250.0, contracts.strike, smile.expiry, smile.curve, 0.9, True)
    # The model promises 1e-11 of the forward, and the curve was priced at another forward.
    np.testing.assert_allclose(again, prices, rtol=0, atol=250.0 * 1e-11)


def test_where_there_are_more_expiries_than_panels_the_first_and_last_are_shown_and_the_figure_says_so(many):
    smiles = smiles_of(many)
    expiries = np.unique(many.quotes.contracts.expiry)
    assert len(smiles) == MOST_PANELS
    assert (smiles[0].expiry, smiles[-1].expiry) == (expiries[0], expiries[-1])
    assert f"{MOST_PANELS} of 20 expiries, evenly chosen" in words(plot_smiles(many))


def test_bars_run_from_bid_to_ask_where_the_spread_is_known():
    book = so.synthetic.random_quotes(200, maturities=4, seed=1)
    spread = np.where(np.arange(200) % 2 == 0, 0.02, np.nan)
    book = so.Quotes(ids=book.ids, contracts=book.contracts, observed=book.observed, spread=spread)
    smiles = smiles_of(so.calibrate(book, so.Heston()))
    known = [np.isfinite(s.bid) & np.isfinite(s.ask) for s in smiles]
    assert 0 < sum(int(k.sum()) for k in known) <= 100
    for smile, has_bar in zip(smiles, known, strict=True):
        assert (smile.bid[has_bar] < smile.volatility[has_bar]).all()
        assert (smile.ask[has_bar] > smile.volatility[has_bar]).all()


def test_quotes_in_the_money_are_pale_and_have_no_bars():
    book = so.synthetic.random_quotes(200, maturities=4, seed=1)
    book = so.Quotes(ids=book.ids, contracts=book.contracts, observed=book.observed, spread=0.02)
    smile, c = smiles_of(so.calibrate(book, so.Heston()))[0], book.contracts
    inside = (c.expiry == smile.expiry) & (c.is_call == (c.log_moneyness < 0.0))
    assert set(smile.moneyness[~smile.is_otm]) <= set(c.log_moneyness[inside])
    figure = plot_smiles(so.calibrate(book, so.Heston()))
    bars, pale, dots = figure.axes[0].collections
    assert len(bars.get_segments()) <= len(dots.get_offsets()) == smile.is_otm.sum()
    assert len(pale.get_offsets()) == (~smile.is_otm).sum() > 0
    assert "in the money" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_a_price_that_no_volatility_gives_is_counted_not_drawn(calibration):
    observed = calibration.quotes.observed.copy()
    observed[0] = 0.5 * calibration.quotes.contracts.intrinsic[0]
    broken = so.calibrate(calibration.quotes.with_observed(observed), so.Heston())
    before = sum(smile.missing for smile in smiles_of(calibration))
    assert sum(smile.missing for smile in smiles_of(broken)) == before + 1
    assert f"{before + 1} quote{'s' if before else ''} without an implied volatility" in words(plot_smiles(broken))


def test_another_calibration_is_drawn_beside_and_named(calibration, many):
    figure = plot_smiles(calibration, others={"yesterday": many})
    assert [len(panel.lines) for panel in figure.axes] == [2, 2]
    assert "yesterday" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_the_axes_say_what_they_are_and_in_which_unit(calibration):
    assert "implied volatility, % per year" in words(plot_smiles(calibration))
    assert "log-moneyness, ln(strike / forward)" in words(plot_smiles(calibration))
    assert "observed - model, in price" in words(plot_residuals(calibration))


def test_no_panel_is_refused(calibration):
    with raises(so.errors.StrikeoutError, at_most=0):
        plot_smiles(calibration, at_most=0)


def test_residuals_can_be_marked_by_id_and_unknown_ids_are_refused(calibration):
    figure = plot_residuals(calibration, marked=calibration.quotes.ids[:7], marked_as="the suspects")
    assert [len(dots.get_offsets()) for dots in figure.axes[0].collections[-2:]] == [533, 7]
    with raises(so.errors.StrikeoutError, ids=["nobody"]):
        plot_residuals(calibration, marked=["nobody"])


def test_the_callers_own_style_is_left_alone(calibration):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plot_smiles(calibration)
    assert dict(mpl.rcParams) == before


def test_expiries_of_too_few_quotes_are_left_out_and_said_to_be_few():
    quotes = so.synthetic.random_quotes(120, maturities=3, seed=3)
    last = np.flatnonzero(quotes.contracts.expiry == quotes.contracts.expiry.max())
    thin = quotes.without(quotes.ids[last[4:]].tolist())
    figure = plot_smiles(so.calibrate(thin, so.Heston()))
    assert "1 expiry of fewer than 5 quotes left out" in words(figure)
    assert "evenly chosen" not in words(figure)
