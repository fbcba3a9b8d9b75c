"""Learning and rolling by certified steps: near the exact answer, never drifting, exact if the certificate says so."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UnknownIdError, UsageError
from strikeout.forgetting.online import begin, update
from strikeout.results import Update
from strikeout.statistics.second_order import GroupSums
from strikeout.statistics.system import System
from strikeout.synthetic.heston_quotes import panel_quotes

PANEL = panel_quotes(12, seed=3)
DATES = np.unique(PANEL.labels["date"])
DAYS = {date: PANEL[PANEL.labels["date"] == date] for date in DATES}
TOLERANCE = 0.05


def window(first: int, last: int) -> so.Quotes:
    return PANEL[np.isin(PANEL.labels["date"], DATES[first:last])]


def apart(done: Update, exact: so.results.Calibration) -> float:
    """Return the largest distance from an exact answer, shared or latent, in its standard errors."""
    shared = [abs(done.parameters[n] - v) / exact.standard_errors[n] for n, v in exact.parameters.items()]
    latent = [abs(done.latent[g] - v) / exact.latent_standard_errors[g] for g, v in exact.latent.items()]
    return max([*shared, *latent])


@pytest.fixture(scope="module")
def panel():
    return so.calibrate(window(0, 8), so.Heston(), panel="date")


@pytest.fixture(scope="module")
def plain():
    return so.calibrate(so.paper.quotes("small", seed=1)[:400], so.Heston())


def test_each_roll_is_within_its_certified_error_of_the_exact_answer(panel):
    now = panel
    for n in range(3):
        now = so.roll(now, DAYS[DATES[8 + n]], forget=DAYS[DATES[n]].ids, tolerance=TOLERANCE)
        exact = so.calibrate(window(1 + n, 9 + n), so.Heston(), panel="date")
        assert now.operator == "update"
        assert 0.0 < apart(now, exact) <= now.error <= TOLERANCE
        assert now.calibration.parameters == exact.parameters
        assert now.calibration.latent == exact.latent
    assert now.learnt == now.forgotten == len(DAYS[DATES[0]])


def test_the_state_after_many_rolls_is_that_of_the_quotes(panel):
    """At the references that were taken on the way, the state of the quotes of now, built from nothing."""
    now = panel
    for n in range(3):
        now = so.roll(now, DAYS[DATES[8 + n]], forget=DAYS[DATES[n]].ids, tolerance=TOLERANCE)
    blocks = {}
    for group, part in now.parts.items():
        schema = now.system.blocks[group].schema
        blocks[group] = panel.footprints_of(part, dict(zip(schema.parameters, schema.reference, strict=True))).total()
    fresh = System(blocks, now.system.latent, now.system.held)
    assert now.system.digest() == fresh.digest()
    assert fresh.step().parameters == now.parameters
    assert fresh.step().latent == now.latent


def test_a_step_that_is_not_certified_gives_the_exact_answer_and_a_new_base(panel):
    done = so.roll(panel, DAYS[DATES[8]], forget=DAYS[DATES[0]].ids, tolerance=1e-9)
    exact = so.calibrate(window(1, 9), so.Heston(), panel="date")
    assert done.is_exact
    assert done.error == 0.0
    assert (dict(done.parameters), dict(done.latent)) == (exact.parameters, exact.latent)
    assert done.base.parameters == exact.parameters
    assert so.learn(done, DAYS[DATES[9]], tolerance=TOLERANCE).operator == "update"


def test_a_plain_calibration_learns_and_forgets_by_one_step(plain):
    rest = so.paper.quotes("small", seed=1)[400:420]
    done = so.roll(plain, rest, forget=plain.quotes.ids[:10], tolerance=TOLERANCE)
    exact = so.calibrate(so.paper.quotes("small", seed=1)[10:420], so.Heston())
    assert done.operator == "update"
    assert apart(done, exact) <= done.error <= TOLERANCE
    back = so.roll(done, plain.quotes[:10], forget=rest.ids, tolerance=TOLERANCE)
    assert back.system.digest() == plain.system.digest()


@pytest.mark.parametrize("kind", ["panel", "plain"])
def test_the_certificate_of_an_update_holds_for_its_quotes_and_for_no_others(kind, panel, plain):
    if kind == "panel":
        done = so.roll(panel, DAYS[DATES[8]], forget=DAYS[DATES[0]].ids, tolerance=TOLERANCE)
    else:
        done = so.learn(plain, so.paper.quotes("small", seed=1)[400:410], tolerance=TOLERANCE)
    assert done.certificate.made["STEP"]
    assert done.certificate.made["OPTIMUM"]
    assert done.certificate.counts == {"forgotten": done.forgotten, "retained": done.count}
    assert so.verify(done.certificate, done.quotes).holds
    assert not so.verify(done.certificate, done.quotes.without(done.quotes.ids[:1])).holds


def test_an_exact_update_is_certified_as_never_seen(panel):
    done = so.roll(panel, DAYS[DATES[8]], forget=DAYS[DATES[0]].ids, tolerance=1e-9)
    assert done.certificate.made["NEVER_SEEN"]
    assert so.verify(done.certificate, done.quotes).holds


def test_part_of_a_day_is_learnt_and_forgotten_too(panel):
    day = DAYS[DATES[8]]
    some = so.learn(panel, day[:9], tolerance=TOLERANCE)
    more = so.roll(some, day[9:], forget=day.ids[:2], tolerance=TOLERANCE)
    exact = so.calibrate(PANEL[np.isin(PANEL.ids, [*window(0, 8).ids, *day.ids[2:]])], so.Heston(), panel="date")
    assert apart(more, exact) <= max(more.error, 1e-12)


def test_what_is_asked_for_in_vain_is_refused(panel):
    with pytest.raises(UnknownIdError):
        so.roll(panel, DAYS[DATES[8]], forget=["nobody"], tolerance=TOLERANCE)
    with pytest.raises(UsageError):
        so.learn(panel, DAYS[DATES[0]], tolerance=TOLERANCE)
    for tolerance in (0.0, -1.0, float("nan"), 2.0):
        with pytest.raises(UsageError):
            so.learn(panel, DAYS[DATES[8]], tolerance=tolerance)


@pytest.mark.parametrize("options", [{"loss": "huber"}, {"feller": "enforce"}])
def test_what_a_step_does_not_support_is_answered_exactly(options):
    panel = so.calibrate(window(0, 4), so.Heston(), panel="date", starts=1, **options)
    done = so.roll(panel, DAYS[DATES[4]], forget=DAYS[DATES[0]].ids, tolerance=TOLERANCE)
    assert done.is_exact
    fresh = so.calibrate(window(1, 5), so.Heston(), panel="date", starts=1, **options)
    assert done.parameters == fresh.parameters


def test_summary_and_json_name_the_unit_and_the_path(panel):
    done = so.learn(panel, DAYS[DATES[8]], tolerance=TOLERANCE)
    assert "independent" in done.summary()
    assert done.to_dict()["operator"] == "update"
    assert done.to_dict()["error"] == done.error
    assert "<table>" in done._repr_html_()


def test_exchanging_groups_gives_the_bits_of_a_new_system(panel):
    start = begin(panel, TOLERANCE)
    rolled = update(start, DAYS[DATES[8]], DAYS[DATES[3]].ids, TOLERANCE).system
    again = System(dict(rolled.blocks), rolled.latent, rolled.held)
    assert rolled.digest() == again.digest()
    assert rolled.reduced() == again.reduced()
    assert rolled.groups == again.groups
    assert rolled.step().parameters == again.step().parameters
    assert rolled.step().latent == again.step().latent
    assert np.array_equal(rolled.curvatures, again.curvatures)


def test_the_sums_of_exchanged_groups_are_stacked_in_the_order_of_the_groups(panel):
    start = begin(panel, TOLERANCE)
    done = update(start, DAYS[DATES[8]], DAYS[DATES[3]].ids, TOLERANCE)
    back = update(done, DAYS[DATES[3]], DAYS[DATES[8]].ids, TOLERANCE)  # a day in the middle of the others
    for made in (done, back):
        assert tuple(made.sums) == made.system.groups
        stacked = GroupSums.of(dict(made.sums.items()))
        assert np.array_equal(stacked.S, made.sums.S)
        assert np.array_equal(stacked.T, made.sums.T)
    same = [group for group in start.system.groups if group != DATES[3]]
    assert all(np.array_equal(back.sums[group].residual, start.sums[group].residual) for group in same)
    assert np.array_equal(back.system.curvatures, System(dict(back.system.blocks), back.system.latent).curvatures)


@pytest.mark.slow
def test_a_thousand_rolls_do_not_drift():
    """The quotes of six days go in and out; every hundredth answer is compared with the exact one."""
    days = [DAYS[date] for date in DATES]
    now, held, exact_answers = so.calibrate(window(0, 6), so.Heston(), panel="date"), list(range(6)), 0
    for n in range(1000):
        new = (6 + n) % 12
        now = so.roll(now, days[new], forget=days[held.pop(0)].ids, tolerance=0.002)
        held.append(new)
        exact_answers += now.is_exact
        if n % 100 == 99:
            exact = so.calibrate(now.quotes, so.Heston(), panel="date")
            assert apart(now, exact) <= max(now.error, 1e-9)
            assert now.calibration.parameters == exact.parameters
    assert 0 < exact_answers < 1000
