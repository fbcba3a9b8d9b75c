"""The rows of a large file in parts, each of whole moments: a rule sees in a part all that it would see in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from strikeout.quotes.checks.frames import KNOWN
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.forwards import FORWARD_FROM, NEEDED, derived, is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rowwise import book_of
from strikeout.quotes.scratch import Place
from strikeout.quotes.sifting import LABEL, WORK, Sifted, unpacked
from strikeout.quotes.slices import MOMENT_LABELS


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of a file once more, in parts that hold all rows of a moment; ``gappy`` are labels with empty cells."""

    sifted: Sifted
    places: tuple[list[Place], ...]
    gappy: frozenset[str]

    @staticmethod
    def of(sifted: Sifted, at_once: int) -> Parts:
        """The rows that are left, in parts of so many or, where a moment has more, of so much more."""
        count = max(1, -(-int(np.count_nonzero(sifted.findings.kept)) // at_once))
        places: tuple[list[Place], ...] = tuple([] for _ in range(count))
        gappy: set[str] = set()
        for rows in sifted.blocks():
            labels = unpacked(rows, LABEL)
            gappy |= {one.name for one in labels.get_columns() if one.dtype != pl.String and one.null_count()}
            for part, some in divided(_looked_at(rows), moments(labels), count) if count > 1 else ():
                places[part].append(sifted.scratch.put(some))
        return Parts(sifted, places if count > 1 else (list(sifted.places),), frozenset(gappy))

    def quotes(self, rows: pl.DataFrame) -> Quotes:
        """Rows put away as quotes again, with stand-ins for forwards that are derived."""
        return book_of(rows["id"], unpacked(rows, WORK), unpacked(rows, LABEL), gappy=self.gappy)

    def rows(self, part: int) -> pl.DataFrame:
        """The rows of a part that no rule has taken out so far, in the order of the file."""
        rows = self.sifted.scratch.all(self.places[part])
        return rows.filter(pl.Series(self.sifted.findings.kept[rows["at"].to_numpy()])) if rows.width else rows

    def sample(self, count: int) -> Quotes:
        """The first quotes that are left, with the forwards of their slices; stand-ins where those are elsewhere."""
        heads = [rows.head(count) for rows in self.sifted.blocks()]
        rows = pl.concat(heads).head(count)
        quotes = self.quotes(rows)
        if not is_derived(quotes).any():
            return quotes
        found = []
        for part in range(len(self.places)):
            here = self.rows(part)
            wanted = np.isin(here["at"].to_numpy(), rows["at"].to_numpy()) if here.width else np.empty(0, bool)
            if wanted.any():
                made = derived(self.quotes(here))[0][wanted]
                c, source = made.contracts, made.labels[FORWARD_FROM]
                found += list(zip(here["at"].filter(wanted), c.forward, c.discount, source, strict=True))
        _, forward, discount, sources = zip(*sorted(found), strict=True)
        c, labels = quotes.contracts, {**quotes.labels, FORWARD_FROM: np.array(sources, object)}
        contracts = Contracts(forward=forward, discount=discount, strike=c.strike, expiry=c.expiry, is_call=c.is_call)
        own = {name: getattr(quotes, name) for name in ("ids", "observed", "weight", "spread")}
        return Quotes._trusted(contracts=contracts, labels=labels, **own)


def is_derived_by(rows: pl.DataFrame) -> bool:
    """Whether the forward of any of these rows rests on its slice."""
    name = LABEL + FORWARD_FROM
    return name in rows.columns and not rows[name].is_in(["given", ""]).all()


def _looked_at(rows: pl.DataFrame) -> pl.DataFrame:
    """Without labels that no rule and no forward looks at, and without ids, unless forwards rest on other quotes."""
    wanted = {LABEL + name for name in (*KNOWN, *NEEDED, FORWARD_FROM)}
    wanted |= {"id"} if LABEL + FORWARD_FROM in rows.columns else set()
    return rows.select(
        name for name in rows.columns if name in wanted or name in ("at", "row") or name.startswith(WORK)
    )


def moments(labels: pl.DataFrame) -> pl.Series:
    """A number that rows of one moment share."""
    key = pl.Series([0], dtype=pl.UInt64).new_from_index(0, labels.height)
    for name in (name for name in MOMENT_LABELS if name in labels.columns):
        key = (key + labels[name].cast(pl.String).fill_null("").hash()).hash()
    return key


def divided(rows: pl.DataFrame, key: pl.Series, count: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows by the rest of their key, those of one rest in the order they come."""
    if count == 1:
        if rows.height:
            yield 0, rows
        return
    number = (key % count).to_numpy()
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(count + 1))
    gathered = rows[order]
    for part in range(count):
        if edges[part + 1] > edges[part]:
            yield part, gathered[int(edges[part]) : int(edges[part + 1])]
