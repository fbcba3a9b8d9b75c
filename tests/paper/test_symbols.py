"""The page of the paper's symbols: every name on it exists, and every erratum names a command that runs."""

from __future__ import annotations

import re
from functools import reduce

import pytest

import strikeout
from strikeout.paper.experiments.report import SECTIONS
from tests.architecture.markdown import ROOT

PAGE = (ROOT / "docs" / "explanation" / "the-paper-line-by-line.md").read_text()
SYMBOLS, ERRATA = (
    [line for line in PAGE.partition(heading)[2].partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    for heading in ("## Symbols", "## Errata")
)


@pytest.mark.parametrize("row", SYMBOLS)
def test_a_symbol_has_a_name_that_exists(row):
    names = re.findall(r"`strikeout\.([\w.]+)`", row)
    assert names or "argument of every operator" in row
    for name in names:
        assert reduce(getattr, name.split("."), strikeout) is not None


@pytest.mark.parametrize("row", ERRATA)
def test_an_erratum_has_a_command(row):
    command = row.rstrip(" |").rpartition("|")[2].strip()
    section, number = re.fullmatch(r"`strikeout paper (\w+) --quick`|the code below, (\d+)", command).groups()
    assert section in SECTIONS or f"\n# {number}. " in PAGE


def test_the_page_lists_what_it_should():
    assert len(SYMBOLS) > 15
    assert len(ERRATA) > 10


@pytest.mark.parametrize(
    "what", [*(f"proposition_{n}" for n in range(1, 8)), *(f"figure_{n}" for n in range(1, 6)), "table_1", "table_2"]
)
def test_everything_the_paper_numbers_has_a_test_under_its_number(what):
    names = re.findall(r"^def test_(\w+)", "".join(p.read_text() for p in (ROOT / "tests/paper").glob("*.py")), re.M)
    assert [name for name in names if name.startswith(f"{what}_")]
