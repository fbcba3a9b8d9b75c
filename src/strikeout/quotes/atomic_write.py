"""Write a file completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from strikeout.errors import UsageError
from strikeout.quotes.texts import is_unicode


def replace_file(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it there in one step.

    Raises:
        UsageError: the folder does not exist or cannot be written to, or the name is not UTF-8 text.
    """
    target = Path(path)
    if not is_unicode(str(target)):
        raise UsageError(f"{target}: its name is not UTF-8 text. Give it another name.", path=str(target))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise UsageError(
            f"{target}: cannot be written ({error.strerror}). Check the folder.", path=str(target)
        ) from error
    part = Path(name)
    try:
        os.close(handle)
        write(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)  # a temporary file is private; the result is an ordinary one
        part.replace(target)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written ({error.strerror}).", path=str(target)) from error
    finally:
        part.unlink(missing_ok=True)
    return target
