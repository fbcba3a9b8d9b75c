"""Open a source before its layout is chosen: its header, and its rows some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from strikeout.errors import ColumnError, UnreadableFileError, UsageError
from strikeout.quotes.limits import check_texts
from strikeout.quotes.parquet_metadata import check_parquet
from strikeout.quotes.text_files import (
    ENDINGS,
    Block,
    CsvDialect,
    Progress,
    blocks_of,
    dialect_of,
    western_dialect_of,
)
from strikeout.quotes.texts import is_unicode
from strikeout.quotes.workbooks import NOT_A_WORKBOOK, check_workbook
from strikeout.text import Advice, first_line

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

    Raises:
        UnreadableFileError: no such file, an unknown ending, an empty or damaged file.
        ColumnError: two columns of a frame share a name.
        UsageError: the source is neither a path nor a frame.
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


def _text_sheet(path: Path, dress: CsvDialect, is_header: IsHeader, size: int) -> Sheet:
    def blocks(progress: Progress | None) -> Iterator[Block]:
        return blocks_of(path, dress, progress=progress, size=size)

    def western() -> Sheet:
        return _text_sheet(path, western_dialect_of(path, is_header), is_header, size)

    return Sheet(path.name, dress.header, "line", blocks, dress.notes, dress.preamble, western)


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


def _whole(name: str, frame: pl.DataFrame) -> Sheet:
    return Sheet(name, tuple(frame.columns), "row", lambda _: iter([_block(frame, 0)]))


def _block(frame: pl.DataFrame, begin: int) -> Block:
    rows = pl.int_range(begin, begin + frame.height, eager=True).alias("row")
    nothing = pl.Series("overflow", [None], dtype=pl.String).new_from_index(0, frame.height)
    return Block(frame, rows, nothing)
