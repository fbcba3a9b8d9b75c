"""Canonical JSON, from which digests and signatures are computed: one value has one string of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from strikeout.errors import RefusedError, UsageError

MOST_BYTES = 1 << 26  # read at once; the largest page of a real book has some megabytes
DEEPEST = 32  # lists and tables inside each other; a certificate has five
MOST_DIGITS = 64  # of a whole number, its sign included
_TOO_LONG = int("1" + "0" * (MOST_DIGITS - 1))


def canonical(value: Any) -> bytes:
    """Return the only way to write this value: JSON, keys sorted, no spaces, ASCII, no floating-point number.

    Texts, whole numbers, True, False, None, and lists and tables of these. The text of a floating-point number differs
    between libraries; write ``float.hex`` or the decimal text instead.

    >>> canonical({"b": (1, None), "a": "é"})
    b'{"a":"\\\\u00e9","b":[1,null]}'
    """
    _refuse_what_has_two_spellings(value, "the value", DEEPEST)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def parse(data: bytes, *, most: int = MOST_BYTES) -> Any:
    """Return the value of JSON in ASCII of unknown origin, in bounded time and memory."""
    if len(data) > most:
        raise ValueError(f"{len(data):,} bytes, and at most {most:,} are read")
    deep = f"more than {DEEPEST} lists and tables inside each other"
    try:
        value = json.loads(
            data.decode("ascii"), parse_int=_whole_number, parse_float=_no_number, parse_constant=_no_number
        )
    except RecursionError:
        raise ValueError(deep) from None
    within = [value]
    for _ in range(DEEPEST + 1):
        within = [inner for outer in within for inner in _within(outer)]
    if within:
        raise ValueError(deep)
    return value


def from_canonical(data: bytes) -> Any:
    """Return the value these bytes were written from, if they are in canonical form."""
    try:
        value = parse(data)
        same = canonical(value) == data
    except (ValueError, UsageError) as error:
        raise RefusedError(
            f"Canonical bytes: {len(data):,} bytes cannot be read ({error}).", count=len(data)
        ) from error
    if not same:
        raise RefusedError(
            f"Canonical bytes: {len(data):,} bytes are JSON, but not written in the one way (keys sorted and once, "
            "no spaces, ASCII). Ask for the original.",
            count=len(data),
        )
    return value


def _within(value: Any) -> Iterable[Any]:
    """Return the values inside a list or a table, and nothing inside any other."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _whole_number(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a whole number of {len(text):,} digits, and at most {MOST_DIGITS} are read")
    return int(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:MOST_DIGITS]} has more than one spelling")


def _is_plain(value: Any) -> bool:
    """Return True for what most values are: they are written without a sentence about their place being made."""
    return (type(value) is str and value.isascii()) or (type(value) is int and -_TOO_LONG < value < _TOO_LONG)


def _refuse_what_has_two_spellings(value: Any, place: str, depth: int) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        if abs(value) >= _TOO_LONG:
            raise UsageError(
                f"Canonical bytes: {place} has {MOST_DIGITS} digits or more. Write it as text.", place=place
            )
        return
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise UsageError(
                f"Canonical bytes: {place} is {value!r}, which is not Unicode text.", place=place, value=value
            )
        return
    if isinstance(value, dict | list | tuple) and not depth:
        raise UsageError(f"Canonical bytes: more than {DEEPEST} lists and tables inside each other.")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UsageError(
                    f"Canonical bytes: {place} has the key {key!r}; keys must be text.", place=place, key=key
                )
            if not key.isascii():
                _refuse_what_has_two_spellings(key, f"a key of {place}", depth)
            if not _is_plain(inner):
                _refuse_what_has_two_spellings(inner, f"{key!r}", depth - 1)
        return
    if isinstance(value, list | tuple):
        for row, inner in enumerate(value):
            if not _is_plain(inner):
                _refuse_what_has_two_spellings(inner, f"{place}[{row}]", depth - 1)
        return
    raise UsageError(
        f"Canonical bytes: {place} is {value!r} ({type(value).__name__}), which has more than one spelling or none. "
        "Write it as text (a floating-point number with float.hex).",
        place=place,
        value=value,
    )
