"""Import quotes: all at once, or a file too large to hold chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from os import PathLike

from strikeout.book.chunked_import import Door, NothingNew
from strikeout.book.forward_dependencies import refuse_without_forward
from strikeout.book.import_filter import Arrival, refuse_clashes, sort_out
from strikeout.book.keyed_ids import is_encrypted, veil
from strikeout.book.records import Snapshot, Why, known_in
from strikeout.book.reimport_guard import returning
from strikeout.book.results import Imported
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.store.ledger import SetCommitment


def import_quotes(
    snapshot: Snapshot, quotes: Quotes, *, quarantine: str | PathLike[str] | None = None, reason: Why = None
) -> Imported:
    """Add the new quotes among these; see ``Book.import_quotes``.

    Raises:
        RefusedError: an id is in the book with other values, a slice would be left without a forward, or the book
            moved meanwhile. Nothing is imported.
    """
    arrival, entry = arrival_of(snapshot, quotes), None
    if len(arrival.new) or quarantine is not None:
        if is_derived(arrival.new).any():
            refuse_without_forward(snapshot.quotes, arrival.new)
        with snapshot.session.writing(snapshot.position) as book:
            book.store.add(arrival.new)
            book.know_of(quarantine)
            entry = book.enter("import", reason, touched=arrival.new.ids.tolist(), counts=counted(arrival))
    return Imported(
        entry=entry,
        imported=len(arrival.new),
        repeated=arrival.repeated,
        set_aside=arrival.set_aside,
        erased=tuple(arrival.erased.tolist()),
        held=snapshot.store.counts().retained,
    )


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
        RefusedError: as ``import_quotes``. Nothing is imported.
    """
    touched = SetCommitment(snapshot.keyring)
    is_erased = partial(returning, erased=snapshot.erased, commit=snapshot.commit)
    folder = next((file.parent for file in snapshot.store.files()), None)  # none if a book is in memory
    arriving = (_as_kept(snapshot, chunk) for chunk in chunks)
    filtered = Door(is_erased, folder=folder)
    with filtered as door, suppress(NothingNew), snapshot.session.writing(snapshot.position) as book:
        before = book.store.counts().retained
        door.imported = book.store.add_all(door.let_in(book.store, arriving), told=touched.add)
        refuse_clashes(door.clashes, door.count)
        if not door.imported and quarantine is None:
            raise NothingNew  # ends the transaction: there is nothing to enter
        door.refuse_without_forward(book.store, held=before)
        book.know_of(quarantine)
        counts = _nonzero(door.imported, door.repeated, len(door.erased))
        door.entry = book.enter("import", reason, counts=counts, commitment=str(touched))
    return Imported(
        entry=door.entry, imported=door.imported, repeated=door.repeated, set_aside=door.set_aside,
        erased=tuple(door.erased), held=snapshot.store.counts().retained,
    )  # fmt: skip


def arrival_of(snapshot: Snapshot, quotes: Quotes) -> Arrival:
    """Return which of these quotes are new, which the book has, and which it erased.

    Raises:
        RefusedError: an id is in the book with other values.
    """
    quotes = _as_kept(snapshot, quotes)
    held, aside = known_in(snapshot.store, quotes, struck=snapshot.struck)
    return sort_out(quotes, held, aside, is_erased=lambda rest: returning(rest, snapshot.erased, snapshot.commit))


def _as_kept(snapshot: Snapshot, quotes: Quotes) -> Quotes:
    """Return quotes as the book keeps them: in an encrypted one no id is made of the contract."""
    return veil(quotes, snapshot.commit) if is_encrypted(snapshot.store) else quotes


def counted(arrival: Arrival) -> dict[str, int]:
    """What arrived, as the ledger counts it."""
    return _nonzero(len(arrival.new), arrival.repeated, len(arrival.erased))


def _nonzero(imported: int, repeated: int, refused: int) -> dict[str, int]:
    counts = {"imported": imported, "repeated": repeated, "refused": refused}
    return {name: count for name, count in counts.items() if count or name == "imported"}
