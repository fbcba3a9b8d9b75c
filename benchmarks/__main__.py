"""`python -m benchmarks [NAME ...] [--quick] [--full] [--to FOLDER]`, from the repository root.

Ends with 0 when every promise was kept, with 1 when a ratio fell short of the required one (never in quick mode).
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

BENCHMARKS = {
    "pass": ("one_pass", "one Gauss-Newton pass over the paper's 2,700 quotes"),
    "calibrate": ("calibration", "a whole calibration of the same book"),
    "scale": ("scale", "a million quotes; all maturities distinct; time and memory a quote"),
    "startup": ("startup", "the import and the first answer of the command line"),
}
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "STRIKEOUT_THREADS")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Ours against named peers, interleaved, one thread each.",
        epilog="; ".join(f"{name}: {words}" for name, (_, words) in BENCHMARKS.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; rough figures, no verdict")
    parser.add_argument("--full", action="store_true", help="the paper's loop over every quote, about 20 s")
    parser.add_argument("--to", type=Path, default=Path(__file__).parent / "results", help="folder for the JSON files")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if find_spec("scipy") is None:
        parser.error("the peers need SciPy, which is not installed here: pip install 'strikeout[bench]'")
    # Before NumPy is imported: afterwards it would be too late. Ours is held to one thread like everyone else.
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    missed = 0
    for name in chosen.names or BENCHMARKS:
        result = import_module(f"benchmarks.{BENCHMARKS[name][0]}").run(is_quick=chosen.quick, is_full=chosen.full)
        result.show()
        print(f"  written to {result.write(chosen.to)}\n", flush=True)
        missed += len(result.missed)
    return 1 if missed and not chosen.quick else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
