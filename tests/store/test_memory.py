"""The book in memory keeps every promise of a store."""

from __future__ import annotations

import pytest

from tests.store.contract import StorePromises
from tests.store.memory_store import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


class TestMemory(StorePromises):
    def test_a_moment_does_not_see_what_is_written_after_it(self, store: MemoryStore):
        with store.reading() as moment:
            with store.writing() as tx:
                tx.append(b"entry")
            assert moment.entries() == ()
        assert store.now.entries() == (b"entry",)
