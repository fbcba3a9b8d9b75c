"""The operations people perform on a book: each is one transaction and one entry of the ledger, or nothing at all."""

from __future__ import annotations

from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from strikeout.book.approvals import require_approval
from strikeout.book.erase import ErasingDesk
from strikeout.book.fit_source import Asked, calibrate_from
from strikeout.book.import_quotes import counted
from strikeout.book.plan import SAID, Plan, paths_of, shards_of
from strikeout.book.records import Position, Why, as_reason
from strikeout.book.results import Change, moved
from strikeout.book.spec import Asking
from strikeout.book.state_store import MissingFootprints
from strikeout.book.step import Stepped
from strikeout.calibration.panels import AUTO
from strikeout.calibration.settings import Settings, settings_of
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.refusal import determined
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.joining import join
from strikeout.quotes.quotes import Quotes
from strikeout.store.entry import Reason
from strikeout.wording import Argument, agreeing, many


class Desk(ErasingDesk):
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
            none = agreeing(arrival.count, "The quote is not", f"None of the {arrival.count:,} quotes is")
            raise RefusedError(f"{none} new, so there is nothing to learn.")
        after = self._learnt(before, arrival.new)
        follow = self._follow(after, entry=seen.number + 1, come=arrival.new)
        with self._records.writing(seen) as book:
            book.store.add(arrival.new)
            book.know_of(quarantine)
            counts = counted(arrival)
            return self._conclude(
                book,
                "learn",
                reason,
                before,
                after,
                touched=arrival.new.ids,
                counts=counts,
                follow=follow,
                come=arrival.new,
            )

    # --- parameters --------------------------------------------------------------------------------------------------

    def calibrate(
        self,
        model: Model | None = None,
        *,
        through: Asked | None = None,
        perturb: float | None = None,
        reason: Why = None,
        **settings: Any,
    ) -> Change:
        """Calibrates the quotes the book holds, and keeps the result as its current version.

        Args:
            model: and ``settings``, as ``calibrate`` takes them; where nothing is given, as the book was calibrated
                last, or Heston with everything at its default. Of a book the default of ``panel`` is "auto": a panel by
                date where there are several dates and quotes enough. What is asked is kept, and decided anew with every
                quote that comes or goes, so that a book is always what its quotes alone would make it; ``panel=None``
                is one latent parameter for all.
            through: "quotes", or "moments": the book then keeps the moments of its quotes too and forgets by
                subtracting, at a cost that does not grow with the book; for squared price residuals. "auto", the
                default, takes moments of a large book where nothing is lost by it (see ``desk.fit_source``), and the
                version says what it took and why. What comes and goes later keeps to the road taken here.
            perturb: a share of noise on the footprints the book keeps, as for ``perturb``; none where not given but
                something else is. Whatever takes footprints anew later puts it on them again.

        Raises:
            RefusedError: the book is empty, or its quotes cannot be calibrated.
            UsageError: an unknown setting, or one that a book cannot keep.
        """
        seen = self._records.position()
        last, held = self._records.asking(), self._records.store.quotes()
        if not len(held):
            raise RefusedError("The book holds no quotes. Import some first.")
        progress = settings.pop("progress", None)
        if model is None and not settings and through is None and perturb is None and last is not None:
            repeated = Asking.from_plain(last)
            model, how, asked = repeated.model, repeated.settings, last["source"]["asked"]
            noise = self._noise()
        else:
            model, asked, noise = Heston() if model is None else model, through or "auto", perturb or 0.0
            how = settings_of(held, **{**Settings(panel=AUTO).keywords(), **settings})
        Asking(model, how).to_plain()  # refuses what could not be brought back, before the work is done
        entry = seen.number + 1
        found, source = calibrate_from(model, how, asked, held, entry=entry, progress=progress)
        follow = self._taken(found, entry=entry, noise=noise)
        if perturb and follow.taken is None:
            raise UsageError(
                Argument("perturb", perturb),
                f": the book is calibrated from {source.through} and keeps no footprints. Give ",
                Argument("perturb", 0),
                ", or ",
                Argument("through", "quotes"),
                " and ",
                Argument("panel", None),
                ".",
            )
        if perturb and isinstance(follow.taken, MissingFootprints):
            raise UsageError(
                Argument("perturb", perturb),
                f": no footprints are kept: {follow.taken.clause}. Give ",
                Argument("perturb", 0),
                ".",
            )
        with self._records.writing(seen) as book:
            return self._conclude(
                book,
                "calibrate",
                reason,
                None,
                found,
                touched=[],
                counts={},
                source=source,
                perturb=noise,
                follow=follow,
                come=held,
            )

    # --- quotes go ---------------------------------------------------------------------------------------------------

    def forget(
        self,
        *,
        ids: ArrayLike | None = None,
        where: str | None = None,
        tolerance: float | None = None,
        reason: Why = None,
    ) -> Plan:
        """What striking these quotes out will do, ready to ``apply``; nothing is changed.

        By default the road is exact: parameters and state are, bit for bit, those of what is retained. For a look in
        microseconds there is ``preview(book.calibration(), ...)``.

        Args:
            tolerance: in standard errors. One step from the footprints the book keeps is taken where it is certified
                that near the optimum; of a book calibrated through quotes then only those that go are read. Else the
                exact road, and the path says why.

        Raises:
            UsageError: what to forget is said in no way or in two, or the tolerance is not above zero.
            UnknownIdError: an id that no quote of the book has, or one given twice.
            NothingMeantError: no quote is meant.
            RefusedError: what is left gives no calibration.
        """
        seen = self._records.position()
        done, passed = self._decided(seen, ids=ids, where=where, tolerance=tolerance)
        return self._planned(seen, done, passed, tolerance=tolerance, reason=as_reason(reason) or Reason("other"))

    def _planned(
        self,
        seen: Position,
        done: Forgetting | Stepped,
        passed: tuple[str, ...],
        *,
        tolerance: float | None,
        reason: Reason,
    ) -> Plan:
        """The plan of a forget that is decided, sealed with the key of the book."""
        if isinstance(done, Stepped):
            before, errors = done.last.parameters, done.version(entry=seen.number + 1).standard_errors
        else:
            before, errors = done.before.parameters, done.calibration.standard_errors
        assert isinstance(done.forgotten, Quotes), "a book forgets quotes it holds"
        plan = Plan(
            book=self._records.name,
            position=seen.number,
            head=seen.head,
            ids=tuple(done.ids.tolist()),
            reason=reason.to_plain(),
            before=dict(before),
            after=dict(done.parameters),
            moved=moved(before, done.parameters, errors),
            path=(*passed, *done.path),
            touched=shards_of(done.forgotten),
            certificate=done.certificate,
            refit=tuple(map(str, done.refits)),
            tolerance=tolerance,
            latent=paths_of(done),
        )
        return plan.sealed(lambda shown: self._records.keyring.commit("plan", shown))

    def apply(self, plan: Plan) -> Change:
        """Does exactly what a plan says, and keeps its certificate.

        Everything the plan shows is found anew and compared; what cannot be, such as the reason, is under its seal.
        The quotes are set aside, so that ``restore`` can bring them back; ``erase`` takes the bytes away.

        Raises:
            RefusedError: the plan is of another book, the book moved since, or it would come to something else here.
        """
        seen = self._records.position()
        if plan.book != self._records.name:
            raise RefusedError("The plan is of another book. Make one for this book with forget.")
        if (plan.position, plan.head) != (seen.number, seen.head):
            raise RefusedError(
                f"The plan was made when the book had {many(plan.position, 'entry', 'entries')}; it has "
                f"{seen.number:,} now. Make a new one with forget.",
                planned=plan.position,
                found=seen.number,
            )
        require_approval(self._records, "forget", plan.ids)
        done, passed = self._decided(seen, ids=list(plan.ids), tolerance=plan.tolerance)
        reason = Reason.from_plain(plan.reason)
        found = self._planned(seen, done, passed, tolerance=plan.tolerance, reason=reason)
        differ = found.differences(plan)
        if differ:
            raise RefusedError(
                f"The plan shows something else than it comes to here: {', '.join(SAID[name] for name in differ)} "
                f"{agreeing(len(differ), 'differs', 'differ')}. It was changed since forget made it, or another build "
                "made it. Make a new one with forget.",
                differ=list(differ),
                planned=plan.certificate.digest(),
                found=done.certificate.digest(),
            )
        follow = self._followed(done, entry=seen.number + 1)
        with self._records.writing(seen) as book:
            return self._strike(book, "forget", reason, done, follow=follow, passed=passed)

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
        follow = self._follow(after, entry=seen.number + 1, come=back)
        with self._records.writing(seen) as book:
            book.store.unstrike(back.ids)
            counts = {"restored": len(back), "of": number}
            return self._conclude(
                book, "restore", reason, before, after, touched=back.ids, counts=counts, follow=follow, come=back
            )

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
            raise RefusedError(
                f"The book spans {many(len(kept), 'date')} and nothing is new: the window of {window} stays."
            )
        touched = [*old, *([] if arrival is None else arrival.new.ids.tolist())]
        require_approval(self._records, "roll", touched if old else [])
        after = determined(Asking.of(before).calibrate(whole.without(old)))
        at_once = [] if arrival is None else sorted({*old} & {*arrival.new.ids.tolist()})  # come and gone in one step
        come = whole[:0] if arrival is None else arrival.new.without(at_once)
        sides = {"gone": whole.only(old).without(at_once), "come": come}
        follow = self._follow(after, entry=seen.number + 1, **sides)
        with self._records.writing(seen) as book:
            if arrival is not None and len(arrival.new):
                book.store.add(arrival.new)
            book.store.strike(old, entry=book.number)
            book.know_of(quarantine)
            counts = {**counts, "forgotten": len(old)}
            return self._conclude(
                book,
                "roll",
                reason,
                before,
                after,
                touched=touched,
                counts=counts,
                follow=follow,
                come=whole.without(old),
            )
