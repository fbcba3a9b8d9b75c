"""``strikeout verify``: a certificate checked against the retained quotes, everything computed again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import is_book, opened
from strikeout.cli.calibrating import accepted, described_reading, max_reject_option, tell_reading
from strikeout.cli.on_book import verify_book
from strikeout.cli.options import check_option, constant_option, json_option, profile_option
from strikeout.errors import UnreadableFileError, UsageError

if TYPE_CHECKING:
    from strikeout.assurance.verification import Verification


@click.command("verify")
@click.argument("certificate", type=click.Path(path_type=str))
@click.argument("retained", type=click.Path(path_type=str), required=False)
@click.option("--head", help="Of a book: NUMBER:ROOT as status printed it and somebody else kept it.")
@max_reject_option
@profile_option
@constant_option
@check_option
@json_option
def command(
    certificate: str,
    retained: str | None,
    head: str | None,
    max_reject: float,
    profile: str | None,
    constants: dict[str, float | str],
    checks: dict[str, float | str],
    as_json: bool,
) -> int:
    """Check CERTIFICATE against the file of RETAINED quotes: every claim is computed again from the quotes alone.

    Or check a whole book (NAME.book): its bytes, its ledger, its states and parameters computed again from what it
    retains. Ends with 1 where it does not hold, and says why.
    """
    if is_book(certificate) and retained is None:
        with opened(certificate) as book:
            return verify_book(book, head=head, as_json=as_json)
    if retained is None or head is not None:
        raise UsageError("Give a certificate and the file of retained quotes, or a book (NAME.book) alone.")
    from strikeout.assurance.verify import verify

    reading = accepted(retained, profile=profile, constants=constants, max_reject=max_reject, checks=checks)
    found = verify(_bytes(certificate), reading.quotes)
    if as_json:
        terminal.show_json({**described(found), **described_reading(reading)})
    else:
        rows = [(check.name, word_of(check.holds), check.found) for check in found.checks]
        head = "The certificate holds." if found.holds else "The certificate does not hold."
        terminal.show(head, "", terminal.table(("claim", "", "found"), rows, whole=(0, 1)))
        tell_reading(reading)
    return exits.DONE if found.holds else exits.FINDINGS


def described(found: Verification) -> dict[str, Any]:
    """The verification as plain values."""
    return {
        "holds": found.holds,
        "reasons": list(found.reasons),
        "checks": [{"name": check.name, "holds": check.holds, "found": check.found} for check in found.checks],
    }


def word_of(holds: bool | None) -> str:
    """A check in a word."""
    return "not claimed" if holds is None else "holds" if holds else "FAILS"


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UnreadableFileError(
            f"{path}: cannot be read ({error.strerror}). Give the file that forget --certificate wrote.", path=path
        ) from error
