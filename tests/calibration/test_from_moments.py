"""Calibrations from moments agree with those from quotes, and are a function of the moments alone."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration import from_moments
from strikeout.calibration.from_moments import calibrate_moments, interpolation_error
from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.kernels.compiled import default_kernel
from strikeout.plots.writing import write_plot
from strikeout.statistics.moments import Basis, moments_of
from strikeout.statistics.objective import weights_of
from tests.raising import raises

LARGE = so.paper.quotes("large")
MODEL = so.Heston()


def apart(one: so.results.Calibration, other: so.results.Calibration) -> float:
    """The largest relative difference of a parameter."""
    return max(abs(one.parameters[name] / value - 1.0) for name, value in other.parameters.items())


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.25])
def test_moments_after_forgetting_calibrate_like_the_retained_quotes(share):
    gone = LARGE[np.random.default_rng(5).choice(2700, int(share * 2700), replace=False)]
    retained = LARGE.without(gone.ids)
    left = moments_of(LARGE) - moments_of(gone)
    resolved, raw = calibrate_moments(left, MODEL), so.calibrate(retained, MODEL)
    assert resolved.converged
    # The search stops at 1e-8 standard errors, which are about 1e-3 of the parameters.
    assert apart(resolved, raw) < 1e-10
    for name, error in raw.standard_errors.items():
        assert resolved.standard_errors[name] == pytest.approx(error, rel=1e-8)
    assert resolved.rmse == pytest.approx(raw.rmse, rel=1e-8)
    fresh = calibrate_moments(moments_of(retained), MODEL)
    assert left.digest() == fresh.state.digest()
    assert resolved.parameters == fresh.parameters
    assert resolved.standard_errors == fresh.standard_errors


def test_the_interpolation_error_on_the_book_is_measured_and_small():
    calibration = calibrate_moments(moments_of(LARGE), MODEL)
    # Both searches stop at 1e-8 standard errors; a basis of 32 polynomials adds nothing to that.
    # Without a compiler the book's own search has another rule than the moments', see kernels/fourier_series.py.
    assert interpolation_error(calibration, LARGE) < (3e-8 if default_kernel() == "native" else 1e-7)


def test_a_basis_too_coarse_shows_in_the_interpolation_error():
    coarse = calibrate_moments(moments_of(LARGE, basis=Basis(nodes=8)), MODEL)
    raw = so.calibrate(LARGE, MODEL)
    error = interpolation_error(coarse, LARGE)
    assert error > 1e-4
    moved = max(abs(coarse.parameters[n] - raw.parameters[n]) / raw.standard_errors[n] for n in raw.parameters)
    assert error == pytest.approx(moved, rel=0.1)  # it is that far from the quotes' own optimum


def test_a_basis_that_resolves_nothing_is_refused():
    with pytest.raises(RefusedError, match=r"less than nothing.*too coarse"):
        calibrate_moments(moments_of(LARGE, basis=Basis(nodes=4)), MODEL)


@pytest.mark.parametrize("nodes", [32, 48])
def test_a_smile_with_a_sharp_corner_is_resolved_to_a_thousandth_of_a_standard_error(nodes):
    theta = {
        "mean_reversion": 2.0,
        "long_variance": 0.02,
        "vol_of_vol": 0.5,
        "correlation": -0.7,
        "initial_variance": 0.01,
    }
    quotes = so.synthetic.random_quotes(5000, maturities=6, seed=3, theta=theta)
    calibration = calibrate_moments(moments_of(quotes, basis=Basis(nodes=nodes)), MODEL)
    assert interpolation_error(calibration, quotes) < 0.001


def test_scattered_expiries_are_calibrated_from_panels_of_expiry():
    quotes = so.synthetic.random_quotes(3000, maturities=3000, seed=2)
    moments = moments_of(quotes, basis=Basis("scattered"))
    calibration = calibrate_moments(moments, MODEL)
    assert calibration.converged
    assert interpolation_error(calibration, quotes) < 1e-6
    gone = quotes[::10]
    fresh = calibrate_moments(moments_of(quotes.without(gone.ids), basis=Basis("scattered")), MODEL)
    left = moments - moments_of(gone, basis=Basis("scattered"))
    assert calibrate_moments(left, MODEL).parameters == fresh.parameters


def test_prices_without_noise_give_the_truth_back():
    theta = [2.0, 0.06, 0.3, -0.6, 0.06]
    quotes = LARGE.with_observed(MODEL.price(theta, LARGE.contracts))
    calibration = calibrate_moments(moments_of(quotes), MODEL)
    assert calibration.converged
    # Residuals are resolved to about 1e-7 in currency, where a parameter has a sensitivity of at least 0.1.
    assert list(calibration.parameters.values()) == pytest.approx(theta, rel=1e-7)
    assert calibration.rmse < 1e-6


@pytest.mark.parametrize("noise", [1e-5, 1e-6])
def test_a_book_far_from_the_reference_keeps_its_digits(noise):
    quotes = so.synthetic.random_quotes(4000, maturities=5, seed=6, theta=[3.0, 0.5, 1.2, -0.4, 0.6], noise=noise)
    # Black's reference at 25 % misses prices at 75 % by tens, and the residuals are a millionth of that and less.
    resolved, raw = calibrate_moments(moments_of(quotes), MODEL), so.calibrate(quotes, MODEL)
    assert apart(resolved, raw) < 1e-9
    assert [start.agrees for start in resolved.starts] == [True] * 4


def test_weights_count_as_in_a_calibration_of_the_quotes():
    quotes = so.synthetic.random_quotes(2000, maturities=4, seed=8, noise=1e-4)[:1500]
    c = quotes.contracts
    quotes = quotes[np.flatnonzero(quotes.observed - c.intrinsic > 1e-3 * c.scale)]
    resolved = calibrate_moments(moments_of(quotes, weights="vega"), MODEL)
    raw = so.calibrate(quotes, MODEL, weights="vega")
    assert apart(resolved, raw) < 1e-9
    assert resolved.cost == pytest.approx(raw.cost, rel=1e-7)
    assert resolved.rmse**2 * weights_of(quotes, "vega")[0].sum() == pytest.approx(resolved.cost, rel=1e-12)


def test_bounds_fixed_parameters_and_feller_hold():
    moments = moments_of(LARGE)
    for options in (
        {"fixed": {"mean_reversion": 1.5}},
        {"bounds": {"correlation": (-0.5, 0.0)}},
        {"feller": "enforce", "starts": 2},
    ):
        resolved, raw = so.calibrate(moments, MODEL, **options), so.calibrate(LARGE, MODEL, **options)
        assert apart(resolved, raw) < 1e-8
        assert resolved.termination == raw.termination


def test_one_maturity_is_not_identified():
    one = LARGE[np.flatnonzero(LARGE.contracts.expiry == LARGE.contracts.expiry[0])]
    assert calibrate_moments(moments_of(one), MODEL).termination is so.results.Termination.NOT_IDENTIFIED


def test_a_model_of_your_own_calibrates_from_moments():
    paper = so.paper.Heston()
    start = [{"mean_reversion": 2.1, "long_variance": 0.06, "vol_of_vol": 0.3, "correlation": -0.6,
              "initial_variance": 0.06}]  # fmt: skip
    quotes = so.paper.quotes("small")
    resolved = so.calibrate(moments_of(quotes, basis=Basis(nodes=24)), paper, starts=start)
    raw = so.calibrate(quotes, MODEL)
    moved = max(abs(resolved.parameters[n] - raw.parameters[n]) / raw.standard_errors[n] for n in raw.parameters)
    assert moved < 0.05  # the paper's quadrature is not exact


def test_what_cannot_be_calibrated_is_refused():
    with raises(UnidentifiedError, mentions={"fixed"}, count=5, free=5):
        calibrate_moments(moments_of(LARGE[:5]), MODEL)
    with raises(UsageError, mentions={"feller"}):
        so.calibrate(moments_of(LARGE), MODEL, feller="maybe")
    calibration = calibrate_moments(moments_of(LARGE), MODEL)
    with raises(UsageError, count=2699):
        interpolation_error(calibration, LARGE[1:])
    with pytest.raises(UsageError, match="Give them again"):
        interpolation_error(calibrate_moments(moments_of(LARGE, weights=np.ones(2700)), MODEL), LARGE)


def test_calibrate_takes_moments_in_place_of_quotes():
    moments, seen = moments_of(LARGE), []
    calibration = so.calibrate(moments, MODEL, progress=lambda number, visit: seen.append((number, visit.cost)))
    assert calibration.parameters == calibrate_moments(moments, MODEL).parameters
    assert {number for number, _ in seen} == {0, 1, 2, 3}
    assert calibration.cost in [cost for _, cost in seen]
    for options, match in (
        ({"weights": "none"}, "weights='given', which cannot be changed"),
        ({"weights": np.ones(2700)}, "cannot be changed"),
        ({"residual": "implied_vol"}, "squared price residuals only"),
        ({"loss": "huber"}, "squared price residuals only"),
    ):
        with pytest.raises(UsageError, match=match):
            so.calibrate(moments, MODEL, **options)


def test_a_calibration_from_moments_can_be_read_like_any_other():
    calibration = calibrate_moments(moments_of(LARGE), MODEL)
    assert calibration.state == moments_of(LARGE)
    assert "mean_reversion" in calibration.summary()
    assert calibration.to_dict()["count"] == 2700
    assert calibration.agreement == 4
    assert all(0.0 < error < inf for error in calibration.standard_errors.values())


def test_what_needs_quotes_says_that_there_are_none(tmp_path):
    calibration = so.calibrate(so.states.moments_of(so.paper.quotes("small")), so.Heston())
    with pytest.raises(UsageError, match="made from moments and holds no quotes"):
        calibration.residuals  # noqa: B018
    with pytest.raises(UsageError, match="made from moments and holds no quotes"):
        write_plot(calibration, tmp_path / "smiles.png")
    assert list(tmp_path.iterdir()) == []


def test_the_root_mean_square_of_moments_is_weighted_and_says_so():
    book = so.synthetic.random_quotes(200, maturities=4, seed=1, noise=1e-3)
    weight = np.linspace(1.0, 9.0, len(book))
    book = so.Quotes(ids=book.ids, contracts=book.contracts, observed=book.observed, weight=weight)
    found = so.calibrate(so.states.moments_of(book), so.Heston())
    residual = book.observed - found.model.price(found.parameters, book.contracts)
    assert found.rmse == pytest.approx(np.sqrt(np.sum(weight * residual**2) / np.sum(weight)), rel=1e-6)
    assert abs(found.rmse / np.sqrt(np.mean(residual**2)) - 1.0) > 1e-3
    assert "in price, weighted (given)\n" in found.summary()
    plain = so.calibrate(so.states.moments_of(book, weights="none"), so.Heston())
    assert f"{plain.rmse:.4g} in price\n" in plain.summary()
    assert "weighted" not in so.calibrate(book, so.Heston()).summary()


def test_how_far_moments_can_be_off_is_found_once_a_calibration(monkeypatch):
    found = []
    once = from_moments._bound
    monkeypatch.setattr(from_moments, "_bound", lambda calibration: found.append(calibration) or once(calibration))
    book = so.synthetic.random_quotes(200, maturities=4, seed=1, noise=1e-3)
    before = so.calibrate(so.states.moments_of(book), so.Heston())
    done = so.forget(before, quotes=book[:20])
    after = done.calibration
    assert "OPTIMUM" in done.certificate.claims
    assert so.states.interpolation_bound(after) > 0.0
    assert after.warnings == after.warnings == ()
    assert f"{after.report()}{after.summary()}" != ""
    assert found.count(after) == 1
