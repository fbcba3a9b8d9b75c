"""Erasing: what goes and what stays, and a search whether it is gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.assurance.canonical import canonical
from strikeout.book.erasure_reach import COMPUTED_BACK, Reach, warnings_of
from strikeout.book.linearization import Standing
from strikeout.book.records import Snapshot, Transaction, page_of
from strikeout.book.reimport_guard import commitments
from strikeout.book.results import Erasure
from strikeout.book.select import LABELS, erased_labels, named, refuse_nothing
from strikeout.book.spans import Span
from strikeout.book.spec import given_numbers
from strikeout.book.state_store import Carried, MissingFootprints, clear, rows_of, state_of_shard
from strikeout.book.version import Version
from strikeout.quotes.forwards import Refit
from strikeout.quotes.quotes import Quotes
from strikeout.store.residue import Progress, needles_of, needles_of_integers, needles_of_numbers, needles_of_texts
from strikeout.store.residue_search import Search, search_book
from strikeout.store.store import Shelf
from strikeout.wording import agreeing, many

DERIVED: tuple[Shelf, ...] = ("plan", "request")
WITH_STATE: tuple[Shelf, ...] = (*DERIVED, "state")
STAYS = (
    "the entries of the ledger, which name no quote, and keyed commitments by which the quotes are recognised if they "
    "return",
)


def meant(records: Snapshot, *, ids: ArrayLike | None, where: str | None) -> tuple[Quotes, Quotes]:
    """The quotes to erase: those held, and those set aside.

    Raises:
        UsageError: not exactly one of ``ids`` and ``where`` is given, or the condition cannot be read.
        UnknownIdError: an id the book does not have, or one given twice.
        NothingMeantError: no quote is meant.
    """
    store = records.store
    there = named(store, ids=ids, where=where, verb="erase")
    refuse_nothing(len(there), verb="erase")
    struck = store.struck()
    aside = np.array([name in struck for name in there.ids.tolist()], bool)
    return there[~aside], there[aside]


def rehearsed(
    records: Snapshot,
    held: Quotes,
    aside: Quotes,
    *,
    reach: Reach,
    refits: Sequence[Refit] = (),
    is_remade: bool | None = None,
) -> Erasure:
    """What erasing these quotes removes, and what it cannot; nothing is changed.

    Args:
        is_remade: whether the book is calibrated without them; None if that is not known yet.
    """
    count, span = len(held) + len(aside), reach.span
    gone = [f"{many(count, 'row')}: contract, price, weight, spread, labels and ids"]
    who = f"{len(held):,} of them" if len(aside) else many(len(held), "quote")
    gone += [f"{who} from the {_made_anew(records, len(held), is_remade)}"] if len(held) else []
    gone += [f"their part in the forwards of {len(refits):,} (date, expiry), found anew"] if refits else []
    whole = len(reach.versions) - len(reach.kept)
    gone += [f"the results of {reach.which} they were part of ({whole:,})"] if whole else []
    states = sum(version.state is not None for version in reach.kept)
    gone += [f"the digest of every earlier state they were part of ({states:,})"] if states else []
    paths = sum(bool(version.latent) for version in reach.kept)
    gone += [f"the latent path of every earlier calibration they were part of ({paths:,})"] if paths else []
    errors = sum(_measured(version, span) for version in records.versions if not reach.removes(version))
    gone += [f"how far off moments were, measured with them (of {many(errors, 'calibration')})"] if errors else []
    issued = len(_issued(records, span))
    gone += [f"every certificate issued while they were in the book ({issued:,})"] if issued else []
    gone += _footprints_gone(records, held, aside, is_remade)
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
        warnings=warnings_of(records, held, aside, reach),
        results_kept=len(reach.kept),
    )


def take_away(records: Snapshot, book: Transaction, held: Quotes, aside: Quotes, *, reach: Reach) -> None:
    """Removes every byte of these quotes that the book holds, and condemns the files that do; commitments stay."""
    store, span = book.store, reach.span
    standing = records.linearization
    why = records.no_footprints if standing is None else MissingFootprints.ERASED
    gone = [*held.ids.tolist(), *aside.ids.tolist()]
    everything = store.quotes(struck=None)
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
        elif _measured(version, span):
            book.keep(version.without_error())
    # The current state knows nothing of quotes set aside; of those held it is made anew.
    for shelf in WITH_STATE if len(held) else DERIVED:
        for name in store.pages(shelf):
            store.remove(shelf, name)
    is_known = knows(records, standing, held, aside)
    carried = []
    if standing is not None and not is_known:
        carried = [Carried.of(store, standing, shard) for shard in sorted(set(store.shards_of(gone).values()))]
    store.erase(gone)
    if is_known:
        clear(store, why=why)
    for one in carried:
        assert standing is not None, "where nothing is kept, nothing is carried"
        one.put_back(store, standing)
    store.put("setting", LABELS, canonical(sorted({*held.labels, *aside.labels, *erased_labels(store)})))
    book.condemn(reach.files)


@dataclass(frozen=True, eq=False)
class LeftBehind:
    """What quotes leave behind in a book: their footprints, and the words of every state they are part of."""

    footprints: NDArray[np.int64]
    words: NDArray[np.int64]


def left_behind(records: Snapshot, held: Quotes, aside: Quotes) -> LeftBehind:
    """What the book keeps of these quotes beside them; read before they are erased, to look for it afterwards."""
    standing, store = records.linearization, records.store
    names = {*held.ids.tolist(), *aside.ids.tolist()}
    rows: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    words: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    groups = records.groups
    if groups is not None:
        words.append(groups.words())
    if standing is not None:
        words += [state.words.ravel() for state in (standing.equations, standing.start) if state is not None]
        for shard in sorted(set(store.shards_of(sorted(names)).values())):
            kept, state = rows_of(store, standing, shard), state_of_shard(store, standing, shard)
            if kept is not None:
                here = np.array([name in names for name in store.members(shard)], bool) & kept.has
                rows.append(kept.at(np.flatnonzero(here)).ravel())
            words += [] if state is None else [state.words.ravel()]
    return LeftBehind(np.concatenate(rows), np.concatenate(words).view(np.int64))


def residue(
    records: Snapshot,
    held: Quotes,
    aside: Quotes,
    *,
    reach: Reach,
    files: Iterable[Path] = (),
    refits: Sequence[Refit] = (),
    left: LeftBehind | None = None,
    progress: Progress | None = None,
) -> Search:
    """Search the book, and files it wrote that are still there, for what is left of these quotes.

    Args:
        reach: what the erasure reached: the results of calibrations it removed must be gone too.
        files: outside the book, that may hold copies and are there.
        refits: the slices whose forwards rested on them: what these were before must be gone too.
        left: what they left behind, footprints and states: that must be gone too.

    Raises:
        BusyError: another process reads or writes the book.
        OSError: a file is there and cannot be read.
    """
    store = records.store
    retained = store.quotes(struck=None)
    needles = needles_of(held, retained=retained) | needles_of(aside, retained=retained)
    needles |= needles_of_texts("expiry in a name", sorted(reach.expiries))
    if refits:
        needles |= needles_of_numbers("derived forward", [refit.forward[0] for refit in refits], retained=retained)
        needles |= needles_of_numbers("derived discount", [refit.discount[0] for refit in refits], retained=retained)
    given = given_numbers(records.asking)  # by a person: what is asked for is no trace
    stay = {number for version in records.versions for number in version.numbers()} | given
    results = {number for version in reach.versions if reach.removes(version) for number in version.numbers()}
    needles |= needles_of_numbers("result", sorted(results - stay), retained=retained)
    if left is not None:
        everybody = left_behind(records, retained, retained[:0])  # what is known of those that stay proves nothing
        needles |= needles_of_integers("footprint", left.footprints, retained=everybody.footprints)
        needles |= needles_of_integers("state", left.words, retained=everybody.words)
    gone = [*held.ids.tolist(), *aside.ids.tolist()]
    return search_book(store, needles, erased=gone, files=files, progress=progress)


def knows(records: Snapshot, standing: Standing | None, held: Quotes, aside: Quotes) -> bool:
    """Whether what the book keeps beside its quotes knows of these: in a state, or in the reference it is taken at."""
    if standing is None:
        return True  # there is nothing to keep up
    struck = records.struck
    return bool(len(held)) or any(struck[name] > standing.entry for name in aside.ids.tolist())


def _made_anew(records: Snapshot, count: int, is_remade: bool | None) -> str:
    """What so many quotes are taken from, and what becomes of it."""
    them = agreeing(count, "it", "them")
    if records.version is None:
        return "book, which was never calibrated"
    if not records.is_current:
        return "book, whose calibration was not current and stays so"
    if is_remade is None:
        return f"calibration, which is made anew without {them} where the rest gives one"
    if is_remade:
        return f"calibration, which is made anew without {them}"
    return "calibration, and none is made anew: what is left gives none. The book has no current one"


def _footprints_gone(records: Snapshot, held: Quotes, aside: Quotes, is_remade: bool | None) -> list[str]:
    standing = records.linearization
    if standing is None:
        return []
    if not knows(records, standing, held, aside):
        return ["their footprints, if any are kept"]
    again = "the next calibration takes them anew"
    if is_remade or (is_remade is None and len(held) and records.is_current):
        again = "they are taken anew without them" + ("" if is_remade else ", with the calibration")
    return [f"every footprint and state, taken at a reference these quotes had a part in; {again}"]


def _measured(version: Version, span: Span) -> bool:
    """Return whether the error of a calibration's source was measured on quotes that are erased."""
    source = version.fit_source
    return source.error is not None and (source.entry is None or source.entry in span)


def _issued(records: Snapshot, span: Span) -> list[str]:
    """The pages of certificates that were issued while the quotes had a part in what the book computed."""
    return [name for name in records.store.pages("certificate") if int(name) in span]
