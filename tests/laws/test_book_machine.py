"""Whatever is done to a book, in whatever order, it verifies, and knows what a fresh one knows of what it retains."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import strikeout as so
from strikeout.book.audit import check_states
from strikeout.errors import RefusedError
from strikeout.quotes.forwards import derived
from tests.quotes.chains import chain

COUNT, LEAST = 72, 40  # quotes in play, and how many at least stay so that Heston's parameters are determined
DATES = 6


def dated(count: int) -> so.Quotes:
    """The quotes in play, spread over so many dates."""
    plain = so.synthetic.random_quotes(COUNT, maturities=6, seed=11)
    dates = np.array([f"2024-03-{1 + row % count:02d}" for row in range(COUNT)])
    return so.Quotes(
        ids=plain.ids, contracts=plain.contracts, observed=plain.observed, labels={**plain.labels, "date": dates}
    )


@cache
def pool() -> so.Quotes:
    return dated(DATES)


@cache
def sparse() -> so.Quotes:
    """Two quotes for every parameter of a panel are 48 and more here, and 40 to 72 are held: it is one at times."""
    return dated(20)


@cache
def chained() -> so.Quotes:
    """Calls and puts of four expiries, whose forwards are found by parity from whatever is in the book."""
    expiries = ("2024-04-05", "2024-06-07", "2024-12-06", "2025-12-05")
    return so.inspect_quotes(chain(expiries=expiries, strikes=range(84, 117, 4))).quotes


@cache
def fresh(rows: frozenset[int], through: str, pool) -> tuple[dict[str, float], dict[str, float], str]:
    quotes, _ = derived(pool()[sorted(rows)])
    found = so.calibrate(quotes if through == "quotes" else so.states.moments_of(quotes), so.Heston(), panel="auto")
    return found.parameters, getattr(found, "latent", {}), found.state.digest()


class CrashError(Exception):
    """The end of a process in the middle of a transaction."""


some = st.frozensets(st.integers(min_value=0, max_value=COUNT - 1), min_size=1, max_size=12)


class BookMachine(RuleBasedStateMachine):
    """A book in a file beside what it should hold: rows held, set aside by entry, erased."""

    through = "quotes"
    pool = staticmethod(pool)

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "m.book"
        self.book = so.Book.create(self.path)
        self.held: set[int] = set(range(60))
        self.aside: dict[int, set[int]] = {}
        self.erased: set[int] = set()
        self.book.import_quotes(self.pool()[:60])
        self.book.calibrate(through=self.through)
        self.is_current = True

    def ids(self, rows):
        return self.pool().ids[sorted(rows)]

    def away(self):
        return set(range(COUNT)) - self.held - self.erased - set().union(*self.aside.values())

    def is_refused(self, held, verb):
        """Whether a slice would be left without a forward; then the verb is refused and nothing changes."""
        if "none" not in derived(self.pool()[sorted(held)])[1].source:
            return False
        before = self.book.status()
        with pytest.raises(RefusedError, match="are left with"):
            verb()
        assert self.book.status() == before
        return True

    @rule(rows=some)
    def import_quotes(self, rows):
        new = rows & self.away()
        if new and self.is_refused(self.held | new, lambda: self.book.import_quotes(self.pool()[sorted(rows)])):
            return
        done = self.book.import_quotes(self.pool()[sorted(rows)])
        assert done.imported == len(new)
        assert set(done.erased) == set(self.ids(rows & self.erased).tolist())
        assert (done.entry is None) == (not new)
        self.held |= new
        self.is_current &= not new

    @rule()
    def calibrate(self):
        self.book.calibrate()
        self.is_current = True

    @precondition(lambda self: self.is_current)
    @rule(rows=some)
    def learn(self, rows):
        new = rows & self.away()
        if not new:
            with pytest.raises(RefusedError, match="new, so there is nothing to learn"):
                self.book.learn(self.pool()[sorted(rows)])
            return
        if self.is_refused(self.held | new, lambda: self.book.learn(self.pool()[sorted(rows)])):
            return
        self.book.learn(self.pool()[sorted(rows)])
        self.held |= new

    @precondition(lambda self: self.is_current)
    @rule(rows=some)
    def forget(self, rows):
        out = rows & self.held
        if not out or len(self.held) - len(out) < LEAST:
            return
        if self.is_refused(self.held - out, lambda: self.book.plan_forget(ids=self.ids(out))):
            return
        change = self.book.forget(ids=self.ids(out), reason="test")
        self.held -= out
        self.aside[change.entry] = out

    @precondition(lambda self: self.is_current)
    @rule(rows=some)
    def forget_by_a_step(self, rows):
        """From the footprints the book keeps, where one step is certified; else as ever."""
        out = rows & self.held
        if not out or len(self.held) - len(out) < LEAST:
            return
        if self.is_refused(self.held - out, lambda: self.book.plan_forget(ids=self.ids(out), tolerance=1.0)):
            return
        change = self.book.forget(ids=self.ids(out), tolerance=1.0)
        self.held -= out
        self.aside[change.entry] = out

    @precondition(lambda self: self.is_current and self.aside)
    @rule(choice=st.integers(min_value=0))
    def restore(self, choice):
        entry = sorted(self.aside)[choice % len(self.aside)]
        if self.is_refused(self.held | self.aside[entry], lambda: self.book.restore(entry)):
            return
        self.book.restore(entry)
        self.held |= self.aside.pop(entry)

    @precondition(lambda self: self.is_current)
    @rule(window=st.integers(min_value=DATES - 1, max_value=DATES))
    def roll(self, window):
        dates = self.pool().labels["date"]
        kept = sorted({dates[row] for row in self.held})[-window:]
        out = {row for row in self.held if dates[row] not in kept}
        if not out or len(self.held) - len(out) < LEAST:
            return
        change = self.book.roll(window=window)
        self.held -= out
        self.aside[change.entry] = out

    @rule(rows=some)
    def erase(self, rows):
        gone = rows - self.away() - self.erased
        if not gone or len(self.held - gone) < LEAST:
            return
        if self.is_refused(self.held - gone, lambda: self.book.erase(ids=self.ids(gone))):
            return
        done = self.book.erase(ids=self.ids(gone), reason="licence")
        assert done.residue == 0
        self.held -= gone
        self.erased |= gone
        self.aside = {entry: left for entry, out in self.aside.items() if (left := out - gone)}

    @rule(rows=some)
    def crash(self, rows):
        """A transaction that never ends: nothing of it is there."""
        before, seen = self.book.status(), self.book.snapshot()
        with suppress(CrashError), seen.session.writing(seen.position) as book:
            book.store.add(self.pool()[sorted(rows & self.away())])
            book.store.strike(self.ids(rows & self.held), entry=book.number)
            book.enter("forget", None)
            raise CrashError
        assert self.book.status() == before

    @rule()
    def reopen(self):
        self.book.close()
        self.book = so.Book.open(self.path)

    @invariant()
    def holds_what_it_should(self):
        status = self.book.status()
        assert (status.held, status.is_current) == (len(self.held), self.is_current)
        assert status.set_aside == sum(map(len, self.aside.values()))
        assert status.erased == len(self.erased)
        if self.is_current:
            parameters, latent, state = fresh(frozenset(self.held), self.through, self.pool)
            # One step is not the optimum; verify holds it to the tolerance it was certified to.
            if status.version.step is None:
                assert dict(status.version.parameters) == parameters
                assert {group: value for group, (value, _) in status.version.latent.items()} == latent
            assert status.version.state == state
        states, found = check_states(self.book.snapshot())
        assert states is not False, found

    def teardown(self):
        found = self.book.verify()
        assert found.holds, found.summary()
        assert set(self.book.quotes().ids.tolist()) == set(self.ids(self.held).tolist())
        self.book.close()
        self.folder.cleanup()


class CrossingMachine(BookMachine):
    """The same of a book that is a panel as long as it has quotes enough, and plain when it has not."""

    pool = staticmethod(sparse)


class MomentsMachine(BookMachine):
    """The same of a book that forgets by subtracting moments."""

    through = "moments"


class LineageMachine(BookMachine):
    """The same of a book whose forwards rest on its other quotes."""

    pool = staticmethod(chained)


CrossingMachine.TestCase.settings = settings(max_examples=8, stateful_step_count=15)
BookMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=15)
MomentsMachine.TestCase.settings = settings(max_examples=10, stateful_step_count=15)
LineageMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=15)
TestAnyHistoryOfABook = BookMachine.TestCase
TestAnyHistoryOfABookThatIsAPanelAtTimes = CrossingMachine.TestCase
TestAnyHistoryOfABookThroughMoments = MomentsMachine.TestCase
TestAnyHistoryOfABookOfDerivedForwards = LineageMachine.TestCase


def test_the_sparse_quotes_are_a_panel_or_plain_by_their_number():
    asked = {"model": so.Heston(), "panel": "auto"}
    assert so.calibrate(sparse()[:60], **asked).is_panel
    assert isinstance(so.calibrate(sparse()[:LEAST], **asked), so.results.Calibration)
