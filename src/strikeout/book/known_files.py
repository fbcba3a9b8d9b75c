"""Files outside a book that hold copies of its quotes: those it wrote, and those an erasure condemned.

A file is known by its path and a keyed digest of its bytes. A plain digest would be a plain hash of the erased quotes:
whoever holds the others could test guesses with it. Only bytes that the book wrote are removed; a file that was changed
since, or another one under the same name, is left alone and reported.

An erasure condemns the files in its transaction and removes them after it, so a transaction that fails removes nothing.
The condemned stay on the list: if a crash comes between, or a copy is put back from a backup, the next opening of the
book removes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

from strikeout.assurance.canonical import canonical

PAGE = "files"  # the setting that lists them
Digests = Mapping[str, str]  # keyed digests by path


@dataclass(frozen=True)
class KnownFiles:
    """The files a book wrote that hold quotes, and those an erasure condemned."""

    written: Digests = field(default_factory=dict)
    condemned: Digests = field(default_factory=dict)

    @staticmethod
    def from_bytes(data: bytes | None) -> KnownFiles:
        """What ``to_bytes`` wrote; no files for None."""
        return KnownFiles() if data is None else KnownFiles(**json.loads(data))

    def to_bytes(self) -> bytes:
        """The list as a page of the book."""
        return canonical({"written": dict(self.written), "condemned": dict(self.condemned)})

    def with_written(self, path: Path, digest: str) -> KnownFiles:
        """With a file that was just written, in the place of one of the same path."""
        rest = {name: text for name, text in self.condemned.items() if name != str(path)}
        return KnownFiles({**self.written, str(path): digest}, rest)

    def with_condemned(self, files: Digests) -> KnownFiles:
        """With these files condemned and no file known as written; condemned files that are gone are dropped."""
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
        """The digest of the file under this path; None if there is none that can be read."""
        if path.is_symlink() or not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                return self._commit("file", file_digest(file, "sha256").digest())
        except OSError:
            return None

    def are_there(self, files: Digests) -> dict[str, str]:
        """Those of these files that are there as they were written."""
        return {name: digest for name, digest in files.items() if self(Path(name)) == digest}


def remove(files: Digests, digest: FileDigest) -> tuple[Path, ...]:
    """Removes those of these files that are there as they were written; returns those it could not remove."""
    left = []
    for path in map(Path, digest.are_there(files)):
        try:
            path.unlink(missing_ok=True)
        except OSError:
            left.append(path)
    return tuple(left)


def changed(files: Digests, digest: FileDigest) -> tuple[Path, ...]:
    """Those of these paths where something is that the book did not write."""
    return tuple(path for path in map(Path, sorted(files)) if path.exists() and digest(path) != files[str(path)])


def digests_of(paths: Iterable[Path], digest: FileDigest) -> dict[str, str]:
    """The files there are under these paths, with the digests of what is there now."""
    found = {str(path.absolute()): digest(path) for path in paths}
    return {name: text for name, text in found.items() if text is not None}
