"""A drawing: SVG with its table twin and alternative text, for a page or a notebook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strikeout.plots.page import table_of
from strikeout.tables import Number, Table, cell_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 40  # of a table twin in a page; the whole table is in its files


@dataclass(frozen=True, repr=False)
class Drawing:
    """A picture for a browser or a notebook, the same numbers as a table, and what is to be seen in it in words.

    In a notebook it is interactive: cells and points have readouts, and chosen cells give the condition that selects
    their quotes. ``figure()`` is the same picture by matplotlib, for files and for notebooks without HTML.
    """

    svg: str
    table: Table
    title: str
    alternative: str
    draw: Callable[[], Figure] | None = field(default=None, compare=False)

    def drawn_by(self, draw: Callable[[], Figure]) -> Drawing:
        """Return this drawing with a function that draws it with matplotlib."""
        return replace(self, draw=draw)

    def figure(self) -> Figure:
        """Return the picture as a figure of matplotlib.

        Raises:
            NotImplementedError: there is no such figure of this picture.
        """
        if self.draw is None:
            raise NotImplementedError(f"{self.title}: this picture is drawn as SVG only.")
        return self.draw()

    def to_html(self, *, interactive: bool = True) -> str:
        """Return the picture and its table as a part of a page, with the style and the script they need."""
        script = f"<script>{asset('drawing.js')}</script>" if interactive else ""
        return (
            f'<div class="so-figure"><style>{asset("drawing.css")}</style>'
            f"<strong>{escape(self.title)}</strong>{self.svg}"
            f"<p class=so-readout role=status></p>"
            f"<details><summary>Table</summary>{table_html(self.table)}</details>{script}</div>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        shown: dict[str, Any] = {"text/html": self.to_html(), "text/plain": repr(self)}
        if include is not None and "image/png" in include:
            from strikeout.plots.style import to_bytes

            shown["image/png"] = to_bytes(self.figure(), "png")
        return shown

    def __repr__(self) -> str:
        return f"<Drawing: {self.alternative}>"


@cache
def asset(name: str) -> str:
    """Return the text of a file beside this one: the style or the script of drawings."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def table_html(table: Table, *, most: int = MOST_ROWS) -> str:
    """Return the first rows of a table as HTML; every text is escaped."""
    rows = [tuple(map(cell_text, row)) for row in table.rows[:most]]
    is_number = [
        n in table.numbers or bool(table.rows and isinstance(table.rows[0][n], Number))
        for n in range(len(table.headings))
    ]
    words = [n for n, number in enumerate(is_number) if not number]
    left = len(table.rows) - len(rows)
    return table_of(table.headings, rows, words=words) + (f"<p>and {left:,} more rows</p>" if left > 0 else "")
