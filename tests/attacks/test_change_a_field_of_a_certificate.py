"""An attacker changes one field of an honest certificate, seals it again, and wants the same verdict on it.

Every leaf of every kind of certificate is changed, removed and joined by an unknown one. The verdict must change, or
the field must be one of those listed here, of which nothing in the quotes can tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from hashlib import sha256
from typing import Any

import pytest

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.assurance.verify import Verification
from tests.attacks.certificates import issued

KINDS = ("recalibrated", "step", "moments", "panel", "panel step")
Path = tuple[str | int, ...]

# What the retained quotes cannot tell. A signature covers all of it; each is shown as stated, not as found.
STATED: dict[Path, str] = {
    ("counts", "forgotten"): "how many quotes went is not in those that stayed",
    ("operator",): "another road to the same parameters",
    ("software",): "the issuer's version",
    ("build", "kernel"): "the issuer's machine",
    ("build", "machine"): "the issuer's machine",
    ("build", "numpy"): "the issuer's machine",
    ("build", "python"): "the issuer's machine",
}

# A claim that is weaker than the honest one and true as well: verified as the claim it is, with its own number.
WEAKER: dict[Path, str] = {
    ("claims", "OPTIMUM", "tolerance"): "within a little more of the optimum; more than 1 is refused",
}


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """The way to every value inside that holds no other."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inside:
        yield path
    for key, held in inside:
        yield from leaves(held, (*path, key))


def tables(value: Any, path: Path = ()) -> Iterator[Path]:
    """The way to every table, the whole among them."""
    if isinstance(value, dict):
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inside:
        yield from tables(held, (*path, key))


def others(value: Any) -> list[Any]:
    """Other values in the place of a leaf: near it in its own form, where it has one, and of other forms."""
    if isinstance(value, bool):
        return [not value, 1, None]
    if isinstance(value, int):
        return [value + 1, max(0, value - 1) or value + 2, str(value)]
    if isinstance(value, str):
        try:
            number = float.fromhex(value) if value.lstrip("-").startswith("0x") else None
        except ValueError:
            number = None
        if number is not None:
            return [(number * (1.0 + 2.0**-50)).hex(), (1.01 * number).hex(), (-number).hex(), number]
        if len(value) == 64:
            return [("0" if value[0] != "0" else "1") + value[1:], value[:-1], value.upper()]
        known = {"price": "implied_vol", "given": "vega", "all": "otm", "squared": "huber", "quotes": "moments"}
        return [known.get(value, f"{value}x"), "", None]
    if isinstance(value, dict):
        return [{"correlation": (0.5).hex()}, {"correlation": [(-0.5).hex(), (0.5).hex()]}, [], None]
    if isinstance(value, list):
        return [[0], [(0.5).hex()], {}, None]
    return [(1.0).hex(), 0, "x"]


def at(content: Any, path: Path) -> Any:
    for key in path:
        content = content[key]
    return content


def changed(content: dict[str, Any]) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Every change: what was done, where, and the certificate after it."""
    for path in leaves(content):
        for value in others(at(content, path)):
            made = deepcopy(content)
            at(made, path[:-1])[path[-1]] = value
            yield f"changed to {value!r}", path, made
        made = deepcopy(content)
        del at(made, path[:-1])[path[-1]]
        yield "removed", path, made
    for path in tables(content):
        made = deepcopy(content)
        at(made, path)["unknown"] = "x"
        yield "unknown field", path, made


def sealed(content: dict[str, Any]) -> bytes:
    """The bytes of a certificate of this content, with the seal that belongs to it."""
    bare = {name: value for name, value in content.items() if name != "seal"}
    return canonical({**bare, "seal": sha256(canonical(bare)).hexdigest()})


def verdict(found: Verification) -> tuple[object, ...]:
    """All that a reader is told was found; what is only stated is left out."""
    three = (found.state_is_right, found.parameters_follow, found.is_optimum)
    return (found.holds, *three, found.laid_down, found.silent, found.headline)


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_can_be_changed_under_the_same_verdict(kind):
    data, retained = issued(kind).certificate.to_bytes(), issued(kind).retained
    content = json.loads(data)
    assert sealed(content) == data  # or every change below would be refused for its seal alone
    honest = so.verify(data, retained)
    assert honest.holds
    del content["seal"]
    unseen, tried = [], 0
    for what, path, made in changed(content):
        try:
            forged = sealed(made)
        except so.errors.StrikeoutError:
            continue  # a value that no certificate can be written with
        found, tried = so.verify(forged, retained), tried + 1
        if verdict(found) != verdict(honest):
            continue
        if path in STATED and what.startswith("changed") and found.stated != honest.stated:
            continue
        if path in WEAKER and float.fromhex(at(made, path)) > float.fromhex(at(content, path)):
            continue
        unseen.append((path, what, found.stated))
    assert unseen == []
    assert tried > 100


ODD = (
    None, True, False, 0, 1, -1, 2**53, 2**70, "", "x", "none", "nan", "inf", "-inf", "0x1p-1074", "0x1.8p+1", "0" * 64,
    "\0", "heston/native", "2024-01-31", [], [[]], [None], ["x", "x"], {}, {"": ""}, {"x": None}, "1e308",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_field_can_be_given_any_odd_value_under_the_same_verdict(kind):
    """Every leaf with 28 values of every type: some thousand forgeries, all with a seal that fits."""
    data, retained = issued(kind).certificate.to_bytes(), issued(kind).retained
    content = json.loads(data)
    honest = so.verify(data, retained)
    del content["seal"]
    unseen, tried = [], 0
    for path in leaves(content):
        for value in ODD:
            made = deepcopy(content)
            if at(made, path) == value:
                continue
            at(made, path[:-1])[path[-1]] = value
            found, tried = so.verify(sealed(made), retained), tried + 1
            is_told = path in STATED and found.stated != honest.stated
            if verdict(found) == verdict(honest) and not is_told:
                unseen.append((path, value))
    print(f"{kind}: {tried:,} forged certificates")  # pytest -rP
    assert unseen == []
    assert tried > 500


def test_what_is_only_stated_is_shown_with_the_word_that_it_is():
    honest = issued("recalibrated")
    content = json.loads(honest.certificate.to_bytes())
    made = {**content, "counts": {**content["counts"], "forgotten": 7}}
    found = so.verify(sealed(made), honest.retained)
    assert found.holds
    assert any("7 quotes" in clause for clause in found.stated)
