"""Opening what quotes come in: a file or a frame becomes one table, its columns canonical where its layout is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from strikeout.errors import ColumnError, UnreadableFileError, UsageError
from strikeout.quotes.applying import apply_profile, filled_columns, sources, stacked
from strikeout.quotes.columns import ALIASES, NUMBERS, UNITS, Column, Layout, understand
from strikeout.quotes.matching import is_header, match, missing, told_nearest
from strikeout.quotes.preambles import said_above
from strikeout.quotes.profile import Profile, plain, profile_of
from strikeout.quotes.text_files import ENDINGS, Block, Dress, Progress, blocks_of, dress_of, western_dress_of

CANONICAL = "strikeout"  # the name of the layout with our own columns, which is no vendor's
NAMED = ("root", "expiry", "strike", "right")  # what a contract's name says, in the order it is told
_NUMBER_NAMES = {name for role in NUMBERS for name in (role, *ALIASES[role])}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as they will be read. A CSV's columns are text, but for the numbers of a large one; a frame's keep types.

    ``rows`` numbers each row as a person finds it: the line of a CSV (its header is line 1), the position (from 0) in
    Parquet or a frame. ``numbering`` says which: "line" or "row". ``overflow`` is the first field beyond the header.
    ``profile`` is the layout, None for our own columns; its columns are then canonical and ``columns`` says from where.
    ``found`` gives rows of this table as they were found, by position.
    """

    name: str
    frame: pl.DataFrame
    rows: pl.Series
    numbering: str
    overflow: pl.Series | None = None
    profile: Profile | None = None
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()
    preamble: tuple[str, ...] = ()
    found: Callable[[pl.Series], pl.DataFrame] | None = None

    def as_found(self, at: pl.Series) -> pl.DataFrame:
        """The rows at these positions of this table, with the columns and cells of the source."""
        return self.frame[at] if self.found is None else self.found(at)

    def called(self, role: str) -> str:
        """What the source calls this canonical column."""
        names = dict.fromkeys(column.name for column in self.columns if column.role == role)
        return " or ".join(names) or role


@dataclass(frozen=True, eq=False)
class _Sheet:
    """A source before its layout is known: its header, and its rows some at a time."""

    name: str
    header: tuple[str, ...]
    numbering: str
    blocks: Callable[[Progress | None], Iterator[Block]]
    notes: tuple[str, ...] = ()
    preamble: tuple[str, ...] = ()


def open_table(
    source: Any,
    *,
    profile: str | PathLike[str] | None = None,
    given: frozenset[str] = frozenset(),
    progress: Progress | None = None,
) -> Table:
    """The table in a path (.csv, .csv.gz, .parquet) or a pandas, Polars or Arrow frame.

    Args:
        profile: the layout, by its name or as the path of a TOML file; by default the one whose columns are there.
        given: canonical columns the caller will add, which nothing in the profile may claim.
        progress: called with the share of the file that is read, now and then.

    Raises:
        UnreadableFileError: no such file, an unknown ending, an empty or damaged file, no rows.
        ColumnError: two columns share a name, or those of the profile asked for are not there.
        UsageError: the source is neither a path nor a frame, or there is no such profile.
    """
    if isinstance(source, Table):
        return source
    forced = None if profile is None or str(profile) == CANONICAL else profile_of(profile)
    looks_right = is_header if forced is None else lambda cells: not missing(forced, set(map(plain, cells)))
    if not isinstance(source, (str, PathLike)):
        return _table(_frame_sheet(source), profile, forced, given)
    path = Path(source)
    kind = _kind(path)
    if kind == "parquet":
        return _table(_parquet_sheet(path), profile, forced, given)
    dress = dress_of(path, looks_right)
    try:
        return _table(_text_sheet(path, dress), profile, forced, given, progress)
    except UnicodeDecodeError:  # its first megabyte was UTF-8, the rest is not
        return _table(_text_sheet(path, western_dress_of(path, looks_right)), profile, forced, given, progress)


def understood(
    table: Table, constants: Mapping[str, float | str] | None = None, *, forwards: str = "auto", is_asked: bool = False
) -> tuple[pl.DataFrame, Layout]:
    """How a table will be read; see ``columns.understand``. ``is_asked``: the layout was asked for by name.

    Raises:
        ColumnError: something is missing; where the layout was looked for and not found, with the nearest profiles.
        UsageError: a constant has no canonical name.
    """
    try:
        return understand(table.frame, constants, forwards=forwards, vendor=table.columns)
    except ColumnError as error:
        if table.profile is not None or is_asked or "missing" not in error.facts:
            raise
        raise ColumnError(f"{error.sentence}{told_nearest(table.frame.columns)}", **error.facts) from error


