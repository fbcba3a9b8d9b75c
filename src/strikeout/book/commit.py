"""Commit the result of a verb: calibration, states and ledger entry in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from strikeout.assurance.certificate import Certificate
from strikeout.book.dates import shows_several_dates
from strikeout.book.fit_source import FitSource
from strikeout.book.group_states import GroupStates
from strikeout.book.records import Snapshot, Transaction, Why
from strikeout.book.results import Change
from strikeout.book.state_store import NOBODY, taken
from strikeout.book.state_update import Following, following
from strikeout.book.version import Version
from strikeout.calibration.calibration import Calibration
from strikeout.quotes.quotes import Quotes
from strikeout.store.signing import signed


@dataclass(frozen=True, eq=False)
class Result:
    """What a verb computed: the calibration of the quotes the book will hold, and how its states follow.

    ``version`` is set instead of ``calibration`` by one step, whose results are not a calibration. ``before`` is the
    calibration that ``Change`` compares with; None if there is none or an erasure removes it.
    """

    follow: Following
    calibration: Calibration | None = None
    version: Version | None = None
    before: Version | None = None
    source: FitSource | None = None  # None: as the last calibration
    noise: float | None = None  # None: as the last calibration
    added: Quotes = NOBODY
    certificate: Certificate | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deed:
    """What the ledger entry of a verb records beside its result."""

    what: str
    reason: Why
    touched: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def commit(book: Transaction, seen: Snapshot, deed: Deed, result: Result) -> Change:
    """Keep the results and states of a verb and write its entry."""
    version = result.version
    if result.calibration is not None:
        version = _version(book, seen, result)
        book.keep_moments(result.calibration.moments)
        book.keep_groups(GroupStates.of(result.calibration))
    assert version is not None, "a verb ends with a calibration or one step"
    result.follow.keep(book.store)
    book.keep(version)
    certificate = result.certificate
    if certificate is not None:
        certificate = signed(certificate, seen.ledger, seen.keyring, at=seen.session.clock())
    number = book.enter(
        deed.what,
        deed.reason,
        touched=deed.touched,
        counts=deed.counts,
        version=version,
        certificate=certificate,
    )
    return Change(number, deed.what, len(deed.touched), result.before, version, certificate, result.path)


def _version(book: Transaction, seen: Snapshot, result: Result) -> Version:
    after = result.calibration
    assert after is not None
    source = result.source
    if source is None:  # the source of a book does not depend on its history
        source = seen.check_calibrated().fit_source.onward(after)
    is_of_dates = after.moments is not None and shows_several_dates(book.store, come=result.added)
    noise = seen.noise if result.noise is None else result.noise
    return Version.of(after, entry=book.number, source=source, perturb=noise, is_of_dates=is_of_dates)


def take_footprints(seen: Snapshot, after: Calibration, *, noise: float | None = None) -> Following:
    """Return footprints and states at a new reference; none of a panel, or of moments."""
    if after.is_panel or after.moments is not None:
        return Following()
    return Following(taken(after, entry=seen.next, noise=seen.noise if noise is None else noise))


def follow_change(seen: Snapshot, after: Calibration, *, gone: Quotes = NOBODY, come: Quotes = NOBODY) -> Following:
    """Return how footprints and states change when quotes are added and removed.

    If the book keeps none, they are taken as by ``calibrate``: it was a panel until now, or their reference is erased.
    """
    if seen.linearization is None:
        return take_footprints(seen, after)
    return following(after, seen.linearization, entry=seen.next, gone=gone, come=come)


def without_before(result: Result) -> Result:
    """Return the result of an erasure that removes the calibration before it."""
    return replace(result, before=None)
