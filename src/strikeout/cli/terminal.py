"""What people see: tables and sentences on stdout, hints and progress on stderr and only on a terminal.

Every command prints through here: terminal codes and line breaks in a label, an id or the name of a file are shown as
escapes, never sent to the terminal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from strikeout.wording import as_lines, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LEGIBLE = 12  # columns that sentences need to be read at all
WIDE = 10_000  # columns when nobody looks: nothing is wrapped or cut in a pipe or a file


def show(*parts: RenderableType) -> None:
    """Prints renderables one below the other: as wide as the terminal; elsewhere without end, colours or padding."""
    from rich.console import Console

    is_terminal = sys.stdout.isatty()
    out = Console(
        file=sys.stdout,
        width=_columns(),
        force_terminal=is_terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with out.capture() as captured:
        for part in parts:
            out.print(as_lines(part.split("\n")) if isinstance(part, str) else part)
    lines = captured.get().splitlines()
    click.echo("\n".join(lines if is_terminal else [line.rstrip() for line in lines]))


def say(text: str, *, err: bool = False) -> None:
    """Prints lines of plain text as they are."""
    click.echo(as_lines(text.split("\n")), err=err)


def show_json(result: object) -> None:
    """One JSON object on one line, numbers with all their digits."""
    click.echo(json.dumps(result, allow_nan=False))


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    whole: Sequence[int] = (),
    spare: Sequence[int] = (),
) -> Table:
    """A quiet table. Columns in ``numbers`` are set to the right; these and ``whole`` ones are never wrapped.

    Where not even the numbers would fit, columns in ``spare`` are left out, the first first, and the table says so.
    """
    from rich.table import Table
    from rich.text import Text

    headings, rows = [printable(heading) for heading in headings], [[printable(cell) for cell in row] for row in rows]
    columns = [[row[place] for row in rows] for place in range(len(headings))]
    full = [max(map(len, [heading, *cells])) for heading, cells in zip(headings, columns, strict=True)]
    # Where it gets narrow Rich would cut numbers; with a width of its own a column wraps its heading instead.
    fixed = {*numbers, *whole}
    least = [
        max(map(len, [*heading.split(), *cells])) if place in fixed else min(full[place], LEGIBLE)
        for place, (heading, cells) in enumerate(zip(headings, columns, strict=True))
    ]
    shown, waiting = list(range(len(headings))), list(spare)
    while waiting and sum(least[place] + 2 for place in shown) > _columns():
        shown.remove(waiting.pop(0))
    is_narrow = sum(full[place] + 2 for place in shown) > _columns()
    # Where there is not even room for a few words a column, none is promised: Rich would cut what does not fit.
    is_legible = sum(least[place] + 2 for place in shown) <= _columns()
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", caption_justify="left")
    for place in shown:
        width = least[place] if place in fixed and is_narrow else None
        justify: Literal["right", "left"] = "right" if place in numbers else "left"
        room = least[place] if is_legible and place not in fixed else None
        drawn.add_column(headings[place], justify=justify, width=width, min_width=room, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(row[place]) for place in shown))
    if len(shown) < len(headings):
        left_out = [heading for place, heading in enumerate(headings) if place not in shown]
        drawn.caption = f"Wider terminals show {', '.join(left_out)} too."
    return drawn


def show_lines(text: str) -> None:
    """Prints lines of plain text; on a terminal long ones go on below, beside the name they begin with.

    A name is what stands before two spaces or more, as in ``gone   36 rows: contract, price``.
    """
    if not sys.stdout.isatty():
        say(text)
        return
    for line in as_lines(text.split("\n")).split("\n"):
        named = re.match(r"(?:\S+(?: \S+)*)?\s{2,}(?:\S+(?: \S+)*\s{2,})?|- ", line)
        indent = " " * (named.end() if named and named.end() < _columns() // 2 else 0)
        parts = textwrap.wrap(line, _columns(), subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True)
        click.echo("\n".join(parts) if len(line) > _columns() else line)


def error_text(value: float) -> str:
    """A standard error to two digits; a dash where there is none."""
    return f"{value:.2g}" if isfinite(value) else "-"


def move_text(value: float) -> str:
    """A move with its sign: three digits, whole from a hundred on; a dash where there is none."""
    return "-" if not isfinite(value) else f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3g}"


def _columns() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def facts(pairs: Sequence[tuple[str, str]]) -> Table:
    """Names and what is to be said of each; long sentences wrap beside their name."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table.grid(padding=(0, 2, 0, 0))
    drawn.add_column(no_wrap=True, style="bold")
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(Text(printable(name)), Text(printable(value)))
    return drawn


