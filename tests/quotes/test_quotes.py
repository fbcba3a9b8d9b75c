"""A book of quotes: what it refuses, what it keeps, how it is cut."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

from strikeout.errors import UnknownIdError, UsageError
from strikeout.quotes import row_values
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.names import NameIndex, fingerprints
from strikeout.quotes.quotes import Quotes
from tests.counting import calls
from tests.raising import raises


def book(count: int = 4, **changes: object) -> Quotes:
    contracts = Contracts(forward=100.0, strike=90.0 + np.arange(count), expiry=0.5, discount=0.99, is_call=True)
    columns: dict[str, object] = {
        "ids": [f"q{row}" for row in range(count)],
        "contracts": contracts,
        "observed": 10.0 - np.arange(count),
        "labels": {"date": ["2024-01-02"] * count, "volume": np.arange(count)},
    }
    return Quotes(**{**columns, **changes})  # type: ignore[arg-type]


def test_weights_default_to_one_and_spreads_to_unknown() -> None:
    quotes = book()
    assert quotes.weight.tolist() == [1.0] * 4
    assert np.isnan(quotes.spread).all()


def test_no_array_of_a_book_can_be_written_to() -> None:
    quotes = book()
    for array in (quotes.ids, quotes.observed, quotes.weight, quotes.spread, *quotes.labels.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(TypeError):
        quotes.labels["new"] = quotes.observed  # type: ignore[index]


def test_a_book_does_not_change_with_the_arrays_it_was_made_from() -> None:
    prices = np.array([1.0, 2.0, 3.0, 4.0])
    quotes = book(observed=prices)
    prices[0] = 99.0
    assert quotes.observed[0] == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ids": ["a", "b", "c"]}, "ids has shape"),
        ({"ids": ["a", "b", "a", "d"]}, "'a' is there more than once"),
        ({"ids": ["a", "b", "", "d"]}, "id at row 2 is empty"),
        ({"ids": [1, 2, 3, 4]}, "never row numbers"),
        ({"ids": np.array(["a", None, "b", "c"], object)}, "must be text"),
        ({"observed": [1.0, np.nan, 2.0, 3.0]}, "observed at row 1 is nan"),
        ({"observed": [1.0, 2.0]}, "observed has shape"),
        ({"observed": ["a", "b", "c", "d"]}, "must be numbers"),
        ({"weight": [1.0, 0.0, 1.0, 1.0]}, "weight at row 1 is 0.0"),
        ({"weight": [1.0, np.inf, 1.0, 1.0]}, "weight at row 1 is inf"),
        ({"spread": [1.0, np.inf, 1.0, 1.0]}, "spread at row 1 is inf"),
        ({"labels": {"date": ["x"]}}, "label 'date' has shape"),
        ({"labels": {"phase": [1j, 1j, 1j, 1j]}}, "labels are text, numbers"),
    ],
)
def test_a_book_that_makes_no_sense_is_refused_with_the_place(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        book(**changes)


def test_without_and_only_keep_the_order_of_the_book() -> None:
    quotes = book()
    assert quotes.only(["q3", "q0"]).ids.tolist() == ["q0", "q3"]
    assert quotes.without(["q3", "q0"]).ids.tolist() == ["q1", "q2"]
    assert quotes.without("q1").observed.tolist() == [10.0, 8.0, 7.0]
    assert quotes.only({"q2"}).labels["volume"].tolist() == [2]
    assert quotes.only(quotes.ids).contracts.strike.tolist() == quotes.contracts.strike.tolist()


def test_without_nothing_is_the_whole_book_and_without_all_is_empty() -> None:
    quotes = book()
    assert quotes.without([]).ids.tolist() == quotes.ids.tolist()
    assert len(quotes.without(quotes.ids)) == 0
    assert quotes.without(quotes.ids).summary() == "empty"


@pytest.mark.parametrize("cut", ["only", "without"])
def test_an_unknown_or_repeated_id_is_refused_by_name(cut: str) -> None:
    with raises(UnknownIdError, ids=["x", "q10"]) as unknown:
        getattr(book(), cut)(["x", "q0", "q10"])
    assert unknown.value.ids == ["x", "q10"]
    with raises(UnknownIdError, ids=["q1"]):
        getattr(book(), cut)(["q1", "q2", "q1"])


def test_looking_for_an_id_in_an_empty_book_says_it_is_not_there() -> None:
    with raises(UnknownIdError, ids=["q1"]):
        book().without(book().ids).only(["q1"])


def test_the_index_by_name_and_the_index_by_fingerprint_find_the_same_rows() -> None:
    names = np.array(["b", "a", "c", "aa"])
    for index in (NameIndex.by_name(names), NameIndex.of(names)):
        assert index.find(["c", "b"]).tolist() == [0, 2]
        with pytest.raises(UnknownIdError):
            index.find(["d"])


def test_a_fingerprint_does_not_depend_on_the_width_of_the_array() -> None:
    names = np.array(["SPX/2024", "ü", "a" * 30])
    narrow = np.array([fingerprints(np.array([name]))[0] for name in names])
    assert np.array_equal(fingerprints(names), narrow)
    assert np.array_equal(fingerprints(names.astype(">U40")), narrow)


def test_with_observed_changes_the_prices_and_nothing_else() -> None:
    quotes = book()
    other = quotes.with_observed([1.0, 2.0, 3.0, 4.0])
    assert other.observed.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert other.ids is quotes.ids
    assert other.contracts is quotes.contracts
    with raises(UsageError, column="observed", row=1):
        quotes.with_observed([1.0, np.inf, 3.0, 4.0])
    with raises(UsageError, column="observed"):
        quotes.with_observed([1.0])


def test_rows_are_picked_by_mask_slice_or_number_but_never_twice() -> None:
    quotes = book()
    assert quotes[quotes.observed < 9].ids.tolist() == ["q2", "q3"]
    assert quotes[1:3].ids.tolist() == ["q1", "q2"]
    assert len(quotes[[]]) == 0
    assert quotes[[3, 0]].ids.tolist() == ["q3", "q0"]
    with pytest.raises(UsageError, match="twice"):
        quotes[[0, -4]]


@pytest.mark.parametrize("rows", [0, -1, "date", None, ["q0"], 0.0, [0.0]])
def test_rows_that_are_no_slice_mask_or_list_of_numbers_are_refused(rows: object) -> None:
    with raises(UsageError):
        book()[rows]  # type: ignore[index]


def test_a_pickled_book_comes_back_whole_and_still_read_only() -> None:
    quotes = book()
    other = pickle.loads(pickle.dumps(quotes))
    assert other.ids.tolist() == quotes.ids.tolist()
    assert other.labels["date"].tolist() == quotes.labels["date"].tolist()
    assert not other.observed.flags.writeable
    assert not other.contracts.strike.flags.writeable


def test_the_summary_tells_size_span_and_labels() -> None:
    text = book(spread=[0.1, np.nan, 0.3, np.nan]).summary()
    assert text.splitlines()[0] == "4 quotes, 1 maturity (0.5 years)"
    assert "90 to 93" in text
    assert "0.1 to 0.3 (2 known)" in text
    assert "2024-01-02" in text
    assert repr(book()) == "<Quotes: 4 quotes, 1 maturity (0.5 years)>"


def test_the_html_of_a_book_escapes_its_labels() -> None:
    page = book(labels={"source": ["<script>"] * 4})._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_cutting_more_quotes_takes_no_more_calls() -> None:
    """Nothing in Python is done quote by quote; what a million of them take is in benchmarks/scale.py."""

    def cut(count: int) -> int:
        contracts = Contracts(forward=100.0, strike=np.full(count, 90.0), expiry=0.5, discount=1.0, is_call=True)
        ids = np.char.mod("SPX/2024-01-02/%07d", np.arange(count))
        quotes = Quotes(ids=ids, contracts=contracts, observed=np.ones(count))
        made = calls(lambda: quotes.without(ids[::37]))
        assert len(quotes.without(ids[::37])) == count - len(ids[::37])
        return made

    assert 0 < cut(4_000) == cut(1_000)


def test_numbers_that_came_as_text_are_told_in_the_order_of_the_numbers() -> None:
    assert "0 to 11 (12 values)" in book(12, labels={"day": [str(n) for n in range(12)]}).summary()
    assert "a to d (4 values)" in book(4, labels={"day": list("dbca")}).summary()


@pytest.mark.parametrize("piece", [1, 3, 100_000])
def test_names_of_any_characters_and_lengths_are_read_as_they_are(monkeypatch, piece):
    names = ["a", "Zürich", "東京/C", "\U0001f600" * 3, "SPX/2024-03-15/4500.5/P", " b ", "é"]
    monkeypatch.setattr(row_values, "PIECE", piece)
    found = row_values._names(pl.Series(names))
    assert found.tolist() == names
    assert found.dtype == np.array(names).dtype
    assert row_values._names(pl.Series([], dtype=pl.String)).tolist() == []
