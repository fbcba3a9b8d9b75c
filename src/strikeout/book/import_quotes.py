"""Import quotes chunk by chunk: skip duplicates, refuse erased quotes and conflicting ids.

Filter quotes that are imported: which are new, which the book has already, and which it has erased.

A book recognises an erased quote by keyed commitments: to its id, to its contract, price and date, and to its contract
and price alone. Other labels are not part of them, so a quote is recognised under another source, or under none. The
date is part of them because the same contract may be quoted at the same price on two days; a quote that is imported
without a date is compared by contract and price alone.

Another source may have the same contract at the same price on the same day, and its quote stays in the book. So every
commitment to a content has a second one beside it, to the ids of the retained quotes with that content (often none):
these quotes have not returned, any other one has. An erased quote always gets ``PER_QUOTE`` commitments; their number
does not reveal that a retained quote is equal to it. Commitments are keyed with the secret of the book: without it they
reveal nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from strikeout.book.records import QUARANTINED, Snapshot, Why
from strikeout.book.results import Imported
from strikeout.book.select import hide_contracts, is_encrypted
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.arrays import Mask
from strikeout.quotes.contracts import COLUMNS, Contracts
from strikeout.quotes.forwards import is_derived, refitted, underived
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.store.ledger import SetCommitment
from strikeout.store.store import Reading

if TYPE_CHECKING:
    from strikeout.quotes.spill import SliceSpill

Commit = Callable[[str, bytes], str]
Row = tuple[bytes, bytes, bytes | None]  # id, contract and price, date
Guard = tuple[str, bytes]  # a kind of commitment, and the content it is to
ID, DATED, UNDATED, ANY_DATE = "id", "content", "content without a date", "content of any date"
HOLDERS = "ids of the retained quotes with this content"
PER_QUOTE = 5


@dataclass(frozen=True, eq=False)
class Arrival:
    """Imported quotes by what becomes of them: ``new`` ones are added, the others are counted and left out."""

    new: Quotes
    repeated: int  # in the book, the same to the bit
    set_aside: int  # forgotten before and the same: they stay forgotten until they are restored
    erased: Names  # erased before: refused
    clashes: tuple[str, ...] = ()  # in the book with other values

    @property
    def count(self) -> int:
        """How many quotes arrived."""
        return len(self.new) + self.repeated + self.set_aside + len(self.erased)

    def to_counts(self, quarantined: int) -> dict[str, int]:
        """Return the counts of the ledger entry."""
        return entry_counts(len(self.new), self.repeated, len(self.erased), quarantined)


def classify(store: Reading, arriving: Quotes, struck: Mapping[str, int], erased: Set[str], commit: Commit) -> Arrival:
    """Classify each arriving quote by its id and its content; the store is not changed.

    Forwards that are derived depend on other quotes, so they are not compared: all quotes have placeholders here, those
    that will be added too. In an encrypted book, ids that contain the contract are replaced by keyed digests.

    Args:
        struck: the quotes of the store that are struck out, by id.
        erased: all commitments to erased quotes.
    """
    if not isinstance(arriving.contracts, Contracts):
        raise UsageError("A book stores quotes of options; these are features for a model of your own.")
    arriving = underived(hide_contracts(arriving, commit) if is_encrypted(store) else arriving)
    there = underived(store.named(arriving.ids[store.known(arriving.ids)]))
    is_known = np.isin(arriving.ids, there.ids)
    clashes = _clashes(arriving[is_known], there) if is_known.any() else ()
    rest = arriving[~is_known] if is_known.any() else arriving  # a large book is not copied needlessly
    is_erased = recognised(rest, erased, commit)
    new = rest[~is_erased] if is_erased.any() else rest
    set_aside = sum(name in struck for name in there.ids.tolist())
    return Arrival(new, len(there) - set_aside, set_aside, rest.ids[is_erased], clashes)


def refuse_clashes(names: Sequence[str], arrived: int) -> None:
    """Raise RefusedError if ids are in the book with other values."""
    if names:
        names = sorted(names)
        raise RefusedError(
            f"{len(names):,} of the {arrived:,} quotes have ids that are in the book with other values: "
            f"{', '.join(map(repr, names[:3]))}{', ...' if len(names) > 3 else ''}. Nothing was imported. "
            "Forget or erase the old ones first, or give the new ones other ids.",
            count=len(names),
            ids=names,
        )


def entry_counts(imported: int, repeated: int, refused: int, quarantined: int) -> dict[str, int]:
    """Return the counts of the ledger entry of an import, without zeros."""
    counts = {"imported": imported, "repeated": repeated, "refused": refused, QUARANTINED: quarantined}
    return {name: count for name, count in counts.items() if count or name == "imported"}


class ImportFilter:
    """Passes new quotes chunk by chunk and counts the others. Quotes with derived forwards are spilled to disk.

    Args:
        erased: all commitments to erased quotes.
        folder: for the spilled quotes; by default the one for temporary files.
    """

    def __init__(self, erased: Set[str], commit: Commit, *, folder: Path | None = None) -> None:
        self._erased, self._commit = erased, commit
        self._folder = folder
        self._slices: SliceSpill | None = None
        self.count = self.repeated = self.set_aside = 0
        self.erased: list[str] = []
        self.clashes: list[str] = []

    def filter(self, store: Reading, chunks: Iterable[Quotes]) -> Iterator[Quotes]:
        """Yield the new quotes of each chunk."""
        struck = store.struck()
        for chunk in chunks:
            arrival = classify(store, chunk, struck, self._erased, self._commit)
            self.count += len(chunk)
            self.repeated += arrival.repeated
            self.set_aside += arrival.set_aside
            self.erased += arrival.erased.tolist()
            self.clashes += arrival.clashes
            if len(arrival.new) and not self.clashes:  # after a clash nothing is added; the others are only counted
                self._spill_derived(arrival.new)
                yield arrival.new

    def refuse_without_forward(self, store: Reading, *, held: int) -> None:
        """Raise RefusedError if a slice of the book that got new quotes has no forward.

        Args:
            store: with the new quotes in it, after the ``held`` earlier ones.
        """
        if self._slices is None:
            return
        for chunk in store.quote_chunks() if held else ():
            old = chunk[:held]
            held -= len(old)
            self._slices.add(old[is_derived(old)], only_known=True)
            if not held:
                break
        for quotes in self._slices.parts():
            refitted(quotes, np.ones(len(quotes), bool))

    def _spill_derived(self, new: Quotes) -> None:
        derived = is_derived(new)
        if derived.any():
            from strikeout.quotes.spill import SliceSpill

            self._slices = self._slices or SliceSpill(self._folder)
            self._slices.add(new[derived])

    def __enter__(self) -> ImportFilter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._slices is not None:
            self._slices.close()


def _clashes(arriving: Quotes, there: Quotes) -> tuple[str, ...]:
    """Return the ids of arriving quotes that differ from the stored ones with the same ids."""
    first, second = arriving[np.argsort(arriving.ids)], there[np.argsort(there.ids)]
    found = np.zeros(len(first), bool)
    for name in COLUMNS:
        found |= getattr(first.contracts, name) != getattr(second.contracts, name)
    found |= (first.observed != second.observed) | (first.weight != second.weight)
    found |= ~((first.spread == second.spread) | (np.isnan(first.spread) & np.isnan(second.spread)))
    for name in first.labels.keys() & second.labels.keys():
        found |= first.labels[name].astype(str) != second.labels[name].astype(str)
    return tuple(first.ids[found].tolist())


def commitments(quotes: Quotes, commit: Commit, *, retained: Quotes) -> list[str]:
    """Return the commitments that a book stores for erased quotes, ``PER_QUOTE`` for each."""
    found, holders = [], _holders(_rows(retained[_may_equal(retained, quotes)]))
    for name, content, date in _rows(quotes):
        found.append(commit(ID, name))
        for guard in ((UNDATED, content) if date is None else (DATED, content + date), (ANY_DATE, content)):
            found += [commit(*guard), _commit_holders(guard, holders, commit)]
    return found


def _may_equal(retained: Quotes, quotes: Quotes) -> Mask:
    """Return which retained quotes have a price, strike and expiry of these: few enough to compare them one by one."""
    here, there = retained.contracts, quotes.contracts
    same = np.isin(retained.observed, quotes.observed)
    return same & np.isin(here.strike, there.strike) & np.isin(here.expiry, there.expiry)


def _guards(content: bytes, date: bytes | None) -> tuple[Guard, ...]:
    """Return what an erased quote with the content of this one may have committed to."""
    return ((ANY_DATE, content),) if date is None else ((DATED, content + date), (UNDATED, content))


def _holders(rows: Iterable[Row]) -> dict[Guard, list[bytes]]:
    """Return the ids of these quotes by each of their guards."""
    found: dict[Guard, list[bytes]] = {}
    for name, content, date in rows:
        for guard in _guards(content, date):
            found.setdefault(guard, []).append(name)
    return found


def _commit_holders(guard: Guard, holders: Mapping[Guard, Sequence[bytes]], commit: Commit) -> str:
    kind, content = guard
    names = [struct.pack("<I", len(name)) + name for name in sorted(holders.get(guard, ()))]
    return commit(HOLDERS, b"".join([kind.encode(), b"\0", content, *names]))


def recognised(quotes: Quotes, erased: Set[str], commit: Commit) -> Mask:
    """Return which of these quotes, none of them in the book, were erased before, given all commitments of a book."""
    if not erased:
        return np.zeros(len(quotes), bool)
    return np.array(
        [commit(ID, row[0]) in erased or bool(_matching(row, erased, commit)) for row in _rows(quotes)], bool
    )


def returned(quotes: Quotes, erased: Set[str], commit: Commit) -> Mask:
    """Return which quotes of a book were erased before, given all of its quotes and all of its commitments.

    A quote with the content of an erased one has not returned if it was in the book when the other one was erased.
    """
    if not erased:
        return np.zeros(len(quotes), bool)
    rows = _rows(quotes)
    matching = {number: found for number, row in enumerate(rows) if (found := _matching(row, erased, commit))}
    holders = _holders(rows[number] for number in matching)
    back = np.array([commit(ID, name) in erased for name, _, _ in rows], bool)
    for number, guards in matching.items():
        back[number] |= any(_commit_holders(guard, holders, commit) not in erased for guard in guards)
    return back


def _matching(row: Row, erased: Set[str], commit: Commit) -> list[Guard]:
    _, content, date = row
    return [guard for guard in _guards(content, date) if commit(*guard) in erased]


def _rows(quotes: Quotes) -> list[Row]:
    """Return id, contract and price, and date of each quote as bytes; the date is None if the quote has none."""
    c = quotes.contracts
    numbers = np.column_stack([c.forward, c.strike, c.expiry, c.discount, c.is_call, quotes.observed])
    dates = quotes.labels["date"].astype(str).tolist() if "date" in quotes.labels else [""] * len(quotes)
    return [
        (name.encode("utf-8", "surrogatepass"), struct.pack("<6d", *row), date.encode() if date else None)
        for name, row, date in zip(quotes.ids.tolist(), numbers.tolist(), dates, strict=True)
    ]


class How(TypedDict, total=False):
    """What importing takes besides quotes; see ``Book.import_quotes``."""

    quarantine: str | PathLike[str] | None
    quarantined: int
    reading: Mapping[str, str] | None
    reason: Why


class _NothingNew(Exception):  # noqa: N818 - not an error: it ends a transaction without an entry
    """No quote of the import is new."""


def import_chunks(
    snapshot: Snapshot,
    chunks: Iterable[Quotes],
    *,
    quarantine: str | PathLike[str] | None = None,
    quarantined: int = 0,
    reading: Mapping[str, str] | None = None,
    reason: Why = None,
) -> Imported:
    """Add the new quotes of all chunks with one chunk in memory at a time; see ``Book.import_chunks``."""
    touched = SetCommitment(snapshot.keyring)
    folder = next((file.parent for file in snapshot.session.store.files()), None)  # None for a book in memory
    imported, entry = 0, None
    arriving = ImportFilter(snapshot.erased, snapshot.commit, folder=folder)
    with arriving, suppress(_NothingNew), snapshot.session.writing(snapshot.position) as book:
        before = book.store.now.counts().retained
        imported = book.store.add_all(arriving.filter(book.store.now, chunks), on_added=touched.add)
        refuse_clashes(arriving.clashes, arriving.count)
        if not imported and quarantine is None:
            raise _NothingNew
        arriving.refuse_without_forward(book.store.now, held=before)
        book.record_file(quarantine)
        counts = entry_counts(imported, arriving.repeated, len(arriving.erased), quarantined)
        entry = book.enter("import", reason, counts=counts, commitment=str(touched), reading=reading)
    return Imported(
        entry=entry,
        imported=imported,
        repeated=arriving.repeated,
        set_aside=arriving.set_aside,
        erased=tuple(arriving.erased),
        held=snapshot.store.counts().retained,
    )


def arrival_of(snapshot: Snapshot, quotes: Quotes) -> Arrival:
    """Return which of these quotes are new, which the book has, and which it erased."""
    arrival = classify(snapshot.store, quotes, snapshot.struck, snapshot.erased, snapshot.commit)
    refuse_clashes(arrival.clashes, len(quotes))
    return arrival
