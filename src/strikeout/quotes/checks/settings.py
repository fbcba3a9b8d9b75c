"""How strict the rules are: which are off, which reject what they would only flag, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from strikeout.errors import UsageError
from strikeout.quotes.checks.catalogue import PRESETS, RULES, Rule

WORDS = ("off", "reject")
ALL = "all"
PRESET = "preset"


@dataclass(frozen=True)
class Checks:
    """What to do where the rules' own defaults are not wanted; made by `Checks.of`."""

    off: frozenset[str] = frozenset()
    reject: frozenset[str] = frozenset()
    limits: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(given: Checks | Mapping[str, float | str] | str | None) -> Checks:
        """Return the checks a mapping from codes to a limit, "off", "reject" or both ("0.3,reject") asks for.

        ``all`` is every rule that can be turned off. ``{"preset": "desk"}``, or "desk" alone, is a set of rules of
        ``catalogue.PRESETS``; other codes in the mapping change it.

        Raises:
            UsageError: a code that is unknown or fixed, or another value.

        >>> Checks.of({"Q208": "0.3,reject", "Q213": "off"}).limit("Q208")
        0.3
        """
        if isinstance(given, Checks):
            return given
        if isinstance(given, str):
            given = {PRESET: given}
        if given and PRESET in given:
            given = {**_preset(given[PRESET]), **{code: value for code, value in given.items() if code != PRESET}}
        off: set[str] = set()
        reject: set[str] = set()
        limits: dict[str, float] = {}
        for code, value in (given or {}).items():
            for rule in _meant(code):
                for word in str(value).split(","):
                    if word.strip() in WORDS:
                        (off if word.strip() == "off" else reject).add(rule.code)
                    else:
                        limits[rule.code] = _limit(rule, word.strip())
        return Checks(frozenset(off), frozenset(reject), limits)

    def limit(self, code: str) -> float:
        """Return how far a value may go before the rule speaks; 0 for a rule without a limit."""
        return self.limits.get(code, RULES[code].limit or 0.0)

    def rejects(self, code: str) -> bool:
        """Return whether what this rule finds stays out of the book."""
        return code in self.reject or code.startswith("Q1")


def _preset(name: float | str) -> Mapping[str, float | str]:
    if name not in PRESETS:
        raise UsageError(f"checks: there is no preset {name!r}. Expected one of {', '.join(PRESETS)}.", preset=name)
    return PRESETS[str(name)]


def _meant(code: str) -> list[Rule]:
    optional = [rule for rule in RULES.values() if not rule.is_fixed]
    if code == ALL:
        return optional
    if code not in RULES:
        raise UsageError(f"checks: there is no rule {code!r}. `strikeout rules` lists them.", code=code)
    if RULES[code].is_fixed:
        raise UsageError(
            f"checks: {code} ({RULES[code].name}) cannot be changed: such a row is not a quote. The rules that can "
            f"be are {', '.join(rule.code for rule in optional)}.",
            code=code,
        )
    return [RULES[code]]


def _limit(rule: Rule, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number < 0 or rule.limit is None:
        limit = "" if rule.limit is None else f", or a limit ({rule.unit}) such as {rule.limit:g}"
        raise UsageError(
            f"checks: {rule.code} ({rule.name}) can be off or reject{limit}; {word!r} was given.", code=rule.code
        )
    return number
