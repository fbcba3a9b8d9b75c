"""Commands on a book as a whole: init, status, summary, log, certificate, compare, export, keygen, rotate-key."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
from strikeout.errors import UsageError
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.cli.terminal import Format
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
def init(book: str, encrypt: bool, smallest_erasure: int, approval: Any, who: str | None, as_json: bool) -> int:
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
    if as_json:
        known = {"book": book, "name": status.book, "key": status.key, "key_file": keys, "approval": approval}
        terminal.show_json(known)
    else:
        pairs = [("book", book), ("signed by", status.key), ("secrets in", keys), ("approval", approval)]
        terminal.show(terminal.facts(pairs))
        terminal.hint(f"strikeout import {book} quotes.csv")
    return exit_codes.DONE


@click.command("status")
@book_argument
@audit_key_option
@output_options
def status(book: str, keys: tuple[str, ...], as_json: bool, form: Format) -> int:
    """Show what BOOK holds, how it is calibrated, and whether that is current."""
    with open_book(book, keys=keys) as held:
        found = held.status()
    version = found.version
    if as_json:
        terminal.show_json(found.to_dict())
        return exit_codes.DONE
    pairs = [
        ("quotes", f"{found.held:,} held, {found.set_aside:,} set aside, {found.erased:,} erased"),
        ("shards", found.shard_sentence),
        ("ledger", many(found.entries, "entry", "entries")),
        ("head", f"{found.entries}:{found.root}"),
        ("public key", found.key),
        ("status", found.sentence),
    ]
    if version is None:
        terminal.show_result(form, terminal.facts(pairs))
        return exit_codes.DONE
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
    terminal.show_result(form, drawn, "", terminal.facts(pairs))
    return exit_codes.DONE


@click.command("summary")
@book_argument
@click.option("--diagnostics", is_flag=True, help="Also what residuals share and what the quotes determine.")
@json_option
def summary(book: str, diagnostics: bool, as_json: bool) -> int:
    """Show in a few lines what BOOK holds, what it is calibrated to, and what its quotes are."""
    with open_book(book) as held:
        text = held.summary(one_value=ONE_VALUE)
        calibration = held.status().to_dict()["calibration"]
        found = held.calibration().diagnostics() if diagnostics else None
    if as_json:
        more = {} if found is None else {"diagnostics": found.to_dict()}
        terminal.show_json({"summary": text, "calibration": calibration, **more})
    else:
        terminal.show_lines(text if found is None else f"{text}\n\n{found.summary()}")
    return exit_codes.DONE


@click.command("log")
@book_argument
@audit_key_option
@output_options
def log(book: str, keys: tuple[str, ...], as_json: bool, form: Format) -> int:
    """List every entry of the ledger of BOOK, the first first."""
    with open_book(book, keys=keys) as held:
        entries, approved = held.log(), held.approvals_of_removals()
    if as_json:
        rows = [{**entry.to_dict(), **_approval(approved, entry.number)} for entry in entries]
        terminal.show_json({"entries": rows})
    else:
        terminal.show_result(form, entry_table(entries, approved))
    return exit_codes.DONE


@click.command("history")
@book_argument
@audit_key_option
@output_options
def history(book: str, keys: tuple[str, ...], as_json: bool, form: Format) -> int:
    """Show parameters, standard errors and RMSE of every calibration that BOOK contains, the first one first.

    Results that an erasure removed are not listed: the book no longer contains them.
    """
    with open_book(book, keys=keys) as held:
        found = held.history()
    if as_json:
        terminal.show_json(found.to_dict())
    else:
        terminal.show_result(form, found.to_table())
    return exit_codes.DONE


def _approval(approved: Mapping[int, int | None], number: int) -> dict[str, Any]:
    """Return whether an entry needed a second person's approval, and the entry that approved it."""
    return {"needed_approval": number in approved, "approved_by_entry": approved.get(number)}


@click.command("approval")
@book_argument
@click.argument("policy", required=False, type=click.Choice(["one-person", "two-person"]))
@reason_options
@json_option
def approval(book: str, policy: Any, reason: Reason | None, who: str | None, as_json: bool) -> int:
    """Show or set whether removals from BOOK need a second person's approval.

    The policy is an entry of the ledger, so it holds in every folder. Back to one-person needs an approved request:
    strikeout request BOOK one-person.
    """
    with open_book(book, who=who) as held:
        entry = None if policy is None else held.set_approval(policy, reason=reason)
        now = held.approval
    if as_json:
        terminal.show_json({"approval": now, "entry": entry})
    else:
        terminal.show(terminal.facts([("approval", now)]))
    return exit_codes.DONE


