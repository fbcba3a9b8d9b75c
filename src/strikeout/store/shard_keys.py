"""Encryption at rest: one key per shard and per page of a book, with the keys in a separate file.

    the file            16 bytes that name the format, 16 that name the book, then 48 per key: its name and the key
    what is encrypted   magic (4), name of its key (16), nonce (12), AES-256-GCM with its place as associated data

A shard is a chunk of quotes with their footprints and state, all under one key. Erasing rewrites a chunk under a new
key and overwrites the old key in place with zeros. After that, the shard cannot be decrypted in any earlier copy of the
book. A copy of the key file would undo that: do not keep one longer than you would keep the quotes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Set
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from strikeout.errors import RefusedError

VARIABLE = "STRIKEOUT_SHARD_KEYS"
ENDING = ".shardkeys"
MAGIC = b"SQE1"
NAME, KEY, NONCE = 16, 32, 12
HEAD = len(MAGIC) + NAME  # of an encrypted chunk: enough to identify its key
# Pages that depend on quotes. Calibrations and certificates do too: from parameters in a copy made before an erasure,
# the erased quotes that they were fitted to could be computed. Their keys are destroyed with them.
LOCKED = frozenset({"calibration", "certificate", "plan", "request", "state"})
_FORMAT = b"strikeout shard1"
_BEGIN = len(_FORMAT) + NAME
_GONE = bytes(NAME)


def shard_key_file(book: Path) -> Path:
    """Return the path of a book's keys: ``NAME.book.shardkeys`` beside it, or in the folder STRIKEOUT_SHARD_KEYS."""
    folder = os.environ.get(VARIABLE)
    return (Path(folder) if folder else book.parent) / (book.name + ENDING)


def key_name(data: bytes) -> bytes | None:
    """Return the name of the key that encrypts these bytes; None if they are not encrypted."""
    return data[len(MAGIC) : HEAD] if data[: len(MAGIC)] == MAGIC else None


class ShardKeys:
    """The keys of a book's shards and pages. A new key is on disk before the data it encrypts."""

    def __init__(self, path: Path, book: bytes) -> None:
        self.book = book  # the name under which the book refers to this file
        self._path = path
        self._new: list[tuple[bytes, bytes]] = []
        self._keys: dict[bytes, bytes] = {}

    @staticmethod
    def create(path: Path) -> ShardKeys:
        """Create a file without keys that only its owner can read."""
        book = secrets.token_bytes(NAME)
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(_FORMAT + book)
                _settle(file)
            _settle_folder(path.parent)
        except FileExistsError as error:
            raise RefusedError(
                f"{path} exists already, and keys are never overwritten. Move it away, or name another folder in "
                f"{VARIABLE}."
            ) from error
        except OSError as error:
            raise RefusedError(f"The keys of the book cannot be written to {path} ({error.strerror}).") from error
        return ShardKeys(path, book)

    @staticmethod
    def open(path: Path, book: bytes) -> ShardKeys:
        """Read the keys of the book with this name."""
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise RefusedError(
                f"The book is encrypted, and its keys in {path} cannot be read ({error.strerror}). Restore the "
                f"file, or name its folder in {VARIABLE}."
            ) from error
        if os.name == "posix" and mode & 0o077:
            raise RefusedError(
                f"The keys in {path} can be read by others (mode {mode & 0o777:o}). Restrict it: chmod 600 {path}"
            )
        found = ShardKeys(path, book)
        found._read()
        return found

    def sealed(self, data: bytes, *, place: str, under: bytes | None = None) -> bytes:
        """Encrypt data for one place of the book, under a new key. Call ``settle`` before the data are committed.

        Args:
            under: the name of an existing key to use instead, for data that belong to the same shard.
        """
        nonce = secrets.token_bytes(NONCE)
        if under is None:
            name, key = secrets.token_bytes(NAME), secrets.token_bytes(KEY)
            self._new.append((name, key))
            self._keys[name] = key
        else:
            name, key = under, self._found(under, place)
        return MAGIC + name + nonce + AESGCM(key).encrypt(nonce, data, place.encode())

    def opened(self, data: bytes, *, place: str) -> bytes:
        """Decrypt data; return bytes that are not encrypted as they are."""
        name = key_name(data)
        if name is None:
            return data
        key = self._found(name, place)
        nonce, body = data[HEAD : HEAD + NONCE], data[HEAD + NONCE :]
        try:
            return AESGCM(key).decrypt(nonce, body, place.encode())
        except InvalidTag as error:
            raise RefusedError(
                f"{place} does not open with its key in {self._path}: one of the two was changed. Restore copies of "
                "both that belong together.",
                place=place,
            ) from error

    def settle(self) -> None:
        """Write new keys to disk."""
        if not self._new:
            return
        try:
            with open(self._path, "r+b") as file:
                # A crash may have left part of a key at the end: begin after the last complete one.
                end = file.seek(0, os.SEEK_END)
                file.seek(end - (end - _BEGIN) % (NAME + KEY))
                file.write(b"".join(name + key for name, key in self._new))
                _settle(file)
        except OSError as error:
            raise RefusedError(f"New keys cannot be written to {self._path} ({error.strerror}).") from error
        self._new = []

    def forgo(self) -> None:
        """Discard new keys that are not on disk, since the data they encrypt were not committed."""
        for name, _ in self._new:
            self._keys.pop(name, None)
        self._new = []

    def keep_only(self, used: Set[bytes]) -> int:
        """Overwrite all other keys in place with zeros, and return how many were destroyed."""
        self._read()
        spent = [name for name in self._keys if name not in used]
        if spent:
            try:
                data = self._path.read_bytes()
                with open(self._path, "r+b") as file:
                    for place in range(_BEGIN, len(data) - NAME - KEY + 1, NAME + KEY):
                        if data[place : place + NAME] in spent:
                            file.seek(place)
                            file.write(bytes(NAME + KEY))
                    _settle(file)
            except OSError as error:
                raise RefusedError(f"Keys in {self._path} cannot be destroyed ({error.strerror}).") from error
        for name in spent:
            del self._keys[name]
        return len(spent)

    def _found(self, name: bytes, place: str) -> bytes:
        if name not in self._keys:
            self._read()  # another process may have written since
        if name not in self._keys:
            raise RefusedError(
                f"The key of {place} is not in {self._path}: an erasure has destroyed it, and with it every copy of "
                "what it encrypted. Use the current book; this copy is older.",
                place=place,
            )
        return self._keys[name]

    def _read(self) -> None:
        try:
            data = self._path.read_bytes()
        except OSError as error:
            raise RefusedError(f"The keys in {self._path} cannot be read ({error.strerror}).") from error
        if data[:_BEGIN] != _FORMAT + self.book:
            raise RefusedError(f"{self._path} does not hold the keys of this book. Restore its own file.")
        size = NAME + KEY
        whole = [data[place : place + size] for place in range(_BEGIN, len(data) - size + 1, size)]
        self._keys = {one[:NAME]: one[NAME:] for one in whole if one[:NAME] != _GONE} | dict(self._new)


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _settle_folder(folder: Path) -> None:
    """Make the new name survive a power failure, on systems that can sync a folder."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
