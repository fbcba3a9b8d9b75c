"""Read a file for a command, with a progress line for a large one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strikeout.cli import terminal
from strikeout.errors import RejectedError

if TYPE_CHECKING:
    from strikeout.quotes.reading import Chunking, Reading


def reading_of(
    file: str, *, on_disk: bool = False, line: terminal.ReadingLine | None = None, **options: Any
) -> Reading:
    """Read a file; the options are those of `inspect_quotes`, and ``folder``.

    Args:
        on_disk: read a file of any size, chunk by chunk; close the reading.
        line: shows the progress, also of a later step; its own by default.

    Raises:
        QuotesError: the file cannot be read as quotes.
        UsageError: there is no such profile, or an option is invalid.
    """
    from strikeout.quotes.reading import inspect_quotes

    line = line or terminal.ReadingLine()
    try:
        return inspect_quotes(file, chunking=_chunking(line, on_disk, options.pop("folder", None)), **options)
    finally:
        line.end()


def _chunking(line: terminal.ReadingLine, on_disk: bool, folder: Any) -> Chunking:
    from dataclasses import replace

    from strikeout.quotes.reading import IN_MEMORY, Chunking

    if not on_disk:
        return replace(IN_MEMORY, progress=line.step)
    return Chunking(folder=folder, progress=line.step)


def refuse_bad_rows(reading: Reading, *, max_reject: float, quarantine: str | None) -> None:
    """Raise RejectedError if too many rows are bad; write them to the quarantine, if one is named.

    Raises:
        RejectedError: too many are, or none is good.
        UsageError: the quarantine cannot be written.
    """
    from strikeout.quotes.reading import accept

    try:
        accept(reading, max_reject=max_reject, quarantine=quarantine)
    except RejectedError as error:
        if quarantine is None:
            raise
        raise error.extended(f" The bad rows are in {quarantine}.", quarantine=quarantine) from error
