"""What a verification says of itself."""

from __future__ import annotations

from strikeout.assurance.verification import Check, Verification


def made(**holds: bool | None) -> Verification:
    return Verification(tuple(Check(name, value, "found.") for name, value in holds.items()))


def test_a_certificate_of_the_state_alone_says_nothing_of_the_parameters():
    state = made(COUNT=True, STATE=True, STEP=None, OPTIMUM=None, NEVER_SEEN=None)
    assert state.holds
    assert state.summary().startswith("The certificate holds; it claims nothing of the parameters.")
    assert made(STATE=True, OPTIMUM=True).headline == "The certificate holds."
    assert made(STATE=True, OPTIMUM=False).headline == "The certificate does not hold."


def test_a_certificate_that_claims_nothing_does_not_hold():
    assert not made(COUNT=True, STATE=None).holds
    assert made(COUNT=True, STATE=None).reasons == ("The certificate claims nothing.",)
