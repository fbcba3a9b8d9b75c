"""Evidence on removals: who asked and approved, when, why, what, the proof of inclusion and what can be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strikeout.book.approvals import Request
from strikeout.book.results import Audit
from strikeout.errors import UsageError
from strikeout.store.entry import Entry

if TYPE_CHECKING:
    from strikeout.book import Book

REMOVALS = ("erase", "forget")


def evidence_facts(book: Book, audit: Audit, *, request: int | None = None) -> dict[str, Any]:
    """Return everything the page shows, as plain values.

    Args:
        audit: the verification of the book, or of a copy with its public key alone.

    Raises:
        UsageError: there is no such request.
        RefusedError: an entry of the ledger cannot be read.
    """
    status, entries, asked = book.status(), book.snapshot().ledger.entries, book.requests()
    if request is not None and request not in {one.number for one in asked}:
        known = ", ".join(str(one.number) for one in asked) or "none"
        raise UsageError(f"--request {request}: the book has no such request. Its requests: {known}.", request=request)
    chosen = [one for one in asked if request is None or one.number == request]
    done = {one.done: one for one in chosen if one.done is not None}
    removals = [entry for entry in entries if entry.what in REMOVALS and (request is None or entry.number in done)]
    approved = book.approvals_of_removals()
    return {
        "book": status.book,
        "name": book.path.name,
        "head": f"{status.entries}:{status.root}",
        "key": status.key,
        "quotes": {"held": status.held, "set_aside": status.set_aside, "erased": status.erased},
        "removals": [_removal(entry, entries, approved, done.get(entry.number), book) for entry in removals],
        "open": [_request(one) for one in chosen if one.done is None],
        "verification": audit.to_dict(),
    }


def _removal(entry: Entry, entries: Any, approved: Any, asked: Request | None, book: Book) -> dict[str, Any]:
    search = next((one for one in entries if one.number > entry.number and one.what == "residue"), None)
    by = {one.number: one for one in entries}
    approval = by.get(approved.get(entry.number) or 0)
    ledger = book.snapshot().ledger
    return {
        "entry": entry.number,
        "what": entry.what,
        "at": entry.at,
        "who": entry.who,
        "why": None if entry.why is None else entry.why.to_plain(),
        "counts": dict(entry.counts),
        "commitment": entry.touched,
        "needed_approval": entry.number in approved,
        "approved_by": None if approval is None else approval.who,
        "approved_at": None if approval is None else approval.at,
        "request": None if asked is None else _request(asked),
        "search": None if search is None or entry.what != "erase" else {"entry": search.number, **search.counts},
        "hash": entry.hash().hex(),
        "inclusion": [part.hex() for part in ledger.inclusion(entry.number)],
    }


def _request(asked: Request) -> dict[str, Any]:
    """Return a request without its wording: a condition or an id may name a quote, and the page is given away."""
    return {name: value for name, value in asked.to_dict().items() if name not in ("where", "ids")}
