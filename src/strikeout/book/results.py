"""Results of the verbs of a book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from strikeout.assurance.certificate import Certificate
from strikeout.assurance.verify import Check, Verdict
from strikeout.book.state_store import MissingFootprints
from strikeout.book.version import Version
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.fit_errors import FitErrors
from strikeout.calibration.panels import latent_moves
from strikeout.store.residue import Search
from strikeout.text import agreeing, as_lines, many

SHOWN = 4  # shards in a line
SHOWN_TRACES = 20


@dataclass(frozen=True)
class Imported:
    """The result of an import; ``entry`` is None if no quote was new and nothing was changed."""

    entry: int | None
    imported: int
    repeated: int  # in the book already, the same to the bit
    set_aside: int  # forgotten before: they stay forgotten until they are restored
    erased: tuple[str, ...]  # ids that were erased before: refused
    held: int

    @property
    def sentence(self) -> str:
        """The import in one sentence."""
        words = [f"{many(self.imported, 'quote')} imported"]
        words += [f"{self.repeated:,} there already"] if self.repeated else []
        words += [f"{self.set_aside:,} forgotten before and left so"] if self.set_aside else []
        were = agreeing(len(self.erased), "it was", "they were")
        words += [f"{len(self.erased):,} refused, for {were} erased"] if self.erased else []
        return f"{', '.join(words)}; the book holds {self.held:,}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**vars(self), "erased": list(self.erased)}


@dataclass(frozen=True)
class Change:
    """A change of a book: the entry of the ledger, the calibration before (None for the first) and after."""

    entry: int
    what: str
    touched: int  # quotes that were added or removed
    before: Version | None
    after: Version
    certificate: Certificate | None = None
    path: tuple[str, ...] = ()
    repeated: Mapping[str, Any] = field(default_factory=dict)  # settings of a calibration that are as the last time
    dropped: Mapping[str, Any] = field(default_factory=dict)  # settings of the last time that another model lacks
    calibration: Calibration | None = field(default=None, repr=False, compare=False)  # if it was made from quotes

    @cached_property
    def fit_errors(self) -> FitErrors | None:
        """The fit errors in volatility points, spreads and price; None for one step, or from moments."""
        return None if self.calibration is None else self.calibration.fit_errors

    @property
    def moved(self) -> dict[str, float | None]:
        """By how many standard errors (after) each parameter moved; None if there is no such number."""
        return (
            {}
            if self.before is None
            else moved(self.before.parameters, self.after.parameters, self.after.standard_errors)
        )

    @property
    def latent_moves(self) -> list[str]:
        """How the latent path of a panel changed, in sentences; empty if there is none before or after."""
        if self.before is None:
            return []
        if self.before.panel != self.after.panel:
            return [f"until now {'one value' if self.before.panel is None else self.before.each}"]
        if self.after.kind is None or self.after.panel is None:
            return []
        paths = [{g: value for g, (value, _) in version.latent.items()} for version in (self.before, self.after)]
        return latent_moves(*paths, name=self.after.kind["latent"], label=self.after.panel, is_done=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the parameters before, everything of the calibration after, the certificate."""
        return {
            "entry": self.entry,
            "what": self.what,
            "touched": self.touched,
            "before": None if self.before is None else dict(self.before.parameters),
            **self.after.to_dict(),
            "moved": self.moved,
            "fit_errors": None if self.fit_errors is None else self.fit_errors.to_dict(),
            "path": list(self.path),
            "certificate": None if self.certificate is None else self.certificate.digest(),
            "claims": None if self.certificate is None else self.certificate.made,
        }


def moved(
    before: Mapping[str, float], after: Mapping[str, float], errors: Mapping[str, float]
) -> dict[str, float | None]:
    """Return by how many standard errors each parameter moved; None if it has no standard error or is new."""
    return {
        name: (value - before[name]) / errors[name] if name in before and errors[name] > 0.0 else None
        for name, value in after.items()
    }


