"""An attacker puts terminal codes into labels, ids and names, and wants to hide, fake or rewrite what a clerk reads."""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pytest

import strikeout as so
from tests.cli.typed import run

CLEAR = "\x1b[2J\x1b]0;owned\x07"  # clears the screen, renames the window
FAKE = "feed\nverified  everything holds"  # a line of its own
REVERSED = "abc\u202edcb\u2066"  # shown in another order than it is
EVIL = [CLEAR, FAKE, REVERSED, "a\rb", "\x9b31mred", "back\x08\x08space", "line\u2028separator", "\x7fdel"]


def unprintable(text: str) -> set[str]:
    return {sign for sign in text if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp", "Cs")}


@pytest.fixture(scope="module")
def quotes():
    plain = so.paper.quotes("small", seed=5)[:80]
    texts = np.array([EVIL[k % len(EVIL)] for k in range(80)], object)
    ids = [f"{text}#{k}" for k, text in enumerate(texts)]
    labels = {"source": texts, "underlying": texts, "desk\x1b[31m": texts, "date": plain.labels["date"]}
    return so.Quotes(ids=ids, contracts=plain.contracts, observed=plain.observed, labels=labels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, quotes):
    made = tmp_path_factory.mktemp("folder")
    so.write_quotes(quotes, made / "a\x1b[31m.csv")
    so.write_quotes(quotes[:40], made / "b.csv")
    frame = quotes.to_frame().with_columns(pl.all().cast(pl.String))
    garbled = frame[:1].with_columns(pl.lit(CLEAR).alias("strike"), pl.lit(FAKE).alias("right"))
    pl.concat([garbled, frame]).write_csv(made / "bad.csv")
    return made


@pytest.fixture
def there(folder, monkeypatch):
    """In the folder of the files."""
    monkeypatch.chdir(folder)


ON_FILES = [
    ("inspect", "a\x1b[31m.csv"),
    ("inspect", "bad.csv"),
    ("rules", "a\x1b[31m.csv"),
    ("calibrate", "a\x1b[31m.csv", "--report", "--pool"),
    ("calibrate", "bad.csv"),
    ("calibrate", "bad.csv", "--max-reject", "0"),
    ("influence", "a\x1b[31m.csv", "--by", "source"),
    ("influence", "a\x1b[31m.csv"),
    ("forget", "a\x1b[31m.csv", "--where", "strike = 90", "--preview"),
    ("forget", "a\x1b[31m.csv", "--ids", CLEAR),
    ("forget", "a\x1b[31m.csv", "--where", f"source = '{CLEAR}' and"),
    ("forget", "a\x1b[31m.csv", "--where", f'"{CLEAR}" = 1'),
    ("calibrate", "a\x1b[31m.csv", "--panel", "source\x1b[31m", "--pool"),
    ("calibrate", f"none{CLEAR}.csv"),
    ("calibrate", "b.csv", "--constant", f"{CLEAR}=1"),
    ("inspect", "b.csv", "--profile", CLEAR),
]


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("words", ON_FILES, ids=lambda words: " ".join(map(ascii, words)))
def test_no_command_on_a_file_prints_a_terminal_code(words):
    ended = run(*words)
    assert ended.exit_code != 4, ended.output
    assert unprintable(ended.stdout + ended.stderr) == set()


@pytest.mark.usefixtures("there")
def test_no_command_on_a_book_prints_a_terminal_code_and_no_label_makes_up_a_line():
    where = "strike = 90"
    told = {}
    for words in [
        ("init", "a.book"),
        ("import", "a.book", "a\x1b[31m.csv", "--who", CLEAR),
        ("import", "a.book", "a\x1b[31m.csv"),
        ("calibrate", "a.book", "--panel", "none", "--pool", "--reason", "bad-feed", "--note", FAKE),
        ("calibrate", "a.book", "--panel", "none", "--pool"),
        ("request", "a.book", "forget", "--where", f"source = '{CLEAR}' or strike = 80"),
        ("requests", "a.book"),
        ("forget", "a.book", "--where", where, "--reason", "bad-feed", "--note", CLEAR),
        ("forget", "a.book", "--where", where, "--reason", "bad-feed"),
        ("apply", "a.book"),
        ("influence", "a.book", "--by", "source"),
        ("log", "a.book"),
        ("status", "a.book"),
        ("summary", "a.book"),
        ("verify", "a.book"),
        ("doctor", "a.book"),
        ("compare", "a.book", "a.book"),
        ("erase", "a.book", "--where", where),
        ("erase", "a.book", "--ids", CLEAR),
        ("forget", "a.book", "--ids", f"{CLEAR}#0,{FAKE}"),
        ("calibrate", "a.book", "--panel", "source", "--pool"),
        ("forget", "a.book", "--where", "expiry_years < 0.05"),
    ]:
        told[words] = run(*words)
        assert told[words].exit_code != 4, (words, told[words].output)
        assert unprintable(told[words].stdout + told[words].stderr) == set(), words
        assert "\nverified  everything" not in told[words].output
    assert sum(ended.exit_code == 0 for ended in told.values()) > 10, {k: v.exit_code for k, v in told.items()}


@pytest.mark.usefixtures("there")
def test_python_s_summaries_print_no_terminal_code(quotes):
    reading = so.inspect_quotes("bad.csv")
    calibration = so.calibrate(quotes, so.Heston(), panel="source", pool=True)
    for text in (
        quotes.summary(),
        reading.summary(),
        calibration.summary(),
        calibration.report(),
        so.influence(calibration, "source").summary(),
        so.forget(calibration, ids=quotes.ids[:3]).summary(),
        *(str(issue) for issue in reading.issues),
    ):
        assert unprintable(text) == set()
        assert "\nverified  everything" not in text


def test_a_terminal_gets_no_code_that_is_not_ours(monkeypatch, capsys):
    from strikeout.cli import terminal
    from strikeout.tables import Table

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    terminal.show(CLEAR, Table((CLEAR, "b"), [(CLEAR, FAKE)]), terminal.facts([(CLEAR, FAKE)]))
    terminal.show_lines(CLEAR)
    terminal.note(CLEAR)
    out, err = capsys.readouterr()
    assert "\x1b]0;" not in out + err
    assert "\x1b[2J" not in out + err
    assert "\x07" not in out + err
    assert r"\x1b[2J" in out
