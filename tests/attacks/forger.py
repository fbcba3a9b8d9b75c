"""Somebody with an editor of SQL and all of our code, but without the key of the book.

Checksums of rows and their sum need no key, so they are made to match; tags and keyed sums cannot be.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import strikeout as so
from strikeout.store.checksums import checksum, chunk_sum, mark_sum
from strikeout.store.chunks import chunk_of, decoded, encoded, quotes_of

Tables = sqlite3.Connection


@contextmanager
def forging(path: Path) -> Iterator[Tables]:
    """The tables of a closed book; every checksum is right again when the block ends."""
    tables = sqlite3.connect(path, isolation_level=None)
    try:
        yield tables
        _reseal(tables)
    finally:
        tables.close()


def change_quotes(tables: Tables, change: Callable[[so.Quotes], so.Quotes]) -> None:
    """Puts other quotes in the place of those of every chunk, under whatever names they then have."""
    for number, data in tables.execute("SELECT number, data FROM chunks").fetchall():
        new = change(quotes_of([decoded(data)]))
        if not len(new):
            tables.execute("DELETE FROM chunks WHERE number = ?", (number,))
            continue
        put = (encoded(chunk_of(new)), len(new), number)
        tables.execute("UPDATE chunks SET data = ?, count = ? WHERE number = ?", put)
    tables.execute("DELETE FROM names")
    for number, data in tables.execute("SELECT number, data FROM chunks").fetchall():
        names = [(name.encode(), number) for name in decoded(data).ids]
        tables.executemany("INSERT INTO names VALUES (?, ?)", names)


def put_page(tables: Tables, kind: str, name: str, data: bytes) -> None:
    """Puts other bytes on a page, or makes the page."""
    done = tables.execute("UPDATE pages SET data = ? WHERE kind = ? AND name = ?", (data, kind, name))
    if not done.rowcount:
        columns = [row[1] for row in tables.execute("PRAGMA table_info(pages)")]
        row = {"kind": kind, "name": name, "data": data}
        marks = ", ".join("?" * len(columns))
        tables.execute(f"INSERT INTO pages VALUES ({marks})", [row.get(column, b"") for column in columns])


def page(tables: Tables, kind: str, name: str) -> bytes:
    """The bytes of a page."""
    ((data,),) = tables.execute("SELECT data FROM pages WHERE kind = ? AND name = ?", (kind, name))
    return bytes(data)


def put_back(tables: Tables, older: Path, table: str) -> None:
    """Puts the rows of a table back as an older copy of the book has them: tags and all, they were once true."""
    tables.execute("ATTACH ? AS older", (str(older),))
    tables.execute(f"DELETE FROM {table}")
    tables.execute(f"INSERT INTO {table} SELECT * FROM older.{table}")
    tables.execute("DETACH older")


def _reseal(tables: Tables) -> None:
    total = rows = held = marked = 0

    def count(row: bytes) -> None:
        nonlocal total, rows
        total, rows = (total + int.from_bytes(row, "big")) % (1 << 256), rows + 1

    homes = {}
    for number, amount, data in tables.execute("SELECT number, count, data FROM chunks").fetchall():
        row = chunk_sum(number, amount, data)
        tables.execute("UPDATE chunks SET sum = ? WHERE number = ?", (row, number))
        homes |= dict.fromkeys((name.encode() for name in decoded(data).ids), number)
        held += amount
        count(row)
    for what in ("footprints", "states"):
        for shard, data in tables.execute(f"SELECT shard, data FROM {what}").fetchall():
            row = checksum(what, shard, data)
            tables.execute(f"UPDATE {what} SET sum = ? WHERE shard = ?", (row, shard))
            count(row)
    for kind, name, data in tables.execute("SELECT kind, name, data FROM pages").fetchall():
        row = checksum(kind, name, data)
        tables.execute("UPDATE pages SET sum = ? WHERE kind = ? AND name = ?", (row, kind, name))
        count(row)
    for name, entry in tables.execute("SELECT id, entry FROM marks").fetchall():
        count(mark_sum(name, homes[name], entry))
        marked += 1
    for (row,) in tables.execute("SELECT sum FROM entries").fetchall():
        count(row)
    values = (total.to_bytes(32, "big"), rows, held, marked)
    tables.execute("UPDATE seal SET total = ?, rows = ?, held = ?, marked = ?", values)
