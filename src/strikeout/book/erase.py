"""The verb that removes bytes: everything else on a desk can be undone, or leaves what it changed in the record."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from strikeout.book.approvals import require_approval
from strikeout.book.commit import FROM_COLD, ConcludingDesk
from strikeout.book.erasure import left_behind, meant, rehearsed, residue, take_away
from strikeout.book.erasure_reach import reach_of
from strikeout.book.forward_dependencies import refits_without
from strikeout.book.keyed_ids import as_kept
from strikeout.book.known_files import remove
from strikeout.book.records import Why
from strikeout.book.residue import record_search, search_again
from strikeout.book.results import Erasure
from strikeout.errors import BusyError
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.store.residue import Progress
from strikeout.store.residue_search import Search

NOT_SEARCHED = (
    "the files were not searched, because another process uses the book. Search them later: strikeout residue"
)


class ErasingDesk(ConcludingDesk):
    """A book from which quotes can be erased."""

    def erase(
        self,
        *,
        ids: ArrayLike | None = None,
        where: str | None = None,
        yes: bool = False,
        reason: Why = None,
        progress: Progress | None = None,
    ) -> Erasure:
        """Removes the bytes of quotes, held or set aside; without ``yes`` it only says what would go and what stays.

        The quotes held among them are forgotten first. If what is left gives no calibration, they are erased all the
        same, and the book is left without a current one. One step from a reference that knew quotes set aside since is
        solved again from cold starts. There is no undo.

        Args:
            reason: "licence" and "subject-request" are about the data: the results of every earlier calibration the
                quotes were part of go too. For other reasons these stay, and quotes can be computed back from them.
            progress: called while the files are searched, with the bytes searched so far and their total.

        Raises:
            UnknownIdError: an id the book does not have, or one given twice.
            NothingMeantError: no quote is meant.
            RefusedError: what is left of a slice gives no forward.
        """
        records = self._records
        seen, ids = records.position(), as_kept(records.store, ids, records.commit)
        held, aside = meant(records, ids=ids, where=where)
        reach = reach_of(records, held, aside, reason=reason, plans=self._plans())
        refits = refits_without(self.quotes(), held) if is_derived(held).any() else ()
        if not yes:
            return rehearsed(records, held, aside, reach=reach, refits=refits)
        require_approval(records, "erase", [*held.ids.tolist(), *aside.ids.tolist()])
        done = self._forgotten_with(seen, held)
        after = self._made_anew(seen, held, aside) if done is None else done.calibration
        told = rehearsed(records, held, aside, reach=reach, refits=refits, is_remade=after is not None)
        follow = None if after is None else self._taken(after, entry=seen.number + 1, noise=self._noise())
        was, left = records.version(), left_behind(records, held, aside)
        source = None
        if after is not None and was is not None:
            source = was.fit_source.unmeasured().onward(after)
        with records.writing(seen) as book:
            take_away(records, book, held, aside, reach=reach)
            counts = {"erased": len(held) + len(aside), "forgotten": len(held)}
            counts |= {} if reach.removed is None else reach.removed.to_counts()
            touched = [*held.ids.tolist(), *aside.ids.tolist()]
            change = None
            if after is not None:
                change = self._conclude(
                    book,
                    "erase",
                    reason,
                    None if reach.removed is not None else after if done is None else done.before,
                    after,
                    touched=touched,
                    counts=counts,
                    certificate=None if done is None else done.certificate,
                    path=FROM_COLD if done is None else done.path,
                    source=source,
                    follow=follow,
                )
            else:
                book.enter("erase", reason, touched=touched, counts=counts)
        self._last = None
        remaining = (*remove(reach.files, records.file_digest), *reach.changed)
        told = replace(told, entry=seen.number + 1, change=change)
        try:
            found = residue(
                records, held, aside, reach=reach, files=remaining, refits=refits, left=left, progress=progress
            )
            return replace(told, search=record_search(records, found))
        except BusyError:  # the quotes are erased all the same
            return replace(told, warnings=(*told.warnings, NOT_SEARCHED))

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
        return search_again(self._records, erased, progress=progress)
