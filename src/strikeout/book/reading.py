"""What can be seen of a book: nothing here changes its quotes or parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import sqrt
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from strikeout.assurance.certificate import Certificate
from strikeout.book.audit import audit
from strikeout.book.export import as_json, as_quantlib
from strikeout.book.records import Position, Records
from strikeout.book.results import Audit, Comparison, Status, moved
from strikeout.book.select import held, named
from strikeout.book.spec import Asking
from strikeout.book.version import Version
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError, UsageError
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.weights import weights_of
from strikeout.store.entry import Entry
from strikeout.store.ledger import Head
from strikeout.wording import as_lines, many

Writer = Callable[[Path], Path]


class ReadingDesk:
    """A book and the verbs to look at it."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._last: tuple[Position, Calibration] | None = None

    def status(self) -> Status:
        """The book at a glance: what it holds, its calibration and whether that is current."""
        with self._records.store.reading():
            return self._status()

    def _status(self) -> Status:
        records = self._records
        ledger, counts = records.ledger(), records.store.counts()
        standing, groups = records.standing(), records.groups()
        return Status(
            book=records.name,
            held=counts.retained,
            set_aside=counts.struck,
            erased=sum(entry.counts.get("erased", 0) for entry in ledger),
            entries=len(ledger),
            root=ledger.root(),
            key=ledger.public or "",
            version=records.version(),
            is_current=records.is_current(),
            shards=records.store.shards(),
            footprints=None if standing is None else len(records.store.shards_with("footprints")),
            reference=None if standing is None else standing.entry,
            noise=0.0 if standing is None else standing.noise,
            groups=None if groups is None else len(groups.states),
            no_footprints=records.no_footprints(),
        )

    def log(self) -> tuple[Entry, ...]:
        """Every entry of the ledger, the first first.

        Raises:
            RefusedError: an entry cannot be read.
        """
        return self._records.ledger().entries

    def asking(self) -> Mapping[str, Any] | None:
        """How the book was calibrated last, also if an erasure removed the results; None before the first time."""
        return self._records.asking()

    def certificate(self, entry: int) -> Certificate:
        """The certificate of an entry.

        Raises:
            RefusedError: it has none, or an erasure has taken it away with the states it spoke of.
        """
        return self._records.certificate(entry)

    def quotes(self) -> Quotes:
        """The quotes the book holds; not those set aside."""
        return self._records.store.quotes()

    def matching(self, where: str, *, verb: str) -> tuple[int, int]:
        """Return how many quotes match a condition, and how many there are: to erase those set aside too.

        Raises:
            UsageError: the condition cannot be read.
            NothingMeantError: no quote matches.
        """
        counts = self._records.store.counts()
        if verb == "erase":
            return len(named(self._records.store, ids=None, where=where, verb=verb)), counts.retained + counts.struck
        return len(held(self._records.store, ids=None, where=where, verb=verb)), counts.retained

    def summary(self, *, one_value: str = "panel=None") -> str:
        """The book, its quotes and its calibration in a few lines of plain text.

        Args:
            one_value: how the reader asks for one latent parameter where there is one a date.
        """
        status = self.status()
        held = f"{many(status.held, 'quote')} held, {status.set_aside:,} set aside"
        lines = [f"book {status.book}: {held}, {many(status.entries, 'entry', 'entries')}"]
        version = status.version
        if version is not None:
            lines += [f"{version.model}, calibrated in entry {version.entry}: {version.termination}"]
            lines += [f"fitted from {version.fit_source.sentence}"]
            lines += [
                f"  {name:<18} {value:.6g} +- {version.standard_errors[name]:.2g}"
                for name, value in version.parameters.items()
            ]
            lines += [f"  {name:<18} {sentence}" for name, sentence in version.latent_facts(one_value=one_value)]
        return "\n".join([as_lines([*lines, status.sentence]), "", self.quotes().summary()])

    def verify(self, *, head: Head | None = None) -> Audit:
        """Checks the whole book: bytes, record, counts, states and parameters found anew, nothing erased come back.

        Args:
            head: of the ledger, kept elsewhere since: finds a ledger that was cut short or written anew.

        Raises:
            Nothing for what the book holds: what cannot be checked does not hold, with the reason.
        """
        with self._records.store.reading():  # one moment: what another process writes meanwhile is no fault
            return audit(self._records, head=head)

    def compare(self, other: ReadingDesk) -> Comparison:
        """This book beside another: the same state, the same parameters, how far apart.

        Raises:
            RefusedError: one of them is not calibrated, or not with the same parameters; it says which.
        """
        mine, theirs = self._records.version(), other._records.version()
        if mine is None or theirs is None:
            bare = [desk._called for desk, version in ((self, mine), (other, theirs)) if version is None]
            said = f"{bare[0]} is not" if len(bare) == 1 else "Neither book is"
            raise RefusedError(f"{said} calibrated yet. Calibrate first, then compare.", books=bare)
        if mine.parameters.keys() != theirs.parameters.keys():
            kinds = f"{self._called} with {mine.asked_in_words}, {other._called} with {theirs.asked_in_words}"
            raise RefusedError(f"The books are not calibrated alike ({kinds}): their parameters cannot be compared.")
        return Comparison(
            is_same_state=mine.state is not None and mine.state == theirs.state,
            is_same_parameters=dict(mine.parameters) == dict(theirs.parameters)
            and mine.plain_latent() == theirs.plain_latent(),
            is_current=(self._records.is_current(), other._records.is_current()),
            counts=(mine.count, theirs.count),
            held=(self._records.store.counts().retained, other._records.store.counts().retained),
            parameters={name: (value, theirs.parameters[name]) for name, value in mine.parameters.items()},
            apart=moved(mine.parameters, theirs.parameters, theirs.standard_errors),
        )

    def export(self, path: str | PathLike[str]) -> Path:
        """Writes the quotes held (.csv, .parquet), the calibration (.json), or Python for QuantLib (.py).

        A file of quotes is entered in the ledger, and the book remembers it: erasing takes it away too. A calibration
        says in its file whether it is of the quotes held now.

        Raises:
            UsageError: the ending is none of these, or the file cannot be written.
            RefusedError: the book is not calibrated, and its results are asked for.
        """
        target = Path(path)
        ending = target.suffix.lower()
        if ending in (".csv", ".parquet"):
            from strikeout.quotes.writing import write_quotes

            return self.hand_out(target, lambda: partial(write_quotes, self.quotes()))
        if ending not in (".json", ".py"):
            raise UsageError(f"{target.name}: exports are .csv, .parquet, .json or .py. Give the file one of them.")
        from strikeout.quotes.atomic_write import replace_file

        written = as_json if ending == ".json" else as_quantlib
        text = written(self._version(), book=self._records.name, is_current=self._records.is_current())
        return replace_file(target, lambda part: part.write_text(text, encoding="utf-8"))

    def hand_out(self, path: Path, prepare: Callable[[], Writer], *, what: str = "export") -> Path:
        """Writes a file that shows quotes; it is entered in the ledger and remembered, so that erasing takes it away.

        Args:
            prepare: does the work, before anything is locked, and gives back what only writes.

        Raises:
            UsageError: the file cannot be written; then nothing is entered.
            RefusedError: the book moved meanwhile.
        """
        seen, held = self._records.position(), self._records.store.counts().retained
        write = prepare()
        written: Path | None = None
        try:
            with self._records.writing(seen) as book:
                written = write(path)  # first: the book remembers the bytes that are there
                book.know_of(written)
                book.enter(what, None, counts={"exported": held})
        except BaseException:
            if written is not None:  # nobody would know of it
                written.unlink(missing_ok=True)
            raise
        return written

    def _version(self) -> Version:
        version = self._records.version()
        if version is None:
            raise RefusedError("The book is not calibrated yet. Calibrate it first.")
        return version

    def calibration(self) -> Calibration:
        """The current calibration in full, made anew, beside the quotes the book holds: to look at, plot and preview.

        Raises:
            RefusedError: the book is not calibrated, quotes came since, or other parameters are found than are kept.
        """
        found = self._current(self._records.position())
        if found.moments is None:
            return found
        plain = replace(found.settings, panel=None)  # with its quotes beside it, it could be asked for a panel
        return _in_price(replace(found, quotes=self.quotes(), moments=None, settings=plain))

    def _current(self, seen: Position) -> Calibration:
        """The calibration of the quotes held, found anew: what is kept of it are results, not what they rest on."""
        if self._last is not None and self._last[0] == seen:
            return self._last[1]
        with self._records.store.reading():
            version, moments = self._check_current(), self._records.moments()
            state = self._records.store.quotes() if moments is None else moments
        found = Asking.from_plain(version.asking).calibrate(state)
        if not version.agrees(found):
            raise RefusedError(
                "Calibrated anew, the book gives other parameters than it keeps: another build made them, or the book "
                "was changed. Run verify; if only the build differs, calibrate the book again."
            )
        self._last = (seen, found)
        return found

    def _check_current(self) -> Version:
        """The latest calibration, where it is of the quotes the book holds.

        Raises:
            RefusedError: there is none, or quotes came since.
        """
        version = self._version()
        if not self._records.is_current():
            raise RefusedError("Quotes came or went since the last calibration. Calibrate the book again first.")
        return version

    @property
    def _called(self) -> str:
        """What this book is called where it stands beside another."""
        return f"Book {self._records.name}"

    def _plans(self) -> tuple[Path, ...]:
        """Files beside the book that name quotes."""
        return ()


def _in_price(found: Calibration) -> Calibration:
    """With the RMSE that a calibration from quotes has: moments know only the one that weights have a part in."""
    weight, _ = weights_of(found.quotes, found.settings.weights)
    if (weight == weight[0]).all():
        return found
    errors = found.residuals[weight > 0.0]
    return replace(found, rmse=sqrt(float(np.add.reduce(errors * errors)) / len(errors)))
