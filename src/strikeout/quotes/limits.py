"""How large what is read may be: no file, however it was made, takes more than some multiple of its size to read.

    columns    1,000
    a row      1,000,000 bytes, line breaks inside quotation marks included: beyond, a mark was never closed
    fields     lines have at least half of those the header names, on average
    growth     a compressed file may unpack to 64 MB, or to 100 times its size
    pages      1,000,000 of a Parquet file
    bad rows   2,000,000

docs/reference/columns.md has the same table.
"""

from __future__ import annotations

from strikeout.errors import ColumnError, RejectedError, UnreadableFileError

MOST_COLUMNS = 1_000
LONGEST_ROW = 1_000_000  # bytes
LEAST_FILLED = 0.5  # of the fields of a header, on average
FREE_GROWTH, MOST_GROWTH = 64 << 20, 100  # bytes, and times the size of the file
MOST_BAD = 2_000_000  # rows, each with sentences on its problems
FEW_CELLS = 1_000_000  # below these nothing is refused for being sparse
BYTES_A_CELL = 8  # of a Parquet file, unpacked
MOST_PAGES = 1_000_000  # of a Parquet file, whose headers are looked at one by one


def check_columns(name: str, count: int) -> None:
    """Raise ColumnError if there are more columns than are read."""
    if count > MOST_COLUMNS:
        raise ColumnError(
            f"{name}: {count:,} columns; at most {MOST_COLUMNS:,} are read. Drop those that are not part of a quote.",
            columns=count,
            most=MOST_COLUMNS,
        )


def check_row(name: str, length: int, *, line: int, is_quoted: bool) -> None:
    """Raise UnreadableFileError if a row that begins in this line is longer than a row may be."""
    if length > LONGEST_ROW:
        why = "a quotation mark is opened there and not closed" if is_quoted else "no line break follows"
        raise UnreadableFileError(
            f"{name}: the row at line {line:,} has more than {LONGEST_ROW:,} bytes: {why}. Correct that line.",
            source=name,
            line=line,
            most=LONGEST_ROW,
        )


def check_texts(name: str, length: int, *, row: int) -> None:
    """Raise UnreadableFileError if the texts of a row of a Parquet file, counted from 0, are too long."""
    if length > LONGEST_ROW:
        raise UnreadableFileError(
            f"{name}: the texts of row {row:,} have {length:,} bytes, more than {LONGEST_ROW:,}. Correct that row.",
            source=name,
            row=row,
            most=LONGEST_ROW,
        )


def check_fields(name: str, rows: int, columns: int, length: int) -> None:
    """Raise UnreadableFileError if rows of ``length`` bytes can have only few of the fields of the header."""
    # A row of all its fields has a byte at least for each: a separator, or the line break.
    if rows * columns > FEW_CELLS and length < LEAST_FILLED * rows * columns:
        raise UnreadableFileError(
            f"{name}: the header names {columns:,} columns, and most lines have less than half as many "
            f"fields ({rows:,} lines in {length:,} bytes). Check separator and header.",
            source=name,
            columns=columns,
        )


def check_growth(name: str, unpacked: int, packed: int) -> None:
    """Raise UnreadableFileError if a compressed file unpacks to more than a file of quotes would."""
    if unpacked > max(FREE_GROWTH, MOST_GROWTH * packed):
        raise UnreadableFileError(
            f"{name}: its {packed:,} bytes unpack to more than {MOST_GROWTH} times as many, which no file of quotes "
            "does. If it is right, unpack it yourself and give it as a .csv.",
            source=name,
            packed=packed,
            most=MOST_GROWTH,
        )


def check_bad(name: str, count: int, first: str) -> None:
    """Raise RejectedError if more rows are bad than are listed; ``first`` is the problem of the first."""
    if count > MOST_BAD:
        raise RejectedError(
            f"{name}: more than {MOST_BAD:,} rows are bad, the most that are listed. The first: {first} Correct the "
            "file, or split it.",
            rejected=count,
            most=MOST_BAD,
        )
