"""Worst-case removal: the few quotes whose removal changes a conclusion most."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError


def line(x, y):
    """A straight line through points, as a calibration: linear, so that one exact step is the refit."""
    model = so.custom_model(
        "line", parameters={"level": 0.0, "slope": 1.0}, price=lambda level, slope, x: level + slope * x
    )
    return so.calibrate(so.Quotes.from_columns([f"q{i}" for i in range(len(x))], y, x=x), model)


def brute(x, y, count):
    """The slopes of least squares without every set of so many points, by NumPy."""
    found = {}
    for gone in combinations(range(len(x)), count):
        kept = np.delete(np.arange(len(x)), gone)
        found[gone] = np.polyfit(x[kept], y[kept], 1)[0]
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_a_linear_model_every_predicted_value_is_the_refit(seed, count):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=20), rng.normal(size=20)
    calibration = line(x, y)
    found = so.robustness(calibration, "slope", count=count)
    slopes = brute(x, y, count)
    for one in (found.raising, found.lowering):
        gone = tuple(sorted(int(name[1:]) for name in one.ids))
        assert one.predicted[-1] == pytest.approx(slopes[gone], abs=1e-9)
        assert one.value == pytest.approx(slopes[gone], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_one_quote_is_the_best_of_all_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=25), rng.normal(size=25)
    calibration = line(x, y)
    found, slopes = so.robustness(calibration, "slope", count=1), brute(x, y, 1)
    assert found.raising.value == pytest.approx(max(slopes.values()), abs=1e-9)
    assert found.lowering.value == pytest.approx(min(slopes.values()), abs=1e-9)


def test_quotes_that_mask_each_other_are_found_though_their_single_influences_are_not_the_largest():
    """Two far points agree with each other: removing one changes little, removing both changes everything."""
    rng = np.random.default_rng(3)
    x = np.r_[rng.uniform(-1.0, 1.0, 18), 10.0, 10.05]
    y = np.r_[rng.normal(0.0, 0.3, 18), 10.0, 10.0]
    calibration = line(x, y)
    slopes = brute(x, y, 2)
    best = min(slopes, key=lambda gone: slopes[gone])
    assert best == (18, 19)
    found = so.robustness(calibration, "slope", count=2)
    assert set(found.lowering.ids) == {"q18", "q19"}
    assert found.lowering.value == pytest.approx(slopes[best], abs=1e-9)
    alone = brute(x, y, 1)
    now = calibration.parameters["slope"]
    summed = now + sum(alone[(i,)] - now for i in best)
    assert abs(summed - now) < 0.2 * abs(slopes[best] - now)


@pytest.fixture(scope="module")
def heston():
    return so.calibrate(so.paper.quotes("small", seed=3), so.Heston())


def test_more_removals_never_move_less_and_the_refit_confirms(heston):
    found = so.robustness(heston, "mean_reversion", count=5)
    assert list(found.raising.predicted) == sorted(found.raising.predicted)
    assert list(found.lowering.predicted) == sorted(found.lowering.predicted, reverse=True)
    retained = heston.quotes.without(found.raising.ids)
    assert found.raising.value == so.calibrate(retained, so.Heston()).parameters["mean_reversion"]
    assert found.raising.moved > 0.0 > found.lowering.moved


def test_the_greedy_set_moves_farther_than_the_largest_single_influences(heston):
    column = "change_mean_reversion"
    single = so.influence(heston)
    ids = single["id"][np.argsort(-single[column], kind="stable")[:10]]
    theirs = so.calibrate(heston.quotes.without(ids), so.Heston()).parameters["mean_reversion"]
    assert so.robustness(heston, "mean_reversion", count=10).raising.value >= theirs


def test_a_function_of_the_parameters_and_its_name_agree(heston):
    ratio = so.robustness(heston, "feller_ratio", count=2)
    own = so.robustness(heston, lambda p: 2 * p["mean_reversion"] * p["long_variance"] / p["vol_of_vol"] ** 2, count=2)
    assert ratio.raising.ids == own.raising.ids
    assert ratio.raising.moved == pytest.approx(own.raising.moved, rel=1e-6)
    assert ratio.value == heston.feller_ratio


def test_groups_are_removed_whole(heston):
    found = so.robustness(heston, "correlation", by="date", count=1)
    gone = heston.quotes.only(found.raising.ids)
    assert set(gone.labels["date"]) == {found.raising.groups[0]}
    assert len(gone) == np.sum(heston.quotes.labels["date"] == found.raising.groups[0])
    assert found.to_dict()["raising"]["groups"] == [found.raising.groups[0]]
    assert found.raising.groups[0] in found.summary()


def test_the_order_of_the_quotes_changes_nothing(heston):
    turned = so.calibrate(heston.quotes[::-1], so.Heston())
    assert so.robustness(turned, count=3).raising.groups == so.robustness(heston, count=3).raising.groups


@pytest.mark.parametrize(
    "asked",
    [
        {"target": "kappa_of_the_day"},
        {"count": 0},
        {"count": 10**6},
        {"share": 1.5},
        {"count": 2, "share": 0.1},
        {"by": "desk"},
    ],
)
def test_a_question_without_an_answer_is_refused(heston, asked):
    with pytest.raises(UsageError):
        so.robustness(heston, **asked)


def test_a_panel_is_refused():
    panel = so.calibrate(so.synthetic.panel_quotes(4, seed=1), so.Heston(), panel="date")
    with pytest.raises(RefusedError):
        so.robustness(panel, "correlation", count=2)
