"""Tests that cannot pass without checking anything, and that no busy machine can fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
CLOCKS = {"perf_counter", "perf_counter_ns", "process_time", "thread_time", "monotonic", "timeit", "time_ns"}
# Who may look at a clock, and why.
TIMED = {
    "fuzz/__main__.py": "tries inputs for as many minutes as it is given",
    "fuzz/targets.py": "an input that takes many seconds of the processor is a finding",
    "scale/test_lake_fleet.py": "waits for another process, and fails if it hangs",
    "service/test_reading.py": "waits for a worker to start, and fails if it does not",
    "laws/clerks.py": "waits for other processes, and says so if they hang",
    "attacks/test_hang_with_a_condition.py": "that a limit in seconds of the processor is kept is the claim itself",
}


def own(test: ast.AST) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Every node of a test with the nodes around it, without those of functions inside it."""

    def below(node: ast.AST, around: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            yield child, around
            yield from below(child, (*around, child))

    return below(test, ())


def named_tests(tree: ast.AST) -> list[ast.FunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]


def is_silent(handler: ast.ExceptHandler) -> bool:
    return all(isinstance(line, ast.Pass | ast.Return) or _is_ellipsis(line) for line in handler.body)


def _is_ellipsis(line: ast.AST) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def is_guarded(around: tuple[ast.AST, ...]) -> bool:
    """True for an assert that a test may pass by: under an ``if`` whose other side asserts nothing."""
    ifs = [node for node in around if isinstance(node, ast.If)]
    return any(not any(isinstance(n, ast.Assert) for line in node.orelse for n in ast.walk(line)) for node in ifs)


def faults(source: str) -> list[str]:
    """What in these tests lets one pass without a check, by line."""
    found = []
    for test in named_tests(ast.parse(source)):
        nodes = list(own(test))
        found += [(n, "return: what is not to be checked is assume()d, counted or another test") for n, _ in nodes
                  if isinstance(n, ast.Return)]  # fmt: skip
        found += [
            (n, "except that says nothing") for n, _ in nodes if isinstance(n, ast.ExceptHandler) and is_silent(n)
        ]
        found += [(n, "assert of a constant") for n, _ in nodes if isinstance(n, ast.Assert) and _is_constant(n.test)]
        asserts = [around for n, around in nodes if isinstance(n, ast.Assert)]
        calls = [n for n, around in nodes if isinstance(n, ast.Expr | ast.With) and not around]
        if asserts and not calls and all(map(is_guarded, asserts)):
            found.append((test, "every assert is under an if: count the cases that get there"))
    return [f"line {getattr(node, 'lineno', 0)}: {why}" for node, why in found]


def _is_constant(test: ast.AST) -> bool:
    if isinstance(test, ast.IfExp):
        return _is_constant(test.body) or _is_constant(test.orelse)
    return isinstance(test, ast.Constant)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_no_test_can_pass_without_checking_anything(path):
    found = faults(path.read_text(encoding="utf-8"))
    assert not found, "\n".join(found)


def clocks(source: str) -> set[str]:
    tree = ast.parse(source)
    names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    names |= {alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for alias in n.names}
    return names & CLOCKS


def test_no_test_looks_at_a_clock():
    """How long something takes is a row of benchmarks/, where a machine can be quiet; tests count work."""
    reading = {p.relative_to(TESTS).as_posix() for p in FILES if clocks(p.read_text(encoding="utf-8"))}
    assert reading == set(TIMED)
    assert all(TIMED.values())


@pytest.mark.parametrize(
    "source",
    [
        "def test_a():\n    if x:\n        return\n    assert y",
        "def test_a():\n    try:\n        assert x\n    except ValueError:\n        pass\n    assert y",
        "def test_a():\n    for x in y:\n        if x:\n            assert x",
        "def test_a():\n    assert x if y else True",
        "def test_a():\n    assert True",
    ],
)
def test_a_way_round_the_checks_would_be_noticed(source):
    assert faults(source)


@pytest.mark.parametrize(
    "source",
    [
        "def test_a():\n    def inner():\n        return 1\n    assert inner()",
        "def test_a():\n    if x:\n        assert y\n    else:\n        assert z",
        "def test_a():\n    for x in y:\n        if x:\n            assert x\n    assert y",
        "def test_a():\n    try:\n        x()\n    except ValueError:\n        reject()\n    assert y",
    ],
)
def test_what_always_checks_is_let_through(source):
    assert faults(source) == []


def test_a_look_at_a_clock_would_be_noticed():
    assert clocks("import time\nassert time.process_time() < 1") == {"process_time"}
    assert clocks("from time import thread_time as now") == {"thread_time"}


# Sentences may be reworded: errors are checked with ``tests.raising.raises``, by class, mentioned arguments and facts.
# This many checks still match a sentence, most of them of errors without facts. The number may only fall.
MOST_MATCHED = 261


def matched_sentences(source: str) -> list[int]:
    """Lines that compare the sentence of an error: ``pytest.raises(..., match=...)``."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "raises"
        and any(keyword.arg == "match" for keyword in node.keywords)
    ]


def test_checks_of_sentences_do_not_increase():
    found = {path: len(matched_sentences(path.read_text())) for path in FILES}
    total = sum(found.values())
    most = sorted(found, key=lambda path: -found[path])[:5]
    named = ", ".join(f"{path.relative_to(TESTS).as_posix()} {found[path]}" for path in most)
    assert total <= MOST_MATCHED, f"{total} checks match sentences ({named}, ...): use tests.raising.raises instead"


def test_a_matched_sentence_is_found():
    assert matched_sentences('with pytest.raises(UsageError, match="give one"):\n    go()') == [1]
    assert matched_sentences('with raises(UsageError, mentions={"panel"}):\n    go()') == []
