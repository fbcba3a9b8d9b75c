"""What erasing quotes removes from a book, what it cannot remove, and the search for what is left.

A number that was fitted to a quote can reveal it: at the old optimum the score of all quotes is zero, so the score of
the retained quotes is minus the row of the erased quote times its residual, and the book holds the retained quotes. For
a reason that is about the data, an erasure therefore removes every calibration that included the quotes; the keyed
digest in the ledger stays. For other reasons results are kept, and the erasure reports that quotes can be computed
back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.canonical import canonical
from strikeout.assurance.state_codec import words_of
from strikeout.book.import_quotes import commitments
from strikeout.book.known_files import Digests, changed
from strikeout.book.linearization import BookLinearization
from strikeout.book.records import Snapshot, Transaction, Why, as_reason, page_of
from strikeout.book.results import Erasure
from strikeout.book.select import LABELS, check_all, erased_labels, is_encrypted, named, refuse_nothing
from strikeout.book.spec import given_numbers
from strikeout.book.state_store import MissingFootprints, SavedShard, clear_footprints, stored_rows, stored_state
from strikeout.book.version import Version
from strikeout.errors import RefusedError
from strikeout.kernels.arrays import Integers, Words
from strikeout.models.expiries import is_of_expiry, label
from strikeout.quotes.forwards import Refit
from strikeout.quotes.quotes import Quotes
from strikeout.store.entry import FIRST_DATE, FIRST_RESULT, LAST_DATE, LAST_RESULT, SOURCE, Entry, ReasonCode
from strikeout.store.residue import (
    Progress,
    Search,
    needles_of,
    needles_of_integers,
    needles_of_numbers,
    needles_of_texts,
    search_book,
)
from strikeout.store.store import PageKind
from strikeout.text import Argument, agreeing, many, printable

# Reasons that are about the data: the quotes must not be found, whatever else is lost.
ABOUT_DATA = frozenset({ReasonCode.LICENCE, ReasonCode.SUBJECT_REQUEST})
DERIVED: tuple[PageKind, ...] = ("plan", "request")
WITH_STATE: tuple[PageKind, ...] = (*DERIVED, "state")
MOST_SOURCES, MOST_LETTERS = 20, 40  # that an entry names, and of a name
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
STAYS = (
    "the entries of the ledger, which name no quote, and keyed commitments by which the quotes are recognised if they "
    "return",
)
COMPUTED_BACK = "from these and the retained quotes, the erased quotes can be computed back"
FILES_ELSEWHERE = "files and backups that the book has no record of, such as the ones the quotes were imported from"
EDITED = "the book did not write its present contents. Delete it if it contains the quotes"
NOT_FOUND = "the book wrote it with quotes in it, and it is not there now. If it was moved, delete it there"
RESULTS_ELSEWHERE = (
    "results that left the book while the quotes were in it, such as certificates, exports, reports, copies of the "
    f"book: {COMPUTED_BACK}"
)


@dataclass(frozen=True)
class Span:
    """Entries of the ledger from ``first`` up to but not including ``end``."""

    first: int
    end: int

    def __contains__(self, entry: object) -> bool:
        return isinstance(entry, int) and self.first <= entry < self.end

    def to_counts(self) -> dict[str, int]:
        """Return the counts by which the entry of an erasure records which calibrations it removed."""
        return {FIRST_RESULT: self.first, LAST_RESULT: self.end - 1}


def removed_versions(entries: Iterable[Entry]) -> tuple[Span, ...]:
    """Return the entries whose calibrations erasures removed, as the ledger records them."""
    return tuple(
        Span(entry.counts[FIRST_RESULT], entry.counts[LAST_RESULT] + 1)
        for entry in entries
        if FIRST_RESULT in entry.counts
    )


@dataclass(frozen=True)
class Reach:
    """What erasing some quotes reaches beside their rows.

    ``span`` are the entries whose numbers may depend on them, ``versions`` the calibrations the book has of these, and
    ``fitted`` how many there were: earlier erasures may have removed some. The calibrations of ``removed`` are removed
    as a whole; of the others the results stay. ``expiries`` are the labels of expiries that no other quote has.
    ``files`` contain quotes and are deleted; ``changed`` no longer contain what the book wrote, and stay.
    """

    span: Span
    versions: tuple[Version, ...]
    fitted: int
    removed: Span | None
    expiries: frozenset[str]
    files: Digests
    changed: tuple[Path, ...]
    missing: tuple[Path, ...] = ()  # copies the book wrote that are not where it wrote them

    @property
    def which(self) -> str:
        """Which calibrations are removed as a whole."""
        return "calibrations with parameters of an erased expiry" if self.kept else "every earlier calibration"

    @property
    def beyond(self) -> tuple[str, ...]:
        """What no erasure reaches."""
        edited = [f"the file {path}: {EDITED}" for path in self.changed]
        moved = [f"the file {path}: {NOT_FOUND}" for path in self.missing]
        return (*([RESULTS_ELSEWHERE] if self.fitted else []), FILES_ELSEWHERE, *edited, *moved)

    @property
    def kept(self) -> tuple[Version, ...]:
        """The calibrations whose results stay, although they were fitted to erased quotes."""
        return tuple(version for version in self.versions if not self.removes(version))

    def removes(self, version: Version) -> bool:
        """Return whether a calibration is removed as a whole."""
        return self.removed is not None and version.entry in self.removed


def select_quotes(
    records: Snapshot, *, ids: ArrayLike | None, where: str | None, all_quotes: bool = False
) -> tuple[Quotes, Quotes]:
    """Return the quotes to erase: those held, and those set aside."""
    there = named(records.store, ids=ids, where=where, verb="erase")
    refuse_nothing(len(there), verb="erase")
    counts = records.store.counts()
    check_all(len(there), counts.retained + counts.struck, where=where, all_quotes=all_quotes, verb="erase")
    aside = np.array([name in records.struck for name in there.ids.tolist()], bool)
    return there[~aside], there[aside]


def recorded_labels(records: Snapshot, held: Quotes, aside: Quotes) -> dict[str, int]:
    """Return what the ledger records of erased quotes besides their number: by source, and the first and last date.

    Nothing for fewer quotes than the smallest erasure of the book, and sources with fewer are not named: the date and
    the source of a single quote would describe it. Nothing in an encrypted book, whose labels are encrypted.
    """
    smallest = records.smallest_erasure
    if len(held) + len(aside) < smallest or is_encrypted(records.store):
        return {}
    found: dict[str, int] = {}
    for part in (held, aside):
        for name in part.labels["source"].astype(str).tolist() if "source" in part.labels else ():
            found[name] = found.get(name, 0) + 1
    named = {f"{SOURCE}{printable(name)[:MOST_LETTERS]}": count for name, count in sorted(found.items())}
    counts = {name: count for name, count in named.items() if count >= smallest} if len(named) <= MOST_SOURCES else {}
    dates = [str(day) for part in (held, aside) if "date" in part.labels for day in part.labels["date"].tolist()]
    days = sorted(int(day.replace("-", "")) for day in dates if ISO_DATE.fullmatch(day))
    return counts | ({FIRST_DATE: days[0], LAST_DATE: days[-1]} if len(days) >= smallest else {})


def reach_of(records: Snapshot, held: Quotes, aside: Quotes, *, reason: Why, plans: Sequence[Path] = ()) -> Reach:
    """Return what erasing these quotes for this reason reaches.

    Args:
        plans: files beside the book that name quotes.
    """
    span, known, digest = _span(records, held, aside), records.files, records.file_digest
    versions = tuple(version for version in records.versions if version.entry in span)
    why, expiries = as_reason(reason), _expiries(records, versions, held, aside)
    is_about_data = why is not None and why.code in ABOUT_DATA
    if is_about_data:
        _refuse_given(records, versions)
    present = {str(path.absolute()): text for path in plans if (text := digest(path)) is not None}
    going = versions if is_about_data else _named_by(expiries, versions)
    return Reach(
        span=span,
        versions=versions,
        fitted=sum(entry.number in span and "results" in entry.digests for entry in records.ledger),
        removed=Span(span.first, going[-1].entry + 1) if going else None,
        expiries=expiries,
        files={
            **digest.are_there({**known.condemned, **known.written}),
            **{name: text for name, text in present.items() if text},
        },
        changed=changed(known.written, digest),
        missing=tuple(path for path in map(Path, sorted(known.written)) if not path.exists()),
    )


def rehearse(
    records: Snapshot,
    held: Quotes,
    aside: Quotes,
    *,
    reach: Reach,
    refits: Sequence[Refit] = (),
    is_refitted: bool | None = None,
) -> Erasure:
    """Return what erasing these quotes removes and what it cannot; nothing is changed.

    Args:
        is_refitted: whether the book is calibrated without them; None if that is not decided yet.
    """
    count, span = len(held) + len(aside), reach.span
    gone = [f"{many(count, 'row')}: contract, price, weight, spread, labels and ids"]
    who = f"{len(held):,} of them" if len(aside) else many(len(held), "quote")
    gone += [f"{who} from the {_refitted(records, len(held), is_refitted)}"] if len(held) else []
    gone += [f"their part in the forwards of {len(refits):,} (date, expiry), which are refitted"] if refits else []
    whole = len(reach.versions) - len(reach.kept)
    gone += [f"the results of {reach.which} they were part of ({whole:,})"] if whole else []
    states = sum(version.state is not None for version in reach.kept)
    gone += [f"the digest of every earlier state they were part of ({states:,})"] if states else []
    paths = sum(bool(version.latent) for version in reach.kept)
    gone += [f"the latent path of every earlier calibration they were part of ({paths:,})"] if paths else []
    errors = sum(_is_measured(version, span) for version in records.versions if not reach.removes(version))
    gone += [f"the error of moments that was measured with them (of {many(errors, 'calibration')})"] if errors else []
    issued = len(_issued(records, span))
    gone += [f"every certificate issued while they were in the book ({issued:,})"] if issued else []
    gone += _footprints_removed(records, held, aside, is_refitted)
    gone += [f"the file {path}" for path in sorted(reach.files)]
    stays: tuple[str, ...] = STAYS
    if reach.kept:
        stays = (
            f"parameters, standard errors and RMSE of {many(len(reach.kept), 'earlier calibration')} they were part "
            f"of: {COMPUTED_BACK}. The reasons licence and subject-request remove these too",
            *STAYS,
        )
    return Erasure(
        None,
        count,
        len(held),
        tuple(gone),
        stays,
        beyond=reach.beyond,
        warnings=_warnings(records, held, aside, reach),
        results_kept=len(reach.kept),
    )


def remove_quotes(records: Snapshot, book: Transaction, held: Quotes, aside: Quotes, *, reach: Reach) -> None:
    """Remove every byte of these quotes from the book and list the files to delete; commitments stay."""
    store, span = book.store, reach.span
    linearization = records.linearization
    why = records.no_footprints if linearization is None else MissingFootprints.ERASED
    gone = [*held.ids.tolist(), *aside.ids.tolist()]
    everything = store.now.quotes(struck=None)
    stays = everything[~np.isin(everything.ids, gone)]
    kept = [text for some in (held, aside) for text in commitments(some, records.commit, retained=stays)]
    store.put("erased", page_of(book.number), canonical(sorted(kept)))
    for name in _issued(records, span):
        store.remove("certificate", name)
    for version in records.versions:
        if reach.removes(version):
            book.remove(version, expiries=reach.expiries)
        elif version.entry in span:
            book.keep(version.without_state())
        elif _is_measured(version, span):
            book.keep(version.without_error())
    # The current state does not include quotes set aside; without those held it is computed again.
    for kind in WITH_STATE if len(held) else DERIVED:
        for name in store.now.pages(kind):
            store.remove(kind, name)
    is_stale = depends_on(records, linearization, held, aside)
    saved = []
    if linearization is not None and not is_stale:
        shards = sorted(set(store.now.shards_of(gone).values()))
        saved = [SavedShard.of(store.now, linearization, shard) for shard in shards]
    store.erase(gone)
    if is_stale:
        clear_footprints(store, why=why)
    for shard in saved:
        assert linearization is not None, "shards are saved only if they have footprints"
        shard.write(store, linearization)
    store.put("setting", LABELS, canonical(sorted({*held.labels, *aside.labels, *erased_labels(store.now)})))
    book.keep_files(book.files.with_condemned(reach.files))


@dataclass(frozen=True, eq=False)
class DerivedNumbers:
    """Numbers computed from quotes: their footprints, and the words of every state they are part of."""

    footprints: Integers
    words: Integers


def derived_numbers(records: Snapshot, held: Quotes, aside: Quotes) -> DerivedNumbers:
    """Return what the book has computed from these quotes; read before they are erased, to search for it afterwards."""
    linearization, store = records.linearization, records.store
    names = {*held.ids.tolist(), *aside.ids.tolist()}
    rows: list[Integers] = [np.empty(0, np.int64)]
    words: list[Words] = [np.empty(0, np.uint64)]
    if linearization is not None:
        states = (linearization.system, linearization.start)
        words += [words_of(state.blocks).ravel() for state in states if state is not None]
        words.append(words_of(linearization.clusters).ravel())
        for shard in sorted(set(store.shards_of(sorted(names)).values())):
            kept, state = stored_rows(store, linearization, shard), stored_state(store, linearization, shard)
            if kept is not None:
                here = np.array([name in names for name in store.members(shard)], bool) & kept.has
                rows.append(kept.at(np.flatnonzero(here)).ravel())
            words += [] if state is None else [words_of(state.blocks).ravel()]
    return DerivedNumbers(np.concatenate(rows), np.concatenate(words).view(np.int64))


def search_residue(
    records: Snapshot,
    held: Quotes,
    aside: Quotes,
    *,
    reach: Reach,
    derived: DerivedNumbers,
    files: Iterable[Path] = (),
    refits: Sequence[Refit] = (),
    progress: Progress | None = None,
) -> Search:
    """Search the book, and files it wrote that could not be deleted, for what is left of these quotes.

    Args:
        records: the book after the erasure.
        reach: what the erasure reached: the results of calibrations it removed are searched for too.
        derived: what the book had computed from the quotes: searched for too.
        files: outside the book, that exist and may contain copies.
        refits: the slices whose forwards depended on them: the earlier forwards are searched for too.
    """
    retained = records.store.quotes(struck=None)
    needles = needles_of(held, retained=retained) | needles_of(aside, retained=retained)
    needles |= needles_of_texts("expiry in a name", sorted(reach.expiries))
    if refits:
        needles |= needles_of_numbers("derived forward", [refit.forward[0] for refit in refits], retained=retained)
        needles |= needles_of_numbers("derived discount", [refit.discount[0] for refit in refits], retained=retained)
    given = given_numbers(records.options)  # by a person: a setting is not a trace
    stay = {number for version in records.versions for number in version.numbers()} | given
    results = {number for version in reach.versions if reach.removes(version) for number in version.numbers()}
    needles |= needles_of_numbers("result", sorted(results - stay), retained=retained)
    others = derived_numbers(records, retained, retained[:0])  # numbers of retained quotes are not traces
    needles |= needles_of_integers("footprint", derived.footprints, retained=others.footprints)
    needles |= needles_of_integers("state", derived.words, retained=others.words)
    gone = [*held.ids.tolist(), *aside.ids.tolist()]
    return search_book(records.session.store, needles, erased=gone, files=files, progress=progress)


def depends_on(records: Snapshot, linearization: BookLinearization | None, held: Quotes, aside: Quotes) -> bool:
    """Return whether stored footprints depend on these quotes: through a state, or through their reference."""
    if linearization is None:
        return True  # there is nothing to preserve
    return bool(len(held)) or any(records.struck[name] > linearization.entry for name in aside.ids.tolist())


def _span(records: Snapshot, held: Quotes, aside: Quotes) -> Span:
    """Return the entries whose numbers may depend on these quotes, held or set aside.

    Quotes set aside count up to the entry that struck them out. A step still depends on them if its reference was
    fitted while they were held, since parameters and certificate of the step reveal the reference; and if it is the
    step that struck them out, since its error was estimated with them.
    """
    struck = records.struck
    left = {struck[name] for name in aside.ids.tolist()}
    end = len(records.ledger) + 1 if len(held) else max(left)
    span = Span(_arrival(records, [*held.ids.tolist(), *aside.ids.tolist()]), end)
    steps = [version for version in records.versions if version.step is not None]
    dependent = [one.entry for one in steps if one.entry in left or (one.step or {})["reference"] in span]
    return Span(span.first, max([span.end, *(entry + 1 for entry in dependent)]))


def _arrival(records: Snapshot, names: list[str]) -> int:
    """Return the first entry that can have added one of these quotes.

    A store has quotes in the order in which they were added, so at least as many were added before a quote as are
    stored before it; more, if some of them are erased.
    """
    store, before = records.store, 0
    first, wanted = min(store.shards_of(names).values()), set(names)
    for shard, count in store.shards().items():
        if shard == first:
            before += next(place for place, name in enumerate(store.members(shard)) if name in wanted)
            break
        before += count
    added = 0
    for entry in records.ledger:
        added += entry.counts.get("imported", 0)
        if added > before:
            return entry.number
    return 1


def _warnings(records: Snapshot, held: Quotes, aside: Quotes, reach: Reach) -> tuple[str, ...]:
    """Return a warning if each erased quote can be computed back from earlier results, because they are so few."""
    least, of = _smallest_group(held, aside, reach)
    if not reach.fitted or least >= records.smallest_erasure:
        return ()
    return (
        f"{many(least, 'quote')}{of} {agreeing(least, 'is', 'are')} erased, fewer than the smallest erasure of this "
        f"book, {records.smallest_erasure:,}: with earlier results they may be computed back. Collect the quotes to be "
        "erased, and erase them together",
    )


def _smallest_group(held: Quotes, aside: Quotes, reach: Reach) -> tuple[int, str]:
    """Return the smallest number of erased quotes that share a parameter of their own, and what they have in common.

    A panel has one parameter per group, a model of smiles some per expiry: each is an equation for its own quotes.
    """
    least, of = len(held) + len(aside), ""
    for by in sorted({version.panel for version in reach.versions if version.panel is not None}):
        values = [*held.labels.get(by, ()), *aside.labels.get(by, ())]
        count = min(Counter(map(str, values)).values(), default=least)
        least, of = (count, f" of one {by}") if count < least else (least, of)
    if any(is_of_expiry(name) for version in reach.versions for name in version.parameters):
        years = [*held.contracts.expiry.tolist(), *aside.contracts.expiry.tolist()]
        count = min(Counter(years).values())
        least, of = (count, " of one expiry") if count < least else (least, of)
    return least, of


def _expiries(records: Snapshot, versions: tuple[Version, ...], held: Quotes, aside: Quotes) -> frozenset[str]:
    """Return the labels of expiries that only erased quotes have; empty if no calibration has parameters by expiry."""
    if not any(is_of_expiry(name) for version in versions for name in version.parameters):
        return frozenset()
    whole, gone = records.store.quotes(struck=None), {*held.ids.tolist(), *aside.ids.tolist()}
    is_gone = np.array([name in gone for name in whole.ids.tolist()], bool)
    going, staying = (np.unique(whole.contracts.expiry[rows]).tolist() for rows in (is_gone, ~is_gone))
    return frozenset(map(label, going)) - frozenset(map(label, staying))


def _named_by(expiries: frozenset[str], versions: tuple[Version, ...]) -> tuple[Version, ...]:
    """Return the calibrations up to the last that has parameters of these expiries."""
    ends = tuple(expiries)
    last = max((v.entry for v in versions if any(name.endswith(ends) for name in v.parameters)), default=0)
    return tuple(version for version in versions if version.entry <= last)


def _refuse_given(records: Snapshot, versions: tuple[Version, ...]) -> None:
    """Raise RefusedError if the book continues with settings that are results of these calibrations."""
    given = given_numbers(records.options)
    computed = {number for version in versions for number in {*version.numbers()} - given_numbers(version.options)}
    if given & computed:
        raise RefusedError(
            "The book is calibrated with starts, bounds or fixed parameters that are results of an earlier "
            "calibration, which included the quotes. Calibrate it with others first, for example ",
            Argument("starts", 4),
            ".",
            count=len(given & computed),
        )


def _refitted(records: Snapshot, count: int, is_refitted: bool | None) -> str:
    """Return from what ``count`` quotes are removed, and what becomes of it."""
    them = agreeing(count, "it", "them")
    if records.version is None:
        return "book, which was never calibrated"
    if not records.is_current:
        return "book, whose calibration was not current and stays so"
    if is_refitted is None:
        return f"calibration, which is refitted without {them} if the retained quotes determine one"
    if is_refitted:
        return f"calibration, which is refitted without {them}"
    return "calibration; the retained quotes determine none, so the book has no current one"


def _footprints_removed(records: Snapshot, held: Quotes, aside: Quotes, is_refitted: bool | None) -> list[str]:
    linearization = records.linearization
    if linearization is None:
        return []
    if not depends_on(records, linearization, held, aside):
        return ["their footprints, if any are stored"]
    again = "the next calibration computes them again"
    if is_refitted or (is_refitted is None and len(held) and records.is_current):
        again = "they are computed again without them" + ("" if is_refitted else ", with the calibration")
    return [f"every footprint and state, since their reference was fitted to these quotes; {again}"]


def _is_measured(version: Version, span: Span) -> bool:
    """Return whether the error of a calibration's source was measured on quotes that are erased."""
    source = version.fit_source
    return source.error is not None and (source.entry is None or source.entry in span)


def _issued(records: Snapshot, span: Span) -> list[str]:
    """Return the pages of certificates that were issued while computed numbers depended on the quotes."""
    return [name for name in records.store.pages("certificate") if int(name) in span]
