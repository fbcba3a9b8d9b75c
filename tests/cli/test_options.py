"""The small languages of the options: what they accept, and what they say of what they do not."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from strikeout.cli import strikeout
from strikeout.cli.options import Distinct, Named, NamedRange, NamedText
from strikeout.errors import UsageError
from strikeout.models.named import model_named
from tests.cli.typed import done, run, told
from tests.raising import raises


@click.command()
@click.option("--fix", cls=Distinct, type=Named(), multiple=True)
@click.option("--bound", cls=Distinct, type=NamedRange(), multiple=True)
@click.option("--constant", cls=Distinct, type=NamedText(), multiple=True)
def echo(**options):
    click.echo(repr(options))


def given(*words):
    done = CliRunner().invoke(echo, words)
    assert done.exit_code == 0, done.output
    return eval(done.output)


def refused(*words):
    done = CliRunner().invoke(echo, words)
    assert done.exit_code == 2
    return done.output


def test_names_and_values_become_mappings():
    assert given("--fix", "a=2", "--fix", "b = -1e-3") == {"fix": {"a": 2.0, "b": -0.001}, "bound": {}, "constant": {}}
    assert given("--bound", "a=0.1:5")["bound"] == {"a": (0.1, 5.0)}


def test_a_constant_is_a_number_where_it_reads_as_one():
    assert given("--constant", "rate=0.01", "--constant", "source=x=y")["constant"] == {"rate": 0.01, "source": "x=y"}


@pytest.mark.parametrize("word", ["a", "a=", "=2", "a=two", "a=nan", "a=inf"])
def test_what_is_not_a_name_and_a_finite_number_is_refused_with_the_form(word):
    assert "NAME=VALUE" in refused("--fix", word)


@pytest.mark.parametrize("word", ["a=1", "a=1:", "a=:2", "a=1:x", "1:2"])
def test_what_is_not_a_range_is_refused_with_the_form(word):
    assert "NAME=LOW:HIGH" in refused("--bound", word)


def test_the_same_name_twice_is_refused():
    assert "a is given twice" in refused("--fix", "a=1", "--fix", "a=2")


def test_a_misspelt_choice_is_answered_with_the_nearest():
    ended = CliRunner().invoke(strikeout, ["calibrate", "any.csv", "--model", "hestno"])
    assert ended.exit_code == 2
    assert "Did you mean heston?" in ended.output
    with raises(UsageError, model="bate"):
        model_named("bate")


def test_a_set_of_rules_without_its_name_is_answered_with_the_right_form(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done("sample", "page.csv")
    ended = run("inspect", "page.csv", "--check", "desk")
    assert ended.exit_code == 2
    assert "preset=desk" in ended.stderr
    assert run("inspect", "page.csv", "--check", "preset=desk").exit_code != 2


def test_a_constant_that_the_file_has_is_named_as_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done("sample", "page.csv")
    ended = run("inspect", "page.csv", "--constant", "strike=3")
    assert ended.exit_code == 2
    assert "--constant gives strike" in ended.stderr


def test_init_shows_whether_a_second_person_must_approve(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told("init", "a.book", "--approval", "two-person")["approval"] == "two-person"
    assert "two-person" in done("init", "b.book", "--approval", "two-person").stdout


def test_a_copy_without_its_key_file_is_answered_with_the_audit_by_public_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    public = told("init", "a.book")["key"]
    (tmp_path / "a.book").rename(tmp_path / "copy.book")
    ended = run("log", "copy.book")
    assert ended.exit_code == 3
    assert "--key" in ended.stderr
    assert done("log", "copy.book", "--key", public).exit_code == 0
