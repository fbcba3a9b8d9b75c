"""``strikeout status``: a book at a glance."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import ONE_VALUE, book_argument, opened
from strikeout.cli.options import json_option
from strikeout.wording import many


@click.command("status")
@book_argument
@json_option
def command(book: str, as_json: bool) -> int:
    """Say what BOOK holds, how it is calibrated, and whether that is current."""
    from strikeout.book.describe import described_version

    with opened(book) as held:
        status = held.status()
    version = status.version
    if as_json:
        terminal.show_json(
            {
                "book": status.book,
                "held": status.held,
                "set_aside": status.set_aside,
                "erased": status.erased,
                "entries": status.entries,
                "head": f"{status.entries}:{status.root}",
                "key": status.key,
                "current": status.is_current,
                "shards": {str(shard): count for shard, count in status.shards.items()},
                "footprints": status.footprints,
                "no_footprints": status.no_footprints,
                "reference": status.reference,
                "perturbed": status.noise,
                "groups": status.groups,
                "calibration": None if version is None else {"entry": version.entry, **described_version(version)},
            }
        )
        return exits.DONE
    pairs = [
        ("quotes", f"{status.held:,} held, {status.set_aside:,} set aside, {status.erased:,} erased"),
        ("shards", status.shard_sentence),
        ("ledger", many(status.entries, "entry", "entries")),
        ("head", f"{status.entries}:{status.root}"),
        ("public key", status.key),
        ("status", status.sentence),
    ]
    if version is None:
        terminal.show(terminal.facts(pairs))
        return exits.DONE
    rows = [
        (name, f"{value:.6g}", terminal.error_text(version.standard_errors[name]))
        for name, value in version.parameters.items()
    ]
    pairs.insert(0, ("calibrated", f"{version.model} to {many(version.count, 'quote')}, entry {version.entry}"))
    facts = [("fitted from", version.fit_source.sentence)]
    pairs[1:1] = [*facts, *version.latent_facts(one_value=ONE_VALUE)]
    drawn = terminal.table(("parameter", "value", "standard error"), rows, numbers=(1, 2), whole=(0,))
    terminal.show(drawn, "", terminal.facts(pairs))
    return exits.DONE
