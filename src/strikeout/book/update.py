"""Add quotes to a calibrated book, restore quotes that were struck out, and roll a window of dates."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

from strikeout.book.approvals import require_approval
from strikeout.book.commit import EntryFacts, Result, commit, follow_change, with_imports
from strikeout.book.forget import certify, check_given_tolerance
from strikeout.book.import_quotes import How as ImportHow
from strikeout.book.import_quotes import arrival_of
from strikeout.book.records import Snapshot, Why
from strikeout.book.results import Change
from strikeout.book.select import new_slices
from strikeout.book.state_store import NO_QUOTES
from strikeout.book.step import try_step
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.refusal import determined
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes, join
from strikeout.statistics.moments import moments_of
from strikeout.text import agreeing, many


class How(ImportHow, total=False):
    """What ``learn`` and ``roll`` take besides quotes; see ``Book.learn``."""

    tolerance: float | None


def learn(
    seen: Snapshot,
    quotes: Quotes,
    *,
    tolerance: float | None = None,
    quarantine: str | PathLike[str] | None = None,
    quarantined: int = 0,
    reading: Mapping[str, str] | None = None,
    reason: Why = None,
) -> Change:
    """Add new quotes to the book and to its calibration; see ``Book.learn``."""
    arrival, before = arrival_of(seen, quotes), seen.check_current()
    if not len(arrival.new):
        none = agreeing(arrival.count, "The quote is not", f"None of the {arrival.count:,} quotes is")
        raise RefusedError(f"{none} new, so there is nothing to learn.", count=arrival.count)
    result = _stepped(seen, tolerance, added=arrival.new, reading=reading)
    if not isinstance(result, Result):
        after = _with(seen, arrival.new)
        follow = follow_change(seen, after, added=arrival.new)
        result = Result(follow, after, before=before, added=arrival.new, path=result)
    with seen.session.writing(seen.position) as book:
        book.store.add(arrival.new)
        book.record_file(quarantine)
        facts = EntryFacts("learn", reason, arrival.new.ids.tolist(), arrival.to_counts(quarantined), reading)
        return commit(book, seen, facts, result)


def restore(seen: Snapshot, entry: int | None = None, *, reason: Why = None) -> Change:
    """Bring the quotes of a forget back; see ``Book.restore``."""
    aside = seen.set_aside
    number = max(aside, default=0) if entry is None else entry
    if number not in aside:
        known = f"Entries with quotes to restore: {', '.join(map(str, sorted(aside)))}." if aside else ""
        asked = "There is no forget to undo." if entry is None else f"Entry {entry} holds no quotes to restore."
        raise RefusedError(f"{asked} {known}".rstrip(), entry=entry, known=sorted(aside))
    back, before = aside[number], seen.check_current()
    after = _with(seen, back)  # whatever its termination: what was there before must be there again
    follow = follow_change(seen, after, added=back)
    with seen.session.writing(seen.position) as book:
        book.store.unstrike(back.ids)
        facts = EntryFacts("restore", reason, back.ids.tolist(), {"restored": len(back), "of entry": number})
        return commit(book, seen, facts, Result(follow, after, before=before, added=back))


def roll(
    seen: Snapshot,
    quotes: Quotes | None = None,
    *,
    window: int,
    tolerance: float | None = None,
    quarantine: str | PathLike[str] | None = None,
    quarantined: int = 0,
    reading: Mapping[str, str] | None = None,
    reason: Why = None,
) -> Change:
    """Learn new quotes and forget those older than the last ``window`` dates; see ``Book.roll``."""
    if window < 1:
        raise UsageError(f"window={window}: give how many of the last dates stay, 1 or more.", window=window)
    before, whole = seen.check_current(), seen.quotes
    new, counts = whole[:0], {}
    if quotes is not None:
        arrival = arrival_of(seen, quotes)
        if len(arrival.new):
            new, whole, counts = arrival.new, join(whole, arrival.new), arrival.to_counts(quarantined)
    if "date" not in whole.labels:
        raise UsageError("A window rolls over dates, and the quotes have no label date.", window=window)
    dates = whole.labels["date"].astype(str).tolist()
    kept = set(sorted(set(dates))[-window:])
    old = [name for name, date in zip(whole.ids.tolist(), dates, strict=True) if date not in kept]
    if not old and not counts:
        raise RefusedError(
            f"The book spans {many(len(kept), 'date')} and nothing is new: the window of {window} stays.", window=window
        )
    touched = [*old, *new.ids.tolist()]
    require_approval(seen, "roll", touched if old else [])
    at_once = sorted({*old} & {*new.ids.tolist()})  # added and removed in one step
    removed, added = whole.only(old).without(at_once), new.without(at_once)
    reading = reading if counts else None
    result = _stepped(seen, tolerance, removed=removed, added=added, reading=reading)
    if not isinstance(result, Result):
        retained, settings = whole.without(old), seen.spec.settings
        after = determined(seen.spec.calibrate(retained))
        operator = "recalibrate" if after.moments is None else "resolve"
        size = len(whole) if settings.select == "otm" else after.count + len(old)
        certificate = certify(settings, after, size=size, struck=len(old), operator=operator) if old else None
        if certificate is not None:
            certificate = with_imports(seen, certificate, retained=retained, reading=reading)
        follow = follow_change(seen, after, removed=removed, added=added)
        result = Result(follow, after, before=before, certificate=certificate, added=retained, path=result)
    with seen.session.writing(seen.position) as book:
        if len(new):
            book.store.add(new)
        book.store.strike(old, entry=book.number)
        book.record_file(quarantine)
        facts = EntryFacts("roll", reason, touched, {**counts, "forgotten": len(old)}, reading)
        return commit(book, seen, facts, result)


def _stepped(
    seen: Snapshot,
    tolerance: float | None,
    *,
    removed: Quotes = NO_QUOTES,
    added: Quotes = NO_QUOTES,
    reading: Mapping[str, str] | None = None,
) -> Result | tuple[str, ...]:
    """Return the result of one certified step; the beginning of the path if the quotes are to be calibrated."""
    exact = "recalibrate: all quotes, from cold starts"
    if tolerance is None:
        return (exact,)
    check_given_tolerance(tolerance)
    found = try_step(seen, removed, tolerance, added=added, reading=reading)
    return found if isinstance(found, Result) else (f"step passed over: {found.clause}", exact)


def _with(seen: Snapshot, new: Quotes) -> Calibration:
    """Return the calibration of the quotes held and these, from cold starts."""
    spec = seen.spec
    if seen.moments is None:
        return spec.calibrate(join(seen.quotes, new))
    new = new_slices(seen.quotes, new) if is_derived(new).any() else new
    added = moments_of(new, weights=spec.settings.weights, basis=seen.moments.basis)
    return calibrate_moments(seen.moments + added, spec.model, spec.settings)
