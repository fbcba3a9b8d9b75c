"""Signatures anybody can check, and commitments that nobody can guess without the key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import blake2b

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from strikeout.errors import UsageError

SECRET_BYTES = 32


@dataclass(frozen=True)
class Signer:
    """One Ed25519 key pair (RFC 8032). Two are equal where their public keys are; the private half is never shown."""

    public: str  # 64 hexadecimal digits
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    @staticmethod
    def generate() -> Signer:
        """A key pair that nobody had before."""
        return _signer(Ed25519PrivateKey.generate())

    @staticmethod
    def from_seed(seed: bytes) -> Signer:
        """The key pair of these 32 secret bytes.

        Raises:
            UsageError: there are not 32 bytes.
        """
        if len(seed) != SECRET_BYTES:
            raise UsageError(f"Signer: a seed has {SECRET_BYTES} bytes, this one {len(seed)}.")
        return _signer(Ed25519PrivateKey.from_private_bytes(seed))

    def seed(self) -> bytes:
        """The 32 bytes that are the secret. Whoever has them can sign."""
        return self._private.private_bytes_raw()

    def sign(self, data: bytes) -> str:
        """The signature of these bytes, 128 hexadecimal digits; the same bytes give the same signature."""
        return self._private.sign(data).hex()


def verify(public: str, data: bytes, *, signature: str) -> bool:
    """Whether the holder of the key ``public`` signed exactly these bytes. Never raises.

    Hexadecimal digits must be lower case: a signature with two spellings would let a changed byte through.
    """
    if not (is_hex(public, 32) and is_hex(signature, 64)):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def commit(key: bytes, shard: str, *, data: bytes) -> str:
    """64 hexadecimal digits that stand for ``data`` in ``shard`` and mean nothing to whoever lacks the key.

    BLAKE2b under a key of the shard's own, itself BLAKE2b of the shard's name under ``key``. A plain hash would be no
    commitment: there are so few possible quotes that all can be tried in minutes. The same data in two shards, or in
    two books, give unrelated commitments.

    Raises:
        UsageError: the key has not 32 bytes.
    """
    running = committing(key, shard)
    running.update(data)
    return running.hexdigest()


def committing(key: bytes, shard: str) -> blake2b:
    """A commitment to data that come piece by piece: ``update`` it with each, then ask for ``hexdigest``.

    Raises:
        UsageError: the key has not 32 bytes.
    """
    if len(key) != SECRET_BYTES:
        raise UsageError(f"commit: a key has {SECRET_BYTES} bytes, this one {len(key)}.")
    shard_key = blake2b(shard.encode(), key=key, digest_size=SECRET_BYTES, person=b"strikeout shard").digest()
    return blake2b(key=shard_key, digest_size=32, person=b"strikeout quote")


def is_hex(text: object, width: int) -> bool:
    """Whether this is the lower-case hexadecimal text of ``width`` bytes."""
    return isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{2 * width}}}", text) is not None


def _signer(private: Ed25519PrivateKey) -> Signer:
    return Signer(private.public_key().public_bytes_raw().hex(), private)
