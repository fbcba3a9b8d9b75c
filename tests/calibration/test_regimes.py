"""Regimes of a panel: found where they are, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression

import strikeout as so
from benchmarks.regimes import missed
from strikeout.calibration.regime_path import RegimePath
from strikeout.errors import RefusedError, UsageError
from tests.raising import raises

HESTON = so.Heston()
QUOTES = so.synthetic.regime_quotes(24, seed=1)
LOW, HIGH = 0.3, 0.6
PANEL = so.calibrate(QUOTES, HESTON, panel="date", starts=1)
PATH = PANEL.regimes()


def same(one: RegimePath, other: RegimePath) -> bool:
    return one.to_dict() == other.to_dict()


def linear_panel(dates: int) -> tuple[so.Quotes, np.ndarray]:
    """A straight line per date: its level is free, its slope is that of the regime and an error of the date."""
    rng = np.random.default_rng(3)
    slope = np.where(np.arange(dates) // 15 % 2, 2.0, 1.0) + 0.25 * rng.standard_normal(dates)
    x = np.linspace(-1.0, 1.0, 8)
    x = x - x.mean()
    day = np.repeat(np.arange(dates), len(x))
    y = rng.standard_normal(dates)[day] + slope[day] * np.tile(x, dates) + 1e-3 * rng.standard_normal(len(day))
    columns = {"x": np.tile(x, dates)}
    names = [f"q{n:05d}" for n in range(len(day))]
    dated = np.array([f"2024-{1 + d // 28:02d}-{1 + d % 28:02d}" for d in range(dates)])[day]
    quotes = so.Quotes(ids=names, contracts=so.results.Features(columns), observed=y, labels={"date": dated})
    fitted = np.array([np.polyfit(x, y[day == d], 1)[0] for d in range(dates)])
    return quotes, fitted


def test_one_regime_is_the_panel_bit_for_bit():
    one = PANEL.regimes(count=1)
    assert one.parameters == (PANEL.parameters,)
    assert one.latent == PANEL.latent
    assert one.converged
    assert one.bic > PATH.bic  # the dates do switch


def test_a_known_switch_is_found():
    assert PATH.converged
    assert missed(PATH, QUOTES) == 0
    found, errors = ([each["vol_of_vol"] for each in of] for of in (PATH.parameters, PATH.standard_errors))
    assert abs(found[0] - LOW) < 4 * errors[0]
    assert abs(found[1] - HIGH) < 4 * errors[1]
    assert all(one.log_likelihood == pytest.approx(PATH.log_likelihood, abs=1e-5) for one in PATH.starts)


def test_in_the_linear_case_the_fit_is_that_of_statsmodels():
    quotes, slopes = linear_panel(60)
    line = so.custom_model(
        "line", parameters={"level": 0.0, "slope": 1.0}, price=lambda level, slope, x: level + slope * x, latent="level"
    )
    path = so.calibrate(quotes, line, panel="date").regimes(switching=["slope"])
    model = MarkovRegression(slopes, k_regimes=2)
    # Two steps back: statsmodels moves its first probabilities that far ahead, and ours are equal on the first date.
    back = np.linalg.inv(path.transitions.T)
    model.initialize_known(back @ back @ [0.5, 0.5])
    h = np.square(quotes.contracts.columns["x"][:8]).sum()
    means, variance = [each["slope"] for each in path.parameters], path.noise / h
    ours = [path.transitions[0, 0], path.transitions[1, 0], *means, variance]
    wanted = model.smooth(ours)
    np.testing.assert_allclose(path.smoothed, wanted.smoothed_marginal_probabilities, atol=1e-9)
    np.testing.assert_allclose(path.filtered, wanted.filtered_marginal_probabilities, atol=1e-9)
    # Theirs is the density of a slope, ours that of a slope over its standard error per unit of noise.
    assert path.log_likelihood == pytest.approx(wanted.llf - 30 * np.log(h), rel=1e-9)
    # No parameter alone raises their likelihood either.
    for i, step in enumerate([0.02, 0.02, 0.01, 0.01, 0.005]):
        for sign in (-1.0, 1.0):
            moved = list(ours)
            moved[i] += sign * step
            assert model.loglike(moved) < wanted.llf + 1e-6


@pytest.mark.parametrize("count", [2, 3])
def test_a_forgotten_date_leaves_the_bits_of_regimes_that_never_had_it(count):
    date = PANEL.groups[5]
    done = so.forget(PANEL, where=f"date = '{date}'").calibration
    fresh = so.calibrate(QUOTES[QUOTES.labels["date"] != date], HESTON, panel="date", starts=1)
    assert same(done.regimes(count=count), fresh.regimes(count=count))
    assert date not in done.regimes(count=count).groups


def test_the_order_of_the_rows_changes_no_bit():
    shuffled = QUOTES[np.random.default_rng(1).permutation(len(QUOTES))]
    assert same(so.calibrate(shuffled, HESTON, panel="date", starts=1).regimes(), PATH)


def test_an_error_that_all_quotes_of_a_date_share_does_not_pass_for_a_regime():
    quotes = so.synthetic.regime_quotes(60, values=(LOW, LOW), daily=0.1)  # one regime, every date a little off
    panel = so.calibrate(quotes, HESTON, panel="date", starts=1)
    one, two = panel.regimes(count=1), panel.regimes()
    assert one.bic < two.bic
    assert one.noise > 4 * one.noise_within  # what independent quotes would have been certain of


def test_two_parameters_can_switch_together():
    both = PANEL.regimes(switching=["correlation", "vol_of_vol"])
    assert both.switching == ("vol_of_vol", "correlation")
    assert missed(both, QUOTES) == 0
    assert both.parameters[0]["mean_reversion"] == both.parameters[1]["mean_reversion"]
    assert both.parameters[0]["correlation"] != both.parameters[1]["correlation"]


def test_what_cannot_switch_is_refused():
    with raises(UsageError, mentions={"switching"}):
        PANEL.regimes(switching=["initial_variance"])
    with raises(UsageError, mentions={"switching"}):
        PANEL.regimes(switching=["vol_of_vol", "vol_of_vol"])
    with raises(UsageError, mentions={"count"}):
        PANEL.regimes(count=4)
    with raises(UsageError, mentions={"panel"}):
        so.calibrate(QUOTES[:15], HESTON, starts=1).regimes()
    with raises(UsageError, mentions={"feller", "loss"}):
        so.calibrate(QUOTES, HESTON, panel="date", starts=1, loss="huber").regimes()
    few = so.calibrate(QUOTES[QUOTES.labels["day"] < 4], HESTON, panel="date", starts=1)
    with raises(RefusedError, count=2, needed=5):
        few.regimes()


def test_fixed_parameters_and_bounds_hold_in_every_regime():
    held = so.calibrate(
        QUOTES, HESTON, panel="date", starts=1, fixed={"correlation": -0.6}, bounds={"vol_of_vol": (0.1, 0.5)}
    )
    found = held.regimes()
    assert [each["correlation"] for each in found.parameters] == [-0.6, -0.6]
    assert found.parameters[1]["vol_of_vol"] == 0.5
    assert np.isnan(found.standard_errors[1]["vol_of_vol"])


def test_a_path_of_regimes_is_shown_as_text_html_a_frame_and_a_picture():
    frame = PATH.to_frame()
    assert frame["regime"].to_list() == list(PATH.regimes.values())
    np.testing.assert_allclose(frame["smoothed_1"] + frame["smoothed_2"], 1.0, rtol=1e-12)
    assert PANEL.groups[3] in PATH.summary()
    assert "<table>" in PATH._repr_html_()
    assert "24 dates" in repr(PATH)
    with pytest.raises(ValueError, match="read-only"):
        PATH.smoothed[0, 0] = 1.0
    from strikeout.plots import plot_regimes, style

    assert style.to_bytes(plot_regimes(PATH), "svg") == style.to_bytes(plot_regimes(PATH), "svg")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_known_switch_is_recovered_on_every_seed(seed):
    quotes = so.synthetic.regime_quotes(seed=seed)
    found = so.calibrate(quotes, HESTON, panel="date").regimes()
    assert found.converged
    assert missed(found, quotes) == 0
