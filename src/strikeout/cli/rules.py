"""The rules of quotes: rules lists or counts them, rule explains one."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.fit_options import count_matching, open_file
from strikeout.cli.inspect import american_facts, american_parts
from strikeout.cli.options import (
    json_option,
    layout_options,
    only_option,
    optional_file_argument,
    output_options,
    refuse_given,
)
from strikeout.errors import UsageError
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.cli.terminal import Output


@click.command("rules")
@optional_file_argument
@only_option
@click.option("--list", "code", metavar="CODE", help="List the rows that this rule finds, rejected or flagged.")
@click.option("--out", type=click.Path(path_type=str), help="With --list: write these rows to a CSV, as found.")
@layout_options
@output_options
def rules(file: str | None, only: str | None, code: str | None, out: str | None, output: Output, **options: Any) -> int:
    """List every rule; with FILE, count what each of them finds: rows removed, left and flagged.

    A row is removed by the first rule that rejects it; flagged rows stay. The table can be pasted into a paper:
    --format latex.
    """
    if file is None:
        refuse_given(("only", "code", "out"), "Without a FILE there are no quotes:")
        return _list(output)
    if code is not None:
        refuse_given(("only",), "--list shows the rows that a rule finds:")
        return _list_rows(file, known_code(code), out, output, **options)
    refuse_given(("out",), "--out is the file for the rows of --list CODE:")
    with open_file(file, on_disk=True, **options) as reading:
        screening, conversion = reading.screening, reading.conversion()
        matched = None if only is None else count_matching(reading, only)
    facts = {"source": reading.source, **screening.to_dict(), **american_facts(conversion)}
    facts |= {} if only is None else {"where": only, "matching": matched}
    unchecked = [f"  {code}  {why}" for code, why in screening.unchecked.items()]
    table = screening.to_table()
    if matched is not None:
        line = ("", f"match {only}", number(screening.left - matched, ",d"), number(matched, ",d"), "")
        table = replace(table, rows=[*table.rows, line])
    american = [] if conversion is None else american_parts(conversion)
    return output.result(facts, table, *(("\nnot checked", *unchecked) if unchecked else ()), *american)


def _list_rows(file: str, code: str, out: str | None, output: Output, **options: Any) -> int:
    """Show the issues of one rule, or write the rows they are about to a CSV."""
    with open_file(file, on_disk=True, **options) as reading:
        issues = reading.issues_of(code)
        written = None if out is None else reading.write_rows(code, out)
    found = [exit_codes.plain(issue) for issue in issues]
    facts = {"source": reading.source, "code": code, "count": len(issues), "issues": found, "out": out}
    if out is not None and not output.is_json:
        terminal.note(f"{many(written or 0, 'row')} with {code} in {out}.")
        return exit_codes.DONE
    what = {True: "rejected", False: "flagged"}
    rows = [(number(one.row, "d"), what[one.is_rejected], one.column, one.sentence) for one in issues]
    table = Table((reading.numbering, "result", "column", "finding"), rows, numbers=(0,))
    return output.result(facts, table, notes=[f"{many(len(rows), 'finding')} of {code}."])


def known_code(code: str) -> str:
    """Return the code of a rule, whatever its case."""
    from strikeout.quotes.checks.catalogue import RULES

    name = code.upper()
    if name not in RULES:
        near = get_close_matches(name, RULES, n=3, cutoff=0.5)
        meant = f" Did you mean {', '.join(near)}?" if near else ""
        raise UsageError(f"There is no rule {code!r}.{meant} `strikeout rules` lists them.", code=code)
    return name


def _list(output: Output) -> int:
    from strikeout.quotes.checks.catalogue import RULES

    rows = [
        (rule.code, rule.name, rule.kind, "" if rule.limit is None else number(rule.limit, "g"), rule.unit)
        for rule in RULES.values()
    ]
    table = Table(("code", "rule", "what it does", "limit", "of"), rows, whole=(0,), spare=(4,))
    facts = {"rules": [rule.to_dict() for rule in RULES.values()]}
    return output.result(facts, table, hints=["strikeout rule Q208", "strikeout rules FILE"])


@click.command("rule")
@click.argument("code")
@json_option
def rule(code: str, output: Output) -> int:
    """Explain the rule CODE, such as Q103: what it looks for, why, what to do, and how to change it."""
    from strikeout.quotes.checks.catalogue import RULES

    name = known_code(code)
    found = RULES[name].to_dict()
    pairs = [("rule", f"{name}: {found['name']}"), ("what it does", found["kind"]), ("why", found["why"])]
    pairs.append(("what to do", found["remedy"]))
    if found["limit"] is not None:
        pairs.append(("limit", f"{found['limit']:g}: {found['unit']}"))
    if found["needs"]:
        pairs.append(("needs", ", ".join(need.replace("|", " or ") for need in found["needs"])))
    pairs.append(("to change it", _how_to_change(name, found)))
    return output.result(found, terminal.facts(pairs))


def _how_to_change(code: str, found: dict[str, Any]) -> str:
    if found["is_fixed"]:
        return "it cannot be: such a row is not a quote" if code.startswith("Q1") else "it cannot be"
    ways = [f"--check {code}=off", f"--check {code}=reject"]
    if found["limit"] is not None:
        ways.insert(0, f"--check {code}={found['limit'] * 2 if found['limit'] else 0.001:g}")
    caution = "; it looks at other quotes, so what it rejects depends on them" if found["sees_others"] else ""
    return ", ".join(ways) + caution
