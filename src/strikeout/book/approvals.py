"""Two-person approval: one person requests a removal, another approves or rejects it, and only then it is done.

`evidence` lists removals: who asked and approved, when, why, what, the proof of inclusion and what can be checked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from numpy.typing import ArrayLike

from strikeout.assurance.canonical import canonical
from strikeout.book.erasure import ABOUT_DATA, select_quotes
from strikeout.book.records import PERSONS, Snapshot, Why, page_of
from strikeout.book.results import Audit
from strikeout.book.select import as_kept, check_all, held, refuse_nothing
from strikeout.errors import RefusedError, UsageError
from strikeout.store.entry import Entry, Reason, utc
from strikeout.store.ledger import commitment_of
from strikeout.text import Argument

if TYPE_CHECKING:
    from strikeout.book import Book

Approval = Literal["one-person", "two-person"]
Asked = Literal["forget", "erase", "one-person"]
POLICY = "policy"  # what the ledger calls an entry that sets how many persons a removal needs
REQUESTS = {f"request {what}": what for what in ("forget", "erase", "one-person")}  # entry -> what was asked for
DECISIONS = {"approve": "approved", "reject": "rejected", "withdraw": "withdrawn"}
# Entries after which the book holds the same quotes and results: an approval outlives them. After any other entry the
# book is not what the approver saw, and what was approved would give another certificate: the approval has lapsed.
NEUTRAL = frozenset({*REQUESTS, *DECISIONS, "export", "plot", "report", "residue", "rotate key"})
EXPIRES = timedelta(days=30)  # after a request, if it is not done by then
REQUEST_NEEDED = {
    "forget": "forget",
    "roll": "forget",
    "erase": "erase",
    POLICY: "one-person",
}  # by entry


@dataclass(frozen=True)
class Request:
    """A request: the number of its entry, what, by whom and why, and its outcome.

    ``where`` or ``ids`` select the quotes; both are empty once an erasure has removed the wording. ``touched`` is the
    keyed commitment to the set of quotes, which stays: an approval covers this set and no other.
    """

    number: int
    what: str
    who: str
    at: str
    why: Reason | None
    count: int
    touched: str
    where: str
    ids: tuple[str, ...]
    decision: str = ""  # approved, rejected, withdrawn, or empty
    by: str = ""
    done: int | None = None  # the entry in which it was done
    moved: int | None = None  # the entry after the approval that changed the book
    until: str = ""  # when it expires
    is_expired: bool = False

    @property
    def state(self) -> str:
        """Open, approved, rejected, withdrawn, done, lapsed (the book moved after the approval) or expired."""
        if self.done is not None:
            return "done"
        if self.decision in ("rejected", "withdrawn"):
            return self.decision
        if self.moved is not None:
            return "lapsed"
        return "expired" if self.is_expired else self.decision or "open"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "request": self.number,
            "what": self.what,
            "who": self.who,
            "at": self.at,
            "why": None if self.why is None else self.why.to_plain(),
            "count": self.count,
            "where": self.where,
            "ids": list(self.ids),
            "state": self.state,
            "by": self.by,
            "done": self.done,
            "moved": self.moved,
            "until": self.until,
        }


def request(
    snapshot: Snapshot,
    what: str,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    all_quotes: bool = False,
    reason: Why = None,
) -> Request:
    """Request a removal, or that one person be enough; see ``Book.request``."""
    if what not in get_args(Asked):
        raise UsageError(f"request({what!r}): expected one of {', '.join(get_args(Asked))}.", what=what)
    kept = as_kept(snapshot.store, ids, snapshot.commit)
    names = _names(snapshot, what, ids=kept, where=where, all_quotes=all_quotes)
    touched = commitment_of([name.encode() for name in names], snapshot.keyring)
    for other in requests_of(snapshot):
        if (other.what, other.touched) == (what, touched) and other.state in ("open", "approved"):
            raise RefusedError(
                f"Request {other.number} of {other.who} asks for the same and is {other.state}.",
                request=other.number,
                state=other.state,
            )
    with snapshot.session.writing(snapshot.position) as book:
        wording = {"where": where or "", "ids": [] if where is not None else names}
        book.store.put("request", page_of(book.number), canonical(wording))
        number = book.enter(f"request {what}", reason, touched=names, counts={"asked": len(names)})
    return request_at(snapshot.session.snapshot(), number)


def decide(snapshot: Snapshot, verb: str, number: int, reason: Why) -> Request:
    """Approve or reject what another person asked for, or withdraw what one asked for oneself."""
    asked, is_own = request_at(snapshot, number), verb == "withdraw"
    if asked.state not in (("open", "approved") if is_own else ("open",)):
        by = f" by {asked.by}" if asked.by else f" since {asked.until}" if asked.is_expired else ""
        raise RefusedError(f"Request {number} is {asked.state} already{by}.", request=number, state=asked.state)
    if _same(asked.who, snapshot.session.who) != is_own:
        rule = f"only {asked.who} can {verb} it" if is_own else f"it takes another person to {verb} it"
        raise RefusedError(f"Request {number} is {asked.who}'s own: {rule}.", request=number, who=asked.who)
    with snapshot.session.writing(snapshot.position) as book:
        book.enter(verb, reason, counts={"of": number})
    return request_at(snapshot.session.snapshot(), number)


def request_at(snapshot: Snapshot, number: int) -> Request:
    """Return the request of this entry."""
    known = requests_of(snapshot)
    found = next((request for request in known if request.number == number), None)
    if found is None:
        open_ones = [str(request.number) for request in known if request.state == "open"]
        which = f"Open requests: {', '.join(open_ones)}." if open_ones else "None is open."
        raise RefusedError(f"Entry {number} of the ledger is not a request. {which}", request=number)
    return found


def requests_of(records: Snapshot) -> tuple[Request, ...]:
    """Return every request in a book's ledger, with its outcome."""
    entries = records.ledger.entries
    return tuple(_found(records, entry, entries[entry.number :]) for entry in entries if entry.what in REQUESTS)


