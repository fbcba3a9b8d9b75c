"""Search a lake, its logs and its cache for quotes that should be gone, and report where and why they are readable.

Data files are decoded and compared quote by quote: by id, or by contract, price and date. Everything else (logs of a
table, statistics in the footer of a Parquet file, deletion vectors, other files) is searched for ids, and for numbers
that no quote left in the lake has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from strikeout.errors import StrikeoutError, UsageError
from strikeout.kernels.arrays import Floats, Mask
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.writing import replace_file
from strikeout.scale.fleet import groups
from strikeout.scale.lake import DELTA_LOG, ENDINGS, Lake
from strikeout.scale.strike_out import certificate_name
from strikeout.store.residue import Needles, needles_of, value_of
from strikeout.tables import Table, number
from strikeout.text import many

Progress = Callable[[str, int, int], None]

MAGIC = b"PAR1"
CACHE_ENDING = ".states"


class Place(Enum):
    """Why a quote is still readable; the value is the sentence for people."""

    DATA = "a data file of the lake: it was not deleted"
    OLD_VERSION = "a data file of an old version of the table: remove it (VACUUM with a retention of zero hours)"
    LOG = "the log of the table, which keeps statistics of deleted files: rewrite the table in a new folder"
    STATISTICS = "statistics in the footer of a Parquet file: rewrite the file"
    CACHE = "states of a cache: they contain sums over the quote; remove the file and gather again"
    OTHER = "another file in the folder"


@dataclass(frozen=True)
class Finding:
    """A file in which erased quotes are readable: how many, or which of their values."""

    file: str
    place: Place
    quotes: int
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class LakeSearch:
    """What a search of a lake found."""

    files: int
    unread: tuple[str, ...]  # data files that could not be decoded; their bytes were searched
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_table(self) -> Table:
        """Return one row per finding."""
        rows = [
            (found.file, number(found.quotes or None, ",d"), ", ".join(found.values), found.place.value)
            for found in self.findings
        ]
        return Table(("file", "quotes", "values", "place and remedy"), rows, numbers=(1,), whole=(0,))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rows = [
            {"file": found.file, "place": found.place.name, "quotes": found.quotes, "values": list(found.values)}
            for found in self.findings
        ]
        return {"clean": self.is_clean, "files": self.files, "unread": list(self.unread), "findings": rows}

    def summary(self) -> str:
        """Return the result in a sentence."""
        if self.is_clean:
            return f"Nothing was found in {many(self.files, 'file')}."
        return f"Erased quotes are readable in {len(self.findings):,} places of {many(self.files, 'file')}."


def search_lake(
    lake: Lake, erased: Quotes, *, cache: str | None = None, progress: Progress | None = None
) -> LakeSearch:
    """Search every file in the folder of a lake, hidden ones included, for quotes that were erased from it.

    Args:
        lake: its folder and how its files are read. A Delta table is searched too: every version, and its log.
        erased: the quotes that should be gone.
        cache: a folder of ``gather`` to search too.
        progress: called with a file, the number of searched files and of all.

    Raises:
        UsageError: the lake is not a folder of this machine, or no quote is given.
    """
    folder = Path(lake.path)
    if lake.is_remote or not folder.is_dir():
        raise UsageError(f"{lake.path}: only a folder of this machine can be searched. Copy the files to one.")
    if not len(erased):
        raise UsageError("No erased quotes are given, so there is nothing to search for.")
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    kept_states = sorted(Path(cache).rglob(f"*{CACHE_ENDING}")) if cache is not None else []
    live = _live_files(folder)
    rows = _Rows.of(erased)
    findings: list[Finding] = []
    unread: list[str] = []
    touched: set[str] = set()
    needles = dict(needles_of(erased).found)
    for done, file in enumerate(files):
        name = file.relative_to(folder).as_posix()
        if progress is not None:
            progress(name, done, len(files) + len(kept_states))
        if not name.endswith(ENDINGS) or _is_in_log(file, folder):
            continue
        try:
            quotes = lake.read(name).quotes
        except StrikeoutError:
            unread.append(name)
            continue
        hits = rows.found_in(quotes)
        own = needles_of(erased, retained=quotes[~hits]).found
        needles = {needle: kind for needle, kind in needles.items() if needle in own}
        if hits.any():
            is_old = live is not None and name not in live
            findings.append(Finding(name, Place.OLD_VERSION if is_old else Place.DATA, int(hits.sum())))
            touched.add(lake.content(name))
    telling = {needle: kind for needle, kind in needles.items() if kind[0] in ("id", "observed")}
    findings += _in_bytes(files, folder, Needles(telling), set(unread))
    findings += _in_cache(kept_states, touched)
    return LakeSearch(len(files) + len(kept_states), tuple(unread), tuple(findings))


@dataclass(frozen=True)
class KeptErased:
    """What was removed of the results kept of a lake: files of states, rows of a table of fits, certificates."""

    states: int
    rows: int
    certificates: int

    def to_dict(self) -> dict[str, int]:
        """Return plain values for JSON."""
        return asdict(self)

    def summary(self) -> str:
        """Return the counts as plain text."""
        return (
            f"Removed {many(self.states, 'file')} of states, {many(self.rows, 'row')} of fits and "
            f"{many(self.certificates, 'certificate')}."
        )


def erase_kept(
    lake: Lake,
    erased: Quotes,
    *,
    cache: str | None = None,
    fits: str | None = None,
    certificates: str | None = None,
) -> KeptErased:
    """Remove every kept result that may contain erased quotes.

    States and fits are kept with the content of their file. Those of a file that changed since, is gone, or still has
    an erased quote are removed, so that what stays was computed from present files without them. Certificates are
    removed by their book. The files of the lake are not changed: delete the quotes there first.

    Args:
        lake: whose results were kept.
        erased: the quotes.
        cache: the folder of states of ``gather``.
        fits: the table of ``calibrate_many``.
        certificates: the folder of certificates of ``forget_many``.

    Raises:
        UsageError: ``fits`` is not a table of calibrations.
        StrikeoutError: a file of the lake cannot be read.
    """
    rows = _Rows.of(erased)
    clean = {lake.content(name) for name in lake.partitions if not rows.found_in(lake.read(name).quotes).any()}
    states = 0
    for file in sorted(Path(cache).rglob(f"*{CACHE_ENDING}")) if cache is not None else []:
        if _content_of(file) not in clean:
            file.unlink()
            states += 1
    dropped = _drop_rows(Path(fits), clean) if fits is not None else 0
    removed = 0
    if certificates is not None:
        for group, _ in groups(erased, lake.each):
            file = Path(certificates) / certificate_name(group)
            if file.is_file():
                file.unlink()
                removed += 1
    return KeptErased(states, dropped, removed)


def _drop_rows(fits: Path, clean: set[str]) -> int:
    try:
        frame = pl.read_parquet(fits)
        left = frame.filter(pl.col("content").is_in(list(clean)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UsageError(f"{fits}: is not a table of calibrations.", path=str(fits)) from error
    if len(left) < len(frame):
        replace_file(fits, left.write_parquet)
    return len(frame) - len(left)


def _content_of(file: Path) -> str:
    """Return the content of the file that states were computed from; empty if they are damaged."""
    with file.open("rb") as data:
        head = data.readline()
    try:
        return str(json.loads(head)["receipt"]["content"])
    except (ValueError, KeyError, TypeError):
        return ""


@dataclass(frozen=True)
class _Rows:
    """Erased quotes by id, and by contract, price and date."""

    ids: frozenset[str]
    keys: frozenset[tuple[object, ...]]
    observed: Floats

    @staticmethod
    def of(erased: Quotes) -> _Rows:
        everything = np.ones(len(erased), bool)
        return _Rows(frozenset(map(str, erased.ids)), frozenset(_keys(erased, everything)), np.unique(erased.observed))

    def found_in(self, quotes: Quotes) -> Mask:
        """Return which of these quotes are erased ones."""
        found = np.array([str(name) in self.ids for name in quotes.ids], bool)
        near = np.isin(quotes.observed, self.observed) & ~found
        found[near] = [key in self.keys for key in _keys(quotes, near)]
        return found


def _keys(quotes: Quotes, rows: Mask) -> Iterator[tuple[object, ...]]:
    c, date = quotes.contracts, quotes.labels.get("date")
    for row in np.flatnonzero(rows).tolist():
        day = "" if date is None else str(date[row])
        yield float(c.strike[row]), float(c.expiry[row]), bool(c.is_call[row]), float(quotes.observed[row]), day


def _in_bytes(files: list[Path], folder: Path, needles: Needles, unread: set[str]) -> Iterator[Finding]:
    """Yield what is found in logs, footers and files that are not data."""
    for file in files:
        name = file.relative_to(folder).as_posix()
        is_log = _is_in_log(file, folder)
        is_data = name.endswith(ENDINGS) and not is_log and name not in unread
        if is_data and not name.endswith(".parquet"):
            continue
        data = _footer(file) if is_data else file.read_bytes()
        values = sorted({f"{what} {value_of(needle, form)}" for _, needle, what, form in needles.matches(data)})
        if values:
            place = Place.LOG if is_log else Place.STATISTICS if is_data else Place.OTHER
            yield Finding(name, place, 0, tuple(values[:5]))


def _in_cache(files: list[Path], touched: set[str]) -> Iterator[Finding]:
    """Yield the states of the cache that were computed from files with erased quotes."""
    for file in files:
        content = _content_of(file)
        if content in touched:
            yield Finding(str(file), Place.CACHE, 0, (f"content {content[:12]}",))


def _footer(file: Path) -> bytes:
    """Return the footer of a Parquet file, which has its statistics; empty if it is damaged."""
    with file.open("rb") as data:
        size = data.seek(0, 2)
        if size < 12:
            return b""
        data.seek(size - 8)
        length, magic = int.from_bytes(data.read(4), "little"), data.read(4)
        if magic != MAGIC or length > size - 12:
            return b""
        data.seek(size - 8 - length)
        return data.read(length)


def _is_in_log(file: Path, folder: Path) -> bool:
    return DELTA_LOG in file.relative_to(folder).parts[:-1]


def _live_files(folder: Path) -> set[str] | None:
    """Return the data files of the current version of a Delta table, as far as its log has them; None for others."""
    if not (folder / DELTA_LOG).is_dir():
        return None
    live: set[str] = set()
    for version in sorted((folder / DELTA_LOG).glob("*.json")):
        for line in version.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                action = json.loads(line)
            except ValueError:
                continue
            if "add" in action:
                live.add(action["add"]["path"])
            elif "remove" in action:
                live.discard(action["remove"]["path"])
    return live
