"""The book in a file keeps every promise of a store, and those only a file can break."""

from __future__ import annotations

import pytest

from strikeout.store.sqlite import SqliteStore
from tests.store.contract import StorePromises


@pytest.fixture
def store(tmp_path):
    with SqliteStore.create(tmp_path / "small.book", patience=0.05) as store:
        yield store


class TestSqlite(StorePromises):
    pass
