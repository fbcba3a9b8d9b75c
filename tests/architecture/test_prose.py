"""No program reads prose: what decides something is an enumeration or a fact, and sentences are only rendered."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "strikeout"
PROSE = {"sentence", "sentences", "why", "clause", "refusal", "failure", "termination", "found_text", "message"}
CUTTING = {
    "capitalize", "casefold", "count", "endswith", "find", "index", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "replace", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "startswith", "strip", "swapcase", "title", "upper",
}  # fmt: skip
MATCHING = {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
# Attributes of these names that hold no sentence: the reason of a ledger entry is a value with a code.
OTHERS = {("store", "why"), ("book/approvals.py", "why"), ("cli/requests.py", "why"), ("cli/book_commands.py", "why")}
# The one place that cuts the message of another library, to show its first line.
ALLOWED = {("text.py", "first_line")}


def is_prose(node: ast.expr, caught: set[str], where: str) -> bool:
    """Return whether an expression is a sentence: an attribute that holds one, or the text of an exception."""
    match node:
        case ast.Attribute(attr=name) if name in PROSE:
            return not any(where.startswith(room) and name == other for room, other in OTHERS)
        case ast.Name(id="sentence" | "clause"):
            return True
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in caught
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return is_prose(inner, caught, where)
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
            return name in caught
        case ast.FormattedValue(value=inner):
            return is_prose(inner, caught, where)
        case ast.JoinedStr(values=parts):
            return any(is_prose(part, caught, where) for part in parts)
    return False


def caught_names(tree: ast.AST) -> set[str]:
    """Return the names under which a module catches exceptions, or takes them as parameters."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    for node in ast.walk(tree):
        kind = node.annotation.id if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Name) else ""
        if kind.endswith(("Error", "Exception")):
            names.add(node.arg)
    return names


def is_identity(node: ast.Compare) -> bool:
    """Return whether a comparison only asks if there is a value: ``is None``, or with a member of an enumeration."""
    plain = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
    return plain or all(isinstance(x, ast.Constant) and x.value is None for x in node.comparators)


def readings(path: Path) -> list[str]:
    """Return every place where a module compares, searches, slices or rewrites a sentence."""
    return readings_of(path.read_text(encoding="utf-8"), path.relative_to(SOURCE).as_posix())


def readings_of(text: str, where: str) -> list[str]:
    tree = ast.parse(text)
    caught, found = caught_names(tree), []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and (where, function.name) in ALLOWED:
            for inner in ast.walk(function):
                inner.allowed = True  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if hasattr(node, "allowed"):
            continue
        match node:
            case ast.Compare() if not is_identity(node):
                if any(is_prose(side, caught, where) for side in (node.left, *node.comparators)):
                    found.append(f"{where}:{node.lineno} compares or searches a sentence")
            case ast.Subscript(value=value) if is_prose(value, caught, where):
                found.append(f"{where}:{node.lineno} cuts a sentence")
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in CUTTING:
                if is_prose(value, caught, where):
                    found.append(f"{where}:{node.lineno} calls {name} of a sentence")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name), args=args) if name in MATCHING:
                if any(is_prose(part, caught, where) for part in args):
                    found.append(f"{where}:{node.lineno} matches a sentence")
            case ast.FunctionDef(returns=ast.BinOp(left=left, op=ast.BitOr(), right=right)):
                names = {side.id for side in (left, right) if isinstance(side, ast.Name)}
                if "str" in names and any(name[0].isupper() for name in names):
                    found.append(f"{where}:{node.lineno} returns a result or a sentence")
    return found


def test_nothing_compares_searches_slices_or_rewrites_a_sentence():
    paths = sorted(SOURCE.rglob("*.py"))
    assert len(paths) > 100
    assert [found for path in paths for found in readings(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "error.sentence[:-1]",
        "road.why == TOO_FAR",
        "road.why.startswith('moments')",
        "'too many' in str(error)",
        "error.args[0].upper()",
        "re.search('model', error.sentence)",
        "f'{error.sentence}'.replace('a', 'b')",
        "str(calibration.termination).partition(':')",
        "sentence[0].upper() + sentence[1:]",
    ],
)
def test_reading_a_sentence_is_found(line):
    text = f"try:\n    pass\nexcept ValueError as error:\n    {line}\n"
    assert readings_of(text, "somewhere.py")


def test_a_function_that_returns_a_result_or_a_sentence_is_found():
    assert readings_of("def taken() -> Taken | str:\n    return ''\n", "somewhere.py")


def test_rendering_a_sentence_is_not_found():
    text = (
        "try:\n    pass\nexcept ValueError as error:\n    print(error.sentence, f'{error}', error.sentence is None)\n"
    )
    assert not readings_of(text, "somewhere.py")
