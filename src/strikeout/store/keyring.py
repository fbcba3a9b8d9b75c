"""The secrets of a book, in a separate file, without which one can neither sign entries nor guess erased quotes.

Signatures that anyone can check, and commitments that cannot be guessed without the key.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from strikeout.assurance.canonical import canonical, from_canonical
from strikeout.errors import RefusedError, UsageError
from strikeout.text import Argument

SECRET_BYTES = 32


@dataclass(frozen=True)
class Signer:
    """An Ed25519 key pair (RFC 8032), compared by its public key. The private key is never printed."""

    public: str  # 64 hexadecimal digits
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    @staticmethod
    def generate() -> Signer:
        """Return a new random key pair."""
        return _signer(Ed25519PrivateKey.generate())

    @staticmethod
    def from_seed(seed: bytes) -> Signer:
        """Return the key pair of these 32 secret bytes."""
        if len(seed) != SECRET_BYTES:
            raise UsageError(f"Signer: a seed has {SECRET_BYTES} bytes, this one {len(seed)}.", count=len(seed))
        return _signer(Ed25519PrivateKey.from_private_bytes(seed))

    def seed(self) -> bytes:
        """Return the 32 secret bytes, which are all that is needed to sign."""
        return self._private.private_bytes_raw()

    def sign(self, data: bytes) -> str:
        """Return the signature of these bytes, 128 hexadecimal digits; equal bytes give equal signatures."""
        return self._private.sign(data).hex()


def is_signature(public: str, data: bytes, *, signature: str) -> bool:
    """Return whether the holder of the key ``public`` signed exactly these bytes. Never raises.

    Hexadecimal digits must be lower case: if a signature had two spellings, a changed byte could go undetected.
    """
    if not (is_hex(public, 32) and is_hex(signature, 64)):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def commit(key: bytes, shard: str, *, data: bytes) -> str:
    """Return the commitment to ``data`` in ``shard``: 64 hexadecimal digits that reveal nothing without the key.

    BLAKE2b under a key per shard, which is BLAKE2b of the shard's name under ``key``. A plain hash would not be a
    commitment: there are few enough possible quotes to try all of them in minutes. The same data in two shards, or in
    two books, give unrelated commitments.
    """
    running = committing(key, shard)
    running.update(data)
    return running.hexdigest()


def committing(key: bytes, shard: str) -> blake2b:
    """Return a running commitment: ``update`` it with each chunk of data, then call ``hexdigest``."""
    if len(key) != SECRET_BYTES:
        raise UsageError(f"commit: a key has {SECRET_BYTES} bytes, this one {len(key)}.", count=len(key))
    shard_key = blake2b(shard.encode(), key=key, digest_size=SECRET_BYTES, person=b"strikeout shard").digest()
    return blake2b(key=shard_key, digest_size=32, person=b"strikeout quote")


def is_hex(text: object, width: int) -> bool:
    """Return whether this is the lower-case hexadecimal text of ``width`` bytes."""
    return isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{2 * width}}}", text) is not None


def _signer(private: Ed25519PrivateKey) -> Signer:
    return Signer(private.public_key().public_bytes_raw().hex(), private)


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
        """Return the key pair with this public key, or the first one if none is given."""
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
        """Return these secrets with only this key pair, the second half of a rotation."""
        return replace(self, signers=(self.signer(public),))

    def create(self, path: Path) -> None:
        """Write a new key file that only its owner can read, completely or not at all."""
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
        """Replace a key file atomically: after a crash it is the old or the new one, complete."""
        beside = _write_beside(path, self._to_bytes())
        try:
            os.replace(beside, path)
        except OSError as error:
            beside.unlink()
            raise RefusedError(f"The key file {path} cannot be written ({error.strerror}).") from error
        _settle(path.parent)

    @staticmethod
    def read(path: Path) -> Keyring:
        """Return the secrets in a key file."""
        try:
            data, mode = path.read_bytes(), path.stat().st_mode
        except OSError as error:
            raise RefusedError(
                f"The key file {path} cannot be read ({error.strerror}). Restore it, or name it in {VARIABLE}; to "
                "audit a copy of a book without it, give the public key (",
                Argument("public_key"),
                ").",
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
        raise RefusedError(
            f"{path} is not a key file, or is damaged ({len(data)} bytes). Restore it.", count=len(data)
        ) from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise RefusedError(f"{path}: the format is {found!r}; this version reads {FORMAT!r}.", found=found)
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
