"""One calibration for each underlying, day or other label, as one table; of quotes in memory or of a lake."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from math import ceil, nan
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.fit_errors import overall_vol_points
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError, StrikeoutError, UsageError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.writing import replace_file
from strikeout.scale.engines import Engine, Here, engine_named
from strikeout.scale.lake import Lake
from strikeout.scale.partition import canary
from strikeout.statistics.groups import groups_of
from strikeout.tables import Cell, Table, frame_from, number
from strikeout.text import many

Progress = Callable[[str, int, int], None]

BATCHES_PER_WORKER = 8
SMALLEST_BATCH = 4  # calibrations that are sent to a worker together


@dataclass(frozen=True)
class Fit:
    """The calibration of one group of quotes, or the error that replaces it.

    Attributes:
        group: the value of each label, in the order of ``Fleet.by``.
        count: the quotes of the group.
        parameters, standard_errors: by name; empty without a calibration.
        rmse, vol_points: the fit errors in the residual's unit and in volatility points; not-a-number if unknown.
        ended: the name of the termination, or the code of the error.
        digest: of the exact state of the calibration; otherwise empty.
        message: the sentence of the error; otherwise empty.
        seconds: how long the calibration took.
        partition: the file of a lake.
        calibration, error: the whole result, for quotes in memory that were calibrated in this process.
    """

    group: tuple[str, ...]
    count: int
    ended: str
    converged: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict)
    standard_errors: Mapping[str, float] = field(default_factory=dict)
    rmse: float = nan
    vol_points: float = nan
    digest: str = ""
    message: str = ""
    seconds: float = field(default=0.0, compare=False)
    partition: str = ""
    calibration: Calibration | None = field(default=None, compare=False, repr=False)
    error: StrikeoutError | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(group: tuple[str, ...], quotes: Quotes, model: Model, settings: Mapping[str, Any]) -> Fit:
        """Calibrate one group; a refusal is a row with its code.

        Raises:
            UsageError: a setting that ``calibrate`` does not take.
        """
        begin = perf_counter()
        try:
            found = calibrate(quotes, model, **settings)
        except RefusedError as error:
            return Fit.refused(group, len(quotes), error)
        points = overall_vol_points(found)
        return Fit(
            group,
            len(quotes),
            found.termination.name.lower(),
            found.converged,
            dict(found.parameters),
            dict(found.standard_errors),
            found.rmse,
            nan if points is None else points,
            found.state.digest(),
            seconds=perf_counter() - begin,
            calibration=found,
        )

    @staticmethod
    def refused(group: tuple[str, ...], count: int, error: StrikeoutError) -> Fit:
        """Return the row of a group that has no calibration."""
        return Fit(group, count, error.code, message=str(error), error=error)

    @property
    def status(self) -> str:
        """How the search ended in words, or the sentence of the error."""
        return self.message or Termination[self.ended.upper()].status

    def alone(self) -> Fit:
        """Return the row without the calibration and its quotes, for another process."""
        return replace(self, calibration=None, error=None)


@dataclass(frozen=True, repr=False)
class Fleet:
    """One row per group, sorted by group; see ``calibrate_many``.

    Attributes:
        reused: rows that were in the table of an earlier run.
    """

    by: tuple[str, ...]
    fits: tuple[Fit, ...]
    reused: int = 0

    @property
    def converged(self) -> bool:
        """Whether every calibration converged."""
        return all(fit.converged for fit in self.fits)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which they first occur."""
        return tuple({name: None for fit in self.fits for name in fit.parameters})

    def digest(self) -> str:
        """Return 64 hexadecimal digits that name every row but its seconds."""
        lines = [
            repr((
                fit.group, fit.count, fit.ended, fit.digest, fit.message, [fit.rmse.hex(), fit.vol_points.hex()],
                [(name, value.hex(), fit.standard_errors[name].hex()) for name, value in fit.parameters.items()],
            ))
            for fit in self.fits
        ]  # fmt: skip
        return sha256("\n".join([repr(self.by), *lines]).encode("utf-8", "surrogatepass")).hexdigest()

    def to_table(self) -> Table:
        """Return groups, parameters with standard errors, fit errors in volatility points and how each search ended."""
        pairs = [head for name in self.parameters for head in (name, f"SE {name}")]
        heads = (*self.by, "quotes", *pairs, "vol points", "RMSE", "status")
        named = len(self.by)
        rows = [self._cells(fit) for fit in self.fits]
        return Table(heads, rows, numbers=range(named, len(heads) - 1), whole=range(named), keys=named)

    def _cells(self, fit: Fit) -> list[Cell]:
        return [
            *fit.group,
            number(fit.count, ",d"),
            *(
                cell
                for name in self.parameters
                for cell in (number(fit.parameters.get(name)), number(fit.standard_errors.get(name), ".2g"))
            ),
            number(_known(fit.vol_points), ".3g"),
            number(_known(fit.rmse), ".4g"),
            fit.status,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: one object per group, with the calibration's own or the error's."""
        rows = []
        for fit in self.fits:
            row: dict[str, Any] = {"group": dict(zip(self.by, fit.group, strict=True)), "count": fit.count}
            if fit.calibration is not None:
                row |= fit.calibration.to_dict()
            elif not fit.message:
                row |= {"parameters": dict(fit.parameters), "rmse": _known(fit.rmse), "converged": fit.converged}
                row |= {"standard_errors": {n: _known(x) for n, x in fit.standard_errors.items()}, "ended": fit.ended}
            if fit.message:
                row |= {"converged": False, "error": {"code": fit.ended, "message": fit.message}}
            else:
                row["digest"] = fit.digest
            rows.append(row)
        return {"by": list(self.by), "converged": self.converged, "fits": rows}

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per group: labels, count, parameters, standard errors (``error_...``), fit errors, digest.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library, or one that is not installed.
        """
        fits = self.fits
        columns: dict[str, Any] = {
            name: np.array([fit.group[place] for fit in fits], dtype=object) for place, name in enumerate(self.by)
        }
        columns["count"] = np.array([fit.count for fit in fits])
        for name in self.parameters:
            columns[name] = np.array([fit.parameters.get(name, nan) for fit in fits])
            columns[f"error_{name}"] = np.array([fit.standard_errors.get(name, nan) for fit in fits])
        columns["rmse"] = np.array([fit.rmse for fit in fits])
        columns["vol_points"] = np.array([fit.vol_points for fit in fits])
        columns["converged"] = np.array([fit.converged for fit in fits])
        for name in ("ended", "digest", "message", "partition"):
            columns[name] = np.array([getattr(fit, name) for fit in fits], dtype=object)
        columns["seconds"] = np.array([fit.seconds for fit in fits])
        return frame_from(columns, library)

    def summary(self) -> str:
        """Return the table as plain text."""
        return self.to_table().to_text()

    def __repr__(self) -> str:
        done = sum(fit.converged for fit in self.fits)
        return f"<Fleet of {many(len(self.fits), 'calibration')} by {', '.join(self.by)}; {done:,} converged>"


def calibrate_many(
    quotes: Quotes | Lake,
    model: Model,
    *,
    by: str | Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Fleet:
    """Calibrate a model to each group of quotes separately.

    Each calibration has the bits of ``calibrate`` of its quotes alone, whatever the engine. A group that is refused,
    and a partition that cannot be read, is a row with its error.

    Args:
        quotes: in memory, or a lake.
        by: a label or several that make a group, such as "underlying" or ["underlying", "date"]; by default the lake's
            ``each``, or "underlying" for quotes in memory.
        out: for a lake: a Parquet file for the table. Rows that it has from an earlier run, for the same content and
            settings, are not computed again; an interrupted run continues.
        engine: where calibrations run, as for ``engine_named``; by default processes for a lake and this process for
            quotes in memory.
        progress: called with a group or partition, the number of finished ones and of all.
        settings: as for ``calibrate``; ``pool=True`` if a group may have several underlyings.

    Raises:
        UsageError: a label that the quotes do not have, a setting that ``calibrate`` does not take, or ``out`` for
            quotes in memory.
        UnreadableFileError: the lake has no files.
    """
    default = quotes.each if isinstance(quotes, Lake) else ("underlying",)
    names = default if by is None else (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise UsageError('by: no label was given. Name one, such as by="underlying".')
    work = Work(model, names, tuple(sorted(settings.items())))
    if isinstance(quotes, Lake):
        return _of_lake(quotes, work, engine_named(engine), None if out is None else Path(out), progress)
    if out is not None:
        raise UsageError("out: quotes in memory have their table in memory. Write calibrate_many(...).to_frame().")
    return Fleet(names, tuple(_of_quotes(quotes, work, Here() if engine is None else engine_named(engine), progress)))


@dataclass(frozen=True)
class Work:
    """What is done with every group."""

    model: Model
    by: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...]

    def fits(self, quotes: Quotes) -> Iterator[Fit]:
        """Yield the calibration of each group."""
        for group, own in groups(quotes, self.by):
            yield Fit.of(group, own, self.model, dict(self.settings))

    def key(self, lake: Lake) -> str:
        """Return a digest of everything that a row depends on besides its partition."""
        lines = (self.model.name, repr(self.by), repr(self.settings), lake.settings(), canary())
        return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def groups(quotes: Quotes, by: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Quotes]]:
    """Yield the values of the labels that occur together, in order, and the quotes that have them.

    Raises:
        UsageError: a label that the quotes do not have.
    """
    found = groups_of(quotes, list(by))
    keys = [tuple(str(found.keys[name][number]) for name in by) for number in range(found.count)]
    order = np.argsort(found.number, kind="stable")
    ends = np.searchsorted(found.number[order], np.arange(found.count + 1)).tolist()
    for place in sorted(range(found.count), key=keys.__getitem__):
        rows = order[ends[place] : ends[place + 1]]
        first, last = int(rows[0]), int(rows[-1])  # ascending, because the sort is stable
        yield keys[place], quotes[slice(first, last + 1) if last - first + 1 == len(rows) else rows]


def _of_quotes(quotes: Quotes, work: Work, engine: Engine, progress: Progress | None) -> list[Fit]:
    every = list(groups(quotes, work.by))
    if isinstance(engine, Here):
        fits = []
        for done, (group, own) in enumerate(every):
            if progress is not None:
                progress(" ".join(group), done, len(every))
            fits.append(Fit.of(group, own, work.model, dict(work.settings)))
        return fits
    size = max(SMALLEST_BATCH, ceil(len(every) / (BATCHES_PER_WORKER * max(engine.workers, 1))))
    batches = [tuple(every[place : place + size]) for place in range(0, len(every), size)]
    found: dict[tuple[str, ...], Fit] = {}
    for answer in engine.answers(partial(_fit_groups, work), batches):
        found |= {fit.group: fit for fit in answer}
        if progress is not None:
            progress(" ".join(answer[-1].group), len(found), len(every))
    return [found[group] for group, _ in every]


def _fit_groups(work: Work, batch: tuple[tuple[tuple[str, ...], Quotes], ...]) -> tuple[Fit, ...]:
    return tuple(Fit.of(group, own, work.model, dict(work.settings)).alone() for group, own in batch)


def _of_lake(lake: Lake, work: Work, engine: Engine, out: Path | None, progress: Progress | None) -> Fleet:
    key = work.key(lake)
    journal = Journal(out, work.by, key)
    kept = journal.rows()
    content = {partition: _content(lake, partition) for partition in lake.partitions}
    reused = [fit for name, mark in content.items() for fit in kept.get((name, mark), ())]
    waiting = [name for name, mark in content.items() if (name, mark) not in kept]
    size = max(1, ceil(len(waiting) / (BATCHES_PER_WORKER * max(engine.workers, 1))))
    batches = [tuple(waiting[place : place + size]) for place in range(0, len(waiting), size)]
    done = len(content) - len(waiting)
    fits: dict[str, list[Fit]] = {fit.partition: [] for fit in reused}
    for fit in reused:
        fits[fit.partition].append(fit)
    for answer in (Here() if len(batches) < 2 else engine).answers(partial(_fit_partitions, lake, work), batches):
        for partition, rows in answer:
            if partition not in fits:  # an engine may run a batch twice
                fits[partition] = list(rows)
                journal.add(partition, content[partition], rows)
                done += 1
        if progress is not None and answer:
            progress(answer[-1][0], done, len(content))
    fleet = Fleet(work.by, tuple(sorted((fit for own in fits.values() for fit in own), key=_order)), len(reused))
    journal.finish(fleet, content)
    return fleet


def _order(fit: Fit) -> tuple[tuple[str, ...], str]:
    return fit.group, fit.partition


def _content(lake: Lake, partition: str) -> str:
    try:
        return lake.content(partition)
    except StrikeoutError:
        return ""  # the row of the partition will have the error


def _fit_partitions(lake: Lake, work: Work, batch: tuple[str, ...]) -> tuple[tuple[str, tuple[Fit, ...]], ...]:
    return tuple((partition, tuple(_fit_partition(lake, work, partition))) for partition in batch)


def _fit_partition(lake: Lake, work: Work, partition: str) -> Iterable[Fit]:
    try:
        quotes = lake.read(partition).quotes
        return [replace(fit.alone(), partition=partition) for fit in work.fits(quotes)]
    except StrikeoutError as error:
        return [replace(Fit.refused(("",) * len(work.by), 0, error).alone(), partition=partition)]


@dataclass(frozen=True)
class Journal:
    """The table of a lake's fleet on disk: finished rows beside it while it is computed, then one Parquet file."""

    out: Path | None
    by: tuple[str, ...]
    key: str

    @property
    def folder(self) -> Path:
        assert self.out is not None
        return self.out.with_name(f"{self.out.name}.unfinished")

    def rows(self) -> dict[tuple[str, str], list[Fit]]:
        """Return the rows of an earlier run with the same settings, by partition and its content.

        Raises:
            UsageError: the file of the table is something else.
        """
        found: dict[tuple[str, str], list[Fit]] = {}
        if self.out is None:
            return found
        files = [self.out] if self.out.is_file() else []
        for file in [*files, *sorted(self.folder.glob("*.parquet"))]:
            try:
                frame = pl.read_parquet(file)
                mine = frame.filter(pl.col("key") == self.key).to_dicts()
            except (pl.exceptions.PolarsError, OSError) as error:
                raise UsageError(
                    f"{file}: is not a table of calibrations. Choose another file for out.", path=str(file)
                ) from error
            for row in mine:
                found.setdefault((row["partition"], row["content"]), []).append(self._fit(row))
        return found

    def add(self, partition: str, content: str, rows: Sequence[Fit]) -> None:
        """Write the rows of one partition beside the table."""
        if self.out is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        name = sha256(f"{partition}\n{content}\n{self.key}".encode("utf-8", "surrogatepass")).hexdigest()
        self._write(self.folder / f"{name}.parquet", rows, {partition: content})

    def finish(self, fleet: Fleet, content: Mapping[str, str]) -> None:
        """Write the table, and remove what was beside it."""
        if self.out is None:
            return
        self._write(self.out, fleet.fits, content)
        if self.folder.is_dir():
            for file in self.folder.glob("*.parquet"):
                file.unlink()
            self.folder.rmdir()

    def _write(self, path: Path, rows: Sequence[Fit], content: Mapping[str, str]) -> None:
        frame: pl.DataFrame = Fleet(self.by, tuple(rows)).to_frame()
        marks = pl.Series("content", [content[fit.partition] for fit in rows], pl.String)
        whole = frame.with_columns(marks, pl.lit(self.key).alias("key"))
        replace_file(path, whole.write_parquet)

    def _fit(self, row: dict[str, Any]) -> Fit:
        names = [name.removeprefix("error_") for name in row if name.startswith("error_")]
        known = [name for name in names if row["digest"] and row[name] == row[name]]
        return Fit(
            tuple(row[name] for name in self.by),
            row["count"],
            row["ended"],
            row["converged"],
            {name: row[name] for name in known},
            {name: row[f"error_{name}"] for name in known},
            row["rmse"],
            row["vol_points"],
            row["digest"],
            row["message"],
            row["seconds"],
            row["partition"],
        )


def _known(value: float) -> float | None:
    return value if value == value else None
