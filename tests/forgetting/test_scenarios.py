"""The scenario bank: within the tolerance if there is an answer, refused if there is none, by our operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scenario_operators import OPERATORS, TOLERANCE, from_file
from benchmarks.scenarios import Outcome, bank, judge

SMALL = list(bank("small", seed=7))
OURS, REFIT, FULL, PAPER, NUMPY, INFLUENCE, CERTIFIED = (one.name for one in OPERATORS)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[Outcome]]:
    found = [outcome for scenario in SMALL for outcome in judge(scenario)]
    return {one.name: [outcome for outcome in found if outcome.operator == one.name] for one in OPERATORS}


@pytest.mark.parametrize("name", [OURS, REFIT])
@pytest.mark.parametrize("kind", sorted({scenario.kind for scenario in SMALL}))
def test_every_answer_is_within_its_tolerance_and_every_unidentified_remainder_refused(kind, name, outcomes):
    found = [outcome for outcome in outcomes[name] if outcome.kind == kind]
    assert [outcome for outcome in found if not (outcome.is_right and outcome.is_kept)] == []


def test_the_bank_tries_every_operator(outcomes):
    """Steps that are certified, steps that are passed over, refusals: a bank without one of them would show nothing."""
    ours = outcomes[OURS]
    assert {outcome.claimed for outcome in ours} == {TOLERANCE, 1e-5, None}
    assert {outcome.is_refused for outcome in ours} == {True, False}


def test_one_step_is_certified_in_most_cases(outcomes):
    """A bank answered by calibrating again throughout would keep every tolerance and certify nothing."""
    told = [outcome for outcome in outcomes[OURS] if outcome.identified]
    assert sum(outcome.claimed == TOLERANCE for outcome in told) > 0.8 * len(told)


@pytest.mark.parametrize("name", [PAPER, NUMPY, INFLUENCE])
def test_one_step_from_a_fit_to_bad_feeds_misses_the_optimum(name, outcomes):
    """The paper's flagship cases: decimal shifts, stale days, bad ticks, sentinels."""
    feeds = [outcome for outcome in outcomes[name] if outcome.kind in ("decimal", "stale", "ticks", "sentinel")]
    broken = [outcome for outcome in feeds if outcome.error > TOLERANCE]
    assert len(broken) > 0.7 * len(feeds)
    assert max(outcome.error for outcome in broken) > 1e4


def test_on_clean_random_deletions_the_newton_step_of_certified_removal_is_right(outcomes):
    clean = [outcome for outcome in outcomes[CERTIFIED] if outcome.name in ("1% at random", "5% at random")]
    assert len(clean) == 2
    assert all(outcome.error < 0.01 and outcome.is_kept for outcome in clean)


def test_an_operator_of_your_own_enters_from_a_file(tmp_path: Path):
    """It is timed, judged and, if it claims what is not so, found out."""
    file = tmp_path / "theirs.py"
    file.write_text(
        "import strikeout as so\nNAME = 'before'\n"
        "def prepare(quotes, model):\n    return so.calibrate(quotes, model)\n"
        "def forget(quotes, model, ids, calibration):\n    return calibration.parameters, 0.0\n"
    )
    entrant = from_file(file)
    (found,) = judge(next(one for one in SMALL if one.kind == "decimal"), [entrant])
    assert (entrant.name, found.operator) == ("before", "before")
    assert found.error > 1.0
    assert not found.is_kept
    file.write_text("def forget(quotes, model, ids):\n    raise KeyError('none')\n")
    (found,) = judge(SMALL[0], [from_file(file)])
    assert found.failure.startswith("KeyError")
    assert not found.is_refused
    file.write_text("def erase(quotes, model, ids):\n    return None\n")
    with pytest.raises(ValueError, match="forget"):
        from_file(file)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 42, 99, 123])
@pytest.mark.parametrize("size", ["small", "large"])
def test_the_whole_bank_keeps_its_promise(size, seed):
    outcomes = [outcome for scenario in bank(size, seed=seed) for outcome in judge(scenario, OPERATORS[:2])]
    assert [outcome for outcome in outcomes if not (outcome.is_right and outcome.is_kept)] == []
