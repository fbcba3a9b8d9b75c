"""Importing strikeout, or asking it for help, costs a blink and pulls in nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"polars", "narwhals", "pandas", "pyarrow", "jax", "scipy", "matplotlib", "cryptography", "sqlite3"}
WEB = {"fastapi", "starlette", "flask", "django", "aiohttp", "requests", "httpx", "urllib3", "uvicorn"}

MODULES = """
import json, sys
print(json.dumps(sorted(sys.modules)))
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


def test_importing_strikeout_imports_no_other_module_of_its_own_and_nothing_but_the_standard_library():
    """How long it may take is in benchmarks/startup.py."""
    before, after = (set(json.loads(fresh(code).stdout)) for code in (MODULES, "import strikeout" + MODULES))
    assert {name for name in after - before if name.partition(".")[0] not in sys.stdlib_module_names} == {"strikeout"}


def test_asking_for_help_imports_no_heavy_library():
    done = fresh(HELP, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert set(json.loads(done.stderr.splitlines()[-1])) & (HEAVY | WEB) == set()


def test_a_worker_of_the_service_starts_without_matplotlib_and_without_the_web():
    """It draws pages by itself; matplotlib alone takes as long to import as everything else."""
    found = {name.partition(".")[0] for name in json.loads(fresh("import strikeout.service.worker" + MODULES).stdout)}
    assert found & (WEB - {"starlette"} | {"matplotlib", "scipy"}) == set()


def test_a_heavy_import_would_be_noticed():
    """The measurement itself: what was imported before is in the list."""
    assert "numpy" in json.loads(fresh("import numpy" + MODULES).stdout)
