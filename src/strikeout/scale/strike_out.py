"""Quotes struck out of every calibration of a fleet: one certificate per book, one table for all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from math import ceil, nan
from pathlib import Path
from typing import Any

import numpy as np

from strikeout.calibration.calibrate import calibrate
from strikeout.errors import NothingMeantError, StrikeoutError, UsageError
from strikeout.forgetting.forget import forget
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.selection import select
from strikeout.quotes.writing import replace_file
from strikeout.scale.engines import Engine, Here, engine_named
from strikeout.scale.fleet import BATCHES_PER_WORKER, Progress, Work, groups
from strikeout.scale.lake import Lake
from strikeout.tables import Cell, Table, frame_from, number
from strikeout.text import many


def certificate_name(group: Sequence[str]) -> str:
    """Return the name of a book's certificate: a digest, because labels may have characters that files may not."""
    return f"{sha256(repr(tuple(group)).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.json"


@dataclass(frozen=True)
class StrikeOut:
    """Quotes struck out of one book, or the error that replaces the result.

    Attributes:
        group: the value of each label, in the order of ``FleetStrikeOut.by``.
        count, removed: the quotes of the book before, and those struck out.
        before, after: parameters by name; empty without a result.
        moved: in standard errors after.
        digest: of the exact state of what is retained.
        certificate: the canonical bytes of the certificate; ``certificate_file`` is its name if it was written.
        code, message: of the error; otherwise empty.
    """

    group: tuple[str, ...]
    count: int
    removed: int
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)
    moved: Mapping[str, float] = field(default_factory=dict)
    digest: str = ""
    certificate: bytes = field(default=b"", repr=False)
    code: str = ""
    message: str = ""
    partition: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the quotes are out and a certificate states it."""
        return not self.code

    @property
    def certificate_file(self) -> str:
        """The name of the certificate's file."""
        return certificate_name(self.group)


