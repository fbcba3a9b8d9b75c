"""A certificate: what is claimed of a strike-out, each claim on its own, in bytes that anybody can check.

It holds no price, strike, date or id, and of the forgotten quotes only their number. There is no digest of the state
before: with the states before and after, the difference would give the forgotten quote away.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import sha256
from html import escape
from typing import Any

from strikeout.assurance.canonical import canonical
from strikeout.errors import UsageError
from strikeout.wording import as_lines, many

FORMAT = "strikeout certificate 1"

NEVER_CLAIMED = (
    "That no copy of the forgotten quotes exists elsewhere: in backups, files, logs or other calibrations.",
    "Differential privacy, or that parameters published before and after do not together point to what was forgotten.",
    "That the optimum is the global one; the best of the starts was taken.",
    "That states or footprints are anonymous: a quote can be rebuilt from its footprint.",
)


class Claim(StrEnum):
    """What a certificate may claim; the values are the claims as sentences."""

    STATE = "The state is, bit for bit, the one built from the retained quotes alone."
    STEP = "The parameters are, bit for bit, one Gauss-Newton step at the reference on the retained quotes."
    OPTIMUM = "The parameters are a stationary point of the retained quotes' objective, identified and in bounds."
    NEVER_SEEN = "The parameters are, bit for bit, what calibrating the retained quotes alone gives on this build."


@dataclass(frozen=True)
class Certificate:
    """The claims made of one strike-out and all that is needed to check them against the retained quotes.

    Numbers that are not whole are text, as ``float.hex`` writes them, so that not a bit is lost. ``claims`` has an
    entry for every ``Claim`` by name: whether it is claimed, and what supports it or stands in its way.
    """

    software: str
    build: dict[str, str]
    model: str
    objective: dict[str, Any]
    operator: str
    path: tuple[str, ...]
    parameters: dict[str, str]
    counts: dict[str, int]  # before, forgotten, retained
    state: dict[str, Any]  # kind, digest, schema, count; the reference, where it is not the model's first start
    claims: dict[str, dict[str, Any]]
    indicators: dict[str, str]
    identifiability: dict[str, str]
    not_claimed: tuple[str, ...] = NEVER_CLAIMED
    latent: tuple[str, ...] = ()  # of a panel: the parameter of every group, in their order; groups stay unnamed

    def claimed(self) -> tuple[Claim, ...]:
        """The claims that are made."""
        return tuple(claim for claim in Claim if self.claims[claim.name]["claimed"])

    def values(self) -> dict[str, float]:
        """The parameters as numbers."""
        return {name: float.fromhex(text) for name, text in self.parameters.items()}

    def _content(self) -> dict[str, Any]:
        content = {"format": FORMAT, **{field.name: getattr(self, field.name) for field in fields(self)}}
        if not self.latent:  # of a plain calibration there is nothing to say of it
            del content["latent"]
        return content

    def digest(self) -> str:
        """64 hexadecimal digits that name this certificate. Keep it apart from the bytes, and no change goes unseen."""
        return sha256(canonical(self._content())).hexdigest()

    def to_bytes(self) -> bytes:
        """The one way to write this certificate: JSON, keys sorted, no spaces, ASCII, no floating-point number.

        ``seal`` is the digest of all else. It finds damage; against malice, compare digests or ``verify``.
        """
        return canonical({**self._content(), "seal": self.digest()})

    @staticmethod
    def from_bytes(data: bytes) -> Certificate:
        """The certificate that these bytes are.

        Raises:
            UsageError: they are no certificate, of another format, or were changed since they were written.
        """
        try:
            content = json.loads(data.decode("ascii"))
        except ValueError as error:
            raise UsageError(
                f"Certificate: the bytes are not JSON in ASCII ({error}). Ask for the file again."
            ) from error
        found = content.get("format") if isinstance(content, dict) else None
        if found != FORMAT:
            raise UsageError(f"Certificate: the format is {found!r}; this version reads {FORMAT!r}.")
        names = {field.name for field in fields(Certificate)}
        content.setdefault("latent", [])
        if set(content) != {*names, "format", "seal"}:
            odd = sorted(set(content) ^ {*names, "format", "seal"})
            raise UsageError(f"Certificate: fields are missing or unknown: {', '.join(odd)}.")
        parts: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
        }
        certificate = Certificate(**{name: parts[name] for name in names})
        wrong = _wrong(certificate)
        if wrong is not None:
            raise UsageError(f"Certificate: {wrong} is not what a certificate holds there.")
        if certificate.to_bytes() != data:
            raise UsageError(
                "Certificate: the bytes were changed since they were written (the seal does not match). "
                "Ask for the original; do not rely on this one."
            )
        return certificate

    def summary(self) -> str:
        """The claims, the numbers and what is not claimed, in plain text."""
        lines = [f"{self._headline()}", ""]
        for claim in Claim:
            entry = self.claims[claim.name]
            lines.append(f"{'claimed' if entry['claimed'] else 'not claimed':<12} {claim.name:<11} {entry['support']}")
        lines += [
            "",
            *(f"{name:<18} {value:.10g}" for name, value in self.values().items()),
            *self._path_of_latents(),
            "",
        ]
        lines += [f"path         {sentence}" for sentence in self.path]
        lines += [f"state        {self.state['digest']}", f"             of {self._state_of()}"] if self.state else []
        lines += [f"certificate  {self.digest()}", "", "Not claimed:", *(f"- {text}" for text in self.not_claimed)]
        return as_lines(lines)

    def _state_of(self) -> str:
        """What the digest of the state is of: a step is solved from a state at a reference of its own."""
        if "reference" in self.state:
            return "the retained quotes at the reference of the step; a book names its state at the model's first start"
        if self.state["kind"] == "moments":
            return "the moments of the retained quotes"
        return "the retained quotes at the model's first start"

    def _path_of_latents(self) -> list[str]:
        if not self.latent:
            return []
        values = [float.fromhex(text) for text in self.latent]
        name = str(self.objective["panel"]["latent"])
        return [f"{name:<18} {min(values):.6g} to {max(values):.6g}, one for each of {many(len(values), 'group')}"]

    def _headline(self) -> str:
        c = self.counts
        return (
            f"{c['forgotten']:,} of {many(c['before'], 'quote')} struck out of {self.model} by {self.operator}, "
            f"{c['retained']:,} retained ({self.software})"
        )

    def __repr__(self) -> str:
        made = ", ".join(claim.name for claim in self.claimed()) or "nothing"
        return f"<Certificate {self.digest()[:12]}: {self._headline()}; claims {made}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{claim.name}</th><td>"
            f"{'claimed' if self.claims[claim.name]['claimed'] else 'not claimed'}</td>"
            f"<td style='text-align:left'>{escape(self.claims[claim.name]['support'])}</td></tr>"
            for claim in Claim
        )
        not_claimed = "".join(f"<li>{escape(text)}</li>" for text in self.not_claimed)
        return (
            f"<table><caption>{escape(self._headline())}</caption>{rows}</table>"
            f"<p>Certificate <code>{self.digest()}</code></p><p>Not claimed:</p><ul>{not_claimed}</ul>"
        )


def _wrong(certificate: Certificate) -> str | None:
    """The first field whose shape is not that of a certificate; None where all are."""
    c = certificate
    texts = (c.build, c.parameters, c.indicators, c.identifiability)
    checks = {
        "software": isinstance(c.software, str),
        "model": isinstance(c.model, str),
        "operator": isinstance(c.operator, str),
        "objective": isinstance(c.objective, dict),
        "path": isinstance(c.path, tuple) and all(isinstance(text, str) for text in c.path),
        "not_claimed": isinstance(c.not_claimed, tuple) and all(isinstance(text, str) for text in c.not_claimed),
        "a table of texts": all(isinstance(t, dict) and all(isinstance(x, str) for x in t.values()) for t in texts),
        "parameters": isinstance(c.parameters, dict) and all(_is_hex(text) for text in c.parameters.values()),
        "latent": isinstance(c.latent, tuple)
        and all(map(_is_hex, c.latent))
        and bool(c.latent) == (isinstance(c.objective, dict) and "panel" in c.objective),
        "counts": isinstance(c.counts, dict)
        and set(c.counts) == {"before", "forgotten", "retained"}
        and all(type(count) is int and count >= 0 for count in c.counts.values()),
        "state": isinstance(c.state, dict),
        "claims": isinstance(c.claims, dict)
        and set(c.claims) == {claim.name for claim in Claim}
        and all(
            isinstance(entry, dict) and type(entry.get("claimed")) is bool and isinstance(entry.get("support"), str)
            for entry in c.claims.values()
        ),
    }
    return next((name for name, good in checks.items() if not good), None)


def _is_hex(text: Any) -> bool:
    try:
        return isinstance(text, str) and float.fromhex(text).hex() == text
    except (ValueError, OverflowError):
        return False
