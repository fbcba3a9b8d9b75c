"""The command line: ``strikeout demo``, ``inspect``, ``calibrate``, ``influence``, ``forget``, ``verify`` and more.

A command is imported when it runs, so that help stays fast.
"""

from __future__ import annotations

from strikeout.cli.group import strikeout

__all__ = ["main", "strikeout"]


def main() -> None:
    """Run the command line on the arguments of this process and end it with the exit code."""
    strikeout()
