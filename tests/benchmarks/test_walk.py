"""The walk of ARCHITECTURE.md is true: the commands run through its files, and through no more than its table shows."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks.walk import COMMANDS, walks

TEXT = (Path(__file__).resolve().parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
PAGE = TEXT.split("## One quote from CSV to certificate")[1].split("\n## ")[0]
NAMED = [name for name in re.findall(r"`([\w/]+\.py)`", PAGE) if not name.startswith("tests/")]
MOST = {command: (int(files), int(n)) for command, files, n in re.findall(r"\| `(\w+)` \| (\d+) \| (\d+) \|", PAGE)}


@cache
def traced():
    return walks()


def test_the_commands_run_through_every_file_of_the_page():
    files = {file for seen in traced().values() for file, _ in seen}
    assert len(NAMED) > 30
    assert [name for name in NAMED if name not in files] == []


def test_the_table_has_every_command():
    assert list(MOST) == [command.split()[0] for command in COMMANDS]


@pytest.mark.parametrize("command", MOST)
def test_no_command_runs_through_more_than_the_page_shows(command):
    seen, (files, functions) = traced()[command], MOST[command]
    assert len({file for file, _ in seen}) <= files
    assert len(seen) <= functions
