"""Uploaded files: streamed to a folder of their own beside the books, and deleted when they have been read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from strikeout.errors import UsageError

PREFIX = ".strikeout-upload-"
ENDINGS = (".csv.gz", ".csv", ".parquet", ".xlsx")


@dataclass(frozen=True)
class Upload:
    """A file that was received, and the digest of its bytes."""

    path: Path
    digest: str

    def remove(self) -> None:
        """Delete the file and its folder."""
        shutil.rmtree(self.path.parent, ignore_errors=True)


async def receive(name: str, parts: AsyncIterator[bytes], folder: Path) -> Upload:
    """Write an upload to a folder of its own inside ``folder``. Of its name only the ending is used.

    Raises:
        UsageError: the ending is not that of a file of quotes, or nothing was sent.
    """
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), None)
    if ending is None:
        raise UsageError(f"The name of the file must end in {', '.join(ENDINGS)}.")
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
    upload, digest, size = place / f"upload{ending}", sha256(), 0
    try:
        with upload.open("wb") as out:
            async for part in parts:
                digest.update(part)
                size += len(part)
                out.write(part)
        if not size:
            raise UsageError("The upload is empty. Send the bytes of a file as the body.")
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return Upload(upload, digest.hexdigest())


def remove_left_uploads(folder: Path) -> None:
    """Delete uploads that a server which ended suddenly left behind: they contain quotes."""
    for place in folder.glob(f"{PREFIX}*"):
        shutil.rmtree(place, ignore_errors=True)
