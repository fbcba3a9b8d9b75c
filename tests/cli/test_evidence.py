"""``strikeout evidence``: one page on what was removed, who asked and who approved."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

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
