"""What the commands on a book share: opening one, showing a change, and calibrate, forget and verify for books.

``--key`` names the public keys of a book, for the audit of a copy without its key file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.errors import UnreadableFileError, UsageError
from strikeout.models.named import model_named
from strikeout.tables import Cell, Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.book import Book
    from strikeout.book.forget import Plan
    from strikeout.book.results import Change
    from strikeout.book.version import Version
    from strikeout.cli.terminal import Output
    from strikeout.quotes.quotes import Quotes
    from strikeout.store.entry import Entry, Reason

MOST_KEYS = 1 << 16  # bytes of a file of public keys

audit_key_option = click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Read a copy of the book without its key file: the public key that must have signed its last entry (64 "
    "hexadecimal digits, as status prints it), or a file of such keys, one per line. Never a secret one.",
)


def public_keys_of(given: Iterable[str]) -> list[str]:
    """Return the public keys that options name: each is itself, or those in a file."""
    return [key for one in given for key in _keys_of(one)]


def _keys_of(given: str) -> list[str]:
    """Return the public keys that one option names."""
    from strikeout.store.keyring import is_hex

    if is_hex(given, 32):
        return [given]
    if not Path(given).exists():
        raise UsageError("--key: neither 64 hexadecimal digits in lower case nor a file. `strikeout status` prints it.")
    lines = (
        read_bytes(given, MOST_KEYS, "Give a file of public keys, one per line.")
        .decode("ascii", "replace")
        .splitlines()
    )
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found or not all(is_hex(line, 32) for line in found):
        raise UsageError(
            f"--key {given}: not a file of public keys, 64 hexadecimal digits per line. A book's key file "
            "(NAME.book.key) is secret; `strikeout status` prints the public key.",
            path=given,
        )
    return found


def read_bytes(path: str, most: int, remedy: str) -> bytes:
    """Return the first bytes of a file, at most one more than may be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read ({error.strerror}). {remedy}", path=path) from error


ENDING = ".book"
ONE_VALUE = "--panel none"  # how the command line asks for a plain calibration
WITH_PARAMETERS = {"bounds": "--bound", "fixed": "--fix", "starts": "--starts"}  # that may name parameters
PARAMETER_HEADINGS: tuple[str, ...] = ("parameter", "value", "standard error", "if independent")
ENTRY_HEADINGS = ("entry", "when", "who", "what", "counts", "approval", "why")


def is_book(path: str) -> bool:
    """Return whether a path names a book: it ends in .book."""
    return Path(path).suffix.lower() == ENDING


def open_book(path: str, *, who: str | None = None, keys: Sequence[str] = ()) -> Book:
    """Open the book of this name; with ``keys``, the words of --key, a copy for reading without its key file."""
    from strikeout.book import Book

    if not is_book(path):
        raise UsageError(
            f"{path}: not a book. The name of a book ends in {ENDING}. Make one: strikeout init "
            f"{Path(path).stem}{ENDING}",
            path=path,
        )
    return Book.open(path, who=who, public_key=public_keys_of(keys) or None)


def entry_table(entries: Sequence[Entry], approved: Mapping[int, int | None]) -> Table:
    """Return entries of the ledger, one row each.

    Args:
        approved: by entry, the approval of every removal that needed one; None if it had none.
    """
    from strikeout.store.entry import counts_in_words

    marks = {at: "MISSING" if by is None else f"entry {by}" for at, by in approved.items()}
    rows = [
        (
            number(entry.number, "d"),
            f"{entry.at[:19]}Z",
            entry.who,
            entry.what,
            ", ".join(counts_in_words(entry.counts)),
            marks.get(entry.number, ""),
            "" if entry.why is None else str(entry.why),
        )
        for entry in entries
    ]
    return Table(ENTRY_HEADINGS, rows, numbers=(0,), whole=(1, 5), spare=(6, 2))


def report_change(
    change: Change, output: Output, *, notes: Iterable[str] = (), hints: Iterable[str] = (), **more: Any
) -> int:
    """Print a change of a book and return the exit code: 3 if the calibration did not converge.

    Args:
        more: what else goes into the JSON.
    """
    before, after, moves = change.before, change.after, change.moved
    pairs = [
        ("entry", f"{change.entry}: {change.what}" + (f", {many(change.touched, 'quote')}" if change.touched else "")),
        ("quotes", f"{after.count:,} {'out of the money' if after.options.get('select') == 'otm' else 'retained'}"),
        ("RMSE", f"{_rmse(after)}, {after.model.partition('/')[0]}"),
        *([("fit error", change.fit_errors.sentence)] if change.fit_errors is not None else []),
        ("status", after.termination),
        ("fitted from", after.fit_source.sentence),
        ("errors", after.errors_sentence),
    ]
    pairs += [("path" if not n else "", sentence) for n, sentence in enumerate(change.path)]
    latent = after.latent_facts(one_value=ONE_VALUE)
    moves_of_latent = [("" if n or latent else "latent", words) for n, words in enumerate(change.latent_moves)]
    pairs += [*latent, *moves_of_latent]
    if change.certificate is not None:
        claims = ", ".join(claim.name for claim in change.certificate.claimed()) or "nothing"
        pairs.append(("certificate", f"{change.certificate.digest()[:16]} claims {claims}"))
    heads, errors = PARAMETER_HEADINGS, after.printed_errors
    rows: list[tuple[Cell, ...]] = [
        (name, number(value), number(errors[name], ".2g"), number(after.standard_errors[name], ".2g"))
        for name, value in after.parameters.items()
    ]
    if before is not None:
        heads = ("parameter", "before", "after", "SE after", "SE if independent", "moved (in that)")
        known = {name: number(value) for name, value in before.parameters.items()}
        rows = [(row[0], known.get(str(row[0]), "-"), *row[1:], move_cell(moves[str(row[0])])) for row in rows]
    table = Table(heads, rows, numbers=tuple(range(1, len(heads))), whole=(0,))
    code = exit_codes.DONE if after.converged else exit_codes.REFUSED
    if not after.converged and output.form != "table":  # a table printed alone has no status below it
        notes = [f"{after.termination}.", *notes]
    shown = table, "", terminal.facts(pairs)
    return output.result({**change.to_dict(), **more}, *shown, notes=notes, hints=hints, code=code)


