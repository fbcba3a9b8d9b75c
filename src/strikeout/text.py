"""Text for people: counts with their nouns, mentions of arguments and advice, escapes for control characters.

A message that names an argument of a call is read in Python and at the command line. It is therefore kept in parts.
A part that differs between the two is a ``Mention``: ``render`` spells mentions for Python, and ``cli.exit_codes``
spells them as options.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from types import EllipsisType
from typing import Any


class _Unnamed(Enum):
    UNNAMED = "no value"


UNNAMED = _Unnamed.UNNAMED


@dataclass(frozen=True)
class Argument:
    """An argument of the Python API, mentioned in a message.

    Args:
        value: the value that goes with it; ``...`` for a mapping that the reader fills in; none if only the name is
            mentioned.

    >>> str(Argument("panel")), str(Argument("panel", "date")), str(Argument("fixed", ...))
    ('panel', "panel='date'", 'fixed={...}')
    """

    name: str
    value: Any | EllipsisType = UNNAMED

    def __str__(self) -> str:
        if self.value is UNNAMED:
            return self.name
        if self.value is ...:
            return f"{self.name}={{...}}"
        return f"{self.name}={self.value:g}" if isinstance(self.value, float) else f"{self.name}={self.value!r}"

    def __hash__(self) -> int:
        return hash((self.name, repr(self.value)))


class Advice(Enum):
    """What to do next, if that is done differently in Python and at the command line; values are the Python text."""

    FIT_EACH = "Calibrate each (calibrate_many(quotes, model, by='underlying')), choose one"
    ADD_LABEL = "add it as a label (Quotes(..., labels={...}))"
    NAME_LATENT = "Give the model an attribute latent with that parameter's name, or leave panel out"
    RENAME_FILE = "Rename it, or give a DataFrame"
    STRIKE_OUT = "quotes.without(error.ids)"
    TAKE_IDS = "Take ids from quotes.ids"

    def __str__(self) -> str:
        return self.value


Mention = Argument | Advice


def render(parts: Iterable[str | Mention]) -> str:
    """Return a message for a reader of Python.

    >>> render(["Give ", Argument("through", "quotes"), "."])
    "Give through='quotes'."
    """
    return "".join(map(str, parts))


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return a question with the name most like this one, with a space before it; "" if none is like it.

    >>> did_you_mean("sorce", ["source", "date"]), did_you_mean("x", ["source"])
    (' Did you mean source?', '')
    """
    by_case = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), list(by_case), n=1, cutoff=cutoff)
    return f" Did you mean {by_case[found[0]]}?" if found else ""


def first_line(error: BaseException) -> str:
    """Return the first line of another library's message, without its full stop.

    >>> first_line(ValueError("not a number.\\nsee the manual"))
    'not a number'
    """
    return next(iter(str(error).splitlines()), "").strip().rstrip(".")


def many(count: int, one: str, several: str | None = None) -> str:
    """Return a count with its noun.

    Args:
        several: the plural, if it is not ``one`` with an s.

    >>> many(1, "quote"), many(0, "quote"), many(12_000, "entry", "entries")
    ('1 quote', '0 quotes', '12,000 entries')
    """
    return f"{count:,} {agreeing(count, one, several or f'{one}s')}"


def spans(numbers: Iterable[int]) -> str:
    """Return ascending numbers in words, neighbours as one span.

    >>> spans([2, 5, 6, 7, 9])
    '2, 5 to 7, 9'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return ", ".join(" to ".join(map(str, span)) for span in found)


def agreeing(count: int, one: str, several: str) -> str:
    """Return the form of a verb or a noun for this count.

    >>> f"{many(1, 'quote')} {agreeing(1, 'is', 'are')} new"
    '1 quote is new'
    """
    return one if count == 1 else several


def duration(years: float) -> str:
    """Return a time to expiry in words.

    >>> duration(1 / 365), duration(0.25), duration(2.0)
    ('1 day', '91 days', '2 years')
    """
    days = years * 365
    number, unit = (f"{days:.0f}" if days > 9.5 else f"{days:.2g}", "day") if days < 360 else (f"{years:.3g}", "year")
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


def part(count: int, total: int, one: str, *, verb: tuple[str, str]) -> str:
    """Return the beginning of a sentence about some of all that were given.

    >>> part(2, 3, "id", verb=("is", "are")), part(1, 3, "id", verb=("is", "are")), part(1, 1, "id", verb=("is", "are"))
    ('2 of the 3 ids given are', '1 of the 3 ids given is', 'The id given is')
    """
    who = f"The {one} given" if total == 1 else f"{count:,} of the {total:,} {one}s given"
    return f"{who} {agreeing(count, *verb)}"


def printable(text: str) -> str:
    r"""Return a text with an escape for every character that does not print, such as line breaks and terminal codes.

    Ids and labels come from files of others, and a terminal obeys what is written to it.

    >>> printable("\x1b[2Jgone\u202e"), printable("Zürich 5 %"), printable("two\nlines")
    ('\\x1b[2Jgone\\u202e', 'Zürich 5 %', 'two\\nlines')
    """
    if text.isprintable():
        return text
    return "".join(sign if _prints(sign) else repr(sign)[1:-1] for sign in text)


def as_lines(lines: Iterable[str]) -> str:
    r"""Return lines one below the other, each ``printable``: a line break inside one cannot make up another.

    >>> as_lines(["label desk  a\nverified  yes", "quotes  2"])
    'label desk  a\\nverified  yes\nquotes  2'
    """
    return "\n".join(map(printable, lines))


def _prints(sign: str) -> bool:
    return sign.isprintable() or unicodedata.category(sign) == "Zs"  # blanks of other widths are blanks
