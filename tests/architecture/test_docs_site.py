"""The pages of the documentation site: complete, and without a link that leads out of it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import strikeout

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    found = importlib.util.spec_from_file_location("site_pages", ROOT / "site" / "pages.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    target = tmp_path_factory.mktemp("site") / "docs"
    module.write_pages(target)
    return target


def test_every_page_of_the_docs_is_a_page_of_the_site(pages):
    ours = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*") if path.is_file()}
    assert ours
    assert {path for path in ours if not (pages / path).is_file()} == set()


def test_no_link_leads_out_of_the_site(pages):
    links = 0
    for path in pages.rglob("*.md"):
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" in target:
                continue
            links += 1
            there = (path.parent / target).resolve()
            assert there.is_file(), f"{path.relative_to(pages)} links to {target}"
            assert there.is_relative_to(pages.resolve()), (
                f"{path.relative_to(pages)} links to {target}, outside the site"
            )
    assert links > 200


def test_the_api_page_has_every_public_name(pages):
    text = (pages / "reference" / "api.md").read_text()
    directives = set(re.findall(r"^::: \S+\.(\w+)$", text, re.M))
    modules = {"american", "errors", "paper", "results", "scale", "states", "synthetic"}
    assert set(strikeout.__all__) - {"__version__"} - modules <= directives
    assert set(strikeout.results.__all__) | set(strikeout.states.__all__) <= directives
    assert "errors" in directives
