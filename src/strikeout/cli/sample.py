"""``strikeout sample``: a file of made-up quotes to try things on."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal

KINDS = ("page", "feeds")  # a test holds them to those of the samples


@click.command("sample")
@click.argument("path", type=click.Path(path_type=str))
@click.option(
    "--kind", type=click.Choice(KINDS), default="page", show_default=True, help="One day, or a week of feeds."
)
def command(path: str, kind: str) -> int:
    """Write a file of made-up index options to PATH (.csv): Heston prices with the blemishes of real files."""
    from strikeout.synthetic.sample_files import write_sample

    terminal.say(f"{write_sample(path, kind)}: made-up quotes, no market data.")
    terminal.hint(f"strikeout inspect {path}", f"strikeout calibrate {path}")
    return exits.DONE
