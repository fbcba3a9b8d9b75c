"""Sections, the catalogue of experiments, and the page they make."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strikeout.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = float | int | str | None
Progress = Callable[[float, str], None]  # the share of the section that is done, and what is being done now


@dataclass(frozen=True)
class Scale:
    """How much work an experiment puts in: how many runs a point, which books, which fractions are forgotten."""

    name: str
    runs: int
    seeds: tuple[int, ...]
    fractions: tuple[float, ...] = (0.01, 0.02, 0.05, 0.10, 0.25)

    @property
    def is_quick(self) -> bool:
        """A first look, in about a minute for all sections together."""
        return self.name == "quick"


QUICK = Scale("quick", runs=3, seeds=(42,))
WHOLE = Scale("whole", runs=10, seeds=(42, 60, 7))


@dataclass(frozen=True)
class Section:
    """What is asked. ``question`` is a paragraph; ``command`` runs this section and no other."""

    name: str
    title: str
    question: str

    @property
    def command(self) -> str:
        """What to type to run this section alone."""
        return f"strikeout paper {self.name}"


@dataclass(frozen=True)
class Column:
    """A column of numbers or words. ``show`` is a format for one number; seconds choose their own unit."""

    name: str
    unit: str = ""
    show: str = ".3g"

    @property
    def heading(self) -> str:
        """Name and unit, for readers."""
        return f"{self.name} ({self.unit})" if self.unit not in ("", "s") else self.name

    @property
    def field(self) -> str:
        """Name and unit, for programs."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def text(self, value: Value) -> str:
        """Return one cell as it is read; a dash if there is no number."""
        if value is None or (isinstance(value, float) and not isfinite(value)):
            return "-"
        if isinstance(value, str):
            return value
        if value == 0:
            return "0"
        return time_text(value) if self.unit == "s" else format(value, self.show)


@dataclass(frozen=True)
class Table:
    """Numbers with their units. One that is not ``is_shown`` is written to the files but not to the page."""

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Value, ...]]
    is_shown: bool = True

    def column(self, name: str) -> list[Value]:
        """Return the values of one column."""
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]


def tabulated(caption: str, records: Sequence[Mapping[Column | str, Value]], *, is_shown: bool = True) -> Table:
    """Return a table of records, whose keys are the columns; a key that is a text is a column of words."""
    columns = tuple(Column(key) if isinstance(key, str) else key for key in records[0])
    return Table(caption, columns, [tuple(record.values()) for record in records], is_shown)


@dataclass(frozen=True)
class Picture:
    """What to draw, when it is wanted, and what to write below it."""

    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Finding:
    """What was found: tables and pictures by name, then what they show, a paragraph each."""

    paragraphs: tuple[str, ...]
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Picture] = field(default_factory=dict)


def time_text(seconds: float) -> str:
    """Return seconds in the unit that reads best, to three digits.

    >>> time_text(0.00000184), time_text(18.164)
    ('1.84 µs', '18.2 s')
    """
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(seconds) * factor >= 1.0 or unit == "µs":
            return f"{_digits(seconds * factor)} {unit}"
    raise AssertionError("the last unit takes everything")


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# Each is a module of this package with a `SECTION` and a pure function `run(scale, progress)`.
SECTIONS = (
    "equivalence",
    "locality",
    "tables",
    "propositions",
    "corruption",
    "sensitivity",
    "curvature",
    "erasure",
)


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return these sections in the order of the report; all if none is named."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise UsageError(f"The paper has no section {', '.join(unknown)}. The sections are {', '.join(SECTIONS)}.")
    return tuple(name for name in SECTIONS if name in names or not names)


def section_of(name: str) -> Section:
    """Return what a section asks."""
    (name,) = chosen([name])
    section: Section = import_module(f"strikeout.paper.experiments.{name}").SECTION
    return section


def find(name: str, scale: Scale, *, progress: Progress | None = None) -> Finding:
    """Run one section. The same scale gives the same numbers; only times differ."""
    (name,) = chosen([name])
    run: Callable[[Scale, Progress], Finding] = import_module(f"strikeout.paper.experiments.{name}").run
    return run(scale, progress or silent)


def silent(share: float, words: str) -> None:
    """Ignore progress."""


Chapter = tuple[Section, Finding]
TITLE = "Selective forgetting in option calibration, reproduced"

LEAD = (
    "Every figure and table of the paper again, from this package, beside what it does instead; and the places where "
    "the paper's claims do not hold. Numbers come from fixed seeds and are the same in every run; times are of the "
    "machine this page was made on."
)

CSS = """
body { max-width: 58rem; }
.report p, .report nav, .report figure, .report h1 { max-width: 46rem; }
.report table { font-size: .84rem; line-height: 1.35; }
.report th, .report td { padding-right: .7rem; }
.report td { white-space: nowrap; }
.report td.words { white-space: normal; }
.report caption { caption-side: bottom; text-align: left; color: #666; font-size: .9rem; padding-top: .4rem; }
.report nav { columns: 2; margin: 1rem 0 2rem; }
.report nav p { margin: 0 0 .3rem; }
.report a { color: #0072B2; }
.report p.asked { color: #555; }
.report figure svg text { font-family: "DejaVu Sans", Verdana, sans-serif; }
@media print {
  @page { margin: 16mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  .report table { font-size: 7.5pt; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  table { display: table; }
  .report nav { display: none; }
}
"""


