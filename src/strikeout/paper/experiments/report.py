"""The report on paper: one offline page, every figure as SVG and PNG, every number as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from html import escape
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from strikeout.errors import UsageError
from strikeout.paper.experiments.section import Finding, Scale, Section, Table, Value

Chapter = tuple[Section, Finding]

TITLE = "Selective forgetting in option calibration, reproduced"
LEAD = (
    "Every figure and table of the paper again, from this package, beside what it does instead; "
    "and the places where the paper's claims do not hold. Numbers come from fixed seeds and are the same in every run; "
    "times are of the machine this page was made on."
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
    """Write report.html, figures/ and numbers/ below ``out``, and gives back where the page is.

    Raises:
        UsageError: ``out`` is a file, or cannot be written to.
    """
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
    """Make the folders of a report; to be asked before minutes of work.

    Raises:
        UsageError: ``out`` is a file, or cannot be written to.
    """
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
