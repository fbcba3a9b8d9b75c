"""The command lines of the tutorials, typed one after the other in an empty folder, do what the page says."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from strikeout.cli import strikeout
from tests.architecture.markdown import ROOT, Page

FINDS = {"inspect": 1}  # rows would be rejected, and the command says so


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("a-day-of-index-options", ["bad.csv", "certificate.json", "chain.csv", "retained.csv", "smiles.html"]),
        ("a-bad-feed", ["certificate.json", "influence.png", "retained.csv", "week.csv"]),
    ],
)
def test_the_commands_of_a_tutorial_run_in_order(name, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    page = Page(ROOT / "docs" / "tutorial" / f"{name}.md")
    typed = [
        shlex.split(line.removeprefix("$ strikeout "))
        for block in page.blocks
        if block.language == "console"
        for line in block.text.splitlines()
    ]
    assert typed[0][0] == "sample"
    for words in typed:
        done = CliRunner().invoke(strikeout, words)
        assert done.exit_code == FINDS.get(words[0], 0), f"{words}: {done.output}"
    assert "The certificate holds." in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == files
