"""The record holds as it was written, any change to it is found, and it gives no quote away."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import blake2b, sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from strikeout.store import merkle
from strikeout.store.keyring import Keyring
from strikeout.store.keys import Signer
from strikeout.store.ledger import FIRST, Act, Entry, Head, Ledger, Reason, ReasonCode, check_bytes, entry_after

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
RING = Keyring((Signer.from_seed(bytes(range(32))),), bytes(32))
TOUCHED = (b"SPX 4500 C 2024-06-21 103.25", b"SPX 4600 C 2024-06-21 58.5")
STATE = sha256(b"the state").hexdigest()
CERTIFICATE = sha256(b"the certificate").hexdigest()
FORGET = Act(
    "desk-1",
    "forget",
    NOON,
    why=Reason("bad-feed", "décimal shift", "OPS-17"),
    counts={"forgotten": 2, "retained": 538},
    digests={"state": STATE},
    touched=TOUCHED,
    certificate=CERTIFICATE,
)


def act(what: str, minutes: int = 0) -> Act:
    return Act("desk-1", what, NOON + timedelta(minutes=minutes))


def record(length: int = 4, ring: Keyring = RING) -> Ledger:
    """An import, then strike-outs."""
    ledger = Ledger().append(act("import"), ring)
    for _ in range(length - 1):
        ledger = ledger.append(FORGET, ring)
    return ledger


def rotated() -> tuple[Ledger, Keyring]:
    """Two entries under the old key, the hand-over, and two under the new, the first of which takes over."""
    both = replace(RING, signers=(*RING.signers, Signer.from_seed(bytes(32))))
    ledger = record(2).rotate(act("rotate"), both)
    after = both.only(ledger.public)
    return ledger.append(act("calibrate"), after), after


# What an entry says


def test_an_entry_says_who_when_what_and_why():
    entry = record()[2]
    assert (entry.number, entry.who, entry.at, entry.what) == (2, "desk-1", "2024-03-01T12:00:00.000000Z", "forget")
    assert entry.why == Reason("bad-feed", "décimal shift", "OPS-17")
    assert entry.counts == {"forgotten": 2, "retained": 538}
    assert entry.certificate == CERTIFICATE
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


# Changes are found


def test_a_ledger_as_it_was_written_holds():
    for ledger in (Ledger(), record(1), record(), rotated()[0]):
        assert ledger.check() == []
        assert check_bytes(ledger.to_bytes(), head=ledger.head()) == []


def flips(row: bytes) -> list[bytes]:
    return [row[:n] + bytes([row[n] ^ 1 << bit]) + row[n + 1 :] for n in range(len(row)) for bit in range(8)]


def test_every_single_bit_flip_of_an_entry_is_found_by_the_entry_itself():
    """Its form or its signature gives every one away, without the chain: the last entry has no other guard."""

    def is_seen(row: bytes) -> bool:
        try:
            return not Entry.from_bytes(row).is_signed()
        except RefusedError:
            return True

    unseen = [(entry.number, flip) for entry in rotated()[0] for flip in flips(entry.to_bytes()) if not is_seen(flip)]
    assert unseen == []


def test_every_single_bit_flip_of_a_stored_ledger_is_found():
    rows = record(2).to_bytes()
    assert [flip for flip in flips(rows[0]) if not check_bytes([flip, rows[1]])] == []
    assert [flip for flip in flips(rows[1]) if not check_bytes([rows[0], flip])] == []


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_cut_or_insertion_in_the_bytes_of_an_entry_is_found(data):
    rows = record(3).to_bytes()
    number = data.draw(st.integers(0, 2))
    row = rows[number]
    begin = data.draw(st.integers(0, len(row)))
    end = data.draw(st.integers(begin, len(row)))
    changed = row[:begin] + data.draw(st.binary(max_size=4)) + row[end:]
    if changed != row:
        assert check_bytes([*rows[:number], changed, *rows[number + 1 :]])


@pytest.mark.parametrize(
    "change",
    [
        {"who": "somebody"},
        {"at": "2024-03-02T12:00:00.000000Z"},
        {"what": "restore"},
        {"why": Reason("licence")},
        {"why": None},
        {"counts": {"forgotten": 3, "retained": 537}},
        {"digests": {}},
        {"touched": ""},
        {"certificate": ""},
        {"software": "strikeout 9"},
        {"next_public": "ab" * 32},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_field_is_found_at_its_entry_and_at_the_next(change):
    entries = record().entries
    forged = Ledger((entries[0], replace(entries[1], **change), *entries[2:]))
    found = forged.check()
    assert "Entry 2 was changed after it was signed, or never signed with its key." in found
    assert "Entry 3 does not follow from the one before it: something was changed or left out." in found


def test_an_entry_changed_and_signed_again_with_the_right_key_breaks_the_chain():
    entries = record().entries
    again = replace(entries[1], who="somebody").signed(RING.signer())
    assert Ledger((entries[0], again, *entries[2:])).check() == [
        "Entry 3 does not follow from the one before it: something was changed or left out."
    ]


def test_a_wrong_number_is_found_even_where_the_right_key_signed_it():
    entries = record().entries
    forged = replace(entries[3], number=7).signed(RING.signer())
    assert Ledger((*entries[:3], forged)).check() == ["Entry 4 of the ledger says it is number 7."]


def test_an_entry_left_out_put_twice_or_moved_is_found():
    a, b, c, d = record().entries
    for wrong in ((a, c, d), (b, c, d), (a, b, b, c, d), (a, c, b, d), (d, c, b, a)):
        assert Ledger(wrong).check(), wrong


def test_an_entry_of_another_ledger_under_the_same_key_is_found():
    other = Ledger().append(act("import", 5), RING).append(FORGET, RING)
    assert Ledger((record(1)[1], other[2])).check()


def test_an_unreadable_entry_is_named_and_the_others_are_still_read():
    rows = record().to_bytes()
    found = check_bytes([rows[0], b"{}", rows[2], rows[3][:-1]])
    assert [sentence[:33] for sentence in found] == [
        "Entry 2 of the ledger cannot be r",
        "Entry 4 of the ledger cannot be r",
    ]
    with pytest.raises(RefusedError, match="Entry 2 of the ledger"):
        Ledger.from_bytes([rows[0], b"{}"])


# What a chain cannot see, and a head can


def test_entries_cut_off_the_end_are_found_with_a_head_and_only_with_one():
    whole = record(5)
    short = Ledger(whole.entries[:3])
    assert short.check() == []
    assert short.check(head=whole.head()) == ["The ledger has 3 entries and had 5: the last 2 are gone."]


def test_a_ledger_written_anew_is_found_with_the_key_file_the_first_key_or_a_head():
    forger = Keyring.generate()
    forged = record(5, forger)
    assert forged.check() == []
    assert "which is not in the key file" in forged.check(keyring=RING)[0]
    assert "Entry 1 is signed with the key" in forged.check(first_public=RING.signer().public)[0]
    assert forged.check(head=record(3).head()) == [
        "The first 3 entries are not those of the head that was kept: the past was rewritten."
    ]


def test_a_ledger_written_anew_that_ends_by_naming_our_key_is_found_with_the_key_file():
    forged = record(3, forger := Keyring.generate()).append(act("rotate"), forger, next_public=RING.signer().public)
    assert forged.check() == []
    assert "which is not in the key file" in forged.check(keyring=RING)[0]
    assert "which is not in the key file" in check_bytes(forged.to_bytes(), keyring=RING)[0]


def test_the_key_file_fits_before_during_and_after_a_rotation():
    both = RING.with_new_signer()
    ledger = record(2).rotate(act("rotate"), both)
    assert record(2).check(keyring=RING) == record(2).check(keyring=both) == []
    assert ledger.check(keyring=both) == ledger.check(keyring=both.only(ledger.public)) == []
    assert len(ledger.check(keyring=RING)) == 1


def test_a_head_kept_at_any_time_holds_for_ever_after():
    whole = rotated()[0]
    heads = [Ledger(whole.entries[:n]).head() for n in range(len(whole) + 1)]
    assert [whole.check(head=head) for head in heads] == [[]] * len(heads)


def test_a_head_comes_back_from_its_text():
    head = record().head()
    assert Head.parse(f"{head}\n") == head
    for text in ("", "4", "x:" + head.root, f"4:{head.root.upper()}", f"-4:{head.root}", f"4:{head.root[1:]}"):
        with pytest.raises(UsageError, match="head of a ledger"):
            Head.parse(text)


def test_an_outsider_can_check_one_entry_against_a_head():
    ledger = record(7)
    head = ledger.head()
    for entry in ledger:
        place = {"index": entry.number - 1, "size": head.size, "root": bytes.fromhex(head.root)}
        leaf = merkle.leaf_hash(entry.to_bytes())
        assert merkle.verify_inclusion(leaf, ledger.inclusion(entry.number), **place)
        forged = merkle.leaf_hash(replace(entry, who="somebody").to_bytes())
        assert not merkle.verify_inclusion(forged, ledger.inclusion(entry.number), **place)


def test_an_outsider_can_check_that_the_ledger_only_grew():
    old, new = record(3).head(), record(7)
    sizes = {"old_size": old.size, "old_root": bytes.fromhex(old.root), "size": 7}
    assert merkle.verify_consistency(new.consistency(old), **sizes, root=bytes.fromhex(new.root()))
    other = Ledger().append(act("import", 5), RING)
    for _ in range(6):
        other = other.append(FORGET, RING)
    assert not merkle.verify_consistency(other.consistency(old), **sizes, root=bytes.fromhex(other.root()))


# Keys


def test_after_a_rotation_the_new_key_signs_and_the_old_one_is_refused():
    ledger, after = rotated()
    assert [entry.public for entry in ledger] == [RING.signer().public] * 3 + [after.signer().public] * 2
    assert ledger[3].next_public == after.signer().public
    assert ledger.public == after.signer().public
    with pytest.raises(RefusedError, match="must be signed with the key"):
        ledger.append(FORGET, RING)


def test_a_rotation_keeps_the_secret_of_the_commitments():
    assert rotated()[1].commit("shard", b"quote") == RING.commit("shard", b"quote")


def test_an_entry_signed_with_the_old_key_after_a_rotation_is_found():
    ledger, _ = rotated()
    stolen = replace(ledger[4], public=RING.signer().public).signed(RING.signer())
    found = Ledger((*ledger.entries[:3], stolen)).check()
    assert len(found) == 1
    assert found[0].startswith(f"Entry 4 is signed with the key {RING.signer().public[:16]}")


def test_a_key_that_nobody_handed_over_to_is_found():
    stranger = Keyring.generate().signer()
    entries = record().entries
    forged = replace(entries[3], public=stranger.public).signed(stranger)
    assert len(Ledger((*entries[:3], forged)).check()) == 1


def test_a_crash_between_the_steps_of_a_rotation_leaves_a_book_that_can_be_signed(tmp_path):
    path, ledger = tmp_path / "a.key", record(2)
    RING.create(path)
    RING.with_new_signer().replace_in(path)  # crash here: the old key is due, and is there
    both = Keyring.read(path)
    assert ledger.append(FORGET, both).check() == []
    ledger = ledger.rotate(act("rotate"), both)  # crash here: the new key is due, and is there
    assert ledger.append(FORGET, Keyring.read(path)).check() == []
    both.only(ledger.public).replace_in(path)
    assert ledger.append(FORGET, Keyring.read(path)).check() == []
    assert len(Keyring.read(path).signers) == 1


def test_a_rotation_without_a_new_key_is_refused():
    with pytest.raises(RefusedError, match="no new key"):
        record().rotate(act("rotate"), RING)


# What is refused


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"who": ""}, "`who` is empty"),
        ({"what": ""}, "`what` is empty"),
        ({"who": "a\nb"}, "one line"),
        ({"who": "a\u202eb"}, "one line"),
        ({"who": "\udcff"}, "one line"),
        ({"counts": {"forgotten": 1.5}}, "'forgotten' is 1.5"),
        ({"counts": {"forgotten": True}}, "is True"),
        ({"counts": {"forgotten": -1}}, "is -1"),
        ({"certificate": "abc"}, "'abc'"),
        ({"at": datetime(2024, 3, 1)}, "has no zone"),
    ],
)
def test_an_act_that_cannot_be_recorded_is_refused(change, why):
    with pytest.raises(UsageError, match=why):
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
    with pytest.raises(UsageError, match="'whim' is none of bad-feed, licence"):
        Reason("whim")
    with pytest.raises(UsageError, match="the text of a reason"):
        Reason("other", "two\nlines")


def test_a_reason_comes_back_from_its_table():
    reason = Reason("licence", "expired", "LEG-2")
    assert Reason.from_plain(reason.to_plain()) == reason
    with pytest.raises(UsageError, match="found code"):
        Reason.from_plain({"code": "licence"})


@pytest.mark.parametrize("number", [0, -1, 5])
def test_an_entry_that_is_not_there_is_refused_with_the_numbers(number):
    ledger = record(4)
    with pytest.raises(UsageError, match=f"entry {number} asked for; it has 4"):
        ledger[number]
    with pytest.raises(UsageError, match="it has 4"):
        ledger.inclusion(number)


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
        ("format", "strikeout ledger entry 2"),
        ("price", 103),
    ],
)
def test_bytes_that_are_no_entry_are_refused(name, value):
    content = {**json.loads(record().to_bytes()[1]), name: value}
    with pytest.raises(RefusedError, match=name):
        Entry.from_bytes(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
