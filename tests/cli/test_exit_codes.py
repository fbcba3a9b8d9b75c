"""Every way a command can end has one code, and no way shows a traceback."""

from __future__ import annotations

import json

import click
import pytest

from strikeout import errors
from strikeout.cli.exit_codes import EXIT_CODES, conclude, plain


def every_error():
    waiting, found = [errors.StrikeoutError], []
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting += kind.__subclasses__()
    return found


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_ends_with_the_code_of_its_class_and_its_sentence(kind, capsys):
    assert conclude(kind("What was found.", row=3), as_json=False) == kind.exit_code
    assert kind.exit_code in EXIT_CODES
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "strikeout: What was found.\n")


def test_with_json_an_error_is_an_object_with_its_facts(capsys):
    assert conclude(errors.ColumnError("No strike.", missing="strike"), as_json=True) == 2
    told = json.loads(capsys.readouterr().err)
    assert told == {"error": {"code": "column", "sentence": "No strike.", "missing": "strike"}}


def test_an_error_of_our_own_is_one_line_that_says_how_to_see_more(capsys):
    assert conclude(ZeroDivisionError("division by zero"), as_json=False) == 4
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "ZeroDivisionError: division by zero." in said
    assert "STRIKEOUT_TRACEBACK=1" in said


def test_asked_for_the_traceback_is_shown(monkeypatch):
    monkeypatch.setenv("STRIKEOUT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        conclude(ZeroDivisionError(), as_json=False)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()], ids=repr)
def test_an_interruption_ends_quietly(error, capsys):
    assert conclude(error, as_json=False) == 130
    assert capsys.readouterr() == ("", "")


def test_what_click_finds_wrong_is_usage_and_points_to_the_help(capsys):
    assert conclude(click.UsageError("No such option."), as_json=False) == 2
    assert capsys.readouterr().err == "strikeout: No such option. See: strikeout --help\n"


def test_facts_become_plain_values():
    assert plain({"a": (1, 2.5, None), "b": float("nan")}) == {"a": [1, 2.5, None], "b": None}
    assert plain(range(1000)) == list(range(20))
    assert plain(object)[:6] == "<class"
