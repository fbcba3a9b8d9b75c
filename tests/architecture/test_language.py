"""Documentation, docstrings, comments and messages use plain technical English: no phrase of the banned list."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.markdown import ROOT, Page

UNITS = "quote|day|date|row|shard|expiry|group|verb|slice|maturity|parameter|label|chunk|file|book|call|pass"
COUNTED = "row|line|value|variance|number|byte|entry|footprint|state|parameter|price|step|weight|one|two|three"

# (regular expression, what to write instead, a sentence it must find). A space stands for any white space.
BANNED = [
    (r"anew", "refit, recompute, again", "Forwards are found anew."),
    (r"(?<!the )rest(s|ing|ed)? (up)?on", "depend on", "What the forwards rest on."),
    (r"(hang|hangs|hanging|hung) on", "depend on", "The parameters hang on it."),
    (r"put(s|ting)? away", "store, spill", "Quotes are put away."),
    (r"(come|comes|came|coming) to", "amount to, give, total", "What all of them come to."),
    (r"(stand|stands|stood|standing) for", "replace, represent", "A step can stand for it."),
    (r"so (many|much)(?! \w+er\b)", "n, up to n", "Parts of so many rows."),
    (r"nobody|somebody|whoever|everybody", "name the actor", "For whoever holds the rest."),
    (r"(?<!there )(is|are|was|were) no(?! (longer|more|less|later|earlier)\b)", "is not a", "That is no book."),
    (r"(none|nothing),? where", "None if; Raise X if", "None where it is empty."),
    (r"(only|even|except|but) where", "if", "A step only where it is certified."),
    (
        r"where (no|none|nothing|asked|needed|possible|there (is|are|was)|(it|they|that) (is|are|was|has|have|can))",
        "if",
        "A calibration where there is one.",
    ),
    (r"roads?", "path, source", "The road of a book."),
    (r"doors?", "import filter, entry point", "Quotes at the door."),
    (r"(?<!long-)standing", "linearization, current", "The standing of a book."),
    (r"leavings", "state", "The leavings of a shard."),
    (r"shelf|shelves", "page kind", "There is such a shelf."),
    (r"lots?", "group, chunk, many", "A lot of quotes."),
    (r"rooms?", "package, directory", "Imports of a room."),
    (r"pieces?", "chunk", "Read in pieces."),
    (r"says?|said", "report, state, contain; name who does it", "A certificate says so."),
    (r"tells?|told", "report, state, distinguish", "The summary tells it."),
    (r"know|knows|knew", "contain, recognise, store, support", "A book knows its quotes."),
    (r"remembers?", "store", "What a forward remembers."),
    (r"bears? with", "reduce the effect of, tolerate", "Huber's loss bears with outliers."),
    (r"(has|have|had) (a|no) (word|part|say)( in)?", "affect, depend on", "No price has a word in it."),
    (r"(take|takes|took|taken)( \w+){1,4} along", "also remove", "It takes the states along."),
    (
        r"(quotes?|rows?|days?|dates?) (go|goes|come|comes|came|went|is gone|are gone)\b",
        "removed, added",
        "Quotes come.",
    ),
    (r"what (goes|went|comes|came|is gone)", "removed, added", "What comes is added."),
    (r"(go|goes|come|comes) (or|and) (go|goes|come|comes)", "added or removed", "Quotes that come or go."),
    (r"(?-i:Of) (a|an|the) \w+:", "For a ..., (a whole sentence)", "Of a book: through moments."),
    (rf"({COUNTED})s? an? ({UNITS})", "per quote, per day", "One variance a day."),
    (rf"\d an? ({UNITS})", "per quote, per day", "It takes 8 a quote."),
    (r"(a|one|each|every|same|this|that|any|whose) moment", "timestamp, snapshot", "Quotes of one moment."),
]

FILES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "go.py")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "benchmarks").rglob("*.py")),
]


@dataclass(frozen=True)
class Prose:
    """A stretch of text for readers, and the number of its first line in the file."""

    line: int
    text: str


SPACE = r"(?:[ \t]+|[ \t]*\n[ \t]*)"  # at most one line break: a phrase does not go on in the next paragraph


def compiled(pattern: str) -> str:
    """The pattern for whole words, over a line break too; a look behind has one character of white space."""
    spaced = re.sub(
        r"\(\?<![^)]*\)| ", lambda found: SPACE if found[0] == " " else found[0].replace(" ", r"\s"), pattern
    )
    return rf"(?<!\w)(?:{spaced})(?!\w)"


ANY = re.compile("|".join(compiled(pattern) for pattern, _, _ in BANNED), re.I)
EACH = [(re.compile(compiled(pattern), re.I), plain) for pattern, plain, _ in BANNED]
QUOTED = re.compile(r"``[^`]*``|`[^`\n]*`|\]\([^)\s]*\)|https?://\S+")
SQL = re.compile(r"\s*(select|insert|create|update|delete|with|pragma|alter|drop|where)\b", re.I)


def blanked(text: str) -> str:
    """The text with code, link targets and addresses replaced by as many marks: they are names, not prose."""
    return QUOTED.sub(lambda found: re.sub(r"[^\n]", "`", found[0]), text)


def prose_of_page(path: Path) -> list[Prose]:
    return [Prose(1, "\n".join(Page(path).prose))]


def prose_of_module(path: Path) -> list[Prose]:
    """Comments, and every string with a space in it that is not SQL: docstrings, messages, help."""
    text = path.read_text()
    lines = text.splitlines()
    found: list[Prose] = []
    for number, line in enumerate(lines, 1):
        own = re.match(r"\s*#(.*)", line) or re.search(r"  # (.*)", line)
        if own and found and found[-1].line + found[-1].text.count("\n") == number - 1 and line.lstrip()[0] == "#":
            found[-1] = Prose(found[-1].line, f"{found[-1].text}\n{own[1]}")
        elif own:
            found.append(Prose(number, own[1]))
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and re.search(r"\s", node.value.strip()) and not SQL.match(node.value):
            found.append(Prose(node.lineno, node.value))
    return found


@cache
def prose(path: Path) -> list[Prose]:
    found = prose_of_page(path) if path.suffix == ".md" else prose_of_module(path)
    return [Prose(each.line, blanked(each.text)) for each in found]


def banned_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Where in the text a banned phrase begins, the phrase, and what to write instead."""
    if ANY.search(text):
        for pattern, plain in EACH:
            for found in pattern.finditer(text):
                yield found.start(), " ".join(found[0].split()), plain


