"""What checking a certificate came to, check by check."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from strikeout.assurance.certificate import Claim
from strikeout.wording import as_lines


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: whether it holds, and what was found. ``holds`` is None where it is not claimed."""

    name: str
    holds: bool | None
    found: str


@dataclass(frozen=True)
class Verification:
    """What checking a certificate came to.

    ``holds`` where a claim is made at all, and every one that is made was confirmed.
    """

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        made = [check.holds for check in self.checks if check.holds is not None]
        return all(made) and any(check.holds for check in self.checks if check.name in Claim.__members__)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not hold, one sentence each; empty where it does."""
        found = tuple(f"{check.name}: {check.found}" for check in self.checks if check.holds is False)
        return found if found or self.holds else ("The certificate claims nothing.",)

    @property
    def headline(self) -> str:
        """Whether it holds, and whether it says anything of the parameters at all."""
        if not self.holds:
            return "The certificate does not hold."
        of_parameters = any(
            check.holds for check in self.checks if check.name in Claim.__members__ and check.name != "STATE"
        )
        return (
            "The certificate holds." if of_parameters else "The certificate holds; it claims nothing of the parameters."
        )

    def __bool__(self) -> bool:
        return self.holds

    def summary(self) -> str:
        """One line a check."""
        return as_lines(
            [self.headline, *(f"{_word(check):<12} {check.name:<11} {check.found}" for check in self.checks)]
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(check.name)}</th><td>{_word(check)}</td>"
            f"<td style='text-align:left'>{escape(check.found)}</td></tr>"
            for check in self.checks
        )
        return f"<table><caption>{self.headline}</caption>{rows}</table>"


def _word(check: Check) -> str:
    return "not claimed" if check.holds is None else "holds" if check.holds else "FAILS"
