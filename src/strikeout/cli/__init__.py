"""The command line: ``strikeout demo``, ``inspect``, ``calibrate``, ``influence``, ``forget``, ``verify`` and more.

Each command lives in its own file and is imported when it is called for; help stays light.
"""

from __future__ import annotations

from strikeout.cli.group import strikeout

__all__ = ["main", "strikeout"]


def main() -> None:
    """Runs the command line on the arguments of this process and ends it with the exit code."""
    strikeout()
