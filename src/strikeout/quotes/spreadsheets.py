"""Texts of a CSV that a spreadsheet would run as formulas: written behind an apostrophe, and read without it.

    =cmd|'/C calc'!A0    is written as    '=cmd|'/C calc'!A0
    '=1                  is written as    ''=1

A formula begins with one of = + - @, a tab or a line break, at the start of a cell; or behind a comma, semicolon, bar,
tab, line break or quotation mark, if the spreadsheet splits cells there. Each such place, with the apostrophes it has,
gets one apostrophe more, and reading takes one away from each, so every text comes back as it was. A cell that is a
number, such as -0.5, is not a formula and is unchanged.

Workbooks: a sheet lists the cells that have values, and each states its place. The reader makes a full table up to the
last row and column: two cells in opposite corners take a kilobyte in the file and 400 GB in memory, and an allocation
that fails ends the process. So the places of all cells are compared with the size of the file first.

A cell or row without a place follows the one before it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import polars as pl

from strikeout.quotes.limits import BYTES_A_CELL, check_growth

# The wide signs are those of Chinese, Japanese and Korean keyboards: spreadsheets there take them for the narrow ones.
_BEGINS = r"=+\-@\t\r\n＝＋－＠"
_SPLITS = r",;|\t\r\n\""
_GUARD = re.compile(rf"(?:^|(?<=[{_SPLITS}]))(?='*[{_BEGINS}])")
_GUARDED = re.compile(rf"(?:^|(?<=[{_SPLITS}]))'(?='*[{_BEGINS}])")
_NUMBER = re.compile(r"[+-]?([0-9][0-9.,]*|\.[0-9]+)([eE][+-]?[0-9]+)?%?|-+")
# For Polars, which has no look-ahead: texts of which one place or more is changed.
_TO_GUARD = rf"(?:^|[{_SPLITS}])'*[{_BEGINS}]"
_TO_UNGUARD = rf"(?:^|[{_SPLITS}])'+[{_BEGINS}]"


def guarded(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the texts of a frame, and its names, as a CSV may hold them."""
    return _mapped(frame, _TO_GUARD, guarded_text).rename({name: guarded_text(name) for name in frame.columns})


def unguarded(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the texts of a frame as they were before ``guarded``; the names are left as they are."""
    return _mapped(frame, _TO_UNGUARD, unguarded_text)


def guarded_text(text: str) -> str:
    """Return a text as a CSV may hold it.

    >>> guarded_text("=1+1"), guarded_text("'=1"), guarded_text("-0.5"), guarded_text("EUR")
    ("'=1+1", "''=1", '-0.5', 'EUR')
    """
    return text if _NUMBER.fullmatch(text) else _GUARD.sub("'", text)


def unguarded_text(text: str) -> str:
    """Return a text of a CSV as it was before ``guarded_text``.

    >>> unguarded_text("'=1+1"), unguarded_text("''=1"), unguarded_text("-0.5"), unguarded_text("l'EUR")
    ('=1+1', "'=1", '-0.5', "l'EUR")
    """
    return _GUARDED.sub("", text)


def _mapped(frame: pl.DataFrame, pattern: str, change: Callable[[str], str]) -> pl.DataFrame:
    columns = []
    for column in frame.get_columns():
        if column.dtype == pl.String:
            found = column.filter(column.str.contains(pattern).fill_null(value=False)).unique()
            if found.len():
                column = column.replace(found, pl.Series([change(text) for text in found.to_list()], dtype=pl.String))
        columns.append(column)
    return pl.DataFrame(columns)


PREFIX = rb"<(?:[\w.-]+:)?"  # of a tag, in the namespace of the sheet
CELL = re.compile(PREFIX + rb"c(?=[\s/>])")
ROW = re.compile(PREFIX + rb"row(?=[\s/>])")
OTHERS = rb"(?:\s+[^\s=>]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*?"  # attributes before the place; their values may have a ">"
CELL_PLACE = re.compile(PREFIX + rb"c" + OTHERS + rb"\s+r\s*=\s*[\"']\s*([A-Za-z]+)([0-9]+)")
ROW_PLACE = re.compile(PREFIX + rb"row" + OTHERS + rb"\s+r\s*=\s*[\"']\s*([0-9]+)")
# As spreadsheet programs write them: three times as quick to find.
USUAL_CELL = re.compile(rb'<c r="([A-Z]+)([0-9]+)"')
USUAL_ROW = re.compile(rb'<row r="([0-9]+)"')
# What ZipFile raises for a damaged file, and RuntimeError for a part that is encrypted or packed in an unknown way.
NOT_A_WORKBOOK = (BadZipFile, OSError, ValueError, EOFError, zlib.error, RuntimeError)
LONGEST_PLACE = 9  # letters or digits; the last cell of a sheet is XFD1048576


def check_workbook(path: Path) -> None:
    """Raise UnreadableFileError if sheets have more cells, or parts more bytes, than a file of this size can have."""
    size = path.stat().st_size
    with ZipFile(path) as packed:
        parts = packed.infolist()
        check_growth(path.name, sum(part.file_size for part in parts), size)
        for part in parts:
            cells = _extent(packed.read(part))  # at most the bytes that were just added up
            check_growth(path.name, cells * BYTES_A_CELL, size)


def _extent(part: bytes) -> int:
    """Return an upper bound of the cells in the table that a part describes; 0 if it is not a sheet."""
    cells, rows, is_usual = USUAL_CELL.findall(part), USUAL_ROW.findall(part), True
    if part.count(b"<c") != len(cells) + part.count(b"<col") or part.count(b"<row") != len(rows) or b":c" in part:
        cells, rows, is_usual = CELL_PLACE.findall(part), ROW_PLACE.findall(part), False
    width = max(map(_column, {letters for letters, _ in cells}), default=0)
    height = max((int(digits[:LONGEST_PLACE]) for digits in {*rows, *(digits for _, digits in cells)}), default=0)
    if not is_usual and len(cells) < len(CELL.findall(part)):
        width += max(len(CELL.findall(row)) for row in ROW.split(part))
    if not is_usual:
        height += len(ROW.findall(part)) - len(rows)
    return width * height


def _column(letters: bytes) -> int:
    """Return the number of a column, from 1."""
    number = 0
    for letter in letters.upper()[:LONGEST_PLACE]:
        number = 26 * number + letter - ord("A") + 1
    return number
