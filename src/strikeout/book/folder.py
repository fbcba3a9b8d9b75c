"""The same removal in every book of a folder: one plan per book, one approval by its ticket, one page of evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from strikeout.book.approvals import Request, evidence_facts
from strikeout.book.book import Book
from strikeout.errors import NothingMeantError, RefusedError, StrikeoutError, UsageError
from strikeout.store.entry import Reason
from strikeout.tables import Table, number
from strikeout.text import many

ENDING = ".book"
Removal = Literal["forget", "erase"]
Progress = Callable[[str, int, int], None]


class Outcome(Enum):
    """What became of one book; the value is for people."""

    NO_MATCH = "no quote matches"
    PLANNED = "planned"
    DONE = "done"
    REQUESTED = "approval requested"
    APPROVED = "approved"
    REFUSED = "refused"


@dataclass(frozen=True)
class BookOutcome:
    """One book of a folder: how many quotes match, what became of them, and the largest move in standard errors."""

    name: str
    outcome: Outcome
    count: int = 0
    largest_move: float | None = None
    entry: int | None = None
    code: str = ""
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        facts = {"book": self.name, "outcome": self.outcome.name.lower(), "count": self.count}
        facts |= {"largest_move": self.largest_move, "entry": self.entry}
        return facts | ({"error": {"code": self.code, "message": self.message}} if self.code else {})


@dataclass(frozen=True)
class FolderOutcome:
    """What became of every book of a folder."""

    what: str
    books: tuple[BookOutcome, ...]

    @property
    def is_whole(self) -> bool:
        """Whether no book was refused."""
        return all(book.outcome is not Outcome.REFUSED for book in self.books)

    @property
    def count(self) -> int:
        """The matching quotes of all books."""
        return sum(book.count for book in self.books)

    def to_table(self) -> Table:
        """Return one row per book."""
        rows = [
            (
                book.name,
                number(book.count, ",d"),
                number(book.largest_move, "+.3g"),
                number(book.entry, "d"),
                book.message or book.outcome.value,
            )
            for book in self.books
        ]
        return Table(
            ("book", "quotes", "largest move (SE after)", "entry", "outcome"), rows, numbers=(1, 2, 3), whole=(0,)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"what": self.what, "quotes": self.count, "books": [book.to_dict() for book in self.books]}

    def summary(self) -> str:
        """Return the counts as plain text."""
        by = {outcome: sum(book.outcome is outcome for book in self.books) for outcome in Outcome}
        listed = ", ".join(f"{outcome.value} {count:,}" for outcome, count in by.items() if count)
        return f"{many(self.count, 'matching quote')} in {many(len(self.books), 'book')}: {listed}."


def books_of(folder: Path) -> list[Path]:
    """Return the books of a folder, sorted by name; symbolic links are left out."""
    found = sorted(path for path in folder.glob(f"*{ENDING}") if path.is_file() and not path.is_symlink())
    if not found:
        raise UsageError(f"{folder}: there are no books ({ENDING}) in this folder.", path=str(folder))
    return found


def remove_in_folder(
    folder: Path,
    what: Removal,
    *,
    where: str,
    reason: Reason | None = None,
    who: str | None = None,
    is_plan: bool = True,
    progress: Progress | None = None,
) -> FolderOutcome:
    """Strike matching quotes out of every book of a folder, or erase them; or show what it would do.

    Each book is changed in a transaction of its own. In a book that needs a second person's approval and has none for
    these quotes a request is made instead; after the approval the same call carries it out. A book that refuses leaves
    the others as they are.

    Args:
        what: "forget" or "erase".
        where: a condition in SQL.
        reason: for every ledger; its ticket ties the requests of the books together.
        is_plan: change nothing.
    """
    paths, found = books_of(folder), []
    for place, path in enumerate(paths):
        if progress is not None:
            progress(path.stem, place, len(paths))
        found.append(_one(path, what, where=where, reason=reason, who=who, is_plan=is_plan))
    if all(book.code == UsageError.code for book in found):
        raise UsageError(found[0].message, where=where)
    if all(book.outcome is Outcome.NO_MATCH for book in found):
        raise NothingMeantError(f"No quote of the {len(paths)} books matches the condition.", where=where)
    return FolderOutcome(what, tuple(found))


def _one(
    path: Path, what: Removal, *, where: str, reason: Reason | None, who: str | None, is_plan: bool
) -> BookOutcome:
    try:
        with Book.open(path, who=who) as book:
            count, _ = book.matching(where, verb=what)
            if not count:
                return BookOutcome(path.stem, Outcome.NO_MATCH)
            if is_plan:
                return _planned(book, path.stem, what, where, reason, count)
            if _needs_request(book, what, where, count):
                asked = book.request(what, where=where, reason=reason)
                return BookOutcome(path.stem, Outcome.REQUESTED, count, entry=asked.number)
            if what == "erase":
                erased = book.erase(where=where, reason=reason)
                return BookOutcome(path.stem, Outcome.DONE, count, entry=erased.entry)
            change = book.forget(where=where, reason=reason)
            return BookOutcome(path.stem, Outcome.DONE, count, _largest(change.moved), change.entry)
    except NothingMeantError:
        return BookOutcome(path.stem, Outcome.NO_MATCH)
    except StrikeoutError as error:  # also one about the condition: books before this one may be changed already
        return BookOutcome(path.stem, Outcome.REFUSED, code=error.code, message=error.without_folder)


def _planned(book: Book, name: str, what: Removal, where: str, reason: Reason | None, count: int) -> BookOutcome:
    if what == "erase":
        book.plan_erase(where=where, reason=reason)
        return BookOutcome(name, Outcome.PLANNED, count)
    plan = book.plan_forget(where=where, reason=reason)
    return BookOutcome(name, Outcome.PLANNED, plan.count, _largest(plan.moved))


def _needs_request(book: Book, what: Removal, where: str, count: int) -> bool:
    """Return whether the removal needs an approval that it does not have yet.

    An approval covers the quotes that matched at the time of its request; if others have been imported since, a new
    one is needed.
    """
    if book.approval == "one-person":
        return False
    mine = [one for one in book.requests() if (one.what, one.where, one.count) == (what, where, count)]
    return not any(one.state == "approved" for one in mine)


def _largest(moved: dict[str, float | None]) -> float | None:
    known = [move for move in moved.values() if move is not None]
    return max(known, key=abs) if known else None


def approve_in_folder(
    folder: Path, ticket: str, *, reason: Reason | None = None, who: str | None = None
) -> FolderOutcome:
    """Approve the open requests with one ticket in every book of a folder, if they all ask for the same removal.

    Anybody can write any ticket on a request. So that none is approved unseen among the others, requests for different
    removals are not approved together.
    """
    paths, found = books_of(folder), []
    asked: list[tuple[Path, Request]] = []
    for path in paths:
        try:
            with Book.open(path, who=who) as book:
                mine = [one for one in book.requests() if one.state == "open" and one.why and one.why.ticket == ticket]
                asked += [(path, one) for one in mine]
        except StrikeoutError as error:
            found.append(_with_error(BookOutcome(path.stem, Outcome.REFUSED), error))
    _refuse_different(asked, ticket)
    for path, one in asked:
        try:
            with Book.open(path, who=who) as book:
                done = book.approve(one.number, reason=reason)
            found.append(BookOutcome(path.stem, Outcome.APPROVED, one.count, entry=done.number))
        except StrikeoutError as error:
            refused = BookOutcome(path.stem, Outcome.REFUSED, one.count, entry=one.number)
            found.append(_with_error(refused, error))
    if not asked:
        raise NothingMeantError(f"No book has an open request with the ticket {ticket!r}.", ticket=ticket)
    return FolderOutcome("approve", tuple(sorted(found, key=lambda book: book.name)))


def _refuse_different(asked: Sequence[tuple[Path, Request]], ticket: str) -> None:
    kinds: dict[tuple[str, str, str], str] = {}
    for path, one in asked:
        wanted = one.where or f"{many(one.count, 'quote')} by id"
        place = f"{one.what} of {wanted} ({path.stem}, request {one.number})"
        # Ids differ from book to book, so a request by ids is like no other.
        kind = (one.what, one.where or place, "" if one.why is None else one.why.code)
        kinds.setdefault(kind, place)
    if len(kinds) > 1:
        raise RefusedError(
            f"The ticket {ticket!r} is on requests for {len(kinds)} different removals: {'; '.join(kinds.values())}. "
            "Nothing was approved. Decide on each: strikeout approve BOOK NUMBER, or strikeout reject BOOK NUMBER.",
            ticket=ticket,
            kinds=len(kinds),
        )


def _with_error(book: BookOutcome, error: StrikeoutError) -> BookOutcome:
    return BookOutcome(book.name, book.outcome, book.count, None, book.entry, error.code, str(error))


def evidence_of_folder(folder: Path, *, ticket: str | None = None, who: str | None = None) -> list[dict[str, Any]]:
    """Return the facts of a page of evidence for every book with a removal; with this ticket, if one is given."""
    found = []
    for path in books_of(folder):
        with Book.open(path, who=who) as book:
            facts = evidence_facts(book, book.verify())
        removals = [one for one in facts["removals"] if ticket is None or (one["why"] or {}).get("ticket") == ticket]
        # A book that was changed without its key is listed in any case: its removals may be what was changed.
        if removals or facts["verification"]["verdict"] == "refuted":
            found.append({**facts, "removals": removals})
    if not found:
        raise NothingMeantError("No book of the folder has such a removal.", ticket=ticket)
    return found
