"""The damping rule as a state machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.calibration.loop import SMALLEST, Damping, WaryDamping


def test_a_step_that_delivers_what_it_promised_divides_the_damping_by_fifty():
    assert Damping(1.0).after_success(gain=1.0).value == pytest.approx(0.02)


def test_a_poor_step_raises_the_damping_though_it_was_accepted():
    assert Damping(1.0).after_success(gain=0.1).value > 1.0


def test_failures_in_a_row_multiply_the_damping_ever_faster():
    first = Damping(1.0).after_failure()
    second = first.after_failure()
    assert second.value / first.value == pytest.approx(2.0 * first.value / 1.0)


def test_success_ends_the_acceleration():
    assert Damping(1.0).after_failure().after_success(gain=1.0).growth == Damping().growth


def test_what_just_failed_is_not_tried_again_at_once():
    failed = Damping(1.0).after_failure()
    assert failed.after_success(gain=1.0).value >= 1.0


def test_failure_lifts_even_a_vanished_damping_to_where_it_matters():
    assert Damping(SMALLEST).after_failure().value >= 1e-6


@given(st.lists(st.one_of(st.none(), st.floats(min_value=-10.0, max_value=10.0)), max_size=60))
def test_no_history_brings_the_damping_to_zero_or_below(history):
    damping = Damping()
    for gain in history:
        damping = damping.after_failure() if gain is None else damping.after_success(gain)
    assert damping.value >= SMALLEST


@given(st.floats(min_value=1e-12, max_value=1e3), st.floats(-1.0, 2.0), st.floats(-1.0, 2.0))
def test_a_better_gain_never_leaves_more_damping(value, one, other):
    worse, better = sorted((one, other))
    assert Damping(value).after_success(better).value <= Damping(value).after_success(worse).value


def test_a_wary_damping_is_never_divided_by_more_than_three():
    assert WaryDamping(1.0).after_success(gain=1.0).value == pytest.approx(1.0 / 3.0)
    assert WaryDamping(1.0).after_success(gain=50.0).value == pytest.approx(1.0 / 3.0)


def test_a_wary_damping_stays_where_a_step_delivered_half():
    assert WaryDamping(0.25).after_success(gain=0.5).value == 0.25
    assert WaryDamping(0.25).after_success(gain=0.1).value > 0.25


def test_failures_in_a_row_raise_a_wary_damping_ever_faster():
    once = WaryDamping(1.0).after_failure()
    assert (once.value, once.after_failure().value) == (2.0, 8.0)
    assert once.after_success(gain=1.0).growth == WaryDamping().growth
