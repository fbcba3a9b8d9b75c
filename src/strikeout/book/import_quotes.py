"""Quotes come to a book: all at once, or a file of them too large to hold, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from os import PathLike

from strikeout.book.approvals import ApprovingDesk
from strikeout.book.chunked_import import Door, NothingNew
from strikeout.book.forward_dependencies import refuse_without_forward
from strikeout.book.import_filter import Arrival, refuse_clashes, sort_out
from strikeout.book.keyed_ids import is_encrypted, veil
from strikeout.book.records import Position, Why
from strikeout.book.reimport_guard import returning
from strikeout.book.results import Imported
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.store.ledger import SetCommitment


class ImportingDesk(ApprovingDesk):
    """A book to which quotes come."""

    def import_quotes(
        self, quotes: Quotes, *, quarantine: str | PathLike[str] | None = None, reason: Why = None
    ) -> Imported:
        """New quotes go into the book; those it has change nothing; those it erased are refused and named.

        The calibration stays as it is until ``calibrate``.

        Args:
            quarantine: the file that holds the rows which did not become quotes. A row of it may be corrected and come
                back, so the book remembers the file, and erasing takes it away.

        Raises:
            RefusedError: an id is in the book with other values, a slice would be left without a forward, or the book
                moved meanwhile. Nothing is imported.
        """
        seen, arrival = self._arrival(quotes)
        entry = None
        if len(arrival.new) or quarantine is not None:
            if is_derived(arrival.new).any():
                refuse_without_forward(self.quotes(), arrival.new)
            with self._records.writing(seen) as book:
                book.store.add(arrival.new)
                book.know_of(quarantine)
                entry = book.enter("import", reason, touched=arrival.new.ids.tolist(), counts=counted(arrival))
        return self._imported(arrival, entry)

    def import_pieces(
        self, pieces: Iterable[Quotes], *, quarantine: str | PathLike[str] | None = None, reason: Why = None
    ) -> Imported:
        """As ``import_quotes`` of all of them, with one piece in memory at a time; all of it or nothing.

        The book is being written from the first piece to the last, so others cannot write to it meanwhile.

        Raises:
            UsageError: an id is in two pieces.
            RefusedError: an id is in the book with other values, a slice would be left without a forward, or the book
                moved meanwhile. Nothing is imported.
        """
        records = self._records
        seen, erased = records.position(), records.erased()
        touched = SetCommitment(records.keyring)
        is_erased = partial(returning, erased=erased, commit=records.commit)
        folder = next((file.parent for file in records.store.files()), None)  # none where a book is in memory
        with Door(is_erased, folder=folder) as door, suppress(NothingNew), records.writing(seen) as book:
            before = book.store.counts().retained
            door.imported = book.store.add_all(door.let_in(book.store, map(self._veiled, pieces)), told=touched.add)
            refuse_clashes(door.clashes, door.count)
            if not door.imported and quarantine is None:
                raise NothingNew  # gives the transaction up: there is nothing to enter
            door.refuse_without_forward(book.store, held=before)
            book.know_of(quarantine)
            counts = _nonzero(door.imported, door.repeated, len(door.erased))
            door.entry = book.enter("import", reason, counts=counts, commitment=str(touched))
        return Imported(
            entry=door.entry, imported=door.imported, repeated=door.repeated, set_aside=door.set_aside,
            erased=tuple(door.erased), held=records.store.counts().retained,
        )  # fmt: skip

    def _arrival(self, quotes: Quotes) -> tuple[Position, Arrival]:
        records = self._records
        seen, erased = records.position(), records.erased()
        quotes = self._veiled(quotes)
        again = records.known(quotes)
        arrival = sort_out(quotes, again[0], again[1], is_erased=lambda rest: returning(rest, erased, records.commit))
        return seen, arrival

    def _veiled(self, quotes: Quotes) -> Quotes:
        """Quotes as the book keeps them: in an encrypted one no id is made of the contract."""
        return veil(quotes, self._records.commit) if is_encrypted(self._records.store) else quotes

    def _imported(self, arrival: Arrival, entry: int | None) -> Imported:
        return Imported(
            entry=entry,
            imported=len(arrival.new),
            repeated=arrival.repeated,
            set_aside=arrival.set_aside,
            erased=tuple(arrival.erased.tolist()),
            held=self._records.store.counts().retained,
        )


def counted(arrival: Arrival) -> dict[str, int]:
    """What arrived, as the ledger counts it."""
    return _nonzero(len(arrival.new), arrival.repeated, len(arrival.erased))


def _nonzero(imported: int, repeated: int, refused: int) -> dict[str, int]:
    counts = {"imported": imported, "repeated": repeated, "refused": refused}
    return {name: count for name, count in counts.items() if count or name == "imported"}
