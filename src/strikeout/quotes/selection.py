"""Select the quotes for which a condition in SQL holds."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from threading import local
from time import thread_time
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import NothingMeantError, UsageError
from strikeout.quotes.conditions import (
    Column,
    Unmatched,
    check_closed,
    computed_columns,
    misspelt,
    own_columns,
    typed,
    unmatched,
)
from strikeout.quotes.contracts import Features
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.text import Argument, did_you_mean

# A condition may look at the book and compute; it may not write, attach a file, load code or run for ever.
_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
# fmt: off
FUNCTIONS = frozenset({
    "abs", "avg", "ceil", "coalesce", "count", "date", "exp", "floor", "glob", "ifnull", "iif", "instr", "julianday",
    "length", "like", "ln", "lower", "max", "min", "nullif", "replace", "round", "sign", "sqrt", "strftime", "substr",
    "substring", "sum", "total", "trim", "upper",
})
# fmt: on
CLOCKS = frozenset({"date", "julianday", "strftime"})  # of FUNCTIONS, those that may ask what time it is
# Seconds of processor time for a condition, of which a plain one takes a microsecond a quote; it can only be refused
# for them, never mean something else. SQLite is stopped between two steps of its machine, so every step must be short:
# looking at texts of this length takes a few hundredths of a second at most, and a look after every hundred steps
# makes a plain condition slower by a few percent.
SECONDS, SECONDS_A_QUOTE = 2.0, 5e-5
_LOOK_EVERY = 100
LONGEST_TEXT, LONGEST_PATTERN, LONGEST_CONDITION = 10_000, 200, 1_000_000  # characters
SHOWN, MOST_NAMED = 300, 40  # characters of a condition, and columns, in a sentence
# Texts, names in quotation marks and comments; one that is not closed goes on to the end.
_ASIDE = re.compile(
    r"'(?:[^']|'')*(?:'|$)|\"(?:[^\"]|\"\")*(?:\"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$)|--[^\n]*|/\*.*?(?:\*/|$)",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_AFFINITY = {"f": "REAL", "i": "INTEGER", "u": "INTEGER", "b": "INTEGER"}


def select(quotes: Quotes, where: str, *, also: Iterable[str] = ()) -> Names:
    """Return the ids of the quotes for which a condition in SQL holds, in the order of the book.

    The condition sees the columns ``id, price, strike, right ('C' or 'P'), expiry_years, forward, discount, weight,
    spread, log_moneyness`` and every label by its name; for quotes of features these instead of what only options have.
    ``maturity`` (days), ``moneyness`` (strike over forward), ``month`` of the date and ``is_call`` are computed. Other
    names that a file may have for a column (symbol, expiration, quote_date, mid) work too. A label whose every
    text is a number, as in a CSV, compares as numbers: 100 is not below 50. Dates compare as dates in the usual
    spellings, quoted or not; ``/`` divides: see ``conditions``. It can read and compute, nothing else; its meaning
    depends on the quotes alone, not on the clock or the time zone.

    Args:
        also: labels that none of these quotes has though others had: NULL of each, so that a condition which once could
            be asked always can.

    >>> from strikeout import paper
    >>> select(paper.quotes("small"), "date >= '2024-05-01' and strike = 90 and expiry_days < 40")[:2]
    array(['small-086-30-90', 'small-087-30-90'], dtype='<U16')
    """
    if not isinstance(where, str) or not where.strip():
        raise UsageError(Argument("where"), " is empty. Give a condition, such as \"source = 'b' and strike > 120\".")
    if len(where) > LONGEST_CONDITION:
        raise UsageError(
            Argument("where"),
            f" has {len(where):,} characters; at most {LONGEST_CONDITION:,} are read. Give ids instead.",
            characters=len(where),
        )
    sheet = _sheet(quotes, also)
    columns = sheet.columns
    check_closed(where, _cut(where))
    asked = typed(where, columns)
    _refuse_quoted_text(asked, columns)
    used = _used(where, asked, columns)
    if used & sheet.ambiguous:
        name = min(used & sheet.ambiguous)
        raise UsageError(
            Argument("where"),
            f": {name!r} is both a column of every book and a label of this one. Rename the label.",
            column=name,
        )
    table = sheet.table(where, used)
    found = _ask(table, (where, asked), set(used), columns, seconds=SECONDS + SECONDS_A_QUOTE * len(quotes))
    return quotes.ids[np.array(found, np.intp)]


class _Sheet:
    """Quotes as conditions see them: columns, and a table in memory with those of them that a condition has read.

    To put 100,000 quotes into a table takes longer than to ask it, so the sheet of the last quotes that a thread asked
    is kept until they are gone: it refers to their arrays, and not to the quotes.
    """

    def __init__(self, quotes: Quotes, also: tuple[str, ...]) -> None:
        self.of, self.also, self._count = ref(quotes, self._clear), also, len(quotes)
        own, labels = own_columns(quotes), _labels(quotes, also)
        self.ambiguous = own.keys() & labels.keys()
        self.columns = {**labels, **computed_columns(quotes), **own}
        self._there: set[str] = set()
        self._table: sqlite3.Connection | None = None

    def table(self, where: str, used: set[str]) -> sqlite3.Connection:
        """Return a table that has these columns, and maybe others."""
        if self._table is None or not used <= self._there:
            arrays = {name: column() for name, column in self.columns.items() if name in used}
            table = _table(where, arrays)
            marks = ", ".join("?" * (len(arrays) + 1))
            rows = zip(range(self._count), *(_plain(array) for array in arrays.values()), strict=True)
            table.executemany(f"INSERT INTO quotes VALUES ({marks})", rows)
            self._table, self._there = table, used
        return self._table

    def _clear(self, _: object) -> None:
        self.columns, self._there, self._table = {}, set(), None


class _Last(local):
    """The sheet that each thread used last: a connection of SQLite belongs to its thread."""

    sheet: _Sheet | None = None


_LAST = _Last()
MOST_KEPT = 300_000  # quotes of a sheet that is kept: a table takes about as much memory as they


def _sheet(quotes: Quotes, also: Iterable[str]) -> _Sheet:
    sheet, also = _LAST.sheet, tuple(also)
    if sheet is None or sheet.of() is not quotes or sheet.also != also:
        sheet = _Sheet(quotes, also)
        _LAST.sheet = sheet if len(quotes) <= MOST_KEPT else None
    return sheet


def nothing_matches(quotes: Quotes, where: str, *, verb: str, also: Iterable[str] = ()) -> NothingMeantError:
    """Return the error for a condition that no quote matches: with the values of the labels it compares."""
    found = unmatched_texts(quotes, where, also=also)
    return NothingMeantError(
        Argument("where"),
        f": no quotes match {_cut(where)}; there is nothing to {verb}." + "".join(f" {one}" for one in found[:3]),
        where=where,
        unmatched=[{"column": one.column, "text": one.text, "nearest": list(one.nearest)} for one in found],
    )


def unmatched_texts(quotes: Quotes, where: str, *, also: Iterable[str] = ()) -> list[Unmatched]:
    """Return the texts in a condition that no quote has in the column they are compared with, and the values it has."""
    return unmatched(where, _sheet(quotes, also).columns)


def _labels(quotes: Quotes, also: Iterable[str]) -> dict[str, Column]:
    """Return the labels as columns, and those that none of these quotes has: NULL of each."""
    labels = {**_features(quotes), **quotes.labels}
    there = {name.lower() for name in (*own_columns(quotes), *computed_columns(quotes), *labels)}
    labels |= {name: np.full(len(quotes), None, object) for name in also if name.lower() not in there}
    return {name: Column(partial(_compared, held)) for name, held in labels.items()}


def _refuse_quoted_text(where: str, columns: dict[str, Column]) -> None:
    """SQLite reads a misspelt "column" in double quotes as a text, which no price equals and every number is below."""
    known = {name.lower() for name in columns}
    for name in (mark[1:].removesuffix('"') for mark in _ASIDE.findall(where) if mark.startswith('"')):
        if name.replace('""', '"').lower() not in known:
            raise UsageError(
                f'where: "{name[:SHOWN]}" in double quotes names a column, and there is no such column.'
                f"{did_you_mean(name, columns, cutoff=0.7)} The columns are {_listed(columns)}. "
                f"If it is a text, write '{name[:SHOWN]}'.",
                column=name,
            )


def _used(where: str, asked: str, columns: dict[str, Column]) -> set[str]:
    """Return the columns a condition reads: a million quotes with thirty labels are not copied to look at two."""
    with closing(_table(where, {name: np.empty(0) for name in columns})) as table:
        read: set[str] = set()
        _ask(table, (where, asked), read, columns, seconds=SECONDS)
    return {name for name in columns if name in read}


def _table(where: str, columns: dict[str, NDArray[Any]]) -> sqlite3.Connection:
    """Return an empty table of these columns in memory."""
    kinds = "".join(f", {_quoted(name)} {_AFFINITY.get(c.dtype.kind, 'TEXT')}" for name, c in columns.items())
    connection = sqlite3.connect(":memory:")
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_COLUMN)
    remedy = "Give ids instead." if len(columns) >= most else "Rename the label."
    try:
        connection.execute(f"CREATE TABLE quotes (_row INTEGER PRIMARY KEY{kinds})")
    except (sqlite3.Error, ValueError) as error:
        connection.close()
        raise UsageError(
            Argument("where"), f": {_cut(where)} cannot be asked of this book: {error}. {remedy}"
        ) from error
    return connection


def _ask(
    table: sqlite3.Connection,
    conditions: tuple[str, str],
    read: set[str],
    columns: dict[str, Column],
    *,
    seconds: float,
) -> list[int]:
    where, asked = conditions  # as it was given, to be shown; and as SQLite gets it
    refused: list[str] = []
    ends = thread_time() + seconds

    def allow(action: int, subject: str | None, detail: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and subject == "quotes":
            read.add(detail or "")
        if action in _ACTIONS or (action == sqlite3.SQLITE_FUNCTION and str(detail).lower() in FUNCTIONS):
            return sqlite3.SQLITE_OK
        refused.append(f"the function {detail}" if action == sqlite3.SQLITE_FUNCTION else "more than reading quotes")
        return sqlite3.SQLITE_DENY

    def is_over() -> bool:
        if thread_time() > ends:
            refused.append(f"over {seconds:.0f} seconds of work; compare a quote with a number, not with all others")
        return bool(refused)

    with closing(sqlite3.connect(":memory:")) as calendar:
        for name in CLOCKS:
            table.create_function(name, -1, partial(_timeless, calendar, name, refused), deterministic=True)
        table.create_function("trim", 2, _trimmed, deterministic=True)
        table.set_authorizer(allow)
        # After the quotes were put in: a row may be longer than any text that is looked at.
        table.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_TEXT)
        table.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN)
        table.set_progress_handler(is_over, _LOOK_EVERY)
        try:
            # On lines of its own, so that a comment at the end of the condition comments out nothing of ours.
            return [row for (row,) in table.execute(f"SELECT _row FROM quotes WHERE (\n{asked}\n) ORDER BY _row")]
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if _code(error) == sqlite3.SQLITE_INTERRUPT and not refused:
                raise KeyboardInterrupt from error  # sqlite3 swallows what a progress handler raises
            raise UsageError(
                Argument("where"),
                f": {_cut(where)} is not a condition on these quotes: {_explained(error, refused)}. "
                f"{misspelt(where, columns, FUNCTIONS)}The columns are {_listed(columns)}.",
                where=where,
            ) from error


def _cut(where: str) -> str:
    return repr(where if len(where) <= SHOWN else f"{where[:SHOWN]}...")


def _listed(columns: Iterable[str]) -> str:
    names = sorted(columns)
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else "")


def _explained(error: Exception, refused: list[str]) -> str:
    if refused:
        return f"it asks for {refused[0]}"
    if _code(error) == sqlite3.SQLITE_TOOBIG:
        return f"it reads or makes up a text of more than {LONGEST_TEXT:,} characters"
    return str(error)


def _code(error: Exception) -> int | None:
    """Return the code of SQLite for an error; None for an error of another kind."""
    return getattr(error, "sqlite_errorcode", None)


def _timeless(calendar: sqlite3.Connection, name: str, refused: list[str], *given: Any) -> Any:
    """Return a function of SQLite's calendar, unless it asks for the time it is or the zone of the machine."""
    at = given[1:] if name == "strftime" else given
    if not at or any(isinstance(word, str) and word.lower() in ("now", "localtime", "utc") for word in at):
        refused.append(f"the time it is, by the function {name}; write the date out")
        raise ValueError(name)
    return calendar.execute(f"SELECT {name}({', '.join('?' * len(given))})", given).fetchone()[0]


def _trimmed(text: Any, signs: Any) -> Any:
    """SQLite's own takes a time that grows with both lengths multiplied."""
    return None if text is None or signs is None else str(text).strip(str(signs))


def _features(quotes: Quotes) -> dict[str, NDArray[Any]]:
    return dict(quotes.contracts.columns) if isinstance(quotes.contracts, Features) else {}


def _compared(label: NDArray[Any]) -> NDArray[Any]:
    """Return a label of texts that all are numbers as numbers, not-a-number if it is empty; any other unchanged.

    Leading zeros are part of a name: a label that has them stays text.
    """
    if label.dtype.kind not in "OUT":
        return label
    texts = {str(value) for value in label.tolist() if value is not None} - {""}
    if not texts or not all(_NUMBER.fullmatch(text) for text in texts):
        return label
    if all(_WHOLE.fullmatch(str(value)) for value in label.tolist()):
        return label.astype(np.int64)
    return np.array([float(value) if value not in (None, "") else np.nan for value in label.tolist()])


def _plain(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind == "M":
        days = array.astype("M8[D]")
        array = (days if (days == array).all() else array).astype(str)
    elif array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        array = array.astype(float)  # SQLite has no whole numbers so large
    plain: list[Any] = array.tolist()
    return plain


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
