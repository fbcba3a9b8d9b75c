"""A book changed outside its verbs by somebody who has its key: with an entry of the ledger, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strikeout.book import Book
from strikeout.store.store import Writing


@contextmanager
def entered(book: Book, what: str = "test", **recorded: Any) -> Iterator[Writing]:
    """A transaction on the store of a book that ends with an entry, so that the book can go on from there."""
    seen = book.snapshot()
    with seen.session.writing(seen.position) as transaction:
        yield transaction.store
        transaction.enter(what, None, **recorded)
