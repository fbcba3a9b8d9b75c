"""A certificate names what its bits depend on: verify on another processor says that the builds differ."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.build import ROUNDING, build_of, difference
from strikeout.assurance.claim_checks import ClaimChecker
from strikeout.kernels.compiled import native

BOOK = """
import sys
from pathlib import Path
import strikeout as so
quotes = so.synthetic.random_quotes(300, maturities=5, seed=3, noise=1e-3)
path, kernel = Path(sys.argv[1]), sys.argv[2]
"""
MAKE = """
before = so.calibrate(quotes, so.Heston(kernel=kernel))
path.write_bytes(so.forget(before, ids=quotes.ids[:20]).certificate.to_bytes())
"""
CHECK = "print(so.verify(path.read_bytes(), quotes[20:]).summary())"
# Of one quote less: what is claimed to the bit fails on every processor, whether or not its bits are others.
CHECK_LESS = "print(so.verify(path.read_bytes(), quotes[21:]).summary())"
OTHER = {"OPENBLAS_CORETYPE": "Nehalem"}
PLAIN = {"NPY_DISABLE_CPU_FEATURES": " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))}
openblas = pytest.mark.skipif(
    "openblas" not in build_of("").get("blas", "") or build_of("")["machine"] != "x86_64",
    reason="cores of OpenBLAS can be chosen on x86_64",
)
compiled = pytest.mark.skipif(native() is None, reason="the compiled kernel is not installed")


def run(program: str, path, kernel: str, **environment: str) -> str:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BOOK + program, str(path), kernel],
        env=os.environ | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return found.stdout


def line(summary: str, claim: str) -> str:
    return next(text for text in summary.splitlines() if claim in text)


@openblas
def test_verify_names_the_core_of_the_blas_where_bits_differ(tmp_path):
    run(MAKE, tmp_path / "certificate.json", "numpy")
    said = line(run(CHECK_LESS, tmp_path / "certificate.json", "numpy", **OTHER), "NEVER_SEEN")
    assert said.startswith("FAILS")
    assert "The builds differ: blas" in said
    assert said.endswith("Nehalem here.")
    named = "from strikeout.assurance.build import build_of; print(build_of('')['blas'])"
    assert run(named, tmp_path, "numpy", **OTHER).endswith(" Nehalem\n")


@pytest.mark.skipif(not PLAIN["NPY_DISABLE_CPU_FEATURES"], reason="this processor has nothing NumPy would choose")
def test_verify_names_the_instructions_of_the_processor_where_the_state_rests_on_them(tmp_path):
    run(MAKE, tmp_path / "certificate.json", "numpy")
    for claim in ("STATE", "NEVER_SEEN"):
        said = line(run(CHECK_LESS, tmp_path / "certificate.json", "numpy", **PLAIN), claim)
        assert said.startswith("FAILS")
        assert "The builds differ: processor" in said
    summary = run(CHECK, tmp_path / "certificate.json", "numpy", **PLAIN)
    assert "holds        OPTIMUM" in summary


@compiled
def test_the_compiled_kernel_gives_one_certificate_on_every_processor(tmp_path):
    run(MAKE, tmp_path / "here.json", "native")
    run(MAKE, tmp_path / "there.json", "native", **OTHER, **PLAIN)
    assert (tmp_path / "here.json").read_bytes() == (tmp_path / "there.json").read_bytes()


def test_a_build_names_what_numpy_rounds_by_only_where_numpy_prices():
    quotes = so.synthetic.random_quotes(60, maturities=3, seed=3, noise=1e-3)
    for kernel in ("numpy", *(["native"] if native() else [])):
        made = so.forget(so.calibrate(quotes, so.Heston(kernel=kernel)), ids=quotes.ids[:3]).certificate
        assert (set(made.build) > {"processor", "blas"}) == (kernel == "numpy")
    for name in ("heston/native-shared-2", "ssvi/1(one)"):
        assert bool({*ROUNDING} & {*build_of(name)}) == (native() is None)
    for name in ("heston/numpy-shared-2", "paper-heston(u_max=50)", "a user's model"):
        assert {"processor", "blas"} <= {*build_of(name)}


def test_a_state_of_other_quotes_says_nothing_of_builds_where_those_round_alike():
    quotes = so.synthetic.random_quotes(60, maturities=3, seed=3, noise=1e-3)
    made = so.forget(so.calibrate(quotes, so.Heston(kernel="numpy")), ids=quotes.ids[:3]).certificate
    made.build["python"] = "3.0.0"
    same, said = ClaimChecker(made, quotes[4:], None, None).state()
    assert not same
    assert "builds" not in said
    made.build["processor"] = "another"
    assert "The builds differ: processor another" in ClaimChecker(made, quotes[4:], None, None).state()[1]


def test_builds_that_are_the_same_have_no_difference_and_what_is_not_named_is_said_so():
    assert difference(build_of("x"), build_of("x")) == ""
    assert difference({}, {"blas": "one"}) == "The builds differ: blas not named there, blas one here."
