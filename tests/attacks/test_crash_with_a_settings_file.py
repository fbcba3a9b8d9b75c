"""An attacker leaves a settings file or a profile behind and wants the program to fall over instead of saying why."""

from __future__ import annotations

import datetime

import pytest

import strikeout as so
from strikeout.errors import StrikeoutError, UsageError
from strikeout.quotes.profile import profile_of
from tests.cli.typed import run

DEEP = "[" * 20_000
CONFIGURATIONS = {
    "brackets": f"who = {DEEP}",
    "closed brackets": f"who = {DEEP}{DEEP.replace('[', ']')}",
    "tables": "who = " + "{a=" * 20_000,
    "dots": ".".join(["a"] * 20_000) + " = 1",
    "headers": "[" + ".".join(["a"] * 20_000) + "]",
    "not utf-8": b"who = '\xff\xfe'",
    "nul": "who = '\0'",
    "escaped nul": 'key_file = "a\\u0000b"',
    "control": 'who = "a\\u001b[2J"',
    "blank": "who = '   '",
    "long": "#" * 2_000_000,
    "date": "who = 2024-01-31",
    "nan": "max_reject = nan",
    "infinite": "max_reject = inf",
    "a list": "loss = ['huber']",
    "a table": "starts = { a = 1 }",
    "true": "starts = true",
    "many digits": f"starts = '{'9' * 5000}'",
    "checks": "checks = [1, 2]",
    "checks in checks": "[checks.Q208]\na = 1",
    "unknown": "\n".join(f"a{k} = 1" for k in range(10_000)),
}
ORIGINS = {
    "divide": ["'x'", "0", "nan", "inf", "-1", "[]", "true"],
    "column": ["5", "[]", "[1]", "{ a = 1 }", "true", "2024-01-31"],
    "optional": ["'yes'", "1"],
    "format": ["5", "['%Y']", "'%Y-%m-%d %H'"],
    "sentinels": ["5", "['x']", "[nan]", "{}"],
    "values": ["5", "'C'", "{ a = [] }", "{ a = { b = 1 } }"],
    "drop": ["5", "['%']"],
    "before": ["5", "'strike'", "'nothing'"],
    "extract": ["5", "'('", "'(?=a)'", "'abc'", "'(a){99999}{99999}'"],
    "unless": ["5", "'strike'", "[1]"],
}
PROFILES = {
    "a number for a column": "name = 'x'\n[columns]\nstrike = 5",
    "a list for a column": "name = 'x'\n[columns]\nstrike = []",
    "name": "name = 5\n[columns]",
    "no name": "name = ''\n[columns]",
    "columns": "name = 'x'\ncolumns = 5",
    "columns as a list": "name = 'x'\ncolumns = ['strike']",
    "title": "name = 'x'\ntitle = []\n[columns]",
    "header": "name = 'x'\nheader = 5\n[columns]",
    "header of numbers": "name = 'x'\nheader = [5]\n[columns]",
    "labels": "name = 'x'\nlabels = 'a'\n[columns]",
    "symbol": "name = 'x'\nsymbol = 5\n[columns]",
    "symbol as a list": "name = 'x'\nsymbol = []\n[columns]",
    "calls": "name = 'x'\ncalls = 1\nputs = 2\n[columns]",
    "constants": "name = 'x'\nconstants = 5\n[columns]",
    "constants of lists": "name = 'x'\n[columns]\n[constants]\nrate = []",
    "constants of times": "name = 'x'\n[columns]\n[constants]\nrate = 12:00:00",
    "by_class": "name = 'x'\nby_class = 5\n[columns]",
    "by_class of numbers": "name = 'x'\n[columns]\n[by_class]\nexercise = 5",
    "by_class deeper": "name = 'x'\n[columns]\n[by_class.exercise]\nE = 5",
    "coin": "name = 'x'\ncoin = 5\n[columns]",
    "coin of numbers": "name = 'x'\n[columns]\n[coin]\nclasses = 5",
    "preamble": "name = 'x'\npreamble = 5\n[columns]",
    "preamble pattern": "name = 'x'\n[columns]\n[preamble]\nspot = '('",
    "preamble number": "name = 'x'\n[columns]\n[preamble]\nstamp = 5",
    "preamble hour": "name = 'x'\n[columns]\n[preamble]\nopens = '25:00'",
    "preamble months": "name = 'x'\n[columns]\n[preamble]\nmonths = { 13 = ['x'] }",
    "preamble month names": "name = 'x'\n[columns]\n[preamble]\nmonths = { 1 = 5 }",
    "time": "name = 'x'\ntime = 5\n[columns]",
    "zone": "name = 'x'\n[columns]\n[time]\nzone = 5",
    "zone is a folder": "name = 'x'\n[columns]\n[time]\nzone = 'America'",
    "zone elsewhere": "name = 'x'\n[columns]\n[time]\nzone = '../../etc/passwd'",
    "holidays": "name = 'x'\n[columns]\n[time]\nholidays = 5",
    "holidays of numbers": "name = 'x'\n[columns]\n[time]\nholidays = [5]",
    "closed": "name = 'x'\n[columns]\n[time]\nclosed = 'x'",
    "pm": "name = 'x'\n[columns]\n[time]\npm = 5",
    "brackets": f"name = {DEEP}",
    **{
        f"{key} = {value}": f"name = 'x'\n[columns]\nstrike = {{ column = 'K', {key} = {value} }}"
        if key != "column"
        else f"name = 'x'\n[columns]\nstrike = {{ column = {value} }}"
        for key, values in ORIGINS.items()
        for value in values
    },
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    so.write_quotes(so.paper.quotes("small", seed=1)[:20], "a.csv")
    return tmp_path


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_configuration_is_read_or_refused_with_a_sentence(folder, name):
    content = CONFIGURATIONS[name]
    (folder / "strikeout.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    ended = run("inspect", "a.csv")
    assert ended.exit_code == 2, ended.output
    assert "strikeout.toml" in ended.stderr
    assert len(ended.stderr) < 3_000


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_read_or_refused_with_a_sentence(folder, name):
    (folder / "vendor.toml").write_text(PROFILES[name])
    ended = run("inspect", "a.csv", "--profile", "vendor.toml")
    assert ended.exit_code == 2, ended.output
    assert len(ended.stderr) < 3_000
    with pytest.raises(UsageError):
        profile_of("vendor.toml")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"#" * 2_000_000, b"name = '\x00'"], ids=["bytes", "long", "nul"])
