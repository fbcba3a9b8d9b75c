"""Forgetting from a real panel: 26 weekly closes of S&P 500 options, whose prices no Heston model meets."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so


@pytest.fixture(scope="module")
def quotes(shared_data):
    return so.read_quotes(shared_data("chains/panel_spx_weekly_2011_h1.parquet"))


@pytest.fixture(scope="module")
def panel(quotes):
    return so.calibrate(quotes, so.Heston(), panel="date")


def on(quotes, day):
    return quotes.ids[quotes.labels["date"].astype(str) == day]


@pytest.mark.parametrize("day", [0, 5, 10, 15, 20])
def test_what_is_said_of_a_step_is_so_in_a_real_market(panel, quotes, day):
    """The residuals are a misfit, not noise, and one step is off by up to 0.9 standard errors: it says so."""
    gone = on(quotes, panel.groups[day])
    step = so.forget(panel, ids=gone, operator="downdate")
    fresh = so.calibrate(quotes.without(gone), so.Heston(), panel="date")
    shared = [abs(step.parameters[n] - v) / fresh.standard_errors[n] for n, v in fresh.parameters.items()]
    latent = [abs(step.latent[g] - v) / fresh.latent_standard_errors[g] for g, v in fresh.latent.items()]
    true = max(shared + latent)
    assert step.step_error.predicted == pytest.approx(true, rel=0.1)
    assert true <= step.step_error.error


def test_a_week_is_forgotten_to_the_bit_and_the_certificate_holds(panel, quotes):
    gone = on(quotes, panel.groups[10])
    done = so.forget(panel, ids=gone)
    rest = quotes.without(gone)
    fresh = so.calibrate(rest, so.Heston(), panel="date")
    assert done.calibration.to_dict() == fresh.to_dict()
    assert done.calibration.state.digest() == fresh.state.digest()
    shuffled = rest[np.random.default_rng(1).permutation(len(rest))]
    found = so.verify(done.certificate.to_bytes(), shuffled)
    assert found.holds, found.summary()
    assert not so.verify(done.certificate, quotes).holds


def test_the_most_influential_week_is_confirmed_by_calibrating_without_it(panel):
    found = so.influence(panel, "date", confirm=1)
    for name in panel.parameters:
        error = panel.standard_errors[name]
        # One step from far: the indicator warns (above 0.05), and the step has the right sign and size.
        assert found[f"change_{name}"][0] / error == pytest.approx(found[f"confirmed_{name}"][0] / error, abs=1.0)
    assert found["indicator"][0] > 0.05
