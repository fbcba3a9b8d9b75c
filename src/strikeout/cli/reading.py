"""A file read for a command: by its profile, with a line that says how far a large one is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strikeout.cli import terminal

if TYPE_CHECKING:
    from strikeout.quotes.reading import Reading


def reading_of(file: str, *, profile: str | None, constants: dict[str, float | str], **options: Any) -> Reading:
    """How this file reads; the options are those of `inspect_quotes`.

    Raises:
        QuotesError: the file cannot be read as quotes.
        UsageError: there is no such profile, or an option cannot be.
    """
    from strikeout.quotes.reading import inspect_quotes
    from strikeout.quotes.tables import open_table

    line = terminal.ReadingLine()
    try:
        table = open_table(file, profile=profile, given=frozenset(constants), progress=line)
    finally:
        line.end()
    return inspect_quotes(table, profile=profile, constants=constants, **options)
