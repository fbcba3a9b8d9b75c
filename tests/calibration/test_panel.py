"""Panels: shared parameters and one latent parameter a group."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.latent_test import LatentTest, latent_test
from strikeout.calibration.panels import grouped
from strikeout.errors import ParameterError, UnidentifiedError, UsageError
from strikeout.synthetic.heston_quotes import TRUTH
from tests.calibration.smile_model import Smile
from tests.raising import raises

HESTON = so.Heston()
NOISE = 5e-4
SHARED = ("mean_reversion", "long_variance", "vol_of_vol", "correlation")
DAYS = so.synthetic.panel_quotes(24, seed=5)
PANEL = so.calibrate(DAYS, HESTON, panel="date")


def true_path(quotes: so.Quotes) -> dict[str, float]:
    return dict(zip(quotes.labels["date"].tolist(), quotes.labels["variance"].tolist(), strict=True))


def dense_covariance(panel: so.results.Calibration) -> np.ndarray:
    """The covariance of all parameters from one Jacobian of everything: shared ones first, then a column a group."""
    names, groups = panel.model.parameters.names, panel.groups
    k = names.index(panel.latent_name)
    jacobian = np.zeros((len(panel.quotes), len(names) - 1 + len(groups)))
    for n, group in enumerate(groups):
        rows = panel.rows[group]
        _, part = panel.model.linearize(panel.theta(group), panel.quotes.contracts[rows])
        jacobian[rows, : len(names) - 1] = np.delete(part, k, axis=1)
        jacobian[rows, len(names) - 1 + n] = part[:, k]
    jacobian *= np.sqrt(panel.quotes.weight)[:, None]
    scale = 1.0 / np.sqrt((jacobian**2).sum(axis=0))
    inverse = np.linalg.inv((jacobian * scale).T @ (jacobian * scale)) * np.outer(scale, scale)
    return panel.cost / (len(panel.quotes) - jacobian.shape[1]) * inverse


def test_180_days_give_the_truth_within_3_standard_errors_on_20_seeds():
    for seed in range(20):
        quotes = so.synthetic.panel_quotes(180, seed=seed)
        panel = so.calibrate(quotes, HESTON, panel="date", starts=1)
        assert panel.converged, seed
        for name in SHARED:
            assert abs(panel.parameters[name] - TRUTH[name]) < 3.0 * panel.standard_errors[name], (seed, name)
        truth = true_path(quotes)
        errors = np.array([panel.latent[day] - truth[day] for day in panel.groups])
        assert np.sqrt(np.mean(errors**2)) < 5e-5, seed
        # A chi-square of 180: its root mean square lies within a quarter of one but for once in a million.
        scores = errors / np.array(list(panel.latent_standard_errors.values()))
        assert 0.75 < np.sqrt(np.mean(scores**2)) < 1.25, seed
        # The noise that is left of 2,700 quotes after 184 parameters; 5 % is 3.5 of its standard deviations.
        assert panel.rmse == pytest.approx(NOISE * np.sqrt(1.0 - 184 / 2700), rel=0.05), seed


def test_a_constant_variance_misses_the_same_quotes_by_a_hundred_noise_levels():
    constant = so.calibrate(DAYS, HESTON)
    assert constant.rmse > 100.0 * NOISE > 50.0 * PANEL.rmse


def test_the_order_of_the_rows_changes_no_bit():
    again = so.calibrate(DAYS[np.random.default_rng(0).permutation(len(DAYS))], HESTON, panel="date")
    assert again.parameters == PANEL.parameters
    assert again.latent == PANEL.latent
    assert again.latent_standard_errors == PANEL.latent_standard_errors
    assert (again.cost, again.rmse, again.state.digest()) == (PANEL.cost, PANEL.rmse, PANEL.state.digest())


def test_the_names_of_the_groups_change_no_bit_of_the_parameters():
    names = np.array([f"day {900 - n}" for n in DAYS.labels["day"]], dtype=object)  # the other way round
    renamed = so.Quotes(ids=DAYS.ids, contracts=DAYS.contracts, observed=DAYS.observed, labels={"when": names})
    again = so.calibrate(renamed, HESTON, panel="when")
    assert again.parameters == PANEL.parameters
    assert list(again.latent.values()) == list(PANEL.latent.values())[::-1]


def test_standard_errors_are_those_of_one_problem_of_all_parameters():
    errors = np.sqrt(np.diag(dense_covariance(PANEL)))
    ours = [*PANEL.standard_errors.values(), *PANEL.latent_standard_errors.values()]
    # Latent parameters are settled to 1e-8 of themselves, and curvatures follow them.
    np.testing.assert_allclose(ours, errors, rtol=1e-7)


def test_no_step_of_all_parameters_together_helps_any_more():
    step = PANEL.system.step()
    shared = step.change / np.array(list(PANEL.standard_errors.values()))
    latent = step.latent_changes / np.array(list(PANEL.latent_standard_errors.values()))
    assert max(np.abs(shared).max(), np.abs(latent).max()) < 1e-6  # of a standard error; rows are rounded to 4.5e-13


def test_a_panel_of_one_group_is_a_plain_calibration():
    day = DAYS[DAYS.labels["date"] == PANEL.groups[0]]
    fixed = {"mean_reversion": 2.0, "long_variance": 0.06}  # fifteen quotes do not determine five parameters well
    plain, panel = (so.calibrate(day, HESTON, fixed=fixed, panel=label) for label in (None, "date"))
    for name in ("vol_of_vol", "correlation"):
        error = plain.standard_errors[name]
        assert abs(plain.parameters[name] - panel.parameters[name]) < 1e-5 * error
        assert panel.standard_errors[name] == pytest.approx(error, rel=1e-6)
    (value,), (error,) = panel.latent.values(), panel.latent_standard_errors.values()
    assert abs(value - plain.parameters["initial_variance"]) < 1e-5 * error
    assert error == pytest.approx(plain.standard_errors["initial_variance"], rel=1e-6)
    assert panel.fixed == fixed


@pytest.mark.parametrize("residual", ["price", "implied_vol"])
def test_every_weighting_and_residual_finds_the_truth(residual):
    weights = "vega" if residual == "price" else "given"
    panel = so.calibrate(DAYS, HESTON, panel="date", residual=residual, weights=weights, starts=1)
    assert panel.converged
    for name in SHARED:
        assert abs(panel.parameters[name] - TRUTH[name]) < 4.0 * panel.standard_errors[name]


def test_enforcing_fellers_condition_binds_where_it_has_to():
    theta = dict(TRUTH, vol_of_vol=0.8)  # 2 x 2 x 0.06 < 0.64
    quotes = so.synthetic.panel_quotes(12, seed=2, theta=theta)
    panel = so.calibrate(quotes, HESTON, panel="date", feller="enforce")
    assert panel.converged
    assert panel.feller_ratio == pytest.approx(1.0, abs=1e-9)
    free = so.calibrate(quotes, HESTON, panel="date")
    assert free.cost < panel.cost
    assert any("Feller" in sentence for sentence in free.warnings)


def test_a_day_whose_variance_ends_on_a_bound_is_named_and_has_no_standard_error():
    second, largest = sorted(PANEL.latent.values())[-2:]
    ceiling = 0.5 * (second + largest)
    panel = so.calibrate(DAYS, HESTON, panel="date", bounds={"initial_variance": (1e-3, ceiling)})
    day = max(PANEL.latent, key=PANEL.latent.__getitem__)
    assert panel.termination is so.results.Termination.CONVERGED_ON_BOUND
    assert panel.latent_on_bound == {day: ceiling}
    assert np.isnan(panel.latent_standard_errors[day])
    assert panel.latent_identifiability[day] == f"on its bound {ceiling:g}"
    assert any(f"on its bound in 1 group ({day})" in sentence for sentence in panel.warnings)
    assert panel.system.step().latent[day] == ceiling  # held in a step as well


def test_a_day_without_any_variance_that_drives_a_shared_parameter_to_its_bound_is_no_converged_panel():
    worthless = DAYS.observed.copy()
    day = DAYS.labels["date"] == PANEL.groups[3]
    worthless[day] = DAYS.contracts.intrinsic[day]  # no variance at all
    panel = so.calibrate(DAYS.with_observed(worthless), HESTON, panel="date", starts=1)
    assert panel.latent_on_bound == {PANEL.groups[3]: 1e-8}
    assert panel.on_bound == {"mean_reversion": 1e-3}
    assert panel.termination is so.results.Termination.AT_BOUND


def test_a_day_of_one_quote_has_a_variance_and_says_nothing_of_the_shared_parameters():
    day = PANEL.groups[7]
    rows = np.flatnonzero(DAYS.labels["date"] == day)
    thinned = DAYS.without(DAYS.ids[rows[1:]])
    panel = so.calibrate(thinned, HESTON, panel="date")
    without = so.calibrate(thinned.without(DAYS.ids[rows[:1]]), HESTON, panel="date")
    assert not panel.system.pieces[day].words.any()
    for name in SHARED:
        assert abs(panel.parameters[name] - without.parameters[name]) < 1e-6 * without.standard_errors[name]
        assert panel.standard_errors[name] == pytest.approx(without.standard_errors[name], rel=1e-6)
    residual = panel.residuals[thinned.labels["date"] == day]
    assert abs(residual[0]) < 1e-9
    assert "1 quote" in panel.latent_identifiability[day]
    assert any("There is only 1 quote in 1 group" in sentence for sentence in panel.warnings)


def test_days_of_weight_zero_are_as_if_never_there():
    gone = DAYS.labels["date"] == PANEL.groups[2]
    weighted = so.calibrate(DAYS, HESTON, panel="date", weights=np.where(gone, 0.0, 1.0))
    without = so.calibrate(DAYS[~gone], HESTON, panel="date", weights=np.ones(int((~gone).sum())))
    assert weighted.parameters == without.parameters
    assert weighted.latent == without.latent
    assert weighted.state == without.state


def test_the_settings_calibrate_other_quotes_the_same_way():
    again = so.calibrate(DAYS, PANEL.asked, **PANEL.settings.keywords())
    assert isinstance(again, so.results.Calibration)
    assert again.parameters == PANEL.parameters


def test_numbers_and_dates_are_groups_too():
    by_number = so.calibrate(DAYS, HESTON, panel="day", starts=1)
    assert by_number.groups == tuple(range(24))
    dates = np.array(DAYS.labels["date"].tolist(), "datetime64[D]")
    dated = so.Quotes(ids=DAYS.ids, contracts=DAYS.contracts, observed=DAYS.observed, labels={"date": dates})
    assert tuple(grouped(dated, "date")) == PANEL.groups


def test_random_truths_are_found_from_the_canonical_starts():
    rng = np.random.default_rng(0)
    for seed in range(10):
        theta = {
            "mean_reversion": np.exp(rng.uniform(np.log(0.3), np.log(12.0))),
            "long_variance": np.exp(rng.uniform(np.log(0.01), np.log(0.3))),
            "vol_of_vol": np.exp(rng.uniform(np.log(0.1), np.log(2.0))),
            "correlation": rng.uniform(-0.9, 0.5),
            "initial_variance": np.exp(rng.uniform(np.log(0.01), np.log(0.3))),
        }
        panel = so.calibrate(so.synthetic.panel_quotes(12, seed=seed, theta=theta), HESTON, panel="date")
        assert panel.converged, theta
        assert panel.agreement == 4, theta
        for name in SHARED:  # forty numbers: beyond 4 standard errors once in four hundred such tests
            assert abs(panel.parameters[name] - theta[name]) < 4.0 * panel.standard_errors[name], (theta, name)


def test_a_model_with_jumps_shares_them():
    days = so.synthetic.panel_quotes(6, seed=1)
    jumps = {"jump_intensity": 0.5, "jump_mean": -0.1, "jump_deviation": 0.15}
    truth, bates = true_path(days), so.Bates()
    shared = {name: TRUTH[name] for name in SHARED} | jumps
    observed = days.observed.copy()
    for day, variance in truth.items():
        rows = days.labels["date"] == day
        observed[rows] = bates.price({**shared, "initial_variance": variance}, days.contracts[rows])
    panel = so.calibrate(days.with_observed(observed), bates, panel="date", fixed=jumps, starts=1)
    assert panel.converged
    for name in SHARED:
        assert panel.parameters[name] == pytest.approx(TRUTH[name], rel=1e-5)
    for day, variance in truth.items():
        assert panel.latent[day] == pytest.approx(variance, rel=1e-5)


@dataclass(frozen=True)
class DailySmile(Smile):
    name: str = "daily smile"
    latent: str = "level"


def test_a_model_of_ones_own_says_what_is_latent():
    rng = np.random.default_rng(3)
    levels = {"a": 0.2, "b": 0.5, "c": 0.1}
    strikes = 100.0 * np.exp(np.tile(np.linspace(-0.3, 0.3, 9), 3))
    contracts = so.Contracts(forward=100.0, strike=strikes, expiry=0.5, discount=1.0, is_call=True)
    labels = np.repeat(list(levels), 9)
    observed = np.concatenate(
        [
            Smile().price({"level": level, "skew": -0.1, "smile": 0.3}, contracts[labels == name])
            for name, level in levels.items()
        ]
    )
    observed += 1e-4 * rng.standard_normal(27)
    quotes = so.Quotes(ids=np.arange(27).astype(str), contracts=contracts, observed=observed, labels={"desk": labels})
    panel = so.calibrate(quotes, DailySmile(), panel="desk")
    assert panel.converged
    assert panel.latent_name == "level"
    for name, level in levels.items():
        assert abs(panel.latent[name] - level) < 4.0 * panel.latent_standard_errors[name]
    with raises(UsageError, model="smile"):
        so.calibrate(quotes, Smile(), panel="desk")


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"panel": "week"}, UsageError, "week"),
        ({"panel": 3}, UsageError, "name of a label"),
        ({"panel": "date", "fixed": {"initial_variance": 0.05}}, UsageError, "every group"),
        ({"panel": "date", "bounds": {"initial_variance": (0.1, 0.01)}}, ParameterError, "contain no number"),
        ({"panel": "date", "bounds": {"variance": (0.1, 0.2)}}, ParameterError, "no parameter"),
        ({"panel": "date", "weights": [1.0, 2.0]}, UsageError, "need 360 weights"),
        ({"panel": "source", "starts": 0}, UsageError, "at least one"),
    ],
)
def test_what_a_panel_cannot_do_is_said(keywords, error, words):
    with pytest.raises(error, match=words):
        so.calibrate(DAYS, HESTON, **keywords)


def test_moments_have_no_groups():
    with raises(UsageError, mentions={"panel"}):
        so.calibrate(so.states.moments_of(DAYS), HESTON, panel="date")


def test_quotes_without_a_date_are_named():
    dates = DAYS.labels["date"].copy()
    dates[5] = ""
    quotes = so.Quotes(ids=DAYS.ids, contracts=DAYS.contracts, observed=DAYS.observed, labels={"date": dates})
    with raises(UsageError, ids=["d0000-60-80"]):
        so.calibrate(quotes, HESTON, panel="date")


def test_a_quote_a_day_is_too_few():
    first = [np.flatnonzero(DAYS.labels["date"] == day)[0] for day in PANEL.groups]
    with raises(UnidentifiedError, mentions={"fixed", "panel"}, free=4, count=24, groups=24):
        so.calibrate(DAYS[first], HESTON, panel="date")


def test_one_expiry_a_day_does_not_determine_every_shared_parameter():
    one = DAYS[DAYS.contracts.expiry == DAYS.contracts.expiry.min()]
    panel = so.calibrate(one[one.labels["day"] < 3], HESTON, panel="date")
    assert not panel.converged
    assert panel.unidentified
    assert "free" in panel.identifiability[panel.unidentified[0]]


def test_starts_of_ones_own_may_name_the_latent_parameter_or_not():
    start = dict(PANEL.parameters)
    found = so.calibrate(DAYS, HESTON, panel="date", starts=start)
    same = so.calibrate(DAYS, HESTON, panel="date", starts={**start, "initial_variance": 0.5})
    assert found.parameters == same.parameters
    assert len(found.history) < len(PANEL.history)


def test_the_summary_shows_the_shared_parameters_and_the_path():
    text = PANEL.summary()
    assert all(name in text for name in SHARED)
    assert "24 values, one per date" in text
    assert all(day in PANEL.report() for day in PANEL.groups)
    assert "<table>" in PANEL._repr_html_()
    assert "24 values of initial_variance" in repr(PANEL)
    plain = json.loads(json.dumps(PANEL.to_dict(), allow_nan=False))
    assert plain["latent"]["values"] == PANEL.latent


def test_a_plain_calibration_says_what_a_value_a_date_would_gain():
    moving = so.calibrate(DAYS, HESTON)
    gain = latent_test(moving)
    assert gain.worth_it
    assert gain.dates == 24
    assert 1.0 < gain.factor <= moving.rmse / PANEL.rmse  # the panel finds the shared ones anew, and gains more
    assert 'panel="date"' in moving.summary()


def test_a_constant_variance_is_not_talked_out_of():
    constant = so.calibrate(so.paper.quotes("small"), HESTON)
    gain = latent_test(constant)
    # Of 89 further parameters and 446 quotes left: an F about one, above 1.5 once in a thousand.
    assert 0.5 < gain.ratio < 1.5
    assert not gain.worth_it
    assert "no more than noise" in constant.summary()
    fixed = so.calibrate(so.paper.quotes("small"), HESTON, fixed={"initial_variance": 0.06})
    assert latent_test(fixed) is None
    assert latent_test(so.calibrate(so.synthetic.random_quotes(100), HESTON)) is None


def test_memory_grows_with_the_days_and_not_with_their_square():
    def peak(days: int) -> int:
        quotes = so.synthetic.panel_quotes(days, seed=1)
        tracemalloc.start()
        so.calibrate(quotes, HESTON, panel="date", starts=1)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)  # what is loaded once
    # Five times the days; a matrix of all parameters would take twenty-five times as much.
    assert peak(200) < 7 * peak(40)


def test_a_function_of_ones_own_says_what_is_latent():
    # Decay at one rate from another height in every vessel: heights from 3 to minus 2, and one of nothing at all.
    rng = np.random.default_rng(8)
    heights = {"a": 3.0, "b": -2.0, "c": 0.0, "d": 0.5}
    t = np.tile(np.linspace(0.0, 10.0, 12), len(heights))
    vessel = np.repeat(list(heights), 12)
    level = np.array([heights[name] for name in vessel])
    observed = level * np.exp(-0.3 * t) + 0.1 + 1e-3 * rng.standard_normal(len(t))
    quotes = so.Quotes.from_columns(np.arange(len(t)).astype(str), observed, labels={"vessel": vessel}, t=t)
    decay = so.custom_model(
        "decay",
        parameters={"height": 1.0, "rate": 0.1, "floor": 0.0},
        price=lambda height, rate, floor, t: height * np.exp(-rate * t) + floor,
        latent="height",
    )
    panel = so.calibrate(quotes, decay, panel="vessel")
    assert panel.converged
    assert abs(panel.parameters["rate"] - 0.3) < 4.0 * panel.standard_errors["rate"]
    assert abs(panel.parameters["floor"] - 0.1) < 4.0 * panel.standard_errors["floor"]
    for name, height in heights.items():
        assert abs(panel.latent[name] - height) < 4.0 * panel.latent_standard_errors[name]
    with raises(ParameterError, latent="height", name="decay"):
        so.custom_model("decay", parameters={"rate": 0.1}, price=lambda rate, t: rate * t, latent="height")


def test_a_panel_says_which_of_its_quotes_count_as_a_plain_calibration_does():
    panel, plain = (so.calibrate(DAYS, HESTON, panel=by, select="otm") for by in ("date", None))
    said = f"{panel.count:,} out of the money, of {len(DAYS):,}"
    assert panel.count < len(DAYS)
    assert f"  {said}, of 24 dates\n" in panel.summary()
    assert f"  {said}\n" in plain.summary()
    assert panel.to_dict()["select"] == "otm"
    assert plain.to_dict().keys() == panel.to_dict().keys() - {"panel", "latent"}


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.048, "by about 4.6 %:"), (2.3, " about 2.3 times:"), (1340.0, " about 1,340 times:"), (np.inf, "to nothing:")],
)
def test_a_gain_is_told_as_a_share_or_a_multiple(factor, words):
    """Nobody lowers a misfit "about 1 times"."""
    assert words in str(LatentTest("initial_variance", 3, 9.0, factor))
