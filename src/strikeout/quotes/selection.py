"""From a condition to names: which quotes of a book a sentence in SQL means."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.quotes.features import Features
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes

Column = Callable[[], NDArray[Any]]

# A condition may look at the book and compute; it may not write, attach a file, load code or run for ever.
_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
# fmt: off
FUNCTIONS = frozenset({
    "abs", "avg", "ceil", "coalesce", "count", "date", "exp", "floor", "glob", "ifnull", "iif", "instr", "julianday",
    "length", "like", "ln", "lower", "max", "min", "nullif", "replace", "round", "sign", "sqrt", "strftime", "substr",
    "substring", "sum", "total", "trim", "upper",
})
# fmt: on
# Steps of SQLite's machine, of which a plain condition takes some twenty a quote: a join of the book with itself and
# itself again is stopped after a second or two. Steps, not seconds: what a condition means does not hang on a clock.
_STEPS, _STEPS_A_QUOTE, _LOOK_EVERY = 100_000_000, 100_000, 1_000_000
_TOO_LONG = "it takes too long; compare a quote with a number, not with every other quote"
_LONGEST_TEXT = 10_000_000  # characters; functions could make up a text that fills the memory
_ASIDE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_AFFINITY = {"f": "REAL", "i": "INTEGER", "u": "INTEGER", "b": "INTEGER"}


def select(quotes: Quotes, where: str, *, also: Iterable[str] = ()) -> Names:
    """The ids of the quotes for which a condition in SQL holds, in the order of the book.

    The condition sees the columns ``id, price, strike, right ('C' or 'P'), expiry_years, forward, discount, weight,
    spread, log_moneyness`` and every label by its name; in a book of features these instead of what only options have.
    A label whose every text is a number, as all are that come from a CSV, compares as numbers: 100 is not below 50.
    It can read and compute, nothing else.

    Args:
        also: labels that none of these quotes has though others had: NULL of each, so that a condition which once could
            be asked always can.

    Raises:
        UsageError: the condition is empty or no SQL, names an unknown column, one that is both a label and a column of
            the book, or asks for more than reading.

    >>> from strikeout.quotes.synthetic import paper_quotes
    >>> select(paper_quotes("small"), "date >= '2024-05-01' and strike = 90 and expiry_days < 40")[:2]
    array(['small-086-30-90', 'small-087-30-90'], dtype='<U16')
    """
    if not isinstance(where, str) or not where.strip():
        raise UsageError("where is empty. Give a condition, such as \"source = 'b' and strike > 120\".")
    own, labels = _columns(quotes), {**_features(quotes), **quotes.labels}
    there = {name.lower() for name in (*own, *labels)}
    labels |= {name: np.full(len(quotes), None, object) for name in also if name.lower() not in there}
    columns: dict[str, Column] = {**{name: partial(_compared, held) for name, held in labels.items()}, **own}
    _refuse_quoted_text(where, columns)
    _refuse_loose_ends(where)
    used = _used(where, columns)
    ambiguous = sorted(used & own.keys() & labels.keys())
    if ambiguous:
        raise UsageError(
            f"where: {ambiguous[0]!r} is both a column of every book and a label of this one. Rename the label.",
            column=ambiguous[0],
        )
    arrays = {name: columns[name]() for name in columns if name in used}
    with _table(where, arrays) as table:
        _stop_after(table, _STEPS + _STEPS_A_QUOTE * len(quotes))
        marks = ", ".join("?" * (len(arrays) + 1))
        rows = zip(range(len(quotes)), *(_plain(array) for array in arrays.values()), strict=True)
        table.executemany(f"INSERT INTO quotes VALUES ({marks})", rows)
        found = _ask(table, where, set(arrays), columns)
    return quotes.ids[np.array(found, np.intp)]


def _refuse_quoted_text(where: str, columns: dict[str, Column]) -> None:
    """SQLite reads a misspelt "column" in double quotes as a text, which no price equals and every number is below."""
    outside = re.sub(r"'(?:[^']|'')*'|--[^\n]*", "''", where)
    known = {name.lower() for name in columns}
    for name in re.findall(r'"((?:[^"]|"")*)"', outside):
        if name.replace('""', '"').lower() not in known:
            raise UsageError(
                f'where: "{name}" in double quotes names a column, and the columns are {", ".join(sorted(columns))}. '
                f"If it is a text, write '{name}'.",
                column=name,
            )


def _refuse_loose_ends(where: str) -> None:
    """A bracket that was never opened would end the condition, and what follows it would be a query of its own."""
    depth = 0
    for mark in re.findall(r"[()]", _ASIDE.sub(" ", where)):
        depth += 1 if mark == "(" else -1
        if depth < 0:
            raise UsageError(
                f"where: {where!r} is no condition: it closes a bracket that it did not open.", where=where
            )


def _used(where: str, columns: dict[str, Column]) -> set[str]:
    """The columns a condition reads: a million quotes with thirty labels are not copied to look at two."""
    with _table(where, {name: np.empty(0) for name in columns}) as table:
        read: set[str] = set()
        _ask(table, where, read, columns)
    return {name for name in columns if name in read}


@contextmanager
def _table(where: str, columns: dict[str, NDArray[Any]]) -> Iterator[sqlite3.Connection]:
    """An empty table of these columns in memory, closed again whatever happens."""
    kinds = "".join(f", {_quoted(name)} {_AFFINITY.get(c.dtype.kind, 'TEXT')}" for name, c in columns.items())
    connection = sqlite3.connect(":memory:")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)
    try:
        try:
            connection.execute(f"CREATE TABLE quotes (_row INTEGER PRIMARY KEY{kinds})")
        except sqlite3.Error as error:
            raise UsageError(f"where: {where!r} cannot be asked of this book: {error}. Rename the label.") from error
        yield connection
    finally:
        connection.close()


def _stop_after(table: sqlite3.Connection, steps: int) -> None:
    """Breaks off a question that takes more steps of SQLite's machine than these; so does Ctrl-C."""
    left = iter(range(steps // _LOOK_EVERY))
    table.set_progress_handler(lambda: next(left, None) is None, _LOOK_EVERY)


def _ask(table: sqlite3.Connection, where: str, read: set[str], columns: dict[str, Column]) -> list[int]:
    refused: list[str] = []

    def allow(action: int, subject: str | None, detail: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and subject == "quotes":
            read.add(detail or "")
        if action in _ACTIONS or (action == sqlite3.SQLITE_FUNCTION and str(detail).lower() in FUNCTIONS):
            return sqlite3.SQLITE_OK
        refused.append(f"the function {detail}" if action == sqlite3.SQLITE_FUNCTION else "more than reading quotes")
        return sqlite3.SQLITE_DENY

    table.set_authorizer(allow)
    try:
        # On lines of its own, so that a comment at the end of the condition comments out nothing of ours.
        return [row for (row,) in table.execute(f"SELECT _row FROM quotes WHERE (\n{where}\n) ORDER BY _row")]
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        found = f"it asks for {refused[0]}" if refused else _TOO_LONG if str(error) == "interrupted" else str(error)
        named = ", ".join(sorted(columns))
        raise UsageError(
            f"where: {where!r} is no condition on this book: {found}. The columns are {named}.", where=where
        ) from error


def _columns(quotes: Quotes) -> dict[str, Column]:
    c = quotes.contracts
    every: dict[str, Column] = {
        "id": lambda: quotes.ids,
        "price": lambda: quotes.observed,
        "weight": lambda: quotes.weight,
        "spread": lambda: quotes.spread,
    }
    if isinstance(c, Features):
        return every
    return every | {
        "strike": lambda: c.strike,
        "right": lambda: np.where(c.is_call, "C", "P"),
        "expiry_years": lambda: c.expiry,
        "forward": lambda: c.forward,
        "discount": lambda: c.discount,
        "log_moneyness": lambda: c.log_moneyness,
    }


def _features(quotes: Quotes) -> dict[str, NDArray[Any]]:
    return dict(quotes.contracts.columns) if isinstance(quotes.contracts, Features) else {}


def _compared(label: NDArray[Any]) -> NDArray[Any]:
    """A label of texts that all are numbers as numbers, not-a-number where it is empty; any other as it is.

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
    plain: list[Any] = (array.astype(str) if array.dtype.kind == "M" else array).tolist()
    return plain


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
