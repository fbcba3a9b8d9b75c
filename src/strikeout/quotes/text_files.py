"""Text with separators, as people really save it: encoding, separator, decimal sign, the lines above the header.

A file is read in blocks, so that the text of a large one is never in memory as a whole.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl

from strikeout.errors import UnreadableFileError
from strikeout.kernels.arrays import Rows
from strikeout.quotes.limits import (
    FEW_CELLS,
    FREE_GROWTH,
    MOST_COLUMNS,
    MOST_GROWTH,
    check_columns,
    check_fields,
    check_growth,
    check_row,
)
from strikeout.quotes.spreadsheets import unguarded, unguarded_text
from strikeout.text import agreeing, many

SEPARATORS = (",", ";", "\t", "|")
ENDINGS = (".csv", ".tsv", ".dat")
BLOCK = 32 << 20  # bytes of text read at once
ROWS = 400_000  # looked at at once, however short they are
HIGHEST_HEADER = 20  # a header further down than this line is not looked for
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
COMMA_NUMBER, POINT_NUMBER = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+$", r"^[+-]?\d+\.\d+$"
# "1,234" may be a thousand and more, or a little over one; only other lengths prove a decimal comma.
PROOF = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+),(\d{1,2}|\d{4,})$"

Progress = Callable[[float], None]


@dataclass(frozen=True)
class CsvDialect:
    """How a text file is dressed: what stands above its header, its header, and how its cells are written."""

    encoding: str
    separator: str
    header: tuple[str, ...]
    preamble: tuple[str, ...]
    lines: int  # up to and with the header
    commas: frozenset[str] = frozenset()  # the columns seen to have decimal commas

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how the file was read."""
        found = []
        if self.encoding == "cp1252":
            found.append("not UTF-8: read as Windows-1252 (Western European)")
        elif self.encoding != "utf-8":
            found.append(f"read as {self.encoding.upper()}, as its first bytes show")
        if self.commas:
            found.append("numbers have a decimal comma: 166,6 is read as 166.6")
        if self.preamble:
            above = many(len(self.preamble), "line")
            none = agreeing(len(self.preamble), "is not a row", "are not rows")
            found.append(f"the header is line {self.lines}; the {above} above it {none}")
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a text file, all cells text; ``rows`` are their lines, ``overflow`` the field beyond the header."""

    frame: pl.DataFrame
    rows: pl.Series
    overflow: pl.Series


def dialect_of(path: Path, is_header: Callable[[list[str]], bool]) -> CsvDialect:
    """Return how this file is dressed. The header is the first line that ``is_header``, or line 1 if none is."""
    try:
        return _dialect_with(path, "", is_header)
    except UnicodeDecodeError:
        return western_dialect_of(path, is_header)


def western_dialect_of(path: Path, is_header: Callable[[list[str]], bool]) -> CsvDialect:
    """Return the dialect if the bytes are letters of Western Europe: what text that is not UTF-8 mostly is."""
    try:
        return _dialect_with(path, "cp1252", is_header)
    except UnicodeDecodeError as error:
        raise UnreadableFileError(
            f"{path.name}: not UTF-8 text, nor Windows-1252. Save it again as CSV, UTF-8.", source=path.name
        ) from error


def blocks_of(path: Path, dialect: CsvDialect, *, progress: Progress | None = None, size: int = 0) -> Iterator[Block]:
    """Yield the rows of the file in their order, some at a time: ``size`` bytes of text, by default BLOCK."""
    lines = dialect.lines
    skip = lines
    for block in _texts(path, dialect.encoding, progress=progress, size=size or BLOCK):
        while skip and block:
            block, skip = block[block.find(b"\n") + 1 :] if b"\n" in block else b"", skip - 1
        for text in _in_rows(path.name, block, len(dialect.header)):
            frame = _parsed(path.name, text, dialect)
            rows = _lines(frame, lines, multiline=b'"' in text)
            lines += text.count(b"\n")
            blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
            frame, rows = frame.filter(~blank), rows.filter(~blank)
            overflow = frame.drop_in_place("overflow")
            frame.columns = list(dialect.header)
            frame = unguarded(frame) if b"'" in text else frame
            yield Block(
                _with_points(path.name, frame, rows, dialect.commas) if dialect.commas else frame, rows, overflow
            )


def _dialect_with(path: Path, encoding: str, is_header: Callable[[list[str]], bool]) -> CsvDialect:
    name = path.name
    with _opened(path) as file:
        mark = _read(path, file, 4)
    encoding = encoding or next((code for bom, code in MARKS if mark.startswith(bom)), "utf-8")
    text = next(_texts(path, encoding, size=1 << 20), b"").decode("utf-8")
    if not text.strip():
        raise UnreadableFileError(
            f"{name}: the file is empty. A header line and one line per quote are needed.", source=name
        )
    if "\x00" in text.split("\n", 1)[0]:
        raise UnreadableFileError(f"{name}: not UTF-8 text (UTF-16?). Save it again as CSV, UTF-8.", source=name)
    top = text.split("\n")[:HIGHEST_HEADER]
    for at, line in enumerate(top):
        separator = max(SEPARATORS, key=line.count)
        if line.count(separator) >= MOST_COLUMNS:
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([line.rstrip("\r")], delimiter=separator), [])]
        except csv.Error:
            continue
        if is_header(list(_distinct(tuple(cells)))):
            preamble = tuple(top[:at])
            break
    else:
        blank = next((at for at, line in enumerate(top) if line.strip()), 0)
        separator, preamble = max(SEPARATORS, key=top[blank].count), tuple(top[:blank])
    # Lines end at \n as they do below: a \r inside a name would count as one, and a row be taken for the header.
    rest = (f"{line}\n" for line in text.split("\n")[len(preamble) :])
    reader = csv.reader(rest, delimiter=separator)
    try:
        cells = [unguarded_text(cell.strip()) for cell in next(reader)]
    except (csv.Error, StopIteration) as error:
        raise UnreadableFileError(f"{name}: the header line cannot be read ({error}).", source=name) from error
    check_columns(name, len(cells))
    header = _distinct(tuple(cell or f"column_{place}" for place, cell in enumerate(cells, start=1)))
    above = tuple(unguarded_text(line.rstrip("\r")) for line in preamble)
    dialect = CsvDialect(encoding, separator, header, above, len(preamble) + reader.line_num)
    return dialect if separator == "," else replace(dialect, commas=_decimal_commas(path, dialect))


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return distinct headers: a second Bid becomes "Bid (2)".

    Wide files have a column for the call and one for the put under one name.
    """
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(distinct)


