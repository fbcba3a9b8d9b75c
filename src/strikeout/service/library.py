"""The books of a folder by name, books that stay open to be read, and what was found in them until they change."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from strikeout.book import Book
from strikeout.errors import NoSuchPageError, StrikeoutError

Found = TypeVar("Found")
ENDING = ".book"
MOST_FOUND = 1000  # answers that are kept
FRESH = 30.0  # seconds that an answer is kept: a request expires without an entry in the ledger
ATTEMPTS = 5  # to read a book that another process is changing


@dataclass(frozen=True)
class Library:
    """Every ``NAME.book`` of a folder. A name is looked up in the list of files, so it cannot lead anywhere else."""

    folder: Path

    def paths(self) -> dict[str, Path]:
        """Return the file of every book by its name, sorted; symbolic links are left out."""
        try:
            with os.scandir(self.folder) as entries:
                found = sorted(e.name for e in entries if e.name.endswith(ENDING) and e.is_file(follow_symlinks=False))
        except FileNotFoundError:
            return {}
        return {name.removesuffix(ENDING): self.folder / name for name in found if name != ENDING}

    def path(self, name: str) -> Path:
        """Return the file of a book.

        Raises:
            NoSuchPageError: the folder has no book of this name.
        """
        known = self.paths()
        found = known.get(name.removesuffix(ENDING))
        if found is None:
            raise NoSuchPageError("There is no book of this name. GET /v1/books lists them.", books=list(known))
        return found


def head_of(book: Book) -> str:
    """Return the head of a book's ledger as text; it changes with every entry."""
    return str(book.snapshot().ledger.head())


class Shelf:
    """Books that stay open to be read, for the thread that opened them; the last one used is the last of the list."""

    def __init__(self, most: int) -> None:
        """Keep at most this many books open."""
        self._most = most
        self._open: dict[str, tuple[tuple[int, int], Book]] = {}

    def book(self, path: str) -> Book:
        """Return a book. It is opened again if another file has its name now, such as a copy that was restored.

        Raises:
            BookError, RefusedError: as ``Book.open``.
        """
        identity, kept = _identity(path), self._open.get(path)
        if kept is None or kept[0] != identity:
            self.close(path)
            kept = identity, Book.open(path)
        self._open.pop(path, None)
        self._open[path] = kept
        while len(self._open) > self._most:
            self.close(next(iter(self._open)))
        return kept[1]

    def close(self, path: str) -> None:
        """Close a book, if it is open; what was read of it is gone."""
        kept = self._open.pop(path, None)
        if kept is not None:
            kept[1].close()

    def close_all(self) -> None:
        """Close every book."""
        for path in list(self._open):
            self.close(path)


def _identity(path: str) -> tuple[int, int]:
    """Return what identifies a file under any name; zeros if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def read_whole(book: Book, work: Callable[[Book], Found]) -> tuple[Found, str]:
    """Return what a function finds in a book, and the head of the ledger for which that holds.

    If another process changes the book meanwhile, the function is called again.

    Raises:
        StrikeoutError: the function raised it.
    """
    for attempt in range(ATTEMPTS):
        head = head_of(book)
        try:
            found = work(book)
        except StrikeoutError:
            if head_of(book) == head or attempt == ATTEMPTS - 1:
                raise
            continue
        if head_of(book) == head:
            break
    return found, head


class Findings:
    """What was found in the books of a server, kept until the head of their ledger is another one.

    Books are read in one thread of their own, which keeps them open: to see that a book has not changed takes a
    fraction of a millisecond, and an answer is computed once per state of the book.
    """

    def __init__(self, most_open: int = 64) -> None:
        self._shelf = Shelf(most_open)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="books")
        self._kept: dict[tuple[str, Hashable], tuple[float, str, Any]] = {}
        self._asked: dict[tuple[str, Hashable, str], asyncio.Future[tuple[Any, str]]] = {}  # computed now, by head

    async def read(self, path: Path, work: Callable[..., Found], *arguments: Hashable) -> tuple[Found, str]:
        """Return what a function of the book and these arguments finds, and the head of the ledger.

        Raises:
            StrikeoutError: the book cannot be opened, or the function raised it.
        """
        place = str(path)
        key = place, (work, arguments)

        def look() -> tuple[Any, str]:
            book = self._shelf.book(place)
            try:
                kept = self._fresh(key, head_of(book))
                found, head = kept or read_whole(book, lambda book: work(book, *arguments))
            except BaseException:
                self._shelf.close(place)
                raise
            return self._keep(key, head, found)

        return await asyncio.get_running_loop().run_in_executor(self._thread, look)

    async def ask(
        self, path: Path, question: Hashable, compute: Callable[[], Awaitable[tuple[Found, str]]]
    ) -> tuple[Found, str]:
        """Return the answer to a question about a book: the kept one, or one that is computed now, and its head.

        The same question that is asked again meanwhile waits for the same answer.

        Raises:
            StrikeoutError: the book cannot be opened, or computing raised it.
        """
        _, head = await self.read(path, _nothing)
        key = str(path), question
        kept = self._fresh(key, head)
        if kept is not None:
            return kept
        running = self._asked.get((*key, head))
        if running is None:
            running = self._asked[*key, head] = asyncio.ensure_future(compute())
            running.add_done_callback(lambda over: self._answered(key, head, over))
        return await asyncio.shield(running)

    def _answered(self, key: tuple[str, Hashable], asked: str, answer: asyncio.Future[tuple[Any, str]]) -> None:
        """Keep an answer, unless the book was dropped while it was computed."""
        is_current = self._asked.pop((*key, asked), None) is answer
        if not answer.cancelled() and answer.exception() is None and is_current:
            found, head = answer.result()
            self._keep(key, head, found)

    async def drop(self, path: str) -> None:
        """Close a book and drop what was found in it, for example because quotes of it were erased."""
        for asked in [asked for asked in self._asked if asked[0] == path]:
            del self._asked[asked]

        def dropped() -> None:
            self._shelf.close(path)
            for key in [key for key in self._kept if key[0] == path]:
                self._kept.pop(key, None)

        await asyncio.get_running_loop().run_in_executor(self._thread, dropped)

    async def close(self) -> None:
        """Close every book and drop what was found."""
        self._kept.clear()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._shelf.close_all)
        self._thread.shutdown()

    def _fresh(self, key: tuple[str, Hashable], head: str) -> tuple[Any, str] | None:
        at, of, found = self._kept.get(key, (0.0, "", None))
        return (found, of) if of == head and time.monotonic() - at < FRESH else None

    def _keep(self, key: tuple[str, Hashable], head: str, found: Any) -> tuple[Any, str]:
        if self._fresh(key, head) is None:
            self._kept[key] = time.monotonic(), head, found
        while len(self._kept) > MOST_FOUND:
            self._kept.pop(next(iter(self._kept)), None)
        return found, head


def _nothing(book: Book) -> None:
    """Find nothing: only the head is asked for."""
