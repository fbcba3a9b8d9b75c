"""Options that several commands share, and the values in them: NAME=VALUE, NAME=LOW:HIGH, reasons, chosen quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import Any, get_args

import click
from click.core import ParameterSource

from strikeout.cli.terminal import Format, Output
from strikeout.errors import UnreadableFileError, UsageError
from strikeout.text import did_you_mean

Command = Callable[..., Any]
REASONS = ("bad-feed", "licence", "subject-request", "error", "test", "other")  # a test compares them with the ledger's


class Named(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """``NAME=VALUE`` as a pair (name, number)."""

    name = "NAME=VALUE"
    advice = ""  # a sentence with a space before it

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if not isinstance(value, str):
            given: tuple[str, Any] = value
            return given
        name, equals, rest = value.partition("=")
        if not equals or not name.strip() or not rest.strip():
            self.fail(f"{value!r} is not of the form {self.name}.{self.advice}", param, ctx)
        return name.strip(), self.parsed(rest.strip(), value, param, ctx)

    def parsed(self, rest: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.number(rest, whole, param, ctx)

    def number(self, text: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not isfinite(number):
            self.fail(f"{whole!r}: {text!r} is not a finite number; the form is {self.name}.", param, ctx)
        return number


class NamedRange(Named):
    """``NAME=LOW:HIGH`` as a pair (name, (low, high))."""

    name = "NAME=LOW:HIGH"

    def parsed(self, rest: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        low, colon, high = rest.partition(":")
        if not colon:
            self.fail(f"{whole!r} is not of the form {self.name}.", param, ctx)
        return self.number(low, whole, param, ctx), self.number(high, whole, param, ctx)


class NamedText(Named):
    """``NAME=VALUE`` as a pair (name, value): a number if it can be read as one, else text.

    Args:
        name: the form, in messages.
        advice: what to give instead, as a sentence with a space before it.
    """

    def __init__(self, name: str = "NAME=VALUE", advice: str = "") -> None:
        self.name, self.advice = name, advice

    def parsed(self, rest: str, whole: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        try:
            return float(rest)
        except ValueError:
            return rest


class NearestChoice(click.Choice):  # type: ignore[type-arg]  # generic only in newer clicks
    """One of several words; the error for another word names the one most like it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            meant = did_you_mean(str(value), map(str, self.choices))
            raise click.BadParameter(f"{error.message}{meant}", ctx, param) from error


class Distinct(click.Option):
    """A repeatable NAME=... option whose value is a mapping; the same name twice is refused."""

    def process_value(self, ctx: click.Context, value: Any) -> dict[str, Any]:
        pairs = super().process_value(ctx, value) or ()
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise click.BadParameter(f"{twice[0]} is given twice.", ctx=ctx, param=self)
        return dict(pairs)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds these options to a command, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


file_argument = click.argument("file", type=click.Path(path_type=str))
optional_file_argument = click.argument("file", type=click.Path(path_type=str), required=False)
book_argument = click.argument("book", type=click.Path(path_type=str))
check_option = click.option(
    "--check",
    "checks",
    cls=Distinct,
    type=NamedText("CODE=WHAT", " A set of rules is preset=desk or preset=academic."),
    multiple=True,
    metavar="CODE=WHAT",
    help="How strict a rule is: a limit, off, reject, or both as in Q208=0.3,reject; all=off turns all off; "
    "preset=desk or preset=academic is a set of rules.",
)
profile_option = click.option(
    "--profile",
    metavar="NAME|TOML",
    help="The layout of the file: a name of `strikeout profiles`, or a .toml file; by default found by its columns.",
)
_constant_option = click.option(
    "--constant",
    "constants",
    cls=Distinct,
    type=NamedText(),
    multiple=True,
    help="A canonical column the file does not have, with one value for all rows, such as rate=0.",
)