def _decimal_commas(path: Path, dialect: CsvDialect) -> frozenset[str]:
    """Return the columns with decimal commas, as far as the first megabyte shows; none if some have decimal points."""
    first = next(blocks_of(path, dialect, size=1 << 20), None)
    cells = [] if first is None else [column.str.strip_chars() for column in first.frame.get_columns()]
    if any(column.str.contains(POINT_NUMBER).any() for column in cells):
        return frozenset()
    proven = any(column.str.contains(PROOF).any() for column in cells)
    return frozenset(column.name for column in cells if proven and column.str.contains(COMMA_NUMBER).any())


def _with_points(name: str, frame: pl.DataFrame, rows: pl.Series, known: frozenset[str]) -> pl.DataFrame:
    columns = []
    for column in frame.get_columns():
        text = column.str.strip_chars()
        commas = text.str.contains(COMMA_NUMBER).fill_null(value=False)
        if commas.any() or column.name in known:
            points = text.str.contains(POINT_NUMBER).fill_null(value=False)
            if points.any():
                line = rows[int(points.arg_true()[0])]
                raise UnreadableFileError(
                    f"{name}: line {line}, column {column.name}: a decimal point in a column of decimal commas "
                    f"({text[int(points.arg_true()[0])]}). Save it again with one of the two.",
                    source=name,
                )
            pointed = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
            column = pl.select(pl.when(commas).then(pointed).otherwise(column).alias(column.name)).to_series()
        columns.append(column)
    return pl.DataFrame(columns)


def _parsed(name: str, text: bytes, dialect: CsvDialect) -> pl.DataFrame:
    # A header of our own with one column more: a line with too many fields then shows in that column, and is a bad
    # row, instead of failing the file or being cut off in silence.
    ours = dialect.separator.join([*(f"c{k}" for k in range(len(dialect.header))), "overflow"]).encode() + b"\n"
    schema = {f"c{k}": pl.String for k in range(len(dialect.header))} | {"overflow": pl.String}
    try:
        return pl.read_csv(ours + text, separator=dialect.separator, infer_schema=False, truncate_ragged_lines=True)
    except pl.exceptions.NoDataError:
        return pl.DataFrame(schema=schema)
    except pl.exceptions.PolarsError as error:
        raise UnreadableFileError(
            f"{name}: cannot be read as CSV: a quotation mark is never closed, or stands inside a field. "
            "Save it again as CSV, UTF-8.",
            source=name,
        ) from error


