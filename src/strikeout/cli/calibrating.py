"""A calibration made in the same call: the options that say how, shared by every command that needs one."""

from __future__ import annotations

from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from strikeout.cli import terminal
from strikeout.cli.options import Distinct, Named, NamedRange, check_option, constant_option, profile_option
from strikeout.cli.reading import reading_of, refuse_bad_rows
from strikeout.models.named import MODELS, model_named
from strikeout.wording import agreeing, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading

READING = ("checks", "constants", "max_reject", "profile", "quarantine")
REPEATED = (  # what a command that takes it further must be told again
    "model", "weights", "residual", "loss", "bounds", "fixed", "feller", "starts", "select", "panel",
    "max_reject", "profile", "constants", "checks",
)  # fmt: skip

model_option = click.option(
    "--model",
    type=click.Choice(MODELS),
    metavar="NAME",
    default="heston",
    show_default=True,
    help=f"What is calibrated: {', '.join(list(MODELS)[:-1])} or {list(MODELS)[-1]}.",
)
max_reject_option = click.option(
    "--max-reject",
    type=click.FloatRange(0.0, 1.0),
    default=0.1,
    show_default=True,
    help="The share of bad rows above which the file is refused.",
)
weights_option = click.option(
    "--weights",
    type=click.Choice(["given", "none", "relative", "vega", "spread"]),
    default="given",
    show_default=True,
    help="What each quote counts for: its weight column, all the same, 1/price², 1/vega², 1/spread².",
)
residual_option = click.option(
    "--residual",
    type=click.Choice(["price", "implied_vol"]),
    default="price",
    show_default=True,
    help="What is compared with the model.",
)
loss_option = click.option(
    "--loss",
    type=click.Choice(["squared", "huber"]),
    default="squared",
    show_default=True,
    help="How a residual is charged; huber bears with outliers.",
)
quarantine_option = click.option(
    "--quarantine", type=click.Path(path_type=str), help="A CSV for the bad rows, each with what is wrong."
)
select_option = click.option(
    "--select",
    type=click.Choice(["all", "otm"]),
    default="all",
    show_default=True,
    help="Which quotes count: all, or puts below the forward and calls above. The others stay in the book.",
)
OPTIONS = (
    model_option,
    weights_option,
    residual_option,
    loss_option,
    click.option(
        "--bound", "bounds", cls=Distinct, type=NamedRange(), multiple=True, help="Keep a parameter in a range."
    ),
    click.option("--fix", "fixed", cls=Distinct, type=Named(), multiple=True, help="Take a parameter as known."),
    click.option(
        "--feller",
        type=click.Choice(["warn", "enforce", "ignore"]),
        default="warn",
        show_default=True,
        help="Say when Feller's condition is not met, keep to it, or leave it.",
    ),
    click.option(
        "--starts", type=click.IntRange(min=1), default=4, show_default=True, help="At most so many canonical starts."
    ),
    select_option,
    click.option(
        "--panel",
        metavar="auto|none|LABEL",
        callback=lambda _context, _option, word: None if word == "none" else word,
        help="A label, such as date: the model's latent parameter (initial variance) has a value of its own for each. "
        "auto is by date where there are several dates and quotes enough.  [default: none of a file, auto of a book]",
    ),
    max_reject_option,
    quarantine_option,
    profile_option,
    constant_option,
    check_option,
)


def calibration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command every option of a calibration; they reach it as keywords for ``calibrated``."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def as_given() -> str:
    """The options of a calibration as this command was given them, each after a space, to be typed again."""
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


def calibrated(file: str, *, model: str, **options: Any) -> tuple[Reading, Calibration | PanelCalibration]:
    """The quotes of a file and the calibration of them, as the options say.

    Raises:
        QuotesError: the file cannot be read as quotes, or too many of its rows are bad.
        UsageError: an option that cannot be.
        RefusedError: there are too few quotes, or one lacks what an option needs.
    """
    from strikeout.calibration.calibrate import calibrate

    how = {name: value for name, value in options.items() if name not in READING}
    reading = accepted(file, **{name: options[name] for name in READING})
    chosen = model_named(model)
    progress = terminal.ProgressLine(starts=min(how["starts"], len(chosen.parameters.starts)))
    try:
        return reading, calibrate(reading.quotes, chosen, progress=progress, **how)
    finally:
        progress.end()


def accepted(
    file: str,
    *,
    constants: dict[str, float | str],
    max_reject: float,
    quarantine: str | None = None,
    profile: str | None = None,
    checks: dict[str, float | str] | None = None,
    beside: Callable[[], Quotes] | None = None,
) -> Reading:
    """The reading of a file, its bad rows in the quarantine.

    Raises:
        QuotesError: the file cannot be read as quotes, or too many of its rows are bad.
    """
    reading = reading_of(file, profile=profile, constants=constants, checks=checks, beside=beside)
    refuse_bad_rows(reading, max_reject=max_reject, quarantine=quarantine)
    return reading


def tell_reading(reading: Reading, quarantine: str | None = None) -> None:
    """Says which rows were left out, kept once or are doubtful; nothing where all are fine."""
    if reading.rejected:
        first = reading.issues.first_rejected()
        where = f"quarantined in {quarantine}" if quarantine else "left out"
        some = f"{reading.rejected:,} of {many(reading.rows, 'row')}"
        terminal.note(f"{reading.source}: {some} {where}. The first: {first}")
    if reading.repeated:
        repeats = f"{many(reading.repeated, 'row')} {agreeing(reading.repeated, 'repeats', 'repeat')}"
        terminal.note(f"{reading.source}: {repeats} an earlier one exactly; kept once.")
    flags = reading.issues.flags(besides="Q201")  # repeats were told of above
    if flags:
        terminal.note(f"{reading.source}: kept, but look at them: {flags}.")


def described_reading(reading: Reading, quarantine: str | None = None) -> dict[str, Any]:
    """What was read, as plain values."""
    return {
        "source": reading.source,
        "rows": reading.rows,
        "rejected": reading.rejected,
        "repeated": reading.repeated,
        "issues": reading.issues.counts,
        "quarantine": quarantine if reading.rejected else None,
    }
