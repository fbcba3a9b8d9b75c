"""What each part of a certificate looks like: all that a check needs, and nothing that no check reads.

A part that no check reads could contain anything, so which parts there are follows from the claims: no parameters
without a claim about them, no starts without a search that begins at them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from math import isfinite
from typing import Any

from strikeout.assurance.build import NAMED, ROUNDING
from strikeout.calibration.latent_prior import Prior
from strikeout.errors import UsageError
from strikeout.statistics.losses import SQUARED, AskedLoss

STEPS = ("downdate", "restep", "recompute", "update")
SEARCHES = ("recalibrate", "resolve", "none")
OPERATORS = (*STEPS, *SEARCHES, "refine", "paper")
RESIDUALS = ("price", "implied_vol")
CHOICES = ("all", "otm")
SOURCES = ("quotes", "moments")
DESCRIBED = {  # by kind of state: its parts, the reference of a step apart
    "normal equations": {"kind", "digest", "count", "schema"},
    "panel": {"kind", "digest", "count", "groups", "schema"},
    "moments": {"kind", "digest", "count", "basis"},
}
MOST = 1 << 53  # of a count
HEAD = "(0|[1-9][0-9]{0,15}):[0-9a-f]{64}"
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


def wrong_part(content: Mapping[str, Any], *, claims: Collection[str], obstacles: Collection[str]) -> str | None:
    """Return the first part that is not what a certificate with these claims holds; None if all are.

    Args:
        claims: the names of all claims there are.
        obstacles: the names of all reasons for not making one.
    """
    made = content["claims"]
    is_at_reference = isinstance(content["state"], dict) and "reference" in content["state"]
    checks: dict[str, Callable[[], bool]] = {  # in this order: a later one relies on the earlier
        "claims": lambda: (
            isinstance(made, dict) and made.keys() <= set(claims) and all(map(_is_claim, made, made.values()))
        ),
        "obstacles": lambda: (
            _is_texts(content["obstacles"])
            and content["obstacles"].keys() == set(claims) - made.keys()
            and set(content["obstacles"].values()) <= set(obstacles)
        ),
        "software": lambda: _is_text(content["software"]) and content["software"].isprintable(),
        "build": lambda: (
            _is_texts(content["build"])
            and set(NAMED) <= content["build"].keys() <= {*NAMED, *ROUNDING}
            and all(map(str.isprintable, content["build"].values()))
        ),
        "model": lambda: _is_text(content["model"]),
        "operator": lambda: _is_operator(content["operator"], made),
        "counts": lambda: (
            isinstance(content["counts"], dict)
            and content["counts"].keys() == {"forgotten", "retained"}
            and all(_is_count(count) for count in content["counts"].values())
        ),
        "objective": lambda: _is_objective(content["objective"], made, is_at_reference),
        "parameters": lambda: (
            _is_numbers(content["parameters"]) and bool(content["parameters"]) == _is_of_parameters(made)
        ),
        "latent": lambda: (
            isinstance(content["latent"], list)
            and all(map(is_number, content["latent"]))
            and bool(content["latent"]) == ("panel" in content["objective"] and _is_of_parameters(made))
        ),
        "state": lambda: _is_state(content["state"], made, content["objective"], content["operator"]),
        "reading": lambda: content["reading"] is None or _is_reading(content["reading"]),
        "signed": lambda: content["signed"] is None or _is_signature(content["signed"]),
    }
    return next((name for name, is_right in checks.items() if not is_right()), None)


def is_number(text: object) -> bool:
    """Return whether this is a finite number as ``float.hex`` writes it."""
    try:
        return isinstance(text, str) and isfinite(float.fromhex(text)) and float.fromhex(text).hex() == text
    except (ValueError, OverflowError):
        return False


def _is_of_parameters(made: Collection[str]) -> bool:
    return any(name != "STATE" for name in made)


def _is_claim(name: str, facts: object) -> bool:
    if not isinstance(facts, dict):
        return False
    if name == "OPTIMUM":
        return facts.keys() == {"tolerance"} and is_number(facts["tolerance"])
    if name == "NEVER_SEEN":
        return facts.keys() == {"source"} and facts["source"] in SOURCES
    return not facts


def _is_operator(name: object, made: Collection[str]) -> bool:
    if "STEP" in made:
        return name in STEPS
    return name in (SEARCHES if "NEVER_SEEN" in made else OPERATORS)


def _is_objective(how: object, made: Collection[str], is_at_reference: bool) -> bool:
    if not isinstance(how, dict):
        return False
    parts = {"weights", "residual", "select"}
    parts |= {"loss", "bounds", "fixed", "on_bound"} if _is_of_parameters(made) else set()
    parts |= {"feller", "starts", "threshold"} if "NEVER_SEEN" in made else set()
    if how.keys() - {"panel"} != parts:
        return False
    checks: dict[str, Callable[[Any], bool]] = {
        "weights": _is_text,
        "residual": lambda kind: kind in RESIDUALS,
        "select": lambda choice: choice in CHOICES,
        # The threshold of a robust loss is found by the search, so without the search it could be any.
        "loss": lambda loss: _is_loss(loss) if "NEVER_SEEN" in made else loss == SQUARED,
        "threshold": lambda limit: limit is None if how["loss"] == SQUARED else is_number(limit),
        "bounds": lambda limits: isinstance(limits, dict) and all(map(_is_pair, limits.values())),
        "fixed": _is_numbers,
        "on_bound": _is_numbers,
        "feller": lambda is_enforced: type(is_enforced) is bool,
        "starts": _is_starts,
    }
    is_panel = "panel" not in how or _is_panel(how["panel"], made, _is_of_parameters(made) or is_at_reference)
    return is_panel and all(checks[part](how[part]) for part in parts)


def _is_loss(loss: object) -> bool:
    try:
        return isinstance(loss, str) and bool(AskedLoss.of(loss))
    except UsageError:
        return False


def _is_prior(latent: object) -> bool:
    try:
        return isinstance(latent, str) and Prior.asked(latent) is not None
    except UsageError:
        return False


def _is_panel(panel: object, made: Collection[str], has_held: bool) -> bool:
    if not isinstance(panel, dict):
        return False
    if panel.keys() - {"prior"} != {"label", "latent"} | ({"held"} if has_held else set()):
        return False
    # With a prior the parameters are not at the optimum of the quotes: only a calibration can show them.
    is_searched = "NEVER_SEEN" in made and not {"STEP", "OPTIMUM"} & {*made}
    if "prior" in panel and not (is_searched and _is_prior(panel["prior"])):
        return False
    held = panel.get("held", [])
    is_list = isinstance(held, list) and all(map(_is_count, held)) and sorted(set(held)) == held
    return is_list and _is_text(panel["label"]) and _is_text(panel["latent"])


def _is_starts(starts: object) -> bool:
    if isinstance(starts, dict):
        return bool(starts) and _is_numbers(starts)
    if isinstance(starts, list):
        return bool(starts) and all(isinstance(start, dict) and bool(start) and _is_numbers(start) for start in starts)
    return _is_count(starts) and starts != 0


def _is_state(state: object, made: Mapping[str, Any], how: Mapping[str, Any], operator: str) -> bool:
    if not isinstance(state, dict) or bool(state) != ("STATE" in made):
        return False
    if "STEP" in made and ("reference" not in state or "OPTIMUM" not in made):
        return False
    if not state:
        return True
    kind = state.get("kind")
    if not isinstance(kind, str) or kind not in DESCRIBED or (kind == "panel") != ("panel" in how):
        return False
    if "NEVER_SEEN" in made and (kind == "moments") != (made["NEVER_SEEN"]["source"] == "moments"):
        return False
    parts = set(DESCRIBED[kind])
    if "reference" in state:  # of a step, whose parameters need not be claimed
        if operator not in STEPS or kind == "moments":
            return False
        parts |= {"reference", "latent_reference"} if kind == "panel" else {"reference"}
    if state.keys() != parts:
        return False
    checks: dict[str, Callable[[Any], bool]] = {
        "digest": lambda text: _is_hex(text, 32),
        "schema": lambda text: _is_hex(text, 32),
        "count": _is_count,
        "groups": _is_count,
        "basis": _is_text,
        "reference": _is_numbers,
        "latent_reference": lambda values: isinstance(values, list) and all(map(is_number, values)),
    }
    return all(checks[part](state[part]) for part in parts - {"kind"})


def _is_reading(reading: object) -> bool:
    if not isinstance(reading, dict) or reading.keys() - {"quotes", "file"} != {"layout", "settings"}:
        return False
    is_text = isinstance(reading["layout"], str) and reading["layout"].isprintable()
    is_named = _is_texts(reading["settings"]) and all(map(str.isprintable, reading["settings"].values()))
    return is_text and is_named and all(_is_hex(reading[name], 32) for name in reading.keys() & {"quotes", "file"})


def _is_signature(signed: object) -> bool:
    """Return whether this is a date, or a date with a signature, and with the place in a ledger if a book signed."""
    parts = ({"at"}, {"at", "public", "signature"}, {"at", "public", "signature", "entry", "head"})
    if not isinstance(signed, dict) or signed.keys() not in parts:
        return False
    checks: dict[str, Callable[[Any], bool]] = {
        "at": lambda text: isinstance(text, str) and _is_time(text),
        "public": lambda text: _is_hex(text, 32),
        "signature": lambda text: _is_hex(text, 64),
        "entry": _is_count,
        "head": lambda text: isinstance(text, str) and re.fullmatch(HEAD, text) is not None,
    }
    return all(checks[part](value) for part, value in signed.items())


def _is_time(text: str) -> bool:
    try:
        return datetime.strptime(text, TIME).strftime(TIME) == text
    except ValueError:
        return False


def _is_pair(limits: object) -> bool:
    return (
        isinstance(limits, list)
        and len(limits) == 2
        and all(isinstance(x, str) and (is_number(x) or x in ("inf", "-inf")) for x in limits)
    )


def _is_numbers(values: object) -> bool:
    return isinstance(values, dict) and all(map(is_number, values.values()))


def _is_texts(values: object) -> bool:
    return isinstance(values, dict) and all(map(_is_text, values.values()))


def _is_text(text: object) -> bool:
    return isinstance(text, str)


def _is_count(count: object) -> bool:
    return type(count) is int and 0 <= count < MOST


def _is_hex(text: object, width: int) -> bool:
    return isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{2 * width}}}", text) is not None
