"""``strikeout rule`` explains one rule, ``strikeout rules`` lists them or counts what they find."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.cli.configuration import configuration
from strikeout.errors import UsageError
from strikeout.quotes.checks.catalogue import RULES
from tests.raising import raises

TABLE = """strike,right,bid,ask,expiry_years,forward,discount
100,C,4.0,4.2,0.5,100,1
110,C,1.0,1.2,0.5,100,1
120,C,0,0.4,0.5,100,1
90,P,0.9,0.5,0.5,100,1
"""


def run(*words, **options):
    return CliRunner().invoke(strikeout, [str(word) for word in words], **options)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "chain.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize("code", RULES)
def test_every_rule_is_explained(code):
    said = run("rule", code).stdout
    assert f"{code}: {RULES[code].name}" in said
    assert RULES[code].remedy in said
    assert ("--check" in said) != RULES[code].is_fixed
    assert json.loads(run("rule", code.lower(), "--json").stdout)["code"] == code


def test_a_code_that_is_none_is_refused_with_the_nearest():
    done = run("rule", "Q299")
    assert done.exit_code == 2
    assert "There is no rule 'Q299'" in done.stderr


def test_the_list_holds_every_rule():
    said = run("rules").stdout
    assert [code for code in RULES if code not in said] == []
    assert [rule["code"] for rule in json.loads(run("rules", "--json").stdout)["rules"]] == list(RULES)
    assert run("rules", "--format", "csv").stdout.count("\n") == len(RULES) + 1


def test_the_counts_of_a_file_follow_what_is_checked(table):
    result = json.loads(run("rules", table, "--json").stdout)
    assert {step["code"]: (step["removed"], step["flagged"]) for step in result["steps"]} == {
        "Q103": (1, 0),
        "Q207": (0, 1),
    }
    assert "Q213  needs volume and open_interest" in run("rules", table).stdout
    strict = json.loads(run("rules", table, "--json", "--check", "Q207=reject").stdout)
    assert (result["left"], strict["left"]) == (3, 2)
    assert run("rules", table, "--format", "latex").stdout.startswith(r"\begin{tabular}")


def test_a_row_that_a_rule_rejects_is_flagged_by_none(table):
    """The crossed row has a zero bid too, and it is not there any more to be looked at."""
    table.write_text(TABLE + "130,C,0,-1,0.5,100,1\n80,P,0,0.2,0.5,100,1\n")
    steps = {step["code"]: step for step in json.loads(run("rules", table, "--json").stdout)["steps"]}
    assert (steps["Q103"]["removed"], steps["Q207"]["flagged"]) == (2, 2)
    strict = json.loads(run("rules", table, "--json", "--check", "Q207=reject", "--check", "Q208=0.01").stdout)
    wide = {step["code"]: step["flagged"] for step in strict["steps"]}
    assert wide["Q207"] == 0
    assert wide["Q208"] == 2  # of the two with a bid


def test_checks_reach_every_command_that_reads_a_file(table):
    strict = ("--check", "Q207=reject", "--max-reject", "0.5", "--json")
    assert json.loads(run("inspect", table, *strict[:2], "--json").stdout)["count"] == 2
    assert "2 quotes" in run("calibrate", table, *strict).output  # too few of them, and the refusal counts them
    assert run("inspect", table, "--check", "Q999=off").exit_code == 2


def test_checks_can_be_set_in_the_file_and_in_a_variable(tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strikeout.toml").write_text('[checks]\nQ207 = "reject"\nQ208 = 0.05\n')
    found = json.loads(run("rules", table, "--json").stdout)
    assert {step["code"]: step["removed"] for step in found["steps"]}["Q207"] == 1
    assert "Q208" in {step["code"] for step in found["steps"]}
    said = json.loads(run("rules", table, "--json", env={"STRIKEOUT_CHECKS": "Q207=off Q208=0.1"}).stdout)
    assert "Q207" in said["unchecked"]
    for wrong in ("Q207", "=off"):
        with raises(UsageError, setting="checks"):
            configuration(folder=tmp_path, variables={"STRIKEOUT_CHECKS": wrong})
    (tmp_path / "strikeout.toml").write_text('checks = "Q207"\n')
    with raises(UsageError, setting="checks"):
        configuration(folder=tmp_path, variables={})


def test_the_rows_that_a_rule_finds_are_listed_and_written(tmp_path):
    path = so.synthetic.write_sample(tmp_path / "page.csv")
    counts = so.inspect_quotes(path).issues.counts
    code = next(code for code in counts if code.startswith("Q2"))
    told = json.loads(run("rules", path, "--list", code.lower(), "--json").stdout)
    assert (told["code"], told["count"]) == (code, counts[code])
    out = tmp_path / "rows.csv"
    assert run("rules", path, "--list", code, "--out", out).exit_code == 0
    assert code in out.read_text().splitlines()[-1]
    assert run("rules", path, "--out", out).exit_code == 2
    assert run("rules", path, "--list", "Q999").exit_code == 2


def test_inspect_has_an_example_of_every_code_and_writes_every_forward(tmp_path):
    path = so.synthetic.write_sample(tmp_path / "page.csv")
    told = json.loads(run("inspect", path, "--json", "--out", tmp_path / "forwards.csv").stdout)
    assert [one["code"] for one in told["issues"]["examples"]] == sorted(told["issues"]["counts"])
    lines = (tmp_path / "forwards.csv").read_text().splitlines()
    assert len(lines) == 1 + len(told["forwards"])
    assert lines[0].startswith("slice,source,years,forward,discount,rate")
    assert {"forward_error", "borrow"} <= set(lines[0].split(",")) & set(told["forwards"][0])
