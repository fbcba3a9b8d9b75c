"""``strikeout outliers`` and ``strikeout robustness``: quotes that look wrong, and the few that change a conclusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import is_book, open_book
from strikeout.cli.fit_options import (
    READING,
    calibrate_file,
    calibration_options,
    file_options,
    note_reading,
    read_file,
    reading_counts,
)
from strikeout.cli.options import file_argument, output_options, refuse_given
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.assurance.outliers import Outliers
    from strikeout.assurance.robustness import Robustness
    from strikeout.cli.terminal import Format

SUSPECT = 5.0  # a score above this is worth a look


@click.command("outliers")
@file_argument
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many to show.")
@file_options
@output_options
def outliers(file: str, top: int, as_json: bool, form: Format, **options: Any) -> int:
    """List the quotes of FILE or of a book (NAME.book) that fit the smile of their neighbours least.

    No model is involved: each quote is compared with the nearest strikes of its own expiry and timestamp. The score is
    the distance in units of the noise (half the spread and the neighbours' own scatter); look at scores above 5.
    """
    from strikeout.assurance.outliers import outliers as outliers_of

    if is_book(file):
        refuse_given(READING, "A book was read when it was imported:")
        with open_book(file) as book:
            reading, quotes = None, book.quotes()
    else:
        reading = read_file(file, **options)
        quotes = reading.quotes
    found = outliers_of(quotes)
    suspects = found.above(SUSPECT).rows
    if as_json:
        counts = reading_counts(reading, options["quarantine"])
        terminal.show_json({**found.to_dict(top), "suspects": suspects, **counts})
        return exit_codes.DONE
    terminal.show_result(form, _outlier_table(found, top), "", _outlier_facts(found, suspects))
    note_reading(reading, options["quarantine"])
    return exit_codes.DONE


def _outlier_table(found: Outliers, top: int) -> Table:
    rows = [
        (
            str(found["id"][row]),
            str(found["expiry"][row]),
            number(float(found["strike"][row]), "g"),
            str(found["right"][row]),
            number(float(found["price"][row]), ".5g"),
            number(float(found["expected"][row]), ".5g"),
            number(float(found["volatility"][row]), ".2f", scale=100.0),
            number(float(found["expected_volatility"][row]), ".2f", scale=100.0),
            number(float(found["score"][row]), ".1f"),
            "yes" if found["arbitrage"][row] else "",
        )
        for row in range(min(top, found.rows))
    ]
    heads = ("id", "expiry", "strike", "right", "price", "expected", "vol, %", "expected vol, %", "score", "arbitrage")
    return Table(heads, rows, numbers=(2, 4, 5, 6, 7, 8), whole=(0, 1, 3), spare=(9, 7, 6, 3))


def _outlier_facts(found: Outliers, suspects: int) -> str:
    text = f"{many(suspects, 'quote')} of {found.rows:,} with a score above {SUSPECT:g}."
    return text + (f" {many(found.unjudged, 'quote')} in slices too small to judge." if found.unjudged else "")


@click.command("robustness")
@file_argument
@click.option(
    "--target", default="mean_reversion", show_default=True, help="A parameter, or feller_ratio: what is to change."
)
@click.option("--count", type=click.IntRange(min=1), help="Remove at most n groups; one per hundred by default.")
@click.option("--share", type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True), help="The same as a share.")
@click.option("--by", metavar="LABELS", help="What makes a group, separated by commas; by default every quote.")
@calibration_options
@output_options
def robustness(file: str, as_json: bool, form: Format, **options: Any) -> int:
    """Find the few quotes of FILE or of a book (NAME.book) whose removal changes a conclusion most.

    One group is removed at a time, and the effects of all others are computed again; the set is confirmed by a refit.
    """
    from strikeout.assurance.robustness import robustness as robustness_of

    asked = {name: options.pop(name) for name in ("target", "count", "share", "by")}
    if is_book(file):
        refuse_given(options, "A book is calibrated as it was last:")
        with open_book(file) as book:
            reading, calibration = None, book.calibration()
    else:
        reading, calibration = calibrate_file(file, **options)
    groups = None if asked["by"] is None else [name.strip() for name in asked["by"].split(",")]
    found = robustness_of(calibration, asked["target"], count=asked["count"], share=asked["share"], by=groups)
    if as_json:
        terminal.show_json({**found.to_dict(), **reading_counts(reading, options["quarantine"])})
        return exit_codes.DONE
    terminal.show_result(form, _removal_table(found), "", f"{found.target} {found.value:.6g} of all {found.quotes:,}.")
    note_reading(reading, options["quarantine"])
    return exit_codes.DONE


def _removal_table(found: Robustness) -> Table:
    rows = [
        (
            word,
            number(len(one.ids), ",d"),
            number(one.predicted[-1] if one.predicted else None),
            number(one.value),
            number(one.moved, "+,.3g"),
            ", ".join(one.groups),
        )
        for word, one in (("raise", found.raising), ("lower", found.lowering))
    ]
    heads = ("to", "quotes", "predicted", "refitted", "moved (independent SE)", "removed")
    return Table(heads, rows, numbers=(1, 2, 3, 4), whole=(0,), spare=(2,))
