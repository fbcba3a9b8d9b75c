"""The compiled kernel builds without a warning and runs clean under the address and undefined-behaviour sanitizers.

Takes minutes: `python3 go.py test tests/kernels/test_sanitizers.py -m slow`. The kernel's other tests run on such a
build with `python3 go.py sanitize`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORNERS = ROOT.parent / "shared" / "data" / "reference" / "heston_corners.json"
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMPILERS, reason="there is no C++ compiler here"),
    pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake here"),
]


def build(compiler: str, where: Path, *options: str) -> str:
    """Builds the extension in ``where`` and gives back what the compiler said."""
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    choose = [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DPython_EXECUTABLE={sys.executable}", *options]
    said = ""
    for command in (
        ["cmake", "-S", str(ROOT), "-B", str(where), *generator, *choose],
        ["cmake", "--build", str(where), "--parallel", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said += done.stdout + done.stderr
        assert done.returncode == 0, said[-3000:]
    return said


def run(package: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    corners = [str(CORNERS)] if CORNERS.exists() else []
    return subprocess.run(
        [sys.executable, str(Path(__file__).with_name("sanitized_run.py")), *corners],
        env={**os.environ, "PYTHONPATH": str(package), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _library(compiler: str, name: str) -> Path:
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_kernel_builds_without_a_warning(compiler, tmp_path):
    """-Wall -Wextra, as CMakeLists.txt asks of our own files."""
    said = build(compiler, tmp_path / "build")
    assert [line for line in said.splitlines() if "warning" in line] == []


def test_the_kernel_runs_clean_under_the_sanitizers(tmp_path):
    compiler = COMPILERS[0]
    # The C++ library beside it: without, the sanitizer does not find what it wraps when an exception is thrown.
    libraries = [_library(compiler, name) for name in ("libasan.so", "libstdc++.so")]
    if compiler != "g++" or not all(library.is_absolute() for library in libraries):
        pytest.skip("this compiler has no shared sanitizer library to load into Python")
    build(compiler, tmp_path / "build", "-DSTRIKEOUT_SANITIZE=ON")
    package = tmp_path / "package"
    shutil.copytree(ROOT / "src" / "strikeout", package / "strikeout", ignore=shutil.ignore_patterns("_native*"))
    for module in (tmp_path / "build").glob("_native*"):
        shutil.copy(module, package / "strikeout" / "kernels")
    # Without its library in front an instrumented module refuses to load: so this build is one.
    assert "ASan runtime does not come first" in run(package).stderr
    done = run(
        package,
        LD_PRELOAD=" ".join(map(str, libraries)),
        ASAN_OPTIONS="detect_leaks=0",  # Python itself leaves memory to the end of the process
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )
    assert done.returncode == 0, done.stderr[:3000]
    assert done.stdout == "clean\n"
