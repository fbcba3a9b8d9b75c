"""One value, one string of bytes: the JSON that digests and signatures are taken of."""

from __future__ import annotations

import json
from typing import Any

from strikeout.errors import RefusedError, UsageError


def canonical(value: Any) -> bytes:
    """The only way to write this value: JSON, keys sorted, no spaces, ASCII, no floating-point number.

    Texts, whole numbers, True, False, None, and lists and tables of these. The text of a floating-point number differs
    between libraries; write ``float.hex`` or the decimal text instead.

    >>> canonical({"b": (1, None), "a": "é"})
    b'{"a":"\\\\u00e9","b":[1,null]}'

    Raises:
        UsageError: the value holds a floating-point number, text that is no Unicode, a key that is no text, or
            anything that JSON has no word for.
    """
    _refuse_what_has_two_spellings(value, "the value")
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
    except ValueError as error:  # a whole number of more than 4,300 digits
        raise UsageError(f"Canonical bytes: {error}. Write such a number as text.") from error


def from_canonical(data: bytes) -> Any:
    """The value these bytes were written from, where they are written in the one way.

    Raises:
        RefusedError: they are no JSON, or JSON written in another way: damaged, or not ours.
    """
    try:
        value = json.loads(data.decode("ascii"))
        same = canonical(value) == data
    except (ValueError, RecursionError, UsageError) as error:
        raise RefusedError(f"Canonical bytes: {len(data):,} bytes cannot be read ({error}).") from error
    if not same:
        raise RefusedError(
            f"Canonical bytes: {len(data):,} bytes are JSON, but not written in the one way (keys sorted and once, "
            "no spaces, ASCII). Ask for the original."
        )
    return value


def _refuse_what_has_two_spellings(value: Any, place: str) -> None:
    if value is None or isinstance(value, bool | int):
        return
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise UsageError(f"Canonical bytes: {place} is {value!r}, which is no Unicode text.")
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UsageError(f"Canonical bytes: {place} has the key {key!r}; keys must be text.")
            _refuse_what_has_two_spellings(key, f"a key of {place}")
            _refuse_what_has_two_spellings(inner, f"{key!r}")
        return
    if isinstance(value, list | tuple):
        for row, inner in enumerate(value):
            _refuse_what_has_two_spellings(inner, f"{place}[{row}]")
        return
    raise UsageError(
        f"Canonical bytes: {place} is {value!r} ({type(value).__name__}), which has more than one spelling or none. "
        "Write it as text (a floating-point number with float.hex)."
    )
