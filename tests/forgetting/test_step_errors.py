"""Standard errors of one step, from the exact states of the clusters."""

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.standard_errors import Reason, Unit
from strikeout.calibration.step_errors import StepUnit, cluster_states, exchanged, step_errors
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.system import WHOLE, System
from strikeout.synthetic.heston_quotes import panel_quotes

PANEL, PLAIN = panel_quotes(12, seed=4, noise=0.002), so.paper.quotes("small")


def dates_of(quotes):
    return np.unique(quotes.labels["date"])


def day_of(quotes, n):
    return quotes[quotes.labels["date"] == dates_of(quotes)[n]]


@pytest.fixture(scope="module", params=[PLAIN, PANEL], ids=["plain", "panel"])
def calibration(request):
    label = "date" if request.param is PANEL else None
    return so.calibrate(request.param, so.Heston(), panel=label, errors="cluster:date", starts=1)


def few(calibration):
    """Return the ids of four quotes of the fourth day."""
    return day_of(calibration.used, 3).ids[:4]


def in_unit(calibration, errors):
    return replace(calibration, settings=replace(calibration.settings, errors=errors))


def never_seen(calibration, step):
    """Return the step and the states of the retained quotes alone, at the same references."""
    retained = calibration.used.without(few(calibration))
    if calibration.panel is None:
        rows = calibration.footprints_of(retained, calibration.references[WHOLE])
        return System.of(rows.total()).step(free=step.free), cluster_states(retained, rows, "date")
    days = {date: retained[retained.labels["date"] == date] for date in dates_of(retained)}
    blocks = {date: calibration.equations_of(own, calibration.references[date]) for date, own in days.items()}
    return System(blocks, calibration.latent_name).step(free=step.free), None


@pytest.mark.parametrize("errors", ["cluster:date", "jackknife:date"])
def test_errors_after_a_strike_out_are_those_of_quotes_never_seen(calibration, errors):
    asked = in_unit(calibration, errors)
    done = so.forget(asked, ids=few(asked), operator="downdate")
    fresh, states = never_seen(asked, done.step)
    again = step_errors(StepUnit.of(asked), fresh, done.standard_errors, states)
    assert done.errors.standard_errors == again.standard_errors
    assert np.array_equal(done.errors.covariance, again.covariance)
    assert done.errors.unit.value == errors.partition(":")[0]
    assert done.errors.clusters == (len(dates_of(asked.used)),)


def test_a_strike_out_changes_the_state_of_one_cluster_alone():
    book = so.calibrate(PLAIN, so.Heston(), starts=1)
    rows, gone = book.footprints.whole, few(book)
    before = cluster_states(book.used, rows, "date")
    after = exchanged(before, cluster_states(day_of(book.used, 3).only(gone), rows.only(gone), "date"), {})
    assert [date for date in before if after[date] is not before[date]] == [dates_of(PLAIN)[3]]
    assert NormalEquations.total(after.values()) == rows.without(gone).total()


def test_a_cluster_that_loses_all_its_quotes_is_no_cluster_any_more(calibration):
    day = day_of(calibration.used, 3).ids
    done = so.forget(calibration, ids=day, operator="downdate")
    assert done.errors.clusters == (len(dates_of(calibration.used)) - 1,)


@pytest.mark.parametrize("errors", ["auto", "cluster:date", "jackknife:date"])
def test_errors_of_a_step_are_near_those_of_the_optimum(calibration, errors):
    """The step ends 1e-3 standard errors from the optimum, where scores differ by as little."""
    done = so.forget(in_unit(calibration, errors), ids=few(calibration), tolerance=0.5)
    assert done.operator == "downdate"
    exact = done.calibration.errors.standard_errors
    for name, error in done.errors.standard_errors.items():
        assert error == pytest.approx(exact[name], rel=0.02)


@pytest.mark.parametrize(
    ("errors", "reason"),
    [("independent", Reason.ASKED), ("cluster:date,expiry", Reason.STEP)],
    ids=["asked", "two labels"],
)
def test_other_units_are_those_of_independent_quotes_with_the_reason(calibration, errors, reason):
    done = so.forget(in_unit(calibration, errors), ids=few(calibration), operator="downdate")
    assert done.errors.unit is Unit.INDEPENDENT
    assert done.errors.basis.reason is reason
    assert done.errors.standard_errors == pytest.approx(dict(done.standard_errors), rel=1e-12)


def test_a_panel_is_clustered_by_its_groups_only():
    panel = so.calibrate(PANEL, so.Heston(), panel="date", errors="cluster:expiry", starts=1)
    assert so.forget(panel, ids=few(panel), operator="downdate").errors.basis.reason is Reason.STEP


def test_an_exact_answer_has_the_errors_of_its_calibration(calibration):
    done = so.forget(calibration, ids=few(calibration))
    assert done.errors is done.calibration.errors


def test_a_day_rolled_in_and_out_again_leaves_the_errors_of_before(calibration):
    quotes, label = calibration.used, calibration.panel
    day, count = day_of(quotes, -1), len(dates_of(quotes))
    base = so.calibrate(quotes.without(day.ids), so.Heston(), panel=label, errors="cluster:date", starts=1)
    there = so.learn(base, day, tolerance=0.9)
    back = so.roll(there, quotes[:0], forget=day.ids, tolerance=0.9)
    assert not there.is_exact
    assert not back.is_exact
    assert (there.errors.clusters, back.errors.clusters) == ((count,), (count - 1,))
    for name, error in back.errors.standard_errors.items():
        assert error == pytest.approx(base.errors.standard_errors[name], rel=0.02)
