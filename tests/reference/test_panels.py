"""A panel of real closes: 26 Wednesdays of options on the S&P 500."""

from __future__ import annotations

import numpy as np

import strikeout as so


def test_26_weekly_closes_of_the_sp500_converge_with_a_variance_a_date(shared_data):
    # github.com/jcfrei/Heston, Options2011.mat: weekly closes from January to June 2011, 5,064 out-of-the-money quotes.
    quotes = so.read_quotes(shared_data("chains/panel_spx_weekly_2011_h1.parquet"))
    panel = so.calibrate(quotes, so.Heston(), panel="date")
    constant = so.calibrate(quotes, so.Heston())
    assert panel.converged
    assert panel.agreement == 4
    assert len(panel.latent) == 26
    assert panel.rmse < constant.rmse / 3.0
    assert not panel.unidentified
    assert not panel.latent_on_bound
    # The Wednesday after the earthquake of Fukushima was the most volatile close of that half year.
    assert max(panel.latent, key=panel.latent.__getitem__) == "2011-03-16"
    # Every date alone, with the shared parameters as they are, has its variance where the panel has it.
    for date in panel.groups[::5]:
        alone = so.calibrate(quotes[panel.rows[date]], so.Heston(), fixed=panel.parameters)
        apart = alone.parameters["initial_variance"] - panel.latent[date]
        assert abs(apart) < 1e-5 * panel.latent_standard_errors[date]


def test_the_panel_is_the_minimum_that_scipy_finds(shared_data):
    from scipy.optimize import least_squares

    quotes = so.read_quotes(shared_data("chains/panel_spx_weekly_2011_h1.parquet"))
    panel = so.calibrate(quotes, so.Heston(), panel="date")
    model, groups = so.Heston(), panel.groups
    contracts = [quotes.contracts[panel.rows[group]] for group in groups]

    def evaluate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, jacobian = np.empty(len(quotes)), np.zeros((len(quotes), len(x)))
        for n, (group, some) in enumerate(zip(groups, contracts, strict=True)):
            rows = panel.rows[group]
            price, slopes = model.linearize(np.array([*x[:4], x[4 + n]]), some)
            residual[rows] = price - quotes.observed[rows]
            jacobian[rows, :4], jacobian[rows, 4 + n] = slopes[:, :4], slopes[:, 4]
        return residual, jacobian

    start = np.concatenate([[2.0, 0.06, 0.5, -0.6], np.full(len(groups), 0.03)])
    space = model.parameters
    lower, upper = (np.concatenate([ends[:4], np.full(len(groups), ends[4])]) for ends in (space.lower, space.upper))
    found = least_squares(
        lambda x: evaluate(x)[0],
        start,
        jac=lambda x: evaluate(x)[1],
        bounds=(lower, upper),
        x_scale="jac",
        ftol=1e-14,
        xtol=1e-14,
        gtol=1e-14,
    )
    errors = np.array([*panel.standard_errors.values(), *panel.latent_standard_errors.values()])
    ours = np.array([*panel.parameters.values(), *panel.latent.values()])
    # SciPy stops where the cost no longer falls, about a thousandth of a standard error from the bottom.
    assert np.max(np.abs(found.x - ours) / errors) < 1e-2
    assert panel.cost <= 2.0 * found.cost * (1.0 + 1e-12)
