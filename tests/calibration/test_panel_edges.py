"""A day of a panel whose variance starts at zero is an answer, as in a plain calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.issue import Answer, issue
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError

HESTON = so.Heston()
ZERO = 1e-8
NOISE = 0.01
TRUTH = {"mean_reversion": 6.0, "long_variance": 0.06, "vol_of_vol": 1.2, "correlation": -0.6, "initial_variance": 0.05}


def repriced(quotes, day, variance, seed=2):
    """Return the quotes with one day priced at this variance, and noise."""
    rows = np.flatnonzero(quotes.labels["day"] == day)
    prices, _ = HESTON.linearize({**TRUTH, "initial_variance": variance}, quotes.contracts[rows])
    observed = quotes.observed.copy()
    observed[rows] = prices + NOISE * np.random.default_rng(seed).standard_normal(len(rows))
    return quotes.with_observed(observed)


PLAIN = so.synthetic.panel_quotes(8, seed=2, theta=TRUTH, noise=NOISE)
QUOTES = repriced(PLAIN, 3, ZERO)
DATES = QUOTES.labels["date"]
FLAT = DATES[QUOTES.labels["day"] == 3][0]
PANEL = so.calibrate(QUOTES, HESTON, panel="date")


def is_of(*days):
    return np.isin(QUOTES.labels["day"], days)


def fresh(quotes):
    return so.calibrate(quotes, HESTON, panel="date")


def test_a_day_whose_variance_starts_at_zero_is_converged_on_and_named():
    assert PANEL.termination is Termination.CONVERGED_ON_EDGE
    assert PANEL.converged
    assert PANEL.latent_on_bound == {FLAT: ZERO}
    assert np.isnan(PANEL.latent_standard_errors[FLAT])
    assert any(f"on its bound in 1 group ({FLAT})" in sentence for sentence in PANEL.warnings)
    for name in PANEL.parameters:
        assert abs(PANEL.parameters[name] - TRUTH[name]) < 4.0 * PANEL.standard_errors[name]


@pytest.mark.parametrize("day", [3, 5])
@pytest.mark.parametrize("operator", ["recalibrate", "recompute", "downdate"])
def test_quotes_are_forgotten_and_the_certificate_verifies(day, operator):
    """From the day at the edge itself, and from another."""
    gone = QUOTES.ids[np.flatnonzero(is_of(day))[:3]]
    kept = QUOTES.without(gone)
    done, never = so.forget(PANEL, ids=gone, operator=operator), fresh(kept)
    verdict = so.verify(done.certificate, kept)
    assert verdict.holds, verdict.summary()
    if operator == "recalibrate":
        assert done.calibration.termination is Termination.CONVERGED_ON_EDGE
        assert (done.parameters, done.calibration.latent) == (never.parameters, never.latent)
        assert done.calibration.state.digest() == never.state.digest()
        assert {"STATE", "OPTIMUM", "NEVER_SEEN"} <= set(done.certificate.claims)


def test_a_certificate_is_refuted_by_quotes_that_pull_the_day_off_zero():
    done = so.forget(PANEL, ids=QUOTES.ids[:3])
    other = repriced(QUOTES, 3, 0.05).without(QUOTES.ids[:3])
    assert not so.verify(done.certificate, other).holds


def test_a_day_at_zero_whose_variance_the_shared_parameters_can_imitate_is_not_identified():
    """A panel of one day with one expiry is the plain calibration of that day."""
    day = repriced(so.synthetic.panel_quotes(1, seed=3, theta=TRUTH), 0, ZERO, seed=3)
    day = day[day.contracts.expiry == day.contracts.expiry.min()]
    fixed = {"long_variance": 0.06}
    plain, panel = (so.calibrate(day, HESTON, fixed=fixed, panel=label) for label in (None, "date"))
    assert plain.on_bound == {"initial_variance": ZERO}
    assert list(panel.latent_on_bound.values()) == [ZERO]
    assert plain.termination is panel.termination is Termination.NOT_IDENTIFIED
    assert plain.unidentified == ("mean_reversion", "initial_variance")
    assert panel.unidentified == ("mean_reversion",)
    # Called an answer all the same, it is refuted.
    forced = replace(panel, termination=Termination.CONVERGED_ON_EDGE, unidentified=())
    made = issue(forced, Answer(panel.parameters, "recalibrate", panel.latent), after=forced)
    assert "OPTIMUM" in made.claims
    assert "OPTIMUM" in {check.name for check in so.verify(made, day).checks if not check.holds}


def test_a_bound_of_the_models_own_that_is_no_edge_is_no_answer_of_a_panel():
    top = float(HESTON.parameters.upper[4])
    wild, beyond = is_of(5), 1.02 * repriced(QUOTES, 5, top).observed
    quotes = QUOTES.with_observed(np.where(wild, beyond, QUOTES.observed))
    fixed = {name: TRUTH[name] for name in ("mean_reversion", "long_variance", "correlation")}
    found = so.calibrate(quotes, HESTON, panel="date", fixed=fixed, starts=1)
    assert found.latent_on_bound == {FLAT: ZERO, DATES[wild][0]: top}
    assert found.termination is Termination.AT_BOUND
    with pytest.raises(RefusedError):
        so.forget(found, ids=quotes.ids[:1])
    # Called an answer all the same, it is refuted.
    forced = replace(found, termination=Termination.CONVERGED_ON_EDGE)
    made = issue(forced, Answer(found.parameters, "recalibrate", found.latent), after=forced)
    assert "OPTIMUM" in made.claims
    refuted = {check.name for check in so.verify(made, quotes).checks if not check.holds}
    assert {"OPTIMUM", "NEVER_SEEN"} <= refuted


def test_a_book_rolls_over_such_a_day(tmp_path):
    with so.Book.create(tmp_path / "w.book") as book:
        book.import_quotes(QUOTES[is_of(0, 1, 2)])
        book.calibrate(panel="date")
        ends = []
        for day in range(3, 8):  # day 3 enters, stays for three windows, and leaves
            book.roll(QUOTES[is_of(day)], window=3)
            window = QUOTES[is_of(day - 2, day - 1, day)]
            never, version = fresh(window), book.status().version
            assert version.converged
            assert dict(version.parameters) == never.parameters
            assert {group: value for group, (value, _) in version.latent.items()} == never.latent
            assert version.state == never.state.digest()
            assert (FLAT in version.latent) == (day < 6)
            ends.append(version.termination == str(Termination.CONVERGED_ON_EDGE))
        assert ends == [True, True, False, False, False]  # with days 3 to 5 alone the optimum is just above zero
        assert book.verify().holds, book.verify().summary()
