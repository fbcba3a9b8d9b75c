"""Inputs that are nearly right: seeds of a corpus, cut, doubled, crossed and sprinkled with what is known to hurt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from strikeout.assurance.canonical import canonical
from strikeout.errors import StrikeoutError

CORPUS = Path(__file__).parent / "corpus"
# What readers of text stumble over; each target adds words of its own language.
TOKENS = (
    b"", b"\0", b"\n", b"\r", b"\r\n", b'"', b"'", b'""', b",", b";", b"\t", b"|", b"(", b")", b"[", b"]", b"{", b"}",
    b"=", b"-", b"+", b"@", b".", b"..", b"%", b"_", b"\\", b"/", b"--", b"/*", b"*/", b"nan", b"NaN", b"inf", b"-inf",
    b"null", b"true", b"0", b"-0", b"1e309", b"-1e309", b"5e-324", b"1e-400", b"9" * 400, b"0x1p-1074", b"\xff",
    b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\x1b[2J", b"\xc2\xa0", b"2024-01-31",
    b"2024-13-01", b"9999-12-31", b"0000-00-00", b"[" * 3000, b"{" * 3000, b"(" * 300, b"x" * 5000, b"-99.99", b"now",
    b"18446744073709551616", b"9223372036854775808",
)  # fmt: skip
ODD = (
    None, True, False, 0, -1, 2**70, "", "x", "\0", "\x1b[2J", "nan", "inf", "0x1.8p+1", "0x1p-1074", "0" * 64,
    [], {}, [[]], [None], ["x", "x"], {"": ""}, {"x": None}, 1.5, "2024-01-31", "heston/native", "none",
)  # fmt: skip
CHANGES = ("insert", "insert", "replace", "replace", "flip", "delete", "repeat", "cross", "word")


def seeds(name: str) -> tuple[bytes, ...]:
    """The committed inputs of a target, in the order of their names."""
    return tuple(path.read_bytes() for path in sorted((CORPUS / name).iterdir()))


@st.composite
def mutated(draw: st.DrawFn, known: Sequence[bytes], words: Sequence[bytes] = ()) -> bytes:
    """A seed after up to eight changes; sometimes bytes of no seed at all."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200))
    data = draw(st.sampled_from(known))
    for _ in range(draw(st.integers(0, 8))):
        data = _changed(draw, data, known, (*TOKENS, *words))
    return data


def _changed(draw: st.DrawFn, data: bytes, known: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    begin = draw(st.integers(0, len(data)))
    end = min(len(data), begin + draw(st.sampled_from((0, 1, 1, 2, 4, 16, 100))))
    match draw(st.sampled_from(CHANGES)):
        case "insert":
            return data[:begin] + draw(st.sampled_from(tokens)) + data[begin:]
        case "replace":
            return data[:begin] + draw(st.sampled_from(tokens)) + data[end:]
        case "flip" if begin < len(data):
            return data[:begin] + bytes([data[begin] ^ (1 << draw(st.integers(0, 7)))]) + data[begin + 1 :]
        case "delete":
            return data[:begin] + data[end:]
        case "repeat":
            return data[:end] + data[begin:end] * draw(st.integers(1, 20)) + data[end:]
        case "cross":
            other = draw(st.sampled_from(known))
            return data[:begin] + other[min(begin, len(other)) :]
    parts = data.split(b",")  # a whole cell, key or word at a time
    at = draw(st.integers(0, len(parts) - 1))
    return b",".join([*parts[:at], draw(st.sampled_from(tokens)), *parts[at + 1 :]])


@st.composite
def mutated_json(draw: st.DrawFn, known: Sequence[bytes]) -> bytes:
    """A seed of JSON with up to four values, keys or items changed, in the one way it is written.

    Bytes that are not written in that way are refused at once; these come further.
    """
    content = json.loads(draw(st.sampled_from(known)))
    for _ in range(draw(st.integers(1, 4))):
        content = _other(draw, content)
    return _written(content)


def _written(content: Any) -> bytes:
    """The value in the one way it is written, or as plain JSON if it has none."""
    try:
        return canonical(content)
    except StrikeoutError:
        return json.dumps(content).encode()


def _other(draw: st.DrawFn, value: Any) -> Any:
    """The value with something inside it changed; the value itself at one in six steps on the way."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        if isinstance(value, str) and value.startswith("{") and draw(st.booleans()):
            return _written(_other(draw, json.loads(value))).decode()  # a plan holds a certificate as text
        return draw(st.sampled_from(ODD))
    if isinstance(value, list):
        at = draw(st.integers(0, len(value) - 1))
        match draw(st.sampled_from(("inside", "inside", "inside", "delete", "repeat"))):
            case "delete":
                return [*value[:at], *value[at + 1 :]]
            case "repeat":
                return [*value[:at], value[at], *value[at:]]
        return [*value[:at], _other(draw, value[at]), *value[at + 1 :]]
    name = draw(st.sampled_from(sorted(value)))
    match draw(st.sampled_from(("inside", "inside", "inside", "inside", "delete", "rename", "add"))):
        case "delete":
            return {key: held for key, held in value.items() if key != name}
        case "rename":
            return {("x" if key == name else key): held for key, held in value.items()}
        case "add":
            return {**value, "x": draw(st.sampled_from(ODD))}
    return {**value, name: _other(draw, value[name])}
