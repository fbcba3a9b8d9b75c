"""What an error advises can be typed as it stands, and helps; what was taken over is named where it has a part."""

from __future__ import annotations

import pytest

import strikeout as so
from strikeout.cli import exit_codes
from strikeout.text import Advice
from tests.cli.typed import done, run


@pytest.mark.parametrize(
    ("last", "asked", "remedy"),
    [
        ("--perturb 1e-3 --panel none", "--panel date", "--perturb 0"),
        ("--perturb 1e-3 --panel none", "--panel auto", "--perturb 0"),
        ("--perturb 1e-3 --panel none", "--through moments", "--perturb 0"),
    ],
)
def test_the_remedy_against_what_is_taken_over_can_be_typed_and_helps(book, last, asked, remedy):
    done("calibrate", book, *last.split())
    ended = run("calibrate", book, *asked.split())
    assert ended.exit_code == 2
    assert remedy in ended.stderr.replace('"', "")
    assert "As the last time: " in ended.stderr
    done("calibrate", book, *asked.split(), *remedy.split())


@pytest.mark.parametrize(
    "asked", [["--perturb", "-1"], ["--bound", "correlation=0.5:-0.5"], ["--fix", "correlation=3"], ["--fix", "nu=1"]]
)
def test_what_was_taken_over_is_not_told_of_where_it_has_no_part_in_the_error(book, asked):
    done("calibrate", book, "--loss", "huber", "--panel", "none", "--starts", "2")
    ended = run("calibrate", book, *asked)
    assert ended.exit_code == 2
    assert "s the last time" not in ended.stderr


def test_settings_taken_over_are_told_of_where_too_few_quotes_may_come_of_them(folder, quotes):
    so.write_quotes(quotes[:6], folder / "few.csv")
    done("init", "few.book")
    done("import", "few.book", "few.csv")
    known = ("mean_reversion=2", "long_variance=0.04", "vol_of_vol=0.3", "correlation=-0.7")
    done("calibrate", "few.book", "--select", "otm", "--panel", "none", *(w for one in known for w in ("--fix", one)))
    ended = run("calibrate", "few.book", "--fix", "mean_reversion=2")
    assert ended.exit_code == 3
    assert "cannot determine 4 free parameters" in ended.stderr
    assert "As the last time: panel none, select otm. With --fresh" in ended.stderr


def test_what_quotes_lack_is_answered_in_the_words_of_the_command_line(folder, quotes):
    absurd = so.Quotes(
        ids=quotes.ids, contracts=quotes.contracts, observed=[0.0, 1e3, *quotes.observed[2:]], labels=quotes.labels
    )
    with so.Book.create("w.book") as made:
        made.import_quotes(absurd)
    (folder / "quotes.txt").write_bytes((folder / "quotes.csv").read_bytes())
    forget = f"({exit_codes.ADVICE[Advice.STRIKE_OUT]})"
    for words, said in (
        (["w.book", "--weights", "vega"], f"Strike them out {forget}, or use price residuals"),
        (["w.book", "--weights", "relative"], f"Strike them out {forget}, or use --weights spread or --weights none."),
        (["w.book", "--weights", "spread"], "or use --weights vega."),
        (["w.book", "--bound", "correlation=0.5:-0.5"], "Give lower before upper (--bound NAME=LOW:HIGH)."),
        (["quotes.txt"], "Rename it."),
    ):
        ended = run("calibrate", *words)
        assert ended.exit_code in (2, 3)
        assert said in ended.stderr
