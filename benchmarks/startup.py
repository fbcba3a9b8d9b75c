"""How long the import and the first answer of the command line take, beside a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.rows import Result, Row
from benchmarks.timing import interleave, same

LONGEST_IMPORT = 0.3  # seconds
HEAVY = ("polars", "scipy", "matplotlib", "narwhals", "rich", "pandas", "pyarrow")


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Whole processes, interleaved: bare Python, the import, `--help`, and NumPy alone for comparison."""
    commands = {
        "python, nothing": ["-c", "pass"],
        "import numpy": ["-c", "import numpy"],
        "import strikeout": ["-c", "import strikeout"],
        "strikeout.Heston()": ["-c", "import strikeout; strikeout.Heston()"],
        "strikeout --help": ["-m", "strikeout", "--help"],
    }
    timed = interleave({name: same(_process(words)) for name, words in commands.items()}, rounds=2 if is_quick else 15)
    bare = timed["python, nothing"].seconds
    rows = [
        Row("a whole process", name, timing.seconds, timing.ratio, note=f"{1e3 * (timing.seconds - bare):.0f} ms more")
        for name, timing in timed.items()
    ]
    spent, task = timed["import strikeout"].seconds - bare, "the import alone"
    rows += [Row(task, "import strikeout", spent, 1.0), Row.allowed(task, most=LONGEST_IMPORT, taken=spent)]
    loaded = _printed(f"import strikeout, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    return Result(
        "startup",
        is_quick,
        tuple(rows),
        {"heavy libraries it imports": loaded or "none"},
    )


def _process(words: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True)


def _printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
