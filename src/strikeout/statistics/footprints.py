"""Footprints: one row of integers per quote at a reference, by id."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels import exact
from strikeout.kernels.arrays import Integers, Mask
from strikeout.quotes.names import NameIndex, Names
from strikeout.statistics.normal_equations import NormalEquations, Schema
from strikeout.text import many


@dataclass(frozen=True, eq=False, repr=False)
class Footprints:
    """One row of integers per quote: ``rint(sqrt(w) (J_1 .. J_p, r) * 2^exponents)`` at the schema's reference.

    In the order of the quotes; read-only. They are data: a quote can be rebuilt from its footprint.

    A row of zeros (a quote of weight zero) leaves nothing behind, and is not counted either.

    Raises:
        UsageError: the rows do not match the ids or the schema, or an id is there twice.
    """

    schema: Schema
    ids: Names
    rows: Integers

    def __post_init__(self) -> None:
        if self.rows.shape != (len(self.ids), self.schema.columns) or self.rows.dtype != np.int64:
            raise UsageError(
                f"Footprints: {len(self.ids)} quotes need int64 rows of {self.schema.columns} columns; "
                f"got {self.rows.dtype} of shape {self.rows.shape}.",
                count=len(self.ids),
            )
        object.__setattr__(self, "rows", np.ascontiguousarray(self.rows))
        self.rows.flags.writeable = False
        self._index  # noqa: B018  (built now so that a repeated id is refused here, not later)

    @classmethod
    def _trusted(cls, schema: Schema, ids: Names, rows: Integers) -> Footprints:
        """Footprints of quotes whose ids are known to be unique: they are indexed when one is first looked up."""
        rows.flags.writeable = False
        made = object.__new__(cls)
        vars(made).update(schema=schema, ids=ids, rows=rows)
        return made

    def under(self, schema: Schema) -> Footprints:
        """Return these footprints with an equal schema: states of the same object add up without a comparison."""
        return Footprints._trusted(schema, self.ids, self.rows)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex.of(self.ids)

    @cached_property
    def _counts(self) -> Mask | None:
        """Which rows are counted; None if all are."""
        if self.rows[:, -1].all():  # no residual is zero, which is the usual case and quick to see
            return None
        counts: Mask = np.logical_or.reduce(self.rows != 0, axis=1)
        return None if counts.all() else counts

    def places(self, ids: ArrayLike) -> Integers:
        """Return the row numbers of these ids, as ``NormalEquations.less`` takes them.

        Raises:
            UnknownIdError: an id that is not there, or one given twice.
        """
        found = self._index.look_up(ids)
        return np.array(self._index.find(ids) if found is None else found, np.int64)

    def counted(self, places: Integers | None = None) -> int:
        """Return how many of these rows (all if not given) leave something behind."""
        counts = self._counts
        if counts is None:
            return len(self.ids) if places is None else len(places)
        return int(np.count_nonzero(counts if places is None else counts[places]))

    def only(self, ids: ArrayLike) -> Footprints:
        """Return the footprints of these quotes, in this order.

        Raises:
            UnknownIdError: an id that is not there, or one given twice.
        """
        return self._picked(np.sort(self.places(ids)))

    def without(self, ids: ArrayLike) -> Footprints:
        """Return the footprints of all other quotes, in this order.

        Raises:
            UnknownIdError: an id that is not there, or one given twice.
        """
        kept = np.ones(len(self), bool)
        kept[self.places(ids)] = False
        return self._picked(np.flatnonzero(kept))

    def _picked(self, rows: NDArray[Any]) -> Footprints:
        return Footprints._trusted(self.schema, self.ids[rows], self.rows[rows])

    def total(self, places: Integers | None = None) -> NormalEquations:
        """Return what these quotes (or those at these rows) leave behind together."""
        return self._whole if places is None else self._total(places)

    @cached_property
    def _whole(self) -> NormalEquations:
        return self._total(None)

    def _total(self, places: Integers | None) -> NormalEquations:
        words = exact.change(exact.zero(self.schema.columns), self.rows, pick=places)
        return NormalEquations(self.schema, words, self.counted(places))

    def digest(self) -> str:
        """Return 64 hexadecimal digits that name these footprints, whatever their order."""
        order = np.argsort(self.ids, kind="stable")
        body = sha256(f"strikeout footprints 1\n{self.schema.digest()}\n{len(self)}\n".encode())
        for name in self.ids[order].tolist():
            body.update(f"{len(name)} {name}\n".encode("utf-8", "surrogatepass"))
        body.update(self.rows[order].astype("<i8").tobytes())
        return body.hexdigest()

    def __repr__(self) -> str:
        return f"<Footprints of {many(len(self), 'quote')}, {self.schema.model}>"
