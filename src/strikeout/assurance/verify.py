"""Checking a certificate against the retained quotes: everything is computed again, nothing is taken on trust."""

from __future__ import annotations

from collections.abc import Callable

from strikeout.assurance.certificate import Certificate, Claim
from strikeout.assurance.claim_checks import ClaimChecker
from strikeout.assurance.verification import Check, Verification
from strikeout.errors import StrikeoutError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.weights import Weighting

# What a check on foreign input may meet; each becomes a reason, since a verification raises nothing.
FAILURES = (StrikeoutError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError)


def read(certificate: Certificate | bytes, retained: Quotes) -> Certificate | Verification:
    """Return the certificate that is to be checked; or, if it or the quotes are none, a verification that says so."""
    if not isinstance(retained, Quotes):
        return _unreadable(f"Quotes are needed to verify against; got {type(retained).__name__}.")
    if not isinstance(certificate, Certificate | bytes):
        return _unreadable(f"A certificate or the bytes of one are needed; got {type(certificate).__name__}.")
    try:  # through its bytes, whatever it came as: what cannot be written was never issued
        return Certificate.from_bytes(certificate if isinstance(certificate, bytes) else certificate.to_bytes())
    except FAILURES as error:
        return _unreadable(_sentence(error))


def verify_claims(
    certificate: Certificate, retained: Quotes, *, model: Model | None = None, weights: Weighting | None = None
) -> Verification:
    """Compute every claim of a certificate again from the retained quotes alone; see ``store.signing.verify``."""
    try:
        checker = ClaimChecker(certificate, retained, model, weights)
    except FAILURES as error:
        return Verification((Check("OBJECTIVE", False, _sentence(error)),))
    claims = {
        Claim.STATE: checker.state,
        Claim.STEP: checker.step,
        Claim.OPTIMUM: checker.optimum,
        Claim.NEVER_SEEN: checker.never_seen,
    }
    made = [
        _judged(claim.name, check)
        if claim.name in certificate.claims
        else Check(claim.name, None, f"The issuer says: {certificate.said(claim)}.")
        for claim, check in claims.items()
    ]
    return Verification((_judged("COUNT", checker.count), *made), checker.laid_down(), checker.stated())


def _unreadable(sentence: str) -> Verification:
    return Verification((Check("BYTES", False, sentence),))


def _judged(name: str, check: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(name, *check())
    except FAILURES as error:
        return Check(name, False, f"It cannot be checked: {_sentence(error)}")


def _sentence(error: BaseException) -> str:
    return error.sentence if isinstance(error, StrikeoutError) else f"{type(error).__name__}: {error}"
