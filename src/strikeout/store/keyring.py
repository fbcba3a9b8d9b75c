"""The secrets of a book, in a separate file, without which one can neither sign entries nor guess erased quotes."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.errors import RefusedError
from strikeout.store.keys import SECRET_BYTES, Signer, commit, committing, is_hex

FORMAT = "strikeout keys 1"
VARIABLE = "STRIKEOUT_KEY_FILE"
ENDING = ".key"


@dataclass(frozen=True)
class Keyring:
    """The key pairs that may sign, and the secret of the commitments.

    There are two key pairs only during a rotation: the new one is in the file before the ledger names it, so that a
    crash cannot leave a ledger without its signing key.
    """

    signers: tuple[Signer, ...]
    secret: bytes = field(repr=False)

    @staticmethod
    def generate() -> Keyring:
        """Return new random secrets."""
        return Keyring((Signer.generate(),), secrets.token_bytes(SECRET_BYTES))

    @staticmethod
    def empty() -> Keyring:
        """Return a keyring without secrets, for reading a copy of a book without its key file."""
        return Keyring((), b"")

    def signer(self, public: str | None = None) -> Signer:
        """Return the key pair with this public key, or the first one if none is given.

        Raises:
            RefusedError: the keyring does not contain it.
        """
        found = next((s for s in self.signers if public in (None, s.public)), None)
        if found is None:
            raise RefusedError(
                f"The ledger must be signed with the key {str(public)[:16]}..., and the key file holds "
                f"{', '.join(s.public[:16] + '...' for s in self.signers) or 'none'}. "
                f"Restore the book's own key file, or name it in {VARIABLE}.",
                public=public,
            )
        return found

    def commit(self, shard: str, data: bytes) -> str:
        """Return the commitment to ``data`` in ``shard``; see ``keys.commit``."""
        return commit(self.secret, shard, data=data)

    def committing(self, shard: str) -> blake2b:
        """Return a running commitment, to be updated chunk by chunk; see ``keys.committing``."""
        return committing(self.secret, shard)

    def store_key(self) -> bytes:
        """Return the key that rows of the book are sealed with; see ``checksums``. A rotation does not change it."""
        return blake2b(key=self.secret, digest_size=SECRET_BYTES, person=b"strikeout rows").digest()

    def with_new_signer(self) -> Keyring:
        """Return these secrets with one more key pair, the first half of a rotation."""
        return replace(self, signers=(*self.signers, Signer.generate()))

    def only(self, public: str) -> Keyring:
        """Return these secrets with only this key pair, the second half of a rotation.

        Raises:
            RefusedError: the keyring does not contain it.
        """
        return replace(self, signers=(self.signer(public),))

    def create(self, path: Path) -> None:
        """Write a new key file that only its owner can read, completely or not at all.

        Raises:
            RefusedError: the file exists already, or cannot be written.
        """
        beside = _write_beside(path, self._to_bytes())
        try:
            os.link(beside, path)  # unlike a rename, it never replaces
        except FileExistsError as error:
            raise RefusedError(
                f"{path} exists already, and the keys of a book are never overwritten or shared with another. Name "
                f"another file in {VARIABLE}, or a folder, in which every book has its own file; if no book uses "
                "these keys, move the file away."
            ) from error
        except OSError as error:
            raise RefusedError(f"The key file {path} cannot be written ({error.strerror}).") from error
        finally:
            beside.unlink()
        _settle(path.parent)

    def replace_in(self, path: Path) -> None:
        """Replace a key file atomically: after a crash it is the old or the new one, complete.

        Raises:
            RefusedError: it cannot be written.
        """
        beside = _write_beside(path, self._to_bytes())
        try:
            os.replace(beside, path)
        except OSError as error:
            beside.unlink()
            raise RefusedError(f"The key file {path} cannot be written ({error.strerror}).") from error
        _settle(path.parent)

    @staticmethod
    def read(path: Path) -> Keyring:
        """Return the secrets in a key file.

        Raises:
            RefusedError: the file is missing, can be read by others than its owner, or is damaged.
        """
        try:
            data, mode = path.read_bytes(), path.stat().st_mode
        except OSError as error:
            raise RefusedError(
                f"The key file {path} cannot be read ({error.strerror}). Restore it, or name it in {VARIABLE}."
            ) from error
        if os.name == "posix" and mode & 0o077:
            raise RefusedError(
                f"The key file {path} can be read by others (mode {mode & 0o777:o}). Restrict it: chmod 600 {path}",
                mode=mode & 0o777,
            )
        return _from_bytes(data, path)

    def _to_bytes(self) -> bytes:
        seeds = [signer.seed().hex() for signer in self.signers]
        content = {"format": FORMAT, "secret": self.secret.hex(), "signers": seeds}
        # If a flipped bit of the secret were not detected, every erased quote could be imported again.
        return canonical({**content, "seal": sha256(canonical(content)).hexdigest()}) + b"\n"


def key_file(book: Path) -> Path:
    """Return the path of a book's key file: ``NAME.book.key`` beside the book, or as STRIKEOUT_KEY_FILE names it.

    The variable names a file, for one book, or a folder, in which every book has its ``NAME.book.key``.
    """
    named, own = os.environ.get(VARIABLE), book.name + ENDING
    if not named:
        return book.with_name(own)
    return Path(named) / own if Path(named).is_dir() else Path(named)


def _from_bytes(data: bytes, path: Path) -> Keyring:
    try:
        content = from_canonical(data.removesuffix(b"\n"))
    except RefusedError as error:
        raise RefusedError(f"{path} is not a key file, or is damaged ({len(data)} bytes). Restore it.") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise RefusedError(f"{path}: the format is {found!r}; this version reads {FORMAT!r}.")
    seeds, secret = content.get("signers"), content.get("secret")
    if isinstance(seeds, list) and seeds and all(is_hex(text, SECRET_BYTES) for text in (secret, *seeds)):
        ring = Keyring(tuple(Signer.from_seed(bytes.fromhex(seed)) for seed in seeds), bytes.fromhex(secret))
        if ring._to_bytes() == data:
            return ring
    raise RefusedError(f"{path}: the keys in it are not as they were written. Restore the file.")


def _write_beside(path: Path, data: bytes) -> Path:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise RefusedError(f"The key file {path} cannot be written ({error.strerror}).") from error
    return beside


def _settle(folder: Path) -> None:
    """Make the new name of a file survive a power cut."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
