"""Two books in one: every column of both, in order; nothing twice."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.quotes.quotes import join
from tests.raising import raises

BOOK = so.paper.quotes("small", seed=3)


def test_two_halves_joined_are_the_whole():
    whole = join(BOOK[:200], BOOK[200:])
    assert whole.ids.tolist() == BOOK.ids.tolist()
    assert whole.summary() == BOOK.summary()
    for column in ("observed", "weight", "spread"):
        assert getattr(whole, column).tobytes() == getattr(BOOK, column).tobytes()
    for column in ("forward", "strike", "expiry", "discount", "is_call"):
        assert getattr(whole.contracts, column).tobytes() == getattr(BOOK.contracts, column).tobytes()
    assert {name: list(column) for name, column in whole.labels.items()} == {
        name: list(column) for name, column in BOOK.labels.items()
    }
    assert whole.only([BOOK.ids[301]]).ids.tolist() == [BOOK.ids[301]]
    with pytest.raises(ValueError, match="read-only"):
        whole.observed[0] = 1.0


def test_an_id_in_both_is_refused_by_name():
    with raises(UsageError, ids=["small-001-30-100", "small-001-30-110", "small-001-60-90"]) as refused:
        join(BOOK[:10], BOOK[7:12])
    assert refused.value.ids == sorted(BOOK.ids[7:10].tolist())


def test_a_label_of_one_book_is_empty_in_the_other():
    mine = so.Quotes(
        ids=["x"],
        contracts=BOOK.contracts[:1],
        observed=[1.0],
        labels={"desk": ["rates"], "lots": [3], "date": np.array(["2025-01-01"], "datetime64[D]")},
    )
    joined = join(mine, BOOK[:2])
    assert joined.labels["desk"].tolist() == ["rates", "", ""]
    assert joined.labels["lots"][0] == 3
    assert np.isnan(joined.labels["lots"][1:]).all()
    assert joined.labels["date"].tolist() == ["2025-01-01", "2024-01-02", "2024-01-02"]
    assert joined.labels["source"].tolist() == ["", "synthetic", "synthetic"]


def test_nothing_joined_is_the_book_itself():
    assert join(BOOK, BOOK[:0]).ids.tolist() == BOOK.ids.tolist()
