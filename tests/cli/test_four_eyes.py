"""``request``, ``approve``, ``reject``, ``requests``: two persons at the command line."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

EARLY = ["--where", "date < '2024-01-10'"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with so.Book.create("a.book", who="ann", approval="two-person") as book:
        book.import_quotes(so.paper.quotes("small"))
        book.calibrate()


def run(who, *words, code=0):
    done = CliRunner().invoke(strikeout, [*words, "--who", who, "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout if code == 0 else done.stderr)


@pytest.mark.parametrize("verb", ["forget", "erase"])
def test_it_takes_two_to_strike_out_and_to_erase(verb):
    refused = run("ann", verb, "a.book", *EARLY, "--yes", code=3)
    assert f"request BOOK {verb}" in refused["error"]["sentence"]
    asked = run("ann", "request", "a.book", verb, *EARLY, "--reason", "bad-feed", "--ticket", "T-1")
    assert (asked["state"], asked["where"], asked["why"]["ticket"]) == ("open", EARLY[1], "T-1")
    number = str(asked["request"])
    assert "takes another person" in run("ann", "approve", "a.book", number, code=3)["error"]["sentence"]
    assert run("bob", "approve", "a.book", number)["by"] == "bob"
    run("ann", verb, "a.book", *EARLY, "--yes")
    listed = CliRunner().invoke(strikeout, ["requests", "a.book", "--json"])
    assert [(one["state"], one["who"], one["by"]) for one in json.loads(listed.stdout)["requests"]] == [
        ("done", "ann", "bob")
    ]


def test_a_plan_is_applied_only_once_it_is_approved():
    asked = run("ann", "request", "a.book", "forget", *EARLY)
    run("ann", "forget", "a.book", *EARLY)
    assert "waits for another person" in run("ann", "apply", "a.book", code=3)["error"]["sentence"]
    run("bob", "approve", "a.book", str(asked["request"]))
    run("ann", "forget", "a.book", *EARLY)  # the approval moved the book: a plan is of the book as it is now
    assert run("ann", "apply", "a.book")["what"] == "forget"


def test_open_requests_can_be_listed_alone():
    first = run("ann", "request", "a.book", "forget", *EARLY)
    second = run("ann", "request", "a.book", "erase", *EARLY)
    run("bob", "reject", "a.book", str(first["request"]))
    shown = CliRunner().invoke(strikeout, ["requests", "a.book", "--open", "--json"])
    assert [one["request"] for one in json.loads(shown.stdout)["requests"]] == [second["request"]]
    table = CliRunner().invoke(strikeout, ["requests", "a.book"]).stdout
    assert "rejected" in table
    assert "bob" in table


def test_a_request_is_withdrawn_by_the_person_who_made_it():
    number = str(run("ann", "request", "a.book", "forget", *EARLY)["request"])
    assert run("bob", "withdraw", "a.book", number, code=3)["error"]["who"] == "ann"
    assert run("ann", "withdraw", "a.book", number, "--reason", "error")["state"] == "withdrawn"
