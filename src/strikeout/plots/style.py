"""How our pictures look: quiet, labelled, safe for colour-blind readers, the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# Okabe and Ito's palette: told apart with every common kind of colour blindness, and in grey.
MARKET = "#0072B2"
MODEL = "#D55E00"
OTHERS = ("#000000", "#CC79A7", "#009E73")
INK = "#333333"
FAINT = "#8a8a8a"

STYLE: dict[Any, Any] = {  # matplotlib types its keys one by one
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 8.5,
    "text.color": INK,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 5.0,
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8e8e8",
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "strikeout",  # element names from the content alone, so that the same picture is the same bytes
}
WIDTH = 7.2  # inches: the column of a page
DPI = 160
MANY = 1500  # points beyond which an SVG holds them as one image: every one is drawn, and the file stays small


@contextmanager
def styled() -> Iterator[None]:
    """Our style inside, the caller's untouched outside."""
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        yield


def blank(height: float) -> Figure:
    """An empty figure of column width that belongs to no window."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI)
    FigureCanvasAgg(figure)
    return figure


def title(figure: Figure, words: str, entries: Sequence[tuple[str, str, Literal["o", "-", "--"]]] = ()) -> None:
    """The headline, and below it what each mark means, where no data can be: (words, colour, mark)."""
    height = figure.get_figheight()
    head = 0.46 if entries else 0.26  # inches kept free above the panels
    figure.set_layout_engine("constrained", rect=(0.0, 0.0, 1.0, 1 - head / height))
    figure.text(0.01, 1 - 0.06 / height, words, ha="left", va="top", fontsize=10, fontweight="bold")
    if not entries:
        return
    figure.legend(
        handles=[
            Line2D(
                [],
                [],
                color=colour,
                label=name,
                marker="o" if mark == "o" else "",
                linestyle="" if mark == "o" else mark,
            )
            for name, colour, mark in entries
        ],
        loc="upper left",
        bbox_to_anchor=(0.003, 1 - 0.28 / height),
        ncols=len(entries),
        frameon=False,
        fontsize=8,
        labelcolor="linecolor",
        borderpad=0.0,
        borderaxespad=0.0,
        handlelength=1.6,
        columnspacing=1.6,
        markerscale=0.6,
    )


def to_bytes(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """The figure as a file. Nothing in it says when or where it was made."""
    sink = BytesIO()
    with styled():
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        figure.savefig(sink, format=kind, dpi=DPI, metadata=metadata)
    return sink.getvalue()


def to_inline(figure: Figure) -> str:
    """The figure as an SVG element to stand inside a page."""
    text = to_bytes(figure, "svg").decode()
    return text[text.index("<svg") :]
