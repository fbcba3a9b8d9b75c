"""The tree is that of RFC 9162: known roots, and proofs that hold for what is there and for nothing else."""

from __future__ import annotations

from hashlib import sha256

import pytest

from strikeout.errors import UsageError
from strikeout.store.merkle import (
    EMPTY,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root,
    verify_consistency,
    verify_inclusion,
)
from tests.raising import raises

# The eight inputs that implementations of Certificate Transparency are tested with.
INPUTS = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
# The roots over the first 1, 2, ... 8 of them, as published with those tests.
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [leaf_hash(data) for data in INPUTS]
MANY = [leaf_hash(b"%d" % n) for n in range(33)]


def slow_root(data: list[bytes]) -> bytes:
    """Section 2.1.1 of the RFC, word for word."""
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\x00" + data[0]).digest()
    k = 1
    while 2 * k < len(data):
        k *= 2
    return sha256(b"\x01" + slow_root(data[:k]) + slow_root(data[k:])).digest()


def slow_path(index: int, data: list[bytes]) -> list[bytes]:
    """PATH of section 2.1.3.1, word for word."""
    if len(data) == 1:
        return []
    k = 1
    while 2 * k < len(data):
        k *= 2
    if index < k:
        return [*slow_path(index, data[:k]), slow_root(data[k:])]
    return [*slow_path(index - k, data[k:]), slow_root(data[:k])]


def test_the_published_roots_come_out():
    assert [root(LEAVES[:n]).hex() for n in range(1, 9)] == ROOTS


def test_the_root_of_nothing_is_the_hash_of_nothing():
    assert root([]) == EMPTY == sha256(b"").digest()


def test_roots_and_paths_are_those_of_the_definition_for_every_size_up_to_33():
    data = [b"%d" % n for n in range(33)]
    for n in range(34):
        assert root(MANY[:n]) == slow_root(data[:n]), n
        assert [inclusion_proof(MANY[:n], i) for i in range(n)] == [tuple(slow_path(i, data[:n])) for i in range(n)], n


def test_every_leaf_of_every_tree_is_shown_to_be_in_it_and_nowhere_else():
    for size in range(1, 20):
        top = root(MANY[:size])
        for index in range(size):
            proof = inclusion_proof(MANY[:size], index)
            places = [i for i in range(size + 2) if verify_inclusion(MANY[index], proof, index=i, size=size, root=top)]
            assert places == [index]
            assert not verify_inclusion(MANY[size], proof, index=index, size=size, root=top)


def test_every_tree_is_shown_to_have_grown_from_every_smaller_one():
    for size in range(34):
        for old in range(size + 1):
            proof = consistency_proof(MANY[:size], old)
            assert verify_consistency(
                proof, old_size=old, old_root=root(MANY[:old]), size=size, root=root(MANY[:size])
            ), (old, size)


def test_a_tree_whose_past_was_rewritten_is_never_shown_to_have_grown():
    """Any one of the old leaves changed; the proof is made from the forged tree, as a forger would."""
    for size in range(2, 20):
        for old in range(1, size):
            for changed in range(old):
                forged = [leaf_hash(b"forged") if n == changed else leaf for n, leaf in enumerate(MANY[:size])]
                proof = consistency_proof(forged, old)
                sizes = {"old_size": old, "size": size}
                assert not verify_consistency(proof, **sizes, old_root=root(MANY[:old]), root=root(forged))


def test_a_changed_shortened_or_lengthened_proof_proves_nothing():
    for size, old in ((7, 3), (8, 4), (13, 6), (32, 31)):
        tops = {"old_root": root(MANY[:old]), "root": root(MANY[:size])}
        grown, held = consistency_proof(MANY[:size], old), inclusion_proof(MANY[:size], old)
        for bad in damaged(grown):
            assert not verify_consistency(bad, old_size=old, size=size, **tops)
        for bad in damaged(held):
            assert not verify_inclusion(MANY[old], bad, index=old, size=size, root=tops["root"])


def damaged(proof: tuple[bytes, ...]) -> list[tuple[bytes, ...]]:
    flips = [(*proof[:n], bytes([part[0] ^ 1]) + part[1:], *proof[n + 1 :]) for n, part in enumerate(proof)]
    return [*flips, proof[:-1], proof[1:], (*proof, proof[-1]), tuple(part[:-1] for part in proof)]


def test_a_proof_does_not_hold_for_a_tree_that_is_higher():
    top = root(MANY[:4])
    for old in (1, 2, 3):
        tops = {"old_root": root(MANY[:old]), "root": top}
        assert not verify_consistency(consistency_proof(MANY[:4], old), old_size=old, size=8, **tops)
        assert not verify_inclusion(MANY[old], inclusion_proof(MANY[:4], old), index=old, size=8, root=top)


def test_growth_from_nothing_needs_the_root_of_nothing():
    top = root(LEAVES)
    assert not verify_consistency((), old_size=0, old_root=top, size=8, root=top)
    assert not verify_consistency(LEAVES[:1], old_size=0, old_root=EMPTY, size=8, root=top)
    assert not verify_consistency((), old_size=0, old_root=EMPTY, size=0, root=top)


def test_a_tree_does_not_shrink():
    top = root(LEAVES)
    assert not verify_consistency((), old_size=9, old_root=root(MANY[:9]), size=8, root=top)
    with raises(UsageError, old_size=9, count=8):
        consistency_proof(LEAVES, 9)


def test_a_proof_is_as_long_as_the_tree_is_high():
    leaves = [leaf_hash(b"%d" % n) for n in range(1000)]
    assert max(len(inclusion_proof(leaves, n)) for n in (0, 500, 999)) <= 10  # 2^10 > 1000
    assert len(consistency_proof(leaves, 777)) <= 11


@pytest.mark.parametrize("index", [-1, 8])
def test_a_leaf_that_is_not_there_has_no_proof(index):
    with raises(UsageError, index=index, count=8):
        inclusion_proof(LEAVES, index)


def test_data_in_place_of_hashes_is_refused():
    with raises(UsageError, leaf=1):
        root([LEAVES[0], b"quote"])
