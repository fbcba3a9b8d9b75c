"""What a benchmark found: rows for a table and for JSON, each with what the project requires of it."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

WIDTH = 150  # of a table that goes into a file or a pipe


@dataclass(frozen=True)
class Row:
    """One candidate on one task.

    Args:
        ratio: its time over that of the task's first row, in the same rounds; the first row is ours wherever there is a
            peer, and above one means slower than ours.
        required: the ratio it must at least have for us to keep our promise; None if no promise is made.
        error: worst absolute price error over the forward, of this candidate on this task.
    """

    task: str
    candidate: str
    seconds: float | None = None
    ratio: float | None = None
    required: float | None = None
    error: float | None = None
    note: str = ""

    @classmethod
    def allowed(cls, task: str, *, most: float, taken: float, note: str = "") -> Row:
        """The most seconds that ours may take, as a row beside ours: a promise like any other."""
        return cls(task, "the most it may take", most, most / taken, 1.0, note=note)

    @property
    def is_met(self) -> bool | None:
        return None if self.required is None or self.ratio is None else self.ratio >= self.required


@dataclass(frozen=True)
class Result:
    """All rows of one benchmark; `facts` are figures that are not timings (`bytes per quote`, `worst corner error`)."""

    name: str
    is_quick: bool
    rows: tuple[Row, ...]
    facts: dict[str, float | str]

    @property
    def missed(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.is_met is False)

    def write(self, folder: Path) -> Path:
        """Writes `<name>.json`: the rows, the facts, and the machine they were measured on."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        content = {
            "benchmark": self.name,
            "quick": self.is_quick,
            "machine": {"processor": _processor(), "python": platform.python_version(), "system": sys.platform},
            "rows": [asdict(row) | {"met": row.is_met} for row in self.rows],
            "facts": self.facts,
        }
        path.write_text(json.dumps(content, indent=2) + "\n")
        return path

    def show(self) -> None:
        """Prints the table."""
        from rich.console import Console
        from rich.table import Table

        title = f"{self.name} (quick: figures are rough)" if self.is_quick else self.name
        table = Table(title=title, title_justify="left")
        for heading in ("task", "candidate"):
            table.add_column(heading)
        for heading in ("time", "over the first", "required", "error / forward"):
            table.add_column(heading, justify="right")
        table.add_column("note")
        for before, row in zip((None, *self.rows), self.rows, strict=False):
            if before is not None and before.task != row.task:
                table.add_section()
            table.add_row(
                "" if before is not None and before.task == row.task else row.task,
                row.candidate,
                "-" if row.seconds is None else duration(row.seconds),
                "-" if row.ratio is None else f"x {_figure(row.ratio)}",
                _promise(row),
                "-" if row.error is None else f"{row.error:.0e}",
                row.note,
            )
        console = Console()
        if not console.is_terminal:
            console = Console(width=WIDTH)
        console.print(table)
        for name, value in self.facts.items():
            console.print(f"  {name}: {value if isinstance(value, str) else _figure(value)}", highlight=False)


def duration(seconds: float) -> str:
    """Seconds in the unit that leaves few digits.

    >>> duration(0.000061), duration(0.31), duration(18.3)
    ('61.0 us', '310 ms', '18.3 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.{0 if seconds / size >= 100 else 1}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _figure(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 100:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1e}"


def _promise(row: Row) -> str:
    if row.required is None:
        return "-"
    word = {True: "[green]met[/green]", False: "[red]missed[/red]", None: "not measured"}[row.is_met]
    return f"x {_figure(row.required)} {word}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()
