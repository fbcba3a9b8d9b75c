"""The second-order part: learnt exactly from steps on a quadratic."""

from __future__ import annotations

import numpy as np

from strikeout.calibration.loop import corrected, updated


def test_steps_on_a_quadratic_teach_the_whole_neglected_part():
    rng = np.random.default_rng(0)
    H = np.eye(3) * 5.0
    missing = np.array([[1.0, 0.5, 0.0], [0.5, -2.0, 0.3], [0.0, 0.3, 0.7]])
    S = None
    for _ in range(3):
        s = rng.standard_normal(3)
        S = updated(S, H.tolist(), s.tolist(), ((H + missing) @ s).tolist())
    assert S is not None
    assert np.abs(np.array(S) - missing).max() < 1e-12  # a rank-one update is exact after as many steps as parameters


def test_a_step_that_tells_nothing_changes_nothing():
    H = [[2.0, 0.0], [0.0, 3.0]]
    assert updated(None, H, [1.0, 1.0], [2.0, 3.0]) is None


def test_the_correction_is_added():
    assert corrected([[1.0, 2.0], [2.0, 5.0]], [[1.0, 0.0], [0.0, 1.0]]) == [[2.0, 2.0], [2.0, 6.0]]
    assert corrected([[1.0]], None) == [[1.0]]
