"""``strikeout certificate``: the certificate of an entry, to read or to hand on."""

from __future__ import annotations

import json

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, opened
from strikeout.cli.options import json_option


@click.command("certificate")
@book_argument
@click.argument("entry", type=click.IntRange(min=1))
@click.option("--out", type=click.Path(path_type=str), help="Write the bytes here, for strikeout verify.")
@json_option
def command(book: str, entry: int, out: str | None, as_json: bool) -> int:
    """Show the certificate that ENTRY of the log of BOOK came with."""
    with opened(book) as held:
        certificate = held.certificate(entry)
    if out is not None:
        from strikeout.quotes.atomic_write import replace_file

        replace_file(out, lambda part: part.write_bytes(certificate.to_bytes()))
    if as_json:
        terminal.show_json({**json.loads(certificate.to_bytes()), "digest": certificate.digest(), "out": out})
    else:
        terminal.show_lines(certificate.summary())
    return exits.DONE
