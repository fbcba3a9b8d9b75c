"""Quotes struck out: forget does it to a file or plans it for a book, apply does the plan, restore undoes it."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import (
    check_choice,
    forget_from_book,
    is_book,
    move_cell,
    open_book,
    report_change,
    undo_hints,
)
from strikeout.cli.fit_options import (
    calibrate_file,
    calibration_options,
    reading_counts,
    reading_notes,
    with_headers_of,
)
from strikeout.cli.options import (
    book_argument,
    choice_options,
    file_argument,
    output_options,
    reason_options,
    refuse_given,
    who_option,
)
from strikeout.errors import UnreadableFileError, UsageError
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.assurance.certificate import Certificate
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.terminal import Output
    from strikeout.forgetting.forgetting import Forgetting
    from strikeout.forgetting.preview import Preview
    from strikeout.quotes.reading import Reading
    from strikeout.store.entry import Reason
    from strikeout.store.keyring import Signer

OPERATORS = ("downdate", "restep", "recompute", "resolve", "recalibrate", "refine", "paper")  # as those of forget
OF_FILES = ("operator", "shards", "certificate_path", "key_path", "out")  # a book has other commands for these


@click.command("forget")
@file_argument
@choice_options("forget")
@click.option("--preview", "is_preview", is_flag=True, help="Show the effect; write nothing.")
@click.option(
    "--tolerance",
    type=float,
    help="Accept an answer within this many standard errors (of independent quotes), if certified.",
)
@click.option(
    "--operator",
    type=click.Choice(OPERATORS),
    metavar="NAME",
    help=f"This operator and no other: {', '.join(OPERATORS[:-1])} or {OPERATORS[-1]}.",
)
@click.option(
    "--shards",
    metavar="CUTS",
    help="With --operator recompute: price only the shards with a forgotten quote again. date:30, month, expiry, "
    "product:30,60, source, any label, or several separated by commas.",
)
@click.option("--certificate", "certificate_path", type=click.Path(path_type=str), help="Write the certificate here.")
@click.option(
    "--key",
    "key_path",
    type=click.Path(path_type=str),
    metavar="FILE",
    help="Sign the certificate with this secret key file: one that strikeout keygen wrote, or a book's.",
)
@click.option("--out", type=click.Path(path_type=str), help="Write the retained quotes to this .csv or .parquet.")
@click.option("--yes", is_flag=True, help="For a book: do it now, without a plan to apply.")
@reason_options
@click.option("--only", metavar="SQL", help="Calibrate only to the quotes that match.")
@calibration_options
@output_options
def forget(file: str, chosen: dict[str, Any], is_all: bool, output: Output, **options: Any) -> int:
    """Calibrate to FILE, then strike quotes out as if they had never been seen.

    If FILE is a book (NAME.book), make a plan, which `strikeout apply` does; with --yes do it at once.

    Without --tolerance and --operator the parameters are, bit for bit, those of calibrating the retained quotes alone.
    Ends with 3 if no quote matches the condition, or if no honest number can be given: then nothing is written.
    """
    asked = {name: options.pop(name) for name in ("is_preview", "tolerance", *OF_FILES, "yes", "reason", "who")}
    if is_book(file):
        refuse_given((*OF_FILES, *options), "A book is calibrated as it was last, and keeps its certificates:")
        with open_book(file, who=asked["who"]) as held:
            check_choice(held, chosen, is_all=is_all, verb="forget")
            if asked["is_preview"]:
                refuse_given(("tolerance",), "A preview decides nothing:")
                return _preview(held.calibration(), chosen, output, read={"book": file})
            how = {name: asked[name] for name in ("tolerance", "yes", "reason")}
            return forget_from_book(held, chosen, **how, output=output)
    refuse_given(("yes", "reason", "note", "ticket"), "A file has no ledger and is not changed:")
    _check(file, asked)
    signer = None if asked["key_path"] is None else _signer(asked["key_path"])
    reading, calibration = calibrate_file(file, **options)
    if "where" in chosen:
        chosen = {"where": with_headers_of(reading, chosen["where"])}
    check_choice(calibration.book, chosen, is_all=is_all, verb="forget")
    read = reading_counts(reading, options["quarantine"])
    if asked["is_preview"]:
        return _preview(calibration, chosen, output, read=read)
    from strikeout.forgetting.forget import forget as strike_out

    how = {name: asked[name] for name in ("operator", "tolerance", "shards")}
    done = strike_out(calibration, **chosen, **how)
    certificate_path, out = asked["certificate_path"], asked["out"]
    certificate = _issued(done, reading, options, signer, out)
    if certificate_path is not None:
        from strikeout.quotes.writing import replace_file

        content = certificate.to_bytes()
        replace_file(certificate_path, lambda target: target.write_bytes(content))
    notes, hints = reading_notes(reading, options["quarantine"]), []
    if out is not None:
        notes.append(f"the retained quotes are in {out}.")
    if certificate_path is not None:
        notes.append(f"the certificate is in {certificate_path}; its digest is {certificate.digest()}.")
    if certificate_path is not None and out is not None:
        key = "" if signer is None else f" --key {signer.public}"
        hints.append(f"strikeout verify {certificate_path} {out}{key}")
    facts = {**described(done), "certificate": certificate.digest()}
    facts |= {**read, "certificate_file": certificate_path, "out": out}
    return output.result(facts, *_shown(done), notes=notes, hints=hints)


@click.command("apply")
@book_argument
@click.argument("plan", type=click.Path(path_type=str), required=False)
@who_option
@output_options
def apply(book: str, plan: str | None, who: str | None, output: Output) -> int:
    """Do the PLAN of `strikeout forget BOOK`; by default the one beside the book.

    Refused with 3 if the book changed since the plan was made. An applied plan is deleted: it names quotes.
    """
    from strikeout.book.forget import Plan

    with open_book(book, who=who) as held:
        path = held.plan_path if plan is None else Path(plan)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UnreadableFileError(
                f"{path}: cannot be read ({error.strerror}). Make a plan with strikeout forget {book} --where ...",
                path=str(path),
            ) from error
        change = held.apply(Plan.from_bytes(data))
        path.unlink(missing_ok=True)
    return report_change(change, output, hints=undo_hints(book, change))


@click.command("restore")
@book_argument
@click.argument("entry", type=click.IntRange(min=1), required=False)
@click.option("--last", is_flag=True, help="The latest forget that can be undone.")
@reason_options
@output_options
def restore(book: str, entry: int | None, last: bool, reason: Reason | None, who: str | None, output: Output) -> int:
    """Bring back the quotes that ENTRY of the log of BOOK struck out, as if it had never been."""
    if (entry is None) is not last:
        raise UsageError("Choose the forget to undo in one way: the number of its entry in the log, or --last.")
    with open_book(book, who=who) as held:
        return report_change(held.restore(entry, reason=reason), output)


def described(done: Forgetting) -> dict[str, Any]:
    """Return what was struck out and what it changed, as plain values."""
    errors = errors_after(done)
    certificate = done.certificate
    return {
        "forgotten": done.ids.tolist(),
        "retained": done.before.size - done.count,
        "before": done.before.to_dict(),
        "parameters": done.parameters,
        "standard_errors": exit_codes.plain(errors),
        "moved": exit_codes.plain(done.moved),
        "operator": done.operator,
        "path": list(done.path),
        "state": certificate.state,
        "claims": certificate.made,
        "certificate": certificate.digest(),
        **_latent_of(done),
    }


def _latent_of(done: Forgetting) -> dict[str, Any]:
    """Return what only a panel has: its latent path and the groups that were removed as a whole."""
    from strikeout.calibration.panels import latent_of

    if not done.latent:
        return {}
    values = {str(group): value for group, value in done.latent.items()}
    latent = {"name": latent_of(done.before.asked), "values": values}
    return {"latent": latent, "dropped": [str(group) for group in done.dropped]}


def _groups_left(done: Forgetting) -> list[tuple[str, str]]:
    found = _latent_of(done)
    if not found:
        return []
    left, gone = len(found["latent"]["values"]), found["dropped"]
    named = f"; {', '.join(gone[:3])}{', ...' if len(gone) > 3 else ''} removed as a whole" if gone else ""
    return [("groups", f"{left:,} of {left + len(gone):,} left{named}")]


def errors_after(done: Forgetting) -> dict[str, float]:
    """Return the standard errors of the retained quotes, by parameter."""
    found = done.standard_errors
    return {name: found.get(name, nan) for name in done.parameters}


def _check(file: str, asked: dict[str, Any]) -> None:
    """Refuse what can be refused before any work is done."""
    if asked["is_preview"]:
        refuse_given(("tolerance", *OF_FILES), "--preview writes and decides nothing:")
    if asked["key_path"] is not None and asked["certificate_path"] is None:
        raise UsageError("--key signs a certificate, and none is written. Add --certificate certificate.json.")
    out = asked["out"]
    if out is not None and Path(out).suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"{Path(out).name}: the retained quotes need a .csv or .parquet. Rename it.")
    written = [Path(path) for path in (out, asked["certificate_path"]) if path is not None]
    for path in written:
        if not path.parent.is_dir():
            raise UsageError(f"{path}: cannot be written, there is no folder {path.parent}. Make it first.")
    if len({path.resolve() for path in (Path(file), *written)}) <= len(written):
        raise UsageError(
            f"{file}, --out and --certificate are not three different files. forget leaves the "
            "file that was read as it is: write to another file."
        )


def _signer(path: str) -> Signer:
    """Return the key pair of a key file."""
    from strikeout.store.keyring import Keyring

    return Keyring.read(Path(path)).signer()


def _issued(
    done: Forgetting, reading: Reading, options: dict[str, Any], signer: Signer | None, out: str | None
) -> Certificate:
    """Return the certificate with its date, how the quotes were read, and a signature if a key is given.

    The retained quotes are written to ``out``, if it is given, whose digest is then part of the certificate.
    """
    from datetime import UTC, datetime

    from strikeout.assurance.provenance import with_reading
    from strikeout.store.signing import dated

    retained = done.before.book.without(done.ids)
    if out is not None:
        from strikeout.quotes.writing import write_quotes

        write_quotes(retained, out)
    only = {} if options["only"] is None else {"only": options["only"]}
    layout = reading.layout.partition(",")[0]
    issued = with_reading(done.certificate, retained, layout=layout, settings={**reading.settings, **only}, file=out)
    return dated(issued, at=datetime.now(UTC), signer=signer)


def _preview(calibration: Calibration, chosen: dict[str, Any], output: Output, *, read: dict[str, Any]) -> int:
    from strikeout.forgetting.preview import preview

    look = preview(calibration, **chosen)
    latent = [("" if n else "latent", words) for n, words in enumerate(_looked_moves(look, calibration))]
    rows = [
        (name, number(calibration.parameters.get(name)), number(value), move_cell(look.moved[name]))
        for name, value in look.parameters.items()
    ]
    pairs = [("preview", exit_codes.spelled(look.parts)), *latent, ("looked by", look.operator), ("changed", "nothing")]
    heads = ("parameter", "before", "after", "moved (independent SE)")
    return output.result(
        {**_described_look(look, calibration), "before": calibration.to_dict(), **read},
        Table(heads, rows, numbers=(1, 2, 3), whole=(0,)),
        "",
        terminal.facts(pairs),
        code=exit_codes.DONE if look.refusal is None else exit_codes.REFUSED,
    )


def _looked_moves(look: Preview, before: Calibration) -> list[str]:
    from strikeout.calibration.panels import latent_moves

    if before.panel is None or before.latent_name is None:
        return []
    return latent_moves(before.latent, look.latent, name=before.latent_name, label=before.panel)


def _described_look(look: Preview, before: Calibration) -> dict[str, Any]:
    latent = {str(group): value for group, value in look.latent.items()}
    known = [str(group) for group in before.latent] if before.is_panel and latent else []
    return {
        "preview": exit_codes.spelled(look.parts),
        "forgotten": look.ids.tolist(),
        "retained": look.retained,
        "operator": look.operator,
        "parameters": look.parameters,
        "moved": exit_codes.plain(look.moved),
        "error": exit_codes.plain(look.error),
        "refusal": None if look.refusal is None else exit_codes.spelled(look.refusal.parts),
        **({"latent": latent, "dropped": [group for group in known if group not in latent]} if latent else {}),
    }


def _shown(done: Forgetting) -> tuple[Any, ...]:
    before, errors, certificate = done.before, errors_after(done), done.certificate
    steps = done.moved
    rows = [
        (
            name,
            number(before.parameters.get(name)),
            number(before.standard_errors.get(name), ".2g"),
            number(value),
            number(errors[name], ".2g"),
            move_cell(steps[name]),
        )
        for name, value in done.parameters.items()
    ]
    pairs = [
        ("forgotten", f"{done.count:,} of {many(before.size, 'quote')}"),
        ("SE", "standard errors of independent quotes"),
    ]
    pairs += _groups_left(done)
    pairs += [("" if n else "latent", sentence) for n, sentence in enumerate(done.latent_moves)]
    pairs += [("path" if not n else "", sentence) for n, sentence in enumerate(done.path)]
    pairs += [(name, f"{word}: {support}") for name, word, support in certificate.rows()]
    pairs += [("warning", sentence) for sentence in (done.calibration.warnings if done.step_error is None else ())]
    pairs += [] if before.converged else [("before", str(before.termination))]
    heads = ("parameter", "before", "SE before", "after", "SE after", "moved (SE after)")
    drawn = Table(heads, rows, numbers=(1, 2, 3, 4, 5), whole=(0,), spare=(2,))
    return drawn, "", terminal.facts(pairs)
