"""How many files and functions of strikeout each command runs through: what a reader has to follow.

No timing. At d438576, on 540 quotes: import 67 files and 307 functions, calibrate 80 and 405, forget 91 and 415,
apply 94 and 490, verify 84 and 418, erase 52 and 256.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import strikeout as so
from benchmarks.rows import Result

SOURCE = str(Path(so.__file__).parent)
WHERE = "date = '2024-01-09'"
COMMANDS = (
    "import b.book small.csv",
    "calibrate b.book",
    f'forget b.book --where "{WHERE}"',
    "apply b.book",
    "verify b.book",
    f'erase b.book --where "{WHERE}" --yes --reason bad-feed',
)


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Run each command once on 540 quotes and count."""
    facts: dict[str, float | str] = {}
    for command, seen in walks().items():
        facts[command] = f"{len({file for file, _ in seen})} files, {len(seen)} functions"
    return Result("walk", is_quick, (), facts)


def walks() -> dict[str, frozenset[tuple[str, str]]]:
    """Run each command once; return the functions of strikeout it calls, as file (from src/strikeout) and name."""
    found, before = {}, Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            so.write_quotes(so.paper.quotes("small"), "small.csv")
            _traced("init b.book")
            for command in COMMANDS:
                found[command.split()[0]] = _traced(command)
        finally:
            os.chdir(before)
    return found


def _traced(command: str) -> frozenset[tuple[str, str]]:
    import shlex

    from click.testing import CliRunner

    from strikeout.cli import strikeout

    seen: set[tuple[str, str]] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # Bodies of modules and classes run when they are imported: they are not functions.
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_flags & inspect.CO_OPTIMIZED:
            seen.add((code.co_filename.removeprefix(SOURCE + os.sep), code.co_qualname))

    sys.setprofile(look)
    try:
        done = CliRunner().invoke(strikeout, shlex.split(command))
    finally:
        sys.setprofile(None)
    if done.exit_code != 0:
        raise RuntimeError(f"strikeout {command} ended with {done.exit_code}: {done.output}")
    return frozenset((file, name) for file, name in seen if "<" not in name.rpartition(".")[2])
