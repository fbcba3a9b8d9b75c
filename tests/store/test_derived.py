"""What a store keeps of quotes whose forwards were derived, in memory and on disk: never the derived numbers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError
from strikeout.store.residue import needles_of_numbers, scan
from strikeout.store.sqlite import SqliteStore
from tests.quotes.chains import chain
from tests.raising import raises
from tests.store.memory_store import MemoryStore


@cache
def quotes() -> so.Quotes:
    return so.inspect_quotes(chain()).quotes


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path: Path):
    made = MemoryStore() if request.param == "memory" else SqliteStore.create(tmp_path / "derived.book")
    with made.writing() as transaction:
        transaction.add(quotes())
    yield made
    made.close()


def test_the_retained_quotes_come_with_forwards_found_from_them_alone(store) -> None:
    assert (store.now.quotes().contracts.forward == quotes().contracts.forward).all()
    gone = quotes().ids[[20, 21]]
    with store.writing() as transaction:
        transaction.strike(gone, entry=1)
    assert (store.now.quotes().contracts.forward == quotes().without(gone).contracts.forward).all()
    assert (store.now.quotes().contracts.discount == quotes().without(gone).contracts.discount).all()


def test_everything_else_has_stand_ins(store) -> None:
    with store.writing() as transaction:
        transaction.strike(quotes().ids[:2], entry=1)
    for found in (store.now.named(quotes().ids[5:9]), store.now.quotes(struck=True), store.now.quotes(struck=None)):
        assert (found.contracts.forward == found.contracts.strike).all()
        assert (found.contracts.discount == 1.0).all()


def test_no_derived_number_is_in_the_file(tmp_path: Path) -> None:
    with SqliteStore.create(tmp_path / "derived.book") as store:
        with store.writing() as transaction:
            transaction.add(quotes())
        c = quotes().contracts
        needles = needles_of_numbers("derived", np.r_[np.unique(c.forward), np.unique(c.discount)])
        assert len(needles) == 3 * 6
        assert scan(store.files(), needles) == []


def test_a_slice_without_a_forward_is_not_read_as_if_it_had_one(store) -> None:
    c = quotes().contracts
    puts = quotes().ids[(c.expiry == c.expiry.min()) & ~c.is_call]
    with store.writing() as transaction:
        transaction.strike(puts, entry=1)
    with raises(RefusedError, slices=["2024-03-01 2024-04-05"]) as caught:
        store.now.quotes()
    assert len(caught.value.facts["ids"]) == 21
