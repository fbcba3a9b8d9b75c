"""How the forward of every slice was found, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.text import as_lines, printable

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Forwards:
    """How the forward of every slice was found, one row per slice, in the order of the quotes.

    ``source`` is "given", "parity", "spot", or "none" if there is none. ``rate`` is the rate of the discount used,
    ``implied_rate`` the rate that the prices imply, known discount or not; ``r_squared`` is of the line through
    ``pairs`` calls and puts. ``converted`` American quotes of the slice are read as European; out of the money their
    median ``correction`` is this many volatility points less.
    """

    names: tuple[str, ...]
    source: tuple[str, ...]
    years: Floats
    forward: Floats
    discount: Floats
    rate: Floats
    quotes: NDArray[np.intp]
    pairs: NDArray[np.intp]
    r_squared: Floats
    implied_rate: Floats
    american: NDArray[np.bool_]
    converted: NDArray[np.intp]
    correction: Floats

    @staticmethod
    def none() -> Forwards:
        """Return a table of no slices."""
        number, count = np.empty(0), np.empty(0, np.intp)
        some = np.empty(0, bool)
        return Forwards((), (), number, number, number, number, count, count, number, number, some, count, number)

    @staticmethod
    def joined(parts: Sequence[Forwards], order: NDArray[np.intp]) -> Forwards:
        """Return the slices of several tables as one, in this order."""
        columns: dict[str, Any] = {}
        for column in fields(Forwards):
            values = [getattr(part, column.name) for part in parts]
            if column.name in ("names", "source"):
                texts = [text for value in values for text in value]
                columns[column.name] = tuple(texts[place] for place in order)
            else:
                columns[column.name] = np.concatenate(values)[order]
        return Forwards(**columns)

    def __len__(self) -> int:
        return len(self.names)

    def to_frame(self) -> pl.DataFrame:
        """Return a Polars frame; what does not exist is null."""
        import polars as pl

        columns: dict[str, Any] = {"slice": list(self.names), "source": list(self.source)}
        numbers = ("years", "forward", "discount", "rate", "quotes", "pairs", "r_squared", "implied_rate", "american")
        columns |= {name: getattr(self, name) for name in numbers}
        if self.converted.any():
            columns |= {"converted": self.converted, "correction": self.correction}
        return pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))

    def counts(self) -> dict[str, int]:
        """Return how many slices have each source."""
        return {word: self.source.count(word) for word in ("given", "parity", "spot", "none") if word in self.source}

    def headline(self) -> str:
        """Return how many slices have their forward from where, in a line."""
        told = {
            "given": "given",
            "parity": "by put-call parity",
            "spot": "from spot, rate and dividend",
            "none": "none",
        }
        return ", ".join(f"{count:,} {told[word]}" for word, count in self.counts().items())

    def conversion_told(self) -> str:
        """Return how many American prices are read as European ones, and by how much this changes volatilities."""
        count = int(self.converted.sum())
        known = self.correction[np.isfinite(self.correction)]
        range_ = f"{known.min():.2f} to {known.max():.2f}" if known.size else ""
        far = f"; the median of a slice falls by {range_} volatility points out of the money" if known.size else ""
        return f"{count:,} American prices are read as European ones{far}"

    def summary(self) -> str:
        """Return one line per slice."""
        head = ("slice", "from", "forward", "discount", "rate", "pairs", "R^2", "implied")
        rows = [head, *(self._row(n) for n in range(len(self)))]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        return as_lines(
            "  ".join(f"{text:{'<' if i < 2 else '>'}{widths[i]}}" for i, text in enumerate(row)) for row in rows
        )

    def _row(self, n: int) -> tuple[str, ...]:
        return (
            printable(self.names[n]) + (" (American)" if self.american[n] else ""),
            self.source[n],
            _number(self.forward[n], ".8g"),
            _number(self.discount[n], ".6f"),
            _number(self.rate[n], ".2%"),
            f"{self.pairs[n]:,}" if self.pairs[n] else "-",
            _number(self.r_squared[n], ".6f"),
            _number(self.implied_rate[n], ".2%"),
        )


def _number(value: float, form: str) -> str:
    return format(float(value), form) if np.isfinite(value) else "-"
