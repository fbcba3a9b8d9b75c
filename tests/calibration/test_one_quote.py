"""Refusals count in words: of one quote they speak as of one, and large counts have their separators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.quotes.contracts import Contracts
from tests.raising import raises

QUOTES = so.paper.quotes("small")


def calls(count: int, strike: float) -> so.Quotes:
    """So many calls on one strike, of a forward of 100 and expiry in a hundredth of a year."""
    each = np.ones(count)
    contracts = Contracts(
        forward=100.0 * each, strike=strike * each, expiry=0.01 * each, discount=each, is_call=each > 0.0
    )
    return so.Quotes(ids=[f"q{n}" for n in range(count)], contracts=contracts, observed=5.0 * each)


def test_one_quote_of_no_weight_is_spoken_of_as_one():
    with raises(UnidentifiedError, count=1):
        so.calibrate(QUOTES[:1], so.Heston(), weights=[0.0])
    with raises(UnidentifiedError, count=1200):
        so.calibrate(calls(1200, 100.0), so.Heston(), weights=np.zeros(1200))


def test_one_quote_in_the_money_is_spoken_of_as_one():
    with raises(RefusedError, mentions={"select"}):
        so.calibrate(calls(1, 90.0), so.Heston(), select="otm")
    with raises(RefusedError, mentions={"select"}):
        so.calibrate(calls(2, 90.0), so.Heston(), select="otm")


def test_one_quote_that_is_there_already_and_one_entry_are_spoken_of_as_one(tmp_path):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(QUOTES)
        book.calibrate()
        with raises(RefusedError, count=1):
            book.learn(QUOTES[:1])
        with raises(RefusedError, planned=1, found=3):
            book.apply(replace(book.plan_forget(ids=QUOTES.ids[:1]), position=1))


def test_a_refusal_of_many_quotes_has_separators_in_its_counts():
    with pytest.raises(RefusedError, match=r"^1,200 of 1,200 quotes .*off the grid"):
        so.states.moments_of(calls(1200, 1e6))
