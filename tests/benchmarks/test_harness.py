"""The harness: what it times, what it writes, and when it calls a promise broken."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle, groupby
from pathlib import Path

import pytest

from benchmarks import timing
from benchmarks.__main__ import BENCHMARKS
from benchmarks.rows import Result, Row
from benchmarks.timing import interleave, same

ROOT = Path(__file__).parents[2]


def run(*words: str, to: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words, "--to", str(to)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "name",
    [
        "pass",
        "calibrate",
        "scale",
        "resolve",
        "panel",
        "markets",
        "reading",
        "rules",
        "book",
        "american",
        "models",
        "elementary",
        "startup",
    ],
)
def test_a_quick_run_writes_rows_with_a_time_or_the_reason_why_not(name: str, tmp_path: Path):
    finished = run(name, "--quick", to=tmp_path)
    assert finished.returncode == 0, finished.stderr
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["benchmark"] == name
    assert written["quick"] is True
    assert any(row["candidate"].startswith(("strikeout", "import strikeout")) for row in written["rows"])
    for row in written["rows"]:
        assert row["seconds"] is None or row["seconds"] > 0
        assert row["seconds"] is not None or "not installed" in row["note"]
        assert row["candidate"].split()[0] in finished.stdout


def test_an_unknown_benchmark_is_refused_by_name(tmp_path: Path):
    finished = run("speed", to=tmp_path)
    assert finished.returncode == 2
    assert "'speed'" in finished.stderr
    assert ", ".join(BENCHMARKS) in finished.stderr


class Clock:
    """A clock that only work moves: what the harness makes of times can then be told to the digit."""

    now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


def test_candidates_take_turns(clock: Clock):
    turns: list[str] = []

    def note(name: str) -> None:
        turns.append(name)
        clock.wait(0.003)

    interleave({"a": same(lambda: note("a")), "b": same(lambda: note("b"))}, rounds=3)
    # Warm-up and three rounds, the calls within a turn counted as one.
    assert [name for name, _ in groupby(turns)] == ["a", "b"] * 4


def test_a_candidate_that_takes_three_times_as_long_is_three_times_slower(clock: Clock):
    timed = interleave({"short": same(lambda: clock.wait(0.004)), "long": same(lambda: clock.wait(0.012))}, rounds=5)
    assert timed["short"].seconds == pytest.approx(0.004)
    assert timed["long"].ratio == pytest.approx(3.0)
    assert timed["short"].ratio == 1


def test_a_turn_counts_as_its_quickest_call(clock: Clock):
    waits = cycle([0.004, 0.009, 0.030])
    found = interleave({"disturbed": same(lambda: clock.wait(next(waits)))}, rounds=4)
    assert found["disturbed"].seconds == pytest.approx(0.004)


def test_making_fresh_work_is_not_timed(clock: Clock):
    def made_slowly() -> Callable[[], None]:
        clock.wait(0.02)
        return lambda: clock.wait(0.003)

    assert interleave({"slowly made": made_slowly}, rounds=3)["slowly made"].seconds == pytest.approx(0.003)


def test_what_takes_longer_than_it_may_misses_its_promise():
    within, beyond = (Row.allowed("t", most=0.3, taken=taken) for taken in (0.2, 0.4))
    assert (within.is_met, beyond.is_met) == (True, False)
    assert Result("b", False, (within, beyond), {}).missed == (beyond,)


def test_a_promise_is_broken_when_the_peer_is_less_slow_than_required():
    kept = Row("t", "peer", seconds=1.0, ratio=8.0, required=8.0)
    broken = Row("t", "peer", seconds=1.0, ratio=7.9, required=8.0)
    silent = Row("t", "peer", seconds=1.0, ratio=0.1)
    assert Result("n", False, (kept, broken, silent), {}).missed == (broken,)


def test_nothing_to_time_is_refused():
    with pytest.raises(ValueError, match="0 candidates"):
        interleave({}, rounds=3)


def test_every_benchmark_has_a_row_in_its_how_to():
    page = (ROOT / "docs" / "how-to" / "run-the-benchmarks.md").read_text()
    assert [name for name in BENCHMARKS if f"\n| `{name}` |" not in page] == []


def test_the_walk_counts_what_every_command_runs_through():
    from benchmarks.walk import run

    facts = run(is_quick=True, is_full=False).facts
    assert list(facts) == ["import", "calibrate", "forget", "apply", "verify", "erase"]
    assert all(int(text.split()[0]) > 10 for text in facts.values())
