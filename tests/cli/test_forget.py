"""``strikeout forget`` and ``strikeout verify``: struck out as if never seen, checked by whoever holds the rest."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import forget as forget_command
from strikeout.cli import strikeout
from strikeout.forgetting import forget as door

EARLY = "date < '2024-01-10'"


@pytest.fixture(scope="module")
def quotes():
    return so.paper.quotes("small")


@pytest.fixture(scope="module")
def book(quotes, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "small.csv"
    so.write_quotes(quotes, path)
    return path


def run(command, *words):
    done = CliRunner().invoke(strikeout, [command, *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done


def forgotten(book, *words):
    done = run("forget", book, *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def early(quotes):
    return quotes.ids[quotes.labels["date"] < "2024-01-10"].tolist()


def test_the_parameters_are_those_of_a_calibration_that_never_saw_the_quotes(book, quotes):
    result = forgotten(book, "--where", EARLY)
    never = so.calibrate(quotes.without(early(quotes)), so.Heston())
    assert result["parameters"] == never.parameters
    assert result["standard_errors"] == never.standard_errors
    assert result["state"]["digest"] == never.state.digest()
    assert result["forgotten"] == early(quotes)
    assert (result["retained"], result["operator"]) == (len(never.quotes), "recalibrate")
    assert result["before"]["parameters"] == so.calibrate(quotes, so.Heston()).parameters


def test_ids_a_file_of_ids_and_a_condition_mean_the_same(book, quotes, tmp_path):
    names = early(quotes)
    (tmp_path / "ids.txt").write_text("\n".join(names) + "\n\n", encoding="utf-8-sig")  # as Windows writes text
    results = [
        forgotten(book, "--where", EARLY),
        forgotten(book, "--ids", ", ".join(names)),
        forgotten(book, "--ids-from", tmp_path / "ids.txt"),
    ]
    assert results[0] == results[1] == results[2]


def test_the_table_shows_before_after_the_move_the_path_and_every_claim(book):
    done, result = run("forget", book, "--where", EARLY), forgotten(book, "--where", EARLY)
    for name, after in result["parameters"].items():
        row = next(line for line in done.stdout.splitlines() if line.startswith(name)).split()
        before, error = result["before"]["parameters"][name], result["standard_errors"][name]
        assert row[1] == f"{before:.6g}"
        assert row[3:5] == [f"{after:.6g}", f"{error:.2g}"]
        assert float(row[5]) == pytest.approx((after - before) / error, rel=5e-3)  # three digits are shown
    assert result["path"][0] in done.stdout
    for name, is_claimed in result["claims"].items():
        line = next(line for line in done.stdout.splitlines() if line.strip().startswith(name))
        assert line.split(maxsplit=1)[1].startswith("claimed" if is_claimed else "not claimed")


def test_the_certificate_and_the_retained_file_verify_each_other(book, tmp_path):
    certificate, retained = tmp_path / "c.json", tmp_path / "retained.csv"
    result = forgotten(book, "--where", EARLY, "--certificate", certificate, "--out", retained)
    assert (result["certificate_file"], result["out"]) == (str(certificate), str(retained))
    files = ["--certificate", certificate, "--out", retained]
    assert result["certificate"] in run("forget", book, "--where", EARLY, *files).stderr
    done = run("verify", certificate, retained)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Verified: the state is right, the parameters follow")
    told = json.loads(run("verify", certificate, retained, "--json").stdout)
    assert told["holds"]
    assert told["reasons"] == []
    assert {check["name"] for check in told["checks"] if check["holds"]} >= {"STATE", "OPTIMUM", "NEVER_SEEN"}


@pytest.mark.parametrize("operator", forget_command.OPERATORS)
def test_what_every_operator_claims_holds(book, tmp_path, operator):
    words = ("--operator", operator, "--certificate", tmp_path / "c.json", "--out", tmp_path / "retained.parquet")
    assert forgotten(book, "--where", EARLY, *words)["operator"] == operator
    assert run("verify", tmp_path / "c.json", tmp_path / "retained.parquet").exit_code == 0


def test_the_operators_offered_are_those_there_are():
    assert forget_command.OPERATORS == door.OPERATORS


def test_a_fake_forget_is_found_out(book, tmp_path):
    """A certificate of the retained quotes does not hold of the whole book, and the command ends with 1."""
    forgotten(book, "--where", EARLY, "--certificate", tmp_path / "c.json")
    done = run("verify", tmp_path / "c.json", book)
    assert done.exit_code == 1
    assert done.stdout.startswith("NOT verified.")
    told = json.loads(run("verify", tmp_path / "c.json", book, "--json").stdout)
    assert not told["holds"]
    assert any("504 retained quotes; here are 540" in reason for reason in told["reasons"])


def test_an_altered_certificate_is_found_out(book, tmp_path):
    certificate, retained = tmp_path / "c.json", tmp_path / "retained.csv"
    forgotten(book, "--where", EARLY, "--certificate", certificate, "--out", retained)
    certificate.write_bytes(certificate.read_bytes().replace(b'"recalibrate"', b'"resolve"'))
    done = run("verify", certificate, retained)
    assert done.exit_code == 1
    assert "changed since" in done.stdout


def test_a_certificate_that_is_not_there_is_bad_input(book, tmp_path):
    done = run("verify", tmp_path / "none.json", book)
    assert done.exit_code == 2
    assert "none.json" in done.stderr


def test_with_a_tolerance_the_cheaper_road_is_taken_and_stays_within_it(book):
    loose, exact = forgotten(book, "--where", EARLY, "--tolerance", "0.05"), forgotten(book, "--where", EARLY)
    assert loose["operator"] == "downdate"
    assert loose["claims"] == {"STATE": True, "STEP": True, "OPTIMUM": True, "NEVER_SEEN": False}
    apart = [abs(loose["parameters"][n] - x) / exact["standard_errors"][n] for n, x in exact["parameters"].items()]
    assert 0 < max(apart) < 0.05


def test_options_of_the_calibration_are_taken(book, quotes):
    result = forgotten(book, "--where", EARLY, "--loss", "huber", "--fix", "mean_reversion=2")
    retained = quotes.without(early(quotes))
    never = so.calibrate(retained, so.Heston(), loss="huber", fixed={"mean_reversion": 2.0})
    assert result["parameters"] == never.parameters
    assert result["moved"]["mean_reversion"] is None


def test_a_remainder_that_determines_nothing_is_refused_and_nothing_is_written(book, tmp_path):
    certificate, retained = tmp_path / "c.json", tmp_path / "retained.csv"
    words = ("--where", "expiry_years < 0.2", "--certificate", certificate, "--out", retained)
    done = run("forget", book, *words)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no longer determine the parameters: mean_reversion" in done.stderr
    assert "--fix NAME=VALUE" in done.stderr
    assert not list(tmp_path.iterdir())
    assert json.loads(run("forget", book, *words, "--json").stderr)["error"]["code"] == "unidentified"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--ids", "small-000-30-90,nobody"], 3, "nobody"),
        (["--ids", "small-000-30-90,small-000-30-90"], 3, "small-000-30-90"),
        (["--where", "strike > 0"], 2, "ALL 540 quotes"),
        (["--where", "strike > 0", "--all"], 3, "All 540 quotes"),
        (["--where", "strik > 0"], 2, "strik"),
        (["--where", EARLY, "--ids", "a"], 2, "in one way: --where"),
        ([], 2, "in one way: --where"),
        (["--ids-from", "nothing.txt"], 2, "nothing.txt"),
        (["--where", EARLY, "--out", "retained.xlsx"], 2, ".parquet"),
        (["--where", EARLY, "--operator", "downdate", "--tolerance", "1"], 2, "--operator or --tolerance"),
        (["--where", EARLY, "--tolerance", "-1"], 2, "--tolerance -1"),
        (["--where", EARLY, "--operator", "erase"], 2, "recalibrate"),
        (["--where", EARLY, "--preview", "--out", "retained.csv"], 2, "--preview"),
        (["--where", EARLY, "--loss", "huber", "--operator", "downdate"], 2, "--operator downdate"),
    ],
)
def test_what_cannot_be_is_answered_in_a_sentence(book, tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    done = run("forget", book, *words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--out", "--certificate"])
def test_the_file_that_was_read_is_never_written_over(book, option):
    """Forgetting takes influence away, not bytes: the quotes that were struck out would be gone with the file."""
    before = book.read_bytes()
    done = run("forget", book, "--where", EARLY, option, book.parent / "." / book.name)
    assert (done.exit_code, book.read_bytes()) == (2, before)


def test_a_folder_that_is_not_there_is_said_before_anything_is_written(book, tmp_path):
    out, certificate = tmp_path / "retained.csv", tmp_path / "nowhere" / "certificate.json"
    done = run("forget", book, "--where", EARLY, "--out", out, "--certificate", certificate)
    assert done.exit_code == 2
    assert "there is no folder" in done.stderr
    assert not out.exists()


def test_a_preview_says_what_would_happen_and_writes_nothing(book, quotes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("forget", book, "--where", EARLY, "--preview")
    assert done.exit_code == 0, done.output
    assert f"Striking out {len(early(quotes))} quotes leaves 504" in done.stdout
    look, exact = forgotten(book, "--where", EARLY, "--preview"), forgotten(book, "--where", EARLY)
    apart = [abs(look["parameters"][n] - x) / exact["standard_errors"][n] for n, x in exact["parameters"].items()]
    assert max(apart) <= look["error"]
    assert not list(tmp_path.iterdir())


def test_a_preview_of_what_would_be_refused_says_so_and_ends_with_three(book):
    done = run("forget", book, "--where", "expiry_years < 0.2", "--preview")
    assert done.exit_code == 3
    assert "would be refused" in done.stdout


def test_a_condition_that_no_quote_matches_ends_with_3(book):
    done = run("forget", book, "--where", "strike < 0")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no quotes match" in done.stderr


@pytest.mark.parametrize("shards", ["date:30", "month", "expiry", "product:30,60", "source", "date:30,product:30,60"])
def test_shards_are_cut_by_words_and_give_the_bits_of_a_downdate(book, shards):
    sharded = forgotten(book, "--where", EARLY, "--operator", "recompute", "--shards", shards)
    downdated = forgotten(book, "--where", EARLY, "--operator", "downdate")
    assert (sharded["parameters"], sharded["state"]) == (downdated["parameters"], downdated["state"])


@pytest.mark.parametrize("words", [["--shards", "month"], ["--operator", "recompute", "--shards", "desk:3"]])
def test_shards_without_recompute_or_by_an_unknown_label_are_a_usage_error(book, words):
    assert run("forget", book, "--where", EARLY, *words).exit_code == 2
