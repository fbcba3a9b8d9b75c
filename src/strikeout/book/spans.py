"""During which entries of the ledger quotes had a part in the numbers of a book."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from strikeout.book.records import Snapshot
from strikeout.quotes.quotes import Quotes
from strikeout.store.entry import Entry

FROM, TO = "results gone from", "results gone to"  # counts of the entry of an erasure that removed calibrations


@dataclass(frozen=True)
class Span:
    """Entries from ``first`` up to ``end``, which is not one of them: what was computed with these may know the quotes,
    and nothing else that the book keeps does."""

    first: int
    end: int

    def __contains__(self, entry: object) -> bool:
        return isinstance(entry, int) and self.first <= entry < self.end

    def to_counts(self) -> dict[str, int]:
        """As the entry of an erasure says which calibrations it removed."""
        return {FROM: self.first, TO: self.end - 1}


def span_of(records: Snapshot, held: Quotes, aside: Quotes) -> Span:
    """The entries during which some of these quotes, held or set aside, had a part in what the book computed.

    Quotes set aside leave with the entry that struck them out. A step still knows them if its reference was fitted
    while they were held, since parameters and certificate of the step give the reference away; and if it is the step
    that struck them out, since how far off it may be was judged with them.
    """
    struck = records.struck
    left = {struck[name] for name in aside.ids.tolist()}
    end = len(records.ledger) + 1 if len(held) else max(left)
    span = Span(_arrival(records, [*held.ids.tolist(), *aside.ids.tolist()]), end)
    steps = [version for version in records.versions if version.step is not None]
    knowing = [one.entry for one in steps if one.entry in left or (one.step or {})["reference"] in span]
    return Span(span.first, max([span.end, *(entry + 1 for entry in knowing)]))


def removed(entries: Iterable[Entry]) -> tuple[Span, ...]:
    """The entries whose calibrations erasures removed, as the ledger says."""
    return tuple(Span(entry.counts[FROM], entry.counts[TO] + 1) for entry in entries if FROM in entry.counts)


def _arrival(records: Snapshot, names: list[str]) -> int:
    """The first entry with which one of these quotes can have come.

    A store keeps quotes in the order they came, so at least as many came before a quote as are stored before it; more,
    if some of them are erased.
    """
    store, before = records.store, 0
    first, wanted = min(store.shards_of(names).values()), set(names)
    for shard, count in store.shards().items():
        if shard == first:
            before += next(place for place, name in enumerate(store.members(shard)) if name in wanted)
            break
        before += count
    came = 0
    for entry in records.ledger:
        came += entry.counts.get("imported", 0)
        if came > before:
            return entry.number
    return 1