def note(sentence: str) -> None:
    """Something the user must know besides the result: on stderr."""
    say(f"note: {sentence}", err=True)


def hint(*commands: str) -> None:
    """What to do next: on stderr, and only where a person is looking."""
    if sys.stderr.isatty():
        for command in commands:
            say(f"next: {typed(command)}", err=True)


def typed(command: str) -> str:
    """A command of ours as it can be typed here: with the way to ``strikeout`` where it is not on the path."""
    if shutil.which("strikeout") is not None:
        return command
    beside = Path(sys.executable).parent / "strikeout"
    way = os.path.relpath(beside) if beside.is_file() else f"{os.path.relpath(sys.executable)} -m strikeout"
    return command.replace("strikeout", way, 1)


@dataclass(kw_only=True)
class PassingLine:
    """One line on a terminal that says how far something is, written over as it goes on; gone when it ends."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    patience: float = 0.0  # seconds before the first word
    width: int = 20

    def __post_init__(self) -> None:
        self._begun = self.clock()
        self._shown = 0

    @property
    def is_due(self) -> bool:
        """Whether somebody looks, and has waited long enough."""
        return self.stream.isatty() and self.clock() - self._begun >= self.patience

    def bar(self, share: float) -> str:
        """So much of a bar is full."""
        full = round(self.width * min(max(share, 0.0), 1.0))
        return "━" * full + "·" * (self.width - full)

    def write(self, words: str) -> None:
        """The line from now on, and the seconds."""
        text = f"{words}, {self.clock() - self._begun:.0f} s"
        self.stream.write("\r" + printable(text).ljust(self._shown))
        self.stream.flush()
        self._shown = len(text)

    def end(self) -> None:
        """Takes the line away."""
        if self._shown:
            self.stream.write("\r" + " " * self._shown + "\r")
            self.stream.flush()
            self._shown = 0


@dataclass(kw_only=True)
class ReadingLine(PassingLine):
    """How much of a file is read; and, of a large one, how far it is with what comes after."""

    patience: float = 1.0

    def __call__(self, share: float) -> None:
        self.step("reading", share)

    def step(self, what: str, share: float) -> None:
        """So much of this is done."""
        if self.is_due:
            self.write(f"{what} {self.bar(share)} {share:4.0%}")


@dataclass(kw_only=True)
class ComparingLine(PassingLine):
    """Which of several models is being calibrated. Called as `compare_models` does."""

    patience: float = 1.0

    def __call__(self, name: str, done: int, of: int) -> None:
        if self.is_due:
            self.write(f"calibrating {self.bar(done / of)} {name}, {done} of {of} models done")


@dataclass(kw_only=True)
class ProgressLine(PassingLine):
    """How far a search is. Called as `calibrate` does: the number of the start, what the search last accepted."""

    starts: int
    patience: float = 2.0
    every: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._last = self._begun
        self._steps = 0

    def __call__(self, start: int, visit: Any) -> None:  # noqa: ARG002
        self._steps += 1
        if self.is_due and self.clock() - self._last >= self.every:
            self._last = self.clock()
            bar = self.bar(start / self.starts)
            self.write(f"calibrating {bar} start {start + 1} of {self.starts}, {self._steps} steps")
