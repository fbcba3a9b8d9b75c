"""`python -m benchmarks [NAME ...] [--quick] [--full] [--to FOLDER]`, from the repository root.

`scenarios` also takes `--operator FILE`, `throughput` takes `--picture FILE`, and `verbs` needs `--against PATH`.

Ends with 0 when every promise was kept, with 1 when a ratio fell short of the required one (never in quick mode).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

BENCHMARKS = {
    "pass": ("one_pass", "one Gauss-Newton pass over the paper's 2,700 quotes"),
    "calibrate": ("calibration", "a whole calibration of the same book"),
    "scale": ("scale", "a million quotes; all maturities distinct; time and memory a quote"),
    "forget": ("forget", "striking quotes out: the step, and the optimum without data"),
    "resolve": ("resolve", "the optimum of what is left, from moments alone"),
    "roll": (
        "roll",
        "a day rolled through a panel of 250, by a certified step and exactly; 1,000 rolls without drift",
    ),
    "panel": ("panel", "panels: a day struck out of all parameters, a calibration, time and memory a day"),
    "scenarios": (
        "scenarios",
        "318 books, clean and corrupt, through every operator, and yours: accuracy, claims, time",
    ),
    "markets": ("markets", "single days of real options against QuantLib's best of 40 random starts"),
    "reading": ("reading", "a file of a million rows (with --full also ten million) to a book: time and peak memory"),
    "rules": ("rules", "each rule about quotes on a million rows, in seconds of the processor"),
    "book": ("book", "a book in a file: a million quotes imported and calibrated; 27 forgotten, fsync included"),
    "load": ("load", "readers and writers on twenty books over HTTP, the server killed half-way"),
    "serve": ("serve", "pages of a book of 100,000 quotes: the first chart, a what-if, bytes and requests"),
    "american-market": (
        "american_market",
        "American quotes read as European: parameter errors, jumps of real chains; no timing",
    ),
    "american": ("american", "American options against QuantLib's collocation; implied volatilities per second"),
    "elementary": ("elementary", "our elementary functions against NumPy's: time and error"),
    "models": ("models", "characteristic-function models on real days, beside Heston on the same quotes"),
    "chains": ("fit_errors", "every real file: fit errors in volatility points by expiry, Heston and SVI, one table"),
    "residue": ("residue", "the search of a book of 327,000 quotes for 29,000 and for 160 that were erased"),
    "lake": ("lake", "files of quotes: states by loop, cache and Dask, a licence by its tag, a fleet of chains"),
    "throughput": (
        "throughput",
        "quotes and chains per core-second, by step and by workers; what large lakes take",
    ),
    "regimes": (
        "regimes",
        "no timing: regimes of synthetic panels with a known switch, and without one",
    ),
    "conclusions": (
        "conclusions",
        "no timing: which conclusions of the tutorials and of real panels change with the unit of the errors",
    ),
    "engines": ("engines", "the same files on processes, Dask, Ray and Spark; a hundred workers killed"),
    "verbs": ("verbs", "a million quotes through every verb of a book, beside another checkout: --against PATH"),
    "walk": ("walk", "no timing: files and functions that each command of a book runs through"),
    "startup": ("startup", "the import and the first answer of the command line"),
}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "STRIKEOUT_THREADS")
# Every candidate may use the whole machine; elsewhere one thread each.
ON_ALL_CORES = {"book", "reading", "rules", "scale"}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Ours against named peers, interleaved; one thread each, or all cores each for large books.",
        epilog="; ".join(f"{name}: {words}" for name, (_, words) in BENCHMARKS.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; rough figures, no verdict")
    parser.add_argument("--full", action="store_true", help="the paper's loop over every quote, the largest books")
    parser.add_argument("--operator", type=Path, metavar="FILE", help="scenarios: a Python file with your own operator")
    parser.add_argument("--against", type=Path, metavar="PATH", help="verbs: another checkout with its own environment")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="throughput: draw it against the workers (PNG)")
    parser.add_argument("--to", type=Path, default=Path(__file__).parent / "results", help="folder for the JSON files")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if chosen.operator is not None and chosen.names != ["scenarios"]:
        parser.error("--operator is for one benchmark: scenarios --operator FILE")
    if (chosen.against is not None) != (chosen.names == ["verbs"]):
        parser.error("--against is for one benchmark, which needs it: verbs --against PATH")
    if chosen.picture is not None and chosen.names != ["throughput"]:
        parser.error("--picture is for one benchmark: throughput --picture FILE")
    if find_spec("scipy") is None:
        parser.error("the peers need SciPy, which is not installed here: pip install 'strikeout[bench]'")
    names = chosen.names or [name for name in BENCHMARKS if name != "verbs"]
    if len(names) > 1:  # a process each, so that none inherits another's memory or threads
        flags = [f"--{flag}" for flag in ("quick", "full") if getattr(chosen, flag)]
        command = [sys.executable, "-m", "benchmarks", *flags, "--to", str(chosen.to)]
        return max(subprocess.run([*command, name], check=False).returncode for name in names)
    # Before NumPy is imported: afterwards it would be too late. Ours is held to the same number as everyone else.
    threads = len(os.sched_getaffinity(0)) if names[0] in ON_ALL_CORES and hasattr(os, "sched_getaffinity") else 1
    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    more = {"operator": chosen.operator, "against": chosen.against, "picture": chosen.picture}
    more = {name: path for name, path in more.items() if path is not None}
    run = import_module(f"benchmarks.{BENCHMARKS[names[0]][0]}").run
    try:
        result = run(is_quick=chosen.quick, is_full=chosen.full, **more)
    except ValueError as error:
        if not more:
            raise
        parser.error(str(error))
    result.show()
    print(f"  written to {result.write(chosen.to)}\n", flush=True)
    return 1 if result.missed and not chosen.quick else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
