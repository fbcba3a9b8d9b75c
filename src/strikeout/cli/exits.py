"""How a command ends: one table of exit codes, and every error told once, on stderr, never as a traceback.

    what was raised                       code
    nothing                               what the command returned: 0, 1 or 3
    StrikeoutError                        its class's exit_code: 2 for usage and bad input, 3 for refused
    click's own (a wrong option ...)      2
    Ctrl-C                                130, silently
    the reader of our output went away    141, silently: what a process ended by SIGPIPE has
    anything else                         4: a bug of ours

Set STRIKEOUT_TRACEBACK=1 to see where an error came from.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any

import click

from strikeout.errors import StrikeoutError
from strikeout.wording import printable

DONE, FINDINGS, USAGE, REFUSED, INTERNAL, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 4, 130, 141
EXIT_CODES: Mapping[int, str] = {
    DONE: "done",
    FINDINGS: "findings",
    USAGE: "usage or bad input",
    REFUSED: "refused or not converged",
    INTERNAL: "internal error",
}
MOST_LISTED = 20  # of a long fact, such as the issues of a rejected file
TRACEBACK = "STRIKEOUT_TRACEBACK"
# Errors advise in Python's words; at the command line the same advice is spelled so.
SPELLINGS = {
    "constants={'rate': 0.0}": "--constant rate=0",
    "Take ids from quotes.ids": "Take ids from the column id of the file, or of what strikeout export writes of a book",
    "raise max_reject": "raise --max-reject",
    "fixed={...}": "--fix NAME=VALUE",
    "bounds={...}": "--bound NAME=LOW:HIGH",
    "Give (lower, upper)": "Give --bound NAME=LOW:HIGH",
    "Leave operator out": "Leave --operator out",
    "operator or tolerance": "--operator or --tolerance",
    "operator=": "--operator ",
    "Give the model an attribute latent with that parameter's name, or leave panel out": "Leave --panel out, or take a "
    "model with an initial variance, such as --model heston",
    "leave panel out": "leave --panel out",
    "add it as a label (Quotes(..., labels={...}))": "give the file a column of that name",
    "panel=None": "--panel none",
    "panel=": "--panel ",
    "tolerance=": "--tolerance ",
    'through="quotes"': "--through quotes",
    'through="': '--through="',
    'weights="': '--weights "',
    'feller="': '--feller "',
    'checks={"Q206": "reject"} (--check Q206=reject)': "--check Q206=reject",
    "quotes.without(error.ids)": "of a book: strikeout forget BOOK --ids A,B; of a file: delete their rows",
    ", or give a DataFrame": "",
    "select=": "--select ",
    "residual=": "--residual ",
    "loss=": "--loss ",
    "Leave perturb out": "Give --perturb 0",  # it may be as the last time, and then leaving it out does not help
    "perturb=": "--perturb ",
    "share=": "--perturb ",
}


def conclude(error: BaseException, *, as_json: bool) -> int:
    """Tells an error and gives back the exit code it ends with.

    Raises:
        BaseException: the error itself, where STRIKEOUT_TRACEBACK is set and it would be told.
    """
    if isinstance(error, BrokenPipeError):
        # The interpreter flushes stdout once more at its end; with nowhere to write that would be told as an error.
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
    told, code = _told(error)
    if as_json:
        click.echo(json.dumps({"error": told}), err=True)
    else:
        click.echo(f"strikeout: {printable(told['sentence'])}", err=True)
    return code


def spelled(sentence: str) -> str:
    """A sentence of the library with options in the place of arguments.

    >>> spelled("Or take it as given (fixed={...}).")
    'Or take it as given (--fix NAME=VALUE).'
    """
    for python, option in SPELLINGS.items():
        sentence = sentence.replace(python, option)
    return sentence


def _told(error: BaseException) -> tuple[dict[str, Any], int]:
    if isinstance(error, StrikeoutError):
        facts = {name: plain(value) for name, value in error.facts.items()}
        return {**facts, "code": error.code, "sentence": spelled(error.sentence)}, error.exit_code
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "strikeout"
        return {"code": "usage", "sentence": f"{error.format_message()} See: {path} --help"}, USAGE
    if isinstance(error, OSError) and error.filename is not None:  # a name too long, a folder that is not ours, a disk
        named = os.fsdecode(error.filename)
        return {"code": "usage", "sentence": f"{named}: {error.strerror}. Give another path, or mend this one."}, USAGE
    sentence = (
        f"an error of strikeout's own, not of your input: {type(error).__name__}: {_first_line(error)} "
        f"Please report it; set {TRACEBACK}=1 to see where it happened."
    )
    return {"code": "internal", "sentence": sentence}, INTERNAL


def _first_line(error: BaseException) -> str:
    line = next(iter(str(error).splitlines()), "").strip()
    return line if line.endswith(".") or not line else line + "."


def plain(value: Any) -> Any:
    """A fact as JSON can hold it: of a long list the first twenty, and None for a number that does not exist."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Sequence)):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, (Sequence, set, frozenset)):
        return [plain(held) for held in islice(value, MOST_LISTED)]
    return str(value)
