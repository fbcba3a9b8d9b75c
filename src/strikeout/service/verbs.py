"""The verbs of a book as functions of plain values: JSON in, JSON out. A worker process runs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from strikeout.assurance.influence import influence
from strikeout.book import Book
from strikeout.book.approvals import Request
from strikeout.book.forget import Plan
from strikeout.book.status import compare as compare_books
from strikeout.errors import RefusedError, StrikeoutError, UsageError
from strikeout.models.named import model_named
from strikeout.service.people import Action
from strikeout.service.pictures import PICTURES, curves
from strikeout.service.quotes_view import facets, quote_file, quotes
from strikeout.statistics.shards import split_cuts
from strikeout.store.entry import Reason
from strikeout.store.ledger import Head
from strikeout.tables import plain

Facts = dict[str, Any]
Tell = Callable[[Facts], None]
MOST_GROUPS = 1000
MOST_LISTED = 200  # issues of an import
MOST_QUARANTINED = 5_000  # rows of a quarantine; the others are counted


@dataclass(frozen=True)
class Verb:
    """What a worker can be asked for: the function, what permits it, and whether it changes the book.

    The answer of a verb that is kept depends on the quotes and calibrations of the book alone.
    """

    run: Callable[..., Facts]
    action: Action
    changes: bool = True
    is_kept: bool = False


def reason_of(reason: Mapping[str, str] | None) -> Reason | None:
    """Return the reason for the ledger: a code, and optionally a text and a ticket.

    Raises:
        UsageError: the code is unknown, or a text does not print on one line.
    """
    return None if reason is None else Reason(reason["code"], reason.get("text", ""), reason.get("ticket", ""))


def chosen(ids: list[str] | None = None, where: str | None = None) -> Facts:
    """Return the quotes to take, as keywords of a verb.

    Raises:
        UsageError: they are not given in exactly one way.
    """
    if (ids is None) == (where is None):
        raise UsageError("Choose the quotes in one way: `where`, a condition in SQL, or `ids`, a list.")
    return {"ids": ids} if where is None else {"where": where}


# --- verbs that change nothing ----------------------------------------------------------------------------------------


def plan(
    book: Book,
    tell: Tell,  # noqa: ARG001
    *,
    tolerance: float | None = None,
    reason: Mapping[str, str] | None = None,
    **quotes: Any,
) -> Facts:
    """Return what striking quotes out will do, with the plan itself for ``forget``."""
    begun = time.perf_counter()
    made = book.plan_forget(**chosen(**quotes), tolerance=tolerance, reason=reason_of(reason))
    return {
        **made.to_dict(),
        "count": made.count,
        "rmse": _rmse_of(book),
        "latent_moves": made.latent_moves,
        "claim_rows": [list(row) for row in made.certificate.rows()],
        "summary": made.summary(),
        "plan": made.to_bytes().decode("ascii"),
        "seconds": time.perf_counter() - begun,
    }


def _rmse_of(book: Book) -> float | None:
    version = book.snapshot().version
    return None if version is None else version.rmse


def influence_of(book: Book, tell: Tell, *, by: str | None = None, top: int = 20) -> Facts:  # noqa: ARG001
    """Return the most influential quotes or groups, each with the condition that selects it."""
    calibration = book.calibration()
    found = influence(calibration, None if by is None else split_cuts(by))
    shown = min(top, found.rows, MOST_GROUPS)
    return {
        **found.to_dict(shown),
        "conditions": [found.condition(row) for row in range(shown)],
        "count": calibration.count,
        "rmse": calibration.rmse,
    }


def chart(
    book: Book,
    tell: Tell,  # noqa: ARG001
    *,
    kind: str,
    by: str | None = None,
    date: str | None = None,
) -> Facts:
    """Return the numbers of a picture: smiles, residuals, variance, influence or path."""
    from strikeout.plots.style import View
    from strikeout.plots.writing import plot_data

    return plot_data(book.calibration(), kind, by=by, view=View(date=date or None))  # type: ignore[arg-type]


def verify(book: Book, tell: Tell, *, head: str | None = None) -> Facts:  # noqa: ARG001
    """Check the whole book, optionally against a head that was kept elsewhere."""
    found = book.verify(head=None if head is None else Head.parse(head))
    return {**found.to_dict(), "headline": found.headline}


def evidence(book: Book, tell: Tell, *, number: int | None = None) -> Facts:  # noqa: ARG001
    """Verify the book, and return the printable page on its removals, or on that of one request."""
    from strikeout.book.approvals import evidence_facts
    from strikeout.plots.page import evidence_page

    return {"page": evidence_page(evidence_facts(book, book.verify(), request=number))}


def compare(book: Book, tell: Tell, *, other: str) -> Facts:  # noqa: ARG001
    """Compare the book with the one in another file."""
    with Book.open(other) as second:
        named = [(each.path.stem, each.snapshot()) for each in (book, second)]  # a problem names no folder
        return compare_books(*named).to_dict()


def rehearse(
    book: Book,
    tell: Tell,  # noqa: ARG001
    *,
    all_quotes: bool = False,
    reason: Mapping[str, str] | None = None,
    **quotes: Any,
) -> Facts:
    """Return what erasing quotes removes and what it cannot."""
    return book.plan_erase(**chosen(**quotes), all_quotes=all_quotes, reason=reason_of(reason)).to_dict()


def inspect(book: Book, tell: Tell, *, file: str, **how: Any) -> Facts:
    """Return how an uploaded file is read, and which rows are bad; nothing is imported."""
    with _reading(book, tell, file, **how) as found:
        return _described(found)


# --- verbs that change the book ---------------------------------------------------------------------------------------


def forget(
    book: Book,
    tell: Tell,  # noqa: ARG001
    *,
    tolerance: float | None = None,
    reason: Mapping[str, str] | None = None,
    plan: str | None = None,
    **quotes: Any,
) -> Facts:
    """Strike quotes out, or apply exactly the plan that was shown."""
    if plan is not None:
        if any(given is not None for given in (tolerance, reason, *quotes.values())):
            raise UsageError("Give a plan alone: it contains the quotes, the tolerance and the reason.")
        return book.apply(Plan.from_bytes(plan.encode("utf-8"))).to_dict()
    return book.forget(**chosen(**quotes), tolerance=tolerance, reason=reason_of(reason)).to_dict()


def restore(
    book: Book,
    tell: Tell,  # noqa: ARG001
    *,
    entry: int | None = None,
    reason: Mapping[str, str] | None = None,
) -> Facts:
    """Bring the quotes of a forget back."""
    return book.restore(entry, reason=reason_of(reason)).to_dict()


def erase(
    book: Book,
    tell: Tell,
    *,
    all_quotes: bool = False,
    reason: Mapping[str, str] | None = None,
    **quotes: Any,
) -> Facts:
    """Remove the bytes of quotes; there is no undo."""

    def searched(done: int, total: int) -> None:
        tell({"step": "searching", "share": done / total if total else 1.0})

    how: Facts = {"all_quotes": all_quotes, "reason": reason_of(reason), "progress": searched}
    return book.erase(**chosen(**quotes), **how).to_dict()


def calibrate(
    book: Book,
    tell: Tell,
    *,
    model: str | None = None,
    fresh: bool = False,
    reason: Mapping[str, str] | None = None,
    **settings: Any,
) -> Facts:
    """Calibrate the book; what is not given is as the last time."""
    steps = 0

    def stepped(start: int, visit: object) -> None:  # noqa: ARG001
        nonlocal steps
        steps += 1
        tell({"step": "calibrating", "start": start + 1, "steps": steps})

    named = None if model is None else model_named(model)
    how: Facts = {"fresh": fresh, "reason": reason_of(reason), "progress": stepped, **settings}
    return book.calibrate(named, **how).to_dict()


def import_file(
    book: Book,
    tell: Tell,
    *,
    file: str,
    digest: str,  # noqa: ARG001  (so that another file with the same Idempotency-Key is another request)
    reason: Mapping[str, str] | None = None,
    **how: Any,
) -> Facts:
    """Add the quotes of an uploaded file; bad rows are returned as CSV, to be corrected and uploaded again."""
    with _reading(book, tell, file, **how) as found:
        described = _described(found)
        recorded: Facts = {"quarantined": found.rejected, "reading": found.conventions, "reason": reason_of(reason)}
        done = book.import_chunks(found.chunks(), **recorded)
    return {**described, **done.to_dict(), "sentence": done.sentence}


def request(
    book: Book,
    tell: Tell,  # noqa: ARG001
    *,
    what: Any,
    all_quotes: bool = False,
    reason: Mapping[str, str] | None = None,
    **quotes: Any,
) -> Facts:
    """Ask for a removal that another person approves."""
    is_policy = what == "one-person" and not any(given is not None for given in quotes.values())
    which = {} if is_policy else {**chosen(**quotes), "all_quotes": all_quotes}
    return book.request(what, **which, reason=reason_of(reason)).to_dict()


def decide(
    decision: Callable[..., Request],
    book: Book,
    tell: Tell,  # noqa: ARG001
    *,
    number: int,
    reason: Mapping[str, str] | None = None,
) -> Facts:
    """Approve or reject the request of another person, or withdraw one's own."""
    return decision(book, number, reason=reason_of(reason)).to_dict()


