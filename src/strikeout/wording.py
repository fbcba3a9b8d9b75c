"""Words on a screen: one quote is a quote and two are quotes, and no character of the data moves the cursor."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def many(count: int, one: str, several: str | None = None) -> str:
    """So many of something, in words.

    Args:
        several: the plural, where it is not ``one`` with an s.

    >>> many(1, "quote"), many(0, "quote"), many(12_000, "entry", "entries")
    ('1 quote', '0 quotes', '12,000 entries')
    """
    return f"{count:,} {agreeing(count, one, several or f'{one}s')}"


def agreeing(count: int, one: str, several: str) -> str:
    """The form that a verb or a noun takes with so many.

    >>> f"{many(1, 'quote')} {agreeing(1, 'is', 'are')} new"
    '1 quote is new'
    """
    return one if count == 1 else several


def part(count: int, total: int, one: str, *, verb: tuple[str, str]) -> str:
    """So many of all that were given, and what they do; to begin a sentence with.

    >>> part(2, 3, "id", verb=("is", "are")), part(1, 3, "id", verb=("is", "are")), part(1, 1, "id", verb=("is", "are"))
    ('2 of the 3 ids given are', '1 of the 3 ids given is', 'The id given is')
    """
    who = f"The {one} given" if total == 1 else f"{count:,} of the {total:,} {one}s given"
    return f"{who} {agreeing(count, *verb)}"


def printable(text: str) -> str:
    r"""A text with an escape for every character that does not print: line breaks, terminal codes, marks of direction.

    What quotes are called comes from files of others, and a terminal obeys what is written to it.

    >>> printable("\x1b[2Jgone\u202e"), printable("Zürich 5 %"), printable("two\nlines")
    ('\\x1b[2Jgone\\u202e', 'Zürich 5 %', 'two\\nlines')
    """
    if text.isprintable():
        return text
    return "".join(sign if _prints(sign) else repr(sign)[1:-1] for sign in text)


def as_lines(lines: Iterable[str]) -> str:
    r"""Lines one below the other, each ``printable``: no line break inside one can make up another.

    >>> as_lines(["label desk  a\nverified  yes", "quotes  2"])
    'label desk  a\\nverified  yes\nquotes  2'
    """
    return "\n".join(map(printable, lines))


def _prints(sign: str) -> bool:
    return sign.isprintable() or unicodedata.category(sign) == "Zs"  # blanks of other widths are blanks
