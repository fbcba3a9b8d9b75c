"""strikeout residue: the search of a book, repeated at any time, with a copy of the erased quotes or without."""

from __future__ import annotations

import json

import pytest

from tests.cli.typed import done, run, told

EARLY = "date < '2024-01-10'"


@pytest.mark.usefixtures("folder")
def test_the_search_is_repeated_and_recorded():
    done("init", "spx.book")
    done("import", "spx.book", "quotes.csv")
    erased = told("erase", "spx.book", "--where", EARLY, "--yes")
    assert (erased["search"]["entry"], erased["search"]["is_clean"]) == (4, True)
    again = told("residue", "spx.book")
    assert (again["entry"], again["traces"], again["unaccounted"], again["needles"]) == (5, [], 0, 0)
    thorough = told("residue", "spx.book", "--quotes", "quotes.csv", "--who", "ann")
    assert (thorough["is_clean"], thorough["needles"] > 30) == (True, True)
    last = told("log", "spx.book")["entries"][-1]
    assert (last["who"], last["what"], last["counts"]["traces"]) == ("ann", "residue", 0)
    assert run("residue", "spx.book").exit_code == 0
    assert told("verify", "spx.book")["holds"]


def test_a_trace_that_was_planted_ends_with_one_and_is_described(folder, quotes):
    done("init", "spx.book")
    done("import", "spx.book", "quotes.csv")
    done("erase", "spx.book", "--where", EARLY, "--yes")
    with (folder / "spx.book").open("rb+") as file:
        size = file.seek(0, 2)
        file.truncate(size + 4096)  # a page that no table uses
        file.seek(size + 1000)
        file.write(quotes.observed[:1].tobytes())
        file.seek(28)
        file.write((size // 4096 + 1).to_bytes(4, "big"))
    found = run("residue", "spx.book", "--quotes", "quotes.csv", "--json")
    assert found.exit_code == 1
    told_of = json.loads(found.stdout)
    assert told_of["unaccounted"] == 8
    assert [(trace["what"], trace["value"]) for trace in told_of["traces"]] == [
        ("observed", repr(float(quotes.observed[0])))
    ]
