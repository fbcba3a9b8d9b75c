"""A calibration made in the same call: its options, the file it reads, and what is reported on that file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from strikeout.cli import terminal
from strikeout.cli.options import (
    Distinct,
    Named,
    NamedRange,
    NearestChoice,
    check_option,
    constant_option,
    max_reject_option,
    only_option,
    profile_option,
    quarantine_option,
    with_options,
)
from strikeout.errors import NothingMeantError, RejectedError
from strikeout.models.named import MODELS, model_named
from strikeout.text import agreeing, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading
    from strikeout.scale.fleet import Fleet

READING = ("checks", "constants", "exercise", "max_reject", "profile", "quarantine")
REPEATED = (  # what a following command needs again
    "model", "weights", "residual", "loss", "bounds", "fixed", "feller", "starts", "select", "panel", "errors",
    "latent", "max_reject", "profile", "constants", "rates", "exercise", "dividends", "dividend_model", "checks",
    "only",
)  # fmt: skip
OF_OBJECTIVE = ("weights", "residual", "loss", "select")  # options that mean the same for every model

model_option = click.option(
    "--model",
    type=NearestChoice(MODELS, case_sensitive=False),
    metavar="NAME",
    default="heston",
    show_default=True,
    help=f"The model: {', '.join(list(MODELS)[:-1])} or {list(MODELS)[-1]}.",
)
OBJECTIVES = {
    "price": ("price", "none"),
    "relative": ("price", "relative"),
    "vega": ("price", "vega"),
    "spread": ("price", "spread"),
    "implied-vol": ("implied_vol", "none"),
    "vol-spread": ("implied_vol", "vol-spread"),
}  # name -> residual and weights


def _set_objective(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Set --residual and --weights to those of an objective; refuse it beside one of them."""
    if name is None or context.resilient_parsing:
        return name
    for parameter, value in zip(("residual", "weights"), OBJECTIVES[name], strict=True):
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(f"--objective {name} sets --{parameter} too. Leave one out.", context, option)
        context.params[parameter] = value
        context.set_parameter_source(parameter, ParameterSource.COMMANDLINE)
    return name


_objective_option = click.option(
    "--objective",
    type=click.Choice(list(OBJECTIVES)),
    metavar="NAME",
    help=f"Residual and weights in one word: {', '.join(OBJECTIVES)}.",
)


