"""What a verification says of itself."""

from __future__ import annotations

from strikeout.assurance.verify import Check, Verification


def made(**holds: bool | None) -> Verification:
    return Verification(tuple(Check(name, value, "found.") for name, value in holds.items()))


def test_a_certificate_of_the_state_alone_says_nothing_of_the_parameters():
    state = made(COUNT=True, STATE=True, STEP=None, OPTIMUM=None, NEVER_SEEN=None)
    assert state.holds
    assert (state.state_is_right, state.parameters_follow, state.is_optimum) == (True, None, None)
    assert state.headline.startswith("Verified in part")


def test_the_three_answers_are_apart_and_what_is_not_said_is():
    step = made(COUNT=True, STATE=True, STEP=True, OPTIMUM=True, NEVER_SEEN=None)
    assert (step.state_is_right, step.parameters_follow, step.is_optimum) == (True, True, True)
    assert step.silent == ("It does not claim that calibrating the retained quotes gives these parameters.",)
    coarse = made(COUNT=True, STATE=True, STEP=None, OPTIMUM=None, NEVER_SEEN=True)
    assert (coarse.parameters_follow, coarse.is_optimum) == (True, None)
    assert coarse.silent == ("It does not claim that the parameters are an optimum.",)
    wrong = made(COUNT=True, STATE=True, STEP=None, OPTIMUM=False, NEVER_SEEN=True)
    assert (wrong.holds, wrong.state_is_right, wrong.parameters_follow, wrong.is_optimum) == (False, True, True, False)
    assert wrong.headline == "NOT verified."
    whole = made(COUNT=True, STATE=True, STEP=None, OPTIMUM=True, NEVER_SEEN=True)
    assert whole.silent == ()


def test_what_was_laid_down_and_what_is_only_stated_is_shown_and_escaped():
    found = Verification((Check("STATE", True, "found."),), ("b is fixed at 2",), ("made with <script>",))
    assert found.remarks == (("laid down", "b is fixed at 2"), ("stated", "made with <script>"))
    assert "laid down    b is fixed at 2" in found.summary()
    assert "&lt;script&gt;" in found._repr_html_()
    assert "<script>" not in found._repr_html_()


def test_a_certificate_that_claims_nothing_does_not_hold():
    assert not made(COUNT=True, STATE=None).holds
    assert made(COUNT=True, STATE=None).reasons == ("The certificate claims nothing.",)
