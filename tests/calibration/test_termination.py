"""Terminations: every one a sentence, and none that claims what it should not."""

from __future__ import annotations

from strikeout.calibration.termination import Termination


def test_every_termination_is_a_sentence_of_its_own():
    assert len({t.value for t in Termination}) == len(Termination)
    assert all(str(t).startswith(t.status) for t in Termination)
    assert all(t.sentence.endswith(".") for t in Termination)


def test_converged_is_said_only_by_those_that_are():
    assert {t for t in Termination if t.status.startswith("converged")} == {t for t in Termination if t.converged}
