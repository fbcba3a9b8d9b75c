"""The files of books that are open in this process, held so that no other code of the process can lose their locks.

SQLite's locks are POSIX locks, and ``close()`` of any descriptor of a file drops every lock the process has on that
file, without SQLite knowing. Another process then takes itself for the last one, deletes the log, and this one writes
on into a file without a name: what it acknowledged is lost. Three guards:

- No file of an open book is opened and closed here. What reads its bytes borrows the descriptor kept with the hold.
- On Linux the hold has a shared lock of its own on the bytes by which SQLite tells whether others have the file open,
  of the kind that belongs to the descriptor and not to the process. Closing other descriptors (``shutil.copy`` of a
  book in a notebook) does not drop it.
- Before a transaction, and after it, the files must still be those that were opened: see ``Hold.check``.

Connections of one process know of each other inside SQLite, so opening a book twice is safe. Carrying one over a fork
is not: the child has no locks, and its SQLite believes that it has.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from strikeout.errors import BookError, UsageError

Identity = tuple[int, int]  # device and inode: what a file is, by whatever name
T = TypeVar("T", bound="Closing")
# Where SQLite has its locks (https://www.sqlite.org/src/file/src/os_unix.c): the bytes that everybody who has the file
# open holds shared, and of the index of the log the byte that says somebody uses it.
_SHARED = (0x40000002, 510)
_IN_USE = (128, 1)


class Closing(Protocol):
    """What can be closed."""

    def close(self) -> None: ...


@dataclass(eq=False)
class Hold:
    """One book file that this process has open, by however many connections and readers."""

    path: Path  # absolute, and no symbolic link
    process: int
    book: Identity
    log: Identity | None = None  # None where there was none when the book was opened
    files: dict[Identity, int] = field(default_factory=dict)  # descriptors of the book and of the index of its log
    users: int = 0

    def check(self) -> None:
        """Raise if the file or its log is no longer the one that was opened.

        Raises:
            BookError: it was deleted, moved, replaced, or given a second name.
        """
        found = _status(self.path)
        if found is None or (found.st_dev, found.st_ino) != self.book:
            raise BookError(
                f"{self.path} was moved, deleted or replaced while it was open. Nothing was written; open it again.",
                path=str(self.path),
            )
        refuse_second_name(self.path, found)
        if self.log is not None and _identity(log_of(self.path)) != self.log:
            raise BookError(
                f"The log of {self.path} was deleted or replaced while the book was open: what was written last may be "
                "lost. Open the book again and look at its ledger before you go on.",
                path=str(self.path),
            )


_LOCK = threading.RLock()
_held: dict[Identity, Hold] = {}
_inherited: set[Identity] = set()  # files that were open when this process was forked from another
_kept_open: list[Callable[[], None]] = []  # of those, connections that nobody uses any more


def take(path: Path, connect: Callable[[], T]) -> tuple[T, Hold]:
    """Connect to the file of a book, and hold it until ``let_go``.

    Raises:
        UsageError: the book was open when this process was forked.
        BookError: the file is gone, or cannot be held.
    """
    with _LOCK:
        # Counted before it is connected: the last of the others, closed from now on, leaves the descriptors open.
        hold = _counted(path)
        try:
            connection = connect()
        except BaseException:
            _leave(hold)
            raise
        try:
            _grasp(hold)
        except OSError as error:
            connection.close()
            _leave(hold)
            raise BookError(f"{path} cannot be held open ({error.strerror}).", path=str(path)) from error
        return connection, hold


def let_go(hold: Hold, disconnect: Callable[[], None]) -> None:
    """Close a connection, and the hold with the last one.

    In a process that was forked since, the connection is kept for good: to close it would be to use it.
    """
    if hold.process != os.getpid():
        _kept_open.append(disconnect)
        return
    with _LOCK:
        if hold.users == 1:  # SQLite tells by these bytes whether it is the last, and then clears the log away
            for descriptor, place in zip(hold.files.values(), (_SHARED, _IN_USE), strict=False):
                _lock(descriptor, place, is_held=False)
        try:
            disconnect()
        finally:
            _leave(hold)


@contextmanager
def borrowed(path: Path) -> Iterator[int]:
    """A descriptor to read a file by. One that belongs to a book open here is that of the hold, which stays open.

    Raises:
        OSError: the file is not there, or cannot be read.
    """
    with _LOCK:
        identity = _identity(path)
        hold = next((one for one in _held.values() if identity in one.files), None)
        if hold is not None:
            hold.users += 1
    if hold is not None and identity is not None:
        try:
            yield hold.files[identity]
        finally:
            with _LOCK:
                _leave(hold)
        return
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def bytes_at(descriptor: int, offset: int, size: int) -> bytes:
    """So many bytes of a file from this place on; fewer only at its end.

    Raises:
        OSError: they cannot be read.
    """
    found = bytearray()
    while len(found) < size:
        if hasattr(os, "pread"):  # has no place of its own to move, so threads may share a descriptor
            part = os.pread(descriptor, size - len(found), offset + len(found))
        else:
            os.lseek(descriptor, offset + len(found), os.SEEK_SET)
            part = os.read(descriptor, size - len(found))
        if not part:
            break
        found += part
    return bytes(found)


def log_of(path: Path) -> Path:
    """The log that SQLite keeps beside the file of a book."""
    return path.with_name(path.name + "-wal")


def refuse_second_name(path: Path, found: os.stat_result) -> None:
    """Raise if the file has a second name (a hard link).

    SQLite keeps the log beside the name a book was opened by: by another name, what the log holds would be missing.

    Raises:
        BookError: it has.
    """
    if found.st_nlink > 1:
        raise BookError(
            f"{path} has {found.st_nlink} names (hard links), and its log would be beside one of them only. Remove the "
            f"others (find them with: find / -samefile {path}), and keep the one that has a -wal file beside it, if "
            "any has. A copy or a symbolic link is no such name.",
            path=str(path),
            names=found.st_nlink,
        )


def _counted(path: Path) -> Hold:
    book = _identity(path)
    if book is None:
        raise BookError(f"{path} was deleted meanwhile.", path=str(path))
    if book in _inherited:
        raise UsageError(
            f"{path} was open when this process was forked from another, and SQLite's locks do not survive that. "
            'Close it before forking, or start the process afresh (multiprocessing: the method "spawn").',
            path=str(path),
        )
    hold = _held.setdefault(book, Hold(path.absolute(), os.getpid(), book))
    hold.users += 1
    return hold


def _grasp(hold: Hold) -> None:
    """Opens and locks what the hold does not have yet. Log and index are there once a connection has read the book."""
    hold.log = hold.log or _identity(log_of(hold.path))
    index = hold.path.with_name(hold.path.name + "-shm")
    for path, place in ((hold.path, _SHARED), (index, _IN_USE)):
        identity = _identity(path)
        if identity is not None and identity not in hold.files:
            hold.files[identity] = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            _lock(hold.files[identity], place, is_held=True)


def _leave(hold: Hold) -> None:
    hold.users -= 1
    if hold.users == 0:
        _held.pop(hold.book, None)
        for descriptor in hold.files.values():
            os.close(descriptor)
        hold.files.clear()


def _lock(descriptor: int, place: tuple[int, int], *, is_held: bool) -> None:
    """Takes or drops a shared lock that belongs to the descriptor; where there is no such kind, ``check`` must do."""
    try:
        import fcntl

        kind = fcntl.F_RDLCK if is_held else fcntl.F_UNLCK
        layout = "hhqqi4x"  # struct flock of a Linux of 64 bits
        if struct.calcsize("P") == 8:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(layout, kind, os.SEEK_SET, *place, 0))
    except (ImportError, AttributeError, OSError):  # another system, or a file system without locks
        pass


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _identity(path: Path) -> Identity | None:
    found = _status(path)
    return None if found is None else (found.st_dev, found.st_ino)


def _forked() -> None:
    """In the child of a fork: what the parent has open is not ours to use, and our end of its locks goes."""
    global _LOCK
    _LOCK = threading.RLock()  # another thread of the parent may have had it
    for hold in _held.values():
        _inherited.add(hold.book)
        for descriptor in hold.files.values():
            with suppress(OSError):
                os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
