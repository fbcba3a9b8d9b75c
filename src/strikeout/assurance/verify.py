"""Checking a certificate against the retained quotes: everything is computed again, nothing is taken on trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from strikeout.assurance.certificate import STANDARD_ERRORS, Certificate, Claim
from strikeout.assurance.claim_checks import ClaimChecker
from strikeout.assurance.provenance import digest_of_quotes, reading_line
from strikeout.assurance.verification import Check, Verification
from strikeout.errors import StrikeoutError
from strikeout.kernels.compiled import native
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.models.named import HOMES, model_named, recognised
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.weights import Weighting
from strikeout.text import many

NEEDS_COMPILED = (
    "These bits are those of the compiled kernel, which is not installed here. Reinstall with a C++17 compiler, or "
    "verify on a machine that has it."
)

# What a check on foreign input may meet; each becomes a reason, since a verification raises nothing.
FAILURES = (StrikeoutError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError)


def read(certificate: Certificate | bytes, retained: Quotes) -> Certificate | Verification:
    """Return the certificate to check; if it or the quotes cannot be read, a verification with the reason."""
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
    missing = _missing(certificate, retained, model, weights)
    if missing is not None:
        return Verification((Check("OBJECTIVE", None, missing, is_unchecked=True),), facts=facts_of(certificate))
    twin = None if model is not None else _twin(certificate.model)
    try:
        as_read = certificate if twin is None else replace(certificate, model=twin.name)
        checker = ClaimChecker(as_read, retained, model if twin is None else twin, weights)
    except FAILURES as error:
        return Verification((Check("OBJECTIVE", False, _sentence(error)),), facts=facts_of(certificate))
    claims = {
        Claim.STATE: checker.state,
        Claim.STEP: checker.step,
        Claim.OPTIMUM: checker.optimum,
        Claim.NEVER_SEEN: checker.never_seen,
    }
    made = []
    for claim, check in claims.items():
        if claim.name not in certificate.claims:
            reason = certificate.clause(claim)
            made.append(Check(claim.name, None, f"{reason[0].upper()}{reason[1:]}."))
        elif twin is not None and claim is not Claim.OPTIMUM:
            made.append(Check(claim.name, None, NEEDS_COMPILED, is_unchecked=True))
        else:
            made.append(_judged(claim.name, check))
    facts = facts_of(certificate, counted=len(checker.retained))
    made = [_judged("QUOTES", lambda: _quotes_named(certificate, retained)), *made] if certificate.reading else made
    return Verification((_judged("COUNT", checker.count), *made), checker.laid_down(), checker.stated(), facts)


def facts_of(certificate: Certificate, *, counted: int | None = None) -> tuple[tuple[str, str], ...]:
    """Return what a certificate is of: model, objective, quotes, parameters, tolerance and the claims it makes.

    Args:
        counted: how many of the retained quotes the objective counts.
    """
    how, tolerance = certificate.objective, certificate.tolerance
    retained = many(certificate.counts["retained"], "quote")
    used = "" if counted is None else f"; the objective counts {counted:,} of those given here"
    made = [claim.name for claim in certificate.claimed()]
    fitted = f"{how['loss']} loss, " if "loss" in how else ""
    return (
        ("model", certificate.model),
        ("objective", f"{how['residual']} residuals, {fitted}{how['weights']} weights, {how['select']} quotes"),
        ("quotes", f"{retained} retained{used}"),
        *([("parameters", ", ".join(f"{name} {value:.6g}" for name, value in certificate.values().items()))]
          if certificate.parameters else []),
        ("tolerance", "none: no optimum is claimed" if tolerance is None else f"{tolerance:g} {STANDARD_ERRORS}"),
        *([("read as", reading_line(certificate.reading))] if certificate.reading else []),
        ("claims", ", ".join(made) or "none"),
        ("not claimed", ", ".join(name for name in Claim.__members__ if name not in made) or "none"),
    )  # fmt: skip


def _quotes_named(certificate: Certificate, retained: Quotes) -> tuple[bool, str]:
    """Return whether the quotes are those whose digest the certificate contains."""
    found, named = digest_of_quotes(retained), (certificate.reading or {})["quotes"]
    if found == named:
        return True, "The ids, contracts, prices, weights and spreads are those that the issuer retained."
    return False, f"Their digest is {found[:16]}..., and the certificate is of {named[:16]}..."


def _missing(certificate: Certificate, retained: Quotes, model: Model | None, weights: Weighting | None) -> str | None:
    """Return what a reader must add before anything can be checked, as a sentence; None if nothing is missing."""
    if model is None and not _is_ours(certificate.model, retained):
        return f"The model {certificate.model!r} is a user's own: give it with model=."
    if weights is None and certificate.objective["weights"] == "own":
        return "The calibration was given weights of its own: give them again with weights=, by id."
    return None


def _is_ours(name: str, retained: Quotes) -> bool:
    """Return whether a model can be made again from its name."""
    if name.startswith("heston/") or _twin(name) is not None:
        return True
    try:
        return recognised(name, retained.contracts) is not None
    except FAILURES:
        return False


def _twin(name: str) -> Model | None:
    """Return the NumPy twin of a compiled model if the compiled kernel is not installed; None if it is not needed."""
    kind, _, form = name.partition("/")
    if native() is not None or kind not in HOMES or not form.startswith("native-"):
        return None
    if kind == "heston":
        return Heston("numpy", cast(Any, form.split("-")[1]))
    return model_named(kind)


def _unreadable(sentence: str) -> Verification:
    return Verification((Check("BYTES", False, sentence),))


def _judged(name: str, check: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(name, *check())
    except FAILURES as error:
        return Check(name, False, f"It cannot be checked: {_sentence(error)}")


def _sentence(error: BaseException) -> str:
    return error.sentence if isinstance(error, StrikeoutError) else f"{type(error).__name__}: {error}"