def counts_of(approval: Approval) -> dict[str, int]:
    """Return the counts by which an entry sets a policy."""
    if approval not in get_args(Approval):
        raise UsageError(Argument("approval", approval), f": use {' or '.join(get_args(Approval))}.")
    return {PERSONS: 2 if approval == "two-person" else 1}


def set_approval(snapshot: Snapshot, approval: Approval, reason: Why) -> int:
    """Enter a policy; see ``Book.set_approval``."""
    counts = counts_of(approval)
    if snapshot.is_two_person == (counts[PERSONS] == 2):
        raise RefusedError(f"The approval of this book is {approval} already.", approval=approval)
    if counts[PERSONS] == 1:
        require_approval(snapshot, POLICY, [])
    with snapshot.session.writing(snapshot.position) as book:
        return book.enter(POLICY, reason, counts=counts)


def require_approval(records: Snapshot, verb: str, names: Sequence[str], reason: Reason | None = None) -> None:
    """Raise if the book needs two persons and there is no approved request for just this that is not done yet.

    An erasure for a reason about the data removes results too, so it needs an approval for such a reason.
    """
    if not records.is_two_person or (not names and verb != POLICY):
        return
    what = REQUEST_NEEDED[verb]
    touched = commitment_of([name.encode() for name in names], records.keyring)
    wanted = what, touched, _is_about_data(what, reason)
    same = [
        asked
        for asked in requests_of(records)
        if (asked.what, asked.touched, _is_about_data(asked.what, asked.why)) == wanted
    ]
    if any(asked.state == "approved" for asked in same):
        return
    waiting = [str(asked.number) for asked in same if asked.state == "open"]
    late = [asked for asked in same if asked.state in ("lapsed", "expired")]
    why_not = "" if not late else f" Request {late[-1].number} {_ending(late[-1])}."
    next_step = (
        f"Request {waiting[-1]} asks for it and waits for another person: strikeout approve BOOK {waiting[-1]}"
        if waiting
        else "Ask for it: strikeout request BOOK one-person"
        if verb == POLICY
        else f"Ask for it: strikeout request BOOK {what} --where ..."
    )
    for_reason = " for this reason" if verb == "erase" and reason is not None else ""
    subject = "this change" if verb == POLICY else f"these {len(names):,} quotes"
    problem = (
        f"{verb} needs a second person's approval in this book, and {subject} have none{for_reason}."
        if verb != POLICY
        else f"One person needs a second person's approval in this book, and {subject} has none."
    )
    raise RefusedError(
        f"{problem}{why_not} {next_step}",
        count=len(names),
        verb=verb,
        waiting=int(waiting[-1]) if waiting else None,
        late=[asked.number for asked in late],
    )


def _ending(asked: Request) -> str:
    if asked.state == "lapsed":
        return f"lapsed with entry {asked.moved}, which changed the book after the approval"
    return f"expired on {asked.until}"


