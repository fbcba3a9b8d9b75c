"""Settings: a flag beats a variable, which beats strikeout.toml, which beats the default; what is unknown is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.cli.calibrate import calibrate
from strikeout.cli.configuration import SETTINGS, configuration, found_from
from strikeout.errors import UsageError
from strikeout.statistics import losses
from tests.raising import raises


def configured(folder, text, **variables):
    (folder / "strikeout.toml").write_text(text)
    return configuration(folder=folder, variables=variables)


def names_in_the_log(folder, *words, **variables):
    """Who the ledger says made a book here."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-m", "strikeout"]
    subprocess.run([*command, "init", "a.book", *words], cwd=folder, env=environment, check=True, capture_output=True)
    log = subprocess.run([*command, "log", "a.book", "--json"], cwd=folder, env=environment, capture_output=True)
    return [entry["who"] for entry in json.loads(log.stdout)["entries"]]


def test_a_variable_beats_the_file_and_each_says_where_it_was_set(tmp_path):
    found = configured(tmp_path, 'starts = 2\nloss = "huber"\n', STRIKEOUT_STARTS="3")
    assert found.values == {"starts": 3, "loss": "huber"}
    assert found.origins == {"starts": "STRIKEOUT_STARTS", "loss": str(tmp_path / "strikeout.toml")}


@pytest.mark.parametrize(
    ("words", "variables", "who"),
    [
        (["--who", "flag"], {"STRIKEOUT_WHO": "variable"}, "flag"),
        ([], {"STRIKEOUT_WHO": "variable"}, "variable"),
        ([], {}, "file"),
    ],
)
def test_a_flag_beats_a_variable_beats_the_file(tmp_path, words, variables, who):
    (tmp_path / "strikeout.toml").write_text('who = "file"\n')
    assert names_in_the_log(tmp_path, *words, **variables) == [who]


def test_the_file_says_how_a_file_and_a_book_are_calibrated_unless_a_flag_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    so.write_quotes(so.paper.quotes("small"), "q.csv")
    (tmp_path / "strikeout.toml").write_text('loss = "huber"\nmax_reject = 0.2\n')

    def loss(*words):
        done = CliRunner().invoke(strikeout, [*words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert loss("calibrate", "q.csv")["loss"] == "huber"
    assert loss("calibrate", "q.csv", "--loss", "squared")["loss"] == "squared"
    for words in (["init", "a.book"], ["import", "a.book", "q.csv"], ["calibrate", "a.book"]):
        loss(*words)
    with so.Book.open("a.book") as book:
        assert book.calibration().loss == "huber"


def test_the_nearest_file_upwards_counts_alone(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "strikeout.toml").write_text("starts = 2\nthreads = 1\n")
    assert configuration(folder=deep, variables={}).values == {"starts": 2, "threads": 1}
    (tmp_path / "a" / "strikeout.toml").write_text("starts = 1\n")
    assert configuration(folder=deep, variables={}).values == {"starts": 1}
    assert found_from(deep) == tmp_path / "a" / "strikeout.toml"


def test_an_unknown_key_is_refused_by_name(tmp_path):
    with raises(UsageError, unknown=["aproval", "wieghts"]):
        configured(tmp_path, 'wieghts = "vega"\naproval = "two-person"\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("starts = 0", "whole number from 1"),
        ("starts = 2.5", "whole number from 1"),
        ("starts = true", "whole number from 1"),
        ("max_reject = 1.5", "a number from 0 to 1"),
        ("max_reject = nan", "a number from 0 to 1"),
        ('who = ""', "give a text"),
        ("who = [", "not TOML"),
    ],
)
def test_what_a_setting_cannot_be_is_refused_with_what_it_can(tmp_path, text, said):
    with pytest.raises(UsageError, match=said):
        configured(tmp_path, text)


@pytest.mark.parametrize("text", ["0", "two", "1.5"])
def test_a_variable_that_is_no_number_is_refused_by_its_name(tmp_path, text):
    with raises(UsageError, setting="starts"):
        configuration(folder=tmp_path, variables={"STRIKEOUT_STARTS": text})


def test_a_broken_file_ends_a_command_with_2_and_does_not_stop_the_doctor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strikeout.toml").write_text("colour = 3\n")
    refused = CliRunner().invoke(strikeout, ["init", "a.book"])
    assert (refused.exit_code, (tmp_path / "a.book").exists()) == (2, False)
    assert "colour: not a setting" in refused.output
    told = CliRunner().invoke(strikeout, ["doctor"])
    assert told.exit_code == 1
    assert "colour: not a setting" in told.output


def test_a_key_file_is_looked_for_beside_the_file_that_names_it(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "strikeout.toml").write_text('key_file = "desk.key"\n')
    assert names_in_the_log(tmp_path / "deep", "--who", "ann") == ["ann"]
    assert (tmp_path / "desk.key").exists()
    assert not (tmp_path / "deep" / "a.book.key").exists()


def test_settings_allow_exactly_the_words_that_the_flags_do():
    flags = {param.name: param for param in calibrate.params}
    choices = {name: flag.type.choices for name, flag in flags.items() if isinstance(flag.type, click.Choice)}
    shared = {name for name in choices if name in SETTINGS}
    assert shared == {"weights", "residual", "feller", "select"}
    assert {name: SETTINGS[name].words for name in shared} == {name: tuple(choices[name]) for name in shared}
    assert SETTINGS["loss"].words == losses.NAMES  # the flag takes a scale too, so it is no choice of words
