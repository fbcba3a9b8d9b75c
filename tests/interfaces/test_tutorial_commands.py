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
    typed = lines_of(page)
    assert typed[0][0] == "sample"
    for words in typed:
        done = CliRunner().invoke(strikeout, words)
        assert done.exit_code == FINDS.get(words[0], 0), f"{words}: {done.output}"
    assert "Verified: the state is right" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == files


@pytest.mark.parametrize(
    ("name", "files", "says"),
    [
        ("first-calibration", ["quotes.csv", "smiles.html"], "converged"),
        ("first-forgetting", ["certificate.json", "quotes.csv", "retained.csv"], "Verified: the state is right"),
    ],
)
def test_what_a_tutorial_types_after_its_python_runs_on_the_file_it_wrote(name, files, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    page = Page(ROOT / "docs" / "tutorial" / f"{name}.md")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in page.blocks:
        if block.language == "python":
            exec(compile(block.text, page.name, "exec"), namespace)
    for words in lines_of(page):
        done = CliRunner().invoke(strikeout, words)
        assert done.exit_code == 0, f"{words}: {done.output}"
    assert says in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def lines_of(page: Page) -> list[list[str]]:
    """The words of every command line of a page, without the name of the program."""
    return [
        shlex.split(line.removeprefix("$ strikeout "))
        for block in page.blocks
        if block.language == "console"
        for line in block.text.splitlines()
    ]
