"""Files outside a book that contain copies of its quotes: those it wrote, and those an erasure condemned.

A file is recorded by its path and a keyed digest of its bytes. A plain digest would be a plain hash of the erased
quotes: with the other quotes at hand, guesses could be tested with it. Only bytes that the book wrote are deleted; a
file that was changed since, or another one under the same name, is left alone and reported.

An erasure lists the files in its transaction and deletes them after it, so a transaction that fails deletes nothing.
The condemned files stay on the list: after a crash in between, or if a copy is restored from a backup, the next opening
of the book deletes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

from strikeout.assurance.canonical import canonical

PAGE = "files"  # the setting that lists them
Digests = Mapping[str, str]  # keyed digests by path


@dataclass(frozen=True)
class KnownFiles:
    """The files with quotes that a book wrote, and those an erasure condemned."""

    written: Digests = field(default_factory=dict)
    condemned: Digests = field(default_factory=dict)

    @staticmethod
    def from_bytes(data: bytes | None) -> KnownFiles:
        """Return what ``to_bytes`` wrote; no files for None."""
        return KnownFiles() if data is None else KnownFiles(**json.loads(data))

    def to_bytes(self) -> bytes:
        """Return the list as a page of the book."""
        return canonical({"written": dict(self.written), "condemned": dict(self.condemned)})

    def with_written(self, path: Path, digest: str) -> KnownFiles:
        """Add a file that was just written, and replace one of the same path."""
        rest = {name: text for name, text in self.condemned.items() if name != str(path)}
        return KnownFiles({**self.written, str(path): digest}, rest)

    def with_condemned(self, files: Digests) -> KnownFiles:
        """Condemn these files and clear the list of written ones; condemned files that no longer exist are dropped."""
        still = {name: text for name, text in self.condemned.items() if Path(name).exists()}
        return KnownFiles({}, {**still, **files})


class FileDigest:
    """The keyed digest of a file's bytes.

    Args:
        commit: keys a digest with the secret of the book.
    """

    def __init__(self, commit: Callable[[str, bytes], str]) -> None:
        self._commit = commit

    def __call__(self, path: Path) -> str | None:
        """Return the digest of the file at this path; None if there is none that can be read."""
        if path.is_symlink() or not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                return self._commit("file", file_digest(file, "sha256").digest())
        except OSError:
            return None

    def are_there(self, files: Digests) -> dict[str, str]:
        """Return the files that exist as they were written."""
        return {name: digest for name, digest in files.items() if self(Path(name)) == digest}


def remove(files: Digests, digest: FileDigest) -> tuple[Path, ...]:
    """Delete the files that exist as they were written; return those that could not be deleted."""
    left = []
    for path in map(Path, digest.are_there(files)):
        try:
            path.unlink(missing_ok=True)
        except OSError:
            left.append(path)
    return tuple(left)


def changed(files: Digests, digest: FileDigest) -> tuple[Path, ...]:
    """Return the paths at which there is something that the book did not write."""
    return tuple(path for path in map(Path, sorted(files)) if path.exists() and digest(path) != files[str(path)])
