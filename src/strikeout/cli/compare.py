"""``strikeout compare``: two books side by side."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import opened
from strikeout.cli.options import json_option
from strikeout.wording import many


@click.command("compare")
@click.argument("first", type=click.Path(path_type=str))
@click.argument("second", type=click.Path(path_type=str))
@json_option
def command(first: str, second: str, as_json: bool) -> int:
    """Say whether two books know the same: state and parameters bit for bit, and how far apart they are.

    Each is taken as it was calibrated last. Ends with 1 where they differ, or where quotes came or went since.
    """
    with opened(first) as one, opened(second) as other:
        found = one.compare(other)
    stale = {path: None for path, now in zip((first, second), found.is_current, strict=True) if not now}
    if as_json:
        terminal.show_json(found.to_dict())
    else:
        rows = [
            (name, f"{a:.10g}", f"{b:.10g}", "-" if found.apart[name] is None else f"{found.apart[name]:+.3g}")
            for name, (a, b) in found.parameters.items()
        ]
        pairs = [
            ("calibrated", f"to {found.counts[0]:,} and {many(found.counts[1], 'quote')}"),
            ("held", f"{found.held[0]:,} and {many(found.held[1], 'quote')}"),
            ("state", "the same, bit for bit" if found.is_same_state else "not the same"),
            ("parameters", "the same, bit for bit" if found.is_same_parameters else "not the same"),
            *(("stale", f"{path}: quotes came or went since it was calibrated") for path in stale),
        ]
        heads = ("parameter", "first", "second", "apart (SE of second)")
        terminal.show(terminal.table(heads, rows, numbers=(1, 2, 3), whole=(0,)), "", terminal.facts(pairs))
    return exits.DONE if found.is_same_state and found.is_same_parameters and not stale else exits.FINDINGS
