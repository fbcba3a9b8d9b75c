"""``strikeout verify``: a certificate checked against the retained quotes, or a whole book."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import is_book, public_keys_of, read_bytes, verify_book
from strikeout.cli.fit_options import read_file, reading_counts, reading_notes
from strikeout.cli.options import layout_options, max_reject_option, output_options
from strikeout.errors import UsageError
from strikeout.tables import Table

if TYPE_CHECKING:
    from strikeout.assurance.verify import Verification
    from strikeout.cli.terminal import Output


def _with_file(found: Verification, certificate: bytes, path: str) -> Verification:
    """Return a verification with what the digest of the retained file shows, if the certificate contains one."""
    from strikeout.assurance.certificate import Certificate
    from strikeout.assurance.provenance import digest_of_file

    if not found.facts:
        return found  # not a certificate
    named = (Certificate.from_bytes(certificate).reading or {}).get("file")
    if named is None:
        return found
    is_same = digest_of_file(path) == named
    word = "byte for byte the one that the issuer wrote" if is_same else "not the one that the issuer wrote"
    return replace(found, facts=(*found.facts, ("file", word)))


def _check_order(certificate: str, retained: str) -> None:
    """Raise UsageError if the two files are given in the other order, or one of them is a book."""
    book = next((path for path in (certificate, retained) if is_book(path)), None)
    if book is not None:
        raise UsageError(f"{book}: a book is verified alone: strikeout verify {book}", path=book)
    if _begins_as_json(retained) and not _begins_as_json(certificate):
        raise UsageError(
            f"{retained} is a certificate and {certificate} is not: give the certificate first: "
            f"strikeout verify {retained} {certificate}",
            certificate=retained,
            retained=certificate,
        )


def _begins_as_json(path: str) -> bool:
    try:
        with Path(path).open("rb") as data:
            return data.read(1) == b"{"
    except OSError:
        return False


@click.command("verify")
@click.argument("certificate", type=click.Path(path_type=str))
@click.argument("retained", type=click.Path(path_type=str), required=False)
@click.option("--head", help="For a book: NUMBER:ROOT as status printed it and another person kept it.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="The public key that must have signed the certificate (64 hexadecimal digits, as status and keygen print it), "
    "or a file of such keys, one per line. Never a secret one. With a book: check a copy without its key file.",
)
@max_reject_option
@layout_options
@output_options
def verify(
    certificate: str,
    retained: str | None,
    head: str | None,
    keys: tuple[str, ...],
    output: Output,
    **options: Any,
) -> int:
    """Check CERTIFICATE against the file of RETAINED quotes: every claim is computed again from the quotes alone.

    Or check a whole book (NAME.book): its bytes, its ledger, its states and parameters computed again from what it
    retains. Ends with 0 if it is verified, with 1 if it is refuted, with 3 if it cannot be checked here.
    """
    trusted = public_keys_of(keys)
    if is_book(certificate) and retained is None:
        return verify_book(certificate, head=head, keys=trusted, output=output)
    if retained is None or head is not None:
        raise UsageError("Give a certificate and the file of retained quotes, or a book (NAME.book) alone.")
    _check_order(certificate, retained)
    from strikeout.assurance.certificate import MOST_BYTES
    from strikeout.assurance.verify import word_of
    from strikeout.store.signing import verify as check

    data = read_bytes(certificate, MOST_BYTES, "Give the file that forget --certificate wrote.")
    reading = read_file(retained, **options)
    found = _with_file(check(data, reading.quotes, key=trusted or None), data, retained)
    rows = [(each.name, word_of(each), each.found) for each in found.checks]
    return output.result(
        {**found.to_dict(), **reading_counts(reading)},
        found.headline,
        "",
        Table(("claim", "result", "found"), rows, whole=(0, 1)),
        "",
        terminal.facts((*found.facts, *found.remarks)),
        notes=reading_notes(reading),
        code=exit_codes.OF_VERDICT[found.verdict.name],
    )
