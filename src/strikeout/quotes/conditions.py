"""Rewrite a condition so that it means what it looks like: dates are dates, ``/`` divides, other names of columns work.

    date > 2022-05-01           date > '2022-05-01'         an unquoted date is not a subtraction
    date = '2011-10-1'          date = '2011-10-01'         dates are stored as YYYY-MM-DD and compared as text
    expiry_years < 7/365        expiry_years < 7* 1.0 /365  SQLite would divide whole numbers to 0
    symbol = 'SPX'              underlying = 'SPX'          any name under which a file may have a column

What could mean two things is refused with the remedy: a day-month order, a number compared with a date.

Conditions (``where``) and groups (``by``) use the same names of columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.quotes.contracts import Features
from strikeout.text import Argument, did_you_mean

if TYPE_CHECKING:
    from strikeout.quotes.columns import Column as FileColumn
    from strikeout.quotes.quotes import Quotes


class Column:
    """A column that a condition may read; its values are computed when they are first asked for, and once."""

    def __init__(self, compute: Callable[[], NDArray[Any]]) -> None:
        self._compute = compute

    def __call__(self) -> NDArray[Any]:
        return self._values

    @cached_property
    def _values(self) -> NDArray[Any]:
        return self._compute()

    @cached_property
    def holds_dates(self) -> bool:
        """Whether every value is a date or empty, and not all are empty."""
        values = self._values
        if values.dtype.kind == "M":
            return True
        if values.dtype.kind not in "OUT":
            return False
        texts = {value for value in values.tolist() if value not in (None, "")}
        return bool(texts) and all(isinstance(text, str) and _is_iso(text) for text in texts)


DAYS_PER_YEAR = 365.0


def own_columns(quotes: Quotes) -> dict[str, Column]:
    """Return the columns that all quotes have, whatever their labels."""
    c, ids, observed, weight, spread = quotes.contracts, quotes.ids, quotes.observed, quotes.weight, quotes.spread
    every: dict[str, Callable[[], NDArray[Any]]] = {  # none keeps the quotes themselves: a kept column may outlive them
        "id": lambda: ids,
        "price": lambda: observed,
        "weight": lambda: weight,
        "spread": lambda: spread,
    }
    if not isinstance(c, Features):
        every |= {
            "strike": lambda: c.strike,
            "right": lambda: np.where(c.is_call, "C", "P"),
            "expiry_years": lambda: c.expiry,
            "forward": lambda: c.forward,
            "discount": lambda: c.discount,
            "log_moneyness": lambda: c.log_moneyness,
        }
    return {name: Column(compute) for name, compute in every.items()}


def computed_columns(quotes: Quotes) -> dict[str, Column]:
    """Return columns that are computed from others, unless a label has the name: days, strike over forward, month."""
    c, labels = quotes.contracts, quotes.labels
    if isinstance(c, Features):
        return {}
    made: dict[str, Callable[[], NDArray[Any]]] = {
        "is_call": lambda: c.is_call,
        "maturity": lambda: c.expiry * DAYS_PER_YEAR,
        "moneyness": lambda: c.strike / c.forward,
    }
    if "date" in labels:
        made["month"] = lambda: np.array([str(day)[:7] for day in labels["date"].tolist()], dtype=object)
    taken = {name.lower() for name in labels}
    return {name: Column(compute) for name, compute in made.items() if name not in taken}


def full_name(name: str, known: Iterable[str]) -> str | None:
    """Return the column that a name means: the name itself in any case, or the column of which it is another name."""
    by_case = {one.lower(): one for one in known}
    if name.lower() in by_case:
        return by_case[name.lower()]
    from strikeout.quotes.columns import ALIASES, label_name

    for role, names in ALIASES.items():
        if name.lower() in (role, *names) and label_name(role).lower() in by_case:
            return by_case[label_name(role).lower()]
    return None


def header_names(columns: Iterable[FileColumn]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the columns of a file mean in a condition, and why the others cannot be used, by header.

    A column that only calls or only puts have is empty for the other side. If a header is repeated for puts, as in
    "Bid" and "Bid (2)", the first means both sides, as the name bid does.
    """
    from strikeout.quotes.columns import label_name

    meant: dict[str, list[FileColumn]] = {}
    for column in columns:
        if column.name != "-":
            meant.setdefault(column.name, []).append(column)
    names, reasons = {}, {}
    for header, found in meant.items():
        roles = [column.role for column in found if column.role is not None]
        if len(roles) > 1:
            reasons[header] = f"is read as {', '.join(map(label_name, roles))}. Use these names"
        elif roles:
            label = f'"{label_name(roles[0])}"'
            side = "" if f"{header} (2)" in meant else found[0].side
            names[header] = f"iif(\"right\" = '{side}', {label}, NULL)" if side else label
        elif not found[0].is_kept:
            reasons[header] = "is left out when this file is read"
    return names, reasons


