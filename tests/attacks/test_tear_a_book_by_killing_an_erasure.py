"""Somebody ends the process in the middle of an erasure, and wants a book that is half erased or cannot be read."""

from __future__ import annotations

import os
import random
import shutil
import time

import pytest

import strikeout as so
from tests.laws.clerks import A_DAY, MODEL, Clerk, quotes

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here to be killed")


def kill_erasures(folder, count: int, *, encrypted: bool) -> tuple[int, int]:
    """Kill processes while they erase two quotes of a copy of a book; how many erased them, and how many did not."""
    begun = folder / "begun"
    begun.mkdir()
    with so.Book.create(begun / "a.book", who="before", is_encrypted=encrypted) as book:
        book.import_quotes(quotes(0, 4 * A_DAY))
        book.calibrate(MODEL, starts=1, panel=None)
    draw, window, done = random.Random(count), 0.06, [0, 0]
    for number in range(count):
        now = folder / "now"
        shutil.copytree(begun, now)
        clerk = Clerk("clerk")
        clerk.ask("look", now / "a.book", number)
        clerk.answer()
        clerk.ask("erase", now / "a.book", number)
        time.sleep(draw.uniform(0.0, window))
        clerk.kill()
        with so.Book.open(now / "a.book") as book:
            gone = 4 * A_DAY - len(book.quotes())
            checked = book.verify()
            assert gone in (0, 2), f"kill {number}: {gone} of 2 quotes are erased"
            assert checked.holds, f"kill {number}: {checked.summary()}"
            assert book.residue().is_clean, f"kill {number}"
        done[gone == 0] += 1
        window = window / 1.15 if gone else min(1.15 * window, 1.0)  # about half of them must be in time
        shutil.rmtree(now)
    return done[0], done[1]


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_killed_erasure_is_done_or_not_begun(tmp_path, encrypted):
    erased, kept = kill_erasures(tmp_path, 60, encrypted=encrypted)
    print(f"60 kills: {erased} were erased, {kept} were not")  # pytest -rP
    assert erased > 5
    assert kept > 5
