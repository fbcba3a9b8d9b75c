"""How a verb of a desk ends: the forget or learn that it comes to, kept with its entry in one transaction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.certificate import Certificate
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panel_calibration import AnyCalibration
from strikeout.desk import naming
from strikeout.desk.approving import ApprovingDesk
from strikeout.desk.keeping import Following, following, taken
from strikeout.desk.lineage import new_slices, whole_slices
from strikeout.desk.records import Position, Transaction, Why
from strikeout.desk.results import Change
from strikeout.desk.roads import Road
from strikeout.desk.version import Version
from strikeout.errors import RefusedError
from strikeout.forgetting.forget import forget
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.panel_forgetting import PanelForgetting
from strikeout.forgetting.rolling import learn
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes


class ConcludingDesk(ApprovingDesk):
    """What the verbs of a desk have in common once it is clear which quotes come or go."""

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

    def _taken(self, after: AnyCalibration, *, entry: int, noise: float = 0.0) -> Following:
        """Footprints and states at a reference that is found anew; none of a panel, or of moments."""
        if not isinstance(after, Calibration) or after.moments is not None:
            return Following()
        return Following(taken(after, entry=entry, noise=noise))

    def _strike(self, book: Transaction, what: str, reason: Why, done: Forgetting | PanelForgetting) -> Change:
        assert isinstance(done.forgotten, Quotes), "a book forgets quotes it holds"
        follow = following(done.calibration, self._records.standing(), entry=book.number, gone=done.forgotten)
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
            follow=follow,
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
        road: Road | None = None,
        follow: Following | None = None,
    ) -> Change:
        last = self._records.version()
        old = None if before is None else last
        if road is not None:
            road = road.at(book.number)
        elif last is not None:
            road = last.road  # whatever the count is now: the bits of a book do not depend on its history
        version = Version.of(after, entry=book.number, road=road)
        book.keep(version)
        book.keep_moments(after.moments)
        (follow or Following()).keep(book.store)
        names = np.asarray(touched).tolist()
        number = book.enter(what, reason, touched=names, counts=counts, version=version, certificate=certificate)
        self._last = None
        return Change(number, what, len(names), old, version, certificate, path)
