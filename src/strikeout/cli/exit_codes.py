"""How a command ends: one table of exit codes; every error is printed once, on stderr, never as a traceback.

    what was raised                       code
    nothing                               what the command returned: 0, 1 or 3
    StrikeoutError                        its class's exit_code: 2 for usage and bad input, 3 for refused
    click's own (a wrong option ...)      2
    Ctrl-C                                130, silently
    a closed pipe                         141, silently, as a process that SIGPIPE ended
    anything else                         4: a defect of strikeout

Set STRIKEOUT_TRACEBACK=1 to see where an error came from.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any

import click

from strikeout.errors import StrikeoutError
from strikeout.tables import plain as plain
from strikeout.text import UNNAMED, Advice, Mention, first_line, printable

DONE, FINDINGS, USAGE, REFUSED, INTERNAL, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 4, 130, 141
EXIT_CODES: Mapping[int, str] = {
    DONE: "done",
    FINDINGS: "findings",
    USAGE: "usage or bad input",
    REFUSED: "refused or not converged",
    INTERNAL: "internal error",
}
OF_VERDICT: Mapping[str, int] = {"VERIFIED": DONE, "REFUTED": FINDINGS, "UNCHECKED": REFUSED}
TRACEBACK = "STRIKEOUT_TRACEBACK"
# How the command line spells the arguments that a message mentions, and what its user fills in.
OPTIONS: Mapping[str, tuple[str, str]] = {
    "all_quotes": ("--all", ""),
    "bounds": ("--bound", "NAME=LOW:HIGH"),
    "checks": ("--check", "CODE=VALUE"),
    "constants": ("--constant", "NAME=VALUE"),
    "feller": ("--feller", "RULE"),
    "approval": ("--approval", "POLICY"),
    "fresh": ("--fresh", ""),
    "fixed": ("--fix", "NAME=VALUE"),
    "errors": ("--errors", "UNIT"),
    "latent": ("--latent", "PRIOR"),
    "loss": ("--loss", "NAME"),
    "max_reject": ("--max-reject", "SHARE"),
    "operator": ("--operator", "NAME"),
    "shards": ("--shards", "CUTS"),
    "panel": ("--panel", "LABEL"),
    "perturb": ("--perturb", "SHARE"),
    "pool": ("--pool", ""),
    "public_key": ("--key", "KEY"),
    "residual": ("--residual", "NAME"),
    "select": ("--select", "NAME"),
    "share": ("--perturb", "SHARE"),
    "starts": ("--starts", "COUNT"),
    "strength": ("--strength", "X"),
    "count": ("--count", "N"),
    "switching": ("--switching", "NAMES"),
    "through": ("--through", "SOURCE"),
    "tolerance": ("--tolerance", "ERRORS"),
    "weights": ("--weights", "NAME"),
    "where": ("--where", "CONDITION"),
}
ADVICE: Mapping[Advice, str] = {
    Advice.FIT_EACH: 'Calibrate each (strikeout calibrate FILE --by underlying), choose one (--where "underlying = '
    "'NAME'\")",
    Advice.ADD_LABEL: "give the file a column of that name",
    Advice.NAME_LATENT: "Leave --panel out, or take a model with an initial variance, such as --model heston",
    Advice.RENAME_FILE: "Rename it",
    Advice.STRIKE_OUT: "in a book: strikeout forget BOOK --ids A,B; in a file: delete their rows",
    Advice.TAKE_IDS: "Take ids from the column id of the file, or of what strikeout export writes of a book",
}


def conclude(error: BaseException, *, as_json: bool) -> int:
    """Print an error and return the exit code for it."""
    if isinstance(error, BrokenPipeError):
        # The interpreter flushes stdout once more at its end; without a reader that would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else DONE
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return USAGE
    if os.environ.get(TRACEBACK):
        raise error
    facts, code = _facts(error)
    if as_json:
        click.echo(json.dumps({"error": facts}), err=True)
    else:
        click.echo(f"strikeout: {printable(facts['sentence'])}", err=True)
    return code


def spelled(parts: Iterable[str | Mention]) -> str:
    """Return a message for a reader of the command line: options in the place of arguments.

    >>> from strikeout.text import Argument
    >>> spelled(["Or take it as given (", Argument("fixed", ...), ")."])
    'Or take it as given (--fix NAME=VALUE).'
    """
    return "".join(map(_spelled, parts))


def _spelled(part: str | Mention) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Advice):
        return ADVICE[part]
    option, placeholder = OPTIONS[part.name]
    if part.value is UNNAMED or part.value is True:
        return option
    if part.value is ...:
        return f"{option} {placeholder}"
    if isinstance(part.value, Mapping):
        return " ".join(f"{option} {quote(f'{name}={value}')}" for name, value in part.value.items())
    value = f"{part.value:g}" if isinstance(part.value, float) else str(part.value)
    return f"{option} {'none' if part.value is None else quote(value)}"


def _facts(error: BaseException) -> tuple[dict[str, Any], int]:
    if isinstance(error, StrikeoutError):
        facts = {name: plain(value) for name, value in error.facts.items()}
        return {**facts, "code": error.code, "sentence": spelled(error.parts)}, error.exit_code
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "strikeout"
        return {"code": "usage", "sentence": f"{error.format_message()} See: {path} --help"}, USAGE
    if (
        isinstance(error, OSError) and error.filename is not None
    ):  # a name too long, a folder without permission, a disk
        named = os.fsdecode(error.filename)
        return {
            "code": "usage",
            "sentence": f"{named}: {error.strerror}. Give another path, or repair this one.",
        }, USAGE
    sentence = (
        f"an error in strikeout, not in your input: {type(error).__name__}: {first_line(error)}. "
        f"Please report it; set {TRACEBACK}=1 to see where it happened."
    )
    return {"code": "internal", "sentence": sentence}, INTERNAL
