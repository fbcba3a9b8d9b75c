"""Shards: every quote in one part, and the whole the sum of the parts."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UnknownIdError, UsageError
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.shards import shard, shard_states, shards_of, with_shards_replaced
from tests.raising import raises

QUOTES = so.paper.quotes("small", seed=3)
HESTON = so.Heston()
FOOTPRINTS = footprints_of(QUOTES, HESTON, HESTON.parameters.starts[0])

CUTS = {
    "by source": "source",
    "by ten days": "date:10",
    "by the papers thirty days": "day:30",
    "by month": "month",
    "by expiry": "expiry",
    "by product": "product",
    "by product with edges": "product:40,80",
    "by numbers of a width": "spot:2.5",
    "hybrid": ["date:20", "product", "source"],
    "hybrid in one text": "date:20,product:30,60,source",
    "every quote alone": "date,expiry_days,moneyness",
}


def labelled(**labels: list[object]) -> so.Quotes:
    count = len(next(iter(labels.values())))
    contracts = so.Contracts(
        forward=100.0,
        strike=np.linspace(70.0, 130.0, count),
        expiry=np.linspace(0.05, 1.5, count),
        discount=1.0,
        is_call=True,
    )
    return so.Quotes(ids=[f"q{i}" for i in range(count)], contracts=contracts, observed=np.ones(count), labels=labels)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_the_whole_is_the_sum_of_the_parts_however_it_was_cut(cut):
    shards = shard(QUOTES, cut)
    states = shard_states(FOOTPRINTS, shards)
    assert tuple(states) == shards.names
    assert NormalEquations.total(states.values()) == FOOTPRINTS.total()
    assert {name: state.count for name, state in states.items()} == shards.sizes
    assert all(size > 0 for size in shards.sizes.values())
    assert sorted(id for name in shards.names for id in shards.members(name)) == sorted(QUOTES.ids)


def test_a_shard_built_from_its_own_quotes_is_the_shard():
    shards = shard(QUOTES, "date:10")
    name = shards.names[3]
    alone = footprints_of(QUOTES.only(shards.members(name)), HESTON, HESTON.parameters.starts[0]).total()
    assert alone == shard_states(FOOTPRINTS, shards)[name]


def test_touched_shards_are_those_that_hold_a_quote():
    shards = shard(QUOTES, "day:30")
    days = QUOTES.labels["day"]
    touched = QUOTES.ids[(days == 31) | (days == 89)]
    assert shards.of(touched) == ("30", "60")
    assert shards.of(touched[:1]) == ("30",)
    assert shards.of([]) == ()
    numbers, beside = shards.beside(np.flatnonzero((days == 31) | (days == 89)))
    assert numbers == [1, 2]
    assert (np.sort(beside) == np.flatnonzero(days >= 30)).all()
    assert [len(part) for part in shards.beside(np.empty(0, np.intp))] == [0, 0]
    retained, rows = shards.touched(touched)
    assert retained.names == ("30", "60")
    assert (QUOTES.ids[rows] == QUOTES.ids[(days >= 30) & ~np.isin(QUOTES.ids, touched)]).all()
    assert {name: set(retained.members(name)) for name in retained.names} == {
        name: set(shards.members(name)) - set(touched) for name in retained.names
    }
    with raises(UnknownIdError, ids=["nobody"]):
        shards.of(["nobody"])


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_shards_replaced_by_their_sum_leave_the_total_and_others_are_kept(cut):
    shards, none = shard(QUOTES, cut), NormalEquations.zero(FOOTPRINTS.schema)
    for asked in ([0], [0, len(QUOTES) - 1], range(len(QUOTES))):
        touched, rows = shards.beside(np.array(asked))
        same = with_shards_replaced(FOOTPRINTS, shards, touched, rows, FOOTPRINTS.total(rows))
        assert same == FOOTPRINTS.total()
        left = FOOTPRINTS.total(np.setdiff1d(np.arange(len(QUOTES)), rows))
        assert with_shards_replaced(FOOTPRINTS, shards, touched, rows, none) == left


def test_the_latest_cut_of_quotes_is_kept_and_another_one_replaces_it():
    first = shards_of(QUOTES, "date:10")
    assert shards_of(QUOTES, "date:10") is first
    assert shards_of(QUOTES, ["date:10", "day:30"]).names == shard(QUOTES, ["date:10", "day:30"]).names
    assert shards_of(QUOTES, "date:10").sizes == first.sizes


def test_blocks_of_days_begin_at_the_same_dates_whatever_the_book_holds():
    dates = ["2024-01-02", "2024-01-07", "2024-01-08", "2024-02-20"]
    # 2023-12-29 is day 19720 from 1970-01-01: a multiple of ten.
    assert shard(labelled(date=dates), "date:10").sizes == {"2023-12-29": 2, "2024-01-08": 1, "2024-02-17": 1}
    assert shard(labelled(date=dates[1:]), "date:10").sizes == {"2023-12-29": 1, "2024-01-08": 1, "2024-02-17": 1}
    stamps = list(np.array(dates, "datetime64[s]"))
    assert shard(labelled(date=stamps), "date:10").names == ("2023-12-29", "2024-01-08", "2024-02-17")


def test_products_are_fixed_buckets_of_moneyness_and_maturity():
    quotes = labelled(source=["a"] * 7)  # strikes 70, 80, .. 130; 0.05 to 1.5 years
    assert shard(quotes, "moneyness").sizes == {
        "<0.8 K/F": 1,
        "0.8-0.95 K/F": 2,
        "0.95-1.05 K/F": 1,
        "1.05-1.2 K/F": 1,
        ">=1.2 K/F": 2,
    }
    assert shard(quotes, "maturity").names == ("<30 days", "90-180 days", "180-365 days", ">=365 days")
    assert shard(quotes, "product").names[0] == "<30 days, <0.8 K/F"


def test_names_that_read_alike_are_one_shard_and_nothing_is_lost():
    quotes = labelled(desk=["a / b", "a", "a"], book=["c", "b / c", "d"])
    shards = shard(quotes, ["desk", "book"])
    assert shards.sizes == {"a / b / c": 2, "a / d": 1}


def test_an_order_of_its_own_does_not_confuse_the_shards():
    rows = np.random.default_rng(2).permutation(len(QUOTES))
    in_order, shuffled = shard(QUOTES, "day:30"), shard(QUOTES[rows], "day:30")
    assert shard_states(FOOTPRINTS, shuffled) == shard_states(FOOTPRINTS, in_order)
    kept = FOOTPRINTS.without(QUOTES.ids[:100])
    assert NormalEquations.total(shard_states(kept, in_order).values()) == kept.total()


def test_a_quote_in_no_shard_is_refused_by_name():
    with raises(UnknownIdError, ids=["small-000-30-90"]):
        shard_states(FOOTPRINTS, shard(QUOTES[1:], "source"))


def test_an_empty_book_has_no_shards():
    assert shard(QUOTES[[]], "date:10").names == ()


@pytest.mark.parametrize(
    "by",
    [
        "desk",
        "desk:10",
        [],
        "",
        "source:10",
        "date:0",
        "date:2.5",
        "date:",
        "date:10,20",
        "date:ten",
        "month:2",
        "moneyness:1.1,0.9",
        "maturity:-30",
    ],
)
def test_what_cannot_be_cut_is_refused(by):
    with pytest.raises(UsageError):
        shard(QUOTES, by)


def test_a_label_with_a_colon_is_a_label():
    assert shard(labelled(**{"feed:2": ["a", "a", "b"]}), "feed:2").sizes == {"a": 2, "b": 1}


def test_months_and_edges_are_the_users():
    quotes = labelled(date=["2024-01-30", "2024-01-31", "2024-02-01"])  # 0.05, 0.775 and 1.5 years; strikes 70 to 130
    assert shard(quotes, "month").sizes == {"2024-01": 2, "2024-02": 1}
    assert shard(quotes, "maturity:30,300").sizes == {"<30 days": 1, "30-300 days": 1, ">=300 days": 1}
    assert shard(quotes, "month,moneyness:0.9").names == (
        "2024-01 / <0.9 K/F",
        "2024-01 / >=0.9 K/F",
        "2024-02 / >=0.9 K/F",
    )
    with pytest.raises(UsageError):
        shard(labelled(day=[1, 2]), "month")


def test_a_label_named_like_a_cut_is_ambiguous():
    with raises(UsageError, by="expiry"):
        shard(labelled(expiry=[1, 2]), "expiry")


def test_quotes_without_a_date_cannot_be_cut_by_days():
    with raises(UsageError, missing=1, count=2):
        shard(labelled(date=["2024-01-02", ""]), "date:10")


def test_an_unknown_shard_is_answered_with_the_known_ones():
    with raises(UsageError, shard="yesterday"):
        shard(QUOTES, "date:10").members("yesterday")
