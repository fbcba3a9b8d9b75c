"""Two installs compared on a book of a million quotes: seconds of the processor for every verb that people wait for.

    python benchmarks/verbs.py BEFORE AFTER [COUNT [ROUNDS]]

BEFORE and AFTER are the Python interpreters of two environments, each with its own strikeout: an older commit and the
one at hand. They take turns, each in a process of its own; the best round of each counts. Processor time of all threads
and not time on the clock, so that other work on the machine changes little. Only calls that older commits have too.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

COUNT, ROUNDS, GONE = 1_000_000, 2, 27
MOST = 1.15  # times BEFORE


def timed(work: Callable[[], object]) -> float:
    """Seconds of the processor that some work takes, in this process and those it starts."""

    def spent() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    begun = spent()
    work()
    return spent() - begun


def measure(count: int) -> dict[str, float]:
    """Seconds per verb with the strikeout of this interpreter."""
    import strikeout as so

    made = getattr(so, "synthetic", so)  # older commits have it in strikeout itself
    quotes = made.random_quotes(count, maturities=25)
    first, second = quotes.ids[::37][:GONE].tolist(), quotes.ids[5::41][:GONE].tolist()
    with tempfile.TemporaryDirectory(prefix="strikeout-") as folder, so.Book.create(Path(folder) / "a.book") as book:
        verbs: dict[str, Callable[[], object]] = {
            "import": lambda: book.import_quotes(quotes),
            "calibrate": book.calibrate,
            "forget": lambda: book.forget(ids=first, reason="test"),
            "erase": lambda: book.erase(ids=second, reason="test"),
            "verify": lambda: _held(book.verify().holds),
            "calibrate quotes": lambda: book.calibrate(through="quotes"),
        }
        return {name: timed(work) for name, work in verbs.items()}


def _held(holds: bool) -> None:
    assert holds, "the book does not verify"


def compare(before: str, after: str, count: int, rounds: int) -> int:
    """Prints the best of some rounds of both; 1 if a verb takes more than MOST times as long as before."""
    found: dict[str, list[dict[str, float]]] = {before: [], after: []}
    for _ in range(rounds):
        for python, done in found.items():
            asked = [python, __file__, "--one", str(count)]
            # From a folder of its own: this one's strikeout must not be found before that of the environment.
            ran = subprocess.run(asked, check=True, capture_output=True, text=True, cwd=tempfile.gettempdir())
            done.append(json.loads(ran.stdout))
            print(os.path.dirname(python), {name: round(x, 2) for name, x in done[-1].items()}, flush=True)
    best = {python: {name: min(one[name] for one in done) for name in done[0]} for python, done in found.items()}
    print(f"\n{count:,} quotes, best of {rounds}, seconds of the processor")
    print(f"{'verb':18}{'before':>9}{'after':>9}{'times':>8}")
    for name, was in best[before].items():
        now = best[after][name]
        print(f"{name:18}{was:9.2f}{now:9.2f}{now / was:8.2f}{'' if now <= MOST * was else '  more than ' + str(MOST)}")
    return int(any(best[after][name] > MOST * was for name, was in best[before].items()))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(json.dumps(measure(int(sys.argv[2]))))
        sys.exit(0)
    numbers = [*map(int, sys.argv[3:]), *(COUNT, ROUNDS)[len(sys.argv[3:]) :]]
    sys.exit(compare(sys.argv[1], sys.argv[2], *numbers))
