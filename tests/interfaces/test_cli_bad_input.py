"""Whatever is wrong with a file, the command line answers in a sentence: never a traceback, never a silent number."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

COLUMNS = ["id", "expiry_years", "strike", "right", "price", "bid", "ask", "forward", "discount"]


def rows_of(quotes):
    c = quotes.contracts
    for n, name in enumerate(quotes.ids.tolist()):
        price = float(quotes.observed[n])
        yield {
            "id": name,
            "expiry_years": repr(float(c.expiry[n])),
            "strike": repr(float(c.strike[n])),
            "right": "C" if c.is_call[n] else "P",
            "price": repr(price),
            "bid": repr(price - 0.01),
            "ask": repr(price + 0.01),
            "forward": repr(float(c.forward[n])),
            "discount": repr(float(c.discount[n])),
        }


@pytest.fixture
def write(tmp_path):
    """Writes rows as a CSV and gives back its path."""

    def written(rows, columns=COLUMNS):
        path = tmp_path / "quotes.csv"
        lines = [",".join(columns), *(",".join(row[name] for name in columns) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
        return path

    return written


@pytest.fixture
def rows():
    # At least 0.3 of time value each, so that bid stays above zero and no row is doubtful but for what a test does.
    return list(rows_of(so.synthetic.random_quotes(60, maturities=4, seed=11, theta=[2, 0.25, 0.5, -0.6, 0.25])))


def run(command, path, *words):
    done = CliRunner().invoke(strikeout, [command, str(path), *words])
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


def refused(command, path, code, *words):
    """The command refuses with this code; gives back what it says, the same with and without --json."""
    done = run(command, path, *words)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    told = json.loads(run(command, path, *words, "--json").stderr)["error"]
    assert done.stderr == f"strikeout: {told['sentence']}\n"
    return told


def quarantined(path, tmp_path, code, words):
    """Exactly one row is left out, under this code; the others are calibrated to."""
    done = run("calibrate", path, "--quarantine", str(tmp_path / "bad.csv"), "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert (result["rejected"], result["issues"].get(code), result["count"]) == (1, 1, 59)
    kept = (tmp_path / "bad.csv").read_text()
    assert code in kept
    assert words in kept
    assert run("inspect", path).exit_code == 1
    return result


def test_the_untouched_file_is_fine(write, rows):
    done = run("calibrate", write(rows), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["count"] == 60


@pytest.mark.parametrize("command", ["inspect", "calibrate"])
def test_an_empty_file_is_refused(tmp_path, command):
    path = tmp_path / "empty.csv"
    path.touch()
    assert "empty" in refused(command, path, 2)["sentence"]


@pytest.mark.parametrize("command", ["inspect", "calibrate"])
def test_a_header_without_rows_is_refused(write, command):
    assert "no rows" in refused(command, write([]), 2)["sentence"]


@pytest.mark.parametrize("command", ["inspect", "calibrate"])
@pytest.mark.parametrize("missing", ["strike", "right", "expiry_years", "forward", "discount"])
def test_a_missing_column_is_named_with_what_was_found(write, rows, command, missing):
    path = write(rows, [name for name in COLUMNS if name != missing])
    told = refused(command, path, 2)
    assert told["code"] == "column"
    assert missing.partition("_")[0] in told["sentence"]
    assert "Found: id" in told["sentence"]


def test_advice_is_given_in_options_not_in_python(write, rows):
    without_discount = write(rows, [name for name in COLUMNS if name != "discount"])
    assert "--constant rate=0" in refused("calibrate", without_discount, 2)["sentence"]
    assert "--fix NAME=VALUE" in refused("calibrate", write(rows[:4]), 3)["sentence"]
    assert (
        "--max-reject"
        in refused("calibrate", write([*rows, {**rows[0], "price": "2"}]), 2, "--max-reject", "0")["sentence"]
    )


def test_text_in_a_number_is_quarantined(write, rows, tmp_path):
    rows[7]["price"] = "n/a"
    quarantined(write(rows), tmp_path, "Q102", "'n/a' is not a number")


def test_not_a_number_is_quarantined(write, rows, tmp_path):
    rows[7]["forward"] = "NaN"
    quarantined(write(rows), tmp_path, "Q101", "column forward")


def test_an_infinite_number_is_quarantined(write, rows, tmp_path):
    rows[7]["price"] = "inf"
    quarantined(write(rows), tmp_path, "Q111", "not finite")


def test_a_negative_strike_is_quarantined(write, rows, tmp_path):
    rows[7]["strike"] = "-100"
    quarantined(write(rows), tmp_path, "Q104", "-100 is not above zero")


def test_an_expired_quote_is_quarantined(write, rows, tmp_path):
    rows[7]["expiry_years"] = "-0.1"
    quarantined(write(rows), tmp_path, "Q105", "expired")


def test_a_crossed_market_is_quarantined(write, rows, tmp_path):
    rows[7]["bid"], rows[7]["ask"] = rows[7]["ask"], rows[7]["bid"]
    quarantined(write(rows), tmp_path, "Q103", "above the ask")


def test_one_id_with_two_values_is_quarantined_both_times(write, rows, tmp_path):
    rows.append({**rows[7], "price": "1.25"})
    path = write(rows)
    done = run("calibrate", path, "--quarantine", str(tmp_path / "bad.csv"), "--json")
    result = json.loads(done.stdout)
    assert (done.exit_code, result["rejected"], result["count"]) == (0, 2, 59)
    assert result["issues"] == {"Q108": 2}


def test_an_exact_repeat_is_kept_once_and_said(write, rows):
    rows.append(dict(rows[7]))
    done = run("calibrate", write(rows))
    assert done.exit_code == 0
    assert "1 row repeats an earlier one exactly" in done.stderr
    assert "Q201" not in done.stderr  # said once
    assert json.loads(run("calibrate", write(rows), "--json").stdout)["count"] == 60


def test_a_file_with_too_many_bad_rows_is_refused_with_the_first(write, rows):
    for row in rows[:20]:
        row["strike"] = "0"
    told = refused("calibrate", write(rows), 2)
    assert told["code"] == "rejected"
    assert (told["rejected"], told["rows"]) == (20, 60)
    assert "line 2, column strike" in told["sentence"]


def test_one_maturity_only_gives_a_result_that_says_it_is_not_determined(write, rows):
    only = [row for row in rows if row["expiry_years"] == rows[0]["expiry_years"]]
    assert len(only) > 6
    done = run("calibrate", write(only), "--json")
    assert done.exit_code == 3
    result = json.loads(done.stdout)
    assert not result["converged"]
    assert result["warnings"]


def test_fewer_quotes_than_parameters_are_refused_with_both_numbers(write, rows):
    told = refused("calibrate", write(rows[:4]), 3)
    assert told["code"] == "unidentified"
    assert (told["count"], told["free"]) == (4, 5)


def test_one_contract_quoted_many_times_is_refused(write, rows):
    copies = [{**rows[0], "id": f"q{n}"} for n in range(30)]
    assert refused("calibrate", write(copies), 3)["places"] == 1


@pytest.mark.parametrize("command", ["inspect", "calibrate"])
def test_a_file_that_is_not_there_and_one_of_another_kind_are_refused(tmp_path, command):
    assert "no such file" in refused(command, tmp_path / "nothing.csv", 2)["sentence"]
    (tmp_path / "notes.txt").write_text("hello")
    assert ".parquet" in refused(command, tmp_path / "notes.txt", 2)["sentence"]


@pytest.mark.parametrize("name", ["noise.csv", "noise.parquet", "noise.csv.gz"])
def test_random_bytes_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(bytes(range(256)) * 40)
    refused("calibrate", tmp_path / name, 2)


def test_spread_weights_without_spreads_are_refused(write, rows):
    path = write(rows, [name for name in COLUMNS if name not in ("bid", "ask")])
    assert refused("calibrate", path, 3, "--weights", "spread")["code"] == "refused"
