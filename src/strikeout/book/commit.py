"""Commit the result of a verb: calibration, states and ledger entry in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from strikeout.assurance.certificate import Certificate
from strikeout.assurance.provenance import BOOK, line_of, with_reading
from strikeout.assurance.state_codec import StateKind, encode_moments
from strikeout.book.records import Snapshot, Transaction, Why
from strikeout.book.results import Change
from strikeout.book.spec import FitSource
from strikeout.book.state_store import NO_QUOTES, StateUpdate, compute_footprints, state_update
from strikeout.book.version import Version
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import LABEL, values_of
from strikeout.quotes.quotes import Quotes
from strikeout.store.signing import signed
from strikeout.store.store import Reading
from strikeout.text import agreeing, spans

LAYOUT = "layout"  # the name of the layout among the facts of a reading
IN_MEMORY = "quotes in memory; how they were read was not given"


@dataclass(frozen=True, eq=False)
class Result:
    """What a verb computed: the calibration of the quotes the book will hold, and how its states follow.

    ``version`` is set instead of ``calibration`` by one step, whose results are not a calibration. ``before`` is the
    calibration that ``Change`` compares with; None if there is none or an erasure removes it. ``follow`` is None while
    the result is only shown.
    """

    follow: StateUpdate | None
    calibration: Calibration | None = None
    version: Version | None = None
    before: Version | None = None
    source: FitSource | None = None  # None: as the last calibration
    noise: float | None = None  # None: as the last calibration
    added: Quotes = NO_QUOTES
    certificate: Certificate | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryFacts:
    """What the ledger entry of a verb records beside its result."""

    what: str
    reason: Why
    touched: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    reading: Mapping[str, str] | None = None  # how the file of added quotes was read


def commit(book: Transaction, seen: Snapshot, facts: EntryFacts, result: Result) -> Change:
    """Keep the results and states of a verb and write its entry."""
    version = result.version
    if result.calibration is not None:
        version = _version(book, seen, result)
        moments = result.calibration.moments
        book.keep_state(StateKind.MOMENTS, None if moments is None else encode_moments(moments))
    assert version is not None, "a verb ends with a calibration or one step"
    assert result.follow is not None, "states follow what is committed"
    result.follow.write(book.store)
    book.keep(version)
    certificate = result.certificate
    if certificate is not None:
        certificate = signed(certificate, seen.ledger, seen.keyring, at=seen.session.clock())
    number = book.enter(
        facts.what,
        facts.reason,
        touched=facts.touched,
        counts=facts.counts,
        version=version,
        certificate=certificate,
        reading=facts.reading,
    )
    after = result.calibration
    return Change(
        number,
        facts.what,
        len(facts.touched),
        result.before,
        version,
        certificate,
        result.path,
        calibration=after if after is not None and after.moments is None else None,
    )


def with_imports(
    seen: Snapshot,
    certificate: Certificate,
    *,
    retained: Quotes | None = None,
    reading: Mapping[str, str] | None = None,
) -> Certificate:
    """Return a certificate that states how the quotes of the book were read, with a digest of the retained ones.

    Args:
        retained: if they were read; from moments, and for one step, they are not.
        reading: of the file whose quotes are added by the entry that the certificate is for.
    """
    added = [(entry.number, entry.reading) for entry in seen.ledger if entry.counts.get("imported")]
    added += [] if reading is None else [(seen.next, reading)]
    by_line: dict[str, list[int]] = {}
    for number, how in added:
        rest = {name: text for name, text in how.items() if name != LAYOUT}
        by_line.setdefault(line_of(how[LAYOUT], rest) if how else IN_MEMORY, []).append(number)
    settings = {f"{agreeing(len(of), 'entry', 'entries')} {spans(of)}": line for line, of in by_line.items()}
    return with_reading(certificate, retained, layout=BOOK, settings=settings)


def _version(book: Transaction, seen: Snapshot, result: Result) -> Version:
    after = result.calibration
    assert after is not None
    source = result.source
    if source is None:  # the source of a book does not depend on its history
        source = seen.check_calibrated().fit_source.onward(after)
    is_of_dates = after.moments is not None and _has_several_dates(book.store.now, added=result.added)
    noise = seen.noise if result.noise is None else result.noise
    return Version.of(after, entry=book.number, source=source, perturb=noise, is_of_dates=is_of_dates)


def take_footprints(seen: Snapshot, after: Calibration, *, noise: float | None = None) -> StateUpdate:
    """Return footprints and states at a new reference; none of moments."""
    if after.moments is not None:
        return StateUpdate()
    return StateUpdate(compute_footprints(after, entry=seen.next, noise=seen.noise if noise is None else noise))


def follow_change(
    seen: Snapshot, after: Calibration, *, removed: Quotes = NO_QUOTES, added: Quotes = NO_QUOTES
) -> StateUpdate:
    """Return how footprints and states change when quotes are added and removed.

    If the book keeps none, they are taken as by ``calibrate``: their reference was erased, for example.
    """
    if seen.linearization is None:
        return take_footprints(seen, after)
    return state_update(after, seen.linearization, entry=seen.next, removed=removed, added=added)


def _has_several_dates(store: Reading, *, added: Quotes) -> bool:
    """Return whether the first retained quote, the last, and added ones have two dates or more; no other is read.

    It is never true for a book of one date. It is true for a book that gets its second date, and almost always for one
    that has several, since quotes are usually added in the order of their dates.

    Args:
        store: with the added quotes in it.
    """
    shards, away = list(store.shards()), {*store.struck()}
    first, last = _outermost(store, shards, away, 0), _outermost(store, shards[::-1], away, -1)
    return len(_dates(added) | _dates(first) | _dates(last)) > 1


def _outermost(store: Reading, shards: Iterable[int], away: set[str], end: int) -> Quotes:
    """Return the first or the last retained quote of shards in this order; none for an empty book."""
    for shard in shards:
        here = [name for name in store.members(shard) if name not in away]
        if here:
            return store.named([here[end]])
    return store.named([])


def _dates(quotes: Quotes) -> set[str]:
    if LABEL not in quotes.labels:
        return set()
    values, missing = values_of(quotes.labels[LABEL])
    return set(np.unique(values[~missing]).astype(str).tolist())
