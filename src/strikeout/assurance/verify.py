"""Checking a certificate against the retained quotes: everything is computed again, nothing is taken on trust."""

from __future__ import annotations

from collections.abc import Callable

from strikeout.assurance.case import Case
from strikeout.assurance.certificate import Certificate, Claim
from strikeout.assurance.panel_case import PanelCase
from strikeout.assurance.verification import Check, Verification
from strikeout.errors import StrikeoutError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.weights import Weighting

# What a check on foreign input may meet; each becomes a reason, since a verification raises nothing.
FAILURES = (StrikeoutError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


def verify(
    certificate: Certificate | bytes, retained: Quotes, *, model: Model | None = None, weights: Weighting | None = None
) -> Verification:
    """Every claim of a certificate, computed again from the retained quotes alone. Never imports an operator.

    Forwards that the quotes say were derived are derived again.

    The state is rebuilt in whole numbers; the step is solved from that; the gradient is taken at the parameters; the
    quotes are calibrated from cold starts. Whoever holds the retained quotes can run it.

    Args:
        certificate: or its bytes. The objective it names (weights, loss, what was fixed or bounded) is taken from it,
            and what was fixed or bounded is said with each claim that rests on it.
        model: needed where the certificate's is none of ours, which its name cannot bring back.
        weights: needed where the calibration was given weights of its own: by id, or in the order of the quotes.

    Raises:
        Nothing for what the certificate or the quotes hold: what cannot be checked does not hold, with the reason.
    """
    if not isinstance(retained, Quotes):
        found = f"Quotes are needed to verify against; got {type(retained).__name__}."
        return Verification((Check("BYTES", False, found),))
    if not isinstance(certificate, Certificate | bytes):
        found = f"A certificate or the bytes of one are needed; got {type(certificate).__name__}."
        return Verification((Check("BYTES", False, found),))
    try:  # through its bytes, whatever it came as: what cannot be written was never issued
        certificate = Certificate.from_bytes(certificate if isinstance(certificate, bytes) else certificate.to_bytes())
    except FAILURES as error:
        return Verification((Check("BYTES", False, _sentence(error)),))
    try:
        kind = PanelCase if "panel" in certificate.objective else Case
        case = kind(certificate, retained, model, weights)
    except FAILURES as error:
        return Verification((Check("OBJECTIVE", False, _sentence(error)),))
    checks = [
        _judged("COUNT", case.count),
        *(
            _judged(claim.name, check) if certificate.claims[claim.name]["claimed"] else _unclaimed(certificate, claim)
            for claim, check in (
                (Claim.STATE, case.state),
                (Claim.STEP, case.step),
                (Claim.OPTIMUM, case.optimum),
                (Claim.NEVER_SEEN, case.never_seen),
            )
        ),
    ]
    return Verification(tuple(checks))


def _judged(name: str, check: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(name, *check())
    except FAILURES as error:
        return Check(name, False, f"It cannot be checked: {_sentence(error)}")


def _unclaimed(certificate: Certificate, claim: Claim) -> Check:
    return Check(claim.name, None, certificate.claims[claim.name]["support"])


def _sentence(error: BaseException) -> str:
    return error.sentence if isinstance(error, StrikeoutError) else f"{type(error).__name__}: {error}"
