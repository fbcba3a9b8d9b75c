"""``strikeout influence``: how far quotes, days, expiries or sources move the parameters and prices.

``strikeout outliers`` lists quotes that look wrong, ``robustness`` the few that change a conclusion.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import terminal
from strikeout.cli.book_commands import is_book, open_book
from strikeout.cli.fit_options import (
    READING,
    calibrate_file,
    calibration_options,
    file_options,
    filtered_options,
    options_as_given,
    read_file,
    reading_counts,
    reading_notes,
)
from strikeout.cli.options import file_argument, output_options, refuse_given
from strikeout.errors import UnidentifiedError
from strikeout.tables import Cell, Table, number
from strikeout.text import Argument, duration, many

if TYPE_CHECKING:
    from strikeout.assurance.influence import Influence
    from strikeout.assurance.outliers import Outliers
    from strikeout.assurance.robustness import Robustness
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.terminal import Output

COLUMNS = ("quotes", "parameter", "moved (SE)", "indicator", "price", "RMSE")
CONFIRMED = ("confirmed price", "confirmed RMSE")
FAR = 0.05  # of the indicator: above it one step may be off by more than a twentieth of a standard error


@click.command("influence")
@file_argument
@click.option(
    "--by",
    metavar="CUTS",
    help="What makes a group: labels, or date:30, month, expiry, maturity:30,60, moneyness:0.9,1.1, product:30,60, "
    "separated by commas. Without it every quote is a group.",
)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many to show.")
@click.option(
    "--confirm",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Refit without each of the first n.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=str),
    help="A map of the influence, date (or the first label of --by) by expiry; for a single day, moneyness by expiry.",
)
@filtered_options
@output_options
def influence(
    file: str, by: str | None, top: int, confirm: int, plot: str | None, output: Output, **options: Any
) -> int:
    """List the quotes of FILE or of a book (NAME.book) that move the parameters most, the most influential first.

    Every line is the effect of striking the whole group out, by one exact step; --confirm refits. Ends with 3 if the
    quotes do not determine the parameters.
    """
    from strikeout.assurance.influence import influence as influence_of
    from strikeout.statistics.shards import split_cuts

    if plot is not None:
        from strikeout.plots.writing import check_ending

        check_ending(plot)
    calibration: Calibration
    if is_book(file):
        refuse_given(options.keys() - {"only"}, "A book is calibrated as it was last:")
        with open_book(file) as book:
            reading, calibration = None, book.calibration(options["only"])
    else:
        reading, calibration = calibrate_file(file, **options)
    labels = None if by is None else _with_dates(split_cuts(by), calibration)
    found = influence_of(calibration, labels, confirm=min(confirm, top))
    _refuse_undetermined(found, calibration)
    if plot is not None:
        across = next((name for name in labels or () if name not in ("expiry", "expiry_date")), None)
        _draw(file, calibration, plot, by=across, only=options["only"])
    facts = {**described(found, calibration, top), **reading_counts(reading, options["quarantine"]), "plot": plot}
    notes = [*reading_notes(reading, options["quarantine"]), *([f"the map is in {plot}."] if plot else [])]
    hint = f'strikeout forget {file}{options_as_given()} --where "{found.condition()}" --preview'
    return output.result(
        facts,
        *_shown(found, calibration, top=top, confirmed=min(confirm, top)),
        notes=[*_cautions(found, calibration, top=top, confirmed=min(confirm, top)), *notes],
        hints=[hint],
    )


def _with_dates(cuts: list[str], calibration: Calibration) -> list[str]:
    """Return cuts with the date of an expiry instead of its time in years, if each time is that of one date."""
    quotes = calibration.quotes
    if quotes is None or "expiry_date" not in quotes.labels:
        return cuts
    dates, years = quotes.labels["expiry_date"].astype(str).tolist(), quotes.contracts.expiry.tolist()
    is_dated = all(dates) and len(set(zip(years, dates, strict=True))) == len(set(years))
    return ["expiry_date" if cut == "expiry" and is_dated else cut for cut in cuts]


def _draw(file: str, calibration: Calibration, path: str, *, by: str | None, only: str | None) -> None:
    from strikeout.cli.report import write_book_plot
    from strikeout.plots.style import View
    from strikeout.plots.writing import write_plot

    if is_book(file):
        with open_book(file) as book:
            write_book_plot(book, path, "influence", by=by, only=only)
    else:
        write_plot(calibration, path, "influence", by=by, view=View(source=Path(file).name))


def described(found: Influence, calibration: Calibration, top: int) -> dict[str, Any]:
    """Return the first rows column by column, and the calibration they belong to, as plain values."""
    return {
        **found.to_dict(top),
        "parameters": calibration.to_dict()["parameters"],
        "standard_errors": calibration.to_dict()["standard_errors"],
        "converged": calibration.converged,
        "termination": str(calibration.termination),
        "count": calibration.count,
    }


def influence_rows(found: Influence, *, top: int, confirmed: int = 0) -> tuple[list[str], list[list[Cell]]]:
    """Return headings and cells of the first rows: the parameter that moves most and by how much, then money."""
    keys = found.keys_of_rows
    moved = [name.removeprefix("dfbetas_") for name in found if name.startswith("dfbetas_")]
    heads = [*keys, *COLUMNS, *(CONFIRMED if confirmed else ())]
    rows: list[list[Cell]] = []
    for row in range(min(top, found.rows)):
        # dfbetas are with the group less without it; struck out, the parameter moves the other way.
        steps = {name: -float(found[f"dfbetas_{name}"][row]) for name in moved}
        most = max(steps, key=lambda name: abs(steps[name])) if found["is_identified"][row] else None
        cells: list[Cell] = [_group(key, found[key][row]) for key in keys]
        cells += [number(int(found["count"][row]), ",d"), most or "none determined"]
        step = number(steps[most])._replace(text=terminal.move_text(steps[most])) if most else number(None)
        cells += [step, number(float(found["indicator"][row]) if most else None, ".2g")]
        cells += _money(found, row, "")
        rows.append(cells + (_money(found, row, "confirmed_") if confirmed else []))
    return heads, rows


def _money(found: Influence, row: int, kind: str) -> list[Cell]:
    price, rmse = float(found[f"{kind}price_change"][row]), float(found[f"{kind}rmse_change"][row])
    return [number(price, ".3g"), number(rmse)._replace(text=terminal.move_text(rmse))]


def _refuse_undetermined(found: Influence, calibration: Calibration) -> None:
    """Raise UnidentifiedError if all quotes together do not determine the parameters."""
    if not calibration.converged and not found["is_identified"].any():
        raise UnidentifiedError(
            f"Influence: the {calibration.count:,} quotes do not determine the parameters, so none of them moves "
            "them. Quote more expiries and strikes, or fix what you have from elsewhere (",
            Argument("fixed", ...),
            ").",
            count=calibration.count,
            unidentified=list(calibration.unidentified),
        )


def _shown(found: Influence, calibration: Calibration, *, top: int, confirmed: int) -> tuple[Table | str, ...]:
    heads, rows = influence_rows(found, top=top, confirmed=confirmed)
    keys, shown = found.keys_of_rows, len(rows)
    numbers = [place for place, head in enumerate(heads) if head not in (*keys, "parameter")]
    spare = [heads.index(head) for head in ("indicator", "RMSE", "quotes", "confirmed RMSE") if head in heads]
    what = many(found.rows, "quote" if keys == ["id"] else "group")
    return (
        Table(heads, rows, numbers=numbers, whole=(*range(len(keys)), heads.index("parameter")), spare=spare),
        "",
        f"The first {shown:,} of {what}. The effect of striking each out, by one step: the parameter that moves most, "
        f"in standard errors of independent quotes; the largest price change over all quotes; the change of the RMSE, "
        f"which is {calibration.rmse:.4g}.",
    )


OUTCOMES = {
    "refitted-without-slices": "confirmed without the whole slices: the quotes left of them gave no forward",
    "not-converged": "not confirmed: the refit did not converge",
    "unidentified": "not confirmed: too few quotes are left for the parameters",
    "refused": "not confirmed: the quotes left cannot be calibrated",
}  # a test compares them with Confirmation


def _cautions(found: Influence, calibration: Calibration, *, top: int, confirmed: int) -> list[str]:
    """Return what to bear in mind: steps that are too long, refits that failed, warnings of the calibration."""
    far = 0 if confirmed else int((found["indicator"][:top] > FAR).sum())
    move = "moves" if far == 1 else "move"
    notes = [f"{far} of these {move} too far for one step to be exact (indicator above {FAR}): --confirm {far}."]
    statuses = [str(status) for status in found["confirmed_status"][:top] if status] if confirmed else []
    return [
        *(notes if far else []),
        *(f"{statuses.count(s)} of {len(statuses)} {words}." for s, words in OUTCOMES.items() if s in statuses),
        *(f"the calibration itself: {sentence}" for sentence in calibration.warnings),
    ]


def _group(label: str, value: Any) -> Cell:
    plain = value.item() if hasattr(value, "item") else value
    if not isinstance(plain, float):
        return str(plain)
    return number(plain)._replace(text=duration(plain)) if label == "expiry" else number(plain)


SUSPECT = 5.0  # a score above this is worth a look


@click.command("outliers")
@file_argument
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many to show.")
@file_options
@output_options
def outliers(file: str, top: int, output: Output, **options: Any) -> int:
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
    text = f"{many(suspects, 'quote')} of {found.rows:,} with a score above {SUSPECT:g}."
    text += f" {many(found.unjudged, 'quote')} in slices too small to judge." if found.unjudged else ""
    return output.result(
        {**found.to_dict(top), "suspects": suspects, **reading_counts(reading, options["quarantine"])},
        _outlier_table(found, top),
        "",
        text,
        notes=reading_notes(reading, options["quarantine"]),
    )


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
def robustness(file: str, output: Output, **options: Any) -> int:
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
    return output.result(
        {**found.to_dict(), **reading_counts(reading, options["quarantine"])},
        _removal_table(found),
        "",
        f"{found.target} {found.value:.6g} of all {found.quotes:,}.",
        notes=reading_notes(reading, options["quarantine"]),
    )


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
