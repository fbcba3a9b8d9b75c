"""Covariances under clusters, against statsmodels where the model is linear."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.statistics.groups import clustered_covariance, jackknife_covariance

statsmodels = pytest.importorskip("statsmodels.api")


@pytest.fixture(scope="module", params=range(3))
def regression(request):
    """A weighted regression with errors that agree within days and within sources."""
    rng = np.random.default_rng(request.param)
    days, sources = rng.integers(0, 15, 300), rng.integers(0, 12, 300)
    X = np.c_[np.ones(300), rng.normal(size=(300, 2))]
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=15)[days] + 0.5 * rng.normal(size=12)[sources] + rng.normal(size=300)
    w = rng.uniform(0.5, 2.0, 300)
    fit = statsmodels.WLS(y, X, weights=w).fit()
    root = np.sqrt(w)
    rows = X * root[:, None]
    return rows, rows * (root * (y - X @ fit.params))[:, None], days, sources, fit


@pytest.mark.parametrize("which", ["days", "sources", "both"])
def test_clustered_covariances_are_those_of_statsmodels(regression, which):
    X, scores, days, sources, fit = regression
    groups = {"days": [days], "sources": [sources], "both": [days, sources]}[which]
    theirs = fit.get_robustcov_results(
        "cluster", groups=np.squeeze(np.array(groups).T), use_correction=True, use_t=False
    ).cov_params()
    ours = clustered_covariance(scores, X.T @ X, groups, 3)
    assert np.abs(ours - theirs).max() <= 1e-10 * np.abs(theirs).max()


def test_the_jackknife_of_the_mean_is_the_variance_of_the_mean():
    x = np.random.default_rng(4).normal(size=12)
    moves = np.array([[np.delete(x, i).mean() - x.mean()] for i in range(12)])
    assert jackknife_covariance(moves)[0, 0] == pytest.approx(x.var(ddof=1) / 12, rel=1e-12)


def test_clusters_of_one_quote_each_are_whites_covariance(regression):
    X, scores, _, _, fit = regression
    ours = clustered_covariance(scores, X.T @ X, [np.arange(len(X))], 3)
    theirs = fit.get_robustcov_results("HC1", use_t=False).cov_params()
    assert np.abs(ours - theirs).max() <= 1e-10 * np.abs(theirs).max()


def test_one_cluster_has_no_covariance(regression):
    X, scores, *_ = regression
    assert np.isnan(clustered_covariance(scores, X.T @ X, [np.zeros(len(X), dtype=int)], 3)).all()
    assert np.isnan(jackknife_covariance(np.zeros((1, 3)))).all()