@dataclass(frozen=True)
class Status:
    """A book at a glance. ``is_current`` if the calibration is of the quotes the book holds now."""

    book: str
    held: int
    set_aside: int
    erased: int
    quarantined: int  # rows of imports that did not become quotes
    entries: int
    root: str  # of the ledger's tree
    key: str  # the public key that signs
    version: Version | None
    is_current: bool
    shards: Mapping[int, int]  # by number: how many quotes, set aside or not
    footprints: int | None  # shards with stored footprints; None if the book stores none
    reference: int | None  # the entry in which the reference of the footprints was fitted
    noise: float = 0.0  # share by which footprints are perturbed
    groups: int | None = None  # of a panel: how many have a stored state
    no_footprints: MissingFootprints | None = None  # why none are stored

    @property
    def shard_sentence(self) -> str:
        """The shards with their counts and stored states, in a line."""
        few = list(self.shards.items())[:SHOWN]
        named = ", ".join(f"{shard} ({count:,})" for shard, count in few)
        more = f" and {len(self.shards) - SHOWN:,} more" if len(self.shards) > SHOWN else ""
        what = f"{len(self.shards):,}: {named}{more}" if self.shards else "none"
        if self.no_footprints is not None:
            return f"{what}; no footprints are kept: {self.no_footprints.clause}"
        kept = f"footprints and states of {self.footprints:,}"
        groups = "" if self.groups is None else f", in {many(self.groups, 'group')},"
        noise = f", perturbed by {self.noise:g}" if self.noise else ""
        return f"{what}; {kept}{groups} at the reference of entry {self.reference}{noise}"

    @property
    def sentence(self) -> str:
        """What to do next, or that there is nothing to do."""
        if not self.held and self.version is None:
            return "The book is empty: import quotes."
        if self.version is None:
            return "The book is not calibrated yet: calibrate it."
        return (
            "The calibration is current." if self.is_current else "Quotes were added or removed since: calibrate again."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; ``calibration`` is None if the book is not calibrated."""
        return {
            "book": self.book,
            "held": self.held,
            "set_aside": self.set_aside,
            "erased": self.erased,
            "quarantined": self.quarantined,
            "entries": self.entries,
            "head": f"{self.entries}:{self.root}",
            "key": self.key,
            "current": self.is_current,
            "shards": {str(shard): count for shard, count in self.shards.items()},
            "footprints": self.footprints,
            "no_footprints": self.no_footprints,
            "reference": self.reference,
            "perturbed": self.noise,
            "groups": self.groups,
            "calibration": self.version and {"entry": self.version.entry, **self.version.to_dict()},
        }


@dataclass(frozen=True)
class Audit:
    """The result of checking a whole book, check by check."""

    checks: tuple[Check, ...]
    has_key: bool = True  # whether it was checked with its key file, or as a copy without it

    @property
    def holds(self) -> bool:
        """Whether no check failed; checks that did not apply do not count."""
        return all(check.holds is not False for check in self.checks)

    @property
    def verdict(self) -> Verdict:
        """REFUTED if a check fails, UNCHECKED if one cannot be made on this machine, VERIFIED otherwise."""
        if not self.holds:
            return Verdict.REFUTED
        return Verdict.UNCHECKED if any(check.is_unchecked for check in self.checks) else Verdict.VERIFIED

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        if self.verdict is Verdict.REFUTED:
            return "The book does not hold."
        if self.verdict is Verdict.UNCHECKED:
            names = ", ".join(check.name for check in self.checks if check.is_unchecked)
            return f"Cannot be checked here: {names}. All other checks hold."
        return "The book holds." if self.has_key else "The book holds, as far as can be checked without its key file."

    @property
    def reasons(self) -> tuple[str, ...]:
        """The faults, one sentence each; empty if there are none."""
        return tuple(f"{check.name}: {check.found}" for check in self.checks if check.holds is False)

    def __bool__(self) -> bool:
        return self.holds

    def summary(self) -> str:
        """Return one line per check."""
        words = {True: "holds", False: "FAILS", None: "not checked"}
        lines = [f"{words[check.holds]:<12} {check.name:<12} {check.found}" for check in self.checks]
        return as_lines([self.headline, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        checks = [
            {"name": check.name, "holds": check.holds, "is_unchecked": check.is_unchecked, "found": check.found}
            for check in self.checks
        ]
        return {
            "verdict": self.verdict.name.lower(),
            "holds": self.holds,
            "has_key": self.has_key,
            "reasons": list(self.reasons),
            "checks": checks,
        }


@dataclass(frozen=True)
class Erasure:
    """What an erasure removes and what it cannot; ``entry`` is None while it is a rehearsal.

    ``beyond`` is what no erasure reaches. ``results_kept`` counts the earlier calibrations that were fitted to the
    quotes and stay: if there is one, the quotes can be computed back from the book itself.
    """

    entry: int | None
    count: int
    held: int  # of these, how many are part of the calibration, which is refitted without them
    gone: tuple[str, ...]
    stays: tuple[str, ...]
    beyond: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    results_kept: int = 0
    search: Search | None = None  # of the files afterwards; None while it is a rehearsal
    change: Change | None = None

    def summary(self) -> str:
        """Return what is removed, what stays and what is out of reach, one fact per line."""
        head = f"{many(self.count, 'quote')} {'erased' if self.entry is not None else 'would be erased'}"
        facts = {"gone": self.gone, "stays": self.stays, "beyond": self.beyond, "warning": self.warnings}
        lines = [head, *(f"{name:<9}{text}" for name, texts in facts.items() for text in texts)]
        if self.search is not None:
            lines += [f"{'found':<9}{line}" for line in search_lines(self.search)]
        return as_lines(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "entry": self.entry,
            "count": self.count,
            "forgotten": self.held,
            "gone": list(self.gone),
            "stays": list(self.stays),
            "beyond": list(self.beyond),
            "warnings": list(self.warnings),
            "results_kept": self.results_kept,
            "residue": self.residue,
            "search": None if self.search is None else self.search.to_dict(),
            "change": None if self.change is None else self.change.to_dict(),
        }

    @property
    def residue(self) -> int | None:
        """The number of traces found afterwards; None while it is a rehearsal."""
        return None if self.search is None else len(self.search.traces)


def search_lines(search: Search) -> list[str]:
    """Return the result of a search, one fact per line: first how much was searched, then every trace."""
    size = f"{search.searched / 1e6:,.1f} MB"
    wanted = many(search.needles, "number and name", "numbers and names")
    lines = [f"{many(len(search.traces), 'trace')} in {size}; {wanted} searched for"]
    if not search.needles:
        lines.append("Only bytes and commitments were checked: the book has no copy of what was erased to search for.")
    lines += [f"{many(search.unaccounted, 'byte')} that belong to no row of the book"] if search.unaccounted else []
    lines += [str(trace) for trace in search.traces[:SHOWN_TRACES]]
    more = len(search.traces) - SHOWN_TRACES
    return [*lines, *([f"and {more:,} more"] if more > 0 else [])]


@dataclass(frozen=True)
class Rotation:
    """A change of the signing key: the entry from which the new one signs, and both public keys."""

    entry: int
    old: str
    new: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Comparison:
    """Two books side by side, each as it was calibrated last; ``is_current`` if that is of the quotes it holds.

    ``counts`` are of the calibrated quotes, ``held`` of those held now.
    """

    is_same_state: bool
    is_same_parameters: bool
    is_current: tuple[bool, bool]
    counts: tuple[int, int]
    held: tuple[int, int]
    parameters: dict[str, tuple[float, float]]
    apart: dict[str, float | None]  # in standard errors of the second

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "same_state": self.is_same_state,
            "same_parameters": self.is_same_parameters,
            "current": list(self.is_current),
            "counts": list(self.counts),
            "held": list(self.held),
            "parameters": {name: list(pair) for name, pair in self.parameters.items()},
            "apart": self.apart,
        }
