"""What the commands on a book share: how one is opened, why something is done, and how a change is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from strikeout.cli import terminal
from strikeout.errors import UsageError
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.book import Book
    from strikeout.book.results import Change
    from strikeout.book.version import Version
    from strikeout.store.entry import Entry, Reason

ENDING = ".book"
NOTHING_MEANT = "no quote is meant by that"
ONE_VALUE = "--panel none"  # how a plain calibration is asked for here
REASONS = ("bad-feed", "licence", "subject-request", "error", "test", "other")  # a test holds it to the ledger's

book_argument = click.argument("book", type=click.Path(path_type=str))
who_option = click.option(
    "--who", envvar="STRIKEOUT_WHO", help="The name the ledger will carry; the user's where not given."
)
WHY = (
    click.option(
        "--reason",
        type=click.Choice(REASONS),
        metavar="CODE",
        help=f"Why, for the ledger: {', '.join(REASONS[:-1])} or {REASONS[-1]}.",
    ),
    click.option("--note", default="", help="Why in your own words, one line; name no quote in it."),
    click.option("--ticket", default="", help="The number of a ticket."),
    who_option,
)


def why_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options that say who does it and why."""
    for option in reversed(WHY):
        command = option(command)
    return command


def reason_of(reason: str | None, note: str, ticket: str) -> Reason | None:
    """The reason these options give; None where none is given.

    Raises:
        UsageError: a note or a ticket without a reason, or text that does not print on one line.
    """
    from strikeout.store.entry import Reason

    if reason is None:
        if note or ticket:
            raise UsageError(f"A note or a ticket goes with --reason, one of {', '.join(REASONS)}. Add it.")
        return None
    return Reason(reason, note, ticket)


def is_book(path: str) -> bool:
    """Whether a path means a book: its name ends in .book."""
    return Path(path).suffix.lower() == ENDING


def opened(path: str, *, who: str | None = None) -> Book:
    """The book of this name.

    Raises:
        UsageError: the name does not end in .book.
        BookError: there is no such book, or it cannot be used.
        RefusedError: its key file cannot be.
    """
    from strikeout.book import Book
    from strikeout.cli.configuration import configuration

    if not is_book(path):
        raise UsageError(
            f"{path}: that is no book, whose name ends in {ENDING}. Give one, or make it: strikeout init "
            f"{Path(path).stem}{ENDING}",
            path=path,
        )
    return Book.open(path, who=who, is_two_person=configuration().is_two_person)


def created(path: str, *, who: str | None, is_encrypted: bool, smallest_erasure: int) -> Book:
    """A new book of this name.

    Raises:
        UsageError: the name does not end in .book.
        BookError: there is a file of that name, or none can be made.
        RefusedError: its key file cannot be written.
    """
    from strikeout.book import Book

    if not is_book(path):
        raise UsageError(f"{path}: the name of a book ends in {ENDING}. Call it {Path(path).stem}{ENDING}.", path=path)
    return Book.create(path, who=who, is_encrypted=is_encrypted, smallest_erasure=smallest_erasure)


def given(names: Iterable[str], *, or_configured: bool = False) -> dict[str, str]:
    """Which of these parameters of the running command were given, and how each is spelled; defaults do not count.

    Args:
        or_configured: whether what a setting says counts too.
    """
    context = click.get_current_context()
    spelled = {str(param.name): max(param.opts, key=len) for param in context.command.params}
    said = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    said |= {ParameterSource.DEFAULT_MAP} if or_configured else set()
    return {name: spelled[name] for name in names if context.get_parameter_source(name) in said}


def refuse_given(names: Iterable[str], why: str) -> None:
    """Nothing, where the user gave none of these parameters.

    Raises:
        UsageError: one was given, and it has no meaning here.
    """
    for option in given(names).values():
        raise UsageError(f"{why} {option} has no meaning here. Leave it out.", option=option)


def described_change(change: Change) -> dict[str, Any]:
    """A change as plain values."""
    from strikeout.book.describe import described_version

    return {
        "entry": change.entry,
        "what": change.what,
        "touched": change.touched,
        "before": None if change.before is None else dict(change.before.parameters),
        **described_version(change.after),
        "moved": change.moved,
        "path": list(change.path),
        "certificate": None if change.certificate is None else change.certificate.digest(),
        "claims": None if change.certificate is None else change.certificate.made,
    }


ENTRY = ("entry", "when", "who", "what", "counts", "why")


def entry_row(entry: Entry) -> tuple[str, ...]:
    """An entry of the ledger as a row of a table below ``ENTRY``."""
    return (
        str(entry.number),
        f"{entry.at[:19]}Z",
        entry.who,
        entry.what,
        ", ".join(f"{name} {count:,}" for name, count in entry.counts.items()),
        "" if entry.why is None else str(entry.why),
    )


def described_entry(entry: Entry) -> dict[str, Any]:
    """An entry of the ledger as plain values, its hash beside it."""
    return {**entry.to_json(), "hash": entry.hash().hex()}


def show_change(change: Change) -> None:
    """The parameters before and after, and what was done."""
    before, after, moves = change.before, change.after, change.moved
    values = [
        (name, f"{value:.6g}", terminal.error_text(after.standard_errors[name]))
        for name, value in after.parameters.items()
    ]
    pairs = [
        ("entry", f"{change.entry}: {change.what}" + (f", {many(change.touched, 'quote')}" if change.touched else "")),
        ("quotes", f"{after.count:,} {'out of the money' if after.asking.get('select') == 'otm' else 'retained'}"),
        ("RMSE", f"{_rmse(after)}, {after.model.partition('/')[0]}"),
        ("status", after.termination),
    ]
    pairs += [("fitted from", after.fit_source.sentence)]
    pairs += [("path" if not n else "", sentence) for n, sentence in enumerate(change.path)]
    latent = after.latent_facts(one_value=ONE_VALUE)
    moves_of_latent = [("" if n or latent else "latent", told) for n, told in enumerate(change.latent_moves)]
    pairs += [*latent, *moves_of_latent]
    if change.certificate is not None:
        claims = ", ".join(claim.name for claim in change.certificate.claimed()) or "nothing"
        pairs.append(("certificate", f"{change.certificate.digest()[:16]} claims {claims}"))
    heads: tuple[str, ...] = ("parameter", "value", "standard error")
    rows: list[tuple[str, ...]] = list(values)
    if before is not None:
        heads = ("parameter", "before", "after", "SE after", "moved (SE after)")
        known = {name: f"{value:.6g}" for name, value in before.parameters.items()}
        rows = [(name, known.get(name, "-"), *rest, _move(moves[name])) for name, *rest in values]
    numbers = tuple(range(1, len(heads)))
    terminal.show(terminal.table(heads, rows, numbers=numbers, whole=(0,)), "", terminal.facts(pairs))


def _rmse(version: Version) -> str:
    """Through moments the mean is weighted; of one step it is predicted, in the unit that weights give residuals."""
    from strikeout.calibration.summary import rmse_text

    is_step = version.step is not None
    weights = version.asking["weights"] if is_step or version.asking["through"] == "moments" else "none"
    return rmse_text(version.rmse, weights=weights, is_of_price=weights == "none" or not is_step)


def _move(value: float | None) -> str:
    return "-" if value is None or not isfinite(value) else terminal.move_text(value)
