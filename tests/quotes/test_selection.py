"""A condition picks the quotes it says, reads what it must, and can do nothing else."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.quotes import selection
from strikeout.quotes.selection import select
from tests.raising import raises

BOOK = so.paper.quotes("small", seed=3)
A_LOT = "a" * 99


def labelled(**labels) -> so.Quotes:
    contracts = so.Contracts(
        forward=100.0, strike=[90.0, 100.0, 110.0], expiry=[0.1, 0.2, 0.3], discount=1.0, is_call=[True, False, True]
    )
    return so.Quotes(ids=["a", "b", "c"], contracts=contracts, observed=[10.0, 4.0, 0.5], labels=labels)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("strike = 90", BOOK.contracts.strike == 90),
        ("strike > '95'", BOOK.contracts.strike > 95),
        ("price < 1 and expiry_years < 0.2", (BOOK.observed < 1) & (BOOK.contracts.expiry < 0.2)),
        ("date between '2024-02-01' and '2024-02-29'", [d.startswith("2024-02") for d in BOOK.labels["date"]]),
        ("day = 3 or DAY = 5", np.isin(BOOK.labels["day"], [3, 5])),
        ("log_moneyness > 0", BOOK.contracts.strike > BOOK.contracts.forward),
        ("right = 'C' and forward > 100 and discount < 1 and weight = 1", BOOK.contracts.forward > 100),
        ("date = (select max(date) from quotes)", BOOK.labels["day"] == 89),
        ("spread is null -- none of them is known", np.ones(540, bool)),
        ("((strike = 90)) and '(' < ')' /* ) */ -- )", BOOK.contracts.strike == 90),
        ("id like '%-100' and \"day\" < 2", [name.startswith("small-00") for name in BOOK.ids]),
    ],
)
def test_a_condition_picks_the_quotes_it_says(where, rows):
    expected = BOOK.ids[np.asarray(rows)]
    if where.startswith("id like"):
        expected = np.array([f"small-{d:03d}-{t}-100" for d in (0, 1) for t in (30, 60)])
    assert select(BOOK, where).tolist() == expected.tolist()
    assert len(expected)


def test_puts_numbers_dates_and_truths_can_be_asked_for():
    book = labelled(
        bad=[True, False, True],
        seen=np.array(["2025-01-01", "2025-01-02", "2025-01-03"], "datetime64[D]"),
        lots=[1, 2, 3],
        note=["x", None, "it's"],
    )
    assert select(book, "right = 'P'").tolist() == ["b"]
    assert select(book, "bad").tolist() == ["a", "c"]
    assert select(book, "seen >= '2025-01-02' and lots < 3").tolist() == ["b"]
    assert select(book, "note = 'it''s'").tolist() == ["c"]
    assert select(book, "note = 'nothing has this'").tolist() == []


def test_numbers_that_came_as_text_compare_as_numbers(tmp_path):
    """A CSV has no types; as texts '100' would be below '50', and other quotes be struck out than were meant."""
    so.write_quotes(BOOK, tmp_path / "book.csv")
    book = so.read_quotes(tmp_path / "book.csv")
    assert book.labels["day"].dtype.kind in "OU"
    for where in ("day < 15", "day < '15'", "day <= 14.5", "day in (0,1,2,3,4,5,6,7,8,9,10,11,12,13,14)"):
        assert select(book, where).tolist() == BOOK.ids[BOOK.labels["day"] < 15].tolist()
    assert select(book, "day = '7' and day like '7'").tolist() == BOOK.ids[BOOK.labels["day"] == 7].tolist()


def test_a_number_that_is_missing_is_null_and_a_name_of_digits_stays_a_name():
    book = labelled(lots=["9.5", "", "100"], desk=["007", "7", "x"], code=["007", "7", "70"])
    assert select(book, "lots > 20").tolist() == ["c"]
    assert select(book, "lots is null").tolist() == ["b"]
    assert select(book, "desk = '7'").tolist() == select(book, "code = '7'").tolist() == ["b"]


def test_an_odd_name_is_found_in_double_quotes():
    assert select(labelled(**{"bid size": [1.0, 2.0, 3.0]}), '"bid size" > 1').tolist() == ["b", "c"]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("strke > 3", "no such column: strke"),
        ('"strke" > 3', "names a column"),
        ('source = "b"', "write 'b'"),
        ("strike >", "ends with"),
        ("1); drop table quotes; --", "not a condition"),
        ("1) union select 7 --", "not a condition"),
        ("strike > 3; select 1", "not a condition"),
        ("load_extension('x')", "the function load_extension"),
        ("writefile('x', 'y')", "writefile"),
        ("(with recursive t(x) as (select 1 union all select x + 1 from t) select 1 from t)", "more than reading"),
        ("strike\0", "null character"),
        ("0) union select 999 where (1", "closes a bracket"),
        ("strike > 3 /* ( */) or (1", "closes a bracket"),
        ("(select count(*) from quotes a, quotes b, quotes c, quotes d) > 0", "seconds of work"),
        ("replace(" * 5 + f"'{A_LOT}'" + f", 'a', '{A_LOT}')" * 5 + " > ''", "10,000 characters"),
    ],
)
def test_what_is_no_condition_is_refused_in_a_sentence(where, says):
    with pytest.raises(UsageError, match=r"^where") as refused:
        select(BOOK, where)
    assert says in refused.value.sentence


def test_a_label_that_hides_a_column_is_refused_only_where_it_is_asked_for():
    book = labelled(strike=["low", "mid", "high"])
    assert select(book, "price > 1").tolist() == ["a", "b"]
    with raises(UsageError, column="strike"):
        select(book, "strike = 'low'")


def test_labels_that_differ_in_case_only_are_refused():
    with raises(UsageError, mentions={"where"}):
        select(labelled(Desk=["x"] * 3, desk=["y"] * 3), "price > 1")


def test_only_the_columns_a_condition_names_are_read():
    """A million quotes with thirty labels are not copied to look at two: the implied arrays stay uncomputed."""
    book = so.synthetic.random_quotes(50)
    select(book, "strike > 100")
    assert "log_moneyness" not in vars(book.contracts)
    select(book, "log_moneyness > 0")
    assert "log_moneyness" in vars(book.contracts)


def test_conditions_one_after_another_select_what_each_alone_selects_in_any_order_and_thread():
    """The table of the quotes asked last is kept; other columns, other quotes and another thread get a new one."""
    one, two = so.paper.quotes("small"), so.paper.quotes("small")[np.arange(100)]
    asked = [
        (quotes, where)
        for where in ("strike = 90", "strike = 90 and date > '2024-01-10'", "price < (select avg(price) from quotes)")
        for quotes in (one, two, one)
    ]
    alone = [select(quotes[np.arange(len(quotes))], where).tolist() for quotes, where in asked]
    assert all(0 < len(ids) < len(quotes) for ids, (quotes, _) in zip(alone, asked, strict=True))
    with ThreadPoolExecutor(3) as threads:
        for run in (map, threads.map):
            assert [ids.tolist() for ids in run(lambda each: select(*each), asked)] == alone
    with raises(UsageError):
        select(one, "strike = ")
    assert select(one, asked[0][1]).tolist() == alone[0]


def test_quotes_that_were_asked_are_gone_from_memory_with_the_last_reference_to_them():
    quotes = so.paper.quotes("small")
    select(quotes, "strike = 90")
    sheet, last = selection._LAST.sheet, ref(quotes)
    assert sheet.of() is quotes
    del quotes
    gc.collect()
    assert (last(), sheet.columns, sheet._table) == (None, {}, None)
