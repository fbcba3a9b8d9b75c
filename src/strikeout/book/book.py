"""A book in a file: the verbs on ``NAME.book``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import ArrayLike

from strikeout.assurance.certificate import Certificate
from strikeout.book import (
    approvals,
    calibrate,
    erase,
    export,
    files,
    forget,
    import_quotes,
    select,
    status,
    update,
)
from strikeout.book.audit import audit, audit_copy
from strikeout.book.export import Writer
from strikeout.book.files import Clock, now
from strikeout.book.forget import Plan
from strikeout.book.import_quotes import How as ImportHow
from strikeout.book.records import SMALLEST, SMALLEST_ERASURE, Session, Snapshot, Why
from strikeout.book.results import Audit, Change, Comparison, Erasure, Imported, Rotation, Status
from strikeout.book.spec import Asked
from strikeout.book.status import History, history_of
from strikeout.calibration.calibration import Calibration
from strikeout.errors import UsageError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.store.entry import Entry
from strikeout.store.keyring import Keyring, key_file
from strikeout.store.ledger import Head
from strikeout.store.residue import Progress, Search
from strikeout.text import many


class Book:
    """Quotes, calibrations and the record of every change, in one file that lasts.

    Open it with ``with``. Every verb reads one snapshot of the book, computes, and writes one transaction with one
    entry of the ledger, or nothing: if another process was faster, it is refused. Verbs that remove something have a
    ``plan_`` form that shows what they will do and changes nothing.

    ``reason`` is a ``Reason`` of the ledger, or the code of one: "bad-feed", "licence", "subject-request", "error",
    "test" or "other".

    >>> import tempfile, strikeout as so
    >>> folder = Path(tempfile.mkdtemp())
    >>> with so.Book.create(folder / "small.book") as book:
    ...     _ = book.import_quotes(so.paper.quotes("small"))
    ...     _ = book.calibrate()
    ...     _ = book.forget(where="date < '2024-01-10'")
    ...     book.verify().holds
    True
    """

    def __init__(self, session: Session, *, path: Path | None = None) -> None:
        """Work on an open store; ``create`` and ``open`` do it for a file.

        Args:
            path: of the file; None for a store in memory.
        """
        self._session = session
        self._seen: Snapshot | None = None
        self.path = Path(":memory:") if path is None else path
        self._place = self.path.absolute()  # whatever folder the process works in later

    # --- files -------------------------------------------------------------------------------------------------------

    @staticmethod
    def create(
        path: str | PathLike[str],
        *,
        who: str | None = None,
        clock: Clock = now,
        is_encrypted: bool = False,
        smallest_erasure: int = SMALLEST,
        approval: approvals.Approval = "one-person",
    ) -> Book:
        """Create a book; its secrets go to ``NAME.book.key`` beside it, or to STRIKEOUT_KEY_FILE.

        Args:
            who: the name in its entries; by default the one this process runs under.
            is_encrypted: keep quotes and states under keys in ``NAME.book.shardkeys``, which an erasure destroys.
            smallest_erasure: an erasure of fewer quotes warns: earlier results give them away.
            approval: "two-person": quotes are struck out and erased only once a second person approved it. The policy
                is an entry of the ledger, whatever folder or settings the book is opened with; see ``set_approval``.

        Raises:
            UsageError: the smallest erasure is not a number of quotes, 1 or more, or the approval is unknown.
            BookError: there is a file already, or none can be made there.
            RefusedError: there is a key file already, or none can be written. Then there is no book either.
        """
        if type(smallest_erasure) is not int or smallest_erasure < 1:
            raise UsageError(
                f"smallest_erasure={smallest_erasure!r}: give a number of quotes, 1 or more.",
                smallest_erasure=smallest_erasure,
            )
        policies = {SMALLEST_ERASURE: smallest_erasure, **approvals.counts_of(approval)}
        options: dict[str, Any] = {"who": who, "clock": clock, "is_encrypted": is_encrypted, "policies": policies}
        session, target = files.create(Path(path), **options)
        return Book(session, path=target)

    @staticmethod
    def open(
        path: str | PathLike[str],
        *,
        who: str | None = None,
        clock: Clock = now,
        public_key: str | Sequence[str] | None = None,
    ) -> Book:
        """Open the book in this file.

        Args:
            who: the name in its entries; by default the one this process runs under.
            public_key: open it for reading without its key file, for an audit: ``log``, ``status``, ``requests`` and
                ``history`` work. The last entry of the ledger must be signed with this key, or one of several.

        Raises:
            BookError: there is no such file, it is not a book, of a newer version, or damaged; it is left as it is.
            RefusedError: its key file is missing, damaged, open to others or another book's; or the ledger is not
                signed with the public key.
        """
        if public_key is not None:
            session, target = files.open_public(Path(path), public_key)
        else:
            session, target = files.open_file(Path(path), who=who, clock=clock)
        return Book(session, path=target)

    @staticmethod
    def verify_copy(path: str | PathLike[str], *, key: str | Sequence[str], head: Head | None = None) -> Audit:
        """Check a copy of a book without its key file: bytes, ledger, counts, states, parameters and certificates.

        Nothing secret is read. Only the key file can show whether labels, quotes set aside and pages are as the last
        entry commits to, and whether an erased quote is back; ``Audit.has_key`` is False.

        Args:
            key: the public key that must have signed the last entry, 64 hexadecimal digits as ``status`` shows it, or
                several of them.
            head: of the ledger, kept elsewhere: finds a ledger that was cut short or rewritten.

        Raises:
            UsageError: ``key`` is not a public key.
            BookError: there is no such file, it is not a book, of a newer version, or damaged.
            RefusedError: its quotes are encrypted, and their keys are not beside it.
        """
        from strikeout.store.sqlite import SqliteStore

        trusted = files.trusted_keys(key)
        with SqliteStore.open(Path(path), key=None) as store, store.reading():
            return audit_copy(Session(store, Keyring.empty(), now, "").snapshot(), keys=trusted, head=head)

    # --- reading -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the book as it is now, to look inside; each part is read once, when it is first used.

        Raises:
            RefusedError: an entry of the ledger cannot be read.
        """
        found = self._session.snapshot()
        ledger = found.ledger  # read now: a verb works on the book as it is when it begins
        if self._seen is None or self._seen.ledger is not ledger:
            self._seen = found
        return self._seen

    def status(self) -> Status:
        """Return the book at a glance: what it holds, its calibration and whether that is current."""
        with self._session.store.reading():
            return status.status(self._session.snapshot())

    def log(self) -> tuple[Entry, ...]:
        """Return every entry of the ledger, in order.

        Raises:
            RefusedError: an entry cannot be read.
        """
        return self._session.ledger().entries

    def options(self) -> Mapping[str, Any] | None:
        """Return how the book was calibrated last, also if an erasure removed the results; None before the first."""
        return self.snapshot().options

    def certificate(self, entry: int) -> Certificate:
        """Return the certificate of an entry.

        Raises:
            RefusedError: it has none, or an erasure has removed it with the states it was about.
        """
        return self.snapshot().certificate(entry)

    def quotes(self) -> Quotes:
        """Return the quotes the book holds; not those set aside."""
        return self.snapshot().quotes

    def matching(self, where: str, *, verb: str) -> tuple[int, int]:
        """Return how many of the quotes held match a condition, and how many are held.

        Raises:
            UsageError: the condition cannot be read.
            NothingMeantError: no quote matches.
        """
        seen = self.snapshot()
        return len(select.held(seen, ids=None, where=where, verb=verb)), seen.store.counts().retained

    def calibration(self, where: str | None = None) -> Calibration:
        """Return the current calibration in full, computed again, with the quotes the book holds: to plot and preview.

        Args:
            where: calibrate only the held quotes that match, as the book was calibrated last; nothing is stored.

        Raises:
            RefusedError: the book is not calibrated or not current, or other parameters are found than are kept.
        """
        return status.full_calibration(self.snapshot(), where)

    def summary(self, *, one_value: str = "panel=None") -> str:
        """Return the book, its quotes and its calibration in a few lines of plain text.

        Args:
            one_value: how the reader asks for one latent parameter if there is one per date.
        """
        return status.summary(self.status(), self.quotes(), one_value=one_value)

    def verify(self, *, head: Head | None = None) -> Audit:
        """Check the whole book: bytes, record, counts, states and parameters computed again, nothing erased is back.

        Args:
            head: of the ledger, kept elsewhere: finds a ledger that was cut short or rewritten.

        Raises:
            Nothing for what the book holds: what cannot be checked does not hold, with the reason.
        """
        with self._session.store.scrubbed():  # one snapshot: what another process writes meanwhile is not a fault
            return audit(self._session.snapshot(), head=head)

    def compare(self, other: Book) -> Comparison:
        """Compare this book with another: the same state, the same parameters, how far apart.

        Raises:
            RefusedError: one of them is not calibrated, or not with the same parameters.
        """
        return status.compare((str(self.path), self.snapshot()), (str(other.path), other.snapshot()))

    # --- quotes are added --------------------------------------------------------------------------------------------

    def import_quotes(self, quotes: Quotes, **how: Unpack[ImportHow]) -> Imported:
        """Add the new quotes among these; those the book has change nothing, those it erased are refused and named.

        The calibration stays as it is until ``calibrate``.

        Args:
            quarantine: the file with the rows that did not become quotes; the book records it, an erasure deletes it.
            quarantined: how many rows these are; the entry counts them.
            reading: how the file was read (``Reading.conventions``), for the entry and certificates.

        Raises:
            RefusedError: an id is there with other values, a slice would have no forward, or the book was changed
                meanwhile. Nothing is imported.
        """
        return self.import_chunks((quotes,), **how)

    def import_chunks(self, chunks: Iterable[Quotes], **how: Unpack[ImportHow]) -> Imported:
        """Add the new quotes of all chunks, as ``import_quotes``, with one chunk in memory at a time; all or nothing.

        The book is being written from the first chunk to the last, so others cannot write to it meanwhile.

        Raises:
            UsageError: an id is in two chunks.
            RefusedError: as ``import_quotes``. Nothing is imported.
        """
        return import_quotes.import_chunks(self.snapshot(), chunks, **how)

    def learn(self, quotes: Quotes, **how: Unpack[update.How]) -> Change:
        """Add new quotes to the book and to its calibration, in one entry.

        Args:
            tolerance: in standard errors; one step from the stored footprints is taken if it is certified to be within.
            quarantine, quarantined, reading: as for ``import_quotes``.

        Raises:
            RefusedError: nothing is new, the book is not calibrated or not current, an id is there with other values,
                or a quote lacks what the calibration needs. Nothing is changed.
        """
        return update.learn(self.snapshot(), quotes, **how)

    # --- parameters --------------------------------------------------------------------------------------------------

    def calibrate(
        self,
        model: Model | None = None,
        *,
        through: Asked | None = None,
        perturb: float | None = None,
        fresh: bool = False,
        reason: Why = None,
        **settings: Any,
    ) -> Change:
        """Calibrate the quotes the book holds, and keep the result as its current version.

        What is not given is as it was the last time: ``book.calibrate(loss="huber")`` changes the loss and nothing
        else. The first time, it is Heston with every setting at its default.

        Args:
            model: with ``settings`` as ``so.calibrate`` takes them. Another model has other parameters, so bounds,
                fixed parameters and given starts are not repeated with it. The default of ``panel`` is "auto" in a
                book: a panel by date if there are several dates and enough quotes; every later verb decides again, so
                that a book depends on its quotes alone. ``panel=None`` is one latent parameter for all.
            through: "quotes", or "moments": the book then keeps the moments of its quotes too and forgets by
                subtracting, at a cost that does not grow with the book; for squared price residuals. "auto", the
                default, takes moments of a large book if nothing is lost by it (see ``book.spec``). Later verbs
                keep to the source chosen here.
            perturb: a share of noise on the footprints the book keeps, as for ``perturb``; also on those taken later.
            fresh: what is not given is at its default, not as the last time.

        Raises:
            RefusedError: the book is empty, or its quotes cannot be calibrated.
            UsageError: an unknown setting, or one that a book cannot keep.
        """
        given = {**settings, "through": through, "perturb": perturb}
        return calibrate.calibrate(self.snapshot(), model, fresh=fresh, reason=reason, **given)

    # --- quotes are removed ------------------------------------------------------------------------------------------

    def plan_forget(
        self,
        *,
        ids: ArrayLike | None = None,
        where: str | None = None,
        tolerance: float | None = None,
        reason: Why = None,
    ) -> Plan:
        """Return what striking these quotes out will do, ready to ``apply``; nothing is changed.

        Args:
            ids: of the quotes, or
            where: a condition in SQL on their columns and labels, for example ``"date < '2024-01-10'"``.
            tolerance: in standard errors. One step from the footprints the book keeps is taken if it is certified that
                close to the optimum; only the quotes that are struck out are read then. Otherwise, and by default,
                parameters and state are, bit for bit, those of what is retained; ``path`` gives the reason.

        Raises:
            UsageError: the quotes are not given in exactly one way, or the tolerance is not above zero.
            UnknownIdError: an id that no quote of the book has, or one given twice.
            NothingMeantError: no quote matches.
            RefusedError: what is left gives no calibration.
        """
        return forget.plan_forget(self.snapshot(), ids=ids, where=where, tolerance=tolerance, reason=reason)

    def forget(
        self,
        *,
        ids: ArrayLike | None = None,
        where: str | None = None,
        tolerance: float | None = None,
        reason: Why = None,
    ) -> Change:
        """Strike these quotes out, as ``apply(plan_forget(...))`` does, with one calibration.

        The quotes are set aside, so that ``restore`` can bring them back; ``erase`` removes their bytes.

        Raises:
            As ``plan_forget``; and RefusedError: the book needs a second person's approval, and there is none.
        """
        return forget.forget(self.snapshot(), ids=ids, where=where, tolerance=tolerance, reason=reason)

    def apply(self, plan: Plan) -> Change:
        """Do exactly what a plan shows, and keep its certificate.

        Everything the plan shows is computed again and compared; what cannot be, such as the reason, is under its seal.

        Raises:
            RefusedError: the plan is of another book, the book moved since, something else is found than it shows, or
                the book needs a second person's approval and there is none.
        """
        return forget.apply(self.snapshot(), plan)

    def restore(self, entry: int | None = None, *, reason: Why = None) -> Change:
        """Bring the quotes of a forget back, as if it had never been; of the latest one if no entry is given.

        Raises:
            RefusedError: that entry set no quotes aside, or they were restored or erased since.
        """
        return update.restore(self.snapshot(), entry, reason=reason)

    def roll(self, quotes: Quotes | None = None, *, window: int, **how: Unpack[update.How]) -> Change:
        """Learn new quotes and forget those older than the last ``window`` dates, in one entry, with a certificate.

        Args:
            tolerance: as for ``learn``.
            quarantine, quarantined, reading: as for ``import_quotes``.

        Raises:
            UsageError: the window is not above zero, or the quotes have no label date.
            RefusedError: nothing is added or removed, or what is left gives no calibration.
        """
        return update.roll(self.snapshot(), quotes, window=window, **how)

    def plan_erase(self, *, reason: Why = None, **chosen: Any) -> Erasure:
        """Return what erasing these quotes (``ids`` or ``where``, ``all_quotes``) does and cannot; nothing is changed.

        Raises:
            As ``erase``.
        """
        return erase.plan_erase(self.snapshot(), reason=reason, plans=self._plans(), **chosen)

    def erase(
        self,
        *,
        ids: ArrayLike | None = None,
        where: str | None = None,
        all_quotes: bool = False,
        reason: Why = None,
        progress: Progress | None = None,
    ) -> Erasure:
        """Remove the bytes of quotes, held or set aside. There is no undo; ``plan_erase`` shows it first.

        The quotes held among them are forgotten too. If what is left gives no calibration, they are erased all the
        same, and the book is left without a current one. One step from a reference that was fitted to quotes set aside
        since is replaced by a calibration.

        Args:
            all_quotes: confirms a condition that every quote matches; without it such a condition is refused.
            reason: "licence" and "subject-request" are about the data: the results of every earlier calibration the
                quotes were part of are removed too. For other reasons these stay, and quotes can be computed back from
                them.
            progress: called while the files are searched, with the bytes searched so far and their total.

        Raises:
            UsageError: the quotes are not given in one way, or all of them match and that is not confirmed.
            UnknownIdError: an id the book does not have, or one given twice.
            NothingMeantError: no quote matches.
            RefusedError: what is left of a slice gives no forward, or the book needs a second person's approval and
                there is none.
        """
        how: dict[str, Any] = {"all_quotes": all_quotes, "reason": reason, "plans": self._plans()}
        return erase.erase(self.snapshot(), ids=ids, where=where, progress=progress, **how)

    def residue(self, erased: Quotes | None = None, *, progress: Progress | None = None) -> Search:
        """Search the files of the book again for what erasures should have removed, and record the result.

        Without the quotes it is checked that every byte of the book is accounted for, that no quote in it is one that
        was erased, and that no file an erasure was to delete is there. Erased numbers cannot be searched for: the book
        has no copy of them.

        Args:
            erased: quotes from a file of your own; those that the book recognises as erased are searched for too.
            progress: called with the bytes searched so far and their total.

        Raises:
            BusyError: another process reads or writes the book.
        """
        return erase.search_again(self.snapshot(), erased, progress=progress)

    # --- two persons -------------------------------------------------------------------------------------------------

    def request(self, what: approvals.Asked, *, reason: Why = None, **chosen: Any) -> approvals.Request:
        """Ask that quotes be struck out ("forget") or erased ("erase"), or that one person be enough ("one-person").

        Nothing happens until another person approves it, and then it has to be done.

        Args:
            chosen: the quotes as ``erase`` takes them: ids, or where; and all_quotes.

        Raises:
            UsageError: another verb, the quotes are not given in one way, or all match and that is not confirmed.
            UnknownIdError: an id the book does not have, or one given twice.
            NothingMeantError: no quote matches.
            RefusedError: an open request asks for the same, or the book moved meanwhile.
        """
        return approvals.request(self.snapshot(), what, reason=reason, **chosen)

    def approve(self, number: int, *, reason: Why = None) -> approvals.Request:
        """Approve what another person asked for, so that it can be done, once.

        Raises:
            RefusedError: there is no such request, it is decided already, or it was made under the same name.
        """
        return approvals.decide(self.snapshot(), "approve", number, reason)

    def reject(self, number: int, *, reason: Why = None) -> approvals.Request:
        """Reject what another person asked for; it cannot be approved any more.

        Raises:
            RefusedError: there is no such request, it is decided already, or it was made under the same name.
        """
        return approvals.decide(self.snapshot(), "reject", number, reason)

    def withdraw(self, number: int, *, reason: Why = None) -> approvals.Request:
        """Withdraw a request of one's own that is not done, also if it was approved.

        Raises:
            RefusedError: there is no such request, it is another person's, or it is done, rejected, lapsed or expired.
        """
        return approvals.decide(self.snapshot(), "withdraw", number, reason)

    @property
    def approval(self) -> approvals.Approval:
        """Whether quotes are struck out and erased by one person, or only once a second person approved it."""
        return "two-person" if self.snapshot().is_two_person else "one-person"

    def set_approval(self, approval: approvals.Approval, *, reason: Why = None) -> int:
        """Set whether removals need a second person's approval, and return the entry that records it.

        Any person may set "two-person". Back to "one-person" needs an approved request:
        ``request("one-person")``, then ``approve`` by another person.

        Raises:
            UsageError: another word.
            RefusedError: the book is set so already, or a second person's approval is needed and there is none.
        """
        return approvals.set_approval(self.snapshot(), approval, reason)

    def history(self) -> History:
        """Return parameters, standard errors and fit of every calibration that the book contains, with its entry."""
        return history_of(self.snapshot())

    def approvals_of_removals(self) -> dict[int, int | None]:
        """Return every removal that needed a second person's approval: its entry, and the entry that approved it.

        None marks one that lacked it; ``verify`` reports these.
        """
        return approvals.approvals_of(self.snapshot().ledger.entries)

    def requests(self) -> tuple[approvals.Request, ...]:
        """Return every request that was ever made, in order."""
        return approvals.requests_of(self.snapshot())

    # --- files for others --------------------------------------------------------------------------------------------

    def export(self, path: str | PathLike[str]) -> Path:
        """Write the quotes held (.csv, .parquet), the calibration (.json), or Python for QuantLib (.py).

        A file of quotes is entered in the ledger, and an erasure of its quotes deletes it. A calibration
        file states whether it is of the quotes held now.

        Raises:
            UsageError: the ending is none of these, or the file cannot be written.
            RefusedError: the book is not calibrated, and its results are asked for.
        """
        return export.export(self.snapshot(), Path(path))

    def hand_out(self, path: Path, prepare: Callable[[], Writer], *, what: str = "export") -> Path:
        """Write a file that shows quotes; it is entered in the ledger, and an erasure of its quotes deletes it.

        Args:
            prepare: does the work, before anything is locked, and returns a function that only writes.

        Raises:
            UsageError: the file cannot be written; then nothing is entered.
            RefusedError: the book moved meanwhile.
        """
        seen = self.snapshot()
        return export.hand_out(seen, path, prepare(), what=what)

    # --- keys --------------------------------------------------------------------------------------------------------

    def rotate_key(self, *, reason: Why = None) -> Rotation:
        """Give the book a new key to sign its ledger with; the old one signs the change and leaves the key file.

        Earlier signatures can still be checked. A rotation that a crash cut short is finished.

        Raises:
            RefusedError: the key file cannot be read or written, or the book moved meanwhile.
        """
        self._session, done = files.rotate_key(self.snapshot(), key_file(self._place), reason)
        self._seen = None
        return done

    def close(self) -> None:
        """Close the file. What was written stays."""
        self._session.store.close()

    def __enter__(self) -> Book:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        glance = self.status()
        held, entries = many(glance.held, "quote"), many(glance.entries, "entry", "entries")
        return f"<Book {self.path.name}: {held}, {entries}; {glance.sentence}>"

    @property
    def plan_path(self) -> Path:
        """Where the command line keeps a plan until it is applied."""
        return self.path.with_name(self.path.name + ".plan.json")

    def _plans(self) -> tuple[Path, ...]:
        """Return files beside the book that name quotes."""
        return (self._place.with_name(self.plan_path.name),)
