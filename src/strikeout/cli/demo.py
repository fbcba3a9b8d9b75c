"""``strikeout demo``: three bad days, found, struck out, brought back and checked; with a page of pictures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.options import json_option
from strikeout.cli.verify import described as described_verification

if TYPE_CHECKING:
    from strikeout.cli.story import Story


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=str), default="demo.html", show_default=True, help="Where the page goes."
)
@click.option("--no-page", is_flag=True, help="Tell the story in the terminal only.")
@click.option("--book", type=click.Path(path_type=str), help="Write the book as it arrived to this .csv or .parquet.")
@click.option("--picture", type=click.Path(path_type=str), help="Write the picture of the README to this .png or .svg.")
@json_option
def command(out: str, no_page: bool, book: str | None, picture: str | None, as_json: bool) -> int:
    """See three bad days spoil a calibration, how they are found, struck out, brought back and checked.

    Every number is computed while you watch; nothing is fetched from anywhere.
    """
    from strikeout.cli.demo_terminal import tell
    from strikeout.cli.story import story

    begun = time.perf_counter()
    told = story()
    seconds = time.perf_counter() - begun
    files = _write(told, page=None if no_page else out, book=book, picture=picture)
    if as_json:
        terminal.show_json(described(told) | files)
        return exits.DONE
    tell(told, seconds)
    if any(files.values()):
        terminal.say("")
    for what, path in files.items():
        if path:
            terminal.say(f"the {what} is in {path}")
    _hint(book)
    return exits.DONE


def described(told: Story) -> dict[str, Any]:
    """The story as plain values; errors are in standard errors of the clean calibration."""
    calibrations = {"clean": told.clean, "arrived": told.arrived, "without": told.without, "resolved": told.resolved}
    steps = {"one_step": told.paper, "robust_step": told.robust}
    return {
        "truth": dict(told.truth),
        "bad_days": [exits.plain(day) for day in told.bad_days],
        **{
            name: {**calibration.to_dict(), "errors": told.errors(calibration.parameters)}
            for name, calibration in calibrations.items()
        },
        **{name: {"parameters": values, "errors": told.errors(values)} for name, values in steps.items()},
        "influence": {name: [exits.plain(x) for x in held.tolist()] for name, held in told.influence.top(5).items()},
        "condition": told.condition,
        "path": list(told.forgetting.path),
        "claims": told.forgetting.certificate.made,
        "is_as_never_seen": told.is_as_never_seen,
        "is_restored": told.is_restored,
        "verification": described_verification(told.verification),
        "refuted": described_verification(told.refuted),
    }


def _write(told: Story, *, page: str | None, book: str | None, picture: str | None) -> dict[str, str | None]:
    if book is not None:
        from strikeout.quotes.writing import write_quotes

        write_quotes(told.arrived.quotes, book)
    if page is not None or picture is not None:
        from strikeout.cli.demo_page import write_page, write_picture

        if page is not None:
            write_page(told, page)
        if picture is not None:
            write_picture(told, picture)
    return {"page": page, "book": book, "picture": picture}


def _hint(book: str | None) -> None:
    name = book or "book.csv"
    commands = [] if book else [(f"strikeout demo --no-page --book {name}", "the book as it arrived, as a file")]
    commands += [
        (f"strikeout inspect {name}", "how strikeout reads it"),
        (f"strikeout calibrate {name}", "ends with 3: the quotes do not agree on an answer"),
        (f"strikeout influence {name} --by date,source", "who spoils it"),
        (f"strikeout forget {name} --where \"source = 'b' and date = '2024-03-05'\" --preview", "a look, nothing more"),
    ]
    terminal.say("")
    for command, why in commands:
        terminal.say(f"next: {terminal.typed(command)}  # {why}")
