"""Open a file or a frame: choose its layout, and make tables with canonical columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from strikeout.errors import ColumnError, UnreadableFileError, UsageError
from strikeout.quotes.applying import apply_profile, preamble_values, sources
from strikeout.quotes.columns import UNITS, Column, Layout, understand
from strikeout.quotes.limits import check_columns, check_texts
from strikeout.quotes.parquet_metadata import check_parquet
from strikeout.quotes.profile import Profile, is_header, match, missing, nearest_profile, plain, profile_of
from strikeout.quotes.quotes import is_unicode
from strikeout.quotes.spreadsheets import NOT_A_WORKBOOK, check_workbook
from strikeout.quotes.text_files import (
    ENDINGS,
    Block,
    CsvDialect,
    Progress,
    blocks_of,
    dialect_of,
    western_dialect_of,
)
from strikeout.text import Advice, first_line, many

ROWS = 400_000  # of a Parquet file read at once: about what a block of text holds

EXCEL = (".xlsx", ".xlsm")

IsHeader = Callable[[list[str]], bool]


@dataclass(frozen=True, eq=False)
class Sheet:
    """A source before its layout is known: its header, and its rows some at a time.

    ``numbering`` is the kind of row number: "line" of a text file, "row" (a position from 0) elsewhere. ``blocks``
    begins at the first row each time it is called; it raises UnicodeDecodeError where the text is not in the encoding
    its beginning showed, and ``western`` is then the sheet to read instead.
    """

    name: str
    header: tuple[str, ...]
    numbering: str
    blocks: Callable[[Progress | None], Iterator[Block]]
    notes: tuple[str, ...] = ()
    preamble: tuple[str, ...] = ()
    western: Callable[[], Sheet] | None = None


def sheet_of(source: Any, is_header: IsHeader, *, size: int = 0) -> Sheet:
    """Return the sheet in a path (.csv, .csv.gz, .parquet) or a pandas, Polars or Arrow frame.

    Args:
        is_header: distinguishes the header from the lines above it.
        size: of a block: bytes of text, or rows of a Parquet file; as usual where 0.
    """
    if not isinstance(source, (str, PathLike)):
        return _frame_sheet(source)
    path = Path(source)
    kind = _kind(path)
    if kind == "excel":
        return _excel_sheet(path)
    if kind == "parquet":
        return _parquet_sheet(path, size or ROWS)
    return _text_sheet(path, dialect_of(path, is_header), is_header, size)


def _kind(path: Path) -> str:
    try:
        what = None if path.is_file() else "is a folder" if path.is_dir() else "there is no such file"
    except OSError as error:  # its name is too long, or a folder above is not ours to look into
        what = f"cannot be read ({error.strerror})"
    if what is not None:
        raise UnreadableFileError(
            f"{path}: {what}. Give the path of a .csv, .csv.gz or .parquet file.", source=str(path)
        )
    ending = path.name.lower().removesuffix(".gz")
    if path.name.lower().endswith(".parquet"):
        if not is_unicode(str(path)):
            raise UnreadableFileError(f"{path}: its name is not UTF-8 text. Rename it.", source=str(path))
        return "parquet"
    if ending.endswith(ENDINGS):
        return "text"
    if ending.endswith(EXCEL):
        return "excel"
    if ending.endswith(".book"):
        raise UnreadableFileError(
            f"{path.name}: a book, not a file of quotes. strikeout summary {path.name} shows it; strikeout export "
            f"{path.name} quotes.csv writes its quotes to a file.",
            source=path.name,
        )
    raise UnreadableFileError(
        f"{path.name}: the ending is neither .csv, .csv.gz, .parquet nor .xlsx. ",
        Advice.RENAME_FILE,
        ".",
        source=path.name,
    )


def _text_sheet(path: Path, dialect: CsvDialect, is_header: IsHeader, size: int) -> Sheet:
    def blocks(progress: Progress | None) -> Iterator[Block]:
        return blocks_of(path, dialect, progress=progress, size=size)

    def western() -> Sheet:
        return _text_sheet(path, western_dialect_of(path, is_header), is_header, size)

    return Sheet(path.name, dialect.header, "line", blocks, dialect.notes, dialect.preamble, western)


def _parquet_sheet(path: Path, size: int) -> Sheet:
    check_parquet(path)
    height = _height(path)

    def blocks(progress: Progress | None) -> Iterator[Block]:
        for begin in range(0, height, size):
            with _readable(path):
                frame = pl.scan_parquet(path).slice(begin, size).collect()
            _refuse_long_row(path.name, frame, begin)
            if progress is not None:
                progress((begin + frame.height) / height)
            yield _block(frame, begin)

    with _readable(path):
        header = tuple(pl.scan_parquet(path).collect_schema())
    return Sheet(path.name, header, "row", blocks)


def _excel_sheet(path: Path) -> Sheet:
    """Open the first sheet of a workbook; its first row is the header."""
    try:
        from fastexcel import FastExcelError
    except ModuleNotFoundError as error:
        raise UnreadableFileError(
            f"{path.name}: reading Excel files needs fastexcel. Install strikeout[excel], or save the sheet as CSV "
            "UTF-8.",
            source=path.name,
            needs="fastexcel",
        ) from error
    try:
        check_workbook(path)
        frame = pl.read_excel(path, infer_schema_length=None)
    except (*NOT_A_WORKBOOK, FastExcelError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise UnreadableFileError(
            f"{path.name}: not a readable Excel workbook ({first_line(error)}). Save the sheet as CSV UTF-8.",
            source=path.name,
        ) from error
    return _whole(path.name, frame)


def _refuse_long_row(name: str, frame: pl.DataFrame, begin: int) -> None:
    texts = [column.str.len_bytes() for column in frame.get_columns() if column.dtype == pl.String]
    if texts and frame.height:
        lengths = pl.DataFrame(texts).sum_horizontal()
        row = lengths.arg_max() or 0
        check_texts(name, lengths[row] or 0, row=begin + row)


def _height(path: Path) -> int:
    with _readable(path):
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:  # damage can make Polars panic
        raise UnreadableFileError(
            f"{path.name}: not a readable Parquet file ({first_line(error)}). Fetch it again.", source=path.name
        ) from error


def _frame_sheet(source: Any) -> Sheet:
    import narwhals as nw

    try:
        frame = nw.from_native(source)
        whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except TypeError as error:
        raise UsageError(
            f"read_quotes takes a path or a pandas, Polars or Arrow frame; got {type(source).__name__}.",
            kind=type(source).__name__,
        ) from error
    repeated = sorted({str(column) for column in whole.columns if list(whole.columns).count(column) > 1})
    if repeated:
        raise ColumnError(f"The frame has {repeated[0]!r} more than once. Rename or drop one.", columns=repeated)
    try:
        native = whole.to_polars()
    except ModuleNotFoundError as error:
        raise UsageError(f"Reading a {type(source).__name__} needs {error.name}: install strikeout[pandas].") from error
    return _whole(f"{type(source).__module__.split('.')[0]} frame", native)


def _whole(name: str, frame: pl.DataFrame) -> Sheet:
    return Sheet(name, tuple(frame.columns), "row", lambda _: iter([_block(frame, 0)]))


def _block(frame: pl.DataFrame, begin: int) -> Block:
    rows = pl.int_range(begin, begin + frame.height, eager=True).alias("row")
    nothing = pl.Series("overflow", [None], dtype=pl.String).new_from_index(0, frame.height)
    return Block(frame, rows, nothing)


CANONICAL = "strikeout"  # the name of the layout with our own columns
NAMED = ("root", "expiry", "strike", "right")  # the parts of a contract's name, in the order they are listed


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as they will be read. A CSV's columns are text, but for the numbers of a large one; a frame's keep types.

    ``rows`` numbers each row as a person finds it: the line of a CSV (its header is line 1), the position (from 0) in
    Parquet or a frame. ``numbering`` is "line" or "row". ``overflow`` is the first field beyond the header.
    ``profile`` is the layout, None for our own columns; its columns are then canonical, and ``columns`` their origin.
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
        """Return the rows at these positions of this table, with the columns and cells of the source."""
        return self.frame[at] if self.found is None else self.found(at)

    @property
    def layout(self) -> str:
        """The profile it is read by, in words."""
        return "strikeout's own column names" if self.profile is None else f"{self.profile.name}, {self.profile.title}"

    def called(self, role: str) -> str:
        """Return what the source calls this canonical column."""
        names = dict.fromkeys(column.name for column in self.columns if column.role == role)
        return " or ".join(names) or role


@dataclass(frozen=True, eq=False)
class Opened:
    """A sheet whose layout is known: a vendor's ``profile``, or our own columns if it is None.

    ``above`` are the values in the lines above the header; ``given`` are columns that the caller will add.
    """

    sheet: Sheet
    profile: Profile | None
    above: Mapping[str, float | str]
    notes: tuple[str, ...]
    given: frozenset[str]

    def reads_alike(self, filled: frozenset[str], more: frozenset[str]) -> bool:
        """Return whether a file with values in ``more`` columns is read as one with values in ``filled``."""
        return self.profile is None or sources(self.profile, filled) == sources(self.profile, more)

    def table(self, block: Block, filled: frozenset[str], seen: frozenset[str]) -> Table:
        """Return the rows of a block as a table with canonical columns.

        Args:
            filled: the columns that have values somewhere in the file, as far as they affect the layout.
            seen: the columns that have values in this block or an earlier one.
        """
        if self.profile is None:
            return self._table(block.frame, block.rows, block.overflow)
        fixed = {**self.profile.constants, **self.above}
        applied = apply_profile(self.profile, block.frame, filled=filled, fixed=fixed, given=self.given)
        columns = _understood(self.profile, self.sheet.header, seen, self.above, self.given)
        table = self._table(applied.frame, block.rows[applied.at], block.overflow[applied.at], columns=columns)
        return replace(table, found=lambda at: block.frame[applied.at[at]])

    def _table(
        self, frame: pl.DataFrame, rows: pl.Series, overflow: pl.Series, *, columns: tuple[Column, ...] = ()
    ) -> Table:
        return Table(
            name=self.sheet.name, frame=frame, rows=rows, numbering=self.sheet.numbering, overflow=overflow,
            profile=self.profile, columns=columns, notes=self.notes, preamble=self.sheet.preamble,
        )  # fmt: skip

    def no_rows(self) -> UnreadableFileError:
        """Return the error for a sheet without a single row."""
        name, columns = self.sheet.name, len(self.sheet.header)
        return UnreadableFileError(
            f"{name}: {many(columns, 'column')} and no rows. Check that the export finished.", source=name
        )


def open_sheet(
    source: Any, *, profile: str | PathLike[str] | None = None, given: frozenset[str] = frozenset(), size: int = 0
) -> Opened:
    """Open a path or a frame and choose its layout; no row is read yet.

    Args:
        profile: the layout, by its name or as the path of a TOML file; by default the one whose columns are there.
        given: canonical columns the caller will add, which nothing in the profile may claim.
        size: of a block: bytes of text, or rows of a Parquet file; the default size if 0.
    """
    forced = None if profile is None or str(profile) == CANONICAL else profile_of(profile)
    looks_right = is_header if forced is None else lambda cells: not missing(forced, set(map(plain, cells)))
    return opened(sheet_of(source, looks_right, size=size), profile, given)


def opened(sheet: Sheet, asked: str | PathLike[str] | None, given: frozenset[str]) -> Opened:
    """Return a sheet with the layout asked for, or the one its header shows."""
    check_columns(sheet.name, len(sheet.header))
    _refuse_nameless(sheet)
    forced = None if asked is None or str(asked) == CANONICAL else profile_of(asked)
    profile = forced if asked is not None else match(sheet.header)
    if profile is None:
        _refuse_repeated(sheet)
        return Opened(sheet, None, {}, sheet.notes, given)
    absent = missing(profile, set(map(plain, sheet.header)))
    if absent:
        raise ColumnError(
            f"{sheet.name}: the profile {profile.name} needs {', '.join(absent)}, which the header does not have. "
            "Choose another profile, or none.",
            missing=absent,
            columns=list(sheet.header),
        )
    above, notes = preamble_values(profile, sheet.preamble)
    return Opened(sheet, profile, above, (*sheet.notes, *notes), given)


def understood(
    table: Table, constants: Mapping[str, float | str] | None = None, *, forwards: str = "auto", is_asked: bool = False
) -> tuple[pl.DataFrame, Layout]:
    """Return how a table will be read; see ``columns.understand``. ``is_asked``: the layout was asked for by name."""
    try:
        return understand(table.frame, constants, forwards=forwards, vendor=table.columns)
    except ColumnError as error:
        if table.profile is not None or is_asked or "missing" not in error.facts:
            raise
        raise error.extended(nearest_profile(table.frame.columns)) from error


def _refuse_nameless(sheet: Sheet) -> None:
    """Raise ColumnError if the name of a label cannot be used in a condition or in a CSV."""
    place = next((place for place, name in enumerate(sheet.header, start=1) if not name or "\0" in name), None)
    if place is not None:
        raise ColumnError(
            f"{sheet.name}: the name of column {place} is {sheet.header[place - 1]!r}, which is empty or has a NUL "
            "character. Rename it.",
            columns=[sheet.header[place - 1]],
        )


def _refuse_repeated(sheet: Sheet) -> None:
    repeated = sorted({name.rpartition(" (")[0] for name in sheet.header if name.endswith(")") and " (" in name})
    twice = [name for name in repeated if name in sheet.header and f"{name} (2)" in sheet.header]
    if twice:
        raise ColumnError(
            f"{sheet.name}: the header names {twice[0]!r} more than once. Rename or drop one.", columns=twice
        )


def _understood(
    profile: Profile, header: tuple[str, ...], filled: frozenset[str], above: Mapping[str, Any], given: frozenset[str]
) -> tuple[Column, ...]:
    """Return what each of the vendor's columns was taken for, and what the profile and the lines above the header
    add."""
    meant: dict[str, list[tuple[str, str]]] = {}
    sides: dict[str, set[str]] = {}
    for side, roles in sources(profile, filled).items():
        origins = {**profile.columns, **(profile.puts if side == "P" else profile.calls)}
        for role, name in roles.items():
            sides.setdefault(name, set()).add(side)
            if role == "symbol":
                said = [part for part in NAMED if part not in roles and not (side and part == "right")]
                meant.setdefault(name, []).extend((part, "part of the name") for part in said)
            else:
                meant.setdefault(name, []).append((role, origins[role].described))
    columns = []
    for name in header:
        for role, described in dict.fromkeys(meant.get(name, ())):
            words = f"{UNITS[role]}; {described}" if described else UNITS[role]
            side = next(iter(sides[name])) if len(sides[name]) == 1 else ""
            columns.append(Column(name, role, words, is_used=False, side=side))
        if name not in meant:
            kept = plain(name) in map(plain, profile.labels)
            words = "label" if kept else "left out" if name in filled else "no value in any row: left out"
            columns.append(Column(name, None, words, is_used=False, is_kept=kept))
    added = {role: f"{value}, by the profile" for role, value in profile.constants.items()}
    added |= {role: f"{value}, from a line above the header" for role, value in above.items()}
    added |= dict.fromkeys(profile.by_class, "by the class of the contract")
    taken = {column.role for column in columns} | given
    columns += [
        Column("-", role, f"{UNITS[role]}; {words}", is_used=False)
        for role, words in added.items()
        if role not in taken
    ]
    return tuple(columns)
