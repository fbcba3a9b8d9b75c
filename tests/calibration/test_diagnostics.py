"""Diagnostics: what residuals share, how many quotes there are in effect, and what the quotes determine."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.diagnostics import LAGS
from strikeout.errors import UsageError
from strikeout.plots import plot, plot_data
from strikeout.synthetic.heston_quotes import TRUTH, panel_quotes
from tests.assurance.linear_model import Linear, book

EXPIRIES, STRIKES = (0.1, 0.25, 0.5, 1.0), 60


def smiles(correlation: float, seed: int = 0, noise: float = 1e-3) -> so.Quotes:
    """Return quotes of one day whose errors are an autoregression from strike to strike."""
    from strikeout.quotes.contracts import Contracts

    rng = np.random.default_rng(seed)
    level = np.tile(np.linspace(-0.3, 0.3, STRIKES), len(EXPIRIES))
    c = Contracts(
        forward=100.0,
        strike=100.0 * np.exp(level),
        expiry=np.repeat(EXPIRIES, STRIKES),
        discount=1.0,
        is_call=level >= 0.0,
    )
    errors = np.empty((len(EXPIRIES), STRIKES))
    errors[:, 0] = rng.standard_normal(len(EXPIRIES))
    for n in range(1, STRIKES):
        fresh = rng.standard_normal(len(EXPIRIES))
        errors[:, n] = correlation * errors[:, n - 1] + np.sqrt(1.0 - correlation**2) * fresh
    price = so.Heston().price({**TRUTH, "initial_variance": 0.05}, c)
    return so.Quotes(ids=[f"q{n}" for n in range(len(level))], contracts=c, observed=price + noise * errors.ravel())


def found_of(correlation: float, **asked):
    return so.calibrate(smiles(correlation), so.Heston(), starts=1).diagnostics(profiles="none", **asked)


def test_the_autocorrelation_of_the_errors_is_found():
    found = found_of(0.8)
    assert len(found.strike_correlation) == LAGS < STRIKES
    # 240 errors, of which a fit of five parameters takes some: an estimate of 0.8 is good to about 0.1.
    assert found.strike_correlation[0] == pytest.approx(0.8, abs=0.12)
    assert found.strike_correlation[1] == pytest.approx(0.64, abs=0.2)


def test_independent_errors_leave_all_quotes_and_correlated_ones_few():
    independent, shared = found_of(0.0), found_of(0.9)
    assert independent.effective > 0.8 * independent.count
    assert shared.effective < 0.25 * shared.count


def test_correlations_of_the_parameters_are_those_of_the_covariance():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(50), np.linspace(0.0, 1.0, 50)])
    found = so.calibrate(book(50.0 + 2.0 * X[:, 1] + 0.1 * rng.standard_normal(50)), Linear(X), errors="independent")
    C = np.linalg.inv(X.T @ X)
    expected = C[0, 1] / np.sqrt(C[0, 0] * C[1, 1])
    assert found.diagnostics().correlation[0, 1] == pytest.approx(expected, abs=1e-12)


def test_the_leverage_of_a_linear_model_is_that_of_the_hat_matrix_and_sums_to_the_parameters():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(50), rng.normal(size=50)])
    found = so.calibrate(book(50.0 + X[:, 1] + 0.1 * rng.standard_normal(50)), Linear(X)).diagnostics()
    hat = np.diag(X @ np.linalg.inv(X.T @ X) @ X.T)
    assert found.leverage == pytest.approx(hat, abs=1e-10)
    assert found.leverage.sum() == pytest.approx(2.0, abs=1e-10)
    assert found.to_frame().columns == ["id", "leverage", "studentized", "residual"]


def test_a_profile_interval_of_a_linear_model_is_that_of_the_standard_error():
    """The cost is a parabola, so the two intervals are the same, to the accuracy of the search for the ends."""
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(40), np.linspace(-1.0, 1.0, 40)])
    found = so.calibrate(book(50.0 + X[:, 1] + 0.1 * rng.standard_normal(40)), Linear(X), errors="independent")
    for one in found.diagnostics(profiles="all", level=0.9).profiles:
        assert (one.low, one.high) == pytest.approx(one.wald, rel=1e-3)
        assert one.wald == pytest.approx(found.errors.interval(one.name, 0.9))


def test_badly_identified_parameters_are_profiled_and_their_intervals_are_not_symmetric():
    short = smiles(0.0, noise=0.05)
    some = short.only(short.ids[(short.contracts.expiry < 0.6)])
    panel = so.calibrate(some, so.Heston(), errors="independent")
    found = panel.diagnostics()
    names = {one.name for one in found.profiles}
    assert "mean_reversion" in names
    assert names == {n for n in panel.parameters if panel.relative_errors[n] > 0.25}
    (one,) = (one for one in found.profiles if one.name == "mean_reversion")
    below, above = one.value - one.low, one.high - one.value
    assert not above < 1.05 * below  # longer above, or not bounded there
    assert one.name in found.summary()
    fixed = so.calibrate(some, so.Heston(), fixed={"mean_reversion": one.low}, starts=dict(panel.parameters))
    noise = panel.cost / (panel.count - 5)
    assert (fixed.cost - panel.cost) / noise == pytest.approx(1.96**2, rel=0.05)


def test_residuals_that_stay_from_date_to_date_are_found():
    quotes = panel_quotes(10, seed=2)
    shape = 0.02 * np.sin(8.0 * quotes.contracts.log_moneyness)  # the model misses every day in the same way
    missed = so.calibrate(quotes.with_observed(quotes.observed + shape), so.Heston(), panel="date", starts=1)
    clean = so.calibrate(quotes, so.Heston(), panel="date", starts=1)
    assert missed.diagnostics(profiles="none").date_correlation > 0.8
    assert abs(clean.diagnostics(profiles="none").date_correlation) < 0.4


def test_effective_quotes_by_parameter_follow_from_the_ratios_of_errors():
    panel = so.calibrate(panel_quotes(12, seed=5), so.Heston(), panel="date", starts=1)
    found = panel.diagnostics(profiles="none")
    for name, ratio in panel.errors.ratios.items():
        assert found.effective_by_parameter[name] == pytest.approx(panel.count / ratio**2)


def test_what_cannot_be_answered_is_refused():
    found = so.calibrate(smiles(0.0), so.Heston(), starts=1)
    for asked in ({"profiles": "nothing"}, {"profiles": ["kappa"]}, {"level": 1.5}):
        with pytest.raises(UsageError):
            found.diagnostics(**asked)
    robust = so.calibrate(smiles(0.0), so.Heston(), starts=1, loss="huber")
    assert robust.diagnostics().profiles == ()
    with pytest.raises(UsageError):
        robust.diagnostics(profiles="correlation")


def test_the_picture_has_three_panels_and_its_numbers_are_plain():
    found = so.calibrate(smiles(0.5), so.Heston(), starts=1)
    figure = plot(found, "diagnostics")
    assert len(figure.axes) == 4  # and a scale of colours
    data = plot_data(found, "diagnostics")
    assert len(data["leverage"]) == found.count
    assert "<table>" in found.diagnostics(profiles="none")._repr_html_()
