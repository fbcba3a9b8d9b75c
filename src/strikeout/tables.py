"""Tables: rows below headings, written as text, CSV, LaTeX, Markdown or records; columns as frames of a library."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from strikeout.errors import UsageError
from strikeout.text import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

TextFormat = Literal["text", "csv", "latex", "markdown"]
MOST_LISTED = 20  # of a long fact, such as the issues of a rejected file
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip

Library = Literal["polars", "pandas", "pyarrow"]


class Number(NamedTuple):
    """A number with the text a person reads; files for programs get every digit."""

    value: float | None
    text: str


Cell = str | Number


def number(value: float | None, form: str = ".6g", *, scale: float = 1.0) -> Number:
    """Return a number for a table; a dash if it is None or not finite.

    Args:
        form: a format of Python, such as ".2f".
        scale: a factor of the text and the value, such as 100 for percent.

    >>> number(0.01234, ".2f", scale=100.0), number(float("nan"))
    (Number(value=1.234, text='1.23'), Number(value=None, text='-'))
    """
    if value is None or not isfinite(value):
        return Number(None, "-")
    scaled = value if scale == 1.0 else value * scale  # a whole number stays one
    return Number(scaled, format(scaled, form))


@dataclass(frozen=True)
class Table:
    """Rows below headings.

    Args:
        numbers: places of columns that are aligned to the right and never wrapped.
        whole: places of columns that are never wrapped.
        spare: places of columns to leave out, first to last, on a terminal too narrow for all.
        keys: the number of leading columns that name a row. If there are any, a terminal too narrow for all columns
            shows several tables, one below the other, which all begin with these columns.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: Sequence[int] = ()
    whole: Sequence[int] = ()
    spare: Sequence[int] = ()
    keys: int = 0

    def columns(self, places: Sequence[int]) -> Table:
        """Return the table of these columns, in this order."""
        numbers, whole = ([at for at, place in enumerate(places) if place in of] for of in (self.numbers, self.whole))
        rows = [[row[place] for place in places] for row in self.rows]
        return Table([self.headings[place] for place in places], rows, numbers=numbers, whole=whole)

    def records(self) -> list[dict[str, Any]]:
        """Return one mapping per row, numbers as numbers."""
        return [dict(zip(self.headings, map(_value, row), strict=True)) for row in self.rows]

    def to_text(self, form: TextFormat = "text") -> str:
        """Return the table as text in columns, CSV, LaTeX (booktabs) or Markdown.

        >>> print(Table(("model", "error, %"), [("heston", number(0.5, ".1f"))], numbers=(1,)).to_text("markdown"))
        | model  | error, % |
        |:-------|---------:|
        | heston |      0.5 |
        """
        if form not in WRITERS:
            raise UsageError(f"format {form!r}: not a format of tables. Use one of {', '.join(WRITERS)}.", format=form)
        return WRITERS[form](self)


def _value(cell: Cell) -> Any:
    return cell.value if isinstance(cell, Number) else cell


def cell_text(cell: Cell) -> str:
    """Return the text of a cell for people, with escapes for what does not print."""
    return printable(cell.text if isinstance(cell, Number) else cell)


def _columns(table: Table) -> str:
    rows = [list(map(cell_text, row)) for row in (table.headings, *table.rows)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.headings))]
    right = [place in table.numbers for place in range(len(widths))]
    return "\n".join(
        "  ".join(
            f"{cell:>{w}}" if r else f"{cell:<{w}}" for cell, w, r in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    )


def _csv(table: Table) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow([printable(heading) for heading in table.headings])
    for row in table.rows:
        writer.writerow([_guarded(cell) for cell in row])
    return sink.getvalue().rstrip("\n")


def _guarded(cell: Cell) -> str:
    """Return a cell of a CSV; a text that a spreadsheet would run as a formula begins with a quotation mark."""
    if isinstance(cell, Number):
        return "" if cell.value is None else repr(cell.value)
    text = printable(cell)
    return f"'{text}" if text[:1] in ("=", "@", "+", "-") and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return text == "-"
    return True


def _latex(table: Table) -> str:
    sides = "".join("r" if place in table.numbers else "l" for place in range(len(table.headings)))
    lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
    lines.append(" & ".join(map(_escaped, table.headings)) + r" \\")
    lines += [r"\midrule", *(" & ".join(_escaped(cell_text(cell)) for cell in row) + r" \\" for row in table.rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _escaped(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in printable(text))


def _markdown(table: Table) -> str:
    rows = [[text.replace("|", r"\|") for text in map(cell_text, row)] for row in (table.headings, *table.rows)]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(table.headings))]
    right = [place in table.numbers for place in range(len(widths))]
    lines = [
        "| "
        + " | ".join(f"{cell:>{w}}" if r else f"{cell:<{w}}" for cell, w, r in zip(row, widths, right, strict=True))
        + " |"
        for row in rows
    ]
    rule = "|".join("-" * (w + 1) + ":" if r else ":" + "-" * (w + 1) for w, r in zip(widths, right, strict=True))
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


WRITERS: Mapping[str, Callable[[Table], str]] = {
    "text": _columns,
    "csv": _csv,
    "latex": _latex,
    "markdown": _markdown,
}


def plain(value: Any) -> Any:
    """Return a fact as JSON can hold it: the first twenty of a long list, None for a number that is not finite."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float)):
        return value
    if is_dataclass(value) and not isinstance(value, (type, Sequence)):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, (Sequence, set, frozenset)):
        return [plain(held) for held in islice(value, MOST_LISTED)]
    return str(value)


def frame_from(columns: Mapping[str, NDArray[Any]], library: str) -> Any:
    """Return a frame of these columns.

    Args:
        library: "polars", "pandas" or "pyarrow".

    >>> import numpy as np
    >>> frame_from({"strike": np.array([90.0, 110.0])}, "polars").shape
    (2, 1)
    """
    import narwhals as nw

    if library not in get_args(Library):
        raise UsageError(
            f"library {library!r}: not a library of frames. Use one of {', '.join(get_args(Library))}.", library=library
        )
    plain = {name: x.astype(str).tolist() if x.dtype.kind in "OUTM" else x for name, x in columns.items()}
    try:
        return nw.to_native(nw.from_dict(plain, backend=library))  # type: ignore[arg-type]
    except (ImportError, ModuleNotFoundError) as error:
        raise UsageError(f"library {library!r}: not installed. Install it, or use polars.", library=library) from error
