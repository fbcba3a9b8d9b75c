"""The plan of a strike-out: everything it will do, as bytes that can be passed on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from strikeout.assurance.canonical import canonical
from strikeout.assurance.certificate import Certificate
from strikeout.calibration.panels import latent_moves
from strikeout.errors import UsageError
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.text import as_lines, many

FORMAT = "strikeout plan 1"
SHOWN = 5  # slices that are refitted, in a summary
# Every field of a plan, as an error names it.
FIELDS = {
    "book": "the book",
    "position": "the number of entries",
    "head": "the last entry",
    "ids": "the quotes to strike out",
    "reason": "the reason",
    "before": "the parameters before",
    "after": "the parameters after",
    "moved": "the moves",
    "path": "the path",
    "touched": "the quotes touched by date and expiry",
    "refit": "the slices refitted",
    "latent": "the latent path",
    "tolerance": "the tolerance",
    "certificate": "the certificate",
    "seal": "the seal on reason and tolerance",
}


@dataclass(frozen=True)
class Plan:
    """Which quotes are struck out, why, what the parameters become, and the book it was made for.

    It names quotes, so it is data to guard; erasing deletes the plan in the file beside the book.

    ``position`` is the number of ledger entries the book had and ``head`` the hash of the last: a book that was changed
    since refuses the plan. ``touched`` counts the quotes by (date, expiry). ``refit`` names the slices whose forwards
    depend on them, with forward and discount before and after. ``seal`` is the book's keyed commitment to all of it:
    what cannot be computed again, such as the reason, cannot be rewritten without the key.
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
    latent: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)  # of a panel, before and after
    tolerance: float | None = None  # in standard errors, if one step may replace the optimum
    seal: str = ""

    @property
    def count(self) -> int:
        """How many quotes will be struck out."""
        return len(self.ids)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The groups of a panel that will be removed as a whole."""
        return tuple(group for group, (_, after) in self.latent.items() if after is None)

    @property
    def latent_moves(self) -> list[str]:
        """How the latent path of a panel will change, in sentences; empty if there is none."""
        panel = self.certificate.objective.get("panel")
        if panel is None:
            return []
        before, after = ({g: v[at] for g, v in self.latent.items() if v[at] is not None} for at in (0, 1))
        return latent_moves(before, after, name=panel["latent"], label=panel["label"])  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``latent`` and ``dropped`` only for a panel."""
        plain: dict[str, Any] = {
            "forgotten": list(self.ids),
            "retained": self.certificate.counts["retained"],
            "before": self.before,
            "parameters": self.after,
            "moved": self.moved,
            "path": list(self.path),
            "touched": self.touched,
            "refit": list(self.refit),
            "claims": self.certificate.made,
            "certificate": self.certificate.digest(),
        }
        if not self.latent:
            return plain
        before, after = ({group: pair[at] for group, pair in self.latent.items()} for at in (0, 1))
        latent = {"name": self.certificate.objective["panel"]["latent"], "before": before, "after": after}
        return {**plain, "latent": latent, "dropped": list(self.dropped)}

    def digest(self) -> str:
        """Return 64 hexadecimal digits that identify this plan."""
        return sha256(self.to_bytes()).hexdigest()

    def sealed(self, commit: Callable[[bytes], str]) -> Plan:
        """Return this plan with a commitment to everything it shows."""
        return replace(self, seal=commit(canonical(self._content())))

    def differences(self, other: Plan) -> tuple[str, ...]:
        """Return the names of the fields in which another plan differs; empty if none does."""
        mine, theirs = ({**plan._content(), "seal": plan.seal} for plan in (self, other))
        return tuple(name for name in FIELDS if mine.get(name) != theirs.get(name))

    def to_bytes(self) -> bytes:
        """Return JSON with sorted keys; numbers as ``float.hex`` writes them."""
        return canonical({**self._content(), "seal": self.seal})

    def _content(self) -> dict[str, Any]:
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
        content |= {} if self.tolerance is None else {"tolerance": self.tolerance.hex()}
        return {**content, "latent": _paired(self.latent)} if self.latent else content

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """Return the plan of these bytes.

        Raises:
            UsageError: they are not a plan, of another format, or damaged.
        """
        try:
            content = json.loads(data)
            if content.pop("format") != FORMAT:
                raise ValueError(f"the format is not {FORMAT!r}")
            numbers: dict[str, Any] = {name: _numbers(content.pop(name)) for name in ("before", "after", "moved")}
            certificate = Certificate.from_bytes(content.pop("certificate").encode("ascii"))
            tuples: dict[str, Any] = {name: tuple(content.pop(name)) for name in ("ids", "path", "refit")}
            latent = {g: (_read(was), _read(now)) for g, was, now in content.pop("latent", ())}
            asked = content.pop("tolerance", None)
            tolerance = None if asked is None else float.fromhex(asked)
            plan = Plan(certificate=certificate, tolerance=tolerance, latent=latent, **tuples, **numbers, **content)
            plan._check()
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise UsageError(
                f"Plan: the bytes are not a plan that this version can read ({error}). Make it again."
            ) from error
        if plan.to_bytes() != data:
            raise UsageError("Plan: the bytes were changed since they were written. Make it again with forget.")
        return plan

    def _check(self) -> None:
        """Raise ValueError if something in a plan that was read is of another kind than it must be."""
        texts = [self.book, self.head, self.seal, *self.ids, *self.path, *self.refit, *self.latent]
        texts += [*self.reason, *self.reason.values(), *self.touched, *self.before, *self.after]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("expected text, got a number")
        if not all(type(number) is int for number in (self.position, *self.touched.values())):
            raise ValueError("a count is not a whole number")
        if None in (*self.before.values(), *self.after.values()) or set(self.after) != set(self.moved):
            raise ValueError("the parameters before, after and their moves do not match")

    def summary(self) -> str:
        """Return every parameter before and after with its move, and what will be touched, one fact per line."""
        rows = [("parameter", "before", "after", "moved (independent SE)")]
        rows += [
            (name, f"{self.before[name]:.6g}" if name in self.before else "-", f"{value:.6g}", _moved(self.moved[name]))
            for name, value in self.after.items()
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}" for a, b, c, d in rows]
        quotes = many(self.certificate.before, "quote")
        return as_lines(
            [
                *lines,
                "",
                f"strike   {self.count:,} of {quotes}, on {len(self.touched):,} (date, expiry)",
                *(f"latent   {sentence}" for sentence in self.latent_moves),
                f"reason   {self.reason.get('code', '')} {self.reason.get('text', '')}".rstrip(),
                *(f"path     {sentence}" for sentence in self.path),
                *(f"refit    {sentence}" for sentence in self.refit[:SHOWN]),
                *([f"refit    and {many(len(self.refit) - SHOWN, 'slice')} more"] if len(self.refit) > SHOWN else []),
                f"claims   {', '.join(claim.name for claim in self.certificate.claimed()) or 'nothing'}",
                "changed  nothing so far",
            ]
        )

    def __repr__(self) -> str:
        return f"<Plan: {many(self.count, 'quote')} to strike out, {self.certificate.counts['retained']:,} retained>"


def _hexed(numbers: Mapping[str, float | None]) -> list[list[str | None]]:
    """Return pairs, so that the order of the parameters is kept."""
    return [[name, None if value is None else float(value).hex()] for name, value in numbers.items()]


def _numbers(pairs: list[list[str]]) -> dict[str, float | None]:
    return {name: _read(text) for name, text in pairs}


def _paired(latent: Mapping[str, tuple[float | None, float | None]]) -> list[list[str | None]]:
    return [[group, *(None if value is None else value.hex() for value in pair)] for group, pair in latent.items()]


def _read(text: str | None) -> float | None:
    return None if text is None else float.fromhex(text)


def _moved(value: float | None) -> str:
    return "-" if value is None else f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3g}"


def shards_of(quotes: Quotes | Moments) -> dict[str, int]:
    """Return how many quotes are on each (date, expiry)."""
    assert isinstance(quotes, Quotes), "a book forgets quotes it holds"
    dates = quotes.labels["date"].astype(str).tolist() if "date" in quotes.labels else [""] * len(quotes)
    pairs = zip(dates, quotes.contracts.expiry.tolist(), strict=True)
    return dict(sorted(Counter(f"{date} {expiry:.6g}".strip() for date, expiry in pairs).items()))
