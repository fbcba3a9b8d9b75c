"""``--key``: the public keys of a book, and the audit of a copy without its key file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from strikeout.errors import UnreadableFileError, UsageError

MOST_KEYS = 1 << 16  # bytes of a file of public keys

audit_key_option = click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Read a copy of the book without its key file: the public key that must have signed its last entry (64 "
    "hexadecimal digits, as status prints it), or a file of such keys, one per line. Never a secret one.",
)


def public_keys_of(given: Iterable[str]) -> list[str]:
    """Return the public keys that options name: each is itself, or those in a file.

    Raises:
        UsageError: it is neither, or the file holds something else.
        UnreadableFileError: the file cannot be read.
    """
    return [key for one in given for key in _keys_of(one)]


def _keys_of(given: str) -> list[str]:
    """Return the public keys that one option names."""
    from strikeout.store.keys import is_hex

    if is_hex(given, 32):
        return [given]
    if not Path(given).exists():
        raise UsageError("--key: neither 64 hexadecimal digits in lower case nor a file. `strikeout status` prints it.")
    lines = (
        read_bytes(given, MOST_KEYS, "Give a file of public keys, one per line.")
        .decode("ascii", "replace")
        .splitlines()
    )
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found or not all(is_hex(line, 32) for line in found):
        raise UsageError(
            f"--key {given}: not a file of public keys, 64 hexadecimal digits per line. A book's key file "
            "(NAME.book.key) is secret; `strikeout status` prints the public key.",
            path=given,
        )
    return found


def read_bytes(path: str, most: int, remedy: str) -> bytes:
    """Return the first bytes of a file, at most one more than may be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read ({error.strerror}). {remedy}", path=path) from error
