"""``strikeout verify``: a certificate checked against the retained quotes, everything computed again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.calibrating import accepted, described_reading, max_reject_option, tell_reading
from strikeout.cli.options import constant_option, json_option
from strikeout.errors import UnreadableFileError

if TYPE_CHECKING:
    from strikeout.assurance.verification import Verification


@click.command("verify")
@click.argument("certificate", type=click.Path(path_type=str))
@click.argument("retained", type=click.Path(path_type=str))
@max_reject_option
@constant_option
@json_option
def command(
    certificate: str, retained: str, max_reject: float, constants: dict[str, float | str], as_json: bool
) -> int:
    """Check CERTIFICATE against the file of RETAINED quotes: every claim is computed again from the quotes alone.

    Ends with 1 where it does not hold, and says why.
    """
    from strikeout.assurance.verify import verify

    reading = accepted(retained, constants=constants, max_reject=max_reject)
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
