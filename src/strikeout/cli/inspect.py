"""Files of quotes: inspect shows how one is read, profiles the layouts, sample writes one to try things on."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.fit_options import count_matching, open_file, options_as_given
from strikeout.cli.options import file_argument, layout_options, only_option, output_options
from strikeout.tables import Cell, Table, number
from strikeout.text import many, printable

if TYPE_CHECKING:
    from strikeout.cli.terminal import Output
    from strikeout.quotes.forwards import Forwards
    from strikeout.quotes.profile import Origin, Profile
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading

SHOWN_ROWS = 3
LISTED_ISSUES = 100
SHOWN_CONVERSIONS = 40  # slices
SHOWN_SLICES = 8
DIGITS = {"years": "{:.5g}".format, "forward_error": "{:.2g}".format}
DIGITS |= dict.fromkeys(("rate", "implied_rate", "borrow"), "{:.4f}".format)
# Columns of the forwards that a narrow terminal does without, in this order
SPARE = ("implied_rate", "r_squared", "pairs", "quotes", "source", "borrow", "forward_error", "rate")


@click.command("inspect")
@file_argument
@only_option
@click.option("--out", type=click.Path(path_type=str), help="Write the forward of every slice to this .csv.")
@layout_options
@output_options
def inspect(file: str, only: str | None, out: str | None, output: Output, **options: Any) -> int:
    """Show how FILE (.csv, .csv.gz, .parquet) is read: layout, columns, units, bad rows, forwards, three quotes.

    Ends with 1 if rows would be rejected, with 0 if all can be used.
    """
    with open_file(file, on_disk=True, **options) as reading:
        matching = None if only is None else count_matching(reading, only)
        if out is not None:
            from strikeout.quotes.writing import replace_file

            replace_file(out, reading.all_forwards().to_frame().write_csv)
        notes = [] if matching is None else [f"{matching:,} of {many(reading.count, 'quote')} match {only}"]
        quarantine = " --quarantine bad.csv" if reading.rejected else ""
        return output.result(
            lambda: described(reading) | ({} if only is None else {"where": only, "matching": matching}),
            *(() if output.is_json else _shown(reading)),
            notes=[*notes, *([] if out is None else [f"the forwards are in {out}."])],
            hints=[f"strikeout calibrate {file}{options_as_given()}{quarantine}"],
            code=exit_codes.FINDINGS if reading.rejected else exit_codes.DONE,
        )


def described(reading: Reading) -> dict[str, Any]:
    """Return the reading as plain values."""
    return {
        "source": reading.source,
        "profile": "strikeout" if reading.table.profile is None else reading.table.profile.name,
        "notes": list(reading.table.notes),
        "rows": reading.rows,
        "count": reading.count,
        "rejected": reading.rejected,
        "unreadable": reading.unreadable,
        "repeated": reading.repeated,
        "columns": [exit_codes.plain(column) for column in reading.columns],
        "computed_from": dict(reading.routes),
        "forwards": None if reading.forwards is None else reading.forwards.to_frame().to_dicts(),
        **american_facts(reading.conversion()),
        "issues": {
            "counts": reading.issues.counts,
            "first": [exit_codes.plain(issue) for issue in reading.issues.listed(LISTED_ISSUES)],
            "examples": [exit_codes.plain(issue) for issue in reading.issues.examples()],
        },
        "screening": reading.screening.to_dict(),
        "quotes": samples(reading),
    }


def samples(reading: Reading) -> list[dict[str, Any]]:
    """Return the first quotes, in canonical units."""
    quotes = reading.sample(SHOWN_ROWS)
    return [described_quote(quotes, row) for row in range(len(quotes))]


def described_quote(quotes: Quotes, row: int) -> dict[str, Any]:
    """Return one quote in canonical units, labels included."""
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
            name: None if isinstance(x, float) and not isfinite(x) else exit_codes.plain(x)
            for name, x in labels.items()
        },
    }


def _shown(reading: Reading) -> list[Any]:
    columns = [
        (c.name, c.role or "-", c.meaning + ("" if c.is_used or not c.role else " (kept as a label)"))
        for c in reading.columns
    ]
    parts: list[Any] = [
        f"{printable(reading.source)}: {many(reading.rows, 'row')}, {many(reading.count, 'quote')}, "
        f"{reading.rejected:,} rejected, {reading.repeated:,} repeated",
        f"layout: {reading.layout}",
        *(f"note: {note}" for note in reading.table.notes),
        "",
        Table(("column", "read as", "unit or meaning"), columns),
        "",
        Table(("quantity", "computed from"), list(reading.routes.items()), whole=(0,)),
    ]
    if reading.forwards is not None:
        parts += _forwards(reading.forwards)
    conversion = reading.conversion()
    if conversion is not None:
        parts += american_parts(conversion)
    if len(reading.issues):
        counts = [
            (step.code, step.name, number(step.removed, ",d"), number(step.flagged, ",d"))
            for step in reading.screening.steps
        ]
        heads = ("code", "rule", "rows removed", "rows flagged")
        shown = reading.issues.examples()
        parts += ["", Table(heads, counts, numbers=(2, 3), whole=(0,)), ""]
        parts += [printable(f"  {issue}") for issue in shown]
        if reading.issues.distinct > len(shown):
            more = reading.issues.distinct - len(shown)
            parts.append(f"  and {more:,} more; list those of a rule: strikeout rules FILE --list CODE")
    quotes = samples(reading)
    if quotes:
        names = [name for name in quotes[0] if name != "labels"]
        rows = [(name, *(_cell(quote[name]) for quote in quotes)) for name in names]
        parts += ["", Table(("quote", *map(str, range(1, len(quotes) + 1))), rows, whole=(0,))]
    return parts


def _forwards(forwards: Forwards) -> list[Any]:
    frame = forwards.to_frame().drop("american", "converted", "correction", strict=False).head(SHOWN_SLICES)
    rows = [
        tuple("-" if value is None else DIGITS.get(name, _cell)(value) for name, value in row.items())
        for row in frame.iter_rows(named=True)
    ]
    heads = [{"rate": "used rate"}.get(name, name.replace("_", " ")) for name in frame.columns]
    spare = [frame.columns.index(name) for name in SPARE if name in frame.columns]
    parts: list[Any] = [
        f"\nforwards of {many(len(forwards), 'slice')}: {forwards.headline()}",
        Table(heads, rows, numbers=tuple(range(2, len(heads))), spare=tuple(spare)),
    ]
    if len(forwards) > SHOWN_SLICES:
        parts.append(f"  and {len(forwards) - SHOWN_SLICES:,} more: --out FILE.csv writes them all")
    return parts


def american_parts(conversion: Forwards) -> list[Any]:
    """Return what reading American prices as European ones changed: a line, and a table by slice."""
    rows = [
        (name, number(converted, ",d"), number(correction, ".2f") if isfinite(correction) else "-")
        for name, converted, correction in zip(
            conversion.names, conversion.converted.tolist(), conversion.correction.tolist(), strict=True
        )
    ]
    heads = ("slice", "American", "correction (vol points)")
    parts: list[Any] = [f"\n{conversion.conversion_sentence()}"]
    if rows:
        parts.append(Table(heads, rows[:SHOWN_CONVERSIONS], numbers=(1, 2)))
    if len(rows) > SHOWN_CONVERSIONS:
        parts.append(f"  and {len(rows) - SHOWN_CONVERSIONS:,} more: --json lists them all")
    return parts


def american_facts(conversion: Forwards | None) -> dict[str, Any]:
    """Return the same as plain values; nothing if no American row was to be converted."""
    if conversion is None:
        return {}
    columns = (conversion.names, conversion.converted.tolist(), conversion.correction.tolist())
    slices = [
        {"slice": name, "converted": count, "correction": correction if isfinite(correction) else None}
        for name, count, correction in zip(*columns, strict=True)
    ]
    return {"american": {"converted": int(conversion.converted.sum()), "slices": slices}}


def _cell(value: Any) -> Cell:
    if value is None:
        return "unknown"
    return number(value, ".8g") if isinstance(value, float) else str(value)


@click.command("profiles")
@click.argument("name", required=False)
@output_options
def profiles(name: str | None, output: Output) -> int:
    """List the layouts of vendors' files; for NAME (or a .toml file of your own) list what each column means."""
    from strikeout.quotes.profile import profile_of, shipped_profiles

    if name is None:
        every = list(shipped_profiles().values())
        return output.result(
            {"profiles": [described_profile(profile) for profile in every]},
            Table(("profile", "files"), [(one.name, one.title) for one in every], whole=(0,)),
            "\nAny other file is read by the canonical column names.",
            hints=["strikeout profiles NAME", "strikeout inspect FILE"],
        )
    profile = profile_of(name)
    rows = [row[:4] for row in _profile_rows(profile)]
    table = Table(("canonical column", "of", "column of the file", "how"), rows, whole=(0,))
    title = f"{profile.name}: {profile.title}\n{profile.documented}\n"
    return output.result(described_profile(profile), title, table)