def by_plain_header(names: Mapping[str, str]) -> dict[str, str]:
    """Return the mapping with headers in lower case, as they are and with underscores for blanks."""
    exact = {header.strip().lower(): value for header, value in names.items()}
    return {header.replace(" ", "_"): value for header, value in exact.items()} | exact


_TOKEN = re.compile(
    r"(?P<aside>--[^\n]*|/\*.*?(?:\*/|$))"
    r"|(?P<text>'(?:[^']|'')*(?:'|$))"
    r"|(?P<name>\"(?:[^\"]|\"\")*(?:\"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$)|[A-Za-z_]\w*)"
    r"|(?P<date>\d{4}([-/.])\d{1,2}\5\d{1,2}(?![\w.]))"
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)"
    r"|(?P<sign><=|>=|<>|!=|==|\|\||[-+*/%<>=(),.])"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_COMPARE = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}  # and mirrored
_NUMERIC = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{4})(\d{2})(\d{2})")
_AMBIGUOUS = re.compile(r"\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})")
_PART = re.compile(r"\d{4}(-\d{2})?")
_SPELLED = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%d-%b-%Y", "%d%b%Y", "%d %B, %Y")
_KEYWORDS = (
    "and", "or", "not", "in", "is", "null", "between", "like", "glob", "escape", "case", "when", "then", "else", "end",
    "cast", "as", "select", "from", "where", "exists", "true", "false",
)  # fmt: skip
_UNFINISHED = ("and", "or", "not", "in", "is", "between", "like", "glob")  # words that something must follow
_ENDS = {"'": "'", '"': '"', "`": "`", "[": "]"}
MOST_VALUES = 10  # of a label, in a sentence


@dataclass
class _Token:
    kind: str
    text: str


@dataclass(frozen=True)
class Unmatched:
    """A text in a condition that no quote has in that column; ``nearest`` are the values most like it."""

    column: str
    text: str
    values: tuple[str, ...]
    nearest: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.values[:MOST_VALUES])
        more = f" and {len(self.values) - MOST_VALUES:,} more" if len(self.values) > MOST_VALUES else ""
        meant = f" Did you mean {' or '.join(map(repr, self.nearest))}?" if self.nearest else ""
        return f"No quote has {self.column} {self.text!r}; the values are {shown or 'empty'}{more}.{meant}"


def typed(where: str, columns: Mapping[str, Column]) -> str:
    """Return the condition with dates as dates, ``/`` as a division, and other names of columns replaced."""
    tokens = [_Token(str(found.lastgroup), found[0]) for found in _TOKEN.finditer(where)]
    words = [token for token in tokens if token.kind not in ("aside", "space")]
    _rename(words, columns)
    by_name = {name.lower(): column for name, column in columns.items()}
    for place, token in enumerate(words):
        if _is_date(words, place, by_name):
            for literal, sign in _compared_with(words, place):
                _write_date(literal, sign, token.text)
    for token in words:
        if token.kind == "date":
            raise UsageError(
                Argument("where"),
                f": {token.text} is not compared with a date. Write '{token.text}' if it is one, or "
                f"{' - '.join(re.split('[-/.]', token.text))} with spaces if it is a number.",
                text=token.text,
            )
        if token.kind == "sign" and token.text == "/":
            token.text = "* 1.0 /"  # whole numbers would be divided to a whole number
    return "".join(token.text for token in tokens)


def unmatched(where: str, columns: Mapping[str, Column]) -> list[Unmatched]:
    """Return the texts of a condition that are compared with a column for equality and that no quote has there."""
    words = [_Token(str(t.lastgroup), t[0]) for t in _TOKEN.finditer(where) if t.lastgroup not in ("aside", "space")]
    _rename(words, columns)
    names = {name.lower(): name for name in columns}
    found = []
    for place, token in enumerate(words):
        name = names.get(_plain(token)) if token.kind == "name" else None
        if name is None:
            continue
        for literal, sign in _compared_with(words, place):
            if literal.kind != "text" or sign not in ("=", "in"):
                continue
            values = distinct_texts(columns[name]())
            text = literal.text[1:-1].replace("''", "'")
            if text not in values:
                found.append(Unmatched(name, text, tuple(values), _nearest(text, values)))
    return found


