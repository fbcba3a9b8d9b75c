"""A book changed behind the desk's back by somebody who has its key: with an entry of the ledger, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strikeout.book.desk import Desk
from strikeout.store.store import Writing


@contextmanager
def entered(book: Desk) -> Iterator[Writing]:
    """A transaction on the store of a book that ends with an entry, so that the book can go on from there."""
    records = book._records
    with records.writing(records.position()) as transaction:
        yield transaction.store
        transaction.enter("test", None)
