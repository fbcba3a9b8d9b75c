"""What the keys of a profile may hold, checked before anything is read by it, so that a wrong one has a remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import time
from math import isfinite
from typing import Any

import polars as pl

from strikeout.errors import UsageError
from strikeout.quotes.toml_files import shown

CLOCKS = {"epoch-s": 10**9, "epoch-ms": 10**6, "epoch-us": 10**3, "epoch-ns": 1}  # nanoseconds a unit
DAYS = ("quote_date", "expiry")
MONTHS = frozenset(map(str, range(1, 13)))

Test = Callable[[Any], bool]
Shape = tuple[Test, str]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_value(value: Any) -> bool:
    return _is_text(value) or _is_number(value)


def _are(test: Test) -> Test:
    return lambda value: isinstance(value, list | tuple) and all(map(test, value))


def _table(test: Test) -> Test:
    return lambda value: isinstance(value, Mapping) and all(map(test, value.values()))


def _is_pattern(value: Any) -> bool:
    """Return a regular expression with a group, in the syntax that takes linear time."""
    return _is_text(value) and _works(lambda: pl.Series([""]).str.extract_groups(value).struct.unnest().columns[0])


def _is_found(value: Any) -> bool:
    return _is_text(value) and _works(lambda: pl.Series([""]).str.extract(f"({value})"))


def _is_format(value: Any) -> bool:
    return value in ("", *CLOCKS) or (
        _is_text(value) and _works(lambda: pl.Series(["2024-01-31"]).str.to_date(value, strict=False))
    )


def _is_hour(value: Any) -> bool:
    return _is_text(value) and _works(lambda: time.fromisoformat(value))


def _works(trial: Callable[[], object]) -> bool:
    try:
        trial()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, IndexError):
        return False
    return True


PATTERN = "a regular expression with a group, without look-around"
TEXT: Shape = (_is_text, "a text")
TEXTS: Shape = (_are(_is_text), "a list of texts")
TABLE: Shape = (lambda value: isinstance(value, Mapping), "a table")
HOUR: Shape = (_is_hour, "a time such as 09:30")
PROFILE: Mapping[str, Shape] = {
    "name": (lambda value: _is_text(value) and value != "", "a text"),
    "title": TEXT,
    "documented": TEXT,
    "symbol": TEXT,
    "header": TEXTS,
    "labels": TEXTS,
    "columns": TABLE,
    "calls": TABLE,
    "puts": TABLE,
    "constants": (_table(_is_value), "a table of texts and numbers"),
    "by_class": (
        _table(_table(lambda value: _is_text(value) or _are(_is_text)(value))),
        'a table of tables such as { E = ["SPX"], otherwise = "A" }',
    ),
    "coin": TABLE,
    "preamble": TABLE,
    "time": TABLE,
}
ORIGIN: Mapping[str, Shape] = {
    "column": (
        lambda value: _is_text(value) or (_are(_is_text)(value) and len(value) > 0),
        "the name of a column, or a list of names",
    ),
    "optional": (lambda value: isinstance(value, bool), "true or false"),
    "divide": (lambda value: _is_number(value) and value > 0, "a number above zero"),
    "format": (_is_format, f"a form of dates such as %d.%m.%Y, or one of {', '.join(CLOCKS)}"),
    "sentinels": (_are(_is_number), "a list of numbers"),
    "values": (_table(_is_value), "a table of texts and numbers"),
    "drop": TEXT,
    "before": (lambda value: value in ("", *DAYS), f"one of {', '.join(DAYS)}"),
    "extract": (lambda value: value == "" or _is_pattern(value), PATTERN),
    "unless": TEXTS,
}
COIN: Mapping[str, Shape] = {"column": TEXT, "values": TEXTS, "classes": TEXTS}
PREAMBLE: Mapping[str, Shape] = {
    "spot": (_is_pattern, PATTERN),
    "stamp": (_is_found, "a regular expression, without look-around"),
    "opens": HOUR,
    "closes": HOUR,
    "months": (
        lambda value: _table(_are(_is_text))(value) and set(value) <= MONTHS,
        "a table of lists of names, from 1 to 12",
    ),
}


def check_shapes(where: str, given: Any, shapes: Mapping[str, Shape]) -> None:
    """Raise UsageError unless every key is known and holds what it must; ``where`` is the place, for the error."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f"profile {where}: {shown(given)} is not a table. Give a table of {', '.join(shapes)}.", profile=where
        )
    for key, value in given.items():
        if key not in shapes:
            raise UsageError(
                f"profile {where}: {key!r} is none of the keys: {', '.join(shapes)}.", profile=where, unknown=[key]
            )
        test, wanted = shapes[key]
        if not test(value):
            raise UsageError(f"profile {where}: {key} is {shown(value)}; give {wanted}.", profile=where, key=key)
