"""Laws of the quotes room, searched for counterexamples."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from strikeout.quotes.contracts import Contracts
from strikeout.quotes.issues import QuotesWarning
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.reading import inspect_quotes, read_quotes
from strikeout.quotes.writing import write_quotes

# NumPy drops NUL at the end of text and UTF-8 has no surrogates; everything else may be in a name or a label.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
names = texts.filter(lambda text: text.strip() != "")
above_zero = st.floats(1e-300, 1e300)


@st.composite
def books(draw: st.DrawFn) -> Quotes:
    count = draw(st.integers(1, 6))

    def column(numbers: st.SearchStrategy[float]) -> list[float]:
        return draw(st.lists(numbers, min_size=count, max_size=count))

    contracts = Contracts(
        forward=column(above_zero),
        strike=column(above_zero),
        expiry=column(st.floats(1e-6, 100.0)),
        discount=column(st.floats(1e-6, 2.0)),
        is_call=draw(st.lists(st.booleans(), min_size=count, max_size=count)),
    )
    label = st.lists(texts, min_size=count, max_size=count)
    return Quotes(
        ids=draw(st.lists(names, min_size=count, max_size=count, unique=True)),
        contracts=contracts,
        observed=column(st.floats(0.0, 1e300)),
        weight=column(above_zero),
        spread=column(st.floats(allow_infinity=False)),
        labels={
            "licence": draw(label),
            "source": draw(label),
            "date": draw(st.lists(st.just("") | st.dates().map(str), min_size=count, max_size=count)),
            "underlying": draw(label),
            "iv": column(st.floats(allow_infinity=False)),
        },
    )


def assert_same(one: Quotes, other: Quotes) -> None:
    def bits(quotes: Quotes) -> dict[str, object]:
        contracts = quotes.contracts
        numbers = (
            contracts.forward,
            contracts.strike,
            contracts.expiry,
            contracts.discount,
            quotes.observed,
            quotes.weight,
        )
        texts = {name: column.tolist() for name, column in quotes.labels.items() if column.dtype.kind != "f"}
        unknown = {name: np.isnan(column) for name, column in (("spread", quotes.spread), ("iv", quotes.labels["iv"]))}
        return {
            "ids": quotes.ids.tolist(),
            "numbers": [column.tobytes() for column in (*numbers, contracts.is_call)],
            "known": [np.where(np.isnan(c), 0.0, c).tobytes() for c in (quotes.spread, quotes.labels["iv"])],
            "unknown": {name: where.tolist() for name, where in unknown.items()},
            "texts": texts,
        }

    assert bits(one) == bits(other)


@given(quotes=books(), ending=st.sampled_from(["csv", "parquet"]))
def test_a_written_book_reads_back_bit_for_bit(quotes: Quotes, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", QuotesWarning)  # such prices are mostly outside their bounds
        assert_same(read_quotes(write_quotes(quotes, Path(folder) / f"book.{ending}")), quotes)


cells = st.sampled_from(["90", "100", "100.0", "-1", "abc", "", "110"])
rows = st.tuples(
    cells, st.sampled_from(["C", "P", "put", "?"]), st.sampled_from(["12", "5", "", "5.0"]), st.sampled_from(["x", "y"])
)


@given(st.lists(rows, min_size=1, max_size=12).flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_the_order_of_the_rows_changes_neither_ids_nor_values(orders: tuple[list[tuple[str, ...]], ...]) -> None:
    def read(some: list[tuple[str, ...]]) -> tuple[dict[str, tuple[object, ...]], dict[str, int]]:
        frame = pl.DataFrame(some, schema=["strike", "right", "price", "source"], orient="row")
        fixed = {"expiry_years": 0.5, "forward": 100.0, "discount": 1.0}
        reading = inspect_quotes(frame.with_columns(*(pl.lit(value).alias(name) for name, value in fixed.items())))
        quotes = reading.quotes
        values = zip(
            quotes.contracts.strike, quotes.contracts.is_call, quotes.observed, quotes.labels["source"], strict=True
        )
        return dict(zip(quotes.ids.tolist(), values, strict=True)), reading.issues.counts

    assert read(orders[0]) == read(orders[1])


@given(quotes=books(), data=st.data())
def test_only_and_without_cut_a_book_in_two_parts_that_make_it_up(quotes: Quotes, data: st.DataObject) -> None:
    struck = data.draw(st.lists(st.sampled_from(quotes.ids.tolist()), unique=True))
    inside, outside = quotes.only(struck), quotes.without(struck)
    assert len(inside) == len(struck)
    assert set(inside.ids) == set(struck)
    merged = {name: price for part in (inside, outside) for name, price in zip(part.ids, part.observed, strict=True)}
    assert merged == dict(zip(quotes.ids, quotes.observed, strict=True))
    order = {name: row for row, name in enumerate(quotes.ids)}
    for part in (inside, outside):
        assert [order[name] for name in part.ids] == sorted(order[name] for name in part.ids)
        assert_same(part, quotes[[order[name] for name in part.ids]] if len(part) else quotes[:0])