def findings(path: Path) -> Iterator[str]:
    for each in prose(path):
        breaks = [place for place, mark in enumerate(each.text) if mark == "\n"]
        for place, phrase, plain in banned_in(each.text):
            line = each.line + bisect_right(breaks, place)
            yield f"{path.relative_to(ROOT).as_posix()}:{line}: {phrase!r}: write {plain}"


def test_no_banned_phrase_is_used():
    found = [line for path in FILES for line in findings(path)]
    assert not found, f"{len(found)} phrases to write plainly (rules: CONTRIBUTING.md):\n" + "\n".join(found)


# A function does something: the first word of its docstring is a verb. These begin a noun phrase or a clause.
NOT_A_VERB = {"A", "All", "An", "And", "As", "By", "Each", "Every", "Everything", "How", "In", "It", "None", "Nothing"}
NOT_A_VERB |= {"Of", "On", "One", "The", "These", "This", "Those", "True", "What", "When", "Where", "Whether", "Which"}
PROPERTIES = {"property", "cached_property"}


def noun_phrases(path: Path) -> Iterator[str]:
    """Functions whose docstring does not begin with a verb."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        marks = {getattr(mark, "id", getattr(mark, "attr", "")) for mark in node.decorator_list}
        if text and not marks & PROPERTIES and text.split()[0] in NOT_A_VERB:
            yield f"{path.relative_to(ROOT).as_posix()}:{node.lineno}: {node.name}: {text.splitlines()[0]}"


def test_the_docstring_of_a_function_begins_with_a_verb():
    paths = [ROOT / "go.py", *sorted((ROOT / "src").rglob("*.py"))]
    found = [line for path in paths for line in noun_phrases(path)]
    assert not found, f"{len(found)} docstrings to begin with a verb, such as Return:\n" + "\n".join(found)


@pytest.mark.parametrize(("pattern", "example"), [(pattern, example) for pattern, _, example in BANNED])
def test_every_pattern_finds_its_example(pattern, example):
    assert re.search(compiled(pattern), example, re.I)


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no calibration yet.",
        "The forward depends on the rest on disk.",
        "The answer is known, and it is no longer than before.",
        "One row per quote, one variance per day.",
        "Select quotes with `where=`, or `--say`; see [the page](told.md#anew).",
        "It keeps states.\n\nA book has a ledger, and states\n\nA book.",
        "Rows for which the price is missing, in the folder where the book is.",
    ],
)
def test_plain_sentences_pass(sentence):
    assert list(banned_in(blanked(sentence))) == []


def test_code_is_not_prose_and_comments_and_messages_are(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        'anew = "anew"\nquery = "select anew from road"\n# found anew\nmessage = f"{anew} is made anew"\n'
    )
    found = [(each.line, phrase) for each in prose_of_module(module) for _, phrase, _ in banned_in(each.text)]
    assert found == [(3, "anew"), (4, "anew")]
