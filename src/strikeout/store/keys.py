"""Signatures that anyone can check, and commitments that cannot be guessed without the key."""

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
    """An Ed25519 key pair (RFC 8032), compared by its public key. The private key is never printed."""

    public: str  # 64 hexadecimal digits
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    @staticmethod
    def generate() -> Signer:
        """Return a new random key pair."""
        return _signer(Ed25519PrivateKey.generate())

    @staticmethod
    def from_seed(seed: bytes) -> Signer:
        """Return the key pair of these 32 secret bytes.

        Raises:
            UsageError: the seed does not have 32 bytes.
        """
        if len(seed) != SECRET_BYTES:
            raise UsageError(f"Signer: a seed has {SECRET_BYTES} bytes, this one {len(seed)}.")
        return _signer(Ed25519PrivateKey.from_private_bytes(seed))

    def seed(self) -> bytes:
        """Return the 32 secret bytes, which are all that is needed to sign."""
        return self._private.private_bytes_raw()

    def sign(self, data: bytes) -> str:
        """Return the signature of these bytes, 128 hexadecimal digits; equal bytes give equal signatures."""
        return self._private.sign(data).hex()


def verify(public: str, data: bytes, *, signature: str) -> bool:
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

    Raises:
        UsageError: the key does not have 32 bytes.
    """
    running = committing(key, shard)
    running.update(data)
    return running.hexdigest()


def committing(key: bytes, shard: str) -> blake2b:
    """Return a running commitment: ``update`` it with each chunk of data, then call ``hexdigest``.

    Raises:
        UsageError: the key does not have 32 bytes.
    """
    if len(key) != SECRET_BYTES:
        raise UsageError(f"commit: a key has {SECRET_BYTES} bytes, this one {len(key)}.")
    shard_key = blake2b(shard.encode(), key=key, digest_size=SECRET_BYTES, person=b"strikeout shard").digest()
    return blake2b(key=shard_key, digest_size=32, person=b"strikeout quote")


def is_hex(text: object, width: int) -> bool:
    """Return whether this is the lower-case hexadecimal text of ``width`` bytes."""
    return isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{2 * width}}}", text) is not None


def _signer(private: Ed25519PrivateKey) -> Signer:
    return Signer(private.public_key().public_bytes_raw().hex(), private)
