"""The variance of a panel, filtered and smoothed from date to date."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.latent_filter import VariancePath
from strikeout.calibration.variance_steps import VarianceSteps
from strikeout.errors import UnknownIdError, UsageError
from strikeout.synthetic.heston_quotes import TRUTH
from tests.kernels.test_state_space import peer
from tests.raising import raises

HESTON = so.Heston()
QUOTES = so.synthetic.panel_quotes(30, seed=4, noise=0.1)  # so noisy that neighbours have something to add
PANEL = so.calibrate(QUOTES, HESTON, panel="date", starts=1)
PATH = PANEL.filter()
LAST, MIDDLE = PANEL.groups[-1], PANEL.groups[12]


def of_date(date: str) -> so.Quotes:
    return QUOTES[QUOTES.labels["date"] == date]


def everything(path: VariancePath) -> dict[str, list[float]]:
    """Every number of a path; not-a-number as None, so that two paths can be compared."""
    return path.to_dict()


def test_without_a_prior_the_path_is_that_of_the_panel():
    free = PANEL.filter(strength=0.0)
    assert free.filtered == PANEL.latent
    assert free.smoothed == PANEL.latent
    for errors in (free.filtered_errors, free.smoothed_errors):
        # Both are the block of one inverse: from exact states here, from sums of floats there.
        np.testing.assert_allclose(list(errors.values()), list(PANEL.latent_standard_errors.values()), rtol=1e-6)


def test_an_infinite_prior_leaves_one_variance_for_all_dates():
    one = PANEL.filter(strength=inf)
    value, information = (
        np.array([getattr(each, name) for each in one.observations]) for name in ("value", "information")
    )
    np.testing.assert_allclose(list(one.smoothed.values()), (value * information).sum() / information.sum(), rtol=1e-12)
    assert len(set(one.smoothed.values())) == 1


@pytest.mark.parametrize("strength", [1e-4, 1e4])
def test_the_limits_are_approached(strength):
    near, end = PANEL.filter(strength=strength), PANEL.filter(strength=0.0 if strength < 1 else inf)
    np.testing.assert_allclose(list(near.smoothed.values()), list(end.smoothed.values()), rtol=1e-3)


def test_in_the_linear_case_it_is_statsmodels_smoother_with_a_missing_date():
    path = replace(PATH.without(MIDDLE), asked=(MIDDLE,))
    days = np.array(path.dates, "datetime64[D]")
    # A variance of the step that depends on the state is beyond statsmodels: it gets ours, at the filtered mean.
    at = list(path.filtered.values())
    steps = [one._replace(u=one.u + one.w * at[t], w=0.0) for t, one in enumerate(path.steps.chain(days))]
    missing = path.dates.index(MIDDLE)
    y = np.array([path.observed.get(date, np.nan) for date in path.dates])
    information = {one.date: one.information for one in path.observations}
    wanted = peer(y, np.array([information.get(date, 1.0) for date in path.dates]), steps)
    assert np.isnan(y[missing])
    np.testing.assert_allclose(at, wanted.filtered_state[0], rtol=1e-10)
    np.testing.assert_allclose(list(path.smoothed.values()), wanted.smoothed_state[0], rtol=1e-10)
    known = replace(path, shared=replace(path.shared, covariance=()))  # the shared parameters taken as known
    np.testing.assert_allclose(
        np.square(list(known.smoothed_errors.values())), wanted.smoothed_state_cov[0, 0], rtol=1e-9
    )
    assert path.log_likelihood == pytest.approx(wanted.llf_obs[1:].sum(), rel=1e-10)


def test_a_date_without_quotes_changes_no_bit_of_the_others():
    gone = PATH.without(MIDDLE)
    asked = replace(gone, asked=(MIDDLE, "2030-01-01"))
    for name in ("filtered", "smoothed", "smoothed_errors", "surprises"):
        shown = getattr(asked, name)
        assert {date: shown[date] for date in gone.dates if date in shown} == getattr(gone, name)
    assert asked.log_likelihood == gone.log_likelihood
    assert asked.smoothed_errors[MIDDLE] > PATH.smoothed_errors[MIDDLE]
    assert asked.filtered["2030-01-01"] == pytest.approx(PANEL.parameters["long_variance"], rel=0.02)


def test_a_date_before_the_first_one_is_not_known():
    early = PANEL.filter(dates=["2020-01-01"])
    assert isnan(early.filtered["2020-01-01"])
    assert early.to_dict()["filtered"][0] is None
    assert everything(replace(early, asked=())) == everything(PATH)


def test_a_forgotten_date_leaves_the_bits_of_a_path_that_never_had_it():
    done = so.forget(PANEL, where=f"date = '{MIDDLE}'")
    fresh = so.calibrate(QUOTES[QUOTES.labels["date"] != MIDDLE], HESTON, panel="date", starts=1)
    assert everything(done.calibration.filter(dates=[MIDDLE])) == everything(fresh.filter(dates=[MIDDLE]))
    # At the same shared parameters: the path without the date, whether it was dropped or never observed.
    never = VariancePath(PATH.shared, PATH.steps, tuple(one for one in PATH.observations if one.date != MIDDLE))
    assert everything(PATH.without(MIDDLE)) == everything(never)


def test_rolling_forward_one_day_is_one_step_with_the_bits_of_the_whole_filter():
    rolled = PATH.without(LAST).roll(of_date(LAST))
    assert rolled.known is not None
    assert len(rolled.known.after) == len(PATH.observations) - 1
    assert everything(rolled) == everything(PATH)
    assert everything(PATH.without(MIDDLE).roll(of_date(MIDDLE))) == everything(PATH)  # in between: filtered again


def test_the_order_of_the_rows_changes_no_bit():
    shuffled = QUOTES[np.random.default_rng(1).permutation(len(QUOTES))]
    assert everything(so.calibrate(shuffled, HESTON, panel="date", starts=1).filter()) == everything(PATH)


def test_the_smoothed_path_is_nearer_to_the_truth_and_its_errors_are_honest():
    rough, smooth, scores = [], [], []
    for seed in range(5):
        quotes = so.synthetic.panel_quotes(40, seed=seed, noise=0.3)
        # At the true shared parameters, so that only the path is in question.
        fixed = {name: TRUTH[name] for name in ("mean_reversion", "long_variance", "vol_of_vol")}
        panel = so.calibrate(quotes, HESTON, panel="date", starts=1, fixed=fixed)
        truth = dict(zip(quotes.labels["date"].tolist(), quotes.labels["variance"].tolist(), strict=True))
        found = panel.filter()
        rough += [panel.latent[day] - truth[day] for day in panel.groups]
        smooth += [found.smoothed[day] - truth[day] for day in panel.groups]
        scores += [(found.smoothed[day] - truth[day]) / found.smoothed_errors[day] for day in panel.groups]
    assert np.sqrt(np.mean(np.square(smooth))) < 0.8 * np.sqrt(np.mean(np.square(rough)))
    # 200 errors, neighbours correlated: the root mean square of standard normal ones is within a quarter of one.
    assert 0.75 < np.sqrt(np.mean(np.square(scores))) < 1.25


@pytest.mark.parametrize(
    ("first", "second", "days"), [("2024-01-05", "2024-01-08", 1), ("2024-01-05", "2024-01-19", 10)]
)
def test_a_gap_counts_the_weekdays_between_two_dates(first, second, days):
    steps = VarianceSteps(2.0, 0.04, 0.5, 1.0, weekdays=True)
    (found,) = steps.between(np.array([first], "datetime64[D]"), np.array([second], "datetime64[D]"))
    a = np.exp(-2.0 * days / 261)
    np.testing.assert_allclose(found.a, a, rtol=1e-14)
    np.testing.assert_allclose(found.c, 0.04 * (1 - a), rtol=1e-13)
    # The moments of Cox, Ingersoll and Ross, as in their paper.
    v = 0.09
    wanted = v * 0.25 / 2.0 * (a - a * a) + 0.04 * 0.25 / 4.0 * (1 - a) ** 2
    np.testing.assert_allclose(found.u + found.w * v, wanted, rtol=1e-13)


def test_two_steps_have_the_moments_of_one_over_both_days():
    steps = VarianceSteps(2.0, 0.04, 0.5, 1.0, weekdays=False)
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-05"], "datetime64[D]")
    one, two = steps.chain(days)
    (both,) = steps.between(days[:1], days[2:])
    v = 0.09
    mean = one.a * v + one.c
    np.testing.assert_allclose(both.a * v + both.c, two.a * mean + two.c, rtol=1e-14)
    total = two.a**2 * (one.u + one.w * v) + two.u + two.w * mean
    np.testing.assert_allclose(both.u + both.w * v, total, rtol=1e-13)


def test_one_date_alone_is_what_its_quotes_say():
    first = PANEL.groups[0]
    alone = PATH.without([date for date in PANEL.groups if date != first])
    assert alone.smoothed == alone.filtered == {first: PANEL.latent[first]}
    assert alone.log_likelihood == 0.0
    assert isnan(alone.mean_surprise)
    assert first in alone.summary()
    with pytest.raises(UsageError):
        alone.without(first)


def test_a_panel_of_days_that_are_not_dates_is_refused_and_so_is_what_has_no_dynamics():
    with raises(UsageError, label="day"):
        so.calibrate(QUOTES, HESTON, panel="day", starts=1).filter()
    with raises(UsageError, mentions={"panel"}):
        so.calibrate(of_date(LAST), HESTON, starts=1).filter()
    with raises(UsageError, mentions={"strength"}):
        PANEL.filter(strength=-1.0)
    with raises(UsageError, mentions={"loss"}):
        so.calibrate(QUOTES, HESTON, panel="date", starts=1, loss="huber").filter()
    with pytest.raises(UsageError, match="already"):
        PATH.roll(of_date(LAST))
    with pytest.raises(UnknownIdError):
        PATH.without("2030-01-01")


def test_a_date_on_its_bound_is_observed_there():
    ceiling = float(np.median(list(PANEL.latent.values())))
    bound = so.calibrate(QUOTES, HESTON, panel="date", starts=1, bounds={"initial_variance": (1e-3, ceiling)})
    path = bound.filter(strength=0.0)
    assert bound.latent_on_bound
    assert path.filtered == bound.latent
    last = bound.groups[-1]
    assert everything(path.without(last).roll(of_date(last))) == everything(path)


def test_a_path_is_shown_as_text_html_a_frame_and_a_picture():
    frame = PATH.to_frame()
    assert frame.height == 30
    assert frame["smoothed"].to_list() == list(PATH.smoothed.values())
    assert MIDDLE in PATH.summary()
    assert "<table>" in PATH._repr_html_()
    assert "30 dates" in repr(PATH)
    from strikeout.plots import plot_variance_path, style

    assert style.to_bytes(plot_variance_path(PATH), "svg") == style.to_bytes(plot_variance_path(PATH), "svg")


def test_dates_named_below_a_path_with_a_gap_stand_apart():
    from strikeout.plots import plot_variance_path

    figure = plot_variance_path(PANEL.filter(dates=["2026-06-01"]))
    ticks = figure.axes[1].get_xticks()
    assert len(ticks) >= 2
    assert np.diff(ticks).min() > (ticks[-1] - ticks[0]) / 10.0
    assert [figure.axes[1].get_xticklabels()[n].get_text() for n in (0, -1)] == [PANEL.groups[0], "2026-06-01"]


def test_a_path_of_a_panel_that_did_not_converge_says_so():
    stopped = replace(PATH, shared=replace(PATH.shared, converged=False))
    assert len(stopped.facts()) == len(PATH.facts()) + 1
