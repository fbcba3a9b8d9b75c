"""``strikeout rules``: every rule, or what each of them does to a file."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.options import check_option, constant_option, json_option, profile_option
from strikeout.cli.reading import reading_of
from strikeout.cli.rule import described
from strikeout.errors import UsageError

FORMS = ("text", "markdown", "latex", "csv")  # a test holds them to those of a screening


@click.command("rules")
@click.argument("file", type=click.Path(path_type=str), required=False)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", show_default=True, help="Of the table.")
@check_option
@profile_option
@constant_option
@json_option
def command(file: str | None, form: str, as_json: bool, **options: Any) -> int:
    """List every rule; of FILE, count what each of them finds: rows in, removed, left, flagged.

    Removed are rows that no rule before it took out; flagged are rows that stay.

    The table can be pasted into a paper: --format latex.
    """
    if file is None:
        _list(form, as_json=as_json)
        return exits.DONE
    with reading_of(file, on_disk=True, **options) as reading:
        screening = reading.screening
    if as_json:
        terminal.show_json({"source": reading.source, **screening.to_dict()})
        return exits.DONE
    terminal.say(screening.table(form))
    if screening.unchecked and form == "text":
        terminal.say("\nnot checked")
        for code, why in screening.unchecked.items():
            terminal.say(f"  {code}  {why}")
    return exits.DONE


def _list(form: str, *, as_json: bool) -> None:
    from strikeout.quotes.checks.catalogue import RULES

    if as_json:
        terminal.show_json({"rules": [described(code) for code in RULES]})
        return
    if form != "text":
        raise UsageError("--format is for the counts of a file; give FILE too.")
    rows = [
        (rule.code, rule.name, rule.kind, "" if rule.limit is None else f"{rule.limit:g}", rule.unit)
        for rule in RULES.values()
    ]
    terminal.show(terminal.table(("code", "rule", "what it does", "limit", "of"), rows, whole=(0,), spare=(4,)))
    terminal.hint("strikeout rule Q208", "strikeout rules FILE")