def write_report(chapters: Sequence[Chapter], out: str | PathLike[str], *, scale: Scale) -> Path:
    """Write report.html, figures/ and numbers/ below ``out``, and gives back where the page is."""
    from strikeout.plots.style import to_bytes

    there = room_for(out)
    pictures: dict[str, str] = {}
    try:
        for section, finding in chapters:
            for name, picture in finding.figures.items():
                figure = picture.draw()
                svg = to_bytes(figure, "svg")
                pictures[f"{section.name}-{name}"] = svg.decode()
                (there / "figures" / f"{section.name}-{name}.svg").write_bytes(svg)
                (there / "figures" / f"{section.name}-{name}.png").write_bytes(to_bytes(figure, "png"))
            for name, table in finding.tables.items():
                (there / "numbers" / f"{section.name}-{name}.csv").write_text(csv_of(table), encoding="utf-8")
            numbers = json.dumps(json_of(section, finding, scale), indent=1, ensure_ascii=False, allow_nan=False)
            (there / "numbers" / f"{section.name}.json").write_text(numbers + "\n", encoding="utf-8")
        page = there / "report.html"
        page.write_text(page_text(chapters, pictures, scale=scale), encoding="utf-8")
    except OSError as error:
        raise _unwritable(there, error) from error
    return page


def room_for(out: str | PathLike[str]) -> Path:
    """Make the folders of a report; to be asked before minutes of work."""
    there = Path(out)
    try:
        for folder in ("figures", "numbers"):
            (there / folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(there, error) from error
    return there


def page_text(chapters: Sequence[Chapter], pictures: dict[str, str], *, scale: Scale) -> str:
    """Return the page. ``pictures`` are the SVG texts by section and name."""
    from strikeout.plots.page import page_of

    contents = "".join(
        f'<p><a href="#{section.name}">{number}. {escape(section.title)}</a></p>'
        for number, (section, _) in enumerate(chapters, start=1)
    )
    quick = (
        " This is the quick run: fewer runs and one book; leave --quick out for the whole." if scale.is_quick else ""
    )
    parts = [
        f"<style>{CSS}</style>",
        '<div class="report">',
        f"<h1>{escape(TITLE)}</h1>",
        f'<p class="lead">{escape(LEAD + quick)}</p>',
        f"<nav>{contents}</nav>",
    ]
    for number, (section, finding) in enumerate(chapters, start=1):
        parts.append(f'<h2 id="{section.name}">{number}. {escape(section.title)}</h2>')
        parts.append(f'<p class="asked">{escape(section.question)}</p>')
        for name, picture in finding.figures.items():
            svg = _inline(pictures[f"{section.name}-{name}"], f"{section.name}-{name}")
            parts.append(f"<figure>{svg}<figcaption>{escape(picture.caption)}</figcaption></figure>")
        parts += [html_of(table) for table in finding.tables.values() if table.is_shown]
        parts += [f"<p>{escape(paragraph)}</p>" for paragraph in finding.paragraphs]
        parts.append(f"<p>This section alone: <code>{escape(section.command)}</code></p>")
    parts.append("</div>")
    return page_of(TITLE, parts)


def html_of(table: Table) -> str:
    """Return a table for readers: units in the heading or in the cell, never missing."""
    words = [not any(isinstance(row[place], (int, float)) for row in table.rows) for place in range(len(table.columns))]

    def row(tag: str, texts: Sequence[str]) -> str:
        cells = zip(texts, words, strict=True)
        return "<tr>" + "".join(_cell(tag, text, is_words) for text, is_words in cells) + "</tr>"

    head = row("th", [column.heading for column in table.columns])
    body = [
        row("td", [column.text(value) for column, value in zip(table.columns, values, strict=True)])
        for values in table.rows
    ]
    return f"<table><caption>{escape(table.caption)}</caption>{head}{''.join(body)}</table>"


def csv_of(table: Table) -> str:
    """Return a table for programs: all digits, units in the header."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow([column.field for column in table.columns])
    writer.writerows([["" if value is None else value for value in row] for row in table.rows])
    return sink.getvalue()


def json_of(section: Section, finding: Finding, scale: Scale) -> dict[str, Any]:
    """Return everything of a section but its pictures, as plain values."""
    return {
        "section": section.name,
        "title": section.title,
        "scale": scale.name,
        "paragraphs": list(finding.paragraphs),
        "tables": {
            name: {
                "caption": table.caption,
                "columns": [{"name": column.name, "unit": column.unit} for column in table.columns],
                "rows": [[_plain(value) for value in row] for row in table.rows],
            }
            for name, table in finding.tables.items()
        },
    }


def _unwritable(there: Path, error: OSError) -> UsageError:
    return UsageError(
        f"The report cannot go to {there}: {error.strerror or error}. Name a folder that can be written to (--out)."
    )


def _cell(tag: str, text: str, is_words: bool) -> str:
    words = ' class="words"' if is_words else ""
    return f"<{tag}{words}>{escape(text)}</{tag}>"


def _inline(svg: str, name: str) -> str:
    """Return the SVG element with names of its own: two figures may both name a part "axes_1"."""
    text = svg[svg.index("<svg") :]
    return text.replace('id="', f'id="{name}-').replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')


def _plain(value: Value) -> Value:
    return None if isinstance(value, float) and not isfinite(value) else value
