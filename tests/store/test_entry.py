"""An entry says who, when, what and why, in one form, and gives no quote away."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from hashlib import blake2b, sha256

import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from strikeout.store.keyring import Keyring
from strikeout.store.ledger import FIRST, Act, Entry, Ledger, Reason, ReasonCode, entry_after, keyed_certificate
from tests.raising import raises
from tests.store.ledgers import CERTIFICATE, FORGET, NOON, RING, STATE, TOUCHED, flips, record, rotated


def test_an_entry_says_who_when_what_and_why():
    entry = record()[2]
    assert (entry.number, entry.who, entry.at, entry.what) == (2, "desk-1", "2024-03-01T12:00:00.000000Z", "forget")
    assert entry.why == Reason("bad-feed", "décimal shift", "OPS-17")
    assert entry.counts == {"forgotten": 2, "retained": 538}
    assert entry.certificate == keyed_certificate(CERTIFICATE, RING) != CERTIFICATE
    assert entry.software == f"strikeout {so.__version__}"
    assert str(entry) == (
        "   2  2024-03-01T12:00:00Z  desk-1  forget, forgotten 2, retained 538: bad-feed (décimal shift, OPS-17)"
    )


def test_the_time_is_kept_in_utc_whatever_the_zone_it_came_in():
    east = Act("desk-1", "import", NOON.astimezone(timezone(timedelta(hours=9))))
    assert Ledger().append(east, RING)[1].at == record()[1].at


def test_an_entry_comes_back_from_its_bytes():
    for entry in rotated()[0]:
        assert Entry.from_bytes(entry.to_bytes()) == entry
    assert Ledger.from_bytes(record().to_bytes()) == record()


def test_the_same_acts_give_the_same_bytes():
    assert record().to_bytes() == record().to_bytes()


def test_the_entries_are_chained_by_the_leaves_of_the_tree():
    rows = record().to_bytes()
    previous = [json.loads(row)["previous"] for row in rows]
    assert previous == [FIRST, *(sha256(b"\x00" + row).hexdigest() for row in rows[:-1])]


def test_a_signature_can_be_checked_without_our_code():
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    content = json.loads(record().to_bytes()[1])
    signature = bytes.fromhex(content.pop("signature"))
    plain = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(content["public"])).verify(signature, plain)


def test_the_last_entry_is_all_it_takes_to_write_the_next():
    ledger, ring = rotated()
    assert entry_after(ledger[3], FORGET, keyring=ring) == Ledger(ledger.entries[:3]).append(FORGET, ring)[4]
    assert entry_after(ledger[5], FORGET, keyring=ring) == ledger.append(FORGET, ring)[6]
    assert entry_after(None, FORGET, keyring=ring) == Ledger().append(FORGET, ring)[1]


def test_appending_leaves_the_old_ledger_as_it_was():
    old = record()
    before = old.to_bytes()
    old.append(FORGET, RING)
    assert old.to_bytes() == before


# What it must not say


def test_no_hash_in_an_entry_can_be_found_from_a_quote_without_the_key():
    """Every plain hash of every quote, of their ids, of the set and of the state's digest."""
    text = record()[2].to_bytes().decode()
    guesses = [*TOUCHED, b"".join(TOUCHED), b"".join(TOUCHED[::-1]), STATE.encode(), bytes.fromhex(STATE)]
    for guess in guesses:
        for hashed in (sha256(guess), sha256(b"\x00" + guess), blake2b(guess, digest_size=32), blake2b(guess)):
            assert hashed.hexdigest() not in text
    assert STATE not in text
    assert "4500" not in text
    assert "103.25" not in text


def test_two_books_with_the_same_quotes_have_nothing_in_common_that_shows_it():
    other = Keyring(RING.signers, bytes([1]) * 32)
    one, two = record()[2], record(ring=other)[2]
    assert one.touched != two.touched
    assert one.digests["state"] != two.digests["state"]


