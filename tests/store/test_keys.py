"""Signatures hold for what was signed and nothing else; secrets stay in a file of their own, whole and closed."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest

from strikeout.errors import RefusedError, UsageError
from strikeout.store.keyring import Keyring, Signer, commit, is_signature, key_file
from tests.raising import raises

KEY = bytes(range(32))


def test_the_signatures_are_those_of_rfc_8032():
    """Section 7.1, TEST 1 (no bytes) and TEST 2 (one byte)."""
    first = Signer.from_seed(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert first.public == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert first.sign(b"") == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )
    second = Signer.from_seed(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    assert second.sign(b"\x72") == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


def test_a_signature_holds_for_its_bytes_and_its_key_only():
    signer, other = Signer.generate(), Signer.generate()
    signature = signer.sign(b"27 quotes")
    assert is_signature(signer.public, b"27 quotes", signature=signature)
    assert not is_signature(signer.public, b"28 quotes", signature=signature)
    assert not is_signature(other.public, b"27 quotes", signature=signature)


def test_no_single_bit_of_a_signature_can_be_changed():
    signer = Signer.from_seed(KEY)
    signature = signer.sign(b"27 quotes").encode()
    for place in range(len(signature)):
        for bit in range(7):
            changed = bytearray(signature)
            changed[place] ^= 1 << bit
            assert not is_signature(signer.public, b"27 quotes", signature=changed.decode()), (place, bit)


def test_text_that_is_no_key_or_signature_does_not_verify():
    signer = Signer.from_seed(KEY)
    good = signer.sign(b"")
    assert not is_signature(signer.public.upper(), b"", signature=good)
    assert not is_signature("", b"", signature=good)
    assert not is_signature("ff" * 32, b"", signature=good)
    assert not is_signature(signer.public, b"", signature=good + "\n")


def test_a_seed_of_another_length_is_refused():
    with raises(UsageError, count=31):
        Signer.from_seed(KEY[:31])


def test_no_secret_is_printed():
    ring = Keyring.generate()
    shown = repr(ring) + str(ring) + repr(ring.signers)
    assert ring.signer().public in shown
    for secret in (ring.secret, ring.signer().seed()):
        assert secret.hex() not in shown
        assert repr(secret) not in shown


def test_a_commitment_depends_on_the_key_the_shard_and_the_data():
    one = commit(KEY, "2024-01-02 0.25", data=b"quote")
    assert one == commit(KEY, "2024-01-02 0.25", data=b"quote")
    assert len({one, commit(KEY[::-1], "2024-01-02 0.25", data=b"quote"), commit(KEY, "2024-01-02 0.5", data=b"quote"),
                commit(KEY, "2024-01-02 0.25", data=b"quotf")}) == 4  # fmt: skip


def test_a_commitment_is_two_keyed_hashes_for_ever():
    """Books keep commitments for years: another definition would let every erased quote of theirs return."""
    shard_key = blake2b(b"2024-01-02", key=KEY, digest_size=32, person=b"strikeout shard").digest()
    expected = blake2b(b"quote", key=shard_key, digest_size=32, person=b"strikeout quote").hexdigest()
    assert commit(KEY, "2024-01-02", data=b"quote") == expected


def test_a_commitment_is_no_plain_hash():
    plain = {blake2b(data, digest_size=32).hexdigest() for data in (b"quote", b"squote", b"quotes")}
    assert commit(KEY, "s", data=b"quote") not in plain


def test_a_shard_and_its_data_do_not_run_together():
    assert commit(KEY, "ab", data=b"c") != commit(KEY, "a", data=b"bc")


def test_a_key_of_another_length_is_refused():
    with raises(UsageError, count=0):
        commit(b"", "shard", data=b"quote")


def test_the_secrets_come_back_from_their_file(tmp_path):
    ring, path = Keyring.generate().with_new_signer(), tmp_path / "spx.book.key"
    ring.create(path)
    again = Keyring.read(path)
    assert again == ring
    assert [s.seed() for s in again.signers] == [s.seed() for s in ring.signers]
    assert os.listdir(tmp_path) == ["spx.book.key"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_only_the_owner_can_read_the_file_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        Keyring.generate().create(tmp_path / "a.key")
        Keyring.generate().replace_in(tmp_path / "a.key")
    finally:
        os.umask(before)
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_key_file_open_to_others_is_refused(tmp_path):
    path = tmp_path / "a.key"
    Keyring.generate().create(path)
    path.chmod(0o640)
    with raises(RefusedError, mode=416):
        Keyring.read(path)


def test_a_key_file_is_never_overwritten_by_a_new_one(tmp_path):
    path = tmp_path / "a.key"
    Keyring.generate().create(path)
    before = path.read_bytes()
    with pytest.raises(RefusedError, match=r"a\.key.*STRIKEOUT_KEY_FILE"):
        Keyring.generate().create(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.key"]


def test_of_processes_that_make_one_key_file_at_once_one_does_and_the_others_are_refused(tmp_path):
    code = (
        "import sys; from pathlib import Path; from strikeout.store.keyring import Keyring; made = Keyring.generate()\n"
        "input(); made.create(Path(sys.argv[1])); print(made.signer().public)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.key")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60) for process in running]
    (made,) = [words.strip() for words, _ in said if words]
    assert Keyring.read(tmp_path / "a.key").signer().public == made
    assert sum("RefusedError" in wrong and "a.key" in wrong for _, wrong in said) == 3
    assert os.listdir(tmp_path) == ["a.key"]


def test_no_single_bit_of_a_key_file_can_be_changed(tmp_path):
    path = tmp_path / "a.key"
    Keyring.generate().create(path)
    good = path.read_bytes()
    for place in range(len(good)):
        for bit in range(8):
            path.write_bytes(good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :])
            with pytest.raises(RefusedError):
                Keyring.read(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "0 bytes"),
        ("-----BEGIN PRIVATE KEY-----", "27 bytes"),
        ("[]", "format is None"),
        ('{"format":"strikeout keys 9"}', "strikeout keys 9"),
        ('{"format":"strikeout keys 1","secret":"00","signers":[]}', "not as they were written"),
    ],
)
def test_a_file_that_holds_no_keys_is_refused(tmp_path, text, why):
    path = tmp_path / "a.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(RefusedError, match=why):
        Keyring.read(path)


def test_a_key_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RefusedError, match=r"a\.key cannot be read.*STRIKEOUT_KEY_FILE"):
        Keyring.read(tmp_path / "a.key")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RefusedError, match="cannot be written"):
        Keyring.generate().create(tmp_path / "nowhere" / "a.key")


def test_the_keys_of_a_book_are_beside_it_unless_the_variable_says_where(tmp_path, monkeypatch):
    monkeypatch.delenv("STRIKEOUT_KEY_FILE", raising=False)
    assert key_file(tmp_path / "spx.book") == tmp_path / "spx.book.key"
    monkeypatch.setenv("STRIKEOUT_KEY_FILE", "elsewhere.key")
    assert key_file(tmp_path / "spx.book") == Path("elsewhere.key")
    monkeypatch.setenv("STRIKEOUT_KEY_FILE", str(tmp_path))  # a folder: a file for every book
    assert key_file(Path("somewhere") / "spx.book") == tmp_path / "spx.book.key"


def test_a_key_that_is_not_on_the_ring_is_named():
    ring = Keyring.generate()
    with pytest.raises(RefusedError, match=r"ffffffffffffffff\.\.\..*key file holds " + ring.signer().public[:16]):
        ring.signer("ff" * 32)
