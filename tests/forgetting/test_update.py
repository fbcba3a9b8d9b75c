"""Quotes brought back, learnt and rolled through: every road ends at a fresh start."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnknownIdError, UsageError

BOOK = so.paper.quotes("small", seed=7)
DAYS = BOOK.labels["day"]
CALIBRATION = so.calibrate(BOOK, so.Heston())


def same(one: so.results.Calibration, other: so.results.Calibration) -> bool:
    return one.to_dict() == other.to_dict() and one.state.digest() == other.state.digest()


def test_restoring_changes_no_bit():
    forgetting = so.forget(CALIBRATION, where="day < 9")
    assert so.restore(forgetting) is CALIBRATION
    assert same(so.restore(forgetting, forgetting.calibration), CALIBRATION)


def test_restoring_works_into_a_calibration_that_has_moved_on():
    first = so.forget(CALIBRATION, where="day < 9")
    second = so.forget(first.calibration, where="day >= 80")
    assert same(so.restore(first, second.calibration), so.calibrate(BOOK[DAYS < 80], so.Heston()))


def test_restoring_brings_back_weights_of_your_own():
    weights = np.linspace(0.5, 2.0, len(BOOK))
    calibration = so.calibrate(BOOK, so.Heston(), weights=weights)
    first = so.forget(calibration, where="day < 9")
    second = so.forget(first.calibration, where="day >= 80")
    back = so.restore(first, second.calibration)
    assert same(back, so.calibrate(BOOK[DAYS < 80], so.Heston(), weights=weights[DAYS < 80]))


def test_restoring_twice_is_refused():
    forgetting = so.forget(CALIBRATION, where="day < 9")
    with pytest.raises(UsageError, match="in the book already"):
        so.restore(forgetting, CALIBRATION)


def test_learning_equals_having_had_them_from_the_beginning():
    first = so.calibrate(BOOK[DAYS < 50], so.Heston())
    assert same(so.learn(first, BOOK[DAYS >= 50]), CALIBRATION)
    in_two = so.learn(so.learn(first, BOOK[DAYS >= 70]), BOOK[(DAYS >= 50) & (DAYS < 70)])
    assert same(in_two, CALIBRATION)
    assert so.learn(first, BOOK[:0]) is first


def test_a_quote_is_learnt_once():
    with pytest.raises(UsageError, match="6 of the 6 quotes have ids that are in the book already"):
        so.learn(CALIBRATION, BOOK[:6])


def test_a_quote_learnt_under_weights_of_your_own_needs_one():
    calibration = so.calibrate(BOOK[DAYS < 50], so.Heston(), weights=np.ones(300))
    with pytest.raises(UsageError, match="have no weight among those given by id"):
        so.learn(calibration, BOOK[DAYS >= 50])


def test_rolling_is_forgetting_and_learning_in_either_order():
    window = so.calibrate(BOOK[DAYS < 40], so.Heston())
    new = BOOK[(DAYS >= 40) & (DAYS < 45)]
    rolled = so.roll(window, new, where="day < 5")
    assert same(rolled, so.learn(so.forget(window, where="day < 5").calibration, new))
    assert same(rolled, so.forget(so.learn(window, new), where="day < 5").calibration)
    assert same(rolled, so.calibrate(BOOK[(DAYS >= 5) & (DAYS < 45)], so.Heston()))
    assert same(so.roll(window, new), so.learn(window, new))


def test_a_window_can_roll_on_entirely_and_replace_a_quote_by_its_correction():
    window = so.calibrate(BOOK[DAYS < 40], so.Heston())
    assert same(so.roll(window, BOOK[DAYS >= 40], where="1"), so.calibrate(BOOK[DAYS >= 40], so.Heston()))
    one = BOOK[:1]
    corrected = so.roll(CALIBRATION, one.with_observed(one.observed + 1e-3), forget=one.ids)
    assert corrected.count == 540
    assert corrected.parameters != CALIBRATION.parameters


def test_a_window_that_determines_nothing_is_refused():
    window = so.calibrate(BOOK[DAYS < 40], so.Heston())
    with pytest.raises(RefusedError):
        so.roll(window, BOOK[(DAYS == 41) & (BOOK.contracts.strike == 90)], where="1")
    with pytest.raises(UnknownIdError):
        so.roll(window, BOOK[DAYS == 41], forget=["nobody"])
    with pytest.raises(UsageError, match="Give one of"):
        so.roll(window, BOOK[DAYS == 41], forget=BOOK.ids[:1], where="day = 1")


def test_moments_are_learnt_and_brought_back_like_quotes():
    made = so.calibrate(so.states.moments_of(BOOK), so.Heston())
    forgetting = so.forget(made, quotes=BOOK[DAYS < 9])
    assert so.restore(forgetting) is made
    assert same(so.restore(forgetting, forgetting.calibration), made)
    assert same(so.learn(forgetting.calibration, so.states.moments_of(BOOK[DAYS < 9])), made)
    with pytest.raises(UsageError, match="holds no names"):
        so.roll(made, BOOK[:5], forget=BOOK.ids[:1])
    with pytest.raises(UsageError, match="can learn quotes, not moments"):
        so.learn(CALIBRATION, so.states.moments_of(BOOK))
