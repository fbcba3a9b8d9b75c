"""The fuzzing targets themselves: every seed and a few inputs near it, the same every time."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings

from tests.fuzz.__main__ import main
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_used_to_the_end(name):
    reached = [TARGETS[name](data) for data in TARGETS[name].known()]
    assert max(reached) > 0.0


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_near_a_seed_give_a_result_or_a_sentence(name):
    one = TARGETS[name]

    @settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
    @given(one.inputs())
    def check(data):
        one(data)

    check()


def test_an_unknown_target_is_answered_with_the_known_ones(capsys):
    assert main(["1", "nothing"]) == 2
    assert "there is no target 'nothing'" in capsys.readouterr().err
