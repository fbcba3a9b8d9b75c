"""Search a book again for what its erasures should have removed, and record every search in the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from strikeout.book.records import Session, Snapshot
from strikeout.book.reimport_guard import returning
from strikeout.errors import RefusedError
from strikeout.quotes.forwards import underived
from strikeout.quotes.quotes import Quotes
from strikeout.store.residue import Needles, Progress, needles_of
from strikeout.store.residue_search import Search, Trace, search_book

ATTEMPTS = 5
ENTRY = "residue"  # what an entry of the ledger is called that records a search


def record_search(session: Session, found: Search) -> Search:
    """Record the result of a search in the ledger and return it with the number of the entry.

    Raises:
        BusyError: another process is writing.
        RefusedError: other processes changed the book at every attempt.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with session.writing(session.snapshot().position) as book:
                return replace(found, entry=book.enter(ENTRY, None, counts=found.to_counts()))
        except RefusedError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("the loop returns or raises")


def search_again(records: Snapshot, erased: Quotes | None, *, progress: Progress | None = None) -> Search:
    """Search a book without a copy of what was erased, or with one; the result is recorded in the ledger.

    Raises:
        BusyError: another process reads or writes the book.
    """
    there, commitments = records.store.quotes(struck=None), records.erased
    needles, names = Needles({}), []
    if erased is not None:
        erased = underived(erased)
        gone = erased[returning(erased, commitments, records.commit)]
        needles, names = needles_of(gone, retained=there), gone.ids.tolist()
    left = [Path(name) for name in records.file_digest.are_there(records.files.condemned)]
    found = search_book(records.store, needles, erased=names, files=left, progress=progress)
    back = there.ids[returning(there, commitments, records.commit)].tolist()
    traces = [Trace("id", "quote", name, "the quotes") for name in back if name not in names]
    traces += [Trace("file", "copy", str(path), "its folder: an erasure was to delete it") for path in left]
    return record_search(records.session, replace(found, traces=(*found.traces, *traces)))
