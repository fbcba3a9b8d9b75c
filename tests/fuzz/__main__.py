"""python3 go.py fuzz [MINUTES] [TARGET ...]: look for inputs that give neither a result nor a sentence.

Every target in turn, some hundred inputs at a time, until the minutes are over. A finding is shrunk, printed and
written to tests/fuzz/findings, and the search goes on with the next target; it ends with 1 if there was one.
"""

from __future__ import annotations

import faulthandler
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.fuzz.targets import LIMIT, TARGETS

MINUTES, EXAMPLES = 5.0, 150
FINDINGS = Path(__file__).parent / "findings"
PHASES = (Phase.reuse, Phase.generate, Phase.target, Phase.shrink)


def fuzz(name: str, number: int, examples: int = EXAMPLES) -> BaseException | None:
    """One round of a target: what went wrong, with the smallest input that shows it; None if nothing did."""
    one = TARGETS[name]
    last = [b""]

    def check(data: bytes) -> None:
        last[0] = data
        # A step that does not end cannot be interrupted from here: the stack says where it is, and the process ends.
        faulthandler.dump_traceback_later(20 * LIMIT, exit=True)
        target(one(data))
        faulthandler.cancel_dump_traceback_later()

    database = DirectoryBasedExampleDatabase(Path(".hypothesis") / "fuzz" / name)
    chosen = settings(
        max_examples=examples, database=database, deadline=None, phases=PHASES, report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    try:
        seed(number)(chosen(given(one.inputs())(check)))()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Polars panics with one that is no Exception
        FINDINGS.mkdir(exist_ok=True)
        (FINDINGS / f"{name}-{number}").write_bytes(last[0])
        print(f"\n{name}: {type(error).__name__}: {error}\n  {last[0][:2000]!r}", flush=True)
        return error
    return None


def main(words: list[str]) -> int:
    minutes = float(words.pop(0)) if words and words[0].replace(".", "", 1).isdigit() else MINUTES
    unknown = sorted(set(words) - set(TARGETS))
    if unknown:
        print(f"fuzz: there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}.", file=sys.stderr)
        return 2
    names, ends, number, found = words or list(TARGETS), time.monotonic() + 60 * minutes, int(time.time()), 0
    done = dict.fromkeys(names, 0)
    while time.monotonic() < ends:
        for name in names:
            found += fuzz(name, number) is not None
            done[name] += EXAMPLES
            if time.monotonic() >= ends:
                break
        number += 1
    print(f"fuzz: {found} found; inputs tried, up to: {done}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