def described_profile(profile: Profile) -> dict[str, Any]:
    """Return a profile as plain values."""
    return {
        "name": profile.name,
        "title": profile.title,
        "documented": profile.documented,
        "wide": profile.is_wide,
        "columns": [
            {"canonical": canonical, "of": side or None, "column": column, "how": how, "optional": optional}
            for canonical, side, column, how, optional in _profile_rows(profile)
        ],
    }


def _profile_rows(profile: Profile) -> list[tuple[str, str, str, str, bool]]:
    sides: list[tuple[str, dict[str, Origin]]] = [
        ("", dict(profile.columns)),
        ("call", dict(profile.calls)),
        ("put", dict(profile.puts)),
    ]
    rows = [
        (role, side, " or ".join(origin.column), _how(origin), origin.optional)
        for side, origins in sides
        for role, origin in origins.items()
    ]
    rows += [(role, "", "-", f"always {value}", False) for role, value in profile.constants.items()]
    return rows + [(role, "", "-", "by the class of the contract", False) for role in profile.by_class]


def _how(origin: Origin) -> str:
    return "; ".join(word for word in (origin.described, "optional" if origin.optional else "") if word)


KINDS = ("page", "feeds")  # a test compares them with the samples


@click.command("sample")
@click.argument("path", type=click.Path(path_type=str))
@click.option(
    "--kind", type=click.Choice(KINDS), default="page", show_default=True, help="One day, or a week of feeds."
)
def sample(path: str, kind: str) -> int:
    """Write a file of synthetic index options to PATH (.csv): Heston prices with the blemishes of real files."""
    from strikeout.synthetic.sample_files import write_sample

    terminal.say(f"{write_sample(path, kind)}: made-up quotes, no market data.")
    terminal.hint(f"strikeout inspect {path}", f"strikeout calibrate {path}")
    return exit_codes.DONE
