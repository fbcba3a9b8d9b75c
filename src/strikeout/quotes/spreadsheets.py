"""Texts of a CSV that a spreadsheet would run as formulas: written behind an apostrophe, and read without it.

    =cmd|'/C calc'!A0    is written as    '=cmd|'/C calc'!A0
    '=1                  is written as    ''=1

A formula begins with one of = + - @, a tab or a line break, at the start of a cell; or behind a comma, semicolon, bar,
tab, line break or quotation mark, if the spreadsheet splits cells there. Each such place, with the apostrophes it has,
gets one apostrophe more, and reading takes one away from each, so every text comes back as it was. A cell that is a
number, such as -0.5, is not a formula and is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl

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
