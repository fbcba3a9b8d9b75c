"""The result of checking a certificate, check by check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Any

from strikeout.assurance.certificate import Claim
from strikeout.text import as_lines

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
