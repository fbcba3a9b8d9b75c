"""Check requested ids, and raise errors that name the ids with a problem."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from numpy.typing import ArrayLike

from strikeout.errors import UnknownIdError, UsageError
from strikeout.quotes.names import as_names
from strikeout.text import Advice, Mention, agreeing, many, part

IS = ("is", "are")


def distinct(ids: ArrayLike) -> list[str]:
    """Return the requested ids in the order given.

    Raises:
        UnknownIdError: an id is given twice.
        UsageError: the ids are not text, or one is empty.
    """
    asked: list[str] = as_names([ids] if isinstance(ids, str) else ids).tolist()
    if len(set(asked)) < len(asked):
        ordered = sorted(asked)
        twice = sorted({a for a, b in pairwise(ordered) if a == b})
        raise UnknownIdError(
            f"{many(len(twice), 'id')} {agreeing(len(twice), 'was', 'were')} given more than once: {_few(twice)}. "
            "Give each id once.",
            ids=twice,
        )
    return asked


def refuse_unknown(odd: Sequence[str], *, asked: int) -> None:
    """Raise UnknownIdError if an id is not in the book.

    Raises:
        UnknownIdError: an id is not in the book.
    """
    _refuse(odd, f"{part(len(odd), asked, 'id', verb=IS)} not in this book", Advice.TAKE_IDS, ".")


def refuse_struck(odd: Sequence[str], *, asked: int) -> None:
    """Raise UnknownIdError if an id is struck out already.

    Raises:
        UnknownIdError: an id is struck out already.
    """
    _refuse(odd, f"{part(len(odd), asked, 'id', verb=IS)} struck out already", "Leave them out.")


def refuse_retained(odd: Sequence[str], *, asked: int) -> None:
    """Raise UnknownIdError if an id is not struck out.

    Raises:
        UnknownIdError: an id is not struck out.
    """
    _refuse(odd, f"{part(len(odd), asked, 'id', verb=IS)} not struck out", "Leave them out.")


def refuse_present(odd: Sequence[str], *, given: int) -> None:
    """Raise UsageError if an id is in the book already.

    Raises:
        UsageError: an id is in the book already.
    """
    if odd:
        raise UsageError(
            f"{len(odd):,} of the {given:,} quotes have ids that are in the book already: {_few(odd)}. "
            "Leave them out, or give the new ones other ids.",
            ids=list(odd),
        )


def _refuse(odd: Sequence[str], what: str, *remedy: str | Mention) -> None:
    if odd:
        raise UnknownIdError(f"{what}: {_few(odd)}. ", *remedy, ids=list(odd))


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
