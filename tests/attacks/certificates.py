"""Honest certificates of five kinds, and how an attacker rewrites one: every change is sealed again."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

import strikeout as so
from strikeout.assurance.certificate import Certificate

KINDS = ("recalibrated", "step", "moments", "panel", "panel step")


@dataclass(frozen=True)
class Issued:
    """A certificate, and the quotes it is to be checked against."""

    certificate: Certificate
    retained: so.Quotes


@cache
def issued(kind: str) -> Issued:
    """Returns an honest certificate of this kind."""
    if kind.startswith("panel"):
        panel = so.panel_quotes(days=4, seed=11)
        gone = panel.ids[panel.labels["day"] == 2]
        before = so.calibrate(panel, so.Heston(), panel="date")
        how = {"tolerance": 0.5} if kind == "panel step" else {}
        return Issued(so.forget(before, ids=gone, **how).certificate, panel.without(gone))
    book = so.random_quotes(120, maturities=4, seed=3)
    gone, kept = book.ids[:6], book[6:]
    if kind == "moments":
        done = so.forget(so.calibrate(so.moments_of(book), so.Heston()), quotes=book[:6])
        return Issued(done.certificate, kept)
    how = {"tolerance": 0.2} if kind == "step" else {}
    return Issued(so.forget(so.calibrate(book, so.Heston()), ids=gone, **how).certificate, kept)


def content_of(certificate: Certificate) -> dict[str, Any]:
    """The parts of a certificate, for an attacker to change."""
    return deepcopy({field.name: getattr(certificate, field.name) for field in fields(certificate)})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value inside a value is, tables and lists themselves included."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for row in range(min(len(value), 2)):
            yield from places(value[row], (*path, row))


def rewritten(content: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The content with another value at a place; a tuple on the way stays one."""
    first, rest = path[0], path[1:]
    if isinstance(content, dict):
        return {**content, first: value if not rest else rewritten(content[first], rest, value)}
    out = list(content)
    out[first] = value if not rest else rewritten(out[first], rest, value)
    return type(content)(out)  # type: ignore[return-value]


def odd_values(value: Any) -> list[Any]:
    """What an attacker would put in the place of a value."""
    if isinstance(value, bool):
        return [not value, None, "yes"]
    if isinstance(value, int):
        return [value + 1, 0, 10**9, -1, True, str(value)]
    if isinstance(value, str):
        out: list[Any] = ["", value + " ", None, 7, ["x"]]
        try:
            number = float.fromhex(value)
        except ValueError:
            return [*out, "huber", "vega", "otm", "enforce", "0" * len(value)]
        moved = [float(np.nextafter(number, np.inf)), -number, 1.05 * number, 1e300, 0.0]
        return [*out, "inf", "nan", *(x.hex() for x in moved if x.hex() != value)]
    if isinstance(value, dict):
        return [{}, {**value, "more": "x"}, [], None]
    if isinstance(value, list | tuple):
        return [type(value)(), type(value)([*value, "x"]), None]
    return [0, "x", {}, [], {"public": "0" * 64}]