def undo_hints(path: str, change: Change) -> list[str]:
    """Return the commands to try after a strike-out."""
    return [f"strikeout restore {path} {change.entry}", f"strikeout verify {path}"]


def move_cell(value: float | None) -> Cell:
    """Return a move in standard errors for a table."""
    if value is None or not isfinite(value):
        return number(None)
    return number(value)._replace(text=terminal.move_text(value))


def _rmse(version: Version) -> str:
    """Through moments the mean is weighted; for one step it is predicted, in the unit that weights give residuals."""
    from strikeout.calibration.summary import rmse_text

    is_step = version.step is not None
    weights = version.options["weights"] if is_step or version.options["through"] == "moments" else "none"
    return rmse_text(version.rmse, weights=weights, is_of_price=weights == "none" or not is_step)


def calibrate_book(
    book: Book,
    how: dict[str, Any],
    *,
    fresh: bool,
    reason: Reason | None,
    plot: str | None,
    output: Output,
) -> int:
    """Calibrate the quotes of a book and store the result.

    Args:
        how: the options given. Others are as the last time, or with ``fresh`` at their defaults.
    """
    from strikeout.book.calibrate import in_words

    asked = how.pop("model", None)
    model = None if asked is None else model_named(asked)
    starts = how.get("starts", 4)
    with terminal.ProgressLine(starts=starts if isinstance(starts, int) else len(starts)) as progress:
        change = book.calibrate(model, fresh=fresh, reason=reason, progress=progress, **how)
    kept_words = {name: in_words(value) for name, value in sorted(change.repeated.items())}
    if change.dropped:
        words = ", ".join(
            f"{WITH_PARAMETERS[name]} ({in_words(value)})" for name, value in sorted(change.dropped.items())
        )
        terminal.note(f"not as the last time, since the model is another: {words}.")
    if plot is not None:
        from strikeout.cli.report import write_book_plot

        write_book_plot(book, plot)
    kept = ", ".join(f"{name} {value}" for name, value in kept_words.items())
    note = f"as the last time: {kept}. With --fresh, options that are not given have their defaults."
    code = report_change(change, output, notes=[note] if kept else [], plot=plot, as_last_time=kept_words)
    if output.is_json:
        return code
    known = book.quotes().labels
    several = [name for name in ("date", "source") if name in known and len(set(known[name].tolist())) > 1]
    by = ",".join(several or ["expiry"])
    terminal.hint(f"strikeout influence {book.path} --by {by}", f"strikeout forget {book.path} --where ...")
    return code


def check_choice(within: Book | Quotes, chosen: Mapping[str, Any], *, is_all: bool, verb: str) -> None:
    """Raise an error if a condition matches no quote, or every quote and --all is not given."""
    where = chosen.get("where")
    if where is None:
        return
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.selection import nothing_matches, select

    if isinstance(within, Quotes):
        count, total = len(select(within, where)), len(within)
        if not count:
            raise nothing_matches(within, where, verb=verb)
    else:
        count, total = within.matching(where, verb=verb)
    if count == total and not is_all:
        raise UsageError(
            f"--where {where!r}: ALL {many(count, 'quote')} match. If you want to {verb} all of them, add --all.",
            where=where,
            count=count,
        )


def forget_from_book(
    book: Book,
    chosen: dict[str, Any],
    *,
    tolerance: float | None,
    yes: bool,
    reason: Reason | None,
    output: Output,
) -> int:
    """Plan a strike-out and write the plan beside the book, or with ``yes`` strike the quotes out."""
    if not yes:
        return _report_plan(book, book.plan_forget(**chosen, tolerance=tolerance, reason=reason), output)
    change = book.forget(**chosen, tolerance=tolerance, reason=reason)
    return report_change(change, output, hints=undo_hints(str(book.path), change))


def _report_plan(book: Book, plan: Plan, output: Output) -> int:
    """Write a plan beside the book and show it."""
    from strikeout.quotes.writing import replace_file

    path = replace_file(book.plan_path, lambda part: part.write_bytes(plan.to_bytes()))
    path.chmod(0o600)
    note = f"the plan is in {path}; strikeout apply {book.path} does it."
    return output.lines({**plan.to_dict(), "plan": str(path)}, plan.summary(), notes=[note])


def verify_book(path: str, *, head: str | None, keys: Sequence[str], output: Output) -> int:
    """Check a whole book, or with public keys a copy without its key file; return 1 if a check fails, 3 if one
    cannot be made here.
    """
    from strikeout.book import Book
    from strikeout.store.ledger import Head

    kept = None if head is None else Head.parse(head)
    if keys:
        found = Book.verify_copy(path, key=keys, head=kept)
    else:
        with open_book(path) as book:
            found = book.verify(head=kept)
    words = {True: "holds", False: "FAILS", None: "-"}
    rows = [
        (check.name, "unchecked" if check.is_unchecked else words[check.holds], check.found) for check in found.checks
    ]
    table, code = Table(("check", "result", "found"), rows, whole=(0, 1)), exit_codes.OF_VERDICT[found.verdict.name]
    return output.result(found.to_dict(), found.headline, "", table, code=code)
