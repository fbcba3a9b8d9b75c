"""Two checkouts compared on a book of a million quotes: processor time for every verb that people wait for.

    python3 go.py bench verbs --against PATH

PATH is another checkout with its own environment (`python3 go.py setup` there), such as an older commit. The two take
turns, each in a process of its own, and the best round of each counts. Processor time of all threads and not time on
the clock, so that other work on the machine changes little. Only calls that older commits have too.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

GONE = 27
TIMES = 5  # strike-outs that are timed together: one takes little
MOST = 1.15  # times the other checkout


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
    gone = quotes.ids[:: count // (GONE * (TIMES + 1))][: GONE * (TIMES + 1)].tolist()
    parts = [gone[at :: TIMES + 1] for at in range(TIMES + 1)]
    with tempfile.TemporaryDirectory(prefix="strikeout-") as folder, so.Book.create(Path(folder) / "a.book") as book:
        planned: Any = getattr(book, "plan_forget", book.forget)  # in older commits `forget` plans
        reason = {"reason": "test"}
        is_asked = "plan_erase" not in dir(book)  # in older commits `erase` rehearses unless `yes` is given
        verbs: dict[str, Callable[[], object]] = {
            "import": lambda: book.import_quotes(quotes),
            "calibrate": book.calibrate,
            "forget": lambda: [book.apply(planned(ids=ids, **reason)) for ids in parts[:TIMES]],
            "erase": lambda: book.erase(ids=parts[TIMES], **reason, **({"yes": True} if is_asked else {})),
            "verify": lambda: _check(book.verify().holds),
            "calibrate from quotes": lambda: book.calibrate(through="quotes"),
        }
        found = {name: timed(work) for name, work in verbs.items()}
        _check(len(book.quotes()) == count - len(gone))
        return found


def _check(holds: bool) -> None:
    if not holds:
        raise AssertionError("the book does not verify, or holds other quotes than it should")


def run(*, is_quick: bool, is_full: bool, against: Path) -> Any:  # noqa: ARG001 - every benchmark takes both
    """Every verb with both checkouts; ours must take at most MOST times as long.

    Raises:
        ValueError: the other checkout has no environment.
    """
    from benchmarks.rows import Result, Row

    other = against / ".venv" / "bin" / "python"
    if not other.exists():
        raise ValueError(f"{against}: there is no environment of a checkout. Run there: python3 go.py setup")
    count, rounds = (20_000, 1) if is_quick else (1_000_000, 2)
    found: dict[str, list[dict[str, float]]] = {str(Path(sys.executable)): [], str(other): []}
    for _ in range(rounds):
        for python, done in found.items():
            # From a folder of its own: this one's strikeout must not be found before that of the environment.
            asked = [python, str(Path(__file__)), str(count)]
            ran = subprocess.run(asked, check=True, capture_output=True, text=True, cwd=tempfile.gettempdir())
            done.append(json.loads(ran.stdout))
    ours, theirs = ({name: min(one[name] for one in done) for name in done[0]} for done in found.values())
    rows = []
    for name, taken in ours.items():
        rows.append(Row(name, "this checkout", taken, 1.0, note="seconds of the processor"))
        rows.append(Row(name, "the other", theirs[name], theirs[name] / taken, 1.0 / MOST))
    return Result("verbs", is_quick, tuple(rows), {"quotes": float(count), "rounds": float(rounds)})


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
