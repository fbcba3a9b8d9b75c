"""Erase quotes with everything computed from them, and search a book for what its erasures should have removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from strikeout.book.approvals import require_approval
from strikeout.book.commit import EntryFacts, Result, commit, take_footprints
from strikeout.book.erasure import (
    Reach,
    depends_on,
    derived_numbers,
    reach_of,
    recorded_labels,
    rehearse,
    remove_quotes,
    search_residue,
    select_quotes,
)
from strikeout.book.forget import recalibrate
from strikeout.book.import_quotes import recognised, returned
from strikeout.book.known_files import remove
from strikeout.book.records import Session, Snapshot, Why, as_reason
from strikeout.book.results import Erasure
from strikeout.book.select import as_kept
from strikeout.errors import BusyError, RefusedError
from strikeout.quotes.forwards import Refit, is_derived, refits, underived
from strikeout.quotes.quotes import Quotes
from strikeout.store.residue import Needles, Progress, Search, Trace, needles_of, search_book

NOT_SEARCHED = (
    "the files were not searched, because another process uses the book. Search them later: strikeout residue"
)
ATTEMPTS = 5  # to record a search while other processes change the book
ENTRY = "residue"  # the ledger entry of a search
FROM_COLD = ("recalibrate: the reference of the step was fitted to quotes that are erased; from cold starts",)


def plan_erase(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    all_quotes: bool = False,
    reason: Why = None,
    plans: Sequence[Path] = (),
) -> Erasure:
    """Return what erasing these quotes removes and what it cannot; nothing is changed."""
    with seen.session.reading(seen.position):
        held, aside, reach, refits = _found(
            seen, ids=ids, where=where, all_quotes=all_quotes, reason=reason, plans=plans
        )
        return rehearse(seen, held, aside, reach=reach, refits=refits)


def erase(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    all_quotes: bool = False,
    reason: Why = None,
    plans: Sequence[Path] = (),
    progress: Progress | None = None,
) -> Erasure:
    """Erase these quotes; see ``Book.erase``.

    Args:
        plans: files beside the book that name quotes.
        progress: called while the files are searched, with the bytes searched so far and their total.
    """
    with seen.session.reading(seen.position):
        held, aside, reach, refits = _found(
            seen, ids=ids, where=where, all_quotes=all_quotes, reason=reason, plans=plans
        )
        derived = derived_numbers(seen, held, aside)
    touched = [*held.ids.tolist(), *aside.ids.tolist()]
    require_approval(seen, "erase", touched, as_reason(reason))
    result = _result(seen, held, aside, reach)
    shown = rehearse(seen, held, aside, reach=reach, refits=refits, is_refitted=result is not None)
    counts = {"erased": len(touched), "forgotten": len(held)}
    counts |= {} if reach.removed is None else reach.removed.to_counts()
    counts |= recorded_labels(seen, held, aside)
    with seen.session.writing(seen.position) as book:
        remove_quotes(seen, book, held, aside, reach=reach)
        facts, change = EntryFacts("erase", reason, touched, counts), None
        if result is not None:
            change = commit(book, seen, facts, result)
        else:
            book.enter("erase", reason, touched=touched, counts=counts)
    remaining = (*remove(reach.files, seen.file_digest), *reach.changed)
    shown = replace(shown, entry=seen.next, change=change)
    searched: dict[str, Any] = {"reach": reach, "derived": derived, "files": remaining, "refits": refits}
    try:
        found = search_residue(seen.session.snapshot(), held, aside, **searched, progress=progress)
        return replace(shown, search=record_search(seen.session, found))
    except BusyError:  # the quotes are erased all the same
        return replace(shown, warnings=(*shown.warnings, NOT_SEARCHED))


def _found(
    seen: Snapshot, *, ids: ArrayLike | None, where: str | None, all_quotes: bool, reason: Why, plans: Sequence[Path]
) -> tuple[Quotes, Quotes, Reach, tuple[Refit, ...]]:
    """Return the quotes held and set aside that are to be erased, what that reaches, and the forwards it refits."""
    held, aside = select_quotes(seen, ids=as_kept(seen.store, ids, seen.commit), where=where, all_quotes=all_quotes)
    reach = reach_of(seen, held, aside, reason=reason, plans=plans)
    refitted = refits(seen.quotes, seen.quotes.without(held.ids)) if is_derived(held).any() else ()
    return held, aside, reach, refitted


def _result(seen: Snapshot, held: Quotes, aside: Quotes, reach: Reach) -> Result | None:
    """Return the calibration without the erased quotes; None if the book has none of them, or none is found."""
    if not seen.is_current:
        return None
    try:
        done = recalibrate(seen, held).result if len(held) else None
        # One step from a reference that was fitted to quotes set aside is replaced by a calibration.
        is_stale = done is None and seen.check_current().step is not None
        is_stale = is_stale and depends_on(seen, seen.linearization, held, aside)
        if done is None and not is_stale:
            return None
        after = seen.calibration if done is None or done.calibration is None else done.calibration
    except RefusedError:
        return None
    version = seen.check_current()
    return Result(
        take_footprints(seen, after),
        after,
        before=None if reach.removed is not None else version,
        source=version.fit_source.unmeasured().onward(after),
        certificate=None if done is None else done.certificate,
        path=FROM_COLD if done is None else done.path,
    )


def record_search(session: Session, found: Search) -> Search:
    """Record the result of a search in the ledger and return it with the number of the entry."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with session.writing(session.snapshot().position) as book:
                return replace(found, entry=book.enter(ENTRY, None, counts=found.to_counts()))
        except RefusedError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("the loop returns or raises")


def search_again(records: Snapshot, erased: Quotes | None, *, progress: Progress | None = None) -> Search:
    """Search a book without a copy of what was erased, or with one; the result is recorded in the ledger."""
    there, commitments = records.store.quotes(struck=None), records.erased
    needles, names = Needles({}), []
    if erased is not None:
        erased = underived(erased)
        unknown = erased[~np.isin(erased.ids, there.ids)]
        gone = unknown[recognised(unknown, commitments, records.commit)]
        needles, names = needles_of(gone, retained=there), gone.ids.tolist()
    left = [Path(name) for name in records.file_digest.are_there(records.files.condemned)]
    found = search_book(records.session.store, needles, erased=names, files=left, progress=progress)
    back = there.ids[returned(there, commitments, records.commit)].tolist()
    traces = [Trace("id", "quote", name, "the quotes") for name in back if name not in names]
    traces += [Trace("file", "copy", str(path), "its folder: an erasure should have deleted it") for path in left]
    return record_search(records.session, replace(found, traces=(*found.traces, *traces)))
