"""Status and summary of a book, its calibration in full, and the comparison of two books.

Parameters, standard errors and fit of a book over its entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np

from strikeout.book.records import QUARANTINED, Snapshot
from strikeout.book.results import Comparison, Status, moved
from strikeout.calibration.calibrate import fit
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError
from strikeout.quotes.forwards import as_given
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.selection import nothing_matches, select
from strikeout.statistics.objective import weights_of
from strikeout.tables import Cell, Table, frame_from, number
from strikeout.text import as_lines, many

Named = tuple[str, Snapshot]  # a book and the name it is shown under


def status(seen: Snapshot) -> Status:
    """Return a book at a glance."""
    store, states = seen.store, seen.linearization
    counts = store.counts()
    return Status(
        book=seen.name,
        held=counts.retained,
        set_aside=counts.struck,
        erased=sum(entry.counts.get("erased", 0) for entry in seen.ledger),
        quarantined=sum(entry.counts.get(QUARANTINED, 0) for entry in seen.ledger),
        entries=len(seen.ledger),
        root=seen.ledger.root(),
        key=seen.ledger.public or "",
        version=seen.version,
        is_current=seen.is_current,
        shards=store.shards(),
        footprints=None if states is None else len(store.shards_with("footprints")),
        reference=None if states is None else states.entry,
        noise=0.0 if states is None else states.noise,
        groups=None if states is None or states.panel is None else len(states.system.groups),
        no_footprints=seen.no_footprints,
    )


def summary(now: Status, quotes: Quotes, *, one_value: str) -> str:
    """Return a book, its quotes and its calibration in a few lines of plain text."""
    held = f"{many(now.held, 'quote')} held, {now.set_aside:,} set aside"
    lines = [f"book {now.book}: {held}, {many(now.entries, 'entry', 'entries')}"]
    version = now.version
    if version is not None:
        lines += [f"{version.model}, calibrated in entry {version.entry}: {version.termination}"]
        lines += [f"fitted from {version.fit_source.sentence}", f"errors: {version.errors_sentence}"]
        errors = version.printed_errors
        lines += [f"  {name:<18} {value:.6g} +- {errors[name]:.2g}" for name, value in version.parameters.items()]
        lines += [f"  {name:<18} {sentence}" for name, sentence in version.latent_facts(one_value=one_value)]
    return "\n".join([as_lines([*lines, now.sentence]), "", quotes.summary()])


def full_calibration(seen: Snapshot, where: str | None = None) -> Calibration:
    """Return the current calibration, computed again, with the quotes the book holds also if it is from moments.

    Args:
        where: a condition in SQL; only the quotes that match are calibrated, with the forwards they have among all.
    """
    if where is not None:
        seen.check_current()
        ids = select(seen.quotes, where)
        if not len(ids):
            raise nothing_matches(seen.quotes, where, verb="calibrate")
        return fit(as_given(seen.quotes.only(ids)), seen.spec.model, **seen.spec.settings.keywords())
    found = seen.calibration
    if found.moments is None:
        return found
    plain = replace(found.settings, panel=None)  # with its quotes beside it, it could be asked for a panel
    return _in_price(replace(found, quotes=seen.quotes, moments=None, settings=plain))


def _in_price(found: Calibration) -> Calibration:
    """Replace the weighted RMSE of a calibration from moments by the unweighted one of its quotes."""
    weight, _ = weights_of(found.quotes, found.settings.weights)
    if (weight == weight[0]).all():
        return found
    errors = found.residuals[weight > 0.0]
    return replace(found, rmse=sqrt(float(np.add.reduce(errors * errors)) / len(errors)))


def compare(first: Named, second: Named) -> Comparison:
    """Compare the latest calibrations of two books, each given with its name."""
    one, other = first[1], second[1]
    mine, theirs = one.version, other.version
    if mine is None or theirs is None:
        bare = [name for name, seen in (first, second) if seen.version is None]
        which = f"{bare[0]} is not" if len(bare) == 1 else "Neither book is"
        raise RefusedError(f"{which} calibrated yet. Calibrate first, then compare.", books=bare)
    if mine.parameters.keys() != theirs.parameters.keys():
        kinds = f"{first[0]} with {mine.described_model}, {second[0]} with {theirs.described_model}"
        raise RefusedError(f"The books are not calibrated alike ({kinds}): their parameters cannot be compared.")
    return Comparison(
        is_same_state=mine.state is not None and mine.state == theirs.state,
        is_same_parameters=dict(mine.parameters) == dict(theirs.parameters)
        and mine.plain_latent() == theirs.plain_latent(),
        is_current=(one.is_current, other.is_current),
        counts=(mine.count, theirs.count),
        held=(one.store.counts().retained, other.store.counts().retained),
        parameters={name: (value, theirs.parameters[name]) for name, value in mine.parameters.items()},
        apart=moved(mine.parameters, theirs.parameters, theirs.standard_errors),
    )


@dataclass(frozen=True)
class Stage:
    """One calibration of a book: the entry that made it, and its results.

    Results that an erasure removed are not in a history: the book no longer contains them.
    """

    entry: int
    when: str
    who: str
    what: str
    count: int
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    rmse: float
    converged: bool


@dataclass(frozen=True, repr=False)
class History:
    """The calibrations of a book, the first one first; see ``Book.history``."""

    stages: tuple[Stage, ...]

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which they first occur."""
        return tuple({name: None for stage in self.stages for name in stage.parameters})

    def to_table(self) -> Table:
        """Return one row per calibration: entry, time, verb, quotes, parameters with standard errors, RMSE."""
        pairs = [head for name in self.parameters for head in (name, f"SE {name}")]
        heads = ("entry", "when", "what", "quotes", *pairs, "RMSE", "converged")
        rows = [self._cells(stage) for stage in self.stages]
        return Table(heads, rows, numbers=(0, *range(3, 5 + len(pairs))), whole=(1, 2), keys=1)

    def _cells(self, stage: Stage) -> list[Cell]:
        cells: list[Cell] = [number(stage.entry, "d"), stage.when[:16].replace("T", " "), stage.what]
        cells.append(number(stage.count, ",d"))
        for name in self.parameters:
            cells += [number(stage.parameters.get(name)), number(stage.standard_errors.get(name), ".2g")]
        return [*cells, number(stage.rmse, ".4g"), "yes" if stage.converged else "no"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None."""
        return {
            "stages": [
                {
                    **{name: getattr(stage, name) for name in ("entry", "when", "who", "what", "count", "converged")},
                    "parameters": stage.parameters,
                    "standard_errors": {name: _finite(value) for name, value in stage.standard_errors.items()},
                    "rmse": _finite(stage.rmse),
                }
                for stage in self.stages
            ]
        }

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per calibration.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library, or one that is not installed.
        """
        columns = {
            name: np.array([getattr(stage, name) for stage in self.stages])
            for name in ("entry", "when", "who", "what", "count", "rmse", "converged")
        }
        for name in self.parameters:
            columns[name] = np.array([stage.parameters.get(name, np.nan) for stage in self.stages])
            columns[f"error_{name}"] = np.array([stage.standard_errors.get(name, np.nan) for stage in self.stages])
        return frame_from(columns, library)

    def summary(self) -> str:
        """Return the table as plain text."""
        return self.to_table().to_text()

    def __repr__(self) -> str:
        return f"<History of {many(len(self.stages), 'calibration')}>"


def history_of(snapshot: Snapshot) -> History:
    """Return the calibrations that a book contains, with the entries that made them."""
    entries = {entry.number: entry for entry in snapshot.ledger.entries}
    return History(
        tuple(
            Stage(
                entry=version.entry,
                when=entries[version.entry].at,
                who=entries[version.entry].who,
                what=entries[version.entry].what,
                count=version.count,
                parameters=dict(version.parameters),
                standard_errors=version.printed_errors,
                rmse=version.rmse,
                converged=version.converged,
            )
            for version in snapshot.versions
        )
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
