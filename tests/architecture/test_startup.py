"""Importing strikeout, or asking it for help, costs a blink and pulls in nothing heavy."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

HEAVY = {"polars", "narwhals", "pandas", "pyarrow", "jax", "scipy", "matplotlib", "cryptography", "sqlite3"}
AT_THE_DOOR = {"click", "rich"}
WEB = {"fastapi", "starlette", "flask", "django", "aiohttp", "requests", "httpx", "urllib3", "uvicorn"}

IMPORT = """
import json, sys, time
begun = time.perf_counter()
import strikeout
seconds = time.perf_counter() - begun
print(json.dumps({"seconds": seconds, "modules": sorted({name.partition(".")[0] for name in sys.modules})}))
"""

HELP = """
import json, sys
from strikeout.cli import main
sys.argv = ["strikeout", *sys.argv[1:]]
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def fresh(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_importing_strikeout_takes_under_three_tenths_of_a_second():
    seconds = [json.loads(fresh(IMPORT).stdout)["seconds"] for _ in range(5)]
    assert statistics.median(seconds) < 0.3, seconds


def test_importing_strikeout_imports_no_heavy_library():
    assert set(json.loads(fresh(IMPORT).stdout)["modules"]) & (HEAVY | AT_THE_DOOR | WEB) == set()


def test_asking_for_help_imports_no_heavy_library():
    done = fresh(HELP, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert set(json.loads(done.stderr.splitlines()[-1])) & (HEAVY | WEB) == set()


def test_a_heavy_import_would_be_noticed():
    """The measurement itself: what was imported before is in the list."""
    assert "numpy" in json.loads(fresh("import numpy" + IMPORT).stdout)["modules"]
