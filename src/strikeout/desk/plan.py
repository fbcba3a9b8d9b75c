"""A strike-out that is decided and not yet done: everything it will do, in bytes that can be handed around."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from strikeout.assurance.canonical import canonical
from strikeout.assurance.certificate import Certificate
from strikeout.errors import UsageError

FORMAT = "strikeout plan 1"
SHOWN = 5  # slices that are refitted, in a summary


@dataclass(frozen=True)
class Plan:
    """Which quotes go, why, what the parameters become, and the book it was made for.

    It names quotes, so it is data to guard; erasing removes the plan the book keeps beside itself.

    ``position`` is the number of ledger entries the book had and ``head`` the hash of the last: a book that has moved
    on refuses the plan. ``touched`` counts the quotes to go by (date, expiry). ``refit`` names the slices whose
    forwards rest on them, with forward and discount before and after.
    """

    book: str
    position: int
    head: str
    ids: tuple[str, ...]
    reason: dict[str, str]
    before: dict[str, float]
    after: dict[str, float]
    moved: dict[str, float | None]  # in standard errors of what is retained
    path: tuple[str, ...]
    touched: dict[str, int]
    certificate: Certificate
    refit: tuple[str, ...] = ()
    tolerance: float | None = None  # in standard errors, where one step may stand for the optimum

    @property
    def count(self) -> int:
        """How many quotes will go."""
        return len(self.ids)

    def digest(self) -> str:
        """64 hexadecimal digits that name this plan."""
        return sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """JSON, keys sorted; numbers as ``float.hex`` writes them."""
        content = {
            "format": FORMAT,
            "book": self.book,
            "position": self.position,
            "head": self.head,
            "ids": list(self.ids),
            "reason": self.reason,
            "before": _hexed(self.before),
            "after": _hexed(self.after),
            "moved": _hexed(self.moved),
            "path": list(self.path),
            "touched": self.touched,
            "certificate": self.certificate.to_bytes().decode("ascii"),
            "refit": list(self.refit),
        }
        return canonical(content if self.tolerance is None else {**content, "tolerance": self.tolerance.hex()})

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """The plan that these bytes are.

        Raises:
            UsageError: they are no plan, of another format, or damaged.
        """
        try:
            content = json.loads(data)
            if content.pop("format") != FORMAT:
                raise ValueError(f"the format is not {FORMAT!r}")
            numbers: dict[str, Any] = {name: _numbers(content.pop(name)) for name in ("before", "after", "moved")}
            certificate = Certificate.from_bytes(content.pop("certificate").encode("ascii"))
            tuples: dict[str, Any] = {name: tuple(content.pop(name)) for name in ("ids", "path", "refit")}
            asked = content.pop("tolerance", None)
            tolerance = None if asked is None else float.fromhex(asked)
            plan = Plan(certificate=certificate, tolerance=tolerance, **tuples, **numbers, **content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"Plan: the bytes are no plan this version can read ({error}). Make it again.") from error
        if plan.to_bytes() != data:
            raise UsageError("Plan: the bytes were changed since they were written. Make it again with forget.")
        return plan

    def summary(self) -> str:
        """Before, after and the move of every parameter, and what will be touched, one fact a line."""
        rows = [("parameter", "before", "after", "moved (SE after)")]
        rows += [
            (name, f"{self.before[name]:.6g}", f"{value:.6g}", _moved(self.moved[name]))
            for name, value in self.after.items()
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}" for a, b, c, d in rows]
        counts = self.certificate.counts
        return "\n".join(
            [
                *lines,
                "",
                f"to go    {self.count:,} of {counts['before']:,} quotes, on {len(self.touched):,} (date, expiry)",
                f"reason   {self.reason.get('code', '')} {self.reason.get('text', '')}".rstrip(),
                *(f"path     {sentence}" for sentence in self.path),
                *(f"refit    {sentence}" for sentence in self.refit[:SHOWN]),
                *([f"refit    and {len(self.refit) - SHOWN:,} slices more"] if len(self.refit) > SHOWN else []),
                f"claims   {', '.join(claim.name for claim in self.certificate.claimed()) or 'nothing'}",
                "changed  nothing so far",
            ]
        )

    def __repr__(self) -> str:
        return f"<Plan: {self.count:,} quotes to go, {self.certificate.counts['retained']:,} retained>"


def _hexed(numbers: Mapping[str, float | None]) -> list[list[str | None]]:
    """Pairs, so that the order of the parameters is kept."""
    return [[name, None if value is None else float(value).hex()] for name, value in numbers.items()]


def _numbers(pairs: list[list[str]]) -> dict[str, float | None]:
    return {name: None if text is None else float.fromhex(text) for name, text in pairs}


def _moved(value: float | None) -> str:
    return "-" if value is None else f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3g}"
