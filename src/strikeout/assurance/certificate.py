"""A certificate: what is claimed of a strike-out, each claim on its own, in bytes that anybody can check.

It holds no price, strike, date or id, and of the forgotten quotes only their number. There is no digest of the state
before: with the states before and after, the difference would give the forgotten quote away. It holds codes and
numbers; the reader makes every sentence, so that no sentence has to be believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import sha256
from html import escape
from typing import Any

from strikeout.assurance.canonical import canonical, parse
from strikeout.assurance.certificate_shape import wrong_part
from strikeout.errors import UsageError
from strikeout.text import as_lines, many

FORMAT = "strikeout certificate 2"
STANDARD_ERRORS = "standard errors of independent quotes"  # the unit of tolerances
MOST_BYTES = 1 << 24  # a panel of 100,000 groups has some six megabytes

NEVER_CLAIMED = (
    "That no copy of the forgotten quotes exists elsewhere: in backups, files, logs or other calibrations.",
    "Differential privacy, or that parameters published before and after do not together point to what was forgotten.",
    "That the optimum is the global one; the best of the starts was taken.",
    "That states or footprints are anonymous: a quote can be rebuilt from its footprint.",
)
REFERENCE_LEAKS = (
    "That the reference of the step reveals nothing of the forgotten quotes: it was found with them in the book, "
    "and is written in this certificate."
)
NOTHING_OF_PARAMETERS = "Anything of parameters: this certificate is about the state alone, and has none."


class Claim(StrEnum):
    """What a certificate may claim; the values are the claims as sentences."""

    STATE = "The state is, bit for bit, the one built from the retained quotes alone."
    STEP = "The parameters are, bit for bit, one Gauss-Newton step at the reference on the retained quotes."
    OPTIMUM = "The parameters are a stationary point of the retained quotes' objective, identified and in bounds."
    NEVER_SEEN = "The parameters are, bit for bit, what calibrating the retained quotes alone gives on this build."


class Obstacle(StrEnum):
    """Why a claim is not made; certificates have the names, and the values are sentences for who reads them."""

    TOO_LARGE = "a retained quote is too large for the grid of the state"
    NO_STEP = "the parameters are not one step from a reference"
    NO_CALIBRATION = "the parameters are not those of a calibration of the retained quotes"
    NOT_CONVERGED = "the calibration of the retained quotes did not converge"
    ON_FELLER = "the parameters lie on Feller's condition, where the gradient need not vanish"
    PRIOR = "the path of the panel has a prior, and so the parameters are not at the optimum of the quotes alone"
    FAR = "the parameters are not within one standard error of an optimum that the retained quotes determine"
    LOOSE_GROUP = "the quotes of a group do not determine its latent parameter"
    COARSE_MOMENTS = (
        "the moments have too few polynomials to show the optimum of their quotes: take more (basis=Basis(nodes=...)), "
        "or calibrate from the quotes"
    )
    OTHER_VALLEY = "from the model's own starts the retained quotes reach a far lower cost"


@dataclass(frozen=True)
class Certificate:
    """The claims made of one strike-out and all that is needed to check them against the retained quotes.

    Numbers that are not whole are text, as ``float.hex`` writes them, so that not a bit is lost. ``claims`` has an
    entry for every claim that is made, with what its check needs; ``obstacles`` has one for every other, the name of
    an ``Obstacle``. Parameters are listed only if a claim is about them.
    """

    software: str
    build: dict[str, str]
    model: str
    objective: dict[str, Any]
    operator: str
    parameters: dict[str, str]
    counts: dict[str, int]  # forgotten, retained
    state: dict[str, Any]  # kind, digest, schema, count; the reference, if it is not the model's first start
    claims: dict[str, dict[str, Any]]
    obstacles: dict[str, str]
    latent: tuple[str, ...] = ()  # of a panel: the parameter of every group, in their order; groups stay unnamed
    reading: dict[str, Any] | None = None  # layout, settings, digests of retained quotes and their file
    # at, the date; public and signature, if a key signed it; entry and head, if it is the key of a book
    signed: dict[str, Any] | None = None

    def claimed(self) -> tuple[Claim, ...]:
        """Return the claims that are made."""
        return tuple(claim for claim in Claim if claim.name in self.claims)

    @property
    def made(self) -> dict[str, bool]:
        """Whether each claim is made, by its name."""
        return {claim.name: claim.name in self.claims for claim in Claim}

    def rows(self) -> list[tuple[str, str, str]]:
        """Return every claim: its name, whether it is made, and what supports it or stands in its way."""
        return [
            (name, "claimed" if made else "not claimed", self.clause(Claim[name])) for name, made in self.made.items()
        ]

    def values(self) -> dict[str, float]:
        """Return the parameters as numbers."""
        return {name: float.fromhex(text) for name, text in self.parameters.items()}

    @property
    def tolerance(self) -> float | None:
        """Standard errors within which the parameters are claimed to be an optimum; None if that is not claimed."""
        made = self.claims.get(Claim.OPTIMUM.name)
        return None if made is None else float.fromhex(made["tolerance"])

    @property
    def before(self) -> int:
        """How many quotes there were."""
        return self.counts["forgotten"] + self.counts["retained"]

    @property
    def is_of_parameters(self) -> bool:
        """Whether a claim is about parameters."""
        return any(claim is not Claim.STATE for claim in self.claimed())

    def clause(self, claim: Claim) -> str:
        """Return what supports a claim, or stands in its way, as a clause."""
        if claim.name not in self.claims:
            return str(Obstacle[self.obstacles[claim.name]])
        return {
            Claim.STATE: "its digest is that of the retained quotes",
            Claim.STEP: "solved from the state at the reference",
            Claim.OPTIMUM: f"the next step is below {self.tolerance or 0.0:g} {STANDARD_ERRORS}, or below rounding",
            Claim.NEVER_SEEN: f"solved from the {self.claims[claim.name].get('source')} alone, from cold starts",
        }[claim]

    @property
    def not_claimed(self) -> tuple[str, ...]:
        """What no certificate claims, and what this one does not, in sentences."""
        more = [REFERENCE_LEAKS] if "reference" in self.state else []
        return (*NEVER_CLAIMED, *more, *([] if self.is_of_parameters else [NOTHING_OF_PARAMETERS]))

    def _content(self) -> dict[str, Any]:
        content = {"format": FORMAT, **{field.name: getattr(self, field.name) for field in fields(self)}}
        del content["signed"]
        if not self.latent:  # a plain calibration has none
            del content["latent"]
        if self.reading is None:  # calibrated in Python or in a book
            del content["reading"]
        return content

    def digest(self) -> str:
        """Return 64 hexadecimal digits that name this certificate, signed or not.

        Keep it apart from the bytes, and no change goes unseen.
        """
        return sha256(canonical(self._content())).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the one way to write this certificate: JSON, keys sorted, no spaces, ASCII, no floating-point number.

        ``seal`` is the digest of all else but the signature. It finds damage; against malice, compare digests, check
        the signature, or ``verify``.
        """
        signed = {} if self.signed is None else {"signed": self.signed}
        return canonical({**self._content(), **signed, "seal": self.digest()})

    @staticmethod
    def from_bytes(data: bytes) -> Certificate:
        """Return the certificate that these bytes are.

        Raises:
            UsageError: they are not a certificate, of another format, larger or deeper than any, hold a field that none
                has or lack one, or were changed since they were written.
        """
        try:
            content = parse(data, most=MOST_BYTES)
        except ValueError as error:
            raise UsageError(
                f"Certificate: the bytes are not JSON as a certificate is written ({error}). Ask for the file again."
            ) from error
        found = content.get("format") if isinstance(content, dict) else None
        if found != FORMAT:
            raise UsageError(f"Certificate: the format is {_short(found)}; this version reads {FORMAT!r}.")
        content.setdefault("latent", [])
        content.setdefault("reading", None)
        content.setdefault("signed", None)
        names = {field.name for field in fields(Certificate)}
        if set(content) != {*names, "format", "seal"}:
            odd = ", ".join(sorted(set(content) ^ {*names, "format", "seal"}))
            raise UsageError(f"Certificate: fields are missing or unknown: {odd[:200]}.", fields=odd[:200])
        wrong = wrong_part(content, claims=Claim.__members__, obstacles=Obstacle.__members__)
        if wrong is not None:
            raise UsageError(f"Certificate: {wrong} is not what a certificate holds there.", field=wrong)
        parts: Mapping[str, Any] = {**content, "latent": tuple(content["latent"])}
        certificate = Certificate(**{name: parts[name] for name in names})
        if certificate.to_bytes() != data:
            raise UsageError(
                "Certificate: the bytes were changed since they were written (the seal does not match). "
                "Ask for the original; do not rely on this one."
            )
        return certificate

    def summary(self) -> str:
        """Return the claims, the numbers and what is not claimed, in plain text."""
        lines = [f"{self._headline()}", ""]
        lines += [f"{word:<12} {name:<11} {said}" for name, word, said in self.rows()]
        lines += [
            "",
            *(f"{name:<18} {value:.10g}" for name, value in self.values().items()),
            *self._path_of_latents(),
            "",
        ]
        lines += [f"state        {self.state['digest']}", f"             of {self._state_of()}"] if self.state else []
        lines += self._reading_lines()
        lines += [f"certificate  {self.digest()}", f"date         {self.date}", f"signature    {self._signature()}"]
        lines += ["", "Not claimed:", *(f"- {text}" for text in self.not_claimed)]
        return as_lines(lines)

    def _reading_lines(self) -> list[str]:
        reading = self.reading
        if reading is None:
            return []
        settings = [f"             {name} {value}" for name, value in reading["settings"].items()]
        digests = [f"{name:<12} {reading[name]}" for name in ("quotes", "file") if name in reading]
        return [f"read as      {reading['layout']}", *settings, *digests]

    @property
    def date(self) -> str:
        """When it was issued, as its issuer states; a signature covers it."""
        return "none" if self.signed is None else str(self.signed["at"])

    def _signature(self) -> str:
        signed = self.signed
        if signed is None or "signature" not in signed:
            return "none: no issuer is known for what cannot be computed again, such as how many quotes were forgotten"
        place = f", as entry {signed['entry']} after {signed['head']}" if "entry" in signed else ""
        return f"by the key {signed['public']}{place}; verify checks it"

    def _state_of(self) -> str:
        """Return what the digest of the state is of: a step is solved from a state at a reference of its own."""
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
            f"{c['forgotten']:,} of {many(self.before, 'quote')} struck out of {self.model} by {self.operator}, "
            f"{c['retained']:,} retained ({self.software})"
        )

    def __repr__(self) -> str:
        made = ", ".join(claim.name for claim in self.claimed()) or "nothing"
        return f"<Certificate {self.digest()[:12]}: {self._headline()}; claims {made}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{word}</td>"
            f"<td style='text-align:left'>{escape(said)}</td></tr>"
            for name, word, said in self.rows()
        )
        not_claimed = "".join(f"<li>{escape(text)}</li>" for text in self.not_claimed)
        return (
            f"<table><caption>{escape(self._headline())}</caption>{rows}</table>"
            f"<p>Certificate <code>{self.digest()}</code></p><p>Date: {escape(self.date)}</p>"
            f"<p>Signature: {escape(self._signature())}</p>"
            f"<p>Not claimed:</p><ul>{not_claimed}</ul>"
        )


def _short(value: object) -> str:
    if not isinstance(value, str):
        return "None" if value is None else f"no text, but {type(value).__name__}"
    return repr(value) if len(value) <= 80 else f"{value[:80]!r}... ({len(value):,} letters)"
