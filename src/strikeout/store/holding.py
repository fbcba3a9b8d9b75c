"""Hold the files of books that are open in this process, so that no other code of the process drops their locks.

SQLite's locks are POSIX locks, and ``close()`` of any descriptor of a file drops every lock the process has on that
file, and SQLite does not notice. Another process then believes that it is the last user and deletes the log. This one
continues to write into the deleted file, and its committed transactions are lost. Three guards prevent that:

- This package never opens and closes a file of an open book. Code that reads its bytes borrows the hold's descriptor.
- On Linux the hold has a shared lock of its own on the bytes by which SQLite detects whether others have the file open,
  of the kind that belongs to the descriptor and not to the process. Closing other descriptors (``shutil.copy`` of a
  book in a notebook) does not drop it.
- Before and after a transaction, ``Hold.check`` checks that the files are still those that were opened.

SQLite coordinates the connections of one process, so opening a book twice is safe. Using a connection after a fork is
not: the child has no locks, and its copy of SQLite assumes that it has.
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

Identity = tuple[int, int]  # device and inode, which identify a file under any name
T = TypeVar("T", bound="Closing")
# Where SQLite has its locks (https://www.sqlite.org/src/file/src/os_unix.c): the bytes on which every user of the file
# has a shared lock, and the byte in the index of the log that marks it as in use.
_SHARED = (0x40000002, 510)
_IN_USE = (128, 1)


class Closing(Protocol):
    """An object that can be closed."""

    def close(self) -> None: ...


@dataclass(eq=False)
class Hold:
    """One book file that this process has open, with any number of connections and readers."""

    path: Path  # absolute, and not a symbolic link
    process: int
    book: Identity
    log: Identity | None = None  # None if the book had no log when it was opened
    files: dict[Identity, int] = field(default_factory=dict)  # descriptors of the book and of the index of its log
    users: int = 0

    def check(self) -> None:
        """Raise BookError if the file or its log is no longer the one that was opened."""
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
                "lost. Open the book again and check its ledger before you continue.",
                path=str(self.path),
            )


_LOCK = threading.RLock()
_held: dict[Identity, Hold] = {}
_inherited: set[Identity] = set()  # files that were open when this process was forked from another
_kept_open: list[Callable[[], None]] = []  # of those, connections that are no longer used


def take(path: Path, connect: Callable[[], T]) -> tuple[T, Hold]:
    """Connect to the file of a book, and hold it until ``let_go``."""
    with _LOCK:
        # Counted before it is connected, so that closing the last other connection leaves the descriptors open.
        hold = _counted(path)
        try:
            connection = connect()
        except BaseException:
            _leave(hold)
            raise
        try:
            _acquire(hold)
        except OSError as error:
            connection.close()
            _leave(hold)
            raise BookError(f"{path} cannot be held open ({error.strerror}).", path=str(path)) from error
        return connection, hold


def let_go(hold: Hold, disconnect: Callable[[], None]) -> None:
    """Close a connection, and with the last one also the hold.

    A process that was forked since keeps the connection open until it ends: closing a connection uses it.
    """
    if hold.process != os.getpid():
        _kept_open.append(disconnect)
        return
    with _LOCK:
        if hold.users == 1:  # by these bytes SQLite detects that it is the last user, and then removes the log
            for descriptor, place in zip(hold.files.values(), (_SHARED, _IN_USE), strict=False):
                _lock(descriptor, place, is_held=False)
        try:
            disconnect()
        finally:
            _leave(hold)


@contextmanager
def borrowed(path: Path) -> Iterator[int]:
    """Return a descriptor to read a file with; for a file of an open book, that of the hold, which stays open."""
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
    """Return ``size`` bytes of a file from ``offset``, fewer only at its end."""
    found = bytearray()
    while len(found) < size:
        if hasattr(os, "pread"):  # does not move the position of the descriptor, so threads may share it
            part = os.pread(descriptor, size - len(found), offset + len(found))
        else:
            os.lseek(descriptor, offset + len(found), os.SEEK_SET)
            part = os.read(descriptor, size - len(found))
        if not part:
            break
        found += part
    return bytes(found)


def log_of(path: Path) -> Path:
    """Return the path of the log that SQLite keeps beside the file of a book."""
    return path.with_name(path.name + "-wal")


def refuse_second_name(path: Path, found: os.stat_result) -> None:
    """Raise BookError if the file has a second name (a hard link).

    SQLite keeps the log beside the name that a book was opened with. Under another name the log would be missing.
    """
    if found.st_nlink > 1:
        raise BookError(
            f"{path} has {found.st_nlink} names (hard links), and its log would be beside one of them only. Remove the "
            f"others (find them with: find / -samefile {path}), and keep the one that has a -wal file beside it, if "
            "any has. Copies and symbolic links do not count.",
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


def _acquire(hold: Hold) -> None:
    """Open and lock the files that the hold lacks. Log and index exist once a connection has read the book."""
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
    """Take or drop a shared lock that belongs to the descriptor. Systems without such locks depend on ``check``."""
    try:
        import fcntl

        kind = fcntl.F_RDLCK if is_held else fcntl.F_UNLCK
        layout = "hhqqi4x"  # struct flock of 64-bit Linux
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
    """Close the inherited descriptors in the child of a fork, which must not use the parent's connections."""
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
