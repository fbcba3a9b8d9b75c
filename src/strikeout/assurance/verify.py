"""Checking a certificate against the retained quotes: everything is computed again, nothing is taken on trust.

`Verification` is the result, check by check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from typing import Any, cast

from strikeout.assurance.certificate import STANDARD_ERRORS, Certificate, Claim
from strikeout.assurance.claim_checks import ClaimChecker
from strikeout.assurance.provenance import digest_of_quotes, reading_line
from strikeout.errors import StrikeoutError
from strikeout.kernels.compiled import native
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.models.named import HOMES, model_named, recognised
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.objective import Weighting
from strikeout.text import as_lines, many

SIGNATURE = "SIGNATURE"  # the name of a check that is not a claim
OF_PARAMETERS = tuple(claim.name for claim in Claim if claim is not Claim.STATE)
FOLLOWING = (Claim.STEP.name, Claim.NEVER_SEEN.name)  # claims by which the parameters follow from the quotes


class Verdict(StrEnum):
    """The result of a verification; the values are words for readers."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    UNCHECKED = "cannot be checked here"


@dataclass(frozen=True)
class Check:
    """One thing that was checked: whether it holds, and what was found.

    ``holds`` is None if it is not claimed, or if it cannot be checked here (``is_unchecked``).
    """

    name: str
    holds: bool | None
    found: str
    word: str = ""  # for what is neither claimed nor not
    is_unchecked: bool = False


@dataclass(frozen=True)
class Verification:
    """The result of checking a certificate.

    ``verdict`` is REFUTED if a claim is wrong or none is made, UNCHECKED if one cannot be checked on this machine or
    without more input, VERIFIED otherwise; ``holds`` if it is VERIFIED. What that means for the parameters is in three
    answers, each True, False, or None if the certificate claims nothing of it: ``state_is_right``,
    ``parameters_follow``, ``is_optimum``. ``laid_down`` is what the issuer chose and the quotes did not determine,
    ``stated`` what the certificate states and the retained quotes cannot confirm; both in clauses.
    """

    checks: tuple[Check, ...]
    laid_down: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # what the certificate is of: model, objective, parameters, ...

    @property
    def verdict(self) -> Verdict:
        """Whether the certificate is verified, refuted, or cannot be checked here."""
        if any(check.holds is False for check in self.checks):
            return Verdict.REFUTED
        if any(check.is_unchecked for check in self.checks):
            return Verdict.UNCHECKED
        is_any = any(check.holds for check in self.checks if check.name in Claim.__members__)
        return Verdict.VERIFIED if is_any else Verdict.REFUTED

    @property
    def holds(self) -> bool:
        """Whether every claim that is made was confirmed, and at least one is made."""
        return self.verdict is Verdict.VERIFIED

    @property
    def state_is_right(self) -> bool | None:
        """Whether the state is the one built from the retained quotes alone."""
        return self._of((Claim.STATE.name,))

    @property
    def parameters_follow(self) -> bool | None:
        """Whether the parameters are, bit for bit, what the retained quotes give: by a step, or a calibration."""
        return self._of(FOLLOWING)

    @property
    def is_optimum(self) -> bool | None:
        """Whether the parameters are an optimum of the retained quotes, identified and in bounds."""
        return self._of((Claim.OPTIMUM.name,))

    @property
    def is_signed(self) -> bool | None:
        """Whether a key that was given signed the certificate; None if none was given."""
        return self._of((SIGNATURE,))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not hold, one sentence each; empty where it does."""
        found = tuple(
            f"{check.name}: {check.found}" for check in self.checks if check.holds is False or check.is_unchecked
        )
        return found if found or self.holds else ("The certificate claims nothing.",)

    @property
    def silent(self) -> tuple[str, ...]:
        """What the certificate does not claim of the parameters, in sentences."""
        if all(self._of((name,)) is None for name in OF_PARAMETERS):
            return ("It claims nothing of parameters.",)
        said = []
        if self.is_optimum is None:
            said.append("It does not claim that the parameters are an optimum.")
        if self._of((Claim.NEVER_SEEN.name,)) is None:
            said.append("It does not claim that calibrating the retained quotes gives these parameters.")
        return tuple(said)

    @property
    def headline(self) -> str:
        """Whether it holds, and what that means for the state and the parameters."""
        if self.verdict is Verdict.REFUTED:
            return "NOT verified."
        parts = [
            sentence
            for is_so, sentence in (
                (self.state_is_right, "the state is right"),
                (self.parameters_follow, "the parameters follow from the retained quotes"),
                (self.is_optimum, "the parameters are an optimum"),
            )
            if is_so
        ]
        if self.verdict is Verdict.UNCHECKED:
            names = ", ".join(check.name for check in self.checks if check.is_unchecked)
            return " ".join(
                [f"Cannot be checked here: {names}.", *([f"Verified: {', '.join(parts)}."] if parts else [])]
            )
        how = "Verified" if self.is_optimum else "Verified in part"
        return " ".join([f"{how}: {', '.join(parts)}.", *self.silent])

    def __bool__(self) -> bool:
        return self.holds

    def summary(self) -> str:
        """Return one line a check, then what was laid down and what is only stated."""
        return as_lines(
            [
                self.headline,
                *(f"{word_of(check):<12} {check.name:<11} {check.found}" for check in self.checks),
                *(f"{word:<12} {sentence}" for word, sentence in (*self.facts, *self.remarks)),
            ]
        )

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What a reader needs besides the checks: (laid down or stated, clause)."""
        return (*(("laid down", text) for text in self.laid_down), *(("stated", text) for text in self.stated))

    def _repr_html_(self) -> str:
        lines = [(check.name, word_of(check), check.found) for check in self.checks]
        lines += [("", word, sentence) for word, sentence in self.remarks]
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{word}</td>"
            f"<td style='text-align:left'>{escape(found)}</td></tr>"
            for name, word, found in lines
        )
        return f"<table><caption>{escape(self.headline)}</caption>{rows}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "verdict": self.verdict.name.lower(),
            "holds": self.holds,
            "state_is_right": self.state_is_right,
            "parameters_follow": self.parameters_follow,
            "is_optimum": self.is_optimum,
            "is_signed": self.is_signed,
            "not_said": list(self.silent),
            "laid_down": list(self.laid_down),
            "stated": list(self.stated),
            "reasons": list(self.reasons),
            "facts": dict(self.facts),
            "checks": [
                {
                    "name": check.name,
                    "holds": check.holds,
                    "is_unchecked": check.is_unchecked,
                    "found": check.found,
                }
                for check in self.checks
            ],
        }

    def _of(self, names: tuple[str, ...]) -> bool | None:
        made = [check.holds for check in self.checks if check.name in names and check.holds is not None]
        return all(made) if made else None


def word_of(check: Check) -> str:
    """Return a check in a word."""
    if check.is_unchecked:
        return "unchecked"
    return check.word or {True: "holds", False: "FAILS", None: "not claimed"}[check.holds]


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
    if "quotes" in (certificate.reading or {}):
        made = [_judged("QUOTES", lambda: _quotes_named(certificate, retained)), *made]
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
        ("date", certificate.date),
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