def rates_option(command: Command) -> Command:
    """Add ``--rates`` to a command, whose ``constants`` get the curve as their rate."""

    @wraps(command)
    def with_rates(*args: Any, rates: str | None, **options: Any) -> Any:
        if rates is not None:
            if str(options.get("file") or "").lower().endswith(".book"):
                raise UsageError("--rates is for files: the quotes of a book have their discounts. Leave it out.")
            if "rate" in options["constants"]:
                raise UsageError("Give one of --rates CURVE and --constant rate=VALUE, not both.")
            options["constants"] = {**options["constants"], "rate": rates}
        return command(*args, **options)

    return click.option(
        "--rates",
        type=click.Path(path_type=str),
        metavar="CURVE",
        help="A .csv of rates by tenor: years (or days) and rate, per year as decimals; for discounts.",
    )(with_rates)


def exercise_option(command: Command) -> Command:
    """Add ``--exercise`` to a command that reads files."""

    @wraps(command)
    def with_exercise(*args: Any, **options: Any) -> Any:
        if options["exercise"] != "auto" and str(options.get("file") or "").lower().endswith(".book"):
            raise UsageError("--exercise is for files: a book keeps how its quotes were imported. Leave it out.")
        return command(*args, **options)

    return click.option(
        "--exercise",
        type=click.Choice(["european", "american", "auto"]),
        default="auto",
        show_default=True,
        help="Read American prices as European ones: of rows marked so (auto), of all rows (american), or of none.",
    )(with_exercise)


def dividends_option(command: Command) -> Command:
    """Add ``--dividends`` and ``--dividend-model`` to a command, whose ``constants`` get both."""

    @wraps(command)
    def with_dividends(*args: Any, dividends: str | None, dividend_model: str | None, **options: Any) -> Any:
        if dividends is None and dividend_model is not None:
            raise UsageError("--dividend-model needs --dividends FILE.")
        if dividends is not None:
            if str(options.get("file") or "").lower().endswith(".book"):
                raise UsageError("--dividends is for files: the quotes of a book keep their dividends. Leave it out.")
            model = {} if dividend_model is None else {"dividend_model": dividend_model}
            options["constants"] = {**options["constants"], "dividends": dividends, **model}
        return command(*args, **options)

    made = click.option(
        "--dividend-model",
        type=click.Choice(["escrowed", "piecewise"]),
        help="The spot less its dividends is lognormal (escrowed, the default), or the spot between ex-dates is.",
    )(with_dividends)
    return click.option(
        "--dividends",
        type=click.Path(path_type=str),
        metavar="FILE",
        help="A .csv of cash dividends for American quotes: underlying, ex_date and amount.",
    )(made)


constant_option = with_options(_constant_option, rates_option, exercise_option, dividends_option)
layout_options = with_options(profile_option, constant_option, check_option)
max_reject_option = click.option(
    "--max-reject",
    type=click.FloatRange(0.0, 1.0),
    default=0.1,
    show_default=True,
    help="The share of unreadable rows above which the file is refused; expired rows and empty markets do not count.",
)
quarantine_option = click.option(
    "--quarantine", type=click.Path(path_type=str), help="A CSV for the bad rows, each with its problem."
)
only_option = click.option(
    "--where",
    "--only",
    "only",
    metavar="SQL",
    help='Use only the quotes that match: "expiry_years < 2 and strike > 90".',
)
who_option = click.option("--who", envvar="STRIKEOUT_WHO", help="The name for the ledger; by default the user's.")
source_option = click.option("--source", help="The source of the quotes, if the file has no column source.")


class Group(click.Group):
    """A group whose help shows the first sentence of each command whole; click cuts it to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(500)) for name, command in self.commands.items()])


def json_option(command: Command) -> Command:
    """Add ``--json`` to a command, which gets ``output``."""

    @wraps(command)
    def with_output(*args: Any, as_json: bool, form: Format = "table", **options: Any) -> Any:
        if as_json and form not in ("table", "json"):
            raise UsageError(f"--json and --format {form} exclude each other. Leave one out.", option="--format")
        return command(*args, output=Output("json" if as_json else form), **options)

    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")(with_output)


def output_options(command: Command) -> Command:
    """Add ``--json`` and ``--format`` to a command, which gets ``output``."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(get_args(Format)),
        default="table",
        show_default=True,
        help="Print the table alone as csv, latex or markdown; json is the same as --json.",
    )(json_option(command))