@dataclass(frozen=True, repr=False)
class FleetStrikeOut:
    """One row per book that had a matching quote, sorted by book; see ``forget_many``."""

    by: tuple[str, ...]
    where: str
    books: int  # of the whole fleet
    rows: tuple[StrikeOut, ...]
    folder: str | None = None  # of the certificates

    @property
    def removed(self) -> int:
        """The quotes struck out of all books."""
        return sum(row.removed for row in self.rows if row.is_done)

    @property
    def is_done(self) -> bool:
        """Whether every book with a matching quote has a result."""
        return all(row.is_done for row in self.rows)

    def digest(self) -> str:
        """Return 64 hexadecimal digits that name every row."""
        lines = [
            repr((
                row.group, row.count, row.removed, row.digest, row.code,
                [(name, value.hex()) for name, value in row.after.items()],
            ))
            for row in self.rows
        ]  # fmt: skip
        return sha256("\n".join([repr(self.by), *lines]).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def _names(self) -> list[str]:
        return list({name: None for row in self.rows for name in row.after})

    def to_table(self) -> Table:
        """Return books, counts, parameters after with their moves, and certificates."""
        pairs = [head for name in self._names for head in (name, "moved (SE after)")]
        heads = (*self.by, "quotes", "struck out", *pairs, "result")
        size = len(self.by)
        rows: list[list[Cell]] = [
            [
                *row.group,
                number(row.count, ",d"),
                number(row.removed, ",d"),
                *(
                    cell
                    for name in self._names
                    for cell in (number(row.after.get(name)), number(row.moved.get(name), "+.3g"))
                ),
                row.message or (row.certificate_file if self.folder else "done"),
            ]
            for row in self.rows
        ]
        return Table(heads, rows, numbers=range(size, len(heads) - 1), whole=range(size), keys=size)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "by": list(self.by),
            "where": self.where,
            "books": self.books,
            "touched": len(self.rows),
            "removed": self.removed,
            "digest": self.digest(),
            "rows": [
                {
                    "group": dict(zip(self.by, row.group, strict=True)),
                    "count": row.count,
                    "removed": row.removed,
                    **(
                        {"before": dict(row.before), "after": dict(row.after), "moved": _finite(row.moved)}
                        if row.is_done
                        else {"error": {"code": row.code, "message": row.message}}
                    ),
                    "digest": row.digest,
                    "certificate": row.certificate_file if self.folder and row.is_done else None,
                }
                for row in self.rows
            ],
        }

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per book: labels, counts, parameters before and after, moves, digest and certificate.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library, or one that is not installed.
        """
        columns: dict[str, Any] = {
            name: np.array([row.group[place] for row in self.rows], dtype=object) for place, name in enumerate(self.by)
        }
        columns["count"] = np.array([row.count for row in self.rows], np.int64)
        columns["removed"] = np.array([row.removed for row in self.rows], np.int64)
        for name in self._names:
            for which in ("before", "after", "moved"):
                columns[f"{which}_{name}"] = np.array([getattr(row, which).get(name, nan) for row in self.rows])
        for name in ("digest", "code", "message", "partition"):
            columns[name] = np.array([getattr(row, name) for row in self.rows], dtype=object)
        columns["certificate"] = np.array([row.certificate_file for row in self.rows], dtype=object)
        return frame_from(columns, library)

    def summary(self) -> str:
        """Return the counts as plain text."""
        done = sum(row.is_done for row in self.rows)
        lines = [f"{many(self.removed, 'quote')} struck out of {done:,} of {many(self.books, 'book')}"]
        if done < len(self.rows):
            lines.append(f"refused in {many(len(self.rows) - done, 'book')}: their rows have the reason")
        if self.folder:
            lines.append(f"{many(done, 'certificate')} in {self.folder}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<FleetStrikeOut of {many(self.removed, 'quote')} from {many(len(self.rows), 'book')}>"


def forget_many(
    quotes: Quotes | Lake,
    model: Model,
    *,
    where: str,
    by: str | Sequence[str] | None = None,
    certificates: str | os.PathLike[str] | None = None,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> FleetStrikeOut:
    """Strike the quotes that match a condition out of every calibration of a fleet. No file of quotes is changed.

    Each result has the bits of ``forget`` on the book alone, and so those of a calibration that never saw the quotes. A
    book that cannot be calibrated without them is a row with its error.

    Args:
        quotes: in memory, or a lake.
        where: a condition in SQL, as for ``forget``.
        by: the labels that make a book, as for ``calibrate_many``.
        certificates: a folder for one certificate per book.
        engine: where books are calibrated, as for ``calibrate_many``.
        progress: called with a partition, the number of finished ones and of all.
        settings: as for ``calibrate``.

    Raises:
        UsageError: the condition is malformed, a label or setting is unknown, or a partition cannot be read.
        NothingMeantError: no quote matches.
    """
    default = quotes.each if isinstance(quotes, Lake) else ("underlying",)
    names = default if by is None else (by,) if isinstance(by, str) else tuple(by)
    work = Work(model, names, tuple(sorted(settings.items())))
    if isinstance(quotes, Lake):
        found = list(_of_lake(quotes, work, where, engine_named(engine), progress))
    else:
        found = [_strike_out(work, where, quotes, "")]
    rows = sorted((row for _, own in found for row in own), key=lambda row: (row.group, row.partition))
    if not rows:
        raise NothingMeantError("No quote of the fleet matches the condition; nothing was struck out.", where=where)
    folder = None if certificates is None else _write_certificates(Path(certificates), rows)
    return FleetStrikeOut(names, where, sum(count for count, _ in found), tuple(rows), folder)


def _of_lake(
    lake: Lake, work: Work, where: str, engine: Engine, progress: Progress | None
) -> Iterator[tuple[int, list[StrikeOut]]]:
    names = lake.partitions
    size = max(1, ceil(len(names) / (BATCHES_PER_WORKER * max(engine.workers, 1))))
    batches = [tuple(names[place : place + size]) for place in range(0, len(names), size)]
    task = partial(_strike_out_of_partitions, lake, work, where)
    seen: set[str] = set()
    for answer in (Here() if len(batches) < 2 else engine).answers(task, batches):
        for partition, count, rows in answer:
            if partition not in seen:  # an engine may run a batch twice
                seen.add(partition)
                yield count, rows
        if progress is not None and answer:
            progress(answer[-1][0], len(seen), len(names))


def _strike_out_of_partitions(
    lake: Lake, work: Work, where: str, batch: tuple[str, ...]
) -> list[tuple[str, int, list[StrikeOut]]]:
    return [(name, *_strike_out(work, where, lake.read(name).quotes, name)) for name in batch]


def _strike_out(work: Work, where: str, quotes: Quotes, partition: str) -> tuple[int, list[StrikeOut]]:
    """Return how many books the quotes make, and the rows of those with a matching quote."""
    gone = select(quotes, where)
    every = list(groups(quotes, work.by))
    rows = []
    for group, own in every:
        ids = own.ids[np.isin(own.ids, gone)]
        if len(ids):
            rows.append(_row(work, group, own, ids, partition))
    return len(every), rows


def _row(work: Work, group: tuple[str, ...], quotes: Quotes, ids: Any, partition: str) -> StrikeOut:
    try:
        done = forget(calibrate(quotes, work.model, **dict(work.settings)), ids=ids)
        certificate = done.certificate.to_bytes()
    except UsageError:
        raise
    except StrikeoutError as error:
        return StrikeOut(group, len(quotes), len(ids), code=error.code, message=str(error), partition=partition)
    return StrikeOut(
        group,
        len(quotes),
        len(ids),
        dict(done.before.parameters),
        dict(done.parameters),
        dict(done.moved),
        done.calibration.state.digest(),
        certificate,
        partition=partition,
    )


def _write_certificates(folder: Path, rows: Sequence[StrikeOut]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        if row.is_done:
            _write(folder / row.certificate_file, row.certificate)
    return str(folder)


def _write(path: Path, content: bytes) -> None:
    replace_file(path, lambda part: part.write_bytes(content))


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if value == value else None for name, value in values.items()}
