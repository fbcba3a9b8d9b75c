"""The operations people perform on a book: each is one transaction and one entry of the ledger, or nothing at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.certificate import Certificate
from strikeout.calibration.panel_calibration import AnyCalibration
from strikeout.calibration.settings import Settings, settings_of
from strikeout.desk import naming
from strikeout.desk.approving import require_approval
from strikeout.desk.asking import Asking, Through
from strikeout.desk.erasing import meant, rehearsed, residue, take_away
from strikeout.desk.importing import ImportingDesk, counted
from strikeout.desk.lineage import new_slices, refits_without, whole_slices
from strikeout.desk.plan import Plan
from strikeout.desk.records import Position, Transaction, Why, as_reason
from strikeout.desk.results import Change, Erasure, moved
from strikeout.desk.version import Version
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.forget import forget
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.panel_forgetting import PanelForgetting
from strikeout.forgetting.refusal import determined
from strikeout.forgetting.rolling import learn
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.joining import join
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.store.entry import Reason


class Desk(ImportingDesk):
    """A book and the verbs to work on it. What is computed is computed before anything is written.

    ``reason`` is a ``Reason`` of the ledger, or the code of one: "bad-feed", "licence", "subject-request", "error",
    "test" or "other". A verb looks at the book, works, and then writes in one transaction; where another writer was
    faster, it is refused and nothing is written.
    """

    # --- quotes come -------------------------------------------------------------------------------------------------

    def learn(self, quotes: Quotes, *, quarantine: str | PathLike[str] | None = None, reason: Why = None) -> Change:
        """New quotes go into the book and into the calibration, in one step.

        Args:
            quarantine: the file that holds the rows which did not become quotes; see ``import_quotes``.

        Raises:
            RefusedError: nothing is new, the book is not calibrated or quotes came since, an id is there with other
                values, or a quote lacks what the calibration needs. Nothing is changed.
        """
        seen, arrival = self._arrival(quotes)
        before = self._current(seen)
        if not len(arrival.new):
            raise RefusedError(f"None of the {arrival.count:,} quotes is new, so there is nothing to learn.")
        after = self._learnt(before, arrival.new)
        with self._records.writing(seen) as book:
            book.store.add(arrival.new)
            book.know_of_quarantine(quarantine)
            return self._conclude(
                book, "learn", reason, before, after, touched=arrival.new.ids, counts=counted(arrival)
            )

    # --- parameters --------------------------------------------------------------------------------------------------

    def calibrate(
        self, model: Model | None = None, *, through: Through | None = None, reason: Why = None, **settings: Any
    ) -> Change:
        """Calibrates the quotes the book holds, and keeps the result as its current version.

        Args:
            model: and ``settings``, as ``calibrate`` takes them; where nothing is given, as the book was calibrated
                last, or Heston with everything at its default.
            through: "quotes", the default, or "moments": the book then keeps the moments of its quotes too and forgets
                by subtracting, at a cost that does not grow with the book; for squared price residuals.

        Raises:
            RefusedError: the book is empty, or its quotes cannot be calibrated.
            UsageError: an unknown setting, or one that a book cannot keep.
        """
        seen = self._records.position()
        version, held = self._records.version(), self._records.store.quotes()
        if not len(held):
            raise RefusedError("The book holds no quotes. Import some first.")
        progress = settings.pop("progress", None)
        if model is None and not settings and through is None and version is not None:
            asking = Asking.from_plain(version.asking)
        else:
            asked = {**Settings().keywords(), **settings}
            asking = Asking(Heston() if model is None else model, settings_of(held, **asked), through or "quotes")
        asking.to_plain()  # refuses what could not be brought back, before the work is done
        found = asking.calibrate(held, progress=progress)
        with self._records.writing(seen) as book:
            return self._conclude(book, "calibrate", reason, None, found, touched=[], counts={})

    # --- quotes go ---------------------------------------------------------------------------------------------------

    def forget(
        self,
        *,
        ids: ArrayLike | None = None,
        where: str | None = None,
        reason: Why = None,
    ) -> Plan:
        """What striking these quotes out will do, ready to ``apply``; nothing is changed.

        A book takes the exact road only: parameters and state are, bit for bit, those of what is retained. For a look
        in microseconds there is ``preview(book.calibration(), ...)``.

        Raises:
            UsageError: what to forget is said in no way or in two.
            UnknownIdError: an id that no quote of the book has, or one given twice.
            RefusedError: no quote is meant, or what is left gives no calibration.
        """
        seen = self._records.position()
        before = self._current(seen)
        done = self._struck_out(before, ids=ids, where=where)
        if not done.count:
            raise RefusedError("No quote of the book is meant by that, so there is nothing to forget.")
        after = Version.of(done.calibration, entry=seen.number + 1)
        return Plan(
            book=self._records.name,
            position=seen.number,
            head=seen.head,
            ids=tuple(done.ids.tolist()),
            reason=(as_reason(reason) or Reason("other")).to_plain(),
            before=dict(before.parameters),
            after=dict(done.parameters),
            moved=moved(before.parameters, after),
            path=done.path,
            touched=_shards(done.forgotten),
            certificate=done.certificate,
            refit=tuple(map(str, done.refits)),
        )

    def apply(self, plan: Plan) -> Change:
        """Does exactly what a plan says, and keeps its certificate.

        The quotes are set aside, so that ``restore`` can bring them back; ``erase`` takes the bytes away.

        Raises:
            RefusedError: the plan is of another book, the book moved since, or it would come to something else here.
        """
        seen = self._records.position()
        if plan.book != self._records.name:
            raise RefusedError("The plan is of another book. Make one for this book with forget.")
        if (plan.position, plan.head) != (seen.number, seen.head):
            raise RefusedError(
                f"The plan was made when the book had {plan.position} entries; it has {seen.number} now. "
                "Make a new one with forget.",
                planned=plan.position,
                found=seen.number,
            )
        require_approval(self._records, "forget", plan.ids)
        before = self._current(seen)
        done = self._struck_out(before, ids=list(plan.ids))
        if done.certificate != plan.certificate:
            raise RefusedError(
                "Here the plan comes to another certificate than the one shown: it was made by another build or "
                "changed. Make a new one with forget.",
                planned=plan.certificate.digest(),
                found=done.certificate.digest(),
            )
        with self._records.writing(seen) as book:
            return self._strike(book, "forget", Reason.from_plain(plan.reason), done)

    def restore(self, entry: int | None = None, *, reason: Why = None) -> Change:
        """Brings the quotes of a forget back, as if it had never been; the latest one where no entry is named.

        Raises:
            RefusedError: that entry set no quotes aside, or they were restored or erased since.
        """
        seen = self._records.position()
        aside = self._records.set_aside()
        number = max(aside, default=0) if entry is None else entry
        if number not in aside:
            known = f"Entries with quotes to restore: {', '.join(map(str, sorted(aside)))}." if aside else ""
            asked = "There is no forget to undo." if entry is None else f"Entry {entry} holds no quotes to restore."
            raise RefusedError(f"{asked} {known}".rstrip(), entry=entry, known=sorted(aside))
        back, before = aside[number], self._current(seen)
        after = self._learnt(before, back)  # whatever it comes to: what was there before must be there again
        with self._records.writing(seen) as book:
            book.store.unstrike(back.ids)
            counts = {"restored": len(back), "of": number}
            return self._conclude(book, "restore", reason, before, after, touched=back.ids, counts=counts)

    def roll(
        self,
        quotes: Quotes | None = None,
        *,
        window: int,
        quarantine: str | PathLike[str] | None = None,
        reason: Why = None,
    ) -> Change:
        """Learns new quotes and forgets those older than the last ``window`` dates, in one step.

        Args:
            quarantine: the file that holds the rows which did not become quotes; see ``import_quotes``.

        Raises:
            UsageError: the window is not above zero, or the quotes have no label date.
            RefusedError: nothing comes or goes, or what is left gives no calibration.
        """
        if window < 1:
            raise UsageError(f"window={window}: give how many of the last dates stay, 1 or more.")
        seen = self._records.position()
        before = self._current(seen)
        whole, counts = self.quotes(), {}
        arrival = None if quotes is None else self._arrival(quotes)[1]
        if arrival is not None and len(arrival.new):
            whole, counts = join(whole, arrival.new), counted(arrival)
        if "date" not in whole.labels:
            raise UsageError("A window rolls over dates, and the quotes have no label date.", window=window)
        dates = whole.labels["date"].astype(str)
        kept = set(sorted(set(dates.tolist()))[-window:])
        stays = [date in kept for date in dates.tolist()]
        old = [name for name, stay in zip(whole.ids.tolist(), stays, strict=True) if not stay]
        if not old and not counts:
            raise RefusedError(f"The book spans {len(kept)} dates and nothing is new: the window of {window} stays.")
        touched = [*old, *([] if arrival is None else arrival.new.ids.tolist())]
        require_approval(self._records, "roll", touched if old else [])
        after = determined(Asking.of(before).calibrate(whole.without(old)))
        with self._records.writing(seen) as book:
            if arrival is not None and len(arrival.new):
                book.store.add(arrival.new)
            book.store.strike(old, entry=book.number)
            book.know_of_quarantine(quarantine)
            counts = {**counts, "forgotten": len(old)}
            return self._conclude(book, "roll", reason, before, after, touched=touched, counts=counts)

    def erase(
        self,
        *,
        ids: ArrayLike | None = None,
        where: str | None = None,
        yes: bool = False,
        reason: Why = None,
    ) -> Erasure:
        """Makes quotes unrecoverable, held or set aside; without ``yes`` it only says what would go and what stays.

        The quotes held among them are forgotten first. Where what is left gives no calibration, they are erased all
        the same, and the book is left without a current one. There is no undo.

        Raises:
            UnknownIdError: an id the book does not have, or one given twice.
            RefusedError: no quote is meant, or what is left of a slice gives no forward.
        """
        records = self._records
        seen = records.position()
        held, aside = meant(records, ids=ids, where=where)
        copies = [path for path in (*map(Path, records.copies()), *self._plans()) if path.exists()]
        refits = refits_without(self.quotes(), held) if is_derived(held).any() else ()
        rehearsal = rehearsed(records, held, aside, copies=copies, refits=refits)
        if not yes:
            return rehearsal
        require_approval(records, "erase", [*held.ids.tolist(), *aside.ids.tolist()])
        done = self._forgotten_with(seen, held)
        with records.writing(seen) as book:
            take_away(records, book, held, aside, copies=copies)
            counts = {"erased": len(held) + len(aside), "forgotten": len(held)}
            touched = [*held.ids.tolist(), *aside.ids.tolist()]
            change = None
            if done is not None:
                change = self._conclude(
                    book,
                    "erase",
                    reason,
                    done.before,
                    done.calibration,
                    touched=touched,
                    counts=counts,
                    certificate=done.certificate,
                    path=done.path,
                )
            else:
                book.enter("erase", reason, touched=touched, counts=counts)
        self._last = None
        found = residue(records, held, aside, copies=copies, refits=refits)
        return replace(rehearsal, entry=seen.number + 1, residue=found, change=change)

    def _forgotten_with(self, seen: Position, held: Quotes) -> Forgetting | PanelForgetting | None:
        """The forget that goes with an erasure; None where no calibration knows the quotes, or none is left."""
        if not len(held) or not self._records.is_current():
            return None
        try:
            done = self._struck_out(self._current(seen), ids=held.ids)
            done.certificate  # noqa: B018  (made now: it needs the quotes)
        except RefusedError:
            return None
        return done

    # --- inside ------------------------------------------------------------------------------------------------------

    def _struck_out(
        self, before: AnyCalibration, *, ids: ArrayLike | None = None, where: str | None = None
    ) -> Forgetting | PanelForgetting:
        """A forget from the current calibration; through moments only the quotes that go are read, unless forwards rest
        on them."""
        if before.moments is None:
            return forget(before, ids=ids, where=where)
        gone = naming.held(self._records.store, ids=ids, where=where, verb="forget")
        return forget(before, quotes=whole_slices(self.quotes(), gone) if is_derived(gone).any() else gone)

    def _learnt(self, before: AnyCalibration, new: Quotes) -> AnyCalibration:
        through_moments = before.moments is not None and is_derived(new).any()
        return learn(before, new_slices(self.quotes(), new) if through_moments else new)

    def _strike(self, book: Transaction, what: str, reason: Why, done: Forgetting | PanelForgetting) -> Change:
        book.store.strike(done.ids, entry=book.number)
        return self._conclude(
            book,
            what,
            reason,
            done.before,
            done.calibration,
            touched=done.ids.tolist(),
            counts={"forgotten": done.count},
            certificate=done.certificate,
            path=done.path,
        )

    def _conclude(
        self,
        book: Transaction,
        what: str,
        reason: Why,
        before: AnyCalibration | None,
        after: AnyCalibration,
        *,
        touched: ArrayLike,
        counts: dict[str, int],
        certificate: Certificate | None = None,
        path: tuple[str, ...] = (),
    ) -> Change:
        old = None if before is None else self._records.version()
        version = Version.of(after, entry=book.number)
        book.keep(version)
        book.keep_moments(after.moments)
        names = np.asarray(touched).tolist()
        number = book.enter(what, reason, touched=names, counts=counts, version=version, certificate=certificate)
        self._last = None
        return Change(number, what, len(names), old, version, certificate, path)


def _shards(quotes: Quotes | Moments) -> dict[str, int]:
    """How many quotes are on each (date, expiry)."""
    assert isinstance(quotes, Quotes), "a book forgets quotes it holds"
    dates = quotes.labels["date"].astype(str).tolist() if "date" in quotes.labels else [""] * len(quotes)
    pairs = zip(dates, quotes.contracts.expiry.tolist(), strict=True)
    return dict(sorted(Counter(f"{date} {expiry:.6g}".strip() for date, expiry in pairs).items()))