def _kind(path: Path) -> str:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise UnreadableFileError(
            f"{path}: {what}. Give the path of a .csv, .csv.gz or .parquet file.", source=str(path)
        )
    ending = path.name.lower().removesuffix(".gz")
    if path.name.lower().endswith(".parquet"):
        return "parquet"
    if ending.endswith(ENDINGS):
        return "text"
    raise UnreadableFileError(
        f"{path.name}: the ending says neither .csv, .csv.gz nor .parquet. Rename it, or give a DataFrame.",
        source=path.name,
    )


def _table(
    sheet: _Sheet,
    asked: str | PathLike[str] | None,
    forced: Profile | None,
    given: frozenset[str],
    progress: Progress | None = None,
) -> Table:
    profile = forced if asked is not None else match(sheet.header)
    if profile is None:
        return _own_columns(sheet, progress)
    absent = missing(profile, set(map(plain, sheet.header)))
    if absent:
        raise ColumnError(
            f"{sheet.name}: the profile {profile.name} needs {', '.join(absent)}, which the header does not have. "
            "Choose another profile, or none.",
            missing=absent,
            columns=list(sheet.header),
        )
    above, notes = said_above(profile, sheet.preamble)
    fixed = {**profile.constants, **above}
    frames, ats, rows, overflows = [], [], [], []
    filled: frozenset[str] = frozenset()
    first: pl.DataFrame | None = None
    count = 0
    for block in sheet.blocks(progress):
        if first is None:
            filled, first = filled_columns(block.frame), block.frame
        applied = apply_profile(profile, block.frame, filled=filled, fixed=fixed, given=given)
        frames.append(applied.frame)
        ats.append(applied.at + count)
        rows.append(block.rows[applied.at])
        overflows.append(block.overflow[applied.at])
        count += block.frame.height
    if first is None or not count:
        raise _no_rows(sheet)
    at = pl.concat(ats)
    columns = _understood(profile, sheet.header, filled, above, given)
    return Table(
        name=sheet.name, frame=stacked(frames), rows=pl.concat(rows), numbering=sheet.numbering,
        overflow=pl.concat(overflows), profile=profile, columns=columns, notes=(*sheet.notes, *notes),
        preamble=sheet.preamble, found=_finder(sheet, first if len(frames) == 1 else None, at),
    )  # fmt: skip


def _own_columns(sheet: _Sheet, progress: Progress | None) -> Table:
    """The table of a file with our own column names: as found, save that a large one keeps its numbers as numbers."""
    repeated = sorted({name.rpartition(" (")[0] for name in sheet.header if name.endswith(")") and " (" in name})
    twice = [name for name in repeated if name in sheet.header and f"{name} (2)" in sheet.header]
    if twice:
        raise ColumnError(
            f"{sheet.name}: the header names {twice[0]!r} more than once. Rename or drop one.", columns=twice
        )
    blocks: list[Block] = []
    for block in sheet.blocks(progress):
        if len(blocks) == 1:
            blocks[0] = _compacted(blocks[0])
        blocks.append(_compacted(block) if blocks else block)
    if not blocks or not sum(block.frame.height for block in blocks):
        raise _no_rows(sheet)
    rows = pl.concat([block.rows for block in blocks])
    return Table(
        name=sheet.name, frame=stacked([block.frame for block in blocks]), rows=rows, numbering=sheet.numbering,
        overflow=pl.concat([block.overflow for block in blocks]), notes=sheet.notes, preamble=sheet.preamble,
        found=_finder(sheet, None, pl.int_range(0, rows.len(), eager=True)) if len(blocks) > 1 else None,
    )  # fmt: skip


def _compacted(block: Block) -> Block:
    """Numbers as numbers, a third of their size as text; a column in which one cell is no number stays text."""
    columns = []
    for column in block.frame.get_columns():
        if plain(column.name) in _NUMBER_NAMES:
            number = column.str.strip_chars().cast(pl.Float64, strict=False)
            column = number if number.null_count() == column.null_count() else column
        columns.append(column)
    return Block(pl.DataFrame(columns), block.rows, block.overflow)


