"""A panel with a known answer."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.errors import UsageError
from strikeout.kernels import heston
from strikeout.synthetic.heston_quotes import TRUTH, panel_quotes

THETA = list(TRUTH.values())


def test_a_day_has_fifteen_quotes_one_spot_and_one_variance():
    quotes = panel_quotes(7, seed=1)
    assert len(quotes) == 7 * 15
    assert len(set(quotes.labels["date"].tolist())) == 7
    for day in range(7):
        of_day = quotes.labels["day"] == day
        assert len(np.unique(quotes.labels["variance"][of_day])) == 1
        assert len(np.unique(quotes.labels["spot"][of_day])) == 1
    assert quotes.labels["variance"][0] == TRUTH["initial_variance"]


def test_every_day_is_priced_at_its_own_variance():
    quotes, c = panel_quotes(5, seed=2, noise=0.0), panel_quotes(5, seed=2, noise=0.0).contracts
    for day in range(5):
        rows = np.flatnonzero(quotes.labels["day"] == day)
        theta = np.array([*THETA[:4], quotes.labels["variance"][rows[0]]])
        price = heston.price(theta, *(x[rows] for x in (c.forward, c.strike, c.expiry, c.discount, c.is_call)))
        assert (quotes.observed[rows] == price).all()


def test_the_noise_is_the_noise_that_was_asked_for():
    clean, noisy = (panel_quotes(180, seed=3, noise=noise) for noise in (0.0, 1e-3))
    errors = noisy.observed - clean.observed
    # 2,700 normal numbers: 4 standard deviations of their root mean square.
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(1e-3, rel=4 / np.sqrt(2 * 2700))


def test_the_variance_moves_as_the_model_says():
    n = 2000
    variance = panel_quotes(n, seed=4, noise=0.0).labels["variance"][::15]
    kappa, vbar, sigma = THETA[:3]
    a = np.exp(-kappa / 252)
    mean = vbar + (variance[:-1] - vbar) * a
    spread = variance[:-1] * sigma**2 / kappa * (a - a * a) + vbar * sigma**2 / (2 * kappa) * (1 - a) ** 2
    daily = (variance[1:] - mean) / np.sqrt(spread)
    # 1,999 transitions of the density of Cox, Ingersoll and Ross: mean 0, variance 1, to 4 standard deviations.
    assert abs(daily.mean()) < 4 / np.sqrt(n)
    assert daily.var() == pytest.approx(1.0, abs=4 * np.sqrt(2 / n) + 0.01)  # and what 16 Euler steps a day leave


def test_the_same_seed_gives_the_same_book_and_another_another():
    assert (panel_quotes(3, seed=5).observed == panel_quotes(3, seed=5).observed).all()
    assert (panel_quotes(3, seed=5).observed != panel_quotes(3, seed=6).observed).all()


@pytest.mark.parametrize(("days", "noise"), [(0, 1e-3), (5, -1.0), (5, float("nan"))])
def test_what_cannot_be_is_refused(days, noise):
    with pytest.raises(UsageError, match="panel_quotes"):
        panel_quotes(days, noise=noise)
