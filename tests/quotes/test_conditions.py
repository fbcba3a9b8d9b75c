"""A condition means what it looks like: dates are dates in the usual spellings, / divides, other names work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout import paper
from strikeout.cli.fit_options import with_headers_of
from strikeout.errors import UsageError
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.selection import select, unmatched_texts
from strikeout.statistics.groups import groups_of
from tests.raising import raises


@pytest.fixture(scope="module")
def quotes() -> Quotes:
    days = ["2011-09-28", "2011-10-01", "2011-10-12", "2011-11-02"]
    return Quotes(
        ids=["a", "b", "c", "d"],
        contracts=Contracts(
            forward=100.0, strike=[90.0, 95.0, 100.0, 2000.0], expiry=[0.01, 0.02, 0.5, 1.0], discount=1.0, is_call=True
        ),
        observed=[10.5, 6.0, 3.0, 0.1],
        labels={
            "date": np.array(days, object),
            "expiry_date": np.array(["2011-10-02", "2011-10-08", "2012-04-01", "2012-11-02"], object),
            "underlying": np.array(["SPX", "SPX", "NDX", "NDX"], object),
            "taken": np.array(days, "M8[ns]"),
        },
    )


def chosen(quotes: Quotes, where: str) -> str:
    return "".join(select(quotes, where).tolist())


@pytest.mark.parametrize(
    "day",
    ["2011-10-01", "'2011-10-01'", "'2011-10-1'", "2011-10-1", "'2011/10/01'", "2011/10/1", "'2011.10.1'", "20111001",
     "'20111001'", "'1 Oct 2011'", "'October 1, 2011'", "'01-Oct-2011'"],
)  # fmt: skip
@pytest.mark.parametrize("column", ["date", "quote_date", '"date"', "quotes.date", "trade_date", "taken"])
def test_every_spelling_of_a_day_is_that_day(quotes, column, day):
    assert chosen(quotes, f"{column} = {day}") == "b"
    assert chosen(quotes, f"{column} > {day}") == "cd"
    assert chosen(quotes, f"{day} >= {column}") == "ab"
    assert chosen(quotes, f"{column} between {day} and '2011-10-31'") == "bc"
    assert chosen(quotes, f"{column} not in ({day}, '2011-11-2')") == "ac"


def test_months_and_years_are_where_they_begin(quotes):
    assert chosen(quotes, "date >= '2011-10' and date < '2011-11'") == "bc"
    assert chosen(quotes, "expiry < '2012'") == "ab"


@pytest.mark.parametrize(
    "where",
    ["date > 2011", "date = '2011-10'", "date > '10/1/2011'", "date > '01.10.2011'", "date < 'yesterday'",
     "date = '2011-13-01'", "date = 2011-02-30", "expiry_date > '2011-10-01 16:00'"],
)  # fmt: skip
def test_a_date_that_can_be_read_in_two_ways_or_in_none_is_refused_with_its_text(quotes, where):
    with pytest.raises(UsageError) as error:
        select(quotes, where)
    assert error.value.facts["column"].strip('"') in where
    assert error.value.facts["text"] in where


def test_a_date_beside_a_number_is_refused_and_a_subtraction_with_spaces_is_one(quotes):
    with pytest.raises(UsageError) as error:
        select(quotes, "strike > 2011-10-01")
    assert error.value.facts["text"] == "2011-10-01"
    assert chosen(quotes, "strike > 2011 - 10 - 2") == "d"


def test_whole_numbers_divide(quotes):
    assert chosen(quotes, "expiry_years < 7/365") == "a"
    assert chosen(quotes, "strike / 2 = 47.5") == "b"
    assert chosen(quotes, "7/2*2 = 7 and 1 /* 2/3 */ = 1 and id <> '1/2'") == "abcd"


@pytest.mark.parametrize(
    ("where", "ids"),
    [("symbol = 'SPX'", "ab"), ("Ticker = 'NDX'", "cd"), ("expiry > '2012-1-1'", "cd"), ("expiration > 20120101", "cd"),
     ("mid > 5", "ab"), ("cp_flag = 'C' and t_years > 0.1", "cd"), ("quotes.symbol = 'SPX'", "ab")],
)  # fmt: skip
def test_names_that_files_have_for_a_column_work(quotes, where, ids):
    assert chosen(quotes, where) == ids


def test_a_label_with_an_aliass_own_name_is_meant_itself(quotes):
    labels = {**quotes.labels, "symbol": np.array(["x", "x", "y", "y"], object)}
    own = Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels=labels)
    assert chosen(own, "symbol = 'y'") == "cd"


def test_a_misspelt_column_is_answered_with_the_nearest(quotes):
    with raises(UsageError, where="stirke > 3"):
        select(quotes, "stirke > 3")


def test_texts_that_no_quote_has_are_named_with_the_nearest_values(quotes):
    found = unmatched_texts(quotes, "underlying = 'spx' and right in ('C', 'X') and strike > 3 and symbol = 'SPX'")
    assert [(one.column, one.text, one.nearest) for one in found] == [
        ("underlying", "spx", ("SPX",)),
        ("right", "X", ()),
    ]
    assert found[0].values == ("NDX", "SPX")


@pytest.mark.parametrize(
    ("day", "nearest"),
    [
        ("2011-10-10", ("2011-10-12", "2011-10-01")),
        ("2011-10-02", ("2011-10-01", "2011-10-12")),
        ("2012-09-28", ("2011-11-02",)),
        ("2011-01-02", ("2011-09-28",)),
        ("october", ()),
    ],
)
def test_a_date_that_no_quote_has_is_answered_with_the_dates_around_it(quotes, day, nearest):
    """Not with those that are spelt like it: 28 September of another year is a year away."""
    (found,) = unmatched_texts(quotes, f"date = '{day}'")
    assert found.nearest == nearest


def test_a_label_of_other_texts_is_compared_as_text():
    quotes = paper.quotes("small")
    assert len(select(quotes, "source = 'a'")) == 0
    assert len(select(quotes, "source > '2024'")) == len(quotes)


@pytest.mark.parametrize(
    "where",
    ["strike > 'a", 'strike > "a', "strike > `a", "strike > [a", "(strike > 3", "strike > 3)", "strike >", "not",
     "strike > 3 /* why", "strike > 3 and"],
)  # fmt: skip
def test_an_unfinished_condition_is_refused_before_sqlite_sees_it(quotes, where):
    with pytest.raises(UsageError) as refused:
        select(quotes, where)
    told = str(refused.value)
    assert "is not a condition: " in told
    assert not {"near", "SELECT", "ORDER", "_row", "unrecognized", "incomplete"} & set(told.replace('"', " ").split())


def test_a_quotation_mark_inside_a_text_is_closed(quotes):
    assert len(select(quotes, "underlying != 'O''Neil (' and strike > 0 -- ( '")) == len(quotes)


@pytest.mark.parametrize("name", ["maturity", "moneyness", "month", "is_call", "symbol", "expiration", "quote_date"])
def test_groups_and_conditions_know_the_same_names(quotes, name):
    groups = groups_of(quotes, name)
    assert groups.count >= 1
    assert len(select(quotes, f"{name} is not null")) == len(quotes)


def test_a_misspelt_group_is_answered_with_the_nearest(quotes):
    with raises(UsageError, label="stirke"):
        groups_of(quotes, "stirke")


def test_a_label_comes_before_a_computed_column_of_its_name(quotes):
    labelled = replace(quotes, labels={**quotes.labels, "maturity": np.full(len(quotes), "long")})
    assert len(select(labelled, "maturity = 'long'")) == len(quotes)


@pytest.mark.parametrize(
    ("header", "canonical"),
    [
        ('"Open Interest" > 1000', "open_interest > 1000"),
        ("open_interest > 1000", "open_interest > 1000"),
        ('"Open Interest (2)" > 1000', "open_interest > 1000 and right = 'P'"),
        ('Bid > 5 and "Bid (2)" > 5', "bid > 5 and right = 'P'"),
    ],
)
def test_headers_of_a_vendor_file_work_in_conditions(shared_data, header, canonical):
    reading = so.inspect_quotes(shared_data("raw/cboe_spx_2022-06-10.csv.gz"))
    own = select(reading.quotes, with_headers_of(reading, header)).tolist()
    assert own == select(reading.quotes, canonical).tolist()
    assert 0 < len(own) < len(reading.quotes)


@pytest.mark.parametrize(("header", "told"), [("delta > 0.1", "left out"), ("Calls = 'x'", "root, expiry_date")])
def test_a_header_without_one_meaning_is_refused(shared_data, header, told):
    reading = so.inspect_quotes(shared_data("raw/cboe_spx_2022-06-10.csv.gz"))
    with pytest.raises(UsageError, match=told):
        with_headers_of(reading, header)
