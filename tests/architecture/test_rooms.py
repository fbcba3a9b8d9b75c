"""The shape of the house: which way imports point, how large a file may be, what it may be called."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py"), ROOT / "go.py"])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SOURCES = sorted(path for path in (ROOT / "native").rglob("*") if path.suffix in (".cpp", ".hpp", ".h", ".cc"))

LONGEST = 600
MOST_PARAMETERS = 8
SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "base", "core", "manager", "misc"}


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )


def named(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def concrete_bases(trees: list[ast.Module]) -> list[str]:
    """Classes that extend a class of the project that is no protocol and no error and has no abstract method."""
    known = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {
        node.name: [ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases] for node in known
    }
    abstract = {node.name for node in known if "abstractmethod" in ast.unparse(node) or "Protocol" in bases[node.name]}
    return sorted(
        f"{name}({base})"
        for name, of in bases.items()
        for base in of
        if base in bases and base not in abstract and not base.endswith("Error")
    )


def test_no_class_extends_a_concrete_class():
    """Composition instead. Left out are the types of other libraries: options of click, answers of pydantic."""
    rooms = ("cli", "service")
    trees = [ast.parse(path.read_text()) for path in (ROOT / "src").rglob("*.py") if path.parent.name not in rooms]
    assert concrete_bases(trees) == []
    assert concrete_bases([ast.parse("class A: ...\nclass B(A): ...")]) == ["B(A)"]


def test_imports_point_one_way():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_contract_holds_without_exceptions():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert contracts
    assert [contract["name"] for contract in contracts if "ignore_imports" in contract] == []


def test_ruff_finds_nothing():
    done = tool("ruff", "check", "--output-format", "concise")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_code_is_formatted():
    done = tool("ruff", "format", "--check")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nTo format it: python3 go.py tidy"


def test_mypy_strict_finds_nothing():
    done = tool("mypy")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", named(MODULES + TESTS + SOURCES))
def test_no_file_is_longer_than_one_idea(path):
    lines = len((ROOT / path).read_text().splitlines())
    assert lines <= LONGEST, f"{path} has {lines} lines; {LONGEST} is too many: it holds more than one idea, split it"


def long_signatures(source: str) -> list[str]:
    """Functions with more parameters than a reader keeps in mind, self and cls not counted."""
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    named = {f: [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)] for f in functions}
    return [f.name for f, names in named.items() if len(set(names) - {"self", "cls"}) > MOST_PARAMETERS]


@pytest.mark.parametrize("path", named(MODULES))
def test_no_function_takes_more_than_eight_parameters(path):
    assert long_signatures((ROOT / path).read_text()) == []


def test_a_ninth_parameter_would_be_noticed():
    assert long_signatures("def f(self, a, b, c, d, *, e, f, g, h): ...") == []
    assert long_signatures("def f(a, b, c, d, e, /, f, g, h, i): ...") == ["f"]


def test_no_file_or_folder_has_a_name_that_says_nothing():
    parts = {path: {*path.relative_to(ROOT).parent.parts, path.stem.strip("_")} for path in MODULES + TESTS + SOURCES}
    assert named([path for path, words in parts.items() if words & SAY_NOTHING]) == []


def test_every_module_opens_with_a_promise():
    """Rooms' own __init__.py may be empty; everything else begins with a docstring."""
    silent = [p for p in MODULES if p.read_text().strip() and not ast.get_docstring(ast.parse(p.read_text()))]
    assert named(silent) == []


def test_no_file_names_a_place_of_one_machine():
    texts = [*MODULES, *TESTS, *SOURCES, *ROOT.glob("*.md"), ROOT / "pyproject.toml", *(ROOT / "docs").rglob("*.md")]
    place = re.compile(r"(?<![\w.])/(home|root|work|Users|opt)/\w")
    assert named([path for path in texts if place.search(path.read_text())]) == []
