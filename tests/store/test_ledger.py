"""The record holds as it was written, and any change to it is found."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from strikeout.errors import RefusedError, UsageError
from strikeout.store import merkle
from strikeout.store.entry import Entry
from strikeout.store.keyring import Keyring
from strikeout.store.ledger import Head, Ledger, LedgerReader, Reason, check_bytes
from tests.raising import raises
from tests.store.ledgers import FORGET, RING, act, flips, record, rotated


def test_a_ledger_as_it_was_written_holds():
    for ledger in (Ledger(), record(1), record(), rotated()[0]):
        assert ledger.check() == []
        assert check_bytes(ledger.to_bytes(), head=ledger.head()) == []


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
    assume(changed != row)
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
    assert {sentence[:7] for sentence in found} == {"Entry 2", "Entry 3"}


def test_an_entry_changed_and_signed_again_with_the_right_key_breaks_the_chain():
    entries = record().entries
    again = replace(entries[1], who="somebody").signed(RING.signer())
    (found,) = Ledger((entries[0], again, *entries[2:])).check()
    assert found.startswith("Entry 3 ")


def test_a_wrong_number_is_found_even_where_the_right_key_signed_it():
    entries = record().entries
    forged = replace(entries[3], number=7).signed(RING.signer())
    (found,) = Ledger((*entries[:3], forged)).check()
    assert re.findall(r"\d+", found) == ["4", "7"]


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
    with raises(RefusedError, number=2):
        Ledger.from_bytes([rows[0], b"{}"])


# What a chain cannot see, and a head can


def test_entries_cut_off_the_end_are_found_with_a_head_and_only_with_one():
    whole = record(5)
    short = Ledger(whole.entries[:3])
    assert short.check() == []
    (found,) = short.check(head=whole.head())
    assert re.findall(r"\d+", found) == ["3", "5", "2"]


def test_a_ledger_written_anew_is_found_with_the_key_file_the_first_key_or_a_head():
    forger = Keyring.generate()
    forged = record(5, forger)
    assert forged.check() == []
    assert "which is not in the key file" in forged.check(keyring=RING)[0]
    assert "Entry 1 is signed with the key" in forged.check(first_public=RING.signer().public)[0]
    (found,) = forged.check(head=record(3).head())
    assert re.findall(r"\d+", found) == ["3"]


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


@pytest.mark.parametrize("number", [0, -1, 5])
def test_an_entry_that_is_not_there_is_refused_with_the_numbers(number):
    ledger = record(4)
    with raises(UsageError, number=number):
        ledger[number]
    with raises(UsageError, number=number):
        ledger.inclusion(number)


def test_what_was_read_before_is_not_parsed_again(monkeypatch):
    rows, parsed = record(6).to_bytes(), []
    true = Entry.from_bytes
    monkeypatch.setattr(Entry, "from_bytes", staticmethod(lambda row: parsed.append(row) or true(row)))
    reader = LedgerReader()
    for length in (4, 4, 5, 6):
        assert reader.read(rows[:length]).to_bytes() == rows[:length]
    assert parsed == rows


@pytest.mark.parametrize("later", [record(3), record(4, Keyring.generate()), rotated()[0], Ledger()])
def test_a_reader_gives_the_ledger_that_is_there_not_the_one_that_was(later):
    reader = LedgerReader()
    reader.read(record(4).to_bytes())
    assert reader.read(later.to_bytes()) == later
    assert reader.read(record(4).to_bytes()) == record(4)


def test_an_entry_that_cannot_be_read_is_refused_every_time():
    reader, rows = LedgerReader(), record(3).to_bytes()
    reader.read(rows)
    for _ in range(2):
        with raises(RefusedError, number=4):
            reader.read([*rows, b"{}"])
