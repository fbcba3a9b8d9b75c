"""An attacker writes a condition that runs for minutes, deaf to Ctrl-C, or that means something else tomorrow."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
from time import thread_time

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.quotes import selection
from strikeout.quotes.selection import select
from tests.raising import raises

BOOK = so.paper.quotes("small", seed=1)


def grown(times: int) -> str:
    """A text of ten to the power of this many letters, in a few characters."""
    return "replace(" * (times - 1) + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * (times - 1)


ONE_STEP = [
    f"instr({grown(7)}, {grown(5)} || 'b') > 0",
    f"replace({grown(7)}, {grown(5)} || 'b', '') > ''",
    f"trim({grown(6)}, {grown(6)}) > ''",
    f"trim({grown(4)}, {grown(4)}) = ''",
    f"{grown(7)} like '%' || {grown(4)} || 'b'",
    f"{grown(7)} glob '*' || {grown(4)} || 'b'",
    f"length(upper({grown(7)})) > 0",
]
LONG = f"substr({grown(4)}, 1, 9000)"  # room for an id behind it, below the longest text
MANY_STEPS = [
    "(select count(*) from quotes a, quotes b, quotes c, quotes d) > 0",
    f"(select max(instr({LONG} || a.id, substr({LONG}, 1, 4500) || b.id)) from quotes a, quotes b) > 0",
    f"(select count(*) from quotes a, quotes b where {LONG} || a.id like '%' || substr({LONG}, 1, 150) || b.id) > 0",
]


@pytest.mark.parametrize("where", ONE_STEP)
def test_no_single_step_of_a_condition_takes_long(where):
    """Processor time, so that it holds on a busy machine: nothing here takes a tenth of it."""
    begun = thread_time()
    try:
        select(BOOK[:1], where)
    except UsageError as error:
        assert "where" in error.sentence  # noqa: PT017  (an answer is as good: it only has to come)
    assert thread_time() - begun < 5.0


@pytest.mark.parametrize("where", MANY_STEPS)
def test_a_condition_of_many_slow_steps_is_stopped_at_its_limit(where, monkeypatch):
    monkeypatch.setattr(selection, "SECONDS", 0.5)
    begun = thread_time()
    with pytest.raises(UsageError) as refused:
        select(BOOK, where)
    assert "seconds of work" in refused.value.sentence
    assert thread_time() - begun < 10.0


@pytest.fixture
def _hears_ctrl_c():
    """Whatever handler an earlier test of this process has left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_hears_ctrl_c")
def test_a_condition_hears_ctrl_c(monkeypatch):
    """Within the second after, not after the limit of a minute that this one has."""
    monkeypatch.setattr(selection, "SECONDS", 60.0)
    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        select(BOOK, "(select count(*) from quotes a, quotes b, quotes c, quotes d) > 0")


@pytest.mark.parametrize(
    "where",
    [
        "date < date('now')",
        "date < date()",
        "julianday('NOW') > 0",
        "julianday() > 0",
        "strftime('%Y') > '2020'",
        "strftime('%Y', 'now', '-1 day') > '2020'",
        "date('2024-01-01', 'localtime') > '2020'",
        "date('2024-01-01', 'UTC') > '2020'",
        "date(word) > '2020'",
        "current_date > '2020'",
        "current_timestamp > '2020'",
        "random() > 0",
        "length(randomblob(4)) > 0",
        "changes() = 0",
        "sqlite_version() > ''",
        "time('now') > ''",
        "datetime('now') > ''",
        "unixepoch('now') > 0",
    ],
)
def test_a_condition_depends_neither_on_the_clock_nor_on_chance(where):
    book = so.Quotes(
        ids=BOOK.ids, contracts=BOOK.contracts, observed=BOOK.observed, labels={"word": ["now"] * 540, **BOOK.labels}
    )
    with pytest.raises(UsageError) as refused:
        select(book, where)
    assert "it asks for the" in refused.value.sentence


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("date(date, '+1 day') = '2024-01-03'", BOOK.labels["date"] == "2024-01-02"),
        ("strftime('%m', date) = '02'", [day[5:7] == "02" for day in BOOK.labels["date"]]),
        ("julianday(date) - julianday('2024-01-02') < 1", BOOK.labels["date"] == "2024-01-02"),
        ("trim(id, 'smal-') like '0%'", [True] * 540),
        ("trim(' x ') = 'x' and strike = 90", BOOK.contracts.strike == 90),
    ],
)
def test_dates_that_are_written_out_can_be_asked_for(where, rows):
    assert select(BOOK, where).tolist() == BOOK.ids[np.asarray(rows)].tolist()


def test_a_label_longer_than_conditions_read_is_no_trouble_unless_it_is_asked_for():
    labels = {"note": ["x" * 50_000] * 540, "desk": ["a"] * 540}
    book = so.Quotes(ids=BOOK.ids, contracts=BOOK.contracts, observed=BOOK.observed, labels=labels)
    assert len(select(book, "desk = 'a'")) == 540
    with raises(UsageError, where="note like '%x'"):
        select(book, "note like '%x'")


@pytest.mark.parametrize(
    "where",
    ["x" * 2_000_000, "(" * 900_000, "[" * 900_000, "'" * 900_001, '"' * 900_001, "not " * 200_000 + "1", "\ud800 = 1"],
    ids=lambda where: f"{len(where):,} of {where[:4]!a}",
)
def test_a_condition_of_any_length_is_answered_in_a_short_sentence(where):
    begun = thread_time()
    with pytest.raises(UsageError) as refused:
        select(BOOK, where)
    assert len(refused.value.sentence) < 2_000
    assert thread_time() - begun < 10.0


@pytest.mark.parametrize(
    "name", ["it's", "a'b'c", "'", 'say "x"', "a--b", "a/*b", "a]b", "[x]", "`", "a;b", "%", "a\nb"]
)
def test_a_column_of_any_name_can_be_asked_for_in_double_quotes(name):
    book = so.Quotes(
        ids=BOOK.ids,
        contracts=BOOK.contracts,
        observed=BOOK.observed,
        labels={name: np.arange(540) % 2, "c": [""] * 540},
    )
    asked = '"' + name.replace('"', '""') + '"'
    assert select(book, f"{asked} = 1 and c <> 'it''s'").tolist() == BOOK.ids[1::2].tolist()
    assert select(book, f"c <> 'it''s' and {asked} = 1 -- '").tolist() == BOOK.ids[1::2].tolist()


def test_numbers_beyond_those_of_sqlite_compare_as_numbers():
    lots = np.array([2**64 - 1, *range(539)], np.uint64)
    book = so.Quotes(ids=BOOK.ids, contracts=BOOK.contracts, observed=BOOK.observed, labels={"lots": lots})
    assert select(book, "lots > 1e18").tolist() == [BOOK.ids[0]]


def test_the_command_ends_by_itself(tmp_path):
    so.write_quotes(BOOK, tmp_path / "a.csv")
    words = ["forget", str(tmp_path / "a.csv"), "--where", ONE_STEP[0], "--preview"]
    ended = subprocess.run(
        [sys.executable, "-m", "strikeout", *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, "characters" in ended.stderr) == (2, True)
