"""Somebody sets the clock back, so that what is done today looks done before something else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import strikeout as so
from strikeout.store.ledger import Ledger, check_bytes
from tests.laws.clerks import quotes
from tests.store.ledgers import RING, act

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


class Clock:
    now = NOON

    def __call__(self) -> datetime:
        return self.now


def test_an_entry_that_is_dated_before_the_last_says_by_how_much(tmp_path):
    clock = Clock()
    with so.Book.create(tmp_path / "a.book", clock=clock) as book:
        clock.now = NOON - timedelta(hours=1, milliseconds=1)
        book.import_quotes(quotes(0, 6))
        clock.now = NOON + timedelta(hours=1)
        book.import_quotes(quotes(6, 12))
        assert [entry.counts.get("clock_back") for entry in book.log()] == [None, 3601, None]
        assert "clock back 3,601" in str(book.log()[1])
        assert book.verify().holds


@pytest.mark.parametrize("back", [0, 59])
def test_a_ledger_in_which_the_clock_went_back_unsaid_does_not_hold(back):
    honest = Ledger().append(act("import"), RING).append(act("forget", minutes=-1), RING)
    assert (honest.check(keyring=RING), honest[2].counts) == ([], {"clock_back": 60})
    counts = {"clock_back": back} if back else {}
    forged = Ledger((honest[1], replace(honest[2], counts=counts).signed(RING.signer())))  # even with the key
    (fault,) = check_bytes(forged.to_bytes(), keyring=RING)
    assert "dated before" in fault


def test_an_entry_whose_time_is_none_cannot_be_read():
    entry = Ledger().append(act("import"), RING)[1]
    for time in ("", "yesterday", "2024-03-01", "2024-13-01T12:00:00.000000Z", "2024-03-01T12:00:00.000000+01:00"):
        row = replace(entry, at=time).signed(RING.signer()).to_bytes()
        assert "cannot be read" in check_bytes([row])[0]