def carry_out(book: Book, tell: Tell, *, number: int) -> Facts:
    """Do what an approved request asks for.

    Raises:
        RefusedError: there is no such request, it is not approved, or it is about the policy of the book.
    """
    asked = next((one for one in book.requests() if one.number == number), None)
    if asked is None or asked.state != "approved":
        state = "not a request" if asked is None else asked.state
        raise RefusedError(f"Entry {number} is {state}; only an approved request can be done.", request=number)
    quotes: Facts = {"where": asked.where} if asked.where else {"ids": list(asked.ids)}
    why = None if asked.why is None else asked.why.to_plain()
    if asked.what == "erase":
        return erase(book, tell, **quotes, all_quotes=True, reason=why)
    if asked.what == "forget":
        return forget(book, tell, **quotes, reason=why)
    return {"entry": book.set_approval("one-person", reason=asked.why)}


KEPT: Mapping[str, Callable[..., Facts]] = {
    "quotes": quotes,
    "facets": facets,
    "influence": influence_of,
    "chart": chart,
    **PICTURES,
}
VERBS: Mapping[str, Verb] = {
    "plan": Verb(plan, Action.READ, changes=False),
    "quote file": Verb(quote_file, Action.READ, changes=False),
    **{name: Verb(run, Action.READ, changes=False, is_kept=True) for name, run in KEPT.items()},
    "compare": Verb(compare, Action.READ, changes=False),
    "curves": Verb(curves, Action.READ, changes=False),  # not kept: another book may be one of the two
    "evidence": Verb(evidence, Action.VERIFY, changes=False),
    "verify": Verb(verify, Action.VERIFY, changes=False),
    "rehearse": Verb(rehearse, Action.READ, changes=False),
    "inspect": Verb(inspect, Action.CHANGE, changes=False),
    "forget": Verb(forget, Action.CHANGE),
    "restore": Verb(restore, Action.CHANGE),
    "calibrate": Verb(calibrate, Action.CHANGE),
    "import": Verb(import_file, Action.CHANGE),
    "request": Verb(request, Action.CHANGE),
    "erase": Verb(erase, Action.ERASE),
    "carry out": Verb(carry_out, Action.ERASE),
    "approve": Verb(partial(decide, Book.approve), Action.DECIDE),
    "reject": Verb(partial(decide, Book.reject), Action.DECIDE),
    "withdraw": Verb(partial(decide, Book.withdraw), Action.CHANGE),
}


