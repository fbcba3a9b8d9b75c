"""The same bits on every processor: one program, run while NumPy, the C library and the BLAS are told of another one.

Each setting is one run of ``processor_program.py``. Every result has to be the same text as in an ordinary run, and
every certificate of the ordinary run has to hold, NEVER_SEEN included, in each of the others.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strikeout.kernels.compiled import native
from tests.laws.processor_program import GOLDEN, portable

PROGRAM = Path(__file__).parent / "processor_program.py"
pytestmark = pytest.mark.skipif(native() is None, reason="without the compiled kernel bits follow NumPy's processor")

SIMD = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # what NumPy would take on this processor
WIDE = [name for name in SIMD if name.startswith("AVX512") or name == "X86_V4"]
# Before 2.33 the names of glibc end in _Usable. A name that it does not know is ignored.
LIBC = ",".join(f"-{name},-{name}_Usable" for name in ("AVX2", "FMA", "FMA4", "AVX512F", "AVX512VL", "AVX512DQ"))
IS_X86 = platform.machine() in ("x86_64", "AMD64")

Setting = tuple[dict[str, str], tuple[str, ...]]
SETTINGS: dict[str, Setting] = {
    "ordinary": ({"STRIKEOUT_THREADS": "2"}, ()),
    "plain kernel, one thread": ({"STRIKEOUT_THREADS": "1"}, ("--instructions", "plain")),
}
if (MODULE := native()) is not None and "avx512" in MODULE.available_instructions():
    SETTINGS["AVX2 kernel"] = ({}, ("--instructions", "avx2"))
if SIMD:
    SETTINGS["NumPy without SIMD"] = ({"NPY_DISABLE_CPU_FEATURES": " ".join(SIMD)}, ())
if WIDE:
    SETTINGS["NumPy without AVX-512"] = ({"NPY_DISABLE_CPU_FEATURES": " ".join(WIDE)}, ())
if IS_X86 and platform.libc_ver()[0] == "glibc":
    SETTINGS["C library without FMA"] = ({"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={LIBC}"}, ())
if IS_X86:
    SETTINGS["BLAS of an old core"] = ({"OPENBLAS_CORETYPE": "Nehalem"}, ())
OTHERS = [name for name in SETTINGS if name != "ordinary"]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory, request):
    """What the program prints under a setting, by name; run once, however many workers ask."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if hasattr(request.config, "workerinput") else folder) / "processors"
    folder.mkdir(exist_ok=True)

    def of(name: str) -> dict[str, Any]:
        place, arguments = folder / f"{name}.json", ()
        if name != "ordinary":
            of("ordinary")
            arguments = ("--verify", str(folder / "ordinary.json"))
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                place.write_text(run(name, *arguments))
        return json.loads(place.read_text())

    return of


def run(name: str, *more: str) -> str:
    environment, arguments = SETTINGS[name]
    found = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), *arguments, *more],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """The names of results that are not the same text in both."""
    return [name for name in first | second if first.get(name) != second.get(name)]


@pytest.mark.parametrize("name", OTHERS)
def test_every_result_has_the_same_bits(outcome, name):
    here, there = outcome("ordinary")["results"], outcome(name)["results"]
    assert len(here) > 500  # all of it was computed
    assert differences(here, there) == []


@pytest.mark.parametrize("name", OTHERS)
def test_a_certificate_of_another_processor_holds_here(outcome, name):
    checked = outcome(name)["verified"]
    assert set(checked) == set(outcome("ordinary")["certificates"])
    assert {model for model, claims in checked.items() if claims["NEVER_SEEN"] is not True} == set()
    assert {model for model, claims in checked.items() if False in claims.values()} == set()


@pytest.mark.skipif(not IS_X86 or len(OTHERS) < 4, reason="nothing of this processor can be hidden")
def test_the_settings_change_what_the_libraries_round_to(outcome):
    """A control of the comparison: functions of NumPy, the C library and the BLAS are not the same bits everywhere."""
    here = outcome("ordinary")["control"]
    changed = {which for name in OTHERS for which in differences(here, outcome(name)["control"])}
    assert changed == {"numpy", "libc", "blas"}
    assert differences(here, outcome("plain kernel, one thread")["control"]) == []


def test_this_computer_has_the_bits_of_every_other(outcome):
    """The file was made on another computer: one that rounds otherwise, and that nobody tried, reports itself here."""
    golden = json.loads(GOLDEN.read_text())["results"]
    assert len(golden) > 500
    assert differences(golden, portable(outcome("ordinary")["results"])) == []


def test_one_bit_is_a_difference():
    assert differences({"a": (1.0).hex(), "b": "x"}, {"a": np.nextafter(1.0, 2.0).hex(), "b": "x"}) == ["a"]
    assert differences({"a": "x"}, {}) == ["a"]
