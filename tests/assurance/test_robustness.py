"""Worst-case removal: the few quotes whose removal changes a conclusion most."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError


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


def lines(seed: int, days: int = 5) -> so.results.Calibration:
    """A panel of parallel lines, one level per day: linear, so that one exact step is the refit."""
    rng = np.random.default_rng(seed)
    model = so.custom_model(
        "lines",
        parameters={"slope": 1.0, "level": 0.0},
        price=lambda slope, level, x: level + slope * x,
        latent="level",
    )
    day, x = np.repeat(np.arange(days), 5), rng.normal(size=5 * days)
    y = 2.0 * x + day + rng.normal(size=5 * days)
    labels = {"date": np.array([f"2024-01-{d + 1:02d}" for d in day]), "source": rng.choice(["a", "b", "c"], len(x))}
    quotes = so.Quotes.from_columns([f"q{i}" for i in range(len(x))], y, x=x, labels=labels)
    return so.calibrate(quotes, model, panel="date")


def slope_without(panel: so.results.Calibration, gone: np.ndarray) -> float:
    """The slope of least squares with a level per day, by NumPy."""
    kept = ~gone
    x, y, date = (
        panel.quotes.contracts.columns["x"][kept],
        panel.quotes.observed[kept],
        panel.quotes.labels["date"][kept],
    )
    levels = (date[:, None] == np.unique(date)[None, :]).astype(float)
    return float(np.linalg.lstsq(np.column_stack([x, levels]), y, rcond=None)[0][0])


@pytest.mark.parametrize("by", [None, "date", "source"])
def test_in_a_panel_the_best_group_is_that_of_brute_force(by):
    panel = lines(seed=4)
    found = so.robustness(panel, "slope", by=by, count=1)
    column = panel.quotes.ids if by is None else panel.quotes.labels[by]
    slopes = {name: slope_without(panel, column == name) for name in np.unique(column)}
    for one, best in ((found.raising, max), (found.lowering, min)):
        name = best(slopes, key=slopes.__getitem__)
        assert one.groups == (str(name),)
        assert one.value == pytest.approx(slopes[name], abs=1e-9)
        assert one.predicted[-1] == pytest.approx(slopes[name], abs=1e-9)


@pytest.mark.parametrize(("by", "count"), [(None, 3), ("date", 2), (["date", "source"], 3)])
def test_in_a_panel_every_predicted_value_is_the_refit(by, count):
    panel = lines(seed=1)
    found = so.robustness(panel, "slope", by=by, count=count)
    for one in (found.raising, found.lowering):
        assert len(one.groups) == count
        gone = np.isin(panel.quotes.ids, one.ids)
        assert one.predicted[-1] == pytest.approx(slope_without(panel, gone), abs=1e-9)
        assert one.value == pytest.approx(one.predicted[-1], abs=1e-9)


def test_the_days_of_a_heston_panel_are_confirmed_by_a_refit():
    panel = so.calibrate(so.synthetic.panel_quotes(6, seed=1), so.Heston(), panel="date")
    found = so.robustness(panel, "feller_ratio", by="date", count=2)
    retained = panel.quotes.without(found.lowering.ids)
    after = so.calibrate(retained, so.Heston(), panel="date")
    assert found.lowering.value == after.feller_ratio
    assert len(after.latent) == 4
    assert found.lowering.predicted[-1] == pytest.approx(
        after.feller_ratio, rel=1e-3
    )  # one step of a near-linear model
    assert found.lowering.moved < 0.0 < found.raising.moved
