"""Four eyes: what one person asks for, another approves or rejects, and only then it is done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from strikeout.assurance.canonical import canonical
from strikeout.book.erasure import meant
from strikeout.book.keyed_ids import as_kept
from strikeout.book.reading import ReadingDesk
from strikeout.book.records import Records, Why, page_of
from strikeout.book.select import names_for, refuse_nothing
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.request import names_of
from strikeout.store.entry import Entry, Reason
from strikeout.store.ledger import commitment_of

Asked = Literal["forget", "erase"]
ASKING = {"request forget": "forget", "request erase": "erase"}  # what the ledger says -> what was asked for
DECIDING = {"approve": "approved", "reject": "rejected"}
DOING = {"forget": "forget", "roll": "forget", "erase": "erase"}  # a verb -> the request it needs


@dataclass(frozen=True)
class Request:
    """Something asked for: the number of its entry, what, by whom and why, and what came of it.

    ``where`` and ``ids`` say which quotes; both are empty once an erasure has taken the wording away. ``touched`` is
    the keyed commitment to the set of quotes, which stays: what was approved is this set, no other.
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
    decision: str = ""  # approved, rejected, or not yet anything
    by: str = ""
    done: int | None = None  # the entry in which it was done

    @property
    def state(self) -> str:
        """What came of it, in a word: open, approved, rejected or done."""
        return "done" if self.done is not None else self.decision or "open"

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
        }


class ApprovingDesk(ReadingDesk):
    """A book on which strike-outs and erasures can be asked for, approved and rejected, each an entry of the ledger."""

    def request(
        self, what: Asked, *, ids: ArrayLike | None = None, where: str | None = None, reason: Why = None
    ) -> Request:
        """Asks that quotes be struck out ("forget") or erased; nothing happens to them until it is approved and done.

        Raises:
            UsageError: another verb, or the quotes are said in no way or in two.
            UnknownIdError: an id the book does not have, or one given twice.
            NothingMeantError: no quote is meant.
            RefusedError: the same is asked for already, or the book moved meanwhile.
        """
        records = self._records
        if what not in ("forget", "erase"):
            raise UsageError(f'request({what!r}): what can be asked for is "forget" or "erase".')
        ids = as_kept(records.store, ids, records.commit)
        seen, names = records.position(), _names(records, what, ids=ids, where=where)
        touched = commitment_of([name.encode() for name in names], records.keyring)
        for other in self.requests():
            if (other.what, other.touched) == (what, touched) and other.state in ("open", "approved"):
                raise RefusedError(
                    f"Request {other.number} of {other.who} asks for the same and is {other.state}.",
                    request=other.number,
                )
        with records.writing(seen) as book:
            wording = {"where": where or "", "ids": [] if where is not None else names}
            book.store.put("request", page_of(book.number), canonical(wording))
            number = book.enter(f"request {what}", reason, touched=names, counts={"asked": len(names)})
        return self._request(number)

    def approve(self, number: int, *, reason: Why = None) -> Request:
        """Lets what another asked for be done, once.

        Raises:
            RefusedError: there is no such request, it is decided already, or it was made under the same name.
        """
        return self._decide("approve", number, reason)

    def reject(self, number: int, *, reason: Why = None) -> Request:
        """Declines what another asked for; it cannot be approved any more.

        Raises:
            RefusedError: there is no such request, it is decided already, or it was made under the same name.
        """
        return self._decide("reject", number, reason)

    def requests(self) -> tuple[Request, ...]:
        """Everything that was ever asked for, the first first."""
        return requests_of(self._records)

    def _decide(self, verb: str, number: int, reason: Why) -> Request:
        records = self._records
        seen, asked = records.position(), self._request(number)
        if asked.state != "open":
            by = f" by {asked.by}" if asked.by else ""
            raise RefusedError(f"Request {number} is {asked.state} already{by}.", request=number)
        if _same(asked.who, records.who):
            raise RefusedError(
                f"Request {number} is {asked.who}'s own: it takes another person to {verb} it.", request=number
            )
        with records.writing(seen) as book:
            book.enter(verb, reason, counts={"of": number})
        return self._request(number)

    def _request(self, number: int) -> Request:
        found = next((request for request in self.requests() if request.number == number), None)
        if found is None:
            open_ones = [str(request.number) for request in self.requests() if request.state == "open"]
            known = f"Open requests: {', '.join(open_ones)}." if open_ones else "None is open."
            raise RefusedError(f"Entry {number} of the ledger is no request. {known}", request=number)
        return found


def requests_of(records: Records) -> tuple[Request, ...]:
    """Every request in a book's ledger, with what was decided and done."""
    entries = records.ledger().entries
    return tuple(_found(records, entry, entries[entry.number :]) for entry in entries if entry.what in ASKING)


def require_approval(records: Records, verb: str, names: Sequence[str]) -> None:
    """Nothing, where the book needs no approval, or somebody approved that just these quotes go and it is not done yet.

    Raises:
        RefusedError: otherwise.
    """
    if not records.is_two_person or not names:
        return
    what = DOING[verb]
    touched = commitment_of([name.encode() for name in names], records.keyring)
    same = [asked for asked in requests_of(records) if (asked.what, asked.touched) == (what, touched)]
    if any(asked.state == "approved" for asked in same):
        return
    waiting = [str(asked.number) for asked in same if asked.state == "open"]
    next_step = (
        f"Request {waiting[-1]} asks for it and waits for another person: strikeout approve BOOK {waiting[-1]}"
        if waiting
        else f"Ask first: strikeout request BOOK {what} --where ..."
    )
    raise RefusedError(
        f"To {verb} takes two persons here, and nobody approved that these {len(names):,} quotes go. {next_step}",
        count=len(names),
    )


def _names(records: Records, what: str, *, ids: ArrayLike | None, where: str | None) -> list[str]:
    if what == "erase":
        held, aside = meant(records, ids=ids, where=where)
        return [*held.ids.tolist(), *aside.ids.tolist()]
    if (ids is None) == (where is None):
        raise UsageError('Say what to forget in one way: ids=[...] or where="...".')
    held = records.store.quotes()
    chosen = names_of(held, ids=ids) if where is None else names_for(records.store, held, where)
    names: list[str] = held.only(chosen).ids.tolist()
    refuse_nothing(len(names), verb="forget")
    return names


def _found(records: Records, entry: Entry, later: Sequence[Entry]) -> Request:
    wording = json.loads(records.store.page("request", page_of(entry.number)) or b'{"ids": [], "where": ""}')
    decided = next((e for e in later if e.what in DECIDING and e.counts.get("of") == entry.number), None)
    done = None
    if decided is not None and decided.what == "approve":
        after = (e for e in later if e.number > decided.number and e.touched == entry.touched)
        done = next((e.number for e in after if DOING.get(e.what) == ASKING[entry.what]), None)
    return Request(
        number=entry.number,
        what=ASKING[entry.what],
        who=entry.who,
        at=entry.at,
        why=entry.why,
        count=entry.counts.get("asked", 0),
        touched=entry.touched,
        where=wording["where"],
        ids=tuple(wording["ids"]),
        decision="" if decided is None else DECIDING[decided.what],
        by="" if decided is None else decided.who,
        done=done,
    )


def _same(one: str, other: str) -> bool:
    """Whether two names are one person's: case and spaces around do not make another."""
    return one.strip().casefold() == other.strip().casefold()
