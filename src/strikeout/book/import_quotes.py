"""Import quotes into a book, chunk by chunk in one transaction."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from os import PathLike

from strikeout.book.import_filter import Arrival, ImportFilter, classify, entry_counts, refuse_clashes
from strikeout.book.records import Snapshot, Why
from strikeout.book.results import Imported
from strikeout.quotes.quotes import Quotes
from strikeout.store.ledger import SetCommitment


class _NothingNew(Exception):  # noqa: N818 - not an error: it ends a transaction without an entry
    """No quote of the import is new."""


def import_chunks(
    snapshot: Snapshot,
    chunks: Iterable[Quotes],
    *,
    quarantine: str | PathLike[str] | None = None,
    reason: Why = None,
) -> Imported:
    """Add the new quotes of all chunks with one chunk in memory at a time; see ``Book.import_chunks``.

    Raises:
        UsageError: an id is in two chunks.
        RefusedError: an id is in the book with other values, a slice would be left without a forward, or the book
            was changed meanwhile. Nothing is imported.
    """
    touched = SetCommitment(snapshot.keyring)
    folder = next((file.parent for file in snapshot.store.files()), None)  # None for a book in memory
    imported, entry = 0, None
    arriving = ImportFilter(snapshot.erased, snapshot.commit, folder=folder)
    with arriving, suppress(_NothingNew), snapshot.session.writing(snapshot.position) as book:
        before = book.store.counts().retained
        imported = book.store.add_all(arriving.filter(book.store, chunks), on_added=touched.add)
        refuse_clashes(arriving.clashes, arriving.count)
        if not imported and quarantine is None:
            raise _NothingNew
        arriving.refuse_without_forward(book.store, held=before)
        book.record_file(quarantine)
        counts = entry_counts(imported, arriving.repeated, len(arriving.erased))
        entry = book.enter("import", reason, counts=counts, commitment=str(touched))
    return Imported(
        entry=entry,
        imported=imported,
        repeated=arriving.repeated,
        set_aside=arriving.set_aside,
        erased=tuple(arriving.erased),
        held=snapshot.store.counts().retained,
    )


def arrival_of(snapshot: Snapshot, quotes: Quotes) -> Arrival:
    """Return which of these quotes are new, which the book has, and which it erased.

    Raises:
        UsageError: the quotes are features for a custom model.
        RefusedError: an id is in the book with other values.
    """
    arrival = classify(snapshot.store, quotes, snapshot.struck, snapshot.erased, snapshot.commit)
    refuse_clashes(arrival.clashes, len(quotes))
    return arrival
