"""``strikeout rule``: one rule explained."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.options import json_option
from strikeout.errors import UsageError


@click.command("rule")
@click.argument("code")
@json_option
def command(code: str, as_json: bool) -> int:
    """Explain the rule CODE, such as Q103: what it looks for, why, what to do, and how to change it."""
    from difflib import get_close_matches

    from strikeout.quotes.checks.catalogue import RULES

    name = code.upper()
    if name not in RULES:
        near = get_close_matches(name, RULES, n=3, cutoff=0.5)
        meant = f" Did you mean {', '.join(near)}?" if near else ""
        raise UsageError(f"There is no rule {code!r}.{meant} `strikeout rules` lists them.", code=code)
    rule = described(name)
    if as_json:
        terminal.show_json(rule)
        return exits.DONE
    pairs = [("rule", f"{name}: {rule['name']}"), ("what it does", rule["kind"]), ("why", rule["why"])]
    pairs.append(("what to do", rule["remedy"]))
    if rule["limit"] is not None:
        pairs.append(("limit", f"{rule['limit']:g}: {rule['unit']}"))
    if rule["needs"]:
        pairs.append(("needs", ", ".join(need.replace("|", " or ") for need in rule["needs"])))
    pairs.append(("to change it", _change(name, rule)))
    terminal.show(terminal.facts(pairs))
    return exits.DONE


def described(code: str) -> dict[str, Any]:
    """A rule as plain values."""
    from strikeout.quotes.checks.catalogue import RULES

    rule = RULES[code]
    return {
        "code": code,
        "name": rule.name,
        "kind": rule.kind,
        "why": rule.why,
        "remedy": rule.remedy,
        "limit": rule.limit,
        "unit": rule.unit or None,
        "needs": list(rule.needs),
        "sees_others": rule.sees_others,
        "is_fixed": rule.is_fixed,
    }


def _change(code: str, rule: dict[str, Any]) -> str:
    if rule["is_fixed"]:
        return "it cannot be: such a row is no quote" if code.startswith("Q1") else "it cannot be"
    ways = [f"--check {code}=off", f"--check {code}=reject"]
    if rule["limit"] is not None:
        ways.insert(0, f"--check {code}={rule['limit'] * 2 if rule['limit'] else 0.001:g}")
    caution = "; it looks at other quotes, so what it rejects depends on them" if rule["sees_others"] else ""
    return ", ".join(ways) + caution
