"""Four people at the command line: a desk, a validator, a compliance officer and an academic."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import strikeout as so
from strikeout.assurance.certificate import Certificate
from strikeout.kernels.compiled import native
from tests.cli.typed import done, run, told

DAY = "expiry_years > 0.02 and abs(log_moneyness) < 0.2 and spread > 0"
FIT = ["--select", "otm", "--objective", "vol-spread", "--only", DAY]
SOUTH = ["--where", "source = 'south'"]
# A command on a machine without the compiled kernel.
WITHOUT_KERNEL = (
    "import sys; sys.modules['strikeout.kernels._native'] = None; sys.argv[0] = 'strikeout'\n"
    "from strikeout.cli import main; main()"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done("sample", "page.csv", "--kind", "page")
    done("sample", "feeds.csv", "--kind", "feeds")
    return tmp_path


def with_two_errors(day: Path) -> str:
    """Return a vendor's file with a put and a call mispriced: bid and ask of each times a factor."""
    errors = {"SPX230616P04400000": (12, 1.25), "SPX230317C04900000": (1, 0.7)}
    lines, changed = gzip.decompress(day.read_bytes()).decode().splitlines(), 0
    for place, line in enumerate(lines):
        cells = line.split(",")
        for symbol, (column, factor) in errors.items():
            if len(cells) > column and cells[column] == symbol:
                for quoted in (column + 3, column + 4):
                    cells[quoted] = f"{float(cells[quoted]) * factor:.2f}"
                lines[place], changed = ",".join(cells), changed + 1
    assert changed == len(errors)
    return "\n".join(lines) + "\n"


@pytest.mark.usefixtures("folder")
def test_a_desk_finds_two_errors_in_a_vendor_day_and_strikes_an_expiry_out(shared_data):
    Path("day.csv").write_text(with_two_errors(shared_data("raw/cboe_spx_2022-06-10.csv.gz")))
    read = json.loads(run("inspect", "day.csv", "--json").stdout)
    assert read["unreadable"] == 0  # what is left out is expired, or an empty market
    assert read["profile"] != "strikeout"  # the vendor's layout is recognised
    worst = [row["id"] for row in told("outliers", "day.csv", "--top", 2)["outliers"]]
    assert {tuple(one.split("/")[-3:]) for one in worst} == {("2023-06-16", "4400", "P"), ("2023-03-17", "4900", "C")}

    names = ["--ids", ",".join(worst)]
    done("forget", "day.csv", *names, "--certificate", "errors.json", "--out", "clean.parquet")
    assert told("verify", "errors.json", "clean.parquet")["verdict"] == "verified"

    found = told("calibrate", "clean.parquet", *FIT)
    assert found["converged"]
    assert found["count"] < read["count"]
    errors = found["fit_errors"]
    assert errors["vol_points"] < 3.0
    assert len(errors["by_expiry"]) > 30
    last = errors["by_expiry"][-1]
    struck = [*FIT, "--where", f"expiry_date = '{last['expiry']}'"]
    gone = told("forget", "clean.parquet", *struck, "--certificate", "c.json", "--out", "kept.parquet")
    assert len(gone["forgotten"]) >= last["count"] > 0
    shown, issued = told("certificate", "c.json"), json.loads(Path("c.json").read_text())
    assert shown["parameters"].keys() == gone["parameters"].keys() == issued["parameters"].keys()
    assert told("verify", "c.json", "kept.parquet")["verdict"] == "verified"
    assert run("verify", "c.json", "clean.parquet").exit_code == 1
    drawn = ["--kind", "residuals", "--unit", "vol_points", "--out", "r.png"]
    done("plot", "kept.parquet", *FIT[:-2], "--where", DAY, *drawn)
    assert Path("r.png").stat().st_size > 10_000


def forged(issued: Certificate) -> dict[str, Certificate]:
    """Return certificates with one statement changed each, whose own digest is right."""
    wrong = {**issued.parameters, "correlation": (float.fromhex(issued.parameters["correlation"]) * 1.01).hex()}
    return {
        "parameters": replace(issued, parameters=wrong),
        "counts": replace(issued, counts={**issued.counts, "retained": issued.counts["retained"] + 1}),
        "state": replace(issued, state={**issued.state, "digest": "0" * 64}),
        "objective": replace(issued, objective={**issued.objective, "loss": "huber"}),
    }


