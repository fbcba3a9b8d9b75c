"""A condition that could be asked of a book once can be asked again, when the last quote with that label is gone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import NothingMeantError, UsageError
from strikeout.quotes.selection import select
from tests.raising import raises

DESK = "desk = 'x'"


@pytest.fixture
def book(tmp_path):
    quotes = so.synthetic.random_quotes(60, maturities=3, seed=3)
    some = replace(quotes[:5], labels={"desk": np.array(["x"] * 5, object)})
    with so.Book.create(tmp_path / "a.book") as made:
        made.import_quotes(quotes[5:])
        made.import_quotes(some)
        made.calibrate()
        yield made


@pytest.mark.parametrize("tolerance", [None, 0.5])
def test_a_second_forget_of_the_same_label_finds_nothing(book, tolerance):
    assert book.forget(where=DESK, tolerance=tolerance).touched == 5
    with pytest.raises(NothingMeantError):
        book.plan_forget(where=DESK, tolerance=tolerance)
    with pytest.raises(NothingMeantError):
        book.request("forget", where=DESK)


def test_a_second_erasure_of_the_same_label_finds_nothing_and_the_rest_has_no_such_label(book):
    assert book.erase(where=DESK).residue == 0
    for verb in (book.erase, book.forget):
        with pytest.raises(NothingMeantError):
            verb(where=DESK)
    assert book.plan_erase(where="desk is null", all_quotes=True).count == 55
    with raises(UsageError, where="desc = 'x'"):
        book.plan_erase(where="desc = 'x'")


def test_an_emptied_book_can_be_asked_for_dates_sources_and_what_it_had(book):
    book.erase(where="strike > 0", all_quotes=True)
    for where in ("date < '2024-01-01'", "expiry_date = '2024-01-01'", "source = 'b'", DESK):
        with pytest.raises(NothingMeantError):
            book.plan_erase(where=where)


def test_a_label_of_other_quotes_never_hides_one_of_these():
    quotes = so.synthetic.random_quotes(6, maturities=2, seed=1)
    assert len(select(quotes, "strike > 0 and Desk is null", also=["Strike", "desk"])) == 6
