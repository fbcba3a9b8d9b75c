"""Writing a book: what is refused, and that a file is there whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from strikeout.errors import UsageError
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.reading import read_quotes
from strikeout.quotes.writing import replace_file, write_quotes
from tests.raising import raises


def book(**labels: object) -> Quotes:
    contracts = Contracts(forward=100.0, strike=[90.0, 110.0], expiry=0.5, discount=0.99, is_call=[True, False])
    return Quotes(ids=["a", "b"], contracts=contracts, observed=[12.0, 11.0], labels=labels)  # type: ignore[arg-type]


def test_parquet_keeps_the_type_of_every_label(tmp_path: Path) -> None:
    labels = {
        "day": np.array([3, 4]),
        "vega": np.array([0.1, np.nan]),
        "liquid": np.array([True, False]),
        "seen": np.array(["2024-01-02", "2024-01-03"], "datetime64[D]"),
        "desk": np.array(["x", ""]),
    }
    back = read_quotes(write_quotes(book(**labels), tmp_path / "book.parquet"))
    for name, column in labels.items():
        assert np.array_equal(back.labels[name], column, equal_nan=name == "vega"), name
        assert back.labels[name].dtype.kind == ("O" if name == "desk" else column.dtype.kind)


def test_a_csv_gives_labels_back_as_text(tmp_path: Path) -> None:
    back = read_quotes(write_quotes(book(day=np.array([3, 4])), tmp_path / "book.csv"))
    assert back.labels["day"].tolist() == ["3", "4"]


def test_date_labels_are_written_as_the_canonical_columns(tmp_path: Path) -> None:
    path = write_quotes(book(date=["2024-01-02"] * 2, expiry_date=["2024-07-02"] * 2), tmp_path / "book.csv")
    assert (
        path.read_text().splitlines()[0]
        == "id,expiry_years,strike,right,price,forward,discount,weight,quote_date,expiry"
    )
    assert read_quotes(path).labels["expiry_date"].tolist() == ["2024-07-02"] * 2


@pytest.mark.parametrize("label", ["strike", "mid", "Price", "symbol", "quote_id", " desk"])
def test_a_label_that_would_come_back_as_something_else_is_refused(tmp_path: Path, label: str) -> None:
    with raises(UsageError, label=label) as caught:
        write_quotes(book(**{label: ["x", "y"]}), tmp_path / "book.csv")
    assert "role" in caught.value.facts
    assert list(tmp_path.iterdir()) == []


def test_text_in_a_label_that_files_hold_as_numbers_is_refused(tmp_path: Path) -> None:
    with raises(UsageError, label="bid", needed="numbers"):
        write_quotes(book(bid=["x", "y"]), tmp_path / "book.csv")
    with raises(UsageError, label="source", needed="text"):
        write_quotes(book(source=[1.0, 2.0]), tmp_path / "book.csv")


def test_an_unknown_ending_or_an_absent_folder_is_refused(tmp_path: Path) -> None:
    with raises(UsageError, ending=".xlsx"):
        write_quotes(book(), tmp_path / "book.xlsx")
    with raises(UsageError, errno=errno.ENOENT):
        write_quotes(book(), tmp_path / "absent" / "book.csv")


def test_a_write_that_fails_halfway_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "book.csv"
    target.write_text("old")

    def half(path: Path) -> None:
        path.write_text("ne")
        raise OSError(28, "No space left on device")

    with raises(UsageError, path=str(target), errno=errno.ENOSPC):
        replace_file(target, half)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_frame_of_a_book_reads_back_as_the_book() -> None:
    quotes = book(desk=["x", "y"])
    back = read_quotes(quotes.to_frame())
    assert back.ids.tolist() == quotes.ids.tolist()
    assert back.observed.tolist() == quotes.observed.tolist()
    assert back.labels["desk"].tolist() == ["x", "y"]