def _lines(frame: pl.DataFrame, before: int, *, multiline: bool) -> pl.Series:
    lines = pl.int_range(before + 1, before + 1 + frame.height, eager=True)
    if multiline:
        inside = frame.select(
            pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0))
        ).to_series()
        lines = lines + inside.cast(pl.Int64).cum_sum().shift(1, fill_value=0)
    return lines.alias("line")


def _texts(path: Path, encoding: str, *, size: int, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield the file as UTF-8, in chunks that end where a row ends."""
    decoder = codecs.getincrementaldecoder(encoding)()
    kept = b""
    total = max(path.stat().st_size, 1)
    first = True
    unpacked, lines = 0, 0
    with _opened(path) as file:
        at_end = False
        while not at_end:
            raw = _read(path, file, size)
            at_end = len(raw) < size  # a file gives less than asked for only at its end
            unpacked += len(raw)
            if isinstance(file, gzip.GzipFile):
                check_growth(path.name, unpacked, total)
            text = decoder.decode(raw, final=at_end).encode()
            if first:
                text, first = text.removeprefix(codecs.BOM_UTF8), False
            kept += text
            if progress is not None:
                progress(_share(file, total))
            whole = _last_row_end(kept)
            above = lines + kept[:whole].count(b"\n")
            check_row(path.name, len(kept) - whole, line=above + 1, is_quoted=b"\n" in kept[whole:])
            end, lines = (len(kept), above) if at_end else (whole, above)
            if end:
                yield kept[:end]
                kept = kept[end:]


def _in_rows(name: str, text: bytes, columns: int) -> Iterator[bytes]:
    """Yield the text in chunks of at most ROWS rows; nothing if it is empty."""
    count = text.count(b"\n")
    if count <= ROWS and count * columns <= FEW_CELLS:
        if text:
            yield text
        return
    ends = _row_ends(text)
    check_fields(name, ends.size, columns, len(text))
    begin = 0
    for end in (*(ends[ROWS - 1 : -1 : ROWS] + 1).tolist(), len(text)):
        if end > begin:
            yield text[begin:end]
        begin = end


def _last_row_end(text: bytes) -> int:
    """Return the place after the last line break that is not inside quotation marks; 0 if there is none."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    ends = _row_ends(text)
    return int(ends[-1]) + 1 if ends.size else 0


def _row_ends(text: bytes) -> Rows:
    """Return the places of the line breaks that are not inside quotation marks."""
    points = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero(points == ord("\n"))
    if b'"' not in text:
        return breaks
    # Inside quotation marks the number of marks so far is odd; a doubled mark counts twice and changes nothing.
    marks = np.flatnonzero(points == ord('"'))
    outside: Rows = breaks[np.searchsorted(marks, breaks) % 2 == 0]
    return outside


def _opened(path: Path) -> BinaryIO:
    try:
        if path.suffix.lower() == ".gz":
            _refuse_bomb(path)
            return cast(BinaryIO, gzip.open(path))
        return path.open("rb")
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read ({error.strerror}).", source=str(path)) from error


def _refuse_bomb(path: Path) -> None:
    """Unpack a .gz whose last four bytes show that it grows too large, without reading what is in it."""
    packed = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(packed - 4, 0))
        unpacked_size = int.from_bytes(file.read(4), "little")
    if unpacked_size <= max(FREE_GROWTH, MOST_GROWTH * packed):
        return
    unpacked = 0
    with gzip.open(path) as bomb:
        while piece := _read(path, cast(BinaryIO, bomb), 1 << 20):
            unpacked += len(piece)
            check_growth(path.name, unpacked, packed)


def _read(path: Path, file: BinaryIO, size: int) -> bytes:
    try:
        return file.read(size)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnreadableFileError(
            f"{path.name}: damaged gzip data ({error}). Fetch the file again.", source=path.name
        ) from error
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read ({error.strerror}).", source=str(path)) from error


def _share(file: BinaryIO, total: int) -> float:
    under = file.fileobj.raw if isinstance(file, gzip.GzipFile) else file  # the position in the compressed file
    return min(under.tell() / total, 1.0)
