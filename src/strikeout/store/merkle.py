"""The Merkle tree of RFC 9162, section 2.1: a root of 32 bytes for any number of leaves, and short proofs.

    leaf  SHA-256(0x00 || data)
    node  SHA-256(0x01 || left || right)
    root  the leaf of one; of n leaves, the node of the first k and of the rest, k the largest power of two below n

All functions take and return hashes of leaves, 32 bytes each; ``leaf_hash`` computes them. The first byte prevents that
a node is presented as a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from strikeout.errors import UsageError

WIDTH = 32
EMPTY = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of one leaf."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees."""
    return sha256(b"\x01" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over these leaves; without leaves, SHA-256 of the empty string."""
    level = _hashes(leaves)
    while len(level) > 1:
        level = _above(level)
    return level[0] if level else EMPTY


def inclusion_proof(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """Return the hashes that lead from the leaf at ``index`` (counted from 0) to the root, from the bottom up."""
    level = _hashes(leaves)
    if not 0 <= index < len(level):
        raise UsageError(
            f"inclusion_proof: leaf {index} of {len(level)}; the first is 0.", index=index, count=len(level)
        )
    path = []
    while len(level) > 1:
        if index ^ 1 < len(level):  # the last of an odd level has no neighbour and moves up unchanged
            path.append(level[index ^ 1])
        level, index = _above(level), index >> 1
    return tuple(path)


def verify_inclusion(leaf: bytes, proof: Sequence[bytes], *, index: int, size: int, root: bytes) -> bool:
    """Return whether ``proof`` shows ``leaf`` at ``index`` of the ``size`` leaves under ``root``. Never raises."""
    if not (0 <= index < size and all(len(part) == WIDTH for part in (leaf, root, *proof))):
        return False
    at, last, found = index, size - 1, leaf
    for part in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node_hash(part, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, part)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> tuple[bytes, ...]:
    """Return the hashes that prove that leaves were only appended after the first ``old_size``.

    The proof is empty for 0 leaves and for all of them.
    """
    level = _hashes(leaves)
    if not 0 <= old_size <= len(level):
        raise UsageError(
            f"consistency_proof: the tree had {old_size} leaves and has {len(level)}; it can only grow.",
            old_size=old_size,
            count=len(level),
        )
    return tuple(_subproof(level, old_size, is_whole=True)) if 0 < old_size < len(level) else ()


def verify_consistency(proof: Sequence[bytes], *, old_size: int, old_root: bytes, size: int, root: bytes) -> bool:
    """Return whether ``proof`` shows that the tree under ``root`` is the one under ``old_root`` with leaves appended.

    Never raises.
    """
    if not (0 <= old_size <= size and all(len(part) == WIDTH for part in (old_root, root, *proof))):
        return False
    if old_size in (0, size):
        return not proof and old_root == (EMPTY if old_size == 0 else root) and (size > 0 or root == EMPTY)
    at, last = old_size - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    # For a power of two the old root is itself the first hash of the path, and is not part of the proof.
    parts = list(proof) if at else [old_root, *proof]
    if not parts:
        return False
    old = new = parts[0]
    for part in parts[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old, new = node_hash(part, old), node_hash(part, new)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            new = node_hash(new, part)
        at, last = at >> 1, last >> 1
    return last == 0 and old == old_root and new == root


def _subproof(leaves: list[bytes], old_size: int, *, is_whole: bool) -> list[bytes]:
    """Return SUBPROOF of section 2.1.4.1; ``is_whole`` while the subtree begins where the old tree does."""
    if old_size == len(leaves):
        return [] if is_whole else [root(leaves)]
    k = 1 << ((len(leaves) - 1).bit_length() - 1)
    if old_size <= k:
        return [*_subproof(leaves[:k], old_size, is_whole=is_whole), root(leaves[k:])]
    return [*_subproof(leaves[k:], old_size - k, is_whole=False), root(leaves[:k])]


def _above(level: list[bytes]) -> list[bytes]:
    pairs = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
    return [*pairs, level[-1]] if len(level) % 2 else pairs


def _hashes(leaves: Sequence[bytes]) -> list[bytes]:
    odd = next((row for row, leaf in enumerate(leaves) if len(leaf) != WIDTH), None)
    if odd is not None:
        raise UsageError(
            f"A tree takes hashes of {WIDTH} bytes; leaf {odd} has {len(leaves[odd])}. Use leaf_hash first.", leaf=odd
        )
    return list(leaves)
