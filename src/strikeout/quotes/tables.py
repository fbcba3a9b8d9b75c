"""Opening what quotes come in: a file or a frame becomes one table, nothing interpreted yet."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from strikeout.errors import ColumnError, UnreadableFileError, UsageError

SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as found. A CSV's columns are all text; a frame's keep their types.

    ``rows`` numbers each row as a person finds it: the line of a CSV (its header is line 1), the position (from 0) in
    Parquet or a frame. ``numbering`` says which: "line" or "row". ``overflow`` is the first field beyond the header.
    """

    name: str
    frame: pl.DataFrame
    rows: pl.Series
    numbering: str
    overflow: pl.Series | None = None


def open_table(source: Any) -> Table:
    """The table in a path (.csv, .csv.gz, .parquet) or a pandas, Polars or Arrow frame.

    Raises:
        UnreadableFileError: no such file, an unknown ending, an empty or damaged file, no rows.
        ColumnError: two columns share a name.
        UsageError: the source is neither a path nor a frame.
    """
    table = _open_path(Path(source)) if isinstance(source, (str, PathLike)) else _open_frame(source)
    if not table.frame.height:
        raise UnreadableFileError(
            f"{table.name}: {table.frame.width} columns and no rows. Check that the export finished.", source=table.name
        )
    return table


def _open_path(path: Path) -> Table:
    name = path.name
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise UnreadableFileError(
            f"{path}: {what}. Give the path of a .csv, .csv.gz or .parquet file.", source=str(path)
        )
    ending = name.lower()
    if ending.endswith(".parquet"):
        return _open_parquet(path)
    if ending.endswith((".csv", ".csv.gz")):
        return _open_csv(name, _bytes_of(path, compressed=ending.endswith(".gz")))
    raise UnreadableFileError(
        f"{name}: the ending says neither .csv, .csv.gz nor .parquet. Rename it, or give a DataFrame.",
        source=name,
    )


def _bytes_of(path: Path, *, compressed: bool) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if compressed else raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnreadableFileError(
            f"{path.name}: damaged gzip data ({error}). Fetch the file again.", source=path.name
        ) from error
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read ({error.strerror}).", source=str(path)) from error


def _open_parquet(path: Path) -> Table:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFileError(
            f"{path.name}: not a readable Parquet file ({reason}). Fetch it again.", source=path.name
        ) from error
    return Table(path.name, frame, _positions(frame.height), "row")


def _open_csv(name: str, raw: bytes) -> Table:
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise UnreadableFileError(
            f"{name}: the file is empty. A header line and one line per quote are needed.", source=name
        )
    header, separator, rest, lines = _header(name, raw)
    # A header of our own with one column more: a line with too many fields then shows in that column, and is a bad
    # row, instead of failing the file or being cut off in silence.
    ours = separator.join([*(f"c{k}" for k in range(len(header))), "overflow"]).encode() + b"\n"
    try:
        frame = pl.read_csv(ours + raw[rest:], separator=separator, infer_schema=False, truncate_ragged_lines=True)
    except pl.exceptions.NoDataError:
        frame = pl.DataFrame(schema={f"c{k}": pl.String for k in range(len(header))} | {"overflow": pl.String})
    except pl.exceptions.PolarsError as error:
        reason = (
            "not UTF-8 text" if "utf-8" in str(error) else "a quotation mark is never closed, or stands inside a field"
        )
        raise UnreadableFileError(
            f"{name}: cannot be read as CSV: {reason}. Save it again as CSV, UTF-8.", source=name
        ) from error
    rows = _lines(frame, lines, multiline=b'"' in raw)
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    frame, rows = frame.filter(~blank), rows.filter(~blank)
    overflow = frame.drop_in_place("overflow")
    frame.columns = header
    return Table(name, frame, rows, "line", overflow)


def _header(name: str, raw: bytes) -> tuple[list[str], str, int, int]:
    """The column names, the separator, the offset where the rows begin, and how many lines came before that."""
    try:
        text = raw[: 1 << 20].decode("utf-8", errors="ignore")
        first = text.split("\n", 1)[0]
        if "\x00" in first:
            raise UnreadableFileError(f"{name}: not UTF-8 text (UTF-16?). Save it again as CSV, UTF-8.", source=name)
        separator = max(SEPARATORS, key=first.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        header = [column.strip() for column in next(reader)]
    except csv.Error as error:
        raise UnreadableFileError(f"{name}: the header line cannot be read ({error}).", source=name) from error
    rest = 0
    for _ in range(reader.line_num):
        rest = raw.find(b"\n", rest) + 1 or len(raw)
    names = [column or f"column_{position}" for position, column in enumerate(header, start=1)]
    repeated = sorted({column for column in names if names.count(column) > 1})
    if repeated:
        raise ColumnError(
            f"{name}: the header names {repeated[0]!r} more than once. Rename or drop one.", columns=repeated
        )
    return names, separator, rest, reader.line_num


def _lines(frame: pl.DataFrame, before: int, *, multiline: bool) -> pl.Series:
    lines = pl.int_range(before + 1, before + 1 + frame.height, eager=True)
    if multiline:
        inside = frame.select(
            pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0))
        ).to_series()
        lines = lines + inside.cast(pl.Int64).cum_sum().shift(1, fill_value=0)
    return lines.alias("line")


def _open_frame(source: Any) -> Table:
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
    name = f"{type(source).__module__.split('.')[0]} frame"
    return Table(name, native, _positions(native.height), "row")


def _positions(height: int) -> pl.Series:
    return pl.int_range(0, height, eager=True).alias("row")
