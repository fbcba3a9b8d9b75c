"""``strikeout paper``: every figure and table of the paper, beside what this package does."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from strikeout.cli import terminal
from strikeout.cli.options import output_options
from strikeout.tables import Table, number


@click.command("paper")
@click.argument("sections", nargs=-1, metavar="[SECTION]...")
@click.option("--quick", is_flag=True, help="Fewer runs and one book: about a minute instead of several.")
@click.option(
    "--out", type=click.Path(path_type=str), default="paper", show_default=True, help="The folder the report goes to."
)
@output_options
def paper(sections: tuple[str, ...], quick: bool, out: str, output: terminal.Output) -> int:
    """Run the experiments of "Selective Forgetting in Option Calibration" and write a report.

    Without a SECTION all are run: equivalence, locality, tables, and those that go beyond the paper. The report is one
    page, OUT/report.html, with its figures and numbers beside it.
    """
    from strikeout.paper.experiments.report import QUICK, WHOLE, chosen, find, room_for, section_of, write_report

    names, scale = chosen(sections), QUICK if quick else WHOLE
    room_for(out)
    chapters, seconds = [], {}
    with SectionLine(sections=len(names)) as line:
        for name in names:
            begun = time.perf_counter()
            section = section_of(name)
            line.begin(name)
            chapters.append((section, find(name, scale, progress=line)))
            seconds[name] = time.perf_counter() - begun
    page = write_report(chapters, out, scale=scale)
    rows = [
        (
            section.name,
            section.title,
            number(seconds[section.name], ".1f"),
            number(len(found.tables), "d"),
            number(len(found.figures), "d"),
        )
        for section, found in chapters
    ]
    heads = ("section", "what it asks", "seconds", "tables", "figures")
    facts = {"report": str(page), "scale": scale.name, "seconds": seconds}
    return output.result(facts, Table(heads, rows, numbers=(2, 3, 4)), notes=[f"the report is in {page}"])


@dataclass(kw_only=True)
class SectionLine(terminal.PassingLine):
    """The section of the report that is being computed."""

    sections: int
    width: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number, self._name = 0, ""

    def begin(self, name: str) -> None:
        """Show the next section."""
        self._number, self._name = self._number + 1, name
        self(0.0, "")

    def __call__(self, share: float, words: str) -> None:
        if self.is_due:
            bar = self.bar((self._number - 1 + min(max(share, 0.0), 1.0)) / self.sections)
            self.write(f"{bar} {self._number} of {self.sections}, {self._name}{': ' + words if words else ''}")
