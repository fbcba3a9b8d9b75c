"""The sections of the report, in order, and the runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from strikeout.errors import UsageError
from strikeout.paper.experiments.section import Finding, Progress, Scale, Section

# Each is a module of this package with a `SECTION` and a pure function `run(scale, progress)`.
SECTIONS = (
    "equivalence",
    "locality",
    "tables",
    "propositions",
    "corruption",
    "sensitivity",
    "curvature",
    "erasure",
)


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return these sections in the order of the report; all if none is named.

    Raises:
        UsageError: there is no such section.
    """
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise UsageError(f"The paper has no section {', '.join(unknown)}. The sections are {', '.join(SECTIONS)}.")
    return tuple(name for name in SECTIONS if name in names or not names)


def section_of(name: str) -> Section:
    """Return what a section asks.

    Raises:
        UsageError: there is no such section.
    """
    (name,) = chosen([name])
    section: Section = import_module(f"strikeout.paper.experiments.{name}").SECTION
    return section


def find(name: str, scale: Scale, *, progress: Progress | None = None) -> Finding:
    """Run one section. The same scale gives the same numbers; only times differ.

    Raises:
        UsageError: there is no such section.
    """
    (name,) = chosen([name])
    run: Callable[[Scale, Progress], Finding] = import_module(f"strikeout.paper.experiments.{name}").run
    return run(scale, progress or silent)


def silent(share: float, words: str) -> None:
    """Ignore progress."""
