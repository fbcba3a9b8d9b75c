"""Uploaded files: streamed to a folder of their own beside the books, and deleted when they have been read."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from strikeout.errors import NoSuchPageError, UsageError

PREFIX = ".strikeout-upload-"
ENDINGS = (".csv.gz", ".csv", ".parquet", ".xlsx")
HOLD = 900.0  # seconds that a file waits to be imported after it was looked at
MOST_HELD = 20


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


class HeldUploads:
    """Files that were looked at in a browser and wait to be imported, for a few minutes, each for one person."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, tuple[float, str, str, Upload]] = {}

    def hold(self, upload: Upload, *, book: str, who: str) -> str:
        """Keep a file for a while, and return the number by which it can be taken."""
        self._expire(MOST_HELD - 1)
        number = token_hex(16)
        self._held[number] = self._clock(), book, who, upload
        return number

    def take(self, number: str, *, book: str, who: str) -> Upload:
        """Return a file and no longer keep it.

        Raises:
            NoSuchPageError: it is not kept any more, or is for another book or person.
        """
        self._expire(MOST_HELD)
        found = self._held.get(number)
        if found is None or found[1:3] != (book, who):
            raise NoSuchPageError("The uploaded file is not kept any more. Upload it again.")
        return self._held.pop(number)[3]

    def remove_all(self) -> None:
        """Delete every file that is kept."""
        self._expire(0)

    def _expire(self, most: int) -> None:
        while self._held:
            number, (at, _, _, upload) = next(iter(self._held.items()))
            if len(self._held) <= most and self._clock() - at < HOLD:
                return
            upload.remove()
            del self._held[number]
