"""Commands on a book as a whole: init, status, summary, log, certificate, compare, export, keygen, rotate-key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import (
    ENDING,
    ONE_VALUE,
    PARAMETER_HEADINGS,
    audit_key_option,
    entry_table,
    is_book,
    open_book,
    read_bytes,
)
from strikeout.cli.options import book_argument, json_option, output_options, reason_options, who_option
from strikeout.cli.terminal import Output, facts
from strikeout.errors import UsageError
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.store.entry import Reason


@click.command("init")
@book_argument
@click.option("--encrypt", is_flag=True, help="Keep quotes and states under keys that an erasure destroys.")
@click.option(
    "--smallest-erasure",
    type=click.IntRange(min=1),
    default=12,  # a test compares it with the book's own; importing that takes as long as the command
    show_default=True,
    metavar="K",
    help="Warn if fewer than K quotes are erased together: earlier results give them away.",
)
@click.option(
    "--approval",
    type=click.Choice(["one-person", "two-person"]),
    default="one-person",
    show_default=True,
    help="Whether a second person must approve that quotes are struck out or erased.",
)
@who_option
@json_option
def init(book: str, encrypt: bool, smallest_erasure: int, approval: Any, who: str | None, output: Output) -> int:
    """Make a new book: BOOK is a file NAME.book; its secrets go to NAME.book.key beside it.

    An existing file is left alone, and the command ends with 2.
    """
    from strikeout.book import Book
    from strikeout.store.keyring import key_file

    if not is_book(book):
        raise UsageError(f"{book}: the name of a book ends in {ENDING}. Call it {Path(book).stem}{ENDING}.", path=book)
    options = {"is_encrypted": encrypt, "smallest_erasure": smallest_erasure, "approval": approval}
    with Book.create(book, who=who, **options) as made:
        status, keys = made.status(), str(key_file(made.path))
    return output.result(
        {"book": book, "name": status.book, "key": status.key, "key_file": keys, "approval": approval},
        facts([("book", book), ("signed by", status.key), ("secrets in", keys), ("approval", approval)]),
        hints=[f"strikeout import {book} quotes.csv"],
    )


@click.command("status")
@book_argument
@audit_key_option
@output_options
def status(book: str, keys: tuple[str, ...], output: Output) -> int:
    """Show what BOOK holds, how it is calibrated, and whether that is current."""
    with open_book(book, keys=keys) as held:
        found = held.status()
    version = found.version
    pairs = [
        ("quotes", f"{found.held:,} held, {found.set_aside:,} set aside, {found.erased:,} erased"),
        ("shards", found.shard_sentence),
        ("ledger", many(found.entries, "entry", "entries")),
        ("head", f"{found.entries}:{found.root}"),
        ("public key", found.key),
        ("status", found.sentence),
    ]
    if version is None:
        return output.result(found.to_dict(), facts(pairs))
    pairs[:0] = [
        ("calibrated", f"{version.model} to {many(version.count, 'quote')}, entry {version.entry}"),
        ("fitted from", version.fit_source.sentence),
        ("errors", version.errors_sentence),
        *version.latent_facts(one_value=ONE_VALUE),
    ]
    rows = [
        (name, number(value), number(version.printed_errors[name], ".2g"), number(version.standard_errors[name], ".2g"))
        for name, value in version.parameters.items()
    ]
    drawn = Table(PARAMETER_HEADINGS, rows, numbers=(1, 2, 3), whole=(0,))
    return output.result(found.to_dict(), drawn, "", facts(pairs))


@click.command("summary")
@book_argument
@click.option("--diagnostics", is_flag=True, help="Also what residuals share and what the quotes determine.")
@json_option
def summary(book: str, diagnostics: bool, output: Output) -> int:
    """Show in a few lines what BOOK holds, what it is calibrated to, and what its quotes are."""
    with open_book(book) as held:
        text = held.summary(one_value=ONE_VALUE)
        calibration = held.status().to_dict()["calibration"]
        found = held.calibration().diagnostics() if diagnostics else None
    known = {"summary": text, "calibration": calibration}
    if found is None:
        return output.lines(known, text)
    return output.lines({**known, "diagnostics": found.to_dict()}, f"{text}\n\n{found.summary()}")


@click.command("log")
@book_argument
@audit_key_option
@output_options
def log(book: str, keys: tuple[str, ...], output: Output) -> int:
    """List every entry of the ledger of BOOK, the first first."""
    with open_book(book, keys=keys) as held:
        entries, approved = held.log(), held.approvals_of_removals()
    rows = [
        {
            **entry.to_dict(),
            "needed_approval": entry.number in approved,
            "approved_by_entry": approved.get(entry.number),
        }
        for entry in entries
    ]
    return output.result({"entries": rows}, entry_table(entries, approved))


@click.command("history")
@book_argument
@audit_key_option
@output_options
def history(book: str, keys: tuple[str, ...], output: Output) -> int:
    """Show parameters, standard errors and RMSE of every calibration that BOOK contains, the first one first.

    Results that an erasure removed are not listed: the book no longer contains them.
    """
    with open_book(book, keys=keys) as held:
        found = held.history()
    return output.result(found.to_dict(), found.to_table())


@click.command("approval")
@book_argument
@click.argument("policy", required=False, type=click.Choice(["one-person", "two-person"]))
@reason_options
@json_option
def approval(book: str, policy: Any, reason: Reason | None, who: str | None, output: Output) -> int:
    """Show or set whether removals from BOOK need a second person's approval.

    The policy is an entry of the ledger, so it holds in every folder. Back to one-person needs an approved request:
    strikeout request BOOK one-person.
    """
    with open_book(book, who=who) as held:
        entry = None if policy is None else held.set_approval(policy, reason=reason)
        now = held.approval
    return output.result({"approval": now, "entry": entry}, facts([("approval", now)]))


@click.command("certificate")
@click.argument("source", type=click.Path(path_type=str), metavar="BOOK|FILE")
@click.argument("entry", type=click.IntRange(min=1), required=False)
@click.option("--out", type=click.Path(path_type=str), help="Write the bytes here, for strikeout verify.")
@json_option
def certificate(source: str, entry: int | None, out: str | None, output: Output) -> int:
    """Show the certificate of ENTRY of the log of BOOK, or the one in FILE. Nothing is verified."""
    from strikeout.assurance.certificate import MOST_BYTES, Certificate

    if is_book(source):
        if entry is None:
            raise UsageError(f"Give the number of an entry of {source}; strikeout log lists them.", path=source)
        with open_book(source) as held:
            issued = held.certificate(entry)
    elif entry is not None:
        raise UsageError(f"{source}: a file has one certificate. Give it without a number.", path=source)
    else:
        content = read_bytes(source, MOST_BYTES, "Give the file that --certificate wrote.")
        try:
            issued = Certificate.from_bytes(content)
        except UsageError as error:
            raise UsageError(
                f"{source}: not a certificate, or a damaged one. Give the file that forget --certificate wrote.",
                path=source,
            ) from error
    if out is not None:
        from strikeout.quotes.writing import replace_file

        replace_file(out, lambda part: part.write_bytes(issued.to_bytes()))
    known = {**json.loads(issued.to_bytes()), "digest": issued.digest(), "out": out}
    return output.lines(known, issued.summary())


@click.command("compare")
@click.argument("first", type=click.Path(path_type=str))
@click.argument("second", type=click.Path(path_type=str))
@output_options
def compare(first: str, second: str, output: Output) -> int:
    """Compare the state and the parameters of two books, bit for bit.

    Each is taken as it was calibrated last. Ends with 1 if they differ, or if quotes were added or removed since.
    """
    with open_book(first) as one, open_book(second) as other:
        found = one.compare(other)
    stale = [path for path, now in zip((first, second), found.is_current, strict=True) if not now]
    rows = [
        (name, number(a, ".10g"), number(b, ".10g"), number(found.apart[name], "+.3g"))
        for name, (a, b) in found.parameters.items()
    ]
    table = Table(("parameter", "first", "second", "apart (SE of second)"), rows, numbers=(1, 2, 3), whole=(0,))
    pairs = [
        ("calibrated", f"to {found.counts[0]:,} and {many(found.counts[1], 'quote')}"),
        ("held", f"{found.held[0]:,} and {many(found.held[1], 'quote')}"),
        ("state", "the same, bit for bit" if found.is_same_state else "not the same"),
        ("parameters", "the same, bit for bit" if found.is_same_parameters else "not the same"),
        *(("stale", f"{path}: quotes were added or removed since it was calibrated") for path in dict.fromkeys(stale)),
    ]
    same = found.is_same_state and found.is_same_parameters and not stale
    code = exit_codes.DONE if same else exit_codes.FINDINGS
    return output.result(found.to_dict(), table, "", facts(pairs), code=code)


@click.command("export")
@book_argument
@click.argument("out", type=click.Path(path_type=str))
@who_option
@json_option
def export(book: str, out: str, who: str | None, output: Output) -> int:
    """Write what BOOK holds to OUT: quotes (.csv, .parquet), the calibration (.json), Python for QuantLib (.py).

    A file of quotes is entered in the ledger, and erasing removes it too.
    """
    with open_book(book, who=who) as held:
        written = held.export(out)
        is_result, is_current = written.suffix.lower() in (".json", ".py"), held.status().is_current
    if is_result and not is_current:
        terminal.note(
            f"quotes were added or removed since the calibration in {written}. To renew it: strikeout calibrate {book}"
        )
    return output.lines({"out": str(written)}, f"written to {written}")


@click.command("keygen")
@click.argument("file", type=click.Path(path_type=str))
@json_option
def keygen(file: str, output: Output) -> int:
    """Write a new secret key to FILE, readable by its owner alone, and print its public key.

    `strikeout forget --key FILE` signs certificates with it. Give the public key to those who verify them.
    """
    from strikeout.store.keyring import Keyring

    if Path(file).exists():
        raise UsageError(f"{file}: exists already, and a key is never overwritten. Give another name.", path=file)
    made = Keyring.generate()
    made.create(Path(file))
    return output.result(
        {"public": made.signer().public, "key_file": file},
        facts([("public key", made.signer().public), ("secret in", file)]),
        hints=[f"strikeout forget quotes.csv --where ... --certificate certificate.json --key {file}"],
    )


@click.command("rotate-key")
@book_argument
@reason_options
@json_option
def rotate_key(book: str, reason: Reason | None, who: str | None, output: Output) -> int:
    """Give BOOK a new key to sign its ledger with; the old key signs the handover and is deleted.

    Everything signed before can still be checked. Publish the new public key.
    """
    from strikeout.store.keyring import key_file

    with open_book(book, who=who) as held:
        done = held.rotate_key(reason=reason)
        keys = str(key_file(held.path))
    pairs = [("entry", str(done.entry)), ("signed by", done.new), ("before", done.old), ("secrets in", keys)]
    known = {**done.to_dict(), "key_file": keys}
    return output.result(known, facts(pairs), hints=[f"strikeout verify {book}"])
