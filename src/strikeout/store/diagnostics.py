"""Check what a book depends on: the SQLite of this Python, the book's file, its keys and its ledger."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from strikeout.errors import StrikeoutError
from strikeout.store.bookfile import BESIDE, VERSION, connect, real_path
from strikeout.store.keyring import Keyring, key_file
from strikeout.store.ledger import Ledger, check_bytes
from strikeout.store.sqlite import SqliteStore
from strikeout.text import agreeing, many


@dataclass(frozen=True)
class Finding:
    """The result of one check: its name, whether it passed, and what was found."""

    name: str
    is_well: bool
    seen: str


def engine() -> tuple[Finding, ...]:
    """Return the version of SQLite, and whether the options that a book needs take effect."""
    return Finding("sqlite", True, sqlite3.sqlite_version), _options()


def book(path: Path) -> tuple[Finding, ...]:
    """Check a book's file, key file, bytes, shards and ledger. Only ``verify`` repeats calibrations."""
    path = real_path(path)
    found = [_judged("file", lambda: _file(path)), _judged("key file", lambda: _keys(path))]
    if found[0].is_well:
        looks = {"bytes": _bytes, "shards": _shards, "ledger": _ledger}
        found += [_judged(name, partial(look, path)) for name, look in looks.items()]
    return tuple(found)


def _options() -> Finding:
    wanted = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "trial", isolation_level=None)
        try:
            for name, value in wanted.items():
                connection.execute(f"PRAGMA {name} = {value}")
            taken = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted}
        except sqlite3.Error as error:
            return Finding("sqlite options", False, f"they cannot be set in a temporary file: {error}")
        finally:
            connection.close()
    off = [f"{name} is {taken[name]}" for name in wanted if taken[name] != wanted[name]]
    return Finding("sqlite options", not off, ", ".join(off) or "WAL, synchronous, secure_delete and foreign keys work")


def _judged(name: str, look: Callable[[], tuple[bool, str]]) -> Finding:
    try:
        return Finding(name, *look())
    except StrikeoutError as error:
        return Finding(name, False, error.sentence)
    except OSError as error:
        return Finding(name, False, f"{error.filename}: {error.strerror}.")


def _file(path: Path) -> tuple[bool, str]:
    connect(path).close()
    size = path.stat().st_size
    beside = sum(log.stat().st_size for log in (path.with_name(path.name + end) for end in BESIDE) if log.exists())
    more = f", {beside:,} in logs beside it" if beside else ""
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        return False, f"{path} or its folder cannot be written to."
    return True, f"{size:,} bytes{more}; tables of version {VERSION}"


def _keys(path: Path) -> tuple[bool, str]:
    place = key_file(path)
    keyring = Keyring.read(place)
    mode = stat.S_IMODE(place.stat().st_mode)
    rotating = "; a change of keys was not finished" if len(keyring.signers) > 1 else ""
    return not rotating, f"{place}, mode {mode:o}{rotating}"


def _key(path: Path) -> bytes | None:
    """Return the key that rows are sealed with; None if the key file cannot be read or belongs to another book."""
    with SqliteStore.open(path, key=None) as store:
        entries = store.now.entries()
    try:
        keyring = Keyring.read(key_file(path))
        is_own = not check_bytes(entries, keyring=keyring)
    except StrikeoutError:
        return None
    return keyring.store_key() if is_own else None


def _bytes(path: Path) -> tuple[bool, str]:
    with SqliteStore.open(path, key=_key(path)) as store:
        faults = store.faults()
        counts = store.now.counts()
    return not faults, " ".join(
        faults
    ) or f"as written; {many(counts.retained, 'quote')} held, {counts.struck:,} set aside"


def _shards(path: Path) -> tuple[bool, str]:
    """Count shards. A shard with footprints and without a state was not written by this package."""
    with SqliteStore.open(path, key=None) as store:
        now = store.now
        counts, kept, states = now.shards(), now.shards_with("footprints"), now.shards_with("states")
    named = ", ".join(f"{shard} ({count:,})" for shard, count in list(counts.items())[:4])
    more = f" and {len(counts) - 4:,} more" if len(counts) > 4 else ""
    stateless = set(kept) - set(states)
    if stateless:
        which = f"{many(len(stateless), 'shard')} {agreeing(len(stateless), 'keeps', 'keep')}"
        return False, f"{which} footprints and no state, the first {min(stateless)}."
    left = f"footprints of {len(kept):,}, states of {len(states):,}" if states else "no footprints or states by shard"
    return True, f"{len(counts):,}: {named}{more}; {left}"


def _ledger(path: Path) -> tuple[bool, str]:
    with SqliteStore.open(path, key=None) as store:
        rows = store.now.entries()
    faults = check_bytes(rows, keyring=Keyring.read(key_file(path)))
    return not faults, " ".join(
        faults
    ) or f"{many(len(rows), 'entry', 'entries')}, chained and signed; head {Ledger.from_bytes(rows).head()}"
