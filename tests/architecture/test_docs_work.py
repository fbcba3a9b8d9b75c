"""What the pages say is so: links lead somewhere, examples run, commands exist."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from tests.architecture.command_line import misused, root_command
from tests.architecture.markdown import ROOT, Page, pages

PAGES = pages() + pages("docs")
CONSOLE = {"console", "bash", "sh", "shell", "text", ""}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
every_page_with_examples = pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.language == "python" for block in page.blocks)],
    ids=lambda page: page.name,
)


def target(page: Page, link: str) -> Path:
    return (page.path.parent / link.partition("#")[0]) if link.partition("#")[0] else page.path


def typed(page: Page) -> list[str]:
    """The command lines a reader would type: after ``$`` where there is one, else lines that begin with a command."""
    texts = [block.text.replace("\\\n", " ") for block in page.blocks if block.language in CONSOLE]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    lines = [line.removeprefix("$ ") for line in lines]
    return [line for line in lines if line.startswith(("strikeout ", "python3 go.py ", "python -m strikeout "))]


@every_page
def test_every_link_leads_somewhere(page):
    inside = [(n, link) for n, link in page.links if not re.match(r"[a-z]+:", link)]
    dead = [f"line {n}: {link}" for n, link in inside if not target(page, link).exists()]
    pointed = [(n, link) for n, link in inside if "#" in link and target(page, link).suffix == ".md"]
    dead += [
        f"line {n}: {link}: no such heading"
        for n, link in pointed
        if target(page, link).exists() and link.partition("#")[2] not in Page(target(page, link)).anchors
    ]
    assert not dead, "\n".join(dead)


@every_page_with_examples
def test_every_example_runs(page, tmp_path, monkeypatch, shared_data):
    """The blocks of a page in order, in one namespace, in a folder with the data that the page names and nothing else.

    A failure names the page and the line. A page whose data are not on this machine is skipped, and the reason names
    them.
    """
    for name in page.data:
        shutil.copy(shared_data(name), tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in page.blocks:
        if block.language == "python" and block.is_run:
            exec(compile("\n" * block.line + block.text, page.name, "exec"), namespace)


@every_page
def test_examples_are_written_where_they_are_run(page):
    odd = [block.line for block in page.blocks if block.language in ("py", "python3", "pycon", "ipython")]
    assert odd == [], f"{page.name}: call the blocks at these lines `python`, or they are not run"


@every_page
def test_every_command_a_page_shows_exists(page):
    group = root_command()
    words = re.findall(r"^  (\w+) ", go_usage(), re.M)
    wrong = []
    for line in typed(page):
        parts = shlex.split(line, comments=True)
        if line.startswith("python3 go.py"):
            wrong += [f"{line}: go.py knows no {parts[2]!r}"] if parts[2] not in [*words, "help"] else []
            continue
        rest = parts[1:] if parts[0] == "strikeout" else parts[3:]
        wrong += [f"{line}: {why}" for why in misused(group, rest)]
    assert not wrong, "\n".join(wrong)


def go_usage() -> str:
    return runpy.run_path(str(ROOT / "go.py"))["usage"]()
