"""Reads our own Markdown: headings, sections, links, code blocks. Only as much of the language as we write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *```(\w*)")
HEADING = re.compile(r"^(#+) +(.*?) *$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NOT_RUN = "<!-- not run -->"
DATA = re.compile(r"<!-- data: (\S+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its first line's number in the file, its text, and whether it is to be run."""

    language: str
    line: int
    text: str
    is_run: bool


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    @cached_property
    def blocks(self) -> list[Block]:
        found: list[Block] = []
        opened: tuple[str, int, bool] | None = None
        above = ""
        for number, line in enumerate(self.lines):
            fence = FENCE.match(line)
            if opened is None and fence:
                opened = (fence[1], number + 1, above != NOT_RUN)
            elif opened is not None and line.strip() == "```":
                language, start, is_run = opened
                found.append(Block(language, start, "\n".join(self.lines[start:number]) + "\n", is_run))
                opened = None
            above = line.strip() or above
        assert opened is None, f"{self.path}: the block opened on line {opened[1]} is never closed"
        return found

    @cached_property
    def prose(self) -> list[str]:
        """The lines outside code blocks; those inside are left empty, so that numbers stay."""
        prose = list(self.lines)
        for block in self.blocks:
            for number in range(block.line, block.line + block.text.count("\n")):
                prose[number] = ""
        return prose

    @cached_property
    def anchors(self) -> set[str]:
        """What a link may name after ``#``: headings in lower case, spaces as hyphens, other marks dropped."""
        headings = [HEADING.match(line) for line in self.prose]
        return {re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-") for heading in headings if heading}

    @cached_property
    def links(self) -> list[tuple[int, str]]:
        return [(n, link[1]) for n, line in enumerate(self.prose, 1) for link in LINK.finditer(line)]

    @cached_property
    def data(self) -> list[str]:
        """The files of the reference data that the examples read, each in a comment of its own."""
        return [found[1] for line in self.prose if (found := DATA.fullmatch(line))]

    def section(self, title: str) -> str | None:
        """The text under the first heading that holds ``title`` as whole words, down to the next heading as high."""
        begun, level = None, 0
        for number, line in enumerate(self.prose):
            heading = HEADING.match(line)
            if heading is None:
                continue
            if begun is not None and len(heading[1]) <= level:
                return "\n".join(self.lines[begun:number])
            if begun is None and re.search(rf"(?<![\w-]){re.escape(title)}(?![\w-])", heading[2]):
                begun, level = number, len(heading[1])
        return None if begun is None else "\n".join(self.lines[begun:])


def pages(*folders: str) -> list[Page]:
    """Every page of ours under these folders of the repository, or at its root where none is named."""
    paths = [p for folder in folders for p in (ROOT / folder).rglob("*.md")] if folders else list(ROOT.glob("*.md"))
    return [Page(path) for path in sorted(paths)]
