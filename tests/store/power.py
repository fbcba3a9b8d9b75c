"""Power loss as the disk sees it: SQLite's writes and syncs are recorded, and any of what was not synced is lost.

A disk that lost power holds all that was written to a file before its last sync, and of what was written later any
part, in sectors. SQLite's own file calls are listened to through its table of methods
(https://www.sqlite.org/c3ref/io_methods.html), so what counts as synced is what SQLite did sync.
"""

from __future__ import annotations

import ctypes
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
_PLAIN = ctypes.c_void_p
# Names as plain addresses: SQLite keeps the pointer it passed for as long as the file is open.
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, _PLAIN, _PLAIN, _PLAIN, ctypes.c_int, _PLAIN)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, _PLAIN, _PLAIN, ctypes.c_int)
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, _PLAIN, _PLAIN, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, _PLAIN, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, _PLAIN, ctypes.c_int)


class _Methods(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        ("close", _PLAIN),
        ("read", _PLAIN),
        ("write", _PLAIN),
        ("truncate", _PLAIN),
        ("sync", _PLAIN),
        ("others", _PLAIN * 13),  # up to version 3 of the table
    ]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest", ctypes.c_int),
        ("next", _PLAIN),
        ("name", ctypes.c_char_p),
        ("data", _PLAIN),
        ("open", _PLAIN),
        ("delete", _PLAIN),
    ]


@dataclass(frozen=True)
class Event:
    """What happened to a file: write, truncate, sync, delete; or done, which is a step that was acknowledged."""

    what: str
    name: str = ""
    place: int = 0  # of a write; the length of a truncation; the number of a step
    data: bytes = b""


@dataclass
class Recording:
    """The files as they were at the beginning, and all that happened to them since."""

    folder: Path
    before: dict[str, bytes]
    events: list[Event] = field(default_factory=list)

    def acknowledge(self, step: int) -> None:
        """Notes that a step has returned to its caller: from here on it may not be lost."""
        self.events.append(Event("done", place=step))

    def acknowledged(self, moment: int) -> int:
        """The last step that had returned before this event."""
        return max((event.place for event in self.events[:moment] if event.what == "done"), default=0)

    def disk(self, moment: int, draw: random.Random) -> dict[str, bytes]:
        """What the disk may hold when the power goes before the event of this number."""
        past = self.events[:moment]
        files = dict(self.before)
        share = draw.choice((0.0, 1.0, draw.random()))  # of what was not synced, so much has reached the disk
        for name in {*self.before, *(event.name for event in past if event.name)}:
            mine = [event for event in past if event.name == name]
            synced = max((number for number, event in enumerate(mine) if event.what == "sync"), default=-1)
            held: bytearray | None = bytearray(files[name]) if name in files else None
            for number, event in enumerate(mine):
                held = _happened(held, event, share=1.0 if number <= synced else share, draw=draw)
            files.pop(name, None)
            if held is not None:
                files[name] = bytes(held)
        return files


def _happened(held: bytearray | None, event: Event, *, share: float, draw: random.Random) -> bytearray | None:
    """A file once some of an event, in sectors, has reached the disk."""
    if event.what == "write":
        held = bytearray() if held is None else held
        for begin in range(0, len(event.data), SECTOR):
            if draw.random() < share:
                piece, place = event.data[begin : begin + SECTOR], event.place + begin
                held.extend(bytes(max(0, place - len(held))))
                held[place : place + len(piece)] = piece
    elif event.what == "truncate" and held is not None and draw.random() < share:
        del held[event.place :]
    elif event.what == "delete" and draw.random() < share:
        return None
    return held


def default_vfs() -> _Vfs | None:
    """SQLite's way to files in this process; None where Python does not let it be reached."""
    import _sqlite3

    assert sqlite3.sqlite_version  # the same library
    try:
        find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    except (AttributeError, OSError):
        return None
    find.restype, find.argtypes = ctypes.POINTER(_Vfs), [ctypes.c_char_p]
    return find(None).contents


@contextmanager
def recorded(folder: Path) -> Iterator[Recording]:
    """Records what SQLite does to the files of a folder. Connections made inside must be closed inside."""
    vfs = default_vfs()
    assert vfs is not None
    recording = Recording(folder, {path.name: path.read_bytes() for path in folder.iterdir()})
    note, alive = recording.events.append, []
    true_open, true_delete = _OPEN(vfs.open), _DELETE(vfs.delete)
    originals = (vfs.open, vfs.delete)

    def opened(self, name, file, flags, out):
        code = true_open(self, name, file, flags, out)
        path = Path(ctypes.string_at(name).decode()) if name else None
        if code == 0 and path is not None and path.parent == folder:
            alive.append(_listening(file, path.name, note))
        return code

    def deleted(self, name, sync_folder):
        path, code = Path(ctypes.string_at(name).decode()), true_delete(self, name, sync_folder)
        if code == 0 and path.parent == folder:
            note(Event("delete", path.name))
        return code

    ours = _OPEN(opened), _DELETE(deleted)
    vfs.open, vfs.delete = (ctypes.cast(one, _PLAIN).value for one in ours)
    try:
        yield recording
    finally:
        vfs.open, vfs.delete = originals


def _listening(file: int, name: str, note) -> tuple[object, ...]:
    """Puts a table of methods that notes writes and syncs in place of the file's own; what must be kept alive."""
    pointer = ctypes.cast(file, ctypes.POINTER(ctypes.POINTER(_Methods)))
    methods = _Methods.from_buffer_copy(pointer.contents.contents)
    true_write, true_truncate, true_sync = _WRITE(methods.write), _TRUNCATE(methods.truncate), _SYNC(methods.sync)

    def write(self, data, count, place):
        note(Event("write", name, place, ctypes.string_at(data, count)))
        return true_write(self, data, count, place)

    def truncate(self, size):
        note(Event("truncate", name, size))
        return true_truncate(self, size)

    def sync(self, flags):
        code = true_sync(self, flags)
        note(Event("sync", name))
        return code

    ours = _WRITE(write), _TRUNCATE(truncate), _SYNC(sync)
    methods.write, methods.truncate, methods.sync = (ctypes.cast(one, _PLAIN).value for one in ours)
    pointer[0] = ctypes.pointer(methods)
    return (methods, pointer, *ours)