def approvals_of(entries: Sequence[Entry]) -> dict[int, int | None]:
    """Return the approval of every removal that needed one, by entry: the entry that approved it, or None for none.

    Only the ledger is read, so the public key is enough to check it.
    """
    found: dict[int, int | None] = {}
    asked: dict[int, Entry] = {}
    ready: list[tuple[int, Entry]] = []  # approved, and the book has not moved since: the approval, and the request
    persons = 1
    for entry in entries:
        if entry.what in REQUESTS:
            asked[entry.number] = entry
        elif entry.what in DECISIONS:
            request_entry = asked.pop(entry.counts.get("of", 0), None)
            is_other = request_entry is not None and not _same(request_entry.who, entry.who)
            if entry.what == "approve" and request_entry is not None and is_other:
                ready.append((entry.number, request_entry))
            elif entry.what == "withdraw":
                ready = [pair for pair in ready if pair[1].number != entry.counts.get("of")]
        elif persons == 2 and _needs_approval(entry):
            what = REQUEST_NEEDED[entry.what]
            wanted = what, entry.touched, _is_about_data(what, entry.why)
            in_time = (pair for pair in ready if datetime.fromisoformat(entry.at) <= _end(pair[1]))
            match = next((number for number, by in in_time if _asked_for(by) == wanted), None)
            found[entry.number] = match
        if entry.what not in NEUTRAL:
            ready.clear()
        persons = entry.counts.get(PERSONS, persons)
    return found


def _asked_for(entry: Entry) -> tuple[str, str, bool]:
    what = REQUESTS[entry.what]
    return what, entry.touched, _is_about_data(what, entry.why)


def _is_about_data(what: str, reason: Reason | None) -> bool:
    """Return whether an erasure for this reason removes results as well as quotes."""
    return what == "erase" and reason is not None and reason.code in ABOUT_DATA


def _needs_approval(entry: Entry) -> bool:
    if entry.what == POLICY:
        return entry.counts.get(PERSONS) == 1
    return entry.what in REQUEST_NEEDED and bool(entry.counts.get("forgotten", 0) or entry.counts.get("erased", 0))


def _names(records: Snapshot, what: str, *, ids: ArrayLike | None, where: str | None, all_quotes: bool) -> list[str]:
    if what == "one-person":
        if ids is not None or where is not None:
            raise UsageError('request("one-person") is about the book and takes no quotes.')
        if not records.is_two_person:
            raise RefusedError("In this book one person is enough already.")
        return []
    if what == "erase":
        there, aside = select_quotes(records, ids=ids, where=where, all_quotes=all_quotes)
        return [*there.ids.tolist(), *aside.ids.tolist()]
    chosen = held(records, ids=ids, where=where, verb="forget")
    refuse_nothing(len(chosen), verb="forget")
    check_all(len(chosen), records.store.counts().retained, where=where, all_quotes=all_quotes, verb="forget")
    names: list[str] = chosen.ids.tolist()
    return names


def _found(records: Snapshot, entry: Entry, later: Sequence[Entry]) -> Request:
    wording = json.loads(records.store.page("request", page_of(entry.number)) or b'{"ids": [], "where": ""}')
    decisions = [e for e in later if e.what in DECISIONS and e.counts.get("of") == entry.number]
    decided = decisions[-1] if decisions else None  # a request can be withdrawn after its approval
    done = moved = None
    if decided is not None and decided.what == "approve":
        first = next((e for e in later if e.number > decided.number and e.what not in NEUTRAL), None)
        if first is not None and _is_deed(first, entry):
            done = first.number
        elif first is not None:
            moved = first.number
    return Request(
        number=entry.number,
        what=REQUESTS[entry.what],
        who=entry.who,
        at=entry.at,
        why=entry.why,
        count=entry.counts.get("asked", 0),
        touched=entry.touched,
        where=wording["where"],
        ids=tuple(wording["ids"]),
        decision="" if decided is None else DECISIONS[decided.what],
        by="" if decided is None else decided.who,
        done=done,
        moved=moved,
        until=utc(_end(entry)),
        is_expired=records.session.clock() > _end(entry),
    )


def _is_deed(entry: Entry, asked: Entry) -> bool:
    """Return whether an entry is what a request asks for."""
    return entry.touched == asked.touched and REQUEST_NEEDED.get(entry.what) == REQUESTS[asked.what]


def _end(asked: Entry) -> datetime:
    """Return when a request expires."""
    return datetime.fromisoformat(asked.at) + EXPIRES


def _same(one: str, other: str) -> bool:
    """Return whether two names are the same person's: case and surrounding spaces are ignored."""
    return one.strip().casefold() == other.strip().casefold()


REMOVALS = ("erase", "forget")


def evidence_facts(book: Book, audit: Audit, *, request: int | None = None) -> dict[str, Any]:
    """Return everything the page shows, as plain values.

    Args:
        audit: the verification of the book, or of a copy with its public key alone.
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
