"""Erase quotes: remove their bytes, and everything computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import ArrayLike

from strikeout.book.approvals import require_approval
from strikeout.book.commit import Deed, Result, commit, take_footprints
from strikeout.book.erasure import knows, left_behind, meant, rehearsed, residue, take_away
from strikeout.book.erasure_reach import Reach, reach_of
from strikeout.book.forget import Recalibrated, recalibrate
from strikeout.book.forward_dependencies import refits_without
from strikeout.book.keyed_ids import as_kept
from strikeout.book.known_files import remove
from strikeout.book.records import Snapshot, Why, as_reason
from strikeout.book.residue import record_search
from strikeout.book.results import Erasure
from strikeout.errors import BusyError, RefusedError
from strikeout.quotes.forwards import Refit, is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.store.residue import Progress

NOT_SEARCHED = (
    "the files were not searched, because another process uses the book. Search them later: strikeout residue"
)
FROM_COLD = ("recalibrate: the reference of the step was fitted to quotes that are erased; from cold starts",)


def plan_erase(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    reason: Why = None,
    plans: Sequence[Path] = (),
) -> Erasure:
    """Return what erasing these quotes removes and what it cannot; nothing is changed.

    Raises:
        As ``Book.plan_erase``.
    """
    held, aside, reach, refits = _found(seen, ids=ids, where=where, reason=reason, plans=plans)
    return rehearsed(seen, held, aside, reach=reach, refits=refits)


def erase(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    reason: Why = None,
    plans: Sequence[Path] = (),
    progress: Progress | None = None,
) -> Erasure:
    """Erase these quotes; see ``Book.erase``.

    Args:
        plans: files beside the book that name quotes.
        progress: called while the files are searched, with the bytes searched so far and their total.

    Raises:
        As ``Book.erase``.
    """
    held, aside, reach, refits = _found(seen, ids=ids, where=where, reason=reason, plans=plans)
    touched = [*held.ids.tolist(), *aside.ids.tolist()]
    require_approval(seen, "erase", touched, as_reason(reason))
    result = _result(seen, held, aside, reach)
    shown = rehearsed(seen, held, aside, reach=reach, refits=refits, is_remade=result is not None)
    left = left_behind(seen, held, aside)
    counts = {"erased": len(touched), "forgotten": len(held)}
    counts |= {} if reach.removed is None else reach.removed.to_counts()
    with seen.session.writing(seen.position) as book:
        take_away(seen, book, held, aside, reach=reach)
        deed, change = Deed("erase", reason, touched, counts), None
        if result is not None:
            change = commit(book, seen, deed, result)
        else:
            book.enter("erase", reason, touched=touched, counts=counts)
    remaining = (*remove(reach.files, seen.file_digest), *reach.changed)
    shown, after = replace(shown, entry=seen.next, change=change), seen.session.snapshot()
    try:
        found = residue(after, held, aside, reach=reach, files=remaining, refits=refits, left=left, progress=progress)
        return replace(shown, search=record_search(seen.session, found))
    except BusyError:  # the quotes are erased all the same
        return replace(shown, warnings=(*shown.warnings, NOT_SEARCHED))


def _found(
    seen: Snapshot, *, ids: ArrayLike | None, where: str | None, reason: Why, plans: Sequence[Path]
) -> tuple[Quotes, Quotes, Reach, tuple[Refit, ...]]:
    """Return the quotes held and set aside that are to be erased, what that reaches, and the forwards it refits."""
    held, aside = meant(seen, ids=as_kept(seen.store, ids, seen.commit), where=where)
    reach = reach_of(seen, held, aside, reason=reason, plans=plans)
    refits = refits_without(seen.quotes, held) if is_derived(held).any() else ()
    return held, aside, reach, refits


def _result(seen: Snapshot, held: Quotes, aside: Quotes, reach: Reach) -> Result | None:
    """Return the calibration without the erased quotes; None if the book has none of them, or none is found."""
    if not seen.is_current:
        return None
    try:
        done: Recalibrated | None = recalibrate(seen, held) if len(held) else None
        # One step from a reference that was fitted to quotes set aside is replaced by a calibration.
        is_stale = done is None and seen.check_current().step is not None
        is_stale = is_stale and knows(seen, seen.linearization, held, aside)
        if done is None and not is_stale:
            return None
        after = seen.calibration if done is None else done.calibration
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
