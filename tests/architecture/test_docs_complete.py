"""Whatever a user can name is explained in docs/reference, or the build fails."""

from __future__ import annotations

import ast
import re

import click
import pytest

import strikeout
from tests.architecture.command_line import commands, root_command
from tests.architecture.markdown import ROOT, pages

REFERENCE = pages("docs/reference")
ENTRY = re.compile(r"^ *(#+ |\| *|[-*] +)")


def has_entry(name: str) -> bool:
    """A heading, a table row or a list item of the reference begins with ``name`` in code type.

    As in ``## `calibrate(quotes, model)` `` or ``| `Q101` | a needed value is missing |``.
    """
    entry = re.compile(rf"{ENTRY.pattern}`(so\.|strikeout\.)?{re.escape(name)}(?!\w)[^`]*`")
    return any(entry.match(line) for page in REFERENCE for line in page.prose)


def row_codes() -> set[str]:
    trees = [ast.parse(path.read_text()) for path in (ROOT / "src" / "strikeout" / "quotes").rglob("*.py")]
    texts = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"Q\d{3}", text)}


MODULES = (strikeout, strikeout.paper, strikeout.results, strikeout.scale, strikeout.states, strikeout.synthetic)


@pytest.mark.parametrize("name", sorted({name for module in MODULES for name in module.__all__} - {"__version__"}))
def test_every_public_name_has_an_entry(name):
    assert has_entry(name), f"no heading, table row or list item of docs/reference begins with `{name}`"


def test_every_command_and_option_is_explained_in_its_own_section():
    unexplained = []
    for path, command in commands(root_command()):
        section = next(filter(None, (page.section(path) for page in REFERENCE)), None)
        if section is None:
            unexplained.append(f"{path}: no heading of docs/reference names it")
            continue
        options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        names = {max(option.opts, key=len) for option in options} - {"--help"}
        missing = sorted(name for name in names if not re.search(rf"`[^`]*{name}(?![\w-])", section))
        unexplained += [f"{path}: {name} is not in its section" for name in missing]
    assert not unexplained, "\n".join(unexplained)


def test_every_row_code_has_an_entry():
    codes = row_codes()
    assert codes, "no row codes (Q and three digits) were found in src/strikeout/quotes"
    missing = sorted(code for code in codes if not has_entry(code))
    assert not missing, f"no entry in docs/reference: {', '.join(missing)}"


def test_no_entry_explains_a_row_code_that_is_gone():
    entries = [re.match(rf"{ENTRY.pattern}`(Q\d{{3}})`", line) for page in REFERENCE for line in page.prose]
    assert sorted({entry[2] for entry in entries if entry} - row_codes()) == []


def test_every_page_can_be_reached_from_the_readme():
    by_path = {page.path.resolve(): page for page in pages() + pages("docs")}
    reached, waiting = set(), [(ROOT / "README.md").resolve()]
    while waiting:
        path = waiting.pop()
        if path in by_path and path not in reached:
            reached.add(path)
            waiting += [(path.parent / link.partition("#")[0]).resolve() for _, link in by_path[path].links]
    lost = sorted(page.name for path, page in by_path.items() if path not in reached)
    assert not lost, f"no chain of links leads from README.md to: {', '.join(lost)}"


def test_every_test_that_the_threat_model_names_is_there():
    text = (ROOT / "docs" / "explanation" / "threat-model.md").read_text()
    named = re.findall(r"`((?:tests/\w+/)?test_\w+\.py)`", text)
    assert len(named) > 15
    there = {name: ROOT / name if "/" in name else ROOT / "tests" / "attacks" / name for name in named}
    assert [name for name, path in there.items() if not path.is_file()] == []


def test_the_threat_model_names_every_test_of_an_attack_and_no_other():
    page = (ROOT / "docs/explanation/threat-model.md").read_text()
    named = set(re.findall(r"`(test_\w+\.py)`", page))
    assert named == {path.name for path in (ROOT / "tests/attacks").glob("test_*.py")}
    elsewhere = re.findall(r"`(tests/\w+/test_\w+\.py)`", page)
    assert [path for path in elsewhere if not (ROOT / path).exists()] == []
    assert elsewhere
