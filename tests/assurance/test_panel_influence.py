"""Influence on a panel is what leaving out would do to its shared parameters: refits of linear and of real panels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout.assurance.influence import influence
from strikeout.errors import UsageError
from strikeout.quotes.reading import inspect_quotes
from tests.assurance.linear_model import Linear, book
from tests.quotes.chains import chain
from tests.raising import raises

SHARED = ("b0", "b1")


@dataclass(frozen=True, eq=False)
class LinearPanel(Linear):
    """The same line for all groups, and an own multiple of the last feature for each."""

    latent: str = "b2"


@pytest.fixture(scope="module")
def line():
    """Seven days of unequal size, one of a single quote; two shared parameters; desks across the days."""
    rng = np.random.default_rng(4)
    day = np.repeat(np.arange(7), [9, 4, 12, 1, 7, 2, 15])
    features = np.column_stack([rng.standard_normal((len(day), 2)) * [1.0, 20.0], rng.uniform(0.5, 1.5, len(day))])
    y = features[:, :2] @ [2.0, -0.3] + features[:, 2] * np.array([1, 5, -2, 3, 0, 8, 4])[day]
    y = y + 0.3 * rng.standard_normal(len(day))
    desk = rng.choice(["a", "b", "c"], len(day))
    weight = rng.uniform(0.5, 2.0, len(day))
    quotes = book(y, day=day, desk=desk)
    panel = so.calibrate(quotes, LinearPanel(features), panel="day", weights=weight)
    return features, y, weight, day, desk, panel


def solved(features, y, weight, day):
    """The dense way: one column a day for its own parameter. Parameters, curvature, weighted cost, plain residuals."""
    days = sorted(set(day.tolist()))
    own = np.column_stack([np.where(day == d, features[:, 2], 0.0) for d in days])
    X = np.column_stack([features[:, :2], own])
    root = np.sqrt(weight)[:, None]
    theta, *_ = np.linalg.lstsq(root * X, root[:, 0] * y, rcond=None)
    r = y - X @ theta
    return theta, (root * X).T @ (root * X), float(np.sum(weight * r * r)), r


def test_a_linear_panel_is_the_dense_regression_with_one_column_a_day(line):
    features, y, weight, day, _, panel = line
    theta, H, cost, r = solved(features, y, weight, day)
    assert [*panel.parameters.values(), *panel.latent.values()] == pytest.approx(theta, rel=1e-9)
    errors = np.sqrt(np.diag(np.linalg.inv(H)) * cost / (len(y) - len(theta)))
    found = [*panel.standard_errors.values(), *panel.latent_standard_errors.values()]
    assert found == pytest.approx(errors, rel=1e-9)
    assert panel.residuals == pytest.approx(r, abs=1e-9)


@pytest.mark.parametrize("by", [None, "day", "desk"])
def test_every_row_is_the_dense_regression_without_its_quotes(line, by):
    features, y, weight, day, desk, panel = line
    found = influence(panel, by)
    theta, H, cost, r = solved(features, y, weight, day)
    groups = {None: np.array([f"r{i}" for i in range(len(y))]), "day": day, "desk": desk}[by]
    column = found["id" if by is None else by]
    pooled = cost / (len(y) - len(theta))
    assert len(column) == len(set(groups.tolist()))
    for row, name in enumerate(column.tolist()):
        kept = groups != name
        alone, _, left, after = solved(features[kept], y[kept], weight[kept], day[kept])
        moved = alone[:2] - theta[:2]
        assert [found[f"change_{n}"][row] for n in SHARED] == pytest.approx(moved, rel=1e-7, abs=1e-12), name
        noise = np.sqrt(left / (kept.sum() - len(alone)))
        expected = -moved / (noise * np.sqrt(np.diag(np.linalg.inv(H))[:2]))
        assert [found[f"dfbetas_{n}"][row] for n in SHARED] == pytest.approx(expected, rel=1e-7, abs=1e-10)
        reduced = np.linalg.inv(np.linalg.inv(H)[:2, :2])
        assert found["cooks_d"][row] == pytest.approx(moved @ reduced @ moved / (2 * pooled), rel=1e-7, abs=1e-14)
        rmse = np.sqrt(np.mean(after**2)) - panel.rmse
        assert found["rmse_change"][row] == pytest.approx(rmse, rel=1e-7, abs=1e-12)
        assert found["price_change"][row] == pytest.approx(np.abs(after - r[kept]).max(), rel=1e-7, abs=1e-11)
        fall = np.sqrt(max(cost - left, 0.0) / ((~kept).sum() * pooled))
        assert abs(found["resid_studentized"][row]) == pytest.approx(fall, rel=1e-6, abs=1e-6)
        assert found["count"][row] == (~kept).sum()


def test_a_day_of_one_quote_moves_nothing(line):
    """Its own parameter meets it, whatever the others are."""
    found = influence(line[-1], "day")
    row = found["day"].tolist().index(3)
    assert found["cooks_d"][row] == pytest.approx(0.0, abs=1e-20)
    assert found["leverage"][row] == pytest.approx(0.0, abs=1e-12)


def test_the_first_days_of_a_heston_panel_move_it_as_calibrating_anew_says():
    panel = so.calibrate(so.synthetic.panel_quotes(days=10, seed=2), so.Heston(), panel="date")
    for by in ("date", None, "expiry"):
        found = influence(panel, by, confirm=3)
        for name in panel.parameters:
            step, true = found[f"change_{name}"][:3], found[f"confirmed_{name}"][:3]
            error = panel.standard_errors[name]
            assert step / error == pytest.approx(true / error, abs=0.02), (by, name)  # of a standard error
        assert found["rmse_change"][:3] == pytest.approx(found["confirmed_rmse_change"][:3], rel=1e-2)
        assert found["price_change"][:3] == pytest.approx(found["confirmed_price_change"][:3], rel=2e-2)
        assert (np.diff(found["cooks_d"]) <= 0.0).all()


def test_fixed_and_held_parameters_do_not_move():
    quotes = so.synthetic.panel_quotes(days=12, seed=3)
    bounds = {"initial_variance": (0.01, 0.0877)}  # the last day's variance is above
    panel = so.calibrate(quotes, so.Heston(), panel="date", fixed={"mean_reversion": 2.0}, bounds=bounds)
    assert panel.latent_on_bound
    found = influence(panel, "date", confirm=2)
    assert "change_mean_reversion" not in found
    for name in ("vol_of_vol", "correlation"):
        error = panel.standard_errors[name]
        assert found[f"change_{name}"][:2] / error == pytest.approx(found[f"confirmed_{name}"][:2] / error, abs=0.05)


def test_a_corrupt_day_comes_first():
    quotes = so.synthetic.panel_quotes(days=12, seed=3)
    bad = quotes.labels["day"] == 7
    panel = so.calibrate(
        quotes.with_observed(np.where(bad, 1.05 * quotes.observed, quotes.observed)), so.Heston(), panel="date"
    )
    assert influence(panel, "date")["date"][0] == quotes.labels["date"][bad][0]


def test_a_panel_without_which_nothing_is_determined_comes_first_and_says_so():
    """Two of three expiries: without both of them mean reversion is free, whatever the days."""
    quotes = so.synthetic.panel_quotes(days=6, seed=1)
    short = quotes.contracts.expiry < 0.2
    panel = so.calibrate(quotes, so.Heston(), panel="date")
    found = influence(panel, np.where(short, "short", "long"))
    assert found["group"].tolist()[0] in ("short", "long")
    with raises(UsageError, label="desk"):
        influence(panel, "desk")


@pytest.mark.parametrize("select", ["all", "otm"])
def test_a_confirmed_row_of_a_panel_is_the_forgetting_of_it_with_its_forwards_found_anew(select):
    """Half the quotes of an expiry go: the other half keep it, with another forward."""
    table = chain(dates=("2024-03-01", "2024-03-04", "2024-03-05"), noise=0.05)
    high = (pl.col("strike") > 101.0) & (pl.col("expiry") == "2024-04-05")
    named = table.with_columns(pl.when(high).then(pl.lit("high")).otherwise(pl.lit("rest")).alias("source"))
    panel = so.calibrate(inspect_quotes(named).quotes, so.Heston(), panel="date", select=select)
    found = influence(panel, "source", confirm=2)
    row = found["source"].tolist().index("high")
    done = so.forget(panel, ids=panel.quotes.ids[panel.quotes.labels["source"] == "high"])
    assert any(refit.forward[0] != refit.forward[1] for refit in done.refits)
    for name, value in done.parameters.items():
        assert found[f"confirmed_{name}"][row] == value - panel.parameters[name]
    assert found["confirmed_rmse_change"][row] == done.calibration.rmse - panel.rmse
