"""Sessions, snapshots and transactions of a book: every change of the store has an entry of the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from strikeout.assurance.build import build_of, difference
from strikeout.assurance.canonical import canonical
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.state_codec import StateKind, decode_moments
from strikeout.book.known_files import PAGE as FILES
from strikeout.book.known_files import FileDigest, KnownFiles
from strikeout.book.linearization import BookLinearization
from strikeout.book.spec import CalibrationSpec, without_expiries
from strikeout.book.state_store import WHY, MissingFootprints
from strikeout.book.version import Version, perturbed
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.settings import Settings
from strikeout.errors import DamagedBookError, RefusedError, StrikeoutError
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.store.entry import Act, Entry, Reason
from strikeout.store.keyring import VARIABLE, Keyring
from strikeout.store.ledger import Ledger, LedgerReader
from strikeout.store.store import Reading, Store, Writing
from strikeout.text import many

Why = Reason | str | None
SHOWN = 10  # entries in a sentence
OPTIONS = "options"  # the setting with the options of a calibration whose results an erasure removed
SMALLEST = 12  # quotes of an erasure; docs/explanation/erasing.md explains the number
PERSONS = "persons"  # the count of an entry that sets how many persons a removal needs
SMALLEST_ERASURE = "smallest erasure"  # the count of the first entry that sets another number
QUARANTINED = "quarantined"  # the count of an import: rows that did not become quotes
CONTENTS = "contents"  # the digest by which an entry commits to everything the book contains after it
SECRET = "secret"  # the digest of the first entry that shows whether a key file is the book's own


@dataclass(frozen=True)
class Position:
    """How many entries the ledger of a book has, and the hash of the last."""

    number: int
    head: str


@dataclass(frozen=True)
class Session:
    """An open store with its secrets, a clock, and the name for entries."""

    store: Store
    keyring: Keyring
    clock: Callable[[], datetime]
    who: str
    reread: Callable[[], Keyring] | None = None  # reads the key file again
    reader: LedgerReader = field(default_factory=LedgerReader, compare=False, repr=False)

    def ledger(self) -> Ledger:
        """Return the ledger as it is now."""
        return self.reader.read(self.store.now.entries())

    def snapshot(self) -> Snapshot:
        """Return the book as it is now."""
        return Snapshot(self)

    def signing(self, ledger: Ledger) -> Keyring:
        """Return the keyring that can sign next, read again if another process has rotated the key."""
        known = {signer.public for signer in self.keyring.signers}
        is_due_elsewhere = ledger.public is not None and ledger.public not in known
        return self.reread() if is_due_elsewhere and self.reread is not None else self.keyring

    def commit(self, shard: str, data: bytes) -> str:
        """Return the keyed commitment to data that the record holds."""
        return self.keyring.commit(shard, data)

    @property
    def file_digest(self) -> FileDigest:
        """The keyed digest by which the book recognises a file."""
        return FileDigest(self.commit)

    @contextmanager
    def reading(self, seen: Position) -> Iterator[None]:
        """Read the book as it was seen, however much of it: no other process changes it in between."""
        with self.store.reading() as store:
            self._refuse_moved(self.reader.read(store.entries()), seen)
            yield

    @contextmanager
    def writing(self, seen: Position) -> Iterator[Transaction]:
        """Open one transaction on the book as it was seen; it must end with an entry."""
        with self.store.writing() as store:
            ledger = self.reader.read(store.now.entries())
            self._refuse_moved(ledger, seen)
            self._refuse_changed(store.now, ledger)
            transaction = Transaction(self, store, ledger)
            yield transaction
            assert transaction.contents == store.now.contents(), "a change without an entry in the ledger"

    def is_as_entered(self, store: Reading, entry: Entry) -> bool:
        """Return whether an entry of the ledger commits to the stored sums; see ``Store.faults``."""
        return entry.digests.get(CONTENTS) == self.commit(f"digest {CONTENTS}", store.contents().encode())

    def refuse_other_keys(self) -> None:
        """Raise if the keys are not those of this book."""
        try:
            ledger = self.ledger()
            recorded = ledger[1].digests.get(SECRET)
        except StrikeoutError:
            return  # `verify` reports a ledger that cannot be read
        if recorded != self.commit(f"digest {SECRET}", SECRET.encode()):
            raise RefusedError(
                "The key file is not this book's own, or the ledger was rewritten with other keys. Bring the "
                f"book's own key file back, or name it in {VARIABLE}.",
                book=name_of(ledger),
            )

    def _refuse_moved(self, ledger: Ledger, seen: Position) -> None:
        if position_of(ledger) != seen:
            raise RefusedError(
                f"The book had {many(seen.number, 'entry', 'entries')} when this began and has {len(ledger):,} "
                "now: another process changed it. Nothing was written. Try again.",
                found=len(ledger),
            )

    def _refuse_changed(self, store: Reading, ledger: Ledger) -> None:
        if len(ledger) and not self.is_as_entered(store, ledger.entries[-1]):
            raise DamagedBookError(
                f"What the book holds is not what entry {len(ledger)} of its ledger commits to: it was changed without "
                "its key. Nothing was written; run verify, and restore the book from a copy.",
                count=len(ledger),
            )


class Snapshot:
    """A book at one position of its ledger; everything is read once, when it is first used.

    A verb reads one snapshot, computes, and writes at the same position or not at all.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.store, self.keyring = session.store.now, session.keyring
        self.commit, self.file_digest = session.commit, session.file_digest

    @cached_property
    def ledger(self) -> Ledger:
        """The record of every change."""
        return self.session.ledger()

    @cached_property
    def position(self) -> Position:
        """The number of entries and the hash of the last."""
        return position_of(self.ledger)

    @property
    def name(self) -> str:
        """The beginning of the hash of the first entry, which no other book has."""
        return name_of(self.ledger)

    @property
    def next(self) -> int:
        """The number of the entry that a verb on this snapshot writes."""
        return len(self.ledger) + 1

    @cached_property
    def versions(self) -> tuple[Version, ...]:
        """Every calibration the book has, in the order they were made."""
        return tuple(self._read(page) for page in self.store.pages("calibration"))

    @cached_property
    def version(self) -> Version | None:
        """The latest calibration; None before the first."""
        if "versions" in self.__dict__:
            return self.versions[-1] if self.versions else None
        pages = self.store.pages("calibration")
        return self._read(pages[-1]) if pages else None

    def _read(self, page: str) -> Version:
        version = Version.from_plain(json.loads(self.store.page("calibration", page) or b""))
        if version.entry > len(self.ledger):  # the ledger was read before another process wrote this page
            raise RefusedError(
                f"The book had {many(len(self.ledger), 'entry', 'entries')} when this began and has a calibration of "
                f"entry {version.entry} now: another process changed it. Nothing was written. Try again.",
                found=version.entry,
            )
        return version

    @cached_property
    def options(self) -> Mapping[str, Any] | None:
        """How the book was calibrated last, also if an erasure removed the results; None before the first time."""
        kept = self.store.page("setting", OPTIONS)
        if kept is not None:
            found: Mapping[str, Any] = json.loads(kept)
            return found
        return None if self.version is None else self.version.options

    @cached_property
    def spec(self) -> CalibrationSpec:
        """How the book was calibrated last."""
        if self.options is None:
            raise RefusedError("The book is not calibrated yet. Calibrate it first.")
        return CalibrationSpec.from_plain(self.options)

    @property
    def settings(self) -> Settings:
        """The settings of the last calibration."""
        return self.spec.settings

    @property
    def noise(self) -> float:
        """The share by which footprints of the book are perturbed, also if it stores none now."""
        return perturbed(self.options or {})

    @property
    def smallest_erasure(self) -> int:
        """The number of quotes below which an erasure warns: a policy of the book, in its first entry."""
        return self.ledger[1].counts.get(SMALLEST_ERASURE, SMALLEST)

    @property
    def is_two_person(self) -> bool:
        """Whether quotes are struck out and erased only once a second person approved it: a policy in the ledger."""
        counts = (entry.counts for entry in reversed(self.ledger.entries) if PERSONS in entry.counts)
        return next(counts, {PERSONS: 1})[PERSONS] == 2

    @cached_property
    def is_current(self) -> bool:
        """Whether the latest calibration is of the quotes the book holds now."""
        version = self.version
        later = () if version is None else self.ledger.entries[version.entry :]
        return version is not None and not any(
            entry.counts.get("imported", 0) or entry.counts.get("forgotten", 0) for entry in later
        )

    def check_calibrated(self) -> Version:
        """Return the latest calibration."""
        if self.version is None:
            raise RefusedError("The book is not calibrated yet. Calibrate it first.")
        return self.version

    def check_current(self) -> Version:
        """Return the latest calibration, if it is of the quotes the book holds and is what its entry commits to.

        A calibration of another build is computed again: this build may round otherwise.
        """
        version = self.check_calibrated()
        if not self.is_current:
            raise RefusedError(
                "Quotes were added or removed since the last calibration. Calibrate the book again first."
            )
        is_recorded = not unrecorded(version, self.ledger, self.keyring)
        if self.moments is not None:
            is_recorded &= self.moments.digest() == version.state
        if not is_recorded or difference(version.build, build_of(version.model)):
            self.calibration  # noqa: B018  (raises if it is not the one that is kept)
        return version

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration of the quotes held, computed again; a book keeps its results only."""
        version = self.check_calibrated()
        if not self.is_current:
            self.check_current()
        found = CalibrationSpec.from_plain(version.options).calibrate(
            self.quotes if self.moments is None else self.moments
        )
        if not version.agrees(found):
            raise RefusedError(
                "Computed again, the book gives other parameters than it keeps: another build made them, or the book "
                "was changed. Run verify; if only the build differs, calibrate the book again."
            )
        return found

    @cached_property
    def quotes(self) -> Quotes:
        """The quotes held; not those set aside."""
        return self.store.quotes()

    @cached_property
    def struck(self) -> Mapping[str, int]:
        """The entry that set a quote aside, by id."""
        return self.store.struck()

    @property
    def set_aside(self) -> dict[int, Quotes]:
        """The quotes struck out and not erased, by the entry that struck them out."""
        by_entry: dict[int, list[str]] = {}
        for name, entry in self.struck.items():
            by_entry.setdefault(entry, []).append(name)
        return {entry: self.store.named(names) for entry, names in sorted(by_entry.items())}

    @cached_property
    def erased(self) -> frozenset[str]:
        """The commitments to what was erased."""
        pages = (self.store.page("erased", name) for name in self.store.pages("erased"))
        return frozenset(text for page in pages for text in json.loads(page or b"[]"))

    @cached_property
    def moments(self) -> Moments | None:
        """The moments of a book that is calibrated from moments; None of another book."""
        data = self.store.page("state", StateKind.MOMENTS.value)
        return None if data is None else decode_moments(data)

    @cached_property
    def linearization(self) -> BookLinearization | None:
        """The reference of the footprints and their sum; None if the book stores none."""
        data = self.store.page("state", StateKind.LINEARIZATION.value)
        return None if data is None else BookLinearization.from_bytes(data)

    @property
    def no_footprints(self) -> MissingFootprints | None:
        """Why the book stores no footprints; None if it stores some."""
        version = self.version
        if self.linearization is not None:
            return None
        if version is None:
            return MissingFootprints.NOT_CALIBRATED
        if version.options["through"] == "moments":
            return MissingFootprints.MOMENTS
        why = self.store.page("state", WHY)
        return MissingFootprints.LOST if why is None else MissingFootprints(why.decode())

    def certificate(self, entry: int) -> Certificate:
        """Return the certificate of an entry."""
        data = self.store.page("certificate", page_of(entry))
        if data is None:
            why = "an erasure removed its certificate" if self.ledger[entry].certificate else "it issued none"
            known = [int(page) for page in self.store.pages("certificate")]
            have = f" Entries that have one: {', '.join(map(str, known[-SHOWN:]))}." if known else ""
            raise RefusedError(f"Entry {entry} has no certificate: {why}.{have}", entry=entry, known=known)
        return Certificate.from_bytes(data)

    @cached_property
    def files(self) -> KnownFiles:
        """The recorded files outside the book that contain copies of its quotes."""
        return KnownFiles.from_bytes(self.store.page("setting", FILES))

    def is_as_entered(self, entry: Entry) -> bool:
        """Return whether an entry of the ledger commits to the stored sums."""
        return self.session.is_as_entered(self.store, entry)


class Transaction:
    """The changes of one transaction, which ends with one entry of the ledger."""

    def __init__(self, session: Session, store: Writing, ledger: Ledger) -> None:
        self._session, self.store, self._ledger = session, store, ledger
        self.number = len(ledger) + 1  # of the entry this will become
        self.contents = ""  # what the entry commits to, once it is written

    def keep(self, version: Version) -> None:
        """Store a calibration; the latest is the current one."""
        self.store.put("calibration", page_of(version.entry), canonical(version.to_plain()))
        if version.entry == self.number:
            self.store.remove("setting", OPTIONS)

    def remove(self, version: Version, *, expiries: Collection[str] = ()) -> None:
        """Remove an earlier calibration. Its options are kept until there is a later one, without these expiries."""
        is_last = version.entry == int(self.store.now.pages("calibration")[-1])
        if is_last and self.store.now.page("setting", OPTIONS) is None:
            options = without_expiries(version.without_error().options, expiries)
            self.store.put("setting", OPTIONS, canonical(options))
        self.store.remove("calibration", page_of(version.entry))

    def keep_state(self, kind: StateKind, data: bytes | None) -> None:
        """Store a state of the whole book, or remove it if there is none."""
        if data is None:
            self.store.remove("state", kind.value)
        else:
            self.store.put("state", kind.value, data)

    def record_file(self, path: str | PathLike[str] | None) -> None:
        """Record a file outside the book that contains copies of its quotes; nothing for None."""
        target = None if path is None else Path(path).resolve()
        digest = None if target is None else self._session.file_digest(target)
        if target is not None and digest is not None:
            self.keep_files(self.files.with_written(target, digest))

    def keep_files(self, files: KnownFiles) -> None:
        """Store the list of recorded files."""
        self.store.put("setting", FILES, files.to_bytes())

    @property
    def files(self) -> KnownFiles:
        """The recorded files outside the book that contain copies of its quotes."""
        return KnownFiles.from_bytes(self.store.now.page("setting", FILES))

    def enter(
        self,
        what: str,
        reason: Why,
        *,
        touched: Sequence[str] = (),
        counts: Mapping[str, int] | None = None,
        version: Version | None = None,
        certificate: Certificate | None = None,
        commitment: str = "",
        reading: Mapping[str, str] | None = None,
    ) -> int:
        """Write the entry of this transaction, and its certificate.

        Args:
            commitment: to the touched quotes, if they are too many to be listed.
            reading: how the file of an import was read.
        """
        session = self._session
        if certificate is not None:
            self.store.put("certificate", page_of(self.number), certificate.to_bytes())
        self.contents = self.store.now.contents()
        act = Act(
            who=session.who,
            what=what,
            at=session.clock(),
            why=as_reason(reason),
            counts={**(counts or {}), "retained": self.store.now.counts().retained},
            digests={**({} if version is None else _digests(version)), **self._commitments()},
            touched=tuple(name.encode() for name in touched),
            certificate="" if certificate is None else certificate.digest(),
            commitment=commitment,
            reading=reading or {},
        )
        ledger = self._ledger.append(act, session.signing(self._ledger))
        self.store.append(ledger.entries[-1].to_bytes())
        return self.number

    def _commitments(self) -> dict[str, str]:
        """Return what every entry commits to; the first one also commits to the secret of all commitments."""
        return {CONTENTS: self.contents, **({SECRET: SECRET} if self.number == 1 else {})}

    def rotate(self, reason: Why, keyring: Keyring) -> int:
        """Write two entries: the key in use hands over to the newest of this keyring, which signs the second."""
        session = self._session
        self.contents = self.store.now.contents()
        act = Act(
            who=session.who,
            what="rotate key",
            at=session.clock(),
            why=as_reason(reason),
            counts={"retained": self.store.now.counts().retained},
            digests=self._commitments(),
        )
        for entry in self._ledger.rotate(act, keyring).entries[-2:]:
            self.store.append(entry.to_bytes())
        return self.number + 1


def as_reason(why: Why) -> Reason | None:
    """Return a reason as the ledger stores it; a text is the code of one."""
    return Reason(why) if isinstance(why, str) else why


def page_of(entry: int) -> str:
    """Return the name of a page that belongs to an entry; sorted by name, pages are in the order of entries."""
    return f"{entry:09d}"


def unrecorded(version: Version, ledger: Ledger, keyring: Keyring) -> tuple[str, ...]:
    """Return the parts of a calibration that are not what its entry of the ledger commits to."""
    recorded = ledger[version.entry].digests
    return tuple(
        name
        for name, text in _digests(version).items()
        if recorded.get(name) != keyring.commit(f"digest {name}", text.encode())
    )


def position_of(ledger: Ledger) -> Position:
    """Return the number of entries of a ledger and the hash of the last."""
    return Position(len(ledger), ledger.entries[-1].hash().hex() if len(ledger) else "")


def name_of(ledger: Ledger) -> str:
    """Return the beginning of the hash of the first entry, by which a book is named."""
    return ledger[1].hash().hex()[:16] if len(ledger) else ""


def _digests(version: Version) -> dict[str, str]:
    """Return digests of the results and, separately, of what an erasure removes: state, latent path, source error."""
    found = {"results": sha256(canonical(version.without_state().to_plain())).hexdigest()}
    error = version.fit_source.error
    found |= {} if error is None else {"error": error.hex()}
    found |= {} if version.state is None else {"state": version.state}
    return found | ({"latent": sha256(canonical(version.plain_latent())).hexdigest()} if version.latent else {})
