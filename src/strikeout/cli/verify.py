"""``strikeout verify``: a certificate checked against the retained quotes, everything computed again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import is_book
from strikeout.cli.calibrating import accepted, described_reading, max_reject_option, tell_reading
from strikeout.cli.on_book import verify_book
from strikeout.cli.options import check_option, constant_option, json_option, profile_option
from strikeout.errors import UnreadableFileError, UsageError

if TYPE_CHECKING:
    from strikeout.assurance.verification import Verification

MOST_KEYS = 1 << 16  # bytes of a file of public keys


@click.command("verify")
@click.argument("certificate", type=click.Path(path_type=str))
@click.argument("retained", type=click.Path(path_type=str), required=False)
@click.option("--head", help="Of a book: NUMBER:ROOT as status printed it and somebody else kept it.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="The public key of the book that must have signed the certificate (64 hexadecimal digits, as status prints "
    "it), or a file of such keys, one a line. Never a secret one. With a book: check a copy without its key file.",
)
@max_reject_option
@profile_option
@constant_option
@check_option
@json_option
def command(
    certificate: str,
    retained: str | None,
    head: str | None,
    keys: tuple[str, ...],
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
        trusted = [one for given in keys for one in public_keys_of(given)]
        return verify_book(certificate, head=head, keys=trusted, as_json=as_json)
    if retained is None or head is not None:
        raise UsageError("Give a certificate and the file of retained quotes, or a book (NAME.book) alone.")
    from strikeout.assurance.certificate import MOST_BYTES
    from strikeout.assurance.verification import word_of
    from strikeout.store.signing import verify

    trusted = [one for given in keys for one in public_keys_of(given)]
    data = _bytes(certificate, MOST_BYTES, "Give the file that forget --certificate wrote.")
    reading = accepted(retained, profile=profile, constants=constants, max_reject=max_reject, checks=checks)
    found = verify(data, reading.quotes, key=trusted or None)
    if as_json:
        terminal.show_json({**described(found), **described_reading(reading)})
    else:
        rows = [(check.name, word_of(check), check.found) for check in found.checks]
        terminal.show(found.headline, "", terminal.table(("claim", "", "found"), rows, whole=(0, 1)), "")
        terminal.show(terminal.facts(found.remarks))
        tell_reading(reading)
    return exits.DONE if found.holds else exits.FINDINGS


def described(found: Verification) -> dict[str, Any]:
    """The verification as plain values."""
    return {
        "holds": found.holds,
        "state_is_right": found.state_is_right,
        "parameters_follow": found.parameters_follow,
        "is_optimum": found.is_optimum,
        "is_signed": found.is_signed,
        "not_said": list(found.silent),
        "laid_down": list(found.laid_down),
        "stated": list(found.stated),
        "reasons": list(found.reasons),
        "checks": [{"name": check.name, "holds": check.holds, "found": check.found} for check in found.checks],
    }


def public_keys_of(given: str) -> list[str]:
    """The public keys that an option names: itself, or those in a file.

    Raises:
        UsageError: it is neither, or the file holds secrets.
        UnreadableFileError: the file cannot be read.
    """
    from strikeout.store.keys import is_hex

    if is_hex(given, 32):
        return [given]
    if not Path(given).exists():
        raise UsageError("--key: neither 64 hexadecimal digits in lower case nor a file. `strikeout status` prints it.")
    lines = _bytes(given, MOST_KEYS, "Give a file of public keys, one a line.").decode("ascii", "replace").splitlines()
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found or not all(is_hex(line, 32) for line in found):
        raise UsageError(
            f"--key {given}: not a file of public keys, 64 hexadecimal digits a line. A book's key file "
            "(NAME.book.key) is secret and is for nobody else; `strikeout status` prints the public key.",
            path=given,
        )
    return found


def _bytes(path: str, most: int, remedy: str) -> bytes:
    """The beginning of a file: one byte more than may be read, of one that is longer."""
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read ({error.strerror}). {remedy}", path=path) from error
