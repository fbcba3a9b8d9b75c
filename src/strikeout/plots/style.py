"""The style of the pictures: quiet, labelled, safe for colour-blind readers, the same bytes every time.

`View` selects the quotes that a picture shows, their unit, and the caption that names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from os import PathLike, fspath
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from strikeout.calibration.fit_errors import expiry_names
from strikeout.errors import UsageError
from strikeout.kernels.arrays import Mask
from strikeout.text import printable

if TYPE_CHECKING:  # matplotlib takes as long to import as the rest of strikeout, and drawings do without
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

    from strikeout.quotes.quotes import Quotes

# Okabe and Ito's palette: distinct with every common kind of colour blindness, and in grey.
MARKET = "#0072B2"
MARKET_PALE = "#9CC4E0"
MODEL = "#D55E00"
OTHERS = ("#000000", "#CC79A7", "#009E73")
INK = "#333333"
FAINT = "#8a8a8a"
NOTHING = "#e9e9e9"  # behind a map: a cell without quotes is not one with a good fit

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
LINE = 118  # characters of a caption in a line of column width
MANY = 1500  # points beyond which an SVG holds them as one image: every one is drawn, and the file stays small


def apart() -> LinearSegmentedColormap:
    """Return colours for residuals of either sign, pale near zero."""
    return _colours("apart", MODEL, "#f0b48a", "#ffffff", "#8fbfdf", MARKET)


def in_order() -> LinearSegmentedColormap:
    """Return colours for expiries in their order, dark enough on white."""
    return _colours("in_order", "#D55E00", "#C8577D", "#6A51A3", "#0072B2", "#00424F")


def _colours(name: str, *stops: str) -> LinearSegmentedColormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, stops)


@contextmanager
def styled() -> Iterator[None]:
    """Set the style of the pictures, and restore the caller's afterwards."""
    import matplotlib as mpl

    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        yield


def blank(height: float) -> Figure:
    """Return an empty figure of column width without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=DPI)
    FigureCanvasAgg(figure)
    return figure


def title(
    figure: Figure,
    words: str,
    entries: Sequence[tuple[str, str, Literal["o", "-", "--"]]] = (),
    *,
    caption: str = "",
) -> None:
    """Write the headline, below it the caption, and below that what each mark means: (words, colour, mark)."""
    from matplotlib.lines import Line2D

    height = figure.get_figheight()
    lines = wrap(caption, LINE) if caption else []
    below = 0.25 + 0.155 * len(lines)
    head = below + (0.21 if entries else 0.01)  # inches kept free above the panels
    figure.set_layout_engine("constrained", rect=(0.0, 0.0, 1.0, 1 - head / height))
    figure.text(0.01, 1 - 0.06 / height, words, ha="left", va="top", fontsize=10, fontweight="bold")
    if lines:
        figure.text(0.01, 1 - 0.245 / height, "\n".join(lines), ha="left", va="top", fontsize=7.5, color=FAINT)
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
        bbox_to_anchor=(0.003 if entries[0][2] == "o" else 0.01, 1 - (below + 0.03) / height),
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


def scale_of(norm: Normalize, colours: LinearSegmentedColormap) -> ScalarMappable:
    """Return a scale of colours for a panel whose marks were coloured one by one."""
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(norm, colours)


def plain(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[Any]:
    """Return an array as lists for JSON; a number that is not finite is None."""
    return (
        [plain(row) for row in values] if values.ndim > 1 else [x if np.isfinite(x) else None for x in values.tolist()]
    )


def format_of(path: str | PathLike[str]) -> Literal["png", "svg", "pdf"]:
    """Return the format of a file name's ending, or of an ending itself."""
    kinds: dict[str, Literal["png", "svg", "pdf"]] = {"png": "png", "svg": "svg", "pdf": "pdf"}
    return kinds[fspath(path).lower().rpartition(".")[2]]


def to_bytes(figure: Figure, kind: Literal["png", "svg", "pdf"]) -> bytes:
    """Return the figure as a file, without the time and place of its making."""
    sink = BytesIO()
    unsaid = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    with styled():
        figure.savefig(sink, format=kind, dpi=DPI, metadata=unsaid[kind])
    return sink.getvalue()


def to_inline(figure: Figure) -> str:
    """Return the figure as an SVG element for a page."""
    text = to_bytes(figure, "svg").decode()
    return text[text.index("<svg") :]


Unit = Literal["spreads", "vol_points", "price"]
UNITS: tuple[Unit, ...] = ("spreads", "vol_points", "price")
LISTED = 4  # expiries or dates that an error names


@dataclass(frozen=True)
class View:
    """What to show of a calibration.

    Args:
        expiries: dates of expiries; all of them if empty.
        date: one quote date; by default all, and for smiles of a panel its last one.
        unit: of residuals: "spreads" (the default if there are spreads), "vol_points" or "price".
        source: the name of the file or book, for the caption.
    """

    expiries: tuple[str, ...] = ()
    date: str | None = None
    unit: Unit | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in UNITS:
            raise UsageError(f"unit={self.unit!r}: not a unit of residuals. Use one of {', '.join(UNITS)}.")

    def rows(self, quotes: Quotes) -> Mask:
        """Return which quotes are shown."""
        shown = np.ones(len(quotes), bool)
        if self.expiries:
            names, place = expiry_names(quotes)
            _refuse_unknown("expiry", self.expiries, names)
            shown &= np.isin(place, [names.index(name) for name in self.expiries])
        if self.date is not None:
            dates = quotes.labels.get("date")
            texts = np.full(len(quotes), "", object) if dates is None else dates.astype(str)
            _refuse_unknown("date", (self.date,), sorted(set(texts.tolist()) - {""}))
            shown &= texts == self.date
        return shown


WHOLE = View()


def is_panel(calibration: Any) -> bool:
    """Return whether a calibration has a latent parameter per group."""
    return bool(getattr(calibration, "latent", None))


def caption(calibration: Any, view: View = WHOLE) -> str:
    """Return a line with underlying, dates, file, objective and fit error."""
    quotes = calibration.used
    parts = [*_values(quotes, "underlying", 3), *_span(quotes, view.date)]
    parts += [] if view.source is None else [view.source]
    weights = "" if calibration.weights == "none" else f", weights {calibration.weights}"
    residual = {"price": "price", "implied_vol": "implied volatility"}[calibration.residual]
    parts.append(f"{residual} residuals{weights}")
    return printable(" · ".join([*parts, f"fit error {calibration.fit_errors.sentence}"]))


def _values(quotes: Quotes, label: str, most: int) -> list[str]:
    if label not in quotes.labels:
        return []
    names = sorted({str(name) for name in quotes.labels[label].tolist()} - {"", "None"})
    return [", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")] if names else []


def _span(quotes: Quotes, date: str | None) -> list[str]:
    if date is not None:
        return [date]
    if "date" not in quotes.labels:
        return []
    dates = sorted({str(day) for day in quotes.labels["date"].tolist()} - {"", "None"})
    return [] if not dates else [dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"]


def _refuse_unknown(what: str, asked: tuple[str, ...], there: list[str]) -> None:
    missing = [name for name in asked if name not in there]
    if missing:
        some = ", ".join(there[:LISTED]) + (f" and {len(there) - LISTED} more" if len(there) > LISTED else "")
        raise UsageError(f"{what} {missing[0]!r}: no quote has it. There are {some or 'none'}.", missing=missing)