def _nearest(text: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return the values most like a text: of dates those before and after it, of other texts those spelt like it."""
    try:
        day = date.fromisoformat(text).toordinal()
        days = {date.fromisoformat(value).toordinal() - day: value for value in values}
    except ValueError:
        by_case = {value.lower(): value for value in values}
        return tuple(by_case[one] for one in get_close_matches(text.lower(), list(by_case), n=3, cutoff=0.6))
    before, after = (away for away in days if away < 0), (away for away in days if away > 0)
    ends = [max(before, default=None), min(after, default=None)]
    return tuple(days[away] for away in sorted(filter(None, ends), key=abs))


def misspelt(where: str, columns: Iterable[str], functions: Iterable[str]) -> str:
    """Return a question for the first name in a condition that is like a column's; "" if there is none."""
    columns = list(columns)
    others = {*(column.lower() for column in columns), *functions, *_KEYWORDS}
    names = [_plain(_Token("name", found[0])) for found in _TOKEN.finditer(where) if found.lastgroup == "name"]
    for name in (name for name in names if name not in others):
        meant = did_you_mean(name, columns, cutoff=0.7).strip()
        if meant:
            return f"{meant.removesuffix('?')} for {name}? "
    return ""


def check_closed(where: str, shown: str) -> None:
    """Raise UsageError if a quotation mark, a bracket or a comment of a condition is not closed, or it ends too early.

    A bracket that was never opened would end the condition, and what follows it would be a query of its own.

    Args:
        shown: the condition in the message.
    """
    words = [_Token(str(t.lastgroup), t[0]) for t in _TOKEN.finditer(where) if t.lastgroup != "space"]
    depth, problem = 0, ""
    for token in words:
        ends = _ENDS.get(token.text[:1]) if token.kind in ("text", "name") else None
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "sign" else 0
        if ends is not None and (len(token.text) < 2 or not token.text.endswith(ends)):
            problem = f"the quotation mark {token.text[0]} is not closed: {token.text[:40]}"
        elif token.kind == "aside" and token.text.startswith("/*") and not token.text.endswith("*/"):
            problem = "the comment /* is not closed"
        elif depth < 0:
            problem = "it closes a bracket that it did not open"
        if problem:
            break
    last = next((token for token in reversed(words) if token.kind != "aside"), None)
    if not problem and depth > 0:
        problem = "a bracket ( is not closed"
    elif (
        not problem
        and last is not None
        and ((last.kind == "sign" and last.text != ")") or (last.kind == "name" and _plain(last) in _UNFINISHED))
    ):
        problem = f"it ends with {last.text}, and something must follow"
    if problem:
        raise UsageError(Argument("where"), f": {shown} is not a condition: {problem}.", where=where)


def with_headers(where: str, names: Mapping[str, str], reasons: Mapping[str, str], known: Iterable[str]) -> str:
    """Return a condition in which the headers of a file are replaced by what they mean.

    Args:
        names: the meaning of each header in SQL, and ``reasons`` why a header has none, as ``header_names`` finds them.
        known: names that have a meaning without the file, which come first.
    """
    known = list(known)
    meaning, without = by_plain_header(names), by_plain_header(reasons)
    tokens = [_Token(str(found.lastgroup), found[0]) for found in _TOKEN.finditer(where)]
    words = [token for token in tokens if token.kind not in ("aside", "space")]
    for place, token in enumerate(words):
        if token.kind != "name" or _plain(token) in _KEYWORDS or _follows(words, place, "("):
            continue
        name = _plain(token)
        if full_name(name, known) is not None:
            continue
        if name in without:
            raise UsageError(Argument("where"), f": the column {token.text} {without[name]}.", column=name)
        token.text = meaning.get(name, token.text)
    return "".join(token.text for token in tokens)


def _plain(token: _Token) -> str:
    """Return a name without quotation marks, in lower case."""
    text = token.text
    if text[0] in '"`[':
        text = text[1:].removesuffix({"[": "]"}.get(text[0], text[0])).replace('""', '"')
    return text.lower()


def _rename(words: list[_Token], columns: Mapping[str, Column]) -> None:
    """Replace other names of a canonical column, such as symbol or expiration, by the name it has here."""
    known = {name.lower() for name in columns}
    for place, token in enumerate(words):
        if token.kind != "name" or _plain(token) in known or _plain(token) in _KEYWORDS or _follows(words, place, "("):
            continue
        target = full_name(_plain(token), columns)
        if target is not None:
            token.text = '"' + target + '"'


def _follows(words: list[_Token], place: int, sign: str) -> bool:
    return place + 1 < len(words) and words[place + 1].text == sign


def _is_date(words: list[_Token], place: int, columns: Mapping[str, Column]) -> bool:
    """Return whether this word is a column that is compared with something and holds dates; names are in lower case."""
    token = words[place]
    column = columns.get(_plain(token)) if token.kind == "name" and not _follows(words, place, "(") else None
    return column is not None and next(_compared_with(words, place), None) is not None and column.holds_dates


def _is_iso(text: str) -> bool:
    try:
        return len(text) == 10 and text[4] == text[7] == "-" and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _compared_with(words: list[_Token], place: int) -> Iterator[tuple[_Token, str]]:
    """Yield the literals that the column at this place is compared with, and the sign with the column on its left."""

    def literal(at: int) -> bool:
        return 0 <= at < len(words) and words[at].kind in ("text", "date", "number")

    after = place + 1
    if after < len(words) and words[after].kind == "name" and _plain(words[after]) == "not":
        after += 1
    if after >= len(words):
        after = place
    word = words[after]
    if word.kind == "sign" and word.text in _COMPARE and literal(after + 1):
        yield words[after + 1], {"==": "=", "<>": "!="}.get(word.text, word.text)
    elif word.kind == "name" and _plain(word) == "is" and literal(after + 1):
        yield words[after + 1], "="
    elif word.kind == "name" and _plain(word) == "between":
        for at, sign in ((after + 1, ">="), (after + 3, "<=")):
            if literal(at):
                yield words[at], sign
    elif word.kind == "name" and _plain(word) == "in" and _follows(words, after, "("):
        at = after + 2
        while literal(at):
            yield words[at], "in"
            at += 2
    before = place - 1
    if before >= 1 and words[before].text == ".":
        before -= 2  # quotes.date
    if before >= 1 and words[before].kind == "sign" and words[before].text in _COMPARE and literal(before - 1):
        yield words[before - 1], _COMPARE[words[before].text]


def _write_date(literal: _Token, sign: str, column: str) -> None:
    """Rewrite a literal that is compared with a date as the text of that date."""
    text = literal.text[1:-1] if literal.kind == "text" else literal.text
    if literal.kind == "text" and (not text or (_PART.fullmatch(text) and sign in ("<", ">="))):
        return  # an unknown date; or '2022-05', which as text is before its first day and after the month before
    day = _day(text)
    if day is None:
        if _AMBIGUOUS.fullmatch(text):
            why = "can be read as day and month in two orders"
        elif _PART.fullmatch(text) and literal.kind == "text":
            why = "is not a day, and only < and >= have a meaning for it"
        else:
            why = "is not a date" if literal.kind != "number" else "is a number, and dates are compared with dates"
        raise UsageError(
            Argument("where"),
            f": {literal.text}, compared with {column}, {why}. Write it as '2022-05-31'.",
            text=text,
            column=column,
        )
    literal.kind, literal.text = "text", f"'{day}'"


def _day(text: str) -> date | None:
    """Return the day in one of the usual spellings in which the order of day and month is certain."""
    found = _NUMERIC.fullmatch(text.strip())
    try:
        if found:
            year, _, month, day, *compact = found.groups()
            return date(*map(int, (year, month, day) if year else compact))
    except ValueError:
        return None
    for form in _SPELLED:
        try:
            return datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    return None


def distinct_texts(column: NDArray[Any]) -> list[str]:
    """Return the distinct values of a column as text, sorted."""
    return sorted({str(value) for value in np.asarray(column).tolist() if value not in (None, "")})


def literal(value: Any) -> str:
    """Return a value as it is written in a condition.

    >>> literal("it's"), literal(2.5)
    ("'it''s'", '2.5')
    """
    known = value.item() if hasattr(value, "item") else value
    if isinstance(known, (int, float)) and not isinstance(known, bool):
        return repr(known)
    return "'" + str(known).replace("'", "''") + "'"