@click.command("certificate")
@click.argument("source", type=click.Path(path_type=str), metavar="BOOK|FILE")
@click.argument("entry", type=click.IntRange(min=1), required=False)
@click.option("--out", type=click.Path(path_type=str), help="Write the bytes here, for strikeout verify.")
@json_option
def certificate(source: str, entry: int | None, out: str | None, as_json: bool) -> int:
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
    if as_json:
        terminal.show_json({**json.loads(issued.to_bytes()), "digest": issued.digest(), "out": out})
    else:
        terminal.show_lines(issued.summary())
    return exit_codes.DONE


@click.command("compare")
@click.argument("first", type=click.Path(path_type=str))
@click.argument("second", type=click.Path(path_type=str))
@output_options
def compare(first: str, second: str, as_json: bool, form: Format) -> int:
    """Compare the state and the parameters of two books, bit for bit.

    Each is taken as it was calibrated last. Ends with 1 if they differ, or if quotes were added or removed since.
    """
    with open_book(first) as one, open_book(second) as other:
        found = one.compare(other)
    stale = {path: None for path, now in zip((first, second), found.is_current, strict=True) if not now}
    if as_json:
        terminal.show_json(found.to_dict())
    else:
        rows = [
            (name, number(a, ".10g"), number(b, ".10g"), number(found.apart[name], "+.3g"))
            for name, (a, b) in found.parameters.items()
        ]
        pairs = [
            ("calibrated", f"to {found.counts[0]:,} and {many(found.counts[1], 'quote')}"),
            ("held", f"{found.held[0]:,} and {many(found.held[1], 'quote')}"),
            ("state", "the same, bit for bit" if found.is_same_state else "not the same"),
            ("parameters", "the same, bit for bit" if found.is_same_parameters else "not the same"),
            *(("stale", f"{path}: quotes were added or removed since it was calibrated") for path in stale),
        ]
        heads = ("parameter", "first", "second", "apart (SE of second)")
        terminal.show_result(form, Table(heads, rows, numbers=(1, 2, 3), whole=(0,)), "", terminal.facts(pairs))
    same = found.is_same_state and found.is_same_parameters and not stale
    return exit_codes.DONE if same else exit_codes.FINDINGS


@click.command("export")
@book_argument
@click.argument("out", type=click.Path(path_type=str))
@who_option
@json_option
def export(book: str, out: str, who: str | None, as_json: bool) -> int:
    """Write what BOOK holds to OUT: quotes (.csv, .parquet), the calibration (.json), Python for QuantLib (.py).

    A file of quotes is entered in the ledger, and erasing removes it too.
    """
    with open_book(book, who=who) as held:
        written = held.export(out)
        is_result, is_current = written.suffix.lower() in (".json", ".py"), held.status().is_current
    if as_json:
        terminal.show_json({"out": str(written)})
    else:
        terminal.say(f"written to {written}")
    if is_result and not is_current:
        terminal.note(
            f"quotes were added or removed since the calibration in {written}. To renew it: strikeout calibrate {book}"
        )
    return exit_codes.DONE


@click.command("keygen")
@click.argument("file", type=click.Path(path_type=str))
@json_option
def keygen(file: str, as_json: bool) -> int:
    """Write a new secret key to FILE, readable by its owner alone, and print its public key.

    ``strikeout forget --key FILE`` signs certificates with it. Give the public key to those who verify them.
    """
    from strikeout.store.keyring import Keyring

    if Path(file).exists():
        raise UsageError(f"{file}: exists already, and a key is never overwritten. Give another name.", path=file)
    made = Keyring.generate()
    made.create(Path(file))
    if as_json:
        terminal.show_json({"public": made.signer().public, "key_file": file})
    else:
        terminal.show(terminal.facts([("public key", made.signer().public), ("secret in", file)]))
        terminal.hint(f"strikeout forget quotes.csv --where ... --certificate certificate.json --key {file}")
    return exit_codes.DONE


@click.command("rotate-key")
@book_argument
@reason_options
@json_option
def rotate_key(book: str, reason: Reason | None, who: str | None, as_json: bool) -> int:
    """Give BOOK a new key to sign its ledger with; the old key signs the handover and is deleted.

    Everything signed before can still be checked. Publish the new public key.
    """
    from strikeout.store.keyring import key_file

    with open_book(book, who=who) as held:
        done = held.rotate_key(reason=reason)
        keys = str(key_file(held.path))
    if as_json:
        terminal.show_json({**done.to_dict(), "key_file": keys})
    else:
        pairs = [("entry", str(done.entry)), ("signed by", done.new), ("before", done.old), ("secrets in", keys)]
        terminal.show(terminal.facts(pairs))
        terminal.hint(f"strikeout verify {book}")
    return exit_codes.DONE
