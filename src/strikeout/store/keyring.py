"""The secrets of a book, in a file of their own: whoever gets the book alone can neither sign nor guess quotes."""

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
    """The key pairs that may sign, and the secret of the commitments. There are two key pairs only during a rotation:
    the new one is in the file before the ledger names it, so that no crash can leave a ledger nobody can sign."""

    signers: tuple[Signer, ...]
    secret: bytes = field(repr=False)

    @staticmethod
    def generate() -> Keyring:
        """Fresh secrets."""
        return Keyring((Signer.generate(),), secrets.token_bytes(SECRET_BYTES))

    @staticmethod
    def empty() -> Keyring:
        """No secrets: of somebody who holds a copy of a book without its key file, and can only read."""
        return Keyring((), b"")

    def signer(self, public: str | None = None) -> Signer:
        """The key pair with this public key; without one, the first.

        Raises:
            RefusedError: it is not here.
        """
        found = next((s for s in self.signers if public in (None, s.public)), None)
        if found is None:
            raise RefusedError(
                f"The ledger must be signed with the key {str(public)[:16]}..., and the key file holds "
                f"{', '.join(s.public[:16] + '...' for s in self.signers) or 'none'}. "
                f"Bring the book's own key file back, or name it in {VARIABLE}.",
                public=public,
            )
        return found

    def commit(self, shard: str, data: bytes) -> str:
        """What stands for ``data`` in ``shard``; see ``keys.commit``."""
        return commit(self.secret, shard, data=data)

    def committing(self, shard: str) -> blake2b:
        """A commitment to data that come piece by piece; see ``keys.committing``."""
        return committing(self.secret, shard)

    def store_key(self) -> bytes:
        """The key that the rows of the book are sealed with; see ``checksums``. A rotation leaves it as it is."""
        return blake2b(key=self.secret, digest_size=SECRET_BYTES, person=b"strikeout rows").digest()

    def with_new_signer(self) -> Keyring:
        """These secrets and one more key pair: the first half of a rotation."""
        return replace(self, signers=(*self.signers, Signer.generate()))

    def only(self, public: str) -> Keyring:
        """These secrets with one key pair: the second half of a rotation.

        Raises:
            RefusedError: it is not here.
        """
        return replace(self, signers=(self.signer(public),))

    def create(self, path: Path) -> None:
        """Write a new key file that only its owner can read, whole or not at all.

        Raises:
            RefusedError: there is a file already, or none can be written there.
        """
        beside = _write_beside(path, self._to_bytes())
        try:
            os.link(beside, path)  # unlike a rename, it never replaces
        except FileExistsError as error:
            raise RefusedError(
                f"{path} is there already, and the keys of a book are neither overwritten nor shared by another. Name "
                f"another file in {VARIABLE}, or a folder, in which every book has a file of its own; if no book "
                "belongs to these keys, move the file away."
            ) from error
        except OSError as error:
            raise RefusedError(f"The key file {path} cannot be written ({error.strerror}).") from error
        finally:
            beside.unlink()
        _settle(path.parent)

    def replace_in(self, path: Path) -> None:
        """Put these secrets where others were: after a crash the file is the one or the other, whole.

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
        """The secrets in a key file.

        Raises:
            RefusedError: there is none, others than its owner can read it, or it is damaged.
        """
        try:
            data, mode = path.read_bytes(), path.stat().st_mode
        except OSError as error:
            raise RefusedError(
                f"The key file {path} cannot be read ({error.strerror}). Bring it back, or name it in {VARIABLE}."
            ) from error
        if os.name == "posix" and mode & 0o077:
            raise RefusedError(
                f"The key file {path} is open to others (mode {mode & 0o777:o}). Close it: chmod 600 {path}",
                mode=mode & 0o777,
            )
        return _from_bytes(data, path)

    def _to_bytes(self) -> bytes:
        seeds = [signer.seed().hex() for signer in self.signers]
        content = {"format": FORMAT, "secret": self.secret.hex(), "signers": seeds}
        # One flipped bit of the secret, unseen, would let every erased quote return.
        return canonical({**content, "seal": sha256(canonical(content)).hexdigest()}) + b"\n"


def key_file(book: Path) -> Path:
    """Where a book's secrets are: ``NAME.book.key`` beside the book, or where STRIKEOUT_KEY_FILE says.

    That may be a file, which then serves one book, or a folder, in which every book has its ``NAME.book.key``.
    """
    named, own = os.environ.get(VARIABLE), book.name + ENDING
    if not named:
        return book.with_name(own)
    return Path(named) / own if Path(named).is_dir() else Path(named)


def _from_bytes(data: bytes, path: Path) -> Keyring:
    try:
        content = from_canonical(data.removesuffix(b"\n"))
    except RefusedError as error:
        raise RefusedError(f"{path} is no key file, or a damaged one ({len(data)} bytes). Bring it back.") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise RefusedError(f"{path}: the format is {found!r}; this version reads {FORMAT!r}.")
    seeds, secret = content.get("signers"), content.get("secret")
    if isinstance(seeds, list) and seeds and all(is_hex(text, SECRET_BYTES) for text in (secret, *seeds)):
        ring = Keyring(tuple(Signer.from_seed(bytes.fromhex(seed)) for seed in seeds), bytes.fromhex(secret))
        if ring._to_bytes() == data:
            return ring
    raise RefusedError(f"{path}: the keys in it are not as they were written. Bring the file back.")


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
