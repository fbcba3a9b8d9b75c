"""``strikeout forget``: quotes struck out of a calibration made in the same call, with a certificate of it."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import NOTHING_MEANT, is_book, opened, reason_of, refuse_given, why_options
from strikeout.cli.calibrating import calibrated, calibration_options, described_reading, tell_reading
from strikeout.cli.on_book import forget_from_book
from strikeout.cli.options import file_argument, json_option
from strikeout.errors import UnreadableFileError, UsageError
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.forgetting.forgetting import Forgetting
    from strikeout.forgetting.panel_forgetting import PanelForgetting
    from strikeout.forgetting.preview import Preview

OPERATORS = (
    "downdate",
    "restep",
    "recompute",
    "resolve",
    "recalibrate",
    "refine",
    "paper",
)  # a test holds it to forget's
ON_FILES = ("operator", "shards", "certificate_path", "out")  # what a book has its own way for


@click.command("forget")
@file_argument
@click.option("--where", help="Strike out the quotes for which this condition in SQL holds: \"source = 'b'\".")
@click.option("--ids", help="Strike out the quotes with these ids, separated by commas.")
@click.option("--ids-from", type=click.Path(path_type=str), help="The same from a file, one id a line.")
@click.option("--preview", "is_preview", is_flag=True, help="Look at what it would do; write nothing.")
@click.option("--tolerance", type=float, help="Accept an answer within so many standard errors, where it is certified.")
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
@click.option("--out", type=click.Path(path_type=str), help="Write the retained quotes to this .csv or .parquet.")
@click.option("--yes", is_flag=True, help="Of a book: do it now, without a plan to apply.")
@why_options
@calibration_options
@json_option
def command(
    file: str,
    where: str | None,
    ids: str | None,
    ids_from: str | None,
    is_preview: bool,
    tolerance: float | None,
    operator: Any,
    shards: str | None,
    certificate_path: str | None,
    out: str | None,
    as_json: bool,
    yes: bool,
    reason: str | None,
    note: str,
    ticket: str,
    who: str | None,
    **options: Any,
) -> int:
    """Calibrate to FILE, then strike quotes out as if they had never been seen.

    Where FILE is a book (NAME.book), make a plan of it, which ``strikeout apply`` does; with --yes do it at once.

    Without --tolerance and --operator the parameters are, bit for bit, those of calibrating the retained quotes alone.
    A condition that holds for no quote changes nothing, says so, and ends with 0. Ends with 3 where no honest number
    can be given: then nothing is written.
    """
    meant = chosen(where, ids, ids_from)
    if is_book(file):
        refuse_given((*ON_FILES, *options), "A book is calibrated as it was last, and keeps its certificates:")
        why = reason_of(reason, note, ticket)
        with opened(file, who=who) as held:
            if is_preview:
                refuse_given(("tolerance",), "A preview decides nothing:")
                return _previewed(held.calibration(), meant, as_json=as_json, read={"book": file})
            return forget_from_book(held, meant, tolerance=tolerance, yes=yes, reason=why, as_json=as_json)
    refuse_given(("yes", "reason", "note", "ticket"), "A file has no ledger and is not changed:")
    _check(
        file, is_preview, tolerance=tolerance, operator=operator, shards=shards, certificate=certificate_path, out=out
    )
    reading, calibration = calibrated(file, **options)
    if is_preview:
        return _previewed(calibration, meant, as_json=as_json, read=described_reading(reading, options["quarantine"]))
    from strikeout.forgetting.forget import forget

    done = forget(calibration, **meant, operator=operator, tolerance=tolerance, shards=shards)
    _write(done, certificate=certificate_path, out=out)
    if as_json:
        files = {"certificate_file": certificate_path, "out": out}
        terminal.show_json({**described(done), **described_reading(reading, options["quarantine"]), **files})
        return exits.DONE
    _show(done)
    tell_reading(reading, options["quarantine"])
    if not done.count:
        terminal.note(f"{NOTHING_MEANT}, so nothing was struck out.")
    if out is not None:
        terminal.note(f"the retained quotes are in {out}.")
    if certificate_path is not None:
        terminal.note(f"the certificate is in {certificate_path}; its digest is {done.certificate.digest()}.")
    if certificate_path is not None and out is not None:
        terminal.hint(f"strikeout verify {certificate_path} {out}")
    return exits.DONE


def described(done: Forgetting | PanelForgetting) -> dict[str, Any]:
    """What striking out came to, as plain values."""
    errors = errors_after(done)
    certificate = done.certificate
    return {
        "forgotten": done.ids.tolist(),
        "retained": done.before.size - done.count,
        "before": done.before.to_dict(),
        "parameters": done.parameters,
        "standard_errors": exits.plain(errors),
        "moved": exits.plain(moved(done.before, done.parameters, errors)),
        "operator": done.operator,
        "path": list(done.path),
        "state": certificate.state,
        "claims": certificate.made,
        "certificate": certificate.digest(),
        **_latent_of(done),
    }


def _latent_of(done: Forgetting | PanelForgetting) -> dict[str, Any]:
    """What a panel has besides: the latent path that is left, and the groups that went as a whole."""
    from strikeout.calibration.panel_groups import latent_of
    from strikeout.forgetting.panel_forgetting import PanelForgetting

    if not isinstance(done, PanelForgetting):
        return {}
    values = {str(group): value for group, value in done.latent.items()}
    latent = {"name": latent_of(done.before.asked), "values": values}
    return {"latent": latent, "dropped": [str(group) for group in done.dropped]}


def _groups_left(done: Forgetting | PanelForgetting) -> list[tuple[str, str]]:
    found = _latent_of(done)
    if not found:
        return []
    left, gone = len(found["latent"]["values"]), found["dropped"]
    named = f"; {', '.join(gone[:3])}{', ...' if len(gone) > 3 else ''} went as a whole" if gone else ""
    return [("groups", f"{left:,} of {left + len(gone):,} left{named}")]


def _latent_moves(done: Forgetting | PanelForgetting) -> list[str]:
    from strikeout.forgetting.panel_forgetting import PanelForgetting

    return done.latent_moves if isinstance(done, PanelForgetting) else []


def errors_after(done: Forgetting | PanelForgetting) -> dict[str, float]:
    """Standard errors of what is retained, by name."""
    found = done.trust.standard_errors if done.trust is not None else done.calibration.standard_errors
    return {name: found.get(name, nan) for name in done.parameters}


def moved(
    before: Calibration | PanelCalibration, parameters: dict[str, float], errors: dict[str, float]
) -> dict[str, float]:
    """By how many standard errors of what is retained each parameter moved; not-a-number where it has none.

    Not of what was there before: bad quotes blow those up, and every move would look small.
    """
    apart = {name: value - before.parameters.get(name, nan) for name, value in parameters.items()}
    return {name: change / errors[name] if errors[name] > 0.0 else nan for name, change in apart.items()}


def chosen(where: str | None, ids: str | None, ids_from: str | None, *, verb: str = "forget") -> dict[str, Any]:
    """What these options mean, as keywords of ``forget``.

    Raises:
        UsageError: not exactly one of them is given, or no id is.
        UnreadableFileError: the file of ids cannot be read.
    """
    if sum(given is not None for given in (where, ids, ids_from)) != 1:
        raise UsageError(f"Say what to {verb} in one way: --where CONDITION, --ids A,B or --ids-from FILE.")
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
        raise UnreadableFileError(f"{ids_from}: cannot be read ({why}). Give a text file, one id a line.") from error
    return {"ids": [line.strip() for line in lines if line.strip()]}


def _check(file: str, is_preview: bool, **others: Any) -> None:
    """What can be refused before any work is done."""
    given = [name for name, value in others.items() if value is not None]
    if is_preview and given:
        raise UsageError(
            f"--preview writes and decides nothing, so --{given[0]} has no meaning with it. Leave one out."
        )
    out = others["out"]
    if out is not None and Path(out).suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"{Path(out).name}: the retained quotes go to a .csv or .parquet. Give the file one of them.")
    written = [Path(path) for path in (out, others["certificate"]) if path is not None]
    for path in written:
        if not path.parent.is_dir():
            raise UsageError(f"{path}: cannot be written, there is no folder {path.parent}. Make it first.")
    if len({path.resolve() for path in (Path(file), *written)}) <= len(written):
        raise UsageError(
            f"{file}, --out and --certificate are not three different files. To forget takes influence away and leaves "
            "the file that was read as it is: write elsewhere."
        )


def _write(done: Forgetting | PanelForgetting, *, certificate: str | None, out: str | None) -> None:
    content = done.certificate.to_bytes()
    if out is not None:
        from strikeout.quotes.writing import write_quotes

        write_quotes(done.before.book.without(done.ids), out)
    if certificate is not None:
        from strikeout.quotes.atomic_write import replace_file

        replace_file(certificate, lambda target: target.write_bytes(content))


def _previewed(
    calibration: Calibration | PanelCalibration, meant: dict[str, Any], *, as_json: bool, read: dict[str, Any]
) -> int:
    from strikeout.forgetting.preview import preview

    look = preview(calibration, **meant)
    if as_json:
        terminal.show_json({**_described_look(look, calibration), "before": calibration.to_dict(), **read})
    else:
        moves = {name: terminal.move_text(value) for name, value in look.moved.items()}
        latent = [("" if n else "latent", told) for n, told in enumerate(_looked_moves(look, calibration))]
        rows = [
            (name, _value(calibration, name), f"{value:.6g}", moves[name]) for name, value in look.parameters.items()
        ]
        terminal.show(
            terminal.table(("parameter", "before", "after", "moved (SE before)"), rows, numbers=(1, 2, 3), whole=(0,)),
            "",
            terminal.facts(
                [
                    ("preview", exits.spelled(look.parts)),
                    *latent,
                    ("looked by", look.operator),
                    ("changed", "nothing"),
                ]
            ),
        )
    return exits.DONE if look.refusal is None else exits.REFUSED


def _value(calibration: Calibration | PanelCalibration, name: str) -> str:
    """A parameter as it was; a dash for one it did not have."""
    return f"{calibration.parameters[name]:.6g}" if name in calibration.parameters else "-"


def _looked_moves(look: Preview, before: Calibration | PanelCalibration) -> list[str]:
    from strikeout.calibration.latent_moves import latent_moves
    from strikeout.calibration.panel_calibration import PanelCalibration

    if not isinstance(before, PanelCalibration):
        return []
    return latent_moves(before.latent, look.latent, name=before.latent_name, label=before.panel)


def _described_look(look: Preview, before: Calibration | PanelCalibration) -> dict[str, Any]:
    from strikeout.calibration.panel_calibration import PanelCalibration

    latent = {str(group): value for group, value in look.latent.items()}
    known = [str(group) for group in before.latent] if isinstance(before, PanelCalibration) and latent else []
    return {
        "preview": exits.spelled(look.parts),
        "forgotten": look.ids.tolist(),
        "retained": look.retained,
        "operator": look.operator,
        "parameters": look.parameters,
        "moved": exits.plain(look.moved),
        "error": exits.plain(look.error),
        "refusal": None if look.refusal is None else exits.spelled(look.refusal.parts),
        **({"latent": latent, "dropped": [group for group in known if group not in latent]} if latent else {}),
    }


def _show(done: Forgetting | PanelForgetting) -> None:
    before, errors, certificate = done.before, errors_after(done), done.certificate
    steps = moved(before, done.parameters, errors)
    rows = [
        (
            name,
            _value(before, name),
            terminal.error_text(before.standard_errors.get(name, nan)),
            f"{value:.6g}",
            terminal.error_text(errors[name]),
            terminal.move_text(steps[name]),
        )
        for name, value in done.parameters.items()
    ]
    pairs = [("forgotten", f"{done.count:,} of {many(before.size, 'quote')}")]
    pairs += _groups_left(done)
    pairs += [("" if n else "latent", sentence) for n, sentence in enumerate(_latent_moves(done))]
    pairs += [("path" if not n else "", sentence) for n, sentence in enumerate(done.path)]
    pairs += [(name, f"{word}: {said}") for name, word, said in certificate.rows()]
    pairs += [("warning", sentence) for sentence in (done.calibration.warnings if done.trust is None else ())]
    pairs += [] if before.converged else [("before", str(before.termination))]
    heads = ("parameter", "before", "SE before", "after", "SE after", "moved (SE after)")
    drawn = terminal.table(heads, rows, numbers=(1, 2, 3, 4, 5), whole=(0,), spare=(2,))
    terminal.show(drawn, "", terminal.facts(pairs))
