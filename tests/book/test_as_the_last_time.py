"""A calibration of a book changes what is said and nothing else, in Python as on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

QUOTES = so.paper.quotes("small", seed=3)


@pytest.fixture
def book(tmp_path: Path):
    with so.Book.create(tmp_path / "small.book") as made:
        made.import_quotes(QUOTES)
        yield made


def test_what_is_not_said_stays_as_it_was(book):
    book.calibrate(loss="huber", panel=None, bounds={"correlation": (-0.9, 0.0)})
    after = book.calibrate(starts=2).after
    asked = {"loss": "huber", "bounds": {"correlation": (-0.9, 0.0)}, "starts": 2}
    assert dict(after.parameters) == so.calibrate(QUOTES, so.Heston(), **asked).parameters
    assert after.options["loss"] == "huber"
    assert book.calibrate(loss="squared").after.options["starts"] == 2


def test_fresh_puts_what_is_not_said_at_its_default(book):
    first = book.calibrate().after
    book.calibrate(loss="huber", starts=2, fixed={"mean_reversion": 2.0})
    other = book.calibrate(starts=3, fresh=True).after
    assert _without_source(other.options) == {**_without_source(first.options), "starts": 3}
    again = book.calibrate(fresh=True).after
    assert _without_source(again.options) == _without_source(first.options)
    assert again.parameters == first.parameters


def test_nothing_said_repeats_the_last_time_to_the_bit(book):
    first = book.calibrate(loss="huber", panel=None, starts=1).after
    assert book.calibrate().after.parameters == first.parameters


def test_the_model_stays_and_another_one_leaves_what_names_parameters_behind(book):
    book.calibrate(so.Bates(), panel=None, fixed={"jump_intensity": 0.1, "jump_mean": -0.1, "jump_deviation": 0.1})
    assert book.calibrate(weights="none").after.model.startswith("bates/")
    after = book.calibrate(so.Heston()).after
    assert after.model.startswith("heston/")
    assert after.options["fixed"] is None
    assert after.options["weights"] == "none"
    assert "panel" not in after.options


def test_a_progress_says_nothing_of_how_to_calibrate(book):
    book.calibrate(loss="huber", panel=None)
    seen = []
    assert book.calibrate(progress=lambda number, _: seen.append(number)).after.options["loss"] == "huber"
    assert seen


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        ([{"loss": "huber"}, {"starts": 2}, {}], ["--loss huber", "--starts 2", ""]),
        ([{"fixed": {"mean_reversion": 2.0}, "panel": None}, {"weights": "none"}],
         ["--fix mean_reversion=2 --panel none", "--weights none"]),
        ([{"through": "moments"}, {"starts": 2}, {"loss": "huber"}],
         ["--through moments", "--starts 2", "--loss huber"]),
        ([{"loss": "huber", "starts": 2}, {"fresh": True, "weights": "none"}, {"fresh": True}],
         ["--loss huber --starts 2", "--fresh --weights none", "--fresh"]),
        ([{"perturb": 1e-3, "panel": None}, {"loss": "huber"}], ["--perturb 1e-3 --panel none", "--loss huber"]),
    ],
)  # fmt: skip
def test_python_and_the_command_line_come_to_the_same(tmp_path, book, steps, lines):
    with so.Book.create(tmp_path / "typed.book") as other:
        other.import_quotes(QUOTES)
    for said, typed in zip(steps, lines, strict=True):
        change = book.calibrate(**said)
        done = CliRunner().invoke(strikeout, ["calibrate", str(tmp_path / "typed.book"), *typed.split()])
        assert done.exit_code == 0, done.output
        with so.Book.open(tmp_path / "typed.book") as other:
            version = other.status().version
        assert version.options == change.after.options
        assert version.parameters == change.after.parameters


def _without_source(options):
    return {name: value for name, value in options.items() if name != "source"}


def test_another_model_at_the_command_line_names_what_it_leaves_behind(book):
    book.calibrate(panel=None, loss="huber", starts=2, fixed={"mean_reversion": 2.0}, bounds={"correlation": (-0.9, 0)})
    words = ["calibrate", str(book.path), "--model", "black-scholes"]
    other = CliRunner().invoke(strikeout, words)
    left = "--bound (correlation), --fix (mean_reversion), --starts (2)"
    assert f"note: not as the last time, since the model is another: {left}." in other.stderr
    assert "as the last time: loss huber, panel none." in other.stderr
    assert "not as the last time" not in CliRunner().invoke(strikeout, words).stderr