@pytest.mark.usefixtures("folder")
def test_a_validator_gets_one_of_three_verdicts_for_every_case():
    done("forget", "page.csv", "--where", "strike > 5500", "--certificate", "c.json", "--out", "kept.csv")
    issued = Certificate.from_bytes(Path("c.json").read_bytes())
    lines = Path("kept.csv").read_text().splitlines(keepends=True)
    Path("short.csv").write_text("".join(lines[:-1]))
    table = {("c.json", "kept.csv"): (0, "verified"), ("c.json", "page.csv"): (1, "refuted")}
    table["c.json", "short.csv"] = (1, "refuted")
    for name, changed in forged(issued).items():
        Path(f"{name}.json").write_bytes(changed.to_bytes())
        table[f"{name}.json", "kept.csv"] = (1, "refuted")
    found = {}
    for words in table:
        ended = run("verify", *words, "--json")
        found[words] = (ended.exit_code, json.loads(ended.stdout)["verdict"])
    assert found == table
    # A file edited by hand no longer matches its own digest.
    text = Path("c.json").read_text()
    edited = text.replace(f'"retained":{issued.counts["retained"]}', '"retained":1')
    assert edited != text
    Path("edited.json").write_text(edited)
    ended = run("verify", "edited.json", "kept.csv", "--json")
    assert (ended.exit_code, json.loads(ended.stdout)["verdict"]) == (1, "refuted")


@pytest.mark.skipif(native() is None, reason="certificates of the compiled kernel are needed")
@pytest.mark.usefixtures("folder")
def test_a_validator_without_the_compiled_kernel_is_told_that_bits_cannot_be_checked():
    done("forget", "page.csv", "--where", "strike > 5500", "--certificate", "c.json", "--out", "kept.csv")
    for words, expected in {("c.json", "kept.csv"): (3, "unchecked"), ("c.json", "page.csv"): (1, "refuted")}.items():
        program = [sys.executable, "-c", WITHOUT_KERNEL, "verify", *words, "--json"]
        ended = subprocess.run(program, capture_output=True, text=True, check=False)
        assert (ended.returncode, json.loads(ended.stdout)["verdict"]) == expected


def test_compliance_erases_a_source_with_two_persons_in_two_folders(folder, monkeypatch):
    book, feeds = folder / "a.book", folder / "feeds.csv"
    done("init", book, "--approval", "two-person", "--who", "ann")
    done("import", book, feeds)
    done("calibrate", book)
    for name in ("ann", "ben", "auditor"):
        (folder / name).mkdir()
    why = ["--reason", "licence", "--who", "ann"]
    monkeypatch.chdir(folder / "ann")
    assert run("erase", book, *SOUTH, *why, "--yes").exit_code == 3
    asked = told("request", book, "erase", *SOUTH, *why)["request"]
    assert run("approve", book, asked, "--who", "ann").exit_code == 3
    monkeypatch.chdir(folder / "ben")
    assert run("erase", book, *SOUTH, "--reason", "licence", "--who", "ben", "--yes").exit_code == 3
    assert told("approve", book, asked, "--who", "ben")["by"] == "ben"
    monkeypatch.chdir(folder / "ann")
    rehearsed = told("erase", book, *SOUTH, *why)
    assert (rehearsed["entry"], rehearsed["residue"]) == (None, None)
    gone = told("erase", book, *SOUTH, *why, "--yes")
    assert (gone["count"], gone["residue"]) == (rehearsed["count"], 0)
    assert gone["count"] == asked_count(book) > 2000
    assert told("residue", book)["is_clean"]
    searched = told("residue", book, "--quotes", feeds)
    assert (searched["is_clean"], searched["traces"]) == (True, [])
    assert searched["needles"] > 1000

    proof = told("evidence", book, "--request", asked, "--out", "evidence.html")
    (removal,) = proof["removals"]
    assert (removal["who"], removal["approved_by"], removal["why"]["code"]) == ("ann", "ben", "licence")
    assert (removal["counts"]["erased"], removal["search"]["traces"]) == (gone["count"], 0)
    assert proof["verification"]["verdict"] == "verified"
    page = Path("evidence.html").read_text("utf-8")
    assert proof["key"] in page
    assert "/south" not in page  # no id of an erased quote

    refuse_reimports(book, feeds, gone["count"])
    audit_with_the_public_key(book, folder / "auditor", monkeypatch)


def asked_count(book: Path) -> int:
    (request,) = told("requests", book)["requests"]
    assert (request["state"], request["who"], request["by"]) == ("done", "ann", "ben")
    return request["count"]


