"""Books at the command line: every verb, what it prints, what it refuses and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

import strikeout as so
from strikeout.book.records import SMALLEST
from strikeout.cli import options, strikeout
from strikeout.cli.group import COMMANDS
from strikeout.store.entry import ReasonCode
from tests.cli.typed import done, run, told

EARLY = "date < '2024-01-10'"
LATE = "date > '2024-05-01'"


def never(quotes, where):
    gone = so.forget(so.calibrate(quotes, so.Heston()), where=where).ids
    return so.calibrate(quotes.without(gone), so.Heston(), panel="date")


@pytest.mark.usefixtures("folder")
def test_a_book_is_calibrated_with_the_model_that_was_asked_for_and_keeps_to_it(quotes):
    done("init", "spx.book")
    done("import", "spx.book", "quotes.csv")
    black = so.BlackScholes()
    first = told("calibrate", "spx.book", "--model", "black-scholes")
    assert first["parameters"] == so.calibrate(quotes, black).parameters
    assert told("calibrate", "spx.book")["parameters"] == first["parameters"]  # as it was the last time
    gone = told("forget", "spx.book", "--where", EARLY, "--yes")
    retained = quotes.without(so.forget(so.calibrate(quotes, black), where=EARLY).ids)
    assert gone["parameters"] == so.calibrate(retained, black).parameters
    assert told("verify", "spx.book")["holds"]
    assert "in price, heston" in done("calibrate", "spx.book", "--model", "heston").stdout


def test_the_contract_from_init_to_verify(folder, quotes):
    assert told("init", "spx.book")["key_file"] == "spx.book.key"
    assert told("import", "spx.book", "quotes.csv")["imported"] == 540
    first, panel = told("calibrate", "spx.book"), so.calibrate(quotes, so.Heston(), panel="date")
    assert (first["parameters"], first["latent"]) == (panel.parameters, panel.latent)
    gone = told("forget", "spx.book", "--where", EARLY, "--reason", "bad-feed", "--yes")
    fresh = never(quotes, EARLY)
    assert (gone["parameters"], gone["state"]) == (fresh.parameters, fresh.state.digest())
    assert (gone["entry"], gone["touched"], gone["claims"]["NEVER_SEEN"]) == (4, 36, True)
    back = told("restore", "spx.book", 4)
    assert (back["parameters"], back["state"]) == (first["parameters"], first["state"])
    erased = told("erase", "spx.book", "--where", EARLY, "--reason", "licence", "--yes")
    assert (erased["count"], erased["residue"]) == (36, 0)
    log = told("log", "spx.book")["entries"]
    assert [entry["what"] for entry in log] == [
        "create", "import", "calibrate", "forget", "restore", "erase", "residue",
    ]  # fmt: skip
    assert [entry["why"] and entry["why"]["code"] for entry in log][3::2] == ["bad-feed", "licence"]
    assert told("verify", "spx.book")["holds"]
    assert sorted(path.name for path in folder.iterdir()) == ["quotes.csv", "spx.book", "spx.book.key"]


def test_a_plan_is_made_shown_applied_and_gone(book, quotes):
    before = told("status", book)
    planned = told("forget", book, "--where", EARLY, "--reason", "error", "--note", "a typo", "--ticket", "OPS-1")
    assert told("status", book) == before
    assert Path(planned["plan"]).name == "a.book.plan.json"
    assert planned["parameters"] == never(quotes, EARLY).parameters
    applied = told("apply", book, "--who", "ben")
    assert applied["parameters"] == planned["parameters"]
    assert applied["certificate"] == planned["certificate"]
    assert not Path(planned["plan"]).exists()
    last = told("log", book)["entries"][-1]
    assert (last["who"], last["why"]) == ("ben", {"code": "error", "text": "a typo", "ticket": "OPS-1"})


def test_a_plan_the_book_has_moved_away_from_is_refused_and_kept(book):
    done("forget", book, "--where", EARLY)
    done("forget", book, "--where", LATE, "--yes")
    ended = run("apply", book)
    assert ended.exit_code == 3
    assert "had 3 entries; it has 4 now" in ended.stderr
    assert Path("a.book.plan.json").exists()


def test_what_people_see_names_the_parameters_and_the_next_step(book):
    assert "The calibration is current." in done("status", book).stdout
    planned = done("forget", book, "--where", EARLY)
    assert "strike   36 of 540 quotes" in planned.stdout
    assert "strikeout apply a.book" in planned.stderr
    assert "4: forget, 36 quotes" in done("apply", book).stdout
    assert "36" in done("log", book).stdout
    assert "restore, 36 quotes" in done("restore", book, "--last").stdout
    assert "of entry 4, restored 36" in done("log", book).stdout
    assert "The book holds." in done("verify", book).stdout


def test_a_certificate_of_the_book_is_checked_by_whoever_holds_the_rest(book):
    done("forget", book, "--where", EARLY, "--yes")
    assert told("certificate", book, 4, "--out", "c.json")["counts"]["forgotten"] == 36
    done("export", book, "retained.csv")
    assert told("verify", "c.json", "retained.csv")["holds"]
    assert run("verify", "c.json", "quotes.csv").exit_code == 1
    assert run("certificate", book, 3).exit_code == 3
    assert run("certificate", book, 9).exit_code == 2


def test_an_erasure_rehearses_first(book):
    before = told("log", book)
    rehearsal = done("erase", book, "--where", EARLY)
    assert "36 quotes would be erased" in rehearsal.stdout
    assert "nothing was changed" in rehearsal.stderr
    assert told("log", book) == before


def test_two_books_are_compared(book):
    done("forget", book, "--where", EARLY, "--yes")
    done("export", book, "retained.csv")
    for words in (["init", "b.book"], ["import", "b.book", "retained.csv"], ["calibrate", "b.book"]):
        done(*words)
    assert told("compare", book, "b.book")["same_state"]
    done("restore", book, "--last")
    ended = run("compare", book, "b.book")
    assert ended.exit_code == 1
    assert "not the same" in ended.stdout


def test_compare_says_which_book_is_not_calibrated_or_not_current(book):
    done("init", "b.book")
    for words, said in (
        (["a.book", "b.book"], "b.book is not calibrated yet."),
        (["b.book", "a.book"], "b.book is not calibrated yet."),
        (["b.book", "b.book"], "Neither book is calibrated yet."),
    ):
        ended = run("compare", *words)
        assert (ended.exit_code, ended.stdout) == (3, "")
        assert said in ended.stderr
    done("import", "b.book", "quotes.csv")
    done("calibrate", "b.book")
    assert "stale" not in done("compare", book, "b.book").stdout
    done("forget", "b.book", "--where", EARLY, "--yes")
    done("export", "b.book", "retained.csv")
    done("init", "c.book")
    done("import", "c.book", "retained.csv")
    done("calibrate", "c.book")
    done("import", "c.book", "quotes.csv")
    ended = run("compare", "b.book", "c.book")
    assert (ended.exit_code, ended.stdout.count("stale")) == (1, 1)
    assert "stale" in ended.stdout
    assert "c.book: " in ended.stdout
    assert json.loads(run("compare", "b.book", "c.book", "--json").stdout)["current"] == [True, False]


def test_influence_looks_at_the_book_as_it_is_calibrated(book):
    of_book = told("influence", book, "--by", "date")
    assert of_book["columns"] == told("influence", "quotes.csv", "--by", "date", "--panel", "date")["columns"]
    done("calibrate", book, "--panel", "none")
    assert (
        told("influence", book, "--by", "date")["columns"] == told("influence", "quotes.csv", "--by", "date")["columns"]
    )


def test_a_tolerance_lets_a_book_forget_by_one_step_and_the_page_says_so(book, quotes):
    told("calibrate", book)
    panel = told("forget", book, "--ids", quotes.ids[0], "--tolerance", "0.5")
    assert panel["path"][0].startswith("downdate: one step misses the optimum by at most")
    told("calibrate", book, "--panel", "none")
    ids = ",".join(quotes.ids[:3].tolist())
    planned = told("forget", book, "--ids", ids, "--tolerance", "0.5")
    assert planned["path"][0].startswith("downdate: one step misses the optimum by at most")
    done = told("apply", book)
    assert (done["tolerance"], done["parameters"]) == (0.5, planned["parameters"])
    shown = run("forget", book, "--ids", quotes.ids[3], "--tolerance", "1e-12", "--yes")
    assert "downdate passed over" in " ".join(shown.output.split())
    assert run("forget", book, "--ids", quotes.ids[4], "--tolerance", "0.5", "--preview").exit_code == 2
    assert run("verify", book).exit_code == 0


def test_status_and_doctor_tell_of_shards_footprints_and_the_road(book, quotes):
    assert "--panel none" in run("calibrate", book, "--perturb", "1e-3").output
    told("calibrate", book, "--perturb", "1e-3", "--panel", "none")
    status = told("status", book)
    assert sum(status["shards"].values()) == len(quotes)
    assert (status["footprints"], status["perturbed"]) == (len(status["shards"]), 1e-3)
    source = status["calibration"]["fitted_from"]
    assert (source["through"], source["asked"], source["error"], source["measured"]) == ("quotes", "auto", None, None)
    assert "shards" in {finding["name"] for finding in told("doctor", book)["findings"]}
    assert "perturbed by 0.001" in " ".join(run("status", book).output.split())
    assert run("calibrate", book, "--through", "moments", "--perturb", "1e-3").exit_code == 2
    assert run("calibrate", "quotes.csv", "--perturb", "1e-3").exit_code == 2


def test_a_book_is_calibrated_through_moments_and_forgets_through_them(book, quotes):
    through = told("calibrate", book, "--through", "moments", "--plot", "smiles.png")
    assert through["parameters"] == so.calibrate(so.states.moments_of(quotes), so.Heston()).parameters
    gone = told("forget", book, "--where", EARLY, "--yes")
    assert gone["parameters"] == so.calibrate(so.states.moments_of(quotes[36:]), so.Heston()).parameters
    assert told("verify", book)["holds"]
    assert run("calibrate", "quotes.csv", "--through", "moments").exit_code == 2


def test_a_look_at_a_book_writes_nothing(book, folder):
    before = sorted(path.name for path in folder.iterdir())
    assert "Striking out 36 quotes leaves 504" in done("forget", book, "--where", EARLY, "--preview").stdout
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_head_kept_elsewhere_finds_a_ledger_cut_short(book):
    head = told("status", book)["head"]
    assert told("verify", book, "--head", head)["holds"]
    number, _, root = head.partition(":")
    assert run("verify", book, "--head", f"{int(number) + 1}:{root}").exit_code == 1
    assert run("verify", book, "--head", "nonsense").exit_code == 2


def test_a_damaged_book_ends_with_one_or_two_and_is_left_alone(book):
    data = bytearray(Path(book).read_bytes())
    place = data.index(b"strikeout ledger entry 1")
    data[place + 3] ^= 1
    Path(book).write_bytes(data)
    assert run("verify", book).exit_code in (1, 2)
    assert Path(book).read_bytes() == bytes(data)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["init", "a.book"], 2, "a.book"),
        (["init", "a.db"], 2, "ends in .book"),
        (["status", "none.book"], 2, "strikeout init none.book"),
        (
            ["status", "quotes.csv"],
            2,
            "strikeout init quotes.book",
        ),
        (["stauts", "a.book"], 2, "No such command 'stauts'. Did you mean 'status'?"),
        (["certificate", "a.book", "3"], 3, "it issued none."),
        (["calibrate", "a.book", "--panel", "feed"], 2, "or give the file a column of that name."),
        (["forget", "a.book", "--ids", "nobody"], 3, "The id given is not in this book: 'nobody'. Take"),
        (["import", "a.book", "none.csv"], 2, "none.csv"),
        (["restore", "a.book"], 2, "in one way"),
        (["restore", "a.book", "3", "--last"], 2, "in one way"),
        (["restore", "a.book", "3"], 3, "Entry 3 holds no quotes"),
        (["restore", "a.book", "--last"], 3, "no forget to undo"),
        (["apply", "a.book"], 2, "strikeout forget a.book"),
        (["apply", "a.book", "quotes.csv"], 2, "not a plan"),
        (["request", "a.book", "forget", "--where", "strike < 0"], 3, "no quotes match"),
        (["forget", "a.book", "--where", EARLY, "--loss", "huber"], 2, "--loss"),
        (["forget", "a.book", "--where", EARLY, "--out", "x.csv"], 2, "--out"),
        (["forget", "a.book", "--where", EARLY, "--note", "x"], 2, "--reason"),
        (["forget", "a.book", "--where", EARLY, "--reason", "boredom"], 2, "boredom"),
        (["forget", "quotes.csv", "--where", EARLY, "--yes"], 2, "--yes"),
        (["calibrate", "quotes.csv", "--reason", "test"], 2, "--reason"),
        (["calibrate", "a.book", "--constant", "rate=0"], 2, "--constant"),
        (["erase", "a.book"], 2, "in one way"),
        (["erase", "a.book", "--ids", "nobody", "--yes"], 3, "nobody"),
        (["verify", "quotes.csv"], 2, "a book (NAME.book) alone"),
        (["export", "a.book", "a.xlsx"], 2, ".parquet"),
        (["roll", "a.book", "--window", "400"], 3, "nothing is new"),
    ],
)
def test_what_cannot_be_is_answered_in_a_sentence_and_changes_nothing(book, folder, words, code, said):
    entries, files = told("log", book), sorted(path.name for path in folder.iterdir())
    ended = run(*words)
    assert (ended.exit_code, ended.stdout) == (code, ""), ended.output
    assert said in ended.stderr
    assert told("log", book) == entries
    assert sorted(path.name for path in folder.iterdir()) == files


@pytest.mark.parametrize("words", [["forget"], ["forget", "--yes"], ["erase"], ["erase", "--yes"]])
def test_a_condition_that_no_quote_matches_changes_nothing_names_the_nearest_value_and_ends_with_3(book, folder, words):
    entries, files = told("log", book), sorted(path.name for path in folder.iterdir())
    verb, *more = words
    for file in (book, "quotes.csv") if words == ["forget"] else (book,):
        ended = run(verb, file, "--where", "date = '2024-1-2' and right = 'c'", *more)
        assert (ended.exit_code, ended.stdout) == (3, "")
        assert "right 'c'; the values are C" in ended.stderr
    assert told("log", book) == entries
    assert sorted(path.name for path in folder.iterdir()) == files


@pytest.mark.parametrize(
    "words", [["forget"], ["erase"], ["erase", "--yes"], ["request", "erase"], ["request", "forget"]]
)
def test_a_condition_that_every_quote_matches_needs_a_confirmation(book, words):
    entries = told("log", book)
    verb, *more = words
    ended = run(verb, book, *more, "--where", "date > 2020-01-01")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "ALL" in ended.stderr
    assert "--all" in ended.stderr
    assert told("log", book) == entries
    confirmed = run(verb, book, *more, "--where", "date > 2020-01-01", "--all")
    assert confirmed.exit_code == (3 if verb == "forget" else 0), confirmed.output  # nothing would be left to fit


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (["--panel", "date"], "Give --panel none for one value, or --through quotes for the panel."),
        (["--panel", "none", "--loss", "huber"], "--loss huber"),
        (["--panel", "none", "--select", "otm"], "--select otm"),
    ],
)
def test_what_is_taken_over_and_cannot_be_is_named_with_its_remedy_and_where_it_comes_from(book, last, said):
    done("calibrate", book, *last)
    ended = run("calibrate", book, "--through", "moments")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert f"As the last time: {last[-2][2:]} {last[-1]}" in ended.stderr.replace("panel none, ", "").replace(
        ", panel none", ""
    )
    assert "--fresh" in ended.stderr
    done("calibrate", book, "--through", "moments", "--fresh")


def test_the_reasons_offered_are_those_the_ledger_knows():
    assert set(ReasonCode) == set(options.REASONS)


def asking_of(name):
    with so.Book.open(name) as held:
        return held.status().version.options


def test_an_option_that_is_not_given_is_as_the_last_time_and_said(book):
    done("calibrate", book, "--weights", "vega", "--select", "otm", "--panel", "date", "--fix", "correlation=-0.6")
    said = done("calibrate", book, "--weights", "none").stderr
    assert "as the last time: fixed correlation, panel date, select otm. With --fresh" in said
    assert [asking_of(book)[name] for name in ("weights", "select", "panel")] == ["none", "otm", "date"]
    assert (
        "as the last time: fixed correlation, panel date, select otm, weights none." in done("calibrate", book).stderr
    )
    # What names parameters of another model is not kept; where no model is given, the model is.
    other = done("calibrate", book, "--model", "black-scholes", "--panel", "auto").stderr
    assert "as the last time: select otm, weights none." in other
    assert "as the last time: model black-scholes, select otm." in done("calibrate", book, "--weights", "given").stderr
    assert told("calibrate", book, "--weights", "given")["as_last_time"] == {"model": "black-scholes", "select": "otm"}
    assert "as the last time" not in done("calibrate", book, "--fresh").stderr
    assert asking_of(book) == {**asking_of(book), "weights": "given", "select": "all", "fixed": None, "panel": "auto"}


def test_a_certificate_that_is_not_there_is_answered_with_those_that_are(book):
    done("forget", book, "--where", EARLY, "--yes")
    assert "Entries that have one: 4." in run("certificate", book, 3).stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_60_columns(name):
    command = strikeout.get_command(click.Context(strikeout), name)
    said = command.get_help(click.Context(command, info_name=name, terminal_width=60))
    wide = [line for line in said.splitlines() if len(line) > 60]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_cuts_no_sentence_and_has_no_marks_of_docstrings(name):
    command = strikeout.get_command(click.Context(strikeout), name)
    said = command.get_help(click.Context(command, info_name=name, terminal_width=80))
    assert "``" not in said
    assert not [line for line in said.partition("\nCommands:")[2].splitlines() if line.endswith("...")]


@pytest.mark.parametrize("words", [["forget"], ["erase", "--yes"], ["request", "forget"]])
@pytest.mark.parametrize("given", [["--ids", ""], ["--ids", " , "], ["--ids-from", ""]])
def test_ids_of_an_unset_variable_are_no_ids_and_a_mistake(book, words, given):
    verb, *more = words
    ended = run(verb, book, *more, *given)
    assert ended.exit_code == 2, ended.output


@pytest.mark.usefixtures("folder")
def test_erase_says_what_the_reason_keeps_what_is_beyond_reach_and_when_too_few_go():
    done("init", "spx.book")
    done("import", "spx.book", "quotes.csv")
    done("calibrate", "spx.book", "--panel", "none")
    names = ",".join(so.read_quotes("quotes.csv").ids[:12])
    keeps = told("erase", "spx.book", "--ids", names)
    removes = told("erase", "spx.book", "--ids", names, "--reason", "subject-request")
    assert (keeps["results_kept"], removes["results_kept"]) == (1, 0)
    assert keeps["warnings"] == removes["warnings"] == []
    assert keeps["beyond"] == removes["beyond"] != []
    few = done("erase", "spx.book", "--ids", names.split(",")[0]).stdout
    assert "can be computed back" in few
    assert "fewer than the smallest erasure of this book, 12" in few
    gone = told("erase", "spx.book", "--ids", names, "--reason", "subject-request", "--yes")
    assert (gone["residue"], gone["change"]["before"]) == (0, None)


@pytest.mark.usefixtures("folder")
def test_the_smallest_erasure_is_a_policy_of_the_book_in_its_first_entry():
    options = strikeout.get_command(click.Context(strikeout), "init").params
    option = next(one for one in options if one.name == "smallest_erasure")
    assert option.default == SMALLEST
    done("init", "usual.book")
    done("init", "spx.book", "--smallest-erasure", "2")
    policies = [told("log", name)["entries"][0]["counts"] for name in ("usual.book", "spx.book")]
    assert [counts["smallest erasure"] for counts in policies] == [SMALLEST, 2]
    done("import", "spx.book", "quotes.csv")
    done("calibrate", "spx.book", "--panel", "none")
    names = so.read_quotes("quotes.csv").ids[:2]
    assert told("erase", "spx.book", "--ids", names[0])["warnings"]
    assert not told("erase", "spx.book", "--ids", ",".join(names))["warnings"]
    assert run("init", "none.book", "--smallest-erasure", "0").exit_code == 2
    assert not Path("none.book").exists()