def _reading(book: Book, tell: Tell, file: str, *, max_reject: float | None = None, **how: Any) -> Any:
    from strikeout.quotes.reading import MAX_REJECT, Chunking, accept, inspect_quotes

    def step(what: str, share: float) -> None:
        tell({"step": what, "share": share})

    given = {name: how.pop(name, None) for name in ("source", "rate")}
    constants = {name: value for name, value in given.items() if value is not None}
    chunking = Chunking(folder=Path(file).parent, progress=step)
    found = inspect_quotes(file, constants=constants, beside=book.quotes, chunking=chunking, **how)
    try:
        accept(found, max_reject=MAX_REJECT if max_reject is None else max_reject)
    except StrikeoutError:
        found.close()
        raise
    return found


def _described(found: Any) -> Facts:
    """Return what was understood of a file, and its bad rows as CSV."""
    return {
        "rows": found.rows,
        "count": found.count,
        "rejected": found.rejected,
        "repeated_rows": found.repeated,
        "layout": found.layout,
        "notes": [*found.table.notes, *filter(None, [found.conversion_sentence()])],
        "columns": [plain(column) for column in found.columns],
        "issues": found.issues.counts,
        "first_issues": [plain(issue) for issue in found.issues.listed(MOST_LISTED)],
        **_quarantine(found),
    }


def _quarantine(found: Any) -> Facts:
    """Return the first bad rows as CSV, and how many these are: a job is kept in memory with its result."""
    from tempfile import TemporaryDirectory

    if not found.rejected:
        return {"quarantine": "", "quarantined": 0}
    with TemporaryDirectory(prefix="strikeout-") as folder:
        path = Path(folder) / "quarantine.csv"
        shown = found.write_quarantine(path, most=MOST_QUARANTINED)
        return {"quarantine": path.read_text(encoding="utf-8"), "quarantined": shown}
