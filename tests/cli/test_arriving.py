"""Quotes that come to a book at the command line: imported, learnt, rolled, refused."""

from __future__ import annotations

import json

import pytest

import strikeout as so
from strikeout.cli import terminal
from tests.cli.typed import done, run, told
from tests.quotes.chains import chain

EARLY = "date < '2024-01-10'"


def test_an_erased_quote_that_returns_ends_with_one(book):
    done("erase", book, "--where", EARLY, "--yes")
    ended = run("import", book, "quotes.csv", "--json")
    assert ended.exit_code == 1
    assert len(json.loads(ended.stdout)["erased"]) == 36
    again = run("import", book, "quotes.csv")
    assert "36 refused, for they were erased" in again.stdout
    assert " and 31 more." in again.stderr


def test_the_same_file_again_changes_nothing(book):
    again = told("import", book, "quotes.csv")
    assert (again["entry"], again["imported"], again["repeated"]) == (None, 0, 540)


def test_quotes_are_learnt_and_a_window_is_rolled(folder, quotes):
    dates = quotes.labels["date"]
    so.write_quotes(quotes[dates < "2024-03-01"], "one.csv")
    so.write_quotes(quotes[(dates >= "2024-03-01") & (dates < "2024-04-01")], "two.csv")
    so.write_quotes(quotes[dates >= "2024-04-01"], "three.csv")
    assert folder
    done("init", "b.book")
    done("import", "b.book", "one.csv")
    done("calibrate", "b.book", "--loss", "huber")
    learnt = told("learn", "b.book", "two.csv")
    assert learnt["parameters"] == so.calibrate(quotes[dates < "2024-04-01"], so.Heston(), loss="huber").parameters
    rolled = told("roll", "b.book", "three.csv", "--window", 90)
    assert rolled["parameters"] == so.calibrate(quotes, so.Heston(), loss="huber").parameters
    assert run("learn", "b.book", "two.csv").exit_code == 3


def test_a_roll_says_which_rows_of_its_file_were_left_out(folder, quotes):
    dates = quotes.labels["date"]
    so.write_quotes(quotes[dates < "2024-04-01"], "one.csv")
    so.write_quotes(quotes[dates >= "2024-04-01"], "two.csv")
    lines = (folder / "two.csv").read_text().splitlines()
    (folder / "bad.csv").write_text("\n".join([*lines, lines[-1].replace(lines[-1].split(",")[0], "", 1)]) + "\n")
    for words in (["init", "b.book"], ["import", "b.book", "one.csv"], ["calibrate", "b.book"]):
        done(*words)
    rolled = told("roll", "b.book", "bad.csv", "--window", 60)
    assert (rolled["rows"], rolled["rejected"]) == (len(lines), 1)
    done("init", "c.book")
    done("import", "c.book", "one.csv")
    done("calibrate", "c.book")
    assert "1 of" in done("roll", "c.book", "bad.csv", "--window", 60).stderr


@pytest.mark.parametrize("verb", [["learn"], ["roll", "--window", 90]])
def test_bad_rows_of_what_is_learnt_go_to_quarantine_and_the_book_knows_the_file(folder, quotes, verb):
    dates = quotes.labels["date"]
    so.write_quotes(quotes[dates < "2024-04-01"], "one.csv")
    so.write_quotes(quotes[dates >= "2024-04-01"], "two.csv")
    lines = (folder / "two.csv").read_text().splitlines()
    (folder / "two.csv").write_text("\n".join([*lines, lines[-1].replace(lines[-1].split(",")[0], "", 1)]) + "\n")
    for words in (["init", "b.book"], ["import", "b.book", "one.csv"], ["calibrate", "b.book"]):
        done(*words)
    result = told(verb[0], "b.book", "two.csv", *verb[1:], "--quarantine", "bad.csv")
    assert (result["rejected"], result["quarantine"]) == (1, "bad.csv")
    assert (folder / "bad.csv").read_text().count("\n") == 2
    done("erase", "b.book", "--where", EARLY, "--yes")
    assert not (folder / "bad.csv").exists()


@pytest.mark.parametrize("verb", [["import"], ["learn"], ["roll", "--window", 90]])
def test_a_verb_that_is_refused_leaves_no_quarantine_file_behind(book, folder, verb):
    head, first, *_ = (folder / "quotes.csv").read_text().splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=True))
    rows = [{**cells, "price": "77.5"}, {**cells, "id": "bad", "strike": "-1"}]
    (folder / "clash.csv").write_text("\n".join([head, *(",".join(row.values()) for row in rows)]) + "\n")
    ended = run(verb[0], book, "clash.csv", *verb[1:], "--max-reject", 0.9, "--quarantine", "bad.csv")
    assert ended.exit_code == 3, ended.output
    assert "other values" in ended.output
    assert not (folder / "bad.csv").exists()


def test_learning_what_leaves_the_parameters_undetermined_ends_as_calibrating_does(folder, quotes):
    first, second, *_ = sorted(set(quotes.contracts.expiry.tolist()))
    so.write_quotes(quotes[quotes.contracts.expiry == first][:200], "one.csv")
    so.write_quotes(quotes[quotes.contracts.expiry == first][200:], "more.csv")
    assert folder
    assert second > first
    done("init", "b.book")
    done("import", "b.book", "one.csv")
    assert run("calibrate", "b.book", "--panel", "none").exit_code == 3
    learnt = run("learn", "b.book", "more.csv")
    assert "not identified" in learnt.output
    assert learnt.exit_code == 3


def test_an_import_says_how_far_it_is_on_a_terminal(folder, monkeypatch):
    assert folder
    said = []
    line = terminal.ReadingLine.step
    monkeypatch.setattr(
        terminal.ReadingLine, "step", lambda self, what, share: (said.append(what), line(self, what, share))
    )
    done("init", "b.book")
    done("import", "b.book", "quotes.csv")
    assert list(dict.fromkeys(said)) == ["reading", "checking", "writing"]


def test_a_single_row_is_learnt_beside_the_slice_its_forward_rests_on(folder):
    chain(expiries=("2024-04-05", "2024-06-07", "2024-12-06", "2025-12-05")).write_csv("chain.csv")
    lines = (folder / "chain.csv").read_text().splitlines()
    (folder / "row.csv").write_text("\n".join([lines[0], lines[20]]) + "\n")
    (folder / "rest.csv").write_text("\n".join([*lines[:20], *lines[21:]]) + "\n")
    for words in (["init", "b.book"], ["import", "b.book", "rest.csv"], ["calibrate", "b.book"]):
        done(*words)
    learnt = told("learn", "b.book", "row.csv")
    assert learnt["rejected"] == 0
    assert learnt["parameters"] == told("calibrate", "chain.csv")["parameters"]


def test_a_source_is_given_with_the_import_where_the_file_has_none(folder, quotes):
    assert folder
    plain = so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed)
    so.write_quotes(plain, "plain.csv")
    done("init", "b.book")
    done("import", "b.book", "plain.csv", "--source", "vendor-a")
    with so.Book.open("b.book") as book:
        assert set(book.quotes().labels["source"].tolist()) == {"vendor-a"}
    assert run("import", "b.book", "quotes.csv", "--source", "vendor-a").exit_code == 2
