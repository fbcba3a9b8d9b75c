"""Output: tables and sentences on stdout, notes on stderr, hints and progress on stderr of a terminal only.

Every command prints through here: terminal codes and line breaks in a label, an id or a file name are printed as
escapes and never sent to the terminal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO

import click

from strikeout.tables import Table, cell_text
from strikeout.text import as_lines, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as Drawing

Format = Literal["table", "csv", "latex", "markdown", "json"]
LEGIBLE = 12  # columns that sentences need to be readable
UNBOUNDED = 10_000  # columns in a pipe or a file: nothing is wrapped or cut


def show(*parts: RenderableType | Table) -> None:
    """Print parts one below the other, as wide as the terminal; in a pipe without limit, colours or padding."""
    from rich.console import Console

    is_terminal = sys.stdout.isatty()
    out = Console(
        file=sys.stdout,
        width=_columns(),
        height=25,  # not used; without it Rich ignores the width if TERM=dumb
        force_terminal=is_terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with out.capture() as captured:
        for part in (below for one in parts for below in (split(one) if isinstance(one, Table) else (one,))):
            drawn = draw(part) if isinstance(part, Table) else part
            out.print(as_lines(drawn.split("\n")) if isinstance(drawn, str) else drawn)
    lines = captured.get().splitlines()
    click.echo("\n".join(lines if is_terminal else [line.rstrip() for line in lines]))


Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Output:
    """How a command prints its result: for people, as one JSON object, or its tables alone in another format."""

    form: Format = "table"

    @property
    def is_json(self) -> bool:
        """Whether a program reads the result."""
        return self.form == "json"

    def result(
        self,
        facts: Facts | Callable[[], Facts],
        *parts: RenderableType | Table,
        notes: Iterable[str] = (),
        hints: Iterable[str] = (),
        code: int = 0,
    ) -> int:
        """Print a result and return the exit code.

        Args:
            facts: for JSON; a function if they take time.
            parts: what people read, one below the other; in other formats than text, only the tables.
            notes: remarks for people, on stderr.
            hints: commands to try next.
        """
        if self.form == "json":
            show_json(facts() if callable(facts) else facts)
            return code
        if self.form == "table":
            show(*parts)
        else:
            click.echo("\n\n".join(part.to_text(self.form) for part in parts if isinstance(part, Table)))
        return self._remarks(notes, hints, code)

    def lines(
        self, facts: Facts, text: str, *, notes: Iterable[str] = (), hints: Iterable[str] = (), code: int = 0
    ) -> int:
        """Print a result whose text is made of lines; see ``result``."""
        if self.is_json:
            show_json(facts)
            return code
        show_lines(text)
        return self._remarks(notes, hints, code)

    @staticmethod
    def _remarks(notes: Iterable[str], hints: Iterable[str], code: int) -> int:
        for sentence in notes:
            note(sentence)
        hint(*hints)
        return code


def say(text: str, *, err: bool = False) -> None:
    """Print lines of plain text."""
    click.echo(as_lines(text.split("\n")), err=err)


def show_json(result: object) -> None:
    """Print one JSON object on one line, numbers with all their digits."""
    click.echo(json.dumps(result, allow_nan=False))


def split(table: Table) -> list[str | Table]:
    """Return a table, or the tables that show its columns one below the other if it has keys and is too wide."""
    texts = [[cell_text(cell) for cell in row] for row in table.rows]
    widths = [
        2 + max(map(len, [printable(heading), *(row[place] for row in texts)]))
        for place, heading in enumerate(table.headings)
    ]
    if not table.keys or sum(widths) <= _columns():
        return [table]
    keys = list(range(table.keys))
    room, chunks = _columns() - sum(widths[: table.keys]), [[table.keys]]
    for place in range(table.keys + 1, len(widths)):
        if sum(widths[at] for at in chunks[-1]) + widths[place] > room:
            chunks.append([])
        chunks[-1].append(place)
    parts = [table.columns([*keys, *chunk]) for chunk in chunks]
    return [part for one in parts for part in ("", one)][1:]


def draw(table: Table) -> Drawing:
    """Return a table for the terminal. Columns that do not fit are left out, and a caption lists them."""
    from rich.table import Table as Drawing
    from rich.text import Text

    headings = [printable(heading) for heading in table.headings]
    rows = [[cell_text(cell) for cell in row] for row in table.rows]
    columns = [[row[place] for row in rows] for place in range(len(headings))]
    full = [max(map(len, [heading, *cells])) for heading, cells in zip(headings, columns, strict=True)]
    # Rich would cut numbers if space is short; with a width of its own a column wraps its heading instead.
    fixed = {*table.numbers, *table.whole}
    least = [
        max(map(len, [*heading.split(), *cells])) if place in fixed else min(full[place], LEGIBLE)
        for place, (heading, cells) in enumerate(zip(headings, columns, strict=True))
    ]
    width_of = _columns()
    is_narrow = sum(width + 2 for width in full) > width_of
    empty = [place for place, cells in enumerate(columns) if is_narrow and rows and not any(cells)]
    shown, waiting = ([place for place in some if place not in empty] for some in (range(len(full)), table.spare))
    while waiting and sum(least[place] + 2 for place in shown) > width_of:
        shown.remove(waiting.pop(0))
    # Long names, such as ids, are then wrapped, the longest first: numbers never are.
    names = sorted((place for place in shown if place in fixed and place not in table.numbers), key=least.__getitem__)
    while names and sum(least[place] + 2 for place in shown) > width_of:
        longest = names.pop()
        fixed.remove(longest)
        least[longest] = min(least[longest], LEGIBLE)
    is_narrow = sum(full[place] + 2 for place in shown) > width_of
    # Without space for a few words per column none gets a minimum: Rich would cut what does not fit.
    is_legible = sum(least[place] + 2 for place in shown) <= width_of
    drawn = Drawing(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", caption_justify="left")
    for place in shown:
        width = least[place] if place in fixed and is_narrow else None
        justify: Literal["right", "left"] = "right" if place in table.numbers else "left"
        minimum = least[place] if is_legible and place not in fixed else None
        drawn.add_column(headings[place], justify=justify, width=width, min_width=minimum, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(row[place]) for place in shown))
    left_out = [heading for place, heading in enumerate(headings) if place not in (*shown, *empty)]
    if left_out:
        drawn.caption = f"Wider terminals show {', '.join(left_out)} too."
    return drawn


def show_lines(text: str) -> None:
    """Print lines of plain text; on a terminal, wrap long lines below their text, beside the name at their start.

    A name ends with two spaces or more, as in ``gone   36 rows: contract, price``.
    """
    if not sys.stdout.isatty():
        say(text)
        return
    for line in as_lines(text.split("\n")).split("\n"):
        named = re.match(r"(?:\S+(?: \S+)*)?\s{2,}(?:\S+(?: \S+)*\s{2,})?|- ", line)
        indent = " " * (named.end() if named and named.end() < _columns() // 2 else 0)
        parts = textwrap.wrap(line, _columns(), subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True)
        click.echo("\n".join(parts) if len(line) > _columns() else line)


def move_text(value: float) -> str:
    """Return a move with its sign and three digits, without decimals from a hundred on; a dash if there is none."""
    return "-" if not isfinite(value) else f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3g}"


def _columns() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNBOUNDED


def facts(pairs: Sequence[tuple[str, str]]) -> Drawing:
    """Return names with a sentence for each; long sentences wrap beside their name."""
    from rich.table import Table as Drawing
    from rich.text import Text

    drawn = Drawing.grid(padding=(0, 2, 0, 0))
    drawn.add_column(no_wrap=True, style="bold")
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(Text(printable(name)), Text(printable(value)))
    return drawn


def note(sentence: str) -> None:
    """Print a remark on the result to stderr."""
    say(f"note: {sentence}", err=True)


def hint(*commands: str) -> None:
    """Print commands to try next to stderr, if it is a terminal."""
    if sys.stderr.isatty():
        for command in commands:
            say(f"next: {typed(command)}", err=True)


def typed(command: str) -> str:
    """Return a command of strikeout as it can be typed here, with the path of the program if the shell needs it."""
    if shutil.which("strikeout") is not None:
        return command
    beside = Path(sys.executable).parent / "strikeout"
    program = os.path.relpath(beside) if beside.is_file() else f"{os.path.relpath(sys.executable)} -m strikeout"
    return command.replace("strikeout", program, 1)


@dataclass(kw_only=True)
class PassingLine:
    """One line of progress on a terminal, overwritten as work goes on and removed at the end."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    patience: float = 0.0  # seconds before the line appears
    width: int = 20

    def __post_init__(self) -> None:
        self._begun = self.clock()
        self._shown = 0

    @property
    def is_due(self) -> bool:
        """Whether stderr is a terminal and the patience is over."""
        return self.stream.isatty() and self.clock() - self._begun >= self.patience

    def bar(self, share: float) -> str:
        """Return a bar of which this share is full."""
        full = round(self.width * min(max(share, 0.0), 1.0))
        return "━" * full + "·" * (self.width - full)

    def write(self, words: str) -> None:
        """Replace the line by these words and the seconds."""
        text = f"{words}, {self.clock() - self._begun:.0f} s"
        self.stream.write("\r" + printable(text).ljust(self._shown))
        self.stream.flush()
        self._shown = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Remove the line."""
        if self._shown:
            self.stream.write("\r" + " " * self._shown + "\r")
            self.stream.flush()
            self._shown = 0


@dataclass(kw_only=True)
class ReadingLine(PassingLine):
    """The share of a file that is read, and of the work that follows on a large one."""

    patience: float = 1.0

    def __call__(self, share: float) -> None:
        self.step("reading", share)

    def step(self, what: str, share: float) -> None:
        """Show the share of one kind of work that is done."""
        if self.is_due:
            self.write(f"{what} {self.bar(share)} {share:4.0%}")


@dataclass(kw_only=True)
class SearchingLine(PassingLine):
    """How much of a book's files is searched. Called with the bytes searched so far and their total."""

    patience: float = 1.0

    def __call__(self, done: int, total: int) -> None:
        if self.is_due:
            self.write(f"searching {self.bar(done / max(total, 1))} {done / 1e6:,.0f} of {total / 1e6:,.0f} MB")


@dataclass(kw_only=True)
class ComparingLine(PassingLine):
    """The current one of several calibrations; a progress function for `compare_models` and `calibrate_many`."""

    patience: float = 1.0
    what: str = "models"

    def __call__(self, name: str, done: int, of: int) -> None:
        if self.is_due:
            self.write(f"calibrating {self.bar(done / of)} {name}, {done:,} of {of:,} {self.what} done")


@dataclass(kw_only=True)
class RoundsLine(PassingLine):
    """The start and the round of an iteration whose end is not known; a progress function for `regimes`."""

    patience: float = 2.0

    def __call__(self, start: int, done: int) -> None:
        if self.is_due:
            self.write(f"searching for regimes: start {start + 1}, {done:,} rounds done")


@dataclass(kw_only=True)
class ProgressLine(PassingLine):
    """The start and the step of a search; a progress function for `calibrate`."""

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
