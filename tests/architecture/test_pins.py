"""A build is reproducible: every package that can come in is pinned to one version."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
PINS = {re.split("==", line)[0] for line in LINES}
# What scikit-build-core itself fetches where the machine has none, and what bootstraps an environment.
TOOLS = {"cmake", "ninja", "pip"}


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()  # type: ignore[index]


def asked_for() -> set[str]:
    """Every requirement of the package, its extras and its build, and all that those require here."""
    project = PROJECT["project"]
    waiting = PROJECT["build-system"]["requires"] + project["dependencies"]
    waiting += [need for extra in project["optional-dependencies"].values() for need in extra]
    seen: set[str] = set()
    while waiting:
        name = canonical(waiting.pop())
        if name in seen or name == "strikeout":
            continue
        seen.add(name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # a build requirement lives in the build's own environment
            continue
        waiting += [need for need in needs if ";" not in need]
    return seen


def test_everything_asked_for_is_pinned():
    assert sorted((asked_for() | TOOLS) - {canonical(pin) for pin in PINS}) == []


def test_a_pin_is_one_exact_version_and_nothing_else():
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)] == []
    assert len(PINS) == len(LINES)


def test_what_is_installed_is_what_is_pinned():
    pinned = {canonical(line): line.partition("==")[2] for line in LINES}
    installed = {canonical(d.name): d.version for d in metadata.distributions() if canonical(d.name) in pinned}
    others = {n: (v, pinned[n]) for n, v in installed.items() if v != pinned[n] and n not in TOOLS}
    assert others == {}, "installed and pinned differ; run: python3 go.py setup --again"


def test_continuous_integration_installs_a_browser_and_runs_the_command_of_the_readme():
    lines = [line.strip() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == [".ci/browser", "python3 go.py test"]
    assert commands[-1] in (ROOT / "README.md").read_text()
