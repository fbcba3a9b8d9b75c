"""What is read of a book in the server itself, as plain values; what takes longer is a verb of a worker process.

Every answer is kept until the book changes, and is shared by those who ask: it must not be modified.
"""

from __future__ import annotations

from typing import Any

from strikeout.book import Book
from strikeout.book.results import moved
from strikeout.errors import NoSuchPageError, RefusedError, StrikeoutError, UsageError
from strikeout.tables import Table
from strikeout.tables import number as cell

Facts = dict[str, Any]
RECENT = 6  # entries of the log beside a book
COUNTS = ("held", "set_aside", "quarantined", "erased")  # quotes by state
GLANCE = ("name", *COUNTS, "entries", "head", "current", "approval", "open_requests")


def described(book: Book) -> Facts:
    """Return a book at a glance: its status, its policy and how many requests wait for a decision."""
    status = book.status()
    return {
        "name": book.path.stem,
        **status.to_dict(),
        "sentence": status.sentence,
        "approval": book.approval,
        "open_requests": sum(one.state == "open" for one in book.requests()),
    }


def shown(book: Book) -> Facts:
    """Return what the page of a book shows beside its pictures."""
    status, stages = described(book), book.history().stages
    current = status["calibration"]
    earlier = [stage for stage in stages if current is not None and stage.entry < current["entry"]]
    before = earlier[-1] if earlier else None
    errors = {} if current is None else {name: x or 0.0 for name, x in current["errors"]["standard_errors"].items()}
    return {
        **status,
        "before": None if before is None else {"entry": before.entry, "parameters": before.parameters},
        "move": {}
        if before is None or current is None or before.parameters.keys() != current["parameters"].keys()
        else moved(before.parameters, current["parameters"], errors),
        "recent": [entry.to_dict() for entry in book.log()[-RECENT:]][::-1],
        "forgets": list(book.snapshot().set_aside),
    }


def versions(book: Book) -> Facts:
    """Return parameters, standard errors and fit of every calibration that the book contains."""
    return book.history().to_dict()


def version(book: Book, entry: int) -> Facts:
    """Return everything that the book contains of the calibration of an entry.

    Raises:
        NoSuchPageError: the entry is not a calibration that the book contains.
    """
    made = {version.entry: version for version in book.snapshot().versions}
    if entry not in made:
        raise NoSuchPageError(f"Entry {entry} is not a calibration that the book contains.", entries=list(made))
    return {"entry": entry, **made[entry].to_dict()}


def log(book: Book) -> list[Facts]:
    """Return the entries of a book's ledger, each with the approval that it needed."""
    approved = book.approvals_of_removals()
    return [
        {
            **entry.to_dict(),
            "needed_approval": entry.number in approved,
            "approved_by_entry": approved.get(entry.number),
        }
        for entry in book.log()
    ]


def requests(book: Book) -> list[Facts]:
    """Return every request for a removal, who asked, who decided, and whether it was done."""
    return [one.to_dict() for one in book.requests()]


def certificate(book: Book, entry: int) -> bytes:
    """Return the certificate of an entry: the bytes that ``strikeout verify`` reads.

    Raises:
        NoSuchPageError: the entry has none.
    """
    try:
        return book.certificate(entry).to_bytes()
    except (RefusedError, UsageError) as error:  # no certificate, or no such entry
        raise NoSuchPageError(*error.parts, **error.facts) from error


def timeline(book: Book) -> list[Facts]:
    """Return the ledger, the latest entry first; each with whether it has a certificate, and quotes to bring back."""
    aside = set(book.snapshot().set_aside)

    def is_certified(entry: int) -> bool:
        try:
            certificate(book, entry)
        except StrikeoutError:
            return False
        return True

    return [
        {**one, "has_certificate": is_certified(one["number"]), "is_aside": one["number"] in aside}
        for one in reversed(log(book))
    ]


def table(book: Book, kind: str) -> Table:
    """Return a table of a page in full: history, log or requests."""
    if kind == "history":
        return book.history().to_table()
    if kind == "log":
        entries = [
            (cell(e.number, "d"), e.at, e.who, e.what, "" if e.why is None else str(e.why), e.hash().hex())
            for e in book.log()
        ]
        return Table(("entry", "at", "who", "what", "why", "hash"), entries, numbers=(0,))
    heads = ("request", "at", "who", "what", "state", "decided by", "quotes", "done in entry")
    rows = [
        (cell(one.number, "d"), one.at, one.who, one.what, one.state, one.by, cell(one.count, "d"), cell(one.done, "d"))
        for one in book.requests()
    ]
    return Table(heads, rows, numbers=(0, 6, 7))


def measured(book: Book) -> tuple[Facts, tuple[str, ...]]:
    """Return what metrics count of a book: quotes by state, and since when requests wait for a decision."""
    status = book.status()
    counts = {state: getattr(status, state) for state in COUNTS}
    return counts, tuple(one.at for one in book.requests() if one.state == "open")