def reason_options(command: Command) -> Command:
    """Add the options of the ledger to a command, which gets ``who`` and ``reason``, a ``Reason`` or None."""

    @wraps(command)
    def with_reason(*args: Any, reason: str | None, note: str, ticket: str, **options: Any) -> Any:
        return command(*args, reason=reason_of(reason, note, ticket), **options)

    return with_options(
        click.option(
            "--reason",
            type=click.Choice(REASONS),
            metavar="CODE",
            help=f"The reason for the ledger: {', '.join(REASONS[:-1])} or {REASONS[-1]}.",
        ),
        click.option("--note", default="", help="The reason in your own words, one line; name no quote in it."),
        click.option("--ticket", default="", help="The number of a ticket."),
        who_option,
    )(with_reason)


def reason_of(reason: str | None, note: str, ticket: str) -> Any:
    """Return the reason these options give; None if none is given."""
    if reason is None:
        if note or ticket:
            raise UsageError(f"--note and --ticket go with --reason, one of {', '.join(REASONS)}. Add it.")
        return None
    from strikeout.store.entry import Reason

    return Reason(reason, note, ticket)


def choice_options(verb: str) -> Callable[[Command], Command]:
    """Return a decorator that adds --where, --ids, --ids-from and --all to a command: ``chosen`` and ``is_all``.

    Args:
        verb: what the command does to the quotes; None as an argument of the command called ``what`` gives it.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_choice(*args: Any, where: str | None, ids: str | None, ids_from: str | None, **options: Any) -> Any:
            if options.get("what") == "one-person" and (where, ids, ids_from) == (None, None, None):
                return command(*args, chosen={}, **options)  # about the book, not about quotes
            chosen = chosen_quotes(where, ids, ids_from, verb=options.get("what", verb))
            return command(*args, chosen=chosen, **options)

        return with_options(
            click.option("--where", metavar="SQL", help=f"The quotes to {verb}: \"source = 'b' and strike > 120\"."),
            click.option("--ids", help="The quotes with these ids, separated by commas."),
            click.option("--ids-from", type=click.Path(path_type=str), help="The same from a file, one id per line."),
            click.option("--all", "is_all", is_flag=True, help="Confirm a condition that every quote matches."),
        )(with_choice)

    return decorate


def chosen_quotes(where: str | None, ids: str | None, ids_from: str | None, *, verb: str) -> dict[str, Any]:
    """Return the quotes that these options choose, as keywords of ``forget``."""
    if sum(given is not None for given in (where, ids, ids_from)) != 1:
        raise UsageError(f"Choose the quotes to {verb} in one way: --where CONDITION, --ids A,B or --ids-from FILE.")
    if where is not None:
        return {"where": where}
    if ids is not None:
        names = [name.strip() for name in ids.split(",") if name.strip()]
        if not names:
            raise UsageError(f"--ids {ids!r} names no quote. Give the ids of those to {verb}, separated by commas.")
        return {"ids": names}
    try:
        lines = Path(str(ids_from)).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UnreadableFileError(f"{ids_from}: cannot be read ({why}). Give a text file, one id per line.") from error
    return {"ids": [line.strip() for line in lines if line.strip()]}


def given_options(names: Iterable[str], *, or_configured: bool = False) -> dict[str, str]:
    """Return which of these parameters the user gave to the running command, and how each is spelled.

    Args:
        or_configured: whether a setting counts too. Defaults never count.
    """
    context = click.get_current_context()
    spelled = {str(param.name): max(param.opts, key=len) for param in context.command.params}
    sources = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    sources |= {ParameterSource.DEFAULT_MAP} if or_configured else set()
    return {name: spelled[name] for name in names if context.get_parameter_source(name) in sources}


def refuse_given(names: Iterable[str], why: str) -> None:
    """Raise UsageError if the user gave one of these parameters, which do not apply here."""
    for option in given_options(names).values():
        raise UsageError(f"{why} {option} does not apply here. Leave it out.", option=option)
