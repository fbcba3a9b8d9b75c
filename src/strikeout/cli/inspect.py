"""``strikeout inspect``: how a file of quotes is understood, before anything is computed from it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.calibrating import as_given
from strikeout.cli.options import check_option, constant_option, file_argument, json_option, profile_option
from strikeout.cli.reading import reading_of
from strikeout.wording import many, printable

if TYPE_CHECKING:
    from strikeout.quotes.forward_table import Forwards
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading

SHOWN_ROWS = 3
SHOWN_ISSUES = 5
LISTED_ISSUES = 100
SHOWN_SLICES = 8
DIGITS = {"years": "{:.5g}".format, "rate": "{:.4f}".format, "implied_rate": "{:.4f}".format}
SPARE = ("implied_rate", "r_squared", "pairs", "quotes", "source", "rate")  # of the forwards, where it gets narrow


@click.command("inspect")
@file_argument
@profile_option
@constant_option
@check_option
@json_option
def command(file: str, as_json: bool, **options: Any) -> int:
    """Say how FILE (.csv, .csv.gz, .parquet) is understood: layout, columns, units, bad rows, forwards, three quotes.

    Ends with 1 where rows would be rejected, with 0 where all can be used.
    """
    with reading_of(file, on_disk=True, **options) as reading:
        if as_json:
            terminal.show_json(described(reading))
        else:
            _show(reading)
    if not as_json:
        terminal.hint(f"strikeout calibrate {file}{as_given()}" + (" --quarantine bad.csv" if reading.rejected else ""))
    return exits.FINDINGS if reading.rejected else exits.DONE


def described(reading: Reading) -> dict[str, Any]:
    """The reading as plain values."""
    return {
        "source": reading.source,
        "profile": profile_name(reading),
        "notes": list(reading.table.notes),
        "rows": reading.rows,
        "count": reading.count,
        "rejected": reading.rejected,
        "repeated": reading.repeated,
        "columns": [exits.plain(column) for column in reading.columns],
        "computed_from": dict(reading.routes),
        "forwards": None if reading.forwards is None else reading.forwards.to_frame().to_dicts(),
        "issues": {
            "counts": reading.issues.counts,
            "first": [exits.plain(issue) for issue in reading.issues.listed(LISTED_ISSUES)],
        },
        "screening": reading.screening.to_dict(),
        "quotes": samples(reading),
    }


def profile_name(reading: Reading) -> str:
    """The layout the file was read by; "strikeout" where its columns have our own names."""
    return "strikeout" if reading.table.profile is None else reading.table.profile.name


def samples(reading: Reading) -> list[dict[str, Any]]:
    """The first quotes, in canonical units."""
    quotes = reading.sample(SHOWN_ROWS)
    return [sample(quotes, row) for row in range(len(quotes))]


def sample(quotes: Quotes, row: int) -> dict[str, Any]:
    """One quote in canonical units, labels included."""
    contracts, spread = quotes.contracts, float(quotes.spread[row])
    labels = {
        name: column[row].item() if hasattr(column[row], "item") else column[row]
        for name, column in quotes.labels.items()
    }
    return {
        "id": str(quotes.ids[row]),
        "expiry_years": float(contracts.expiry[row]),
        "strike": float(contracts.strike[row]),
        "right": "C" if contracts.is_call[row] else "P",
        "observed": float(quotes.observed[row]),
        "forward": float(contracts.forward[row]),
        "discount": float(contracts.discount[row]),
        "weight": float(quotes.weight[row]),
        "spread": spread if isfinite(spread) else None,
        "labels": {
            name: None if isinstance(x, float) and not isfinite(x) else exits.plain(x) for name, x in labels.items()
        },
    }


def _show(reading: Reading) -> None:
    columns = [
        (c.name, c.role or "-", c.meaning + ("" if c.is_used or not c.role else " (kept as a label)"))
        for c in reading.columns
    ]
    terminal.show(
        f"{printable(reading.source)}: {many(reading.rows, 'row')}, {many(reading.count, 'quote')}, "
        f"{reading.rejected:,} rejected, {reading.repeated:,} repeated",
        f"layout: {reading.layout}",
        *(f"note: {note}" for note in reading.table.notes),
        "",
        terminal.table(("column", "understood as", "unit or meaning"), columns),
        "",
        terminal.table(("quantity", "computed from"), list(reading.routes.items()), whole=(0,)),
    )
    if reading.forwards is not None:
        _show_forwards(reading.forwards)
    if len(reading.issues):
        counts = [(step.code, step.name, f"{step.removed:,}", f"{step.flagged:,}") for step in reading.screening.steps]
        heads = ("code", "rule", "rows removed", "rows flagged")
        terminal.show("", terminal.table(heads, counts, numbers=(2, 3), whole=(0,)))
        shown = reading.issues.listed(SHOWN_ISSUES)
        terminal.show("", *(printable(f"  {issue}") for issue in shown))
        if reading.issues.distinct > len(shown):
            terminal.show(f"  and {reading.issues.distinct - len(shown):,} more")
    shown_quotes = samples(reading)
    if shown_quotes:
        names = [name for name in shown_quotes[0] if name != "labels"]
        rows = [(name, *(_cell(quote[name]) for quote in shown_quotes)) for name in names]
        terminal.show("", terminal.table(("quote", *("" for _ in shown_quotes)), rows, whole=(0,)))


def _show_forwards(forwards: Forwards) -> None:
    frame = forwards.to_frame().drop("american").head(SHOWN_SLICES)
    rows = [
        tuple("-" if value is None else DIGITS.get(name, _cell)(value) for name, value in row.items())
        for row in frame.iter_rows(named=True)
    ]
    heads = [name.replace("_", " ") for name in frame.columns]
    spare = [frame.columns.index(name) for name in SPARE if name in frame.columns]
    terminal.show(
        f"\nforwards of {many(len(forwards), 'slice')}: {forwards.headline()}",
        terminal.table(heads, rows, numbers=tuple(range(2, len(heads))), spare=tuple(spare)),
    )
    if len(forwards) > SHOWN_SLICES:
        terminal.show(f"  and {len(forwards) - SHOWN_SLICES:,} more: --json lists them all")


def _cell(value: Any) -> str:
    if value is None:
        return "unknown"
    return f"{value:.8g}" if isinstance(value, float) else str(value)
