"""What erasing quotes reaches beside their rows, and what it does not reach.

A number that was fitted to a quote can give it away: at the old optimum the score of all quotes is zero, so that of the
quotes that stay is minus the row of the erased quote times its residual, and the book holds the quotes that stay. For a
reason that is about the data an erasure therefore removes every calibration the quotes had a part in; the keyed digest
in the ledger stays. For other reasons results are kept, and the erasure says that quotes can be computed back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strikeout.book.known_files import Digests, changed, digests_of
from strikeout.book.records import Snapshot, Why, as_reason
from strikeout.book.spans import Span, span_of
from strikeout.book.spec import given_numbers
from strikeout.book.version import Version
from strikeout.errors import RefusedError
from strikeout.models.expiries import is_of_expiry, label
from strikeout.quotes.quotes import Quotes
from strikeout.store.entry import ReasonCode
from strikeout.wording import Argument, agreeing, many

# Reasons that are about the data: the quotes must not be found, whatever else is lost.
ABOUT_DATA = frozenset({ReasonCode.LICENCE, ReasonCode.SUBJECT_REQUEST})
COMPUTED_BACK = "from these and the quotes that stay, the erased quotes can be computed back"
FILES_ELSEWHERE = "files and backups the book does not know of, such as the ones the quotes were imported from"
EDITED = "the book did not write what is there now. Delete it if it holds them"
NOT_FOUND = "the book wrote it with quotes in it, and it is not there now. If it was moved, delete it there"
RESULTS_ELSEWHERE = (
    "results that left the book while the quotes were in it, such as certificates, exports, reports, copies of the "
    f"book: {COMPUTED_BACK}"
)


@dataclass(frozen=True)
class Reach:
    """What erasing some quotes reaches beside their rows.

    ``span`` are the entries whose numbers may know them, ``versions`` the calibrations the book has of these, and
    ``fitted`` how many there were: earlier erasures may have removed some. The calibrations of ``removed`` go as a
    whole, of the others the results stay. ``expiries`` are the labels of those that no other quote has. ``files`` hold
    quotes and go, ``changed`` are not what the book wrote and stay.
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
        """Which calibrations go as a whole."""
        return "calibrations with parameters of an expiry that goes" if self.kept else "every earlier calibration"

    @property
    def beyond(self) -> tuple[str, ...]:
        """What no erasure reaches."""
        edited = [f"the file {path}: {EDITED}" for path in self.changed]
        moved = [f"the file {path}: {NOT_FOUND}" for path in self.missing]
        return (*([RESULTS_ELSEWHERE] if self.fitted else []), FILES_ELSEWHERE, *edited, *moved)

    @property
    def kept(self) -> tuple[Version, ...]:
        """The calibrations whose results stay, although they were fitted to quotes that go."""
        return tuple(version for version in self.versions if not self.removes(version))

    def removes(self, version: Version) -> bool:
        """Whether a calibration goes as a whole."""
        return self.removed is not None and version.entry in self.removed


def reach_of(records: Snapshot, held: Quotes, aside: Quotes, *, reason: Why, plans: Sequence[Path] = ()) -> Reach:
    """What erasing these quotes for this reason reaches.

    Args:
        plans: files beside the book that name quotes.

    Raises:
        RefusedError: results are to go, and the book is calibrated with some of them as settings.
    """
    span, known, digest = span_of(records, held, aside), records.files, records.file_digest
    versions = tuple(version for version in records.versions if version.entry in span)
    why, expiries = as_reason(reason), _expiries(records, versions, held, aside)
    is_about_data = why is not None and why.code in ABOUT_DATA
    if is_about_data:
        _refuse_given(records, versions)
    going = versions if is_about_data else _named_by(expiries, versions)
    return Reach(
        span=span,
        versions=versions,
        fitted=sum(entry.number in span and "results" in entry.digests for entry in records.ledger),
        removed=Span(span.first, going[-1].entry + 1) if going else None,
        expiries=expiries,
        files={**digest.are_there({**known.condemned, **known.written}), **digests_of(plans, digest)},
        changed=changed(known.written, digest),
        missing=tuple(path for path in map(Path, sorted(known.written)) if not path.exists()),
    )


def warnings_of(records: Snapshot, held: Quotes, aside: Quotes, reach: Reach) -> tuple[str, ...]:
    """Whether so few quotes go that whoever has results of before can compute each of them back."""
    least, of = _smallest_group(held, aside, reach)
    if not reach.fitted or least >= records.smallest_erasure:
        return ()
    return (
        f"{many(least, 'quote')}{of} {agreeing(least, 'goes', 'go')}, fewer than the smallest erasure of this book, "
        f"{records.smallest_erasure:,}: whoever has results of before may compute them back. Collect "
        "what is to be erased, and erase it together",
    )


def _smallest_group(held: Quotes, aside: Quotes, reach: Reach) -> tuple[int, str]:
    """How many quotes go that have a parameter of their own, at least; and what they have in common.

    A panel has one for every group, a model of smiles some for every expiry: each is an equation for its own quotes.
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
    """The labels of expiries that only quotes to be erased have; none unless a calibration has parameters by expiry."""
    if not any(is_of_expiry(name) for version in versions for name in version.parameters):
        return frozenset()
    whole, gone = records.store.quotes(struck=None), {*held.ids.tolist(), *aside.ids.tolist()}
    is_gone = np.array([name in gone for name in whole.ids.tolist()], bool)
    going, staying = (np.unique(whole.contracts.expiry[rows]).tolist() for rows in (is_gone, ~is_gone))
    return frozenset(map(label, going)) - frozenset(map(label, staying))


def _named_by(expiries: frozenset[str], versions: tuple[Version, ...]) -> tuple[Version, ...]:
    """The calibrations up to the last that has parameters of these expiries."""
    ends = tuple(expiries)
    last = max((v.entry for v in versions if any(name.endswith(ends) for name in v.parameters)), default=0)
    return tuple(version for version in versions if version.entry <= last)


def _refuse_given(records: Snapshot, versions: tuple[Version, ...]) -> None:
    """Raise RefusedError if the book goes on with settings that are results of these calibrations."""
    given = given_numbers(records.asking)
    computed = {number for version in versions for number in {*version.numbers()} - given_numbers(version.asking)}
    if given & computed:
        raise RefusedError(
            "The book is calibrated with starts, bounds or fixed parameters that are results of an earlier "
            "calibration, which knew the quotes. Calibrate it with others first, for example ",
            Argument("starts", 4),
            ".",
            count=len(given & computed),
        )
