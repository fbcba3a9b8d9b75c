"""The scenario bank: within the tolerance wherever there is an answer, refused wherever there is none."""

from __future__ import annotations

import pytest

from benchmarks.scenarios import TOLERANCE, Outcome, bank, judge

SMALL = list(bank("small", seed=7))


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [judge(scenario) for scenario in SMALL]


@pytest.mark.parametrize("kind", sorted({scenario.kind for scenario in SMALL}))
def test_every_answer_is_within_its_tolerance_and_every_unidentified_remainder_refused(kind, outcomes):
    found = [outcome for outcome in outcomes if outcome.kind == kind]
    assert [outcome for outcome in found if not outcome.is_kept] == []


def test_the_bank_tries_every_road(outcomes):
    """Steps that are certified, steps that are passed over, refusals: a bank without one of them would show nothing."""
    assert {outcome.operator for outcome in outcomes} == {"downdate", "recalibrate", "none"}
    assert all(outcome.refused is not None for outcome in outcomes if outcome.operator == "none")


def test_one_step_is_certified_in_most_cases(outcomes):
    """A bank answered by calibrating anew throughout would keep every tolerance and certify nothing."""
    told = [outcome for outcome in outcomes if outcome.identified]
    assert sum(outcome.operator == "downdate" for outcome in told) > 0.8 * len(told)


def test_the_papers_one_step_would_break_the_same_promise(outcomes):
    """Its flagship cases: decimal shifts, stale days, bad ticks, sentinels."""
    feeds = [outcome for outcome in outcomes if outcome.kind in ("decimal", "stale", "ticks", "sentinel")]
    broken = [outcome for outcome in feeds if outcome.paper_error > TOLERANCE]
    assert len(broken) > 0.7 * len(feeds)
    assert max(outcome.paper_error for outcome in broken) > 1e4


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 42, 99, 123])
@pytest.mark.parametrize("size", ["small", "large"])
def test_the_whole_bank_keeps_its_promise(size, seed):
    outcomes = [judge(scenario) for scenario in bank(size, seed=seed)]
    assert [outcome for outcome in outcomes if not outcome.is_kept] == []
