"""``strikeout evidence``: one page on what was removed, who asked and who approved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.quotes.selection import select

QUOTES = so.paper.quotes("small", seed=8)
WHY = ["--reason", "licence", "--note", "<b>ended</b>", "--ticket", "T-7"]


def run(*words):
    return CliRunner().invoke(strikeout, [str(word) for word in words])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A book of two persons from which one erased what the other approved."""
    folder = tmp_path_factory.mktemp("evidence")
    so.write_quotes(QUOTES, folder / "q.csv")
    book = folder / "a.book"
    for words in (
        ("init", book, "--approval", "two-person", "--who", "ann"),
        ("import", book, folder / "q.csv", "--who", "ann"),
        ("calibrate", book, "--panel", "none", "--who", "ann"),
        ("request", book, "erase", "--where", "strike = 90", "--who", "ann", *WHY),
    ):
        done = run(*words)
        assert done.exit_code == 0, done.output
    number = json.loads(run("requests", book, "--json").stdout)["requests"][0]["request"]
    assert run("approve", book, number, "--who", "bob").exit_code == 0
    done = run("erase", book, "--where", "strike = 90", "--yes", "--who", "ann", *WHY)
    assert done.exit_code == 0, done.output
    return book, number


def test_the_page_names_persons_reason_and_proof_and_no_quote(path, tmp_path):
    book, number = path
    out = tmp_path / "evidence.html"
    done = run("evidence", book, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    (removal,) = facts["removals"]
    assert (removal["what"], removal["who"], removal["approved_by"]) == ("erase", "ann", "bob")
    assert removal["request"]["request"] == number
    assert removal["search"]["traces"] == 0
    assert facts["verification"]["verdict"] == "verified"
    page = out.read_text()
    assert "&lt;b&gt;ended&lt;/b&gt;" in page
    assert "<b>ended</b>" not in page
    assert removal["hash"] in page
    assert not any(str(name) in page for name in QUOTES.ids)


def test_the_wording_of_a_request_is_not_on_the_page(tmp_path):
    with so.Book.create(tmp_path / "b.book", approval="two-person", who="ann") as book:
        book.import_quotes(QUOTES)
        book.calibrate(panel=None)
        book.request("forget", where=f"id = '{QUOTES.ids[3]}'", reason="error")
    done = run("evidence", tmp_path / "b.book", "--out", tmp_path / "e.html", "--json")
    assert str(QUOTES.ids[3]) not in (tmp_path / "e.html").read_text() + done.stdout
    assert len(json.loads(done.stdout)["open"]) == 1


def test_the_proof_of_inclusion_is_one(path):
    from strikeout.store.merkle import verify_inclusion

    book, _ = path
    facts = json.loads(run("evidence", book, "--out", book.parent / "e.html", "--json").stdout)
    size, root = facts["head"].split(":")
    removal = facts["removals"][0]
    leaf = bytes.fromhex(removal["hash"])
    proof = [bytes.fromhex(part) for part in removal["inclusion"]]
    place = removal["entry"] - 1
    assert verify_inclusion(leaf, proof, index=place, size=int(size), root=bytes.fromhex(root))
    assert not verify_inclusion(leaf, proof, index=place - 1, size=int(size), root=bytes.fromhex(root))


def test_one_request_is_chosen_by_its_number(path, tmp_path):
    book, number = path
    one = json.loads(run("evidence", book, "--request", number, "--out", tmp_path / "e.html", "--json").stdout)
    assert len(one["removals"]) == 1
    refused = run("evidence", book, "--request", 999, "--out", tmp_path / "e.html")
    assert refused.exit_code == 2
    assert run("evidence", book, "--out", tmp_path / "e.pdf").exit_code == 2


@pytest.fixture
def feeds(tmp_path, monkeypatch):
    """A book of two sources, of which one is erased."""
    monkeypatch.chdir(tmp_path)
    for words in (
        ("sample", "feeds.csv", "--kind", "feeds"),
        ("init", "b.book"),
        ("import", "b.book", "feeds.csv"),
        ("erase", "b.book", "--where", "source = 'south' and date > '2024-03-04'", "--yes", "--reason", "licence"),
    ):
        done = run(*words)
        assert done.exit_code == 0, done.output
    return "b.book"


def test_the_page_counts_what_was_erased_by_source_and_names_the_dates(feeds):
    quotes = so.inspect_quotes("feeds.csv").quotes
    gone = quotes.only(select(quotes, "source = 'south' and date > '2024-03-04'"))
    days = sorted(set(gone.labels["date"].tolist()))
    (removal,) = json.loads(run("evidence", feeds, "--json").stdout)["removals"]
    assert removal["counts"]["source: south"] == removal["counts"]["erased"] == len(gone)
    assert [removal["counts"][name] for name in ("first date", "last date")] == [
        int(day.replace("-", "")) for day in (days[0], days[-1])
    ]
    page = Path("b-evidence.html").read_text("utf-8")
    assert f"of source south {len(gone):,}" in page
    assert f"dates {days[0]} to {days[-1]}" in page
    assert f"dates {days[0]} to {days[-1]}" in run("log", feeds).stdout


def test_a_small_erasure_records_neither_source_nor_date(feeds):
    name = so.Book.open(feeds).quotes().ids[0]
    assert run("erase", feeds, "--ids", name, "--yes").exit_code == 0
    entries = json.loads(run("log", feeds, "--json").stdout)["entries"]
    counts = [one["counts"] for one in entries if one["what"] == "erase"][-1]
    assert counts["erased"] == 1
    assert not [count for count in counts if "date" in count or "source" in count]


def test_evidence_of_a_copy_needs_the_public_key_alone(feeds, tmp_path):
    key = json.loads(run("status", feeds, "--json").stdout)["key"]
    (tmp_path / "auditor").mkdir()
    copy = shutil.copy(feeds, tmp_path / "auditor" / "copy.book")
    assert run("evidence", copy).exit_code == 3
    assert run("evidence", copy, "--key", "0" * 64).exit_code == 3
    done = run("evidence", copy, "--key", key, "--out", "copy.html", "--json")
    assert done.exit_code == 0, done.output
    own, others = json.loads(run("evidence", feeds, "--json").stdout), json.loads(done.stdout)
    assert [one["hash"] for one in others["removals"]] == [one["hash"] for one in own["removals"]]
    assert not others["verification"]["has_key"]
    assert Path("copy.html").exists()
