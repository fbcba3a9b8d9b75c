"""Standard errors in the unit that is asked for: what it changes, and what it must not."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import numpy as np
import pytest

import strikeout as so
from benchmarks.coverage import covered, shocked_panel
from strikeout.calibration.standard_errors import Basis, Errors, Reason, Unit
from strikeout.errors import UsageError
from strikeout.synthetic.heston_quotes import TRUTH, panel_quotes

PANEL = panel_quotes(12, seed=5)
BOOK = so.paper.quotes("small", seed=2)


@pytest.fixture(scope="module")
def plain():
    return so.calibrate(BOOK, so.Heston())


@pytest.fixture(scope="module")
def panel():
    return so.calibrate(PANEL, so.Heston(), panel="date")


def in_unit(calibration, errors):
    """Return the same calibration with errors in another unit; nothing else is computed again."""
    return replace(calibration, settings=replace(calibration.settings, errors=errors)).errors


@pytest.mark.parametrize(
    "errors", ["independent", "cluster:source", "jackknife:source", ("cluster:date", "cluster:source")]
)
def test_the_unit_changes_neither_parameters_nor_state(plain, errors):
    other = so.calibrate(BOOK, so.Heston(), errors=errors)
    assert other.parameters == plain.parameters
    assert other.standard_errors == plain.standard_errors
    assert other.state.digest() == plain.state.digest()
    assert other.errors.unit is Errors.asked(errors).unit


def test_a_panel_is_clustered_by_its_groups_and_dates_come_before_expiries(plain, panel):
    assert (panel.errors.unit, panel.errors.labels, panel.errors.clusters) == (Unit.CLUSTER, ("date",), (12,))
    assert plain.errors.labels == ("date",)
    one_day = BOOK.only(BOOK.ids[BOOK.labels["date"] == BOOK.labels["date"][0]])
    few = so.calibrate(one_day, so.Heston(), fixed={"mean_reversion": 2.0, "long_variance": 0.06, "vol_of_vol": 0.3})
    assert few.errors.basis.reason is Reason.FEW_CLUSTERS
    assert few.errors.labels == ("expiry",)
    assert few.errors.standard_errors["correlation"] == few.standard_errors["correlation"]


def test_few_clusters_are_reported_in_the_summary(panel):
    assert not panel.errors.basis.is_few
    some = PANEL.only(PANEL.ids[PANEL.labels["day"] < 7])
    found = so.calibrate(some, so.Heston(), panel="date")
    assert found.errors.clusters == (7,)
    assert found.errors.basis.is_few
    assert found.errors.sentence in found.summary()


def test_errors_by_clusters_of_a_panel_are_those_of_the_whole_matrix(panel):
    """The sandwich over shared and latent parameters at once, without any elimination."""
    names, latent = list(panel.parameters), str(panel.latent_name)
    space, dates = panel.model.parameters, panel.groups
    X, e = np.zeros((len(PANEL), len(names) + len(dates))), panel.residuals
    for n, date in enumerate(dates):
        rows = panel.rows[date]
        _, jacobian = panel.model.linearize(space.vector(panel.theta(date)), PANEL.contracts[rows])
        X[rows, : len(names)] = jacobian[:, [space.names.index(name) for name in names]]
        X[rows, len(names) + n] = jacobian[:, space.names.index(latent)]
    for label in ("date", "expiry"):
        column = PANEL.labels["date"].astype(str) if label == "date" else PANEL.contracts.expiry
        scores = np.array([(X * e[:, None])[column == value].sum(axis=0) for value in np.unique(column)])
        K, (n, p) = len(scores), X.shape
        scale = 1.0 / np.sqrt(np.diag(X.T @ X))
        bread = scale[:, None] * np.linalg.inv(scale[:, None] * (X.T @ X) * scale) * scale
        whole = K / (K - 1) * (n - 1) / (n - p) * bread @ scores.T @ scores @ bread
        ours = in_unit(panel, f"cluster:{label}")
        wanted = np.sqrt(np.diag(whole))[: len(names)]
        # 1e-6: the residual score of a search that stopped at 1e-8 standard errors
        assert [ours.standard_errors[name] for name in names] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("kind", ["plain", "panel"])
def test_the_jackknife_is_that_of_refits_without_each_cluster(kind, plain, panel):
    calibration, label = (plain, "source") if kind == "plain" else (panel, "date")
    quotes, refits = calibration.quotes, []
    if kind == "plain":
        quotes = replace(quotes, labels={**quotes.labels, "source": (np.arange(len(quotes)) % 7).astype(str)})
        calibration = replace(calibration, quotes=quotes)
    for value in np.unique(quotes.labels[label].astype(str)):
        kept = quotes.only(quotes.ids[quotes.labels[label].astype(str) != value])
        refit = so.calibrate(
            kept, so.Heston(), panel=calibration.panel, starts=calibration.parameters if kind == "plain" else 1
        )
        refits.append(list(refit.parameters.values()))
    apart = np.array(refits) - np.mean(refits, axis=0)
    wanted = np.sqrt((len(refits) - 1) / len(refits) * np.sum(apart * apart, axis=0))
    ours = in_unit(calibration, f"jackknife:{label}")
    # One Gauss-Newton step per cluster leaves out the curvature of the model: a few parts in a thousand here.
    assert list(ours.standard_errors.values()) == pytest.approx(wanted, rel=2e-2)


def test_the_independent_covariance_has_the_standard_errors_on_its_diagonal(plain):
    found = in_unit(plain, "independent")
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(list(plain.standard_errors.values()), rel=1e-9)
    assert found.ratios == dict.fromkeys(plain.parameters, 1.0)


def test_a_held_parameter_has_no_error_and_the_others_are_given_it():
    found = so.calibrate(BOOK, so.Heston(), fixed={"mean_reversion": 2.0}).errors
    assert isnan(found.standard_errors["mean_reversion"])
    assert found.names == ("long_variance", "vol_of_vol", "correlation", "initial_variance")
    assert found.covariance.shape == (4, 4)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_huber_calibrations_have_clustered_errors_too(loss):
    found = so.calibrate(PANEL, so.Heston(), panel="date", loss=loss).errors
    assert all(0.3 < ratio < 3.0 for ratio in found.ratios.values())


@pytest.mark.parametrize(
    "errors", ["cluster", "cluster:", "clusters:date", "jackknife:date,source", ("independent", "cluster:date"), 3]
)
def test_an_unknown_unit_is_refused(errors):
    with pytest.raises(UsageError) if errors != 3 else pytest.raises((UsageError, TypeError)):
        so.calibrate(BOOK, so.Heston(), errors=errors)


def test_an_unknown_label_is_refused_by_name():
    with pytest.raises(UsageError) as refused:
        so.calibrate(BOOK, so.Heston(), errors="cluster:desk")
    assert refused.value.facts["label"] == "desk"


def test_moments_have_the_errors_of_independent_quotes_and_say_why():
    found = so.calibrate(so.states.moments_of(BOOK), so.Heston(), errors="cluster:date").errors
    assert (found.unit, found.basis.reason) == (Unit.INDEPENDENT, Reason.MOMENTS)


def test_enforced_feller_that_does_not_bind_changes_no_error(plain):
    enforced = so.calibrate(BOOK, so.Heston(), feller="enforce")
    # The search is in other coordinates and ends elsewhere within 1e-8 standard errors.
    assert enforced.errors.standard_errors == pytest.approx(plain.errors.standard_errors, rel=1e-4)


def test_enforced_feller_that_binds_leaves_the_errors_of_independent_quotes():
    wild = so.synthetic.random_quotes(300, seed=1, theta={**TRUTH, "vol_of_vol": 1.2}, noise=1e-3)
    found = so.calibrate(wild, so.Heston(), feller="enforce", errors="cluster:expiry")
    assert found.feller_ratio == pytest.approx(1.0)
    assert found.errors.basis.reason is Reason.FELLER


def test_a_basis_survives_storage():
    found = Basis(Unit.CLUSTER, ("date", "source"), (90, 2), (1.02, 2.0), 5)
    assert Basis.from_plain(found.to_plain()) == found


def test_intervals_follow_student_and_a_level_outside_is_refused(panel):
    low, high = panel.errors.interval("mean_reversion")
    # t with 11 degrees of freedom: 2.201 (tables)
    assert (high - low) / 2 == pytest.approx(2.201 * panel.errors.standard_errors["mean_reversion"], rel=1e-4)
    with pytest.raises(UsageError):
        panel.errors.interval("mean_reversion", level=95)


def test_intervals_of_clusters_cover_where_those_of_independent_quotes_do_not():
    """A small run of `python -m benchmarks.coverage`: 40 panels; the bounds are three binomial deviations away."""
    table = covered([shocked_panel(seed) for seed in range(40)])
    assert np.mean(list(table["independent"].values())) < 0.6
    assert min(table["cluster:date"].values()) > 0.82


@pytest.mark.parametrize("errors", ["auto", "cluster:expiry", "cluster:date,expiry", "jackknife:date"])
@pytest.mark.parametrize("kind", ["plain", "panel"])
def test_the_order_of_the_rows_changes_no_bit(kind, errors):
    quotes, by = (BOOK, None) if kind == "plain" else (PANEL, "date")
    shuffled = quotes[np.random.default_rng(1).permutation(len(quotes))]
    one, other = (so.calibrate(q, so.Heston(), panel=by, errors=errors).errors for q in (quotes, shuffled))
    assert np.array_equal(one.covariance, other.covariance, equal_nan=True)


@pytest.mark.parametrize("errors", ["auto", "cluster:date", "cluster:date,strike", "jackknife:date"])
@pytest.mark.parametrize("kind", ["plain", "panel"])
def test_errors_after_a_strike_out_are_those_of_quotes_that_were_never_there(kind, errors):
    """The scores of clusters are sums over retained quotes alone, in an order that no other quote can change."""
    quotes = BOOK if kind == "plain" else panel_quotes(8, seed=2, noise=0.02)
    settings = {"panel": "date" if kind == "panel" else None, "errors": errors, "starts": 1}
    before = so.calibrate(quotes, so.Heston(), **settings)
    for gone in (quotes.ids[[3, 40, 41]], quotes.ids[quotes.labels["date"] == before.quotes.labels["date"][0]]):
        after = so.forget(before, ids=gone).calibration.errors
        never = so.calibrate(quotes.without(gone), so.Heston(), **settings).errors
        assert after.basis == never.basis
        assert after.standard_errors == never.standard_errors
        assert np.array_equal(after.covariance, never.covariance)
        assert after.standard_errors != before.errors.standard_errors