def _no_rows(sheet: _Sheet) -> UnreadableFileError:
    return UnreadableFileError(
        f"{sheet.name}: {len(sheet.header)} columns and no rows. Check that the export finished.", source=sheet.name
    )


def _finder(sheet: _Sheet, whole: pl.DataFrame | None, origin: pl.Series) -> Callable[[pl.Series], pl.DataFrame]:
    """Finds rows as they were; those of a file too large to keep are read from it again."""

    def found(at: pl.Series) -> pl.DataFrame:
        wanted = origin[at]
        if whole is not None:
            return whole[wanted]
        picked, begin = [], 0
        sought = wanted.unique().sort()
        for block in sheet.blocks(None):
            end = begin + block.frame.height
            here = sought.filter((sought >= begin) & (sought < end))
            picked.append(block.frame[here - begin])
            begin = end
        return pl.concat(picked)[sought.search_sorted(wanted)]

    return found


def _understood(
    profile: Profile, header: tuple[str, ...], filled: frozenset[str], above: Mapping[str, Any], given: frozenset[str]
) -> tuple[Column, ...]:
    """What each of the vendor's columns was taken for, and what the profile and the lines above the header add."""
    meant: dict[str, list[tuple[str, str]]] = {}
    for side, roles in sources(profile, filled).items():
        origins = {**profile.columns, **(profile.puts if side == "P" else profile.calls)}
        for role, name in roles.items():
            if role == "symbol":
                said = [part for part in NAMED if part not in roles and not (side and part == "right")]
                meant.setdefault(name, []).extend((part, "part of the name") for part in said)
            else:
                meant.setdefault(name, []).append((role, origins[role].told))
    columns = []
    for name in header:
        for role, told in dict.fromkeys(meant.get(name, ())):
            columns.append(Column(name, role, f"{UNITS[role]}; {told}" if told else UNITS[role], is_used=False))
        if name not in meant:
            kept = plain(name) in map(plain, profile.labels)
            words = "label" if kept else "left out" if name in filled else "no value in any row: left out"
            columns.append(Column(name, None, words, is_used=False))
    added = {role: f"{value}, says the profile" for role, value in profile.constants.items()}
    added |= {role: f"{value}, says a line above the header" for role, value in above.items()}
    added |= dict.fromkeys(profile.by_class, "by the class of the contract")
    taken = {column.role for column in columns} | given
    columns += [
        Column("-", role, f"{UNITS[role]}; {words}", is_used=False)
        for role, words in added.items()
        if role not in taken
    ]
    return tuple(columns)


def _text_sheet(path: Path, dress: Dress) -> _Sheet:
    def blocks(progress: Progress | None) -> Iterator[Block]:
        return blocks_of(path, dress, progress=progress)

    return _Sheet(path.name, dress.header, "line", blocks, dress.notes, dress.preamble)


def _parquet_sheet(path: Path) -> _Sheet:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFileError(
            f"{path.name}: not a readable Parquet file ({reason}). Fetch it again.", source=path.name
        ) from error
    return _whole(path.name, frame)


def _frame_sheet(source: Any) -> _Sheet:
    import narwhals as nw

    try:
        frame = nw.from_native(source)
        whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except TypeError as error:
        raise UsageError(
            f"read_quotes takes a path or a pandas, Polars or Arrow frame; got {type(source).__name__}."
        ) from error
    repeated = sorted({str(column) for column in whole.columns if list(whole.columns).count(column) > 1})
    if repeated:
        raise ColumnError(f"The frame has {repeated[0]!r} more than once. Rename or drop one.", columns=repeated)
    try:
        native = whole.to_polars()
    except ModuleNotFoundError as error:
        raise UsageError(f"Reading a {type(source).__name__} needs {error.name}: install strikeout[pandas].") from error
    return _whole(f"{type(source).__module__.split('.')[0]} frame", native)


def _whole(name: str, frame: pl.DataFrame) -> _Sheet:
    rows = pl.int_range(0, frame.height, eager=True).alias("row")
    nothing = pl.Series("overflow", [None], dtype=pl.String).new_from_index(0, frame.height)
    return _Sheet(name, tuple(frame.columns), "row", lambda _: iter([Block(frame, rows, nothing)]))
