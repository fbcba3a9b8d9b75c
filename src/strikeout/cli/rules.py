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
    from strikeout.cli.terminal import Format


@click.command("rules")
@optional_file_argument
@only_option
@click.option("--list", "code", metavar="CODE", help="List the rows that this rule finds, rejected or flagged.")
@click.option("--out", type=click.Path(path_type=str), help="With --list: write these rows to a CSV, as found.")
@layout_options
@output_options
def rules(
    file: str | None, only: str | None, code: str | None, out: str | None, as_json: bool, form: Format, **options: Any
) -> int:
    """List every rule; with FILE, count what each of them finds: rows removed, left and flagged.

    A row is removed by the first rule that rejects it; flagged rows stay. The table can be pasted into a paper:
    --format latex.
    """
    if file is None:
        refuse_given(("only", "code", "out"), "Without a FILE there are no quotes:")
        return _list(as_json=as_json, form=form)
    if code is not None:
        refuse_given(("only",), "--list shows the rows that a rule finds:")
        return _list_rows(file, known_code(code), out, as_json=as_json, form=form, **options)
    refuse_given(("out",), "--out is the file for the rows of --list CODE:")
    with open_file(file, on_disk=True, **options) as reading:
        screening, conversion = reading.screening, reading.conversion()
        matched = None if only is None else count_matching(reading, only)
    if as_json:
        more = {} if only is None else {"where": only, "matching": matched}
        more |= american_facts(conversion)
        terminal.show_json({"source": reading.source, **screening.to_dict(), **more})
        return exit_codes.DONE
    unchecked = [f"  {code}  {why}" for code, why in screening.unchecked.items()]
    table = screening.to_table()
    if matched is not None:
        line = ("", f"match {only}", number(screening.left - matched, ",d"), number(matched, ",d"), "")
        table = replace(table, rows=[*table.rows, line])
    american = [] if conversion is None else american_parts(conversion)
    terminal.show_result(form, table, *(("\nnot checked", *unchecked) if unchecked else ()), *american)
    return exit_codes.DONE


def _list_rows(file: str, code: str, out: str | None, *, as_json: bool, form: Format, **options: Any) -> int:
    """Show the issues of one rule, or write the rows they are about to a CSV."""
    with open_file(file, on_disk=True, **options) as reading:
        issues = reading.issues_of(code)
        written = None if out is None else reading.write_rows(code, out)
    if as_json:
        found = [exit_codes.plain(issue) for issue in issues]
        terminal.show_json({"source": reading.source, "code": code, "count": len(issues), "issues": found, "out": out})
        return exit_codes.DONE
    if out is None:
        what = {True: "rejected", False: "flagged"}
        rows = [(number(one.row, "d"), what[one.is_rejected], one.column, one.sentence) for one in issues]
        terminal.show_result(form, Table((reading.numbering, "", "column", "finding"), rows, numbers=(0,)))
        terminal.note(f"{many(len(rows), 'finding')} of {code}.")
    else:
        terminal.note(f"{many(written or 0, 'row')} with {code} in {out}.")
    return exit_codes.DONE


def known_code(code: str) -> str:
    """Return the code of a rule, whatever its case."""
    from strikeout.quotes.checks.catalogue import RULES

    name = code.upper()
    if name not in RULES:
        near = get_close_matches(name, RULES, n=3, cutoff=0.5)
        meant = f" Did you mean {', '.join(near)}?" if near else ""
        raise UsageError(f"There is no rule {code!r}.{meant} `strikeout rules` lists them.", code=code)
    return name


def _list(*, as_json: bool, form: Format) -> int:
    from strikeout.quotes.checks.catalogue import RULES

    if as_json:
        terminal.show_json({"rules": [rule.to_dict() for rule in RULES.values()]})
        return exit_codes.DONE
    rows = [
        (rule.code, rule.name, rule.kind, "" if rule.limit is None else number(rule.limit, "g"), rule.unit)
        for rule in RULES.values()
    ]
    heads = ("code", "rule", "what it does", "limit", "of")
    terminal.show_result(form, Table(heads, rows, whole=(0,), spare=(4,)))
    terminal.hint("strikeout rule Q208", "strikeout rules FILE")
    return exit_codes.DONE


@click.command("rule")
@click.argument("code")
@json_option
def rule(code: str, as_json: bool) -> int:
    """Explain the rule CODE, such as Q103: what it looks for, why, what to do, and how to change it."""
    from strikeout.quotes.checks.catalogue import RULES

    name = known_code(code)
    found = RULES[name].to_dict()
    if as_json:
        terminal.show_json(found)
        return exit_codes.DONE
    pairs = [("rule", f"{name}: {found['name']}"), ("what it does", found["kind"]), ("why", found["why"])]
    pairs.append(("what to do", found["remedy"]))
    if found["limit"] is not None:
        pairs.append(("limit", f"{found['limit']:g}: {found['unit']}"))
    if found["needs"]:
        pairs.append(("needs", ", ".join(need.replace("|", " or ") for need in found["needs"])))
    pairs.append(("to change it", _how_to_change(name, found)))
    terminal.show(terminal.facts(pairs))
    return exit_codes.DONE


def _how_to_change(code: str, found: dict[str, Any]) -> str:
    if found["is_fixed"]:
        return "it cannot be: such a row is not a quote" if code.startswith("Q1") else "it cannot be"
    ways = [f"--check {code}=off", f"--check {code}=reject"]
    if found["limit"] is not None:
        ways.insert(0, f"--check {code}={found['limit'] * 2 if found['limit'] else 0.001:g}")
    caution = "; it looks at other quotes, so what it rejects depends on them" if found["sees_others"] else ""
    return ", ".join(ways) + caution