def test_whoever_holds_the_key_can_check_the_state_and_the_set():
    entry = record()[2]
    assert entry.digests["state"] == RING.commit("digest state", STATE.encode())
    again = Ledger().append(replace(FORGET, touched=TOUCHED[::-1]), RING)[1]
    assert entry.touched == again.touched
    assert entry.touched != Ledger().append(replace(FORGET, touched=TOUCHED[:1]), RING)[1].touched


def test_members_of_a_set_do_not_run_together():
    def touched(*members):
        return Ledger().append(replace(FORGET, touched=members), RING)[1].touched

    assert len({touched(b"ab", b"c"), touched(b"a", b"bc"), touched(b"abc"), touched(b"abc", b"")}) == 4
    assert touched() == ""


def test_every_single_bit_flip_of_an_entry_is_found_by_the_entry_itself():
    """Its form or its signature gives every one away, without the chain: the last entry has no other guard."""

    def is_seen(row: bytes) -> bool:
        try:
            return not Entry.from_bytes(row).is_signed()
        except RefusedError:
            return True

    unseen = [(entry.number, flip) for entry in rotated()[0] for flip in flips(entry.to_bytes()) if not is_seen(flip)]
    assert unseen == []


# What is refused


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"who": ""}, {"name": "who"}),
        ({"what": ""}, {"name": "what"}),
        ({"who": "a\nb"}, {"text": "a\nb"}),
        ({"who": "a\u202eb"}, {"text": "a\u202eb"}),
        ({"who": "\udcff"}, {"text": "\udcff"}),
        ({"counts": {"forgotten": 1.5}}, {"name": "forgotten", "count": 1.5}),
        ({"counts": {"forgotten": True}}, {"name": "forgotten", "count": True}),
        ({"counts": {"forgotten": -1}}, {"name": "forgotten", "count": -1}),
        ({"certificate": "abc"}, {"certificate": "abc"}),
        ({"at": datetime(2024, 3, 1)}, {"at": "2024-03-01T00:00:00"}),
    ],
)
def test_an_act_that_cannot_be_recorded_is_refused(change, facts):
    with raises(UsageError, **facts):
        replace(FORGET, **change)


def test_a_reason_is_one_of_six():
    assert [Reason(code).code for code in ReasonCode] == [
        "bad-feed",
        "licence",
        "subject-request",
        "error",
        "test",
        "other",
    ]
    with raises(UsageError, code_given="whim"):
        Reason("whim")
    with raises(UsageError, name="the text of a reason", text="two\nlines"):
        Reason("other", "two\nlines")


def test_a_reason_comes_back_from_its_table():
    reason = Reason("licence", "expired", "LEG-2")
    assert Reason.from_plain(reason.to_plain()) == reason
    with pytest.raises(UsageError, match="found code"):
        Reason.from_plain({"code": "licence"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", 0),
        ("number", True),
        ("who", 5),
        ("who", "a\x1b[2Jb"),
        ("why", {"code": "whim", "text": "", "ticket": ""}),
        ("why", {"code": "test"}),
        ("why", {"code": ["test"], "text": "", "ticket": ""}),
        ("counts", {"forgotten": -1}),
        ("counts", []),
        ("digests", {"state": "103.25"}),
        ("touched", "AB" * 32),
        ("previous", ""),
        ("signature", ""),
    ],
)
def test_bytes_that_are_no_entry_are_refused(name, value):
    content = {**json.loads(record().to_bytes()[1]), name: value}
    with raises(RefusedError, field=name):
        Entry.from_bytes(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("name", "value", "facts"),
    [
        ("format", "strikeout ledger entry 2", {"found": "strikeout ledger entry 2"}),
        ("price", 103, {"fields": "price"}),
    ],
)
def test_an_entry_of_another_format_or_with_another_field_is_refused(name, value, facts):
    content = {**json.loads(record().to_bytes()[1]), name: value}
    with raises(RefusedError, **facts):
        Entry.from_bytes(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
