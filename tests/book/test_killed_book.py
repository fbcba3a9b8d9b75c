"""A book killed in the middle of any verb: its states are those of its quotes, and everything verifies."""

from __future__ import annotations

import random
from pathlib import Path

import strikeout as so
from tests.store.test_crash import killed, needs_fork

ROUNDS = 40


def verb(book: so.Book, number: int) -> None:
    """The verb of this number, on whatever the book holds: all those that write footprints and states."""
    draw, held = random.Random(number), book.quotes().ids.tolist()
    what = draw.choice(["calibrate", "step", "forget", "restore", "erase"])
    few = draw.sample(held, 3)
    if what == "restore" and book.status().set_aside:
        book.restore()
    elif what == "erase":
        book.erase(ids=few)
    elif what == "step":
        book.forget(ids=few, tolerance=1.0)
    elif what == "forget":
        book.forget(ids=few)
    else:
        book.calibrate(starts=1)


@needs_fork
def test_a_book_killed_in_any_verb_keeps_states_that_are_those_of_its_quotes(tmp_path: Path):
    path, draw, done, window = tmp_path / "a.book", random.Random(3), 0, 0.3
    with so.Book.create(path) as book:
        quotes = so.synthetic.random_quotes(400, maturities=4, seed=1)
        for begin in range(0, 400, 100):
            book.import_quotes(quotes[begin : begin + 100])
        book.calibrate(starts=1)
        entries = book.status().entries
    for _ in range(ROUNDS):

        def work(say, begin=done):
            with so.Book.open(path) as book:
                say(begin)
                for number in range(begin, begin + 30):
                    verb(book, number)
                    say(number + 1)

        acknowledged = max(killed(work, after=draw.uniform(0, window)), default=done)
        with so.Book.open(path) as book:
            found = sum(entry.what != "residue" for entry in book.log()) - entries
            assert acknowledged <= found <= acknowledged + 1
            checked = book.verify()
            assert checked.holds, checked.summary()
        window = min(1.1 * window, 2.0) if found == done else max(0.9 * window, 0.05)  # as fast as the machine is
        done = found
    assert done > ROUNDS // 8  # the kills fell into work, not into starting up
