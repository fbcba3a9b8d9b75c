"""The books of a folder, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from strikeout.book import Book
from strikeout.errors import NoSuchPageError

ENDING = ".book"


@dataclass(frozen=True)
class Library:
    """Every ``NAME.book`` of a folder. A name is looked up in the list of files, so it cannot lead anywhere else."""

    folder: Path

    def paths(self) -> dict[str, Path]:
        """Return the file of every book by its name, sorted; symbolic links are left out."""
        found = self.folder.glob(f"*{ENDING}")
        return {path.stem: path for path in sorted(found) if path.is_file() and not path.is_symlink()}

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

    def open(self, name: str, *, who: str) -> Book:
        """Open a book for a person.

        Raises:
            NoSuchPageError: the folder has no book of this name.
            BookError, RefusedError: as ``Book.open``.
        """
        return Book.open(self.path(name), who=who)


def head_of(book: Book) -> str:
    """Return the head of a book's ledger as text; it changes with every entry."""
    return str(book.snapshot().ledger.head())
