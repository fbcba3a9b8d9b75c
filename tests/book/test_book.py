"""A book in a file: made, opened, closed, and found out where something in it was changed."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace

import pytest

import strikeout as so
from strikeout.errors import NotABookError, RefusedError
from strikeout.store.keyring import Keyring
from strikeout.store.ledger import Head
from tests.raising import raises


@pytest.fixture(scope="module")
def quotes():
    return so.synthetic.random_quotes(90, maturities=6, seed=5)


@pytest.fixture
def path(tmp_path, quotes):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate()
        book.forget(ids=quotes.ids[:4], reason="error")
    return tmp_path / "a.book"


def test_a_book_that_is_opened_again_is_the_same_book(path, quotes):
    with so.Book.open(path) as book:
        assert book.quotes().ids.tolist() == quotes.ids[4:].tolist()
        assert dict(book.status().version.parameters) == so.calibrate(quotes[4:], so.Heston()).parameters
        assert [entry.what for entry in book.log()] == ["create", "import", "calibrate", "forget"]
        assert book.verify().holds, book.verify().summary()
        assert "86 quotes" in repr(book)
        book.restore()
        assert dict(book.status().version.parameters) == so.calibrate(quotes, so.Heston()).parameters


def test_a_file_that_is_there_is_never_made_anew(path):
    before = path.read_bytes()
    with pytest.raises(NotABookError) as refused:
        so.Book.create(path)
    assert refused.value.facts["path"] == str(path)
    assert path.read_bytes() == before


def test_the_secrets_are_beside_the_book_and_for_its_owner_only(path):
    key = path.with_name("a.book.key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.rename(path.with_name("elsewhere"))
    with raises(RefusedError, mentions={"public_key"}):
        so.Book.open(path)
    os.environ["STRIKEOUT_KEY_FILE"] = str(path.with_name("elsewhere"))
    try:
        with so.Book.open(path) as book:
            assert book.verify().holds
    finally:
        del os.environ["STRIKEOUT_KEY_FILE"]


def changed(path, kind, alter):
    """Changes the first page of a kind the way somebody with the right tools would: checksums and all."""
    with so.Book.open(path) as book, book.snapshot().session.store.writing() as store:
        name = store.now.pages(kind)[0 if kind != "calibration" else -1]
        store.put(kind, name, alter(store.now.page(kind, name)))


def parameters_altered(data):
    content = json.loads(data)
    content["parameters"][0][1] = (float.fromhex(content["parameters"][0][1]) * (1 + 2**-50)).hex()
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def state_altered(data):
    content = json.loads(data)
    content["state"] = "0" * 64
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("kind", "alter", "found"),
    [
        ("calibration", parameters_altered, {"CONTENTS", "VERSIONS", "PARAMETERS"}),
        ("calibration", state_altered, {"CONTENTS", "VERSIONS", "STATES", "PARAMETERS"}),
        ("certificate", lambda data: data.replace(b"recalibrate", b"recalibrata"), {"CONTENTS", "CERTIFICATES"}),
    ],
)
def test_what_was_changed_with_the_right_tools_is_found(path, kind, alter, found):
    changed(path, kind, alter)
    with so.Book.open(path) as book:
        audit = book.verify()
    assert {check.name for check in audit.checks if check.holds is False} == found


def test_a_quote_taken_out_or_put_aside_behind_the_ledgers_back_is_found(path, quotes):
    with so.Book.open(path) as book:
        with book.snapshot().session.store.writing() as store:
            store.strike(quotes.ids[10:11], entry=4)
        assert any(reason.startswith("COUNTS") for reason in book.verify().reasons)
        with book.snapshot().session.store.writing() as store:
            store.unstrike(quotes.ids[:1])
        reasons = book.verify().reasons
    found = [reason.partition(":")[0] for reason in reasons]
    assert found == ["CONTENTS", "STATES", "PARAMETERS", "CERTIFICATES"]


def failing(book):
    return {check.name for check in book.verify().checks if check.holds is False}


def test_what_is_taken_out_or_exchanged_behind_the_ledgers_back_is_found(path, quotes):
    """One thing at a time, each put back before the next."""
    with so.Book.open(path) as book:
        store = book.snapshot().session.store
        book.forget(ids=quotes.ids[4:8])
        book.erase(ids=quotes.ids[:1])
        assert failing(book) == set()
        with store.writing() as change:
            change.unstrike(quotes.ids[1:2])
            change.strike(quotes.ids[1:2], entry=2)
        assert failing(book) == {"CONTENTS", "COUNTS"}
        with store.writing() as change:
            change.unstrike(quotes.ids[1:2])
            change.strike(quotes.ids[1:2], entry=4)
        for kind, found in (("calibration", "VERSIONS"), ("erased", "COUNTS")):
            name = store.now.pages(kind)[0]
            data = store.now.page(kind, name)
            with store.writing() as change:
                change.remove(kind, name)
            assert failing(book) == {"CONTENTS", found}
            with store.writing() as change:
                change.put(kind, name, data)
        first, other = store.now.pages("certificate")[0], book.plan_forget(ids=quotes.ids[20:25]).certificate
        with store.writing() as change:
            change.put("certificate", first, other.to_bytes())
        assert failing(book) == {"CONTENTS", "CERTIFICATES"}


def test_a_ledger_shorter_than_the_head_that_was_kept_is_found(path):
    with so.Book.open(path) as book:
        status = book.status()
        head = Head(status.entries, status.root)
        assert book.verify(head=head).holds
        longer = book.verify(head=Head(status.entries + 1, status.root))
        assert any(f"{head.size:,} entries" in r and f"{head.size + 1:,}" in r for r in longer.reasons), longer.reasons
        other = book.verify(head=Head(status.entries, "0" * 64))
        assert any("rewritten" in reason for reason in other.reasons)


def test_a_ledger_signed_with_somebody_elses_key_is_found(path):
    with so.Book.open(path) as book:
        stranger = so.Book(replace(book.snapshot().session, keyring=Keyring.generate(), reread=None))
        assert any(reason.startswith("LEDGER") for reason in stranger.verify().reasons)


def test_results_are_exported_for_people_and_for_quantlib(path, tmp_path):
    with so.Book.open(path) as book:
        parameters = dict(book.status().version.parameters)
        book.export(tmp_path / "fit.json")
        book.export(tmp_path / "fit.py")
        entries = book.status().entries
        book.export(tmp_path / "held.parquet")
        assert book.status().entries == entries + 1
        assert so.read_quotes(tmp_path / "held.parquet").ids.tolist() == book.quotes().ids.tolist()
        with pytest.raises(so.errors.StrikeoutError, match=r"\.csv, \.parquet, \.json or \.py"):
            book.export(tmp_path / "fit.xlsx")
    assert json.loads((tmp_path / "fit.json").read_text())["parameters"] == parameters
    pytest.importorskip("QuantLib")
    made = {}
    exec((tmp_path / "fit.py").read_text(), made)
    model = made["model"]
    order = ("v0", "kappa", "theta", "sigma", "rho")
    names = ("initial_variance", "mean_reversion", "long_variance", "vol_of_vol", "correlation")
    assert [getattr(model, name)() for name in order] == [parameters[name] for name in names]
