"""Write the pages of the documentation site to build/docs: those of docs/, the files beside it, and the API reference.

The site has all pages below one folder, so links between docs/ and the files beside it are adjusted.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import strikeout

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "docs"
BESIDE = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md")
MODULES = ("american", "synthetic", "paper", "scale", "states", "results", "errors")


def write_pages(target: Path) -> None:
    """Write all pages; pages of an earlier build are removed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target)
    for path in target.rglob("*.md"):
        path.write_text(adjust(path.read_text(), above="../" * (len(path.relative_to(target).parts) - 1)))
    for name in BESIDE:
        text = (ROOT / name).read_text().replace("](docs/", "](")
        (target / name).write_text(re.sub(r"\[([^\]]+)\]\(LICENSE\)", r"\1", text))
    (target / "reference" / "api.md").write_text(api_page())


def adjust(text: str, *, above: str) -> str:
    """Point links that leave docs/ to the copies of those files.

    >>> adjust("[shape](../ARCHITECTURE.md)", above="")
    '[shape](ARCHITECTURE.md)'
    """
    for name in BESIDE:
        text = re.sub(rf"\]\({re.escape(above)}\.\./{re.escape(name)}(#[^)]*)?\)", rf"]({above}{name}\1)", text)
    return text


def api_page() -> str:
    """Return a directive for every public name; mkdocstrings replaces it by the signature and the docstring."""
    lines = ["# API", "", "Generated from docstrings. [Every public name](python.md) has examples.", ""]
    for name, home in sorted(strikeout._HOMES.items(), key=lambda item: item[0].lower()):
        lines += [f"::: {home}.{name}", ""]
    for module in MODULES:
        lines += [f"## strikeout.{module}", ""]
        names = getattr(getattr(strikeout, module), "__all__", None)
        if names is None:  # a module that defines all its names itself
            lines += [f"::: strikeout.{module}", "    options:", "      show_root_heading: false", ""]
            continue
        values = [(name, getattr(getattr(strikeout, module), name)) for name in names]
        for name, value in values:
            home = getattr(value, "__module__", None)
            if home is not None and home.startswith("strikeout.") and hasattr(value, "__qualname__"):
                lines += [f"::: {home}.{name}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    write_pages(TARGET)
