"""Every cell is the mean residual of the quotes in it, in their own spreads; a bad corner stands out."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.kernels import black
from strikeout.plots.residuals import plot_residual_map, residual_map


def with_spread(book: so.Quotes, spread) -> so.Quotes:
    return so.Quotes(ids=book.ids, contracts=book.contracts, observed=book.observed, spread=spread)


@pytest.fixture(scope="module")
def book():
    book = so.synthetic.random_quotes(400, maturities=5, seed=8)
    return with_spread(book, 0.01 + 0.02 * np.arange(400) / 400)


@pytest.fixture(scope="module")
def calibration(book):
    return so.calibrate(book, so.Heston())


def cells(calibration) -> dict[tuple[float, float], list[float]]:
    """Residuals over spreads by expiry and lower edge, put there one by one."""
    quotes, found = calibration.quotes, {}
    model = calibration.model.price(calibration.parameters, quotes.contracts)
    for row, contract in enumerate(quotes.contracts.expiry):
        at = so.Contracts(forward=1.0, strike=1.0, expiry=contract, discount=1.0, is_call=True)
        price = calibration.model.price(calibration.parameters, at)
        deviation = float(black.implied_volatility(price, 1.0, 1.0, at.expiry, 1.0, True)[0] * contract**0.5)
        low = 0.5 * np.floor(quotes.contracts.log_moneyness[row] / deviation / 0.5)
        residual = (quotes.observed[row] - model[row]) / quotes.spread[row]
        found.setdefault((contract, max(low, -6.0)), []).append(residual)
    return found


def test_every_cell_is_the_mean_of_the_quotes_in_it(calibration):
    found, expected = residual_map(calibration), cells(calibration)
    expiries = np.unique(calibration.quotes.contracts.expiry).tolist()
    assert found.unit == "spreads"
    assert found.count.sum() == 400
    assert np.count_nonzero(found.count) == len(expected)
    for (expiry, low), residuals in expected.items():
        row, column = expiries.index(expiry), found.moneyness.edges.index(low)
        assert found.count[row, column] == len(residuals)
        # Residuals of 1e-3 of the price in units of a hundredth: a few roundings of prices of about 100.
        assert found.mean[row, column] == pytest.approx(np.mean(residuals), rel=1e-9, abs=1e-11)


def test_a_cell_without_quotes_is_empty(calibration):
    found = residual_map(calibration)
    assert np.isnan(found.mean[found.count == 0]).all()
    assert np.isfinite(found.mean[found.count > 0]).all()


def test_quotes_that_are_all_too_dear_in_one_corner_make_it_positive(book):
    corner = (book.contracts.expiry == book.contracts.expiry.max()) & (book.contracts.log_moneyness > 0.0)
    dear = so.calibrate(book.with_observed(book.observed + 0.5 * corner), so.Heston(), loss="huber")
    found = residual_map(dear)
    row, column = np.unravel_index(np.nanargmax(found.mean), found.mean.shape)
    assert row == len(found.expiries.names) - 1
    assert found.moneyness.edges[column] >= -0.5


def test_without_any_spread_residuals_are_in_rmse(book):
    calibration = so.calibrate(with_spread(book, None), so.Heston())
    found = residual_map(calibration)
    assert found.unit == "RMSE"
    total = np.nansum(found.mean * found.count) * calibration.rmse
    assert total == pytest.approx(calibration.residuals.sum(), rel=1e-9, abs=1e-9)


def test_quotes_without_a_spread_among_others_are_left_out_and_counted(book):
    some = np.where(np.arange(400) % 4 == 0, np.nan, 0.02)
    calibration = so.calibrate(with_spread(book, some), so.Heston())
    assert residual_map(calibration).left_out == 100
    assert residual_map(calibration).count.sum() == 300
    words = [text.get_text() for text in plot_residual_map(calibration).findobj(lambda a: hasattr(a, "get_text"))]
    assert any(word.startswith("100 quotes without") for word in words)


def test_the_colours_are_even_around_zero_and_one_wild_cell_does_not_pale_the_rest(book):
    wild = book.with_observed(np.where(np.arange(400) == 7, book.observed + 40.0, book.observed))
    calibration = so.calibrate(wild, so.Heston(), loss="huber")
    found = residual_map(calibration)
    (mesh,) = plot_residual_map(calibration).axes[0].collections
    assert mesh.get_clim() == (-found.strongest, found.strongest)
    assert found.strongest < 0.1 * np.nanmax(np.abs(found.mean))