def test_a_profile_that_is_no_text_is_refused_with_a_sentence(folder, content):
    (folder / "vendor.toml").write_bytes(content)
    ended = run("inspect", "a.csv", "--profile", "vendor.toml")
    assert ended.exit_code == 2, ended.output


def test_a_profile_that_is_a_folder_is_refused_with_a_sentence(folder):
    (folder / "vendor.toml").mkdir()
    assert run("inspect", "a.csv", "--profile", "vendor.toml").exit_code == 2


def test_a_date_of_toml_is_a_constant(tmp_path):
    (tmp_path / "x.toml").write_text("name = 'x'\n[columns]\nstrike = 'K'\n[constants]\nquote_date = 2024-01-31")
    profile = profile_of(tmp_path / "x.toml")
    assert profile.constants == {"quote_date": "2024-01-31"}
    assert str(datetime.date(2024, 1, 31)) == profile.constants["quote_date"]


def test_days_that_count_back_from_a_column_which_is_not_there_are_unknown(folder):
    """An optional column may be missing in a file, also the one that another counts from."""
    text = "name = 'x'\n[columns]\nstrike = 'K'\nright = 'R'\nprice = 'P'\nexpiry = { column = 'E', optional = true }\n"
    text += "expiry_years = 'T'\nforward = 'F'\ndiscount = 'D'\nquote_date = { column = 'DTE', before = 'expiry' }\n"
    (folder / "vendor.toml").write_text(text)
    (folder / "v.csv").write_text("K,R,P,T,F,D,DTE\n100,C,5,0.5,100,1,30\n90,C,12,0.5,100,1,30\n")
    quotes = so.read_quotes("v.csv", profile="vendor.toml")
    assert (len(quotes), "date" in quotes.labels) == (2, False)


def test_a_moment_beyond_the_calendar_is_no_other_moment(folder):
    """Milliseconds in a column of seconds would wrap around to some day of another century."""
    text = "name = 'x'\n[columns]\nstrike = 'K'\nright = 'R'\nprice = 'P'\nexpiry_years = 'T'\nforward = 'F'\n"
    text += "discount = 'D'\nquote_date = { column = 'TS', format = 'epoch-s' }\n"
    (folder / "vendor.toml").write_text(text)
    (folder / "v.csv").write_text("K,R,P,T,F,D,TS\n100,C,5,0.5,100,1,1706700000000\n90,C,12,0.5,100,1,1706700000\n")
    assert so.read_quotes("v.csv", profile="vendor.toml").labels["date"].tolist() == ["", "2024-01-31"]


@pytest.mark.parametrize(
    "above",
    [
        "Last: 1.2.3,x",
        "Date: 31 June 2024 at 10:00 AM",
        "Date: 1 June 2024 at 99:00",
        "Last: ,",
        "Date: June 2024 @ 1:00",
    ],
)
def test_lines_above_a_header_that_say_nothing_are_passed_over(folder, above):
    so.synthetic.write_sample(folder / "page.csv", "page")
    lines = (folder / "page.csv").read_text().splitlines()
    header = next(at for at, line in enumerate(lines) if line.startswith("Expiration Date"))
    (folder / "page.csv").write_text("\n".join([above, *lines[header:]]))
    try:
        so.inspect_quotes(folder / "page.csv")
    except StrikeoutError as error:
        assert error.exit_code == 2  # noqa: PT017  (the day is missing then; a book is as good an answer)


def test_a_working_folder_that_is_gone_is_a_sentence(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run("rules").exit_code == 2
    monkeypatch.chdir(tmp_path)
