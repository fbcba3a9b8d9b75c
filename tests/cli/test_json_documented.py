"""Every member of the JSON that a command on a book prints is named where the command is documented."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import strikeout as so
from tests.cli.typed import run, told

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
EARLY = "date < '2024-01-10'"


def names(command: str) -> set[str]:
    """What the row --json of a command names in code type, and what is named where it refers to another."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    section = next(text for text in sections if re.match(rf"`strikeout {command}\b(?!-)", text))
    row = next(line for line in section.splitlines() if line.startswith("| `--json`"))
    found = set(re.findall(r"`([a-z_]+)`", row))
    other = re.search(r"as for `(\w+)`", row)
    if other is not None and other[1] in ("apply", "request"):
        return found | names(other[1])
    if re.search(r"\bchange\b", row) and command != "apply":
        return found | names("apply")
    if "assurance.md#certificate" in row:
        found |= {field.name for field in fields(so.results.Certificate)}
    return found


COMMANDS = [
    ["init", "b.book"],
    ["import", "a.book", "quotes.csv"],
    ["status", "a.book"],
    ["summary", "a.book"],
    ["calibrate", "a.book"],
    ["calibrate", "a.book", "--panel", "none"],
    ["forget", "a.book", "--where", EARLY],
    ["forget", "a.book", "--where", EARLY, "--yes"],
    ["forget", "a.book", "--where", EARLY, "--preview"],
    ["forget", "a.book", "--where", EARLY, "&&", "apply", "a.book"],
    ["forget", "a.book", "--where", EARLY, "--yes", "&&", "restore", "a.book", "--last"],
    ["forget", "a.book", "--where", EARLY, "--yes", "&&", "certificate", "a.book", "4"],
    ["learn", "a.book", "more.csv"],
    ["roll", "a.book", "--window", "60"],
    ["roll", "a.book", "more.csv", "--window", "60"],
    ["erase", "a.book", "--where", EARLY],
    ["erase", "a.book", "--where", EARLY, "--yes"],
    ["log", "a.book"],
    ["verify", "a.book"],
    ["compare", "a.book", "a.book"],
    ["export", "a.book", "out.json"],
    ["report", "a.book"],
    ["doctor", "a.book"],
    ["rotate-key", "a.book"],
    ["request", "a.book", "forget", "--where", EARLY],
    ["request", "a.book", "forget", "--where", EARLY, "&&", "approve", "a.book", "4", "--who", "ben"],
    ["request", "a.book", "forget", "--where", EARLY, "&&", "reject", "a.book", "4", "--who", "ben"],
    ["requests", "a.book"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words))
def test_every_member_of_its_json_is_documented(book, quotes, words):
    assert book == "a.book"
    more = so.paper.quotes("large")[-60:]
    so.write_quotes(more.without([name for name in more.ids.tolist() if name in set(quotes.ids.tolist())]), "more.csv")
    if "&&" in words:
        place = words.index("&&")
        assert run(*words[:place], "--who", "ann").exit_code == 0
        words = words[place + 1 :]
    undocumented = sorted(set(told(*words)) - names(words[0]))
    assert not undocumented, " ".join(undocumented)
