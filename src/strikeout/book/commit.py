"""How a verb of a desk ends: the forget or learn that it comes to, kept with its entry in one transaction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.certificate import Certificate
from strikeout.book import select
from strikeout.book.dates import shows_several_dates
from strikeout.book.erasure import knows
from strikeout.book.fit_source import FitSource
from strikeout.book.forward_dependencies import new_slices, whole_slices
from strikeout.book.group_states import GroupStates
from strikeout.book.import_quotes import ImportingDesk
from strikeout.book.keyed_ids import as_kept
from strikeout.book.records import Position, Transaction, Why
from strikeout.book.results import Change
from strikeout.book.state_store import NOBODY, taken
from strikeout.book.state_update import Following, following
from strikeout.book.step import Stepped, stepped
from strikeout.book.version import Version, perturbed
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.forget import forget
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.update import learn
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.store.signing import signed
from strikeout.wording import Argument

FROM_COLD = ("recalibrate: the reference of the step knew quotes that are erased; from cold starts",)


class ConcludingDesk(ImportingDesk):
    """What the verbs of a desk have in common once it is clear which quotes come or go."""

    def _forgotten_with(self, seen: Position, held: Quotes) -> Forgetting | None:
        """The forget that goes with an erasure; None where no calibration knows the quotes, or none is left."""
        if not len(held) or not self._records.is_current():
            return None
        try:
            done = self._struck_out(self._current(seen), ids=held.ids)
            done.certificate  # noqa: B018  (made now: it needs the quotes)
        except RefusedError:
            return None
        return done

    def _made_anew(self, seen: Position, held: Quotes, aside: Quotes) -> Calibration | None:
        """The calibration that takes the place of one step from a reference which quotes set aside were in.

        None where quotes held are erased too, the parameters are no such step, or no calibration is found.
        """
        records, version = self._records, self._records.version()
        if len(held) or version is None or version.step is None or not records.is_current():
            return None
        if not knows(records, records.standing(), held, aside):
            return None
        try:
            return self._current(seen)
        except RefusedError:
            return None

    def _struck_out(self, before: Calibration, *, ids: ArrayLike | None = None, where: str | None = None) -> Forgetting:
        """A forget from the current calibration; through moments only the quotes that go are read, unless forwards rest
        on them."""
        if before.moments is None and where is not None and ids is None:
            ids, where = select.names_for(self._records.store, before.book, where), None
        if before.moments is None:
            return forget(before, ids=ids, where=where)
        gone = select.held(self._records.store, ids=ids, where=where, verb="forget")
        return forget(before, quotes=whole_slices(self.quotes(), gone) if is_derived(gone).any() else gone)

    def _learnt(self, before: Calibration, new: Quotes) -> Calibration:
        through_moments = before.moments is not None and is_derived(new).any()
        return learn(before, new_slices(self.quotes(), new) if through_moments else new)

    def _taken(self, after: Calibration, *, entry: int, noise: float = 0.0) -> Following:
        """Footprints and states at a reference that is found anew; none of a panel, or of moments."""
        if after.is_panel or after.moments is not None:
            return Following()
        return Following(taken(after, entry=entry, noise=noise))

    def _follow(self, after: Calibration, *, entry: int, gone: Quotes = NOBODY, come: Quotes = NOBODY) -> Following:
        """What becomes of footprints and states when quotes come and go.

        Where the book keeps none they are taken, as when it is calibrated: it was a panel until now, or the reference
        they were taken at is erased. That costs less than the verb itself, which calibrates the book anew.
        """
        standing = self._records.standing()
        if standing is None:
            return self._taken(after, entry=entry, noise=self._noise())
        return following(after, standing, entry=entry, gone=gone, come=come)

    def _noise(self) -> float:
        """The share by which footprints of the book are to be perturbed, whether it keeps some just now or not."""
        return perturbed(self._records.asking() or {})

    def _decided(
        self, seen: Position, *, ids: ArrayLike | None, where: str | None = None, tolerance: float | None
    ) -> tuple[Forgetting | Stepped, tuple[str, ...]]:
        """Return the forget to be done, one step if the tolerance allows it, else the exact solution; and what was
        passed over.

        Raises:
            UsageError: the tolerance is no number of standard errors.
            NothingMeantError: no quote is meant.
            RefusedError: what is left gives no calibration.
        """
        passed: tuple[str, ...] = ()
        ids = as_kept(self._records.store, ids, self._records.commit)
        if tolerance is not None:
            if not tolerance > 0.0:
                raise UsageError(
                    Argument("tolerance", tolerance), ": give a number of standard errors above zero, such as 0.05."
                )
            self._check_current()
            gone = select.held(self._records.store, ids=ids, where=where, verb="forget")
            select.refuse_nothing(len(gone), verb="forget")
            found = stepped(self._records, gone, tolerance)
            if isinstance(found, Stepped):
                return found, ()
            ids, where, passed = gone.ids, None, (f"downdate passed over: {found.clause}",)
        done = self._struck_out(self._current(seen), ids=ids, where=where)
        select.refuse_nothing(done.count, verb="forget")
        return done, passed

    def _followed(self, done: Forgetting | Stepped, *, entry: int) -> Following:
        """What a forget makes of what the book keeps."""
        if isinstance(done, Stepped):
            return done.follow
        assert isinstance(done.forgotten, Quotes), "a book forgets quotes it holds"
        return self._follow(done.calibration, entry=entry, gone=done.forgotten)

    def _strike(
        self,
        book: Transaction,
        what: str,
        reason: Why,
        done: Forgetting | Stepped,
        *,
        follow: Following,
        passed: tuple[str, ...] = (),
    ) -> Change:
        counts = {"forgotten": done.count}
        book.store.strike(done.ids, entry=book.number)
        if isinstance(done, Stepped):
            follow.keep(book.store)
            return self._enter(
                book,
                what,
                reason,
                done.last,
                done.version(entry=book.number),
                touched=done.ids,
                counts=counts,
                certificate=done.certificate,
                path=done.path,
            )
        return self._conclude(
            book,
            what,
            reason,
            done.before,
            done.calibration,
            touched=done.ids.tolist(),
            counts=counts,
            certificate=done.certificate,
            path=(*passed, *done.path),
            follow=follow,
        )

    def _conclude(
        self,
        book: Transaction,
        what: str,
        reason: Why,
        before: Calibration | None,
        after: Calibration,
        *,
        touched: ArrayLike,
        counts: dict[str, int],
        certificate: Certificate | None = None,
        path: tuple[str, ...] = (),
        source: FitSource | None = None,
        perturb: float | None = None,
        follow: Following | None = None,
        come: Quotes = NOBODY,
    ) -> Change:
        last = self._records.version()
        if source is None:
            assert last is not None, "a book is calibrated before anything follows from it"
            source = last.fit_source.onward(after)  # the bits of a book do not depend on its history
        share = self._noise() if perturb is None else perturb
        is_of_dates = after.moments is not None and shows_several_dates(book.store, come=come)
        version = Version.of(after, entry=book.number, source=source, perturb=share, is_of_dates=is_of_dates)
        book.keep_moments(after.moments)
        book.keep_groups(GroupStates.of(after))
        (follow or Following()).keep(book.store)
        old = None if before is None else last
        return self._enter(
            book, what, reason, old, version, touched=touched, counts=counts, certificate=certificate, path=path
        )

    def _enter(
        self,
        book: Transaction,
        what: str,
        reason: Why,
        old: Version | None,
        version: Version,
        *,
        touched: ArrayLike,
        counts: dict[str, int],
        certificate: Certificate | None,
        path: tuple[str, ...],
    ) -> Change:
        book.keep(version)
        if certificate is not None:
            records = self._records
            certificate = signed(certificate, records.ledger(), records.keyring, at=records.clock())
        names = np.asarray(touched).tolist()
        number = book.enter(what, reason, touched=names, counts=counts, version=version, certificate=certificate)
        self._last = None
        return Change(number, what, len(names), old, version, certificate, path)
