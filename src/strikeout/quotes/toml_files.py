"""TOML that people write: a profile, a configuration. Whatever is in such a file, it gives a table or a sentence."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from strikeout.errors import UsageError

LONGEST = 1_000_000  # bytes; a profile of every column there is takes a hundredth of it
SHOWN = 100  # characters of a value in a sentence


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return the table in this file; ``what`` begins the sentence if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{what}: cannot be read ({reason}).", path=str(path)) from error
    if len(data) > LONGEST:
        raise UsageError(f"{what}: longer than {LONGEST:,} bytes, the most that is read. Shorten it.", path=str(path))
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: not UTF-8 text ({error.reason}). Save it as UTF-8.", path=str(path)) from error
    except RecursionError as error:
        raise UsageError(f"{what}: brackets are nested too deep to be read. Flatten it.", path=what) from error
    except ValueError as error:
        raise UsageError(f"{what}: is not TOML ({error}). Mend it, or remove it.", path=what) from error


def shown(value: Any) -> str:
    """Return a value as a sentence shows it, cut if it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