def refuse_reimports(book: Path, feeds: Path, count: int) -> None:
    """The erased quotes are refused under their own label, another one and none.

    A quote that a retained source has too, with the same contract, time and price, is not an erased one.
    """
    again = run("import", book, feeds, "--json")
    assert (again.exit_code, len(json.loads(again.stdout)["erased"])) == (1, count)
    rows = [line.split(",") for line in feeds.read_text().splitlines()]
    kept = {tuple(row[:-1]) for row in rows if row[-1] == "north"}
    alone = [row for row in rows if row[-1] == "south" and tuple(row[:-1]) not in kept]
    assert 0 < len(alone) < count
    bare = Path("bare.csv")
    bare.write_text("\n".join(",".join(row[:-1]) for row in (rows[0], *alone)) + "\n")
    for source in (["--source", "another"], []):
        again = run("import", book, bare, *source, "--json")
        assert again.exit_code == 1
        found = json.loads(again.stdout)
        assert (found["imported"], len(found["erased"])) == (0, len(alone)), source


def audit_with_the_public_key(book: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody with a copy of the book and its public key sees the ledger, and can change nothing."""
    key, entries = told("status", book)["key"], told("log", book)["entries"]
    shutil.copy(book, folder / "copy.book")
    monkeypatch.chdir(folder)
    for command in ("log", "status", "requests", "history", "verify"):
        assert run(command, "copy.book").exit_code == 3, command
        assert run(command, "copy.book", "--key", "0" * 64).exit_code != 0, command
    seen = told("log", "copy.book", "--key", key)["entries"]
    assert [one["hash"] for one in seen] == [one["hash"] for one in entries]
    (erased,) = (one for one in seen if one["what"] == "erase")
    assert erased["needed_approval"]
    assert erased["approved_by_entry"] is not None
    assert told("status", "copy.book", "--key", key)["erased"] == asked_count(book)
    assert told("requests", "copy.book", "--key", key)["requests"][0]["by"] == "ben"
    assert len(told("history", "copy.book", "--key", key)["stages"]) == 1  # results before the erasure are removed
    checked = told("verify", "copy.book", "--key", key)
    holds = {check["name"]: check["holds"] for check in checked["checks"]}
    assert holds["LEDGER"]
    assert holds["APPROVALS"]


@pytest.mark.usefixtures("folder")
def test_an_academic_fits_a_panel_and_prints_tables_for_a_paper():
    found = told("calibrate", "feeds.csv", "--panel", "date", "--where", "source = 'north'")
    dates = {str(date) for date in so.inspect_quotes("feeds.csv").quotes.labels["date"].tolist()}
    assert len(found["latent"]["values"] if "values" in found["latent"] else found["latent"]) == len(dates) > 1
    rules = done("rules", "feeds.csv", "--format", "latex").stdout
    assert rules.startswith(r"\begin{tabular}")
    assert "rows in" in rules
    table = done(
        "compare-models", "page.csv", "--models", "heston,black-scholes", "--rank", "vol_points", "--format", "markdown"
    )
    assert [line.split("|")[1].strip() for line in table.stdout.splitlines()[2:]] == ["heston", "black-scholes"]
    errors = done("calibrate", "page.csv", "--fit-errors", "--format", "csv").stdout.splitlines()
    assert errors[0] == "expiry,quotes,vol points,spreads,price"


@pytest.mark.usefixtures("folder")
def test_an_academic_rolls_a_window_over_eighteen_real_weeks(shared_data):
    weeks, window = 18, 8
    panel = pq.read_table(shared_data("chains/panel_spx_weekly_2011_h1.parquet"))
    dates = sorted(set(panel["quote_date"].to_pylist()))[: weeks + window]
    assert len(dates) == weeks + window

    def written(name: str, chosen: list[str]) -> str:
        wanted = pa.array(chosen, type=panel["quote_date"].type)
        pq.write_table(panel.filter(pc.is_in(panel["quote_date"], value_set=wanted)), name)
        return name

    done("init", "w.book")
    done("import", "w.book", written("first.parquet", dates[:window]))
    done("calibrate", "w.book", "--panel", "date")
    for date in dates[window:]:
        done("roll", "w.book", written(f"{date}.parquet", [date]), "--window", window)
    stages = told("history", "w.book")["stages"]
    assert [stage["what"] for stage in stages] == ["calibrate", *["roll"] * weeks]
    assert all(stage["converged"] for stage in stages)
    assert done("history", "w.book", "--format", "latex").stdout.startswith(r"\begin{tabular}")
    # The last window is what a calibration of its quotes alone finds.
    alone = told("calibrate", written("last.parquet", dates[-window:]), "--panel", "date")
    for name, value in stages[-1]["parameters"].items():
        assert value == pytest.approx(alone["parameters"][name], rel=1e-4), name
    assert told("verify", "w.book")["verdict"] == "verified"
