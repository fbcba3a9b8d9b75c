"""Examples in docstrings give what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
SHOWN = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_examples_of_a_module_give_what_they_show(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(import_module(name))
    assert found.attempted
    assert not found.failed, f"{found.failed} of {found.attempted} examples of {name} differ"