def objective_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --objective, --weights, --residual and --loss to a command, which gets the last three."""

    @wraps(command)
    def with_objective(*args: Any, objective: str | None, **options: Any) -> Any:
        context = click.get_current_context()
        option = next(each for each in context.command.params if each.name == "objective")
        _set_objective(context, option, objective)
        if objective is not None:
            options["residual"], options["weights"] = OBJECTIVES[objective]
        return command(*args, **options)

    return with_options(_objective_option, _weighting_options)(with_objective)


_weighting_options = with_options(
    click.option(
        "--weights",
        type=click.Choice(["given", "none", "relative", "vega", "spread", "vol-spread"]),
        default="given",
        show_default=True,
        help="The weight of each quote: its weight column, equal, 1/price², 1/vega², 1/spread², (vega/spread)².",
    ),
    click.option(
        "--residual",
        type=click.Choice(["price", "implied_vol"]),
        default="price",
        show_default=True,
        help="What is compared with the model.",
    ),
    click.option(
        "--loss",
        metavar="KIND",
        default="squared",
        show_default=True,
        help="The loss of a residual: squared; huber, soft-l1, cauchy or tukey reduce the effect of outliers. "
        "huber:0.02 gives the scale of a residual.",
    ),
)
select_option = click.option(
    "--select",
    type=click.Choice(["all", "otm"]),
    default="all",
    show_default=True,
    help="The quotes to fit: all, or puts below the forward and calls above. A book keeps the others.",
)
calibration_options = with_options(
    model_option,
    objective_options,
    click.option(
        "--bound", "bounds", cls=Distinct, type=NamedRange(), multiple=True, help="Keep a parameter in a range."
    ),
    click.option("--fix", "fixed", cls=Distinct, type=Named(), multiple=True, help="Hold a parameter fixed."),
    click.option(
        "--feller",
        type=click.Choice(["warn", "enforce", "ignore"]),
        default="warn",
        show_default=True,
        help="Warn if Feller's condition is not met, enforce it, or ignore it.",
    ),
    click.option(
        "--starts", type=click.IntRange(min=1), default=4, show_default=True, help="At most n canonical starts."
    ),
    select_option,
    click.option(
        "--panel",
        metavar="auto|none|LABEL",
        callback=lambda _context, _option, word: None if word == "none" else word,
        help="A label, such as date: the model's latent parameter (initial variance) has one value for each. auto uses "
        "the date if there are several dates and enough quotes.  [default: none for a file, auto for a book]",
    ),
    click.option(
        "--errors",
        metavar="UNIT",
        default="auto",
        show_default=True,
        help="What the standard errors take to be independent: independent (quotes), cluster:LABELS, jackknife:LABEL. "
        "auto clusters by the panel's label, by date if there are several, or by expiry.",
    ),
    click.option(
        "--latent",
        metavar="PRIOR",
        default="free",
        show_default=True,
        help="What ties the dates of a panel to each other by the model's dynamics: free (nothing), smoothed (all "
        "dates) or filtered (each to earlier ones). smoothed:2 gives the strength.",
    ),
    click.option("--pool", is_flag=True, help="Fit quotes of several underlyings as one; they are refused otherwise."),
    max_reject_option,
    quarantine_option,
    profile_option,
    constant_option,
    check_option,
)
filtered_options = with_options(only_option, calibration_options)  # commands without a --where of their own
file_options = with_options(max_reject_option, quarantine_option, profile_option, constant_option, check_option)


def options_as_given() -> str:
    """Return the options of a calibration that the user gave to this command, each after a space."""
    context = click.get_current_context()
    words = []
    for option in context.command.params:
        name = option.name or ""
        if name not in REPEATED or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        pairs = value.items() if isinstance(value, dict) else ()
        values = [f"{key}={_typed(part)}" for key, part in pairs] or [_typed(value)]
        words += [f" {option.opts[0]} {quote(text)}" for text in values]
    return "".join(words)


def _typed(value: Any) -> str:
    if value is None:
        return "none"
    return ":".join(str(end) for end in value) if isinstance(value, tuple) else str(value)


def calibrate_file(
    file: str, *, model: str, only: str | None = None, pool: bool = False, **options: Any
) -> tuple[Reading, Calibration]:
    """Read a file and calibrate its quotes, as the options of ``calibration_options`` ask."""
    from strikeout.calibration.calibrate import calibrate

    how = {name: value for name, value in options.items() if name not in READING}
    reading = read_file(file, **{name: options[name] for name in READING})
    chosen = model_named(model)
    quotes = matching(reading.quotes, only, reading=reading)
    with terminal.ProgressLine(starts=min(how["starts"], len(chosen.parameters.starts))) as progress:
        return reading, calibrate(quotes, chosen, pool=pool, progress=progress, **how)


def calibrate_groups(file: str, by: str, *, model: str, only: str | None, **options: Any) -> tuple[Reading, Fleet]:
    """Read a file and calibrate each group of its quotes."""
    from strikeout.scale.fleet import calibrate_many

    how = {name: value for name, value in options.items() if name not in READING}
    reading = read_file(file, **{name: options[name] for name in READING})
    chosen = model_named(model)
    names = [name.strip() for name in by.split(",") if name.strip()]
    quotes = matching(reading.quotes, only, reading=reading)
    with terminal.ComparingLine(what="calibrations") as line:
        return reading, calibrate_many(quotes, chosen, by=names, progress=line, **how)


def with_headers_of(reading: Reading, where: str) -> str:
    """Return a condition on the quotes of a file in which the headers of the file are replaced by what they mean."""
    from strikeout.quotes.conditions import computed_columns, header_names, own_columns, with_headers

    quotes = reading.quotes
    known = (*own_columns(quotes), *computed_columns(quotes), *quotes.labels)
    return with_headers(where, *header_names(reading.columns), known)


def matching(quotes: Quotes, only: str | None, *, reading: Reading | None = None) -> Quotes:
    """Return the quotes that match a condition in SQL, each with the forward it has among all; all of them for None.

    Args:
        reading: of the file they are from, whose headers the condition may name.
    """
    if only is None:
        return quotes
    from strikeout.quotes.forwards import as_given
    from strikeout.quotes.selection import select

    ids = select(quotes, only if reading is None else with_headers_of(reading, only))
    if not len(ids):
        raise NothingMeantError(
            f"--where {only!r}: none of the {len(quotes):,} quotes matches. Check it with strikeout inspect FILE "
            "--where CONDITION.",
            where=only,
            count=len(quotes),
        )
    return as_given(quotes.only(ids)) if len(ids) < len(quotes) else quotes


def count_matching(reading: Reading, only: str) -> int:
    """Return how many quotes of a file match a condition in SQL."""
    from strikeout.quotes.selection import select

    return len(select(reading.quotes, with_headers_of(reading, only)))  # with their forwards, which a condition may use


def read_file(
    file: str,
    *,
    constants: dict[str, float | str],
    max_reject: float,
    quarantine: str | None = None,
    profile: str | None = None,
    checks: dict[str, float | str] | None = None,
    exercise: str = "auto",
    beside: Callable[[], Quotes] | None = None,
) -> Reading:
    """Read a file of quotes into memory and write its bad rows to the quarantine."""
    how: dict[str, Any] = {"profile": profile, "constants": constants, "checks": checks, "exercise": exercise}
    reading = open_file(file, beside=beside, **how)
    refuse_bad_rows(reading, max_reject=max_reject, quarantine=quarantine)
    return reading


def open_file(file: str, *, on_disk: bool = False, line: terminal.ReadingLine | None = None, **options: Any) -> Reading:
    """Read a file; the options are those of `inspect_quotes`, and ``folder``.

    Args:
        on_disk: read a file of any size, chunk by chunk; close the reading.
        line: shows the progress, also of a later step; its own by default.
    """
    from strikeout.quotes.reading import IN_MEMORY, Chunking, inspect_quotes

    folder = options.pop("folder", None)
    with line or terminal.ReadingLine() as shown:
        memory = replace(IN_MEMORY, progress=shown.step)
        chunking = Chunking(folder=folder, progress=shown.step) if on_disk else memory
        return inspect_quotes(file, chunking=chunking, **options)


def refuse_bad_rows(reading: Reading, *, max_reject: float, quarantine: str | None) -> None:
    """Write bad rows to the quarantine, if one is named, and refuse a file with too many of them."""
    from strikeout.quotes.reading import accept

    try:
        accept(reading, max_reject=max_reject, quarantine=quarantine)
    except RejectedError as error:
        if quarantine is None:
            raise
        raise error.extended(f" The bad rows are in {quarantine}.", quarantine=quarantine) from error


def reading_notes(reading: Reading | None, quarantine: str | None = None) -> list[str]:
    """Return notes on rows that were rejected, repeated, flagged or converted; none without such rows or a file."""
    notes: list[str] = []
    if reading is None:
        return notes
    if reading.rejected:
        first = reading.issues.first_rejected()
        where = f"quarantined in {quarantine}" if quarantine else "left out"
        some = f"{reading.rejected:,} of {many(reading.rows, 'row')}"
        notes.append(f"{reading.source}: {some} {where}. The first: {first}")
    if reading.repeated:
        repeats = f"{many(reading.repeated, 'row')} {agreeing(reading.repeated, 'repeats', 'repeat')}"
        notes.append(f"{reading.source}: {repeats} an earlier one exactly; kept once.")
    converted = reading.conversion_sentence()
    notes += [f"{reading.source}: {converted}."] if converted else []
    flags = reading.issues.flags(besides="Q201")  # the note above counts repeated rows
    return [*notes, f"{reading.source}: kept, but look at them: {flags}."] if flags else notes


def reading_counts(reading: Reading | None, quarantine: str | None = None) -> dict[str, Any]:
    """Return what was read, as plain values; nothing if no file was."""
    if reading is None:
        return {}
    return {
        "source": reading.source,
        "rows": reading.rows,
        "rejected": reading.rejected,
        "repeated": reading.repeated,
        "issues": reading.issues.counts,
        "quarantine": quarantine if reading.rejected else None,
    }
