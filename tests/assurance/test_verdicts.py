"""Three verdicts of a verification: verified, refuted, cannot be checked here; at the command line 0, 1 and 3."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.verify import Verdict
from strikeout.kernels.compiled import native

needs_compiled = pytest.mark.skipif(native() is None, reason="certificates of the compiled kernel are needed")
# A command on a machine without the compiled kernel.
WITHOUT = (
    "import sys; sys.modules['strikeout.kernels._native'] = None; sys.argv[0] = 'strikeout'\n"
    "from strikeout.cli import main; main()"
)


def run_without_kernel(*words: str, folder: Path) -> tuple[int, dict]:
    program = [sys.executable, "-c", WITHOUT, *words, "--json"]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("verdicts")
    quotes = so.paper.quotes("small", seed=3)
    gone = quotes.ids[:20]
    so.write_quotes(quotes.without(gone), folder / "kept.csv")
    for name, panel in (("plain", None), ("panel", "date")):
        certificate = so.forget(so.calibrate(quotes, so.Heston(), panel=panel), ids=gone).certificate
        (folder / f"{name}.json").write_bytes(certificate.to_bytes())
        wrong = {key: (float.fromhex(text) * 1.05).hex() for key, text in certificate.parameters.items()}
        (folder / f"{name}-forged.json").write_bytes(dataclasses.replace(certificate, parameters=wrong).to_bytes())
    with so.Book.create(folder / "x.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
    return folder


def unchecked(found: dict) -> set[str]:
    return {check["name"] for check in found["checks"] if check["is_unchecked"]}


@needs_compiled
@pytest.mark.parametrize("kind", ["plain", "panel"])
def test_without_the_compiled_kernel_the_optimum_is_checked_and_bits_are_not(folder, kind):
    code, found = run_without_kernel("verify", f"{kind}.json", "kept.csv", folder=folder)
    assert (code, found["verdict"], found["is_optimum"]) == (3, "unchecked", True)
    assert unchecked(found) == {"STATE", "NEVER_SEEN"}


@needs_compiled
@pytest.mark.parametrize("kind", ["plain", "panel"])
def test_without_the_compiled_kernel_wrong_parameters_are_refuted_all_the_same(folder, kind):
    code, found = run_without_kernel("verify", f"{kind}-forged.json", "kept.csv", folder=folder)
    assert (code, found["verdict"], found["is_optimum"]) == (1, "refuted", False)


@needs_compiled
def test_without_the_compiled_kernel_a_book_is_not_called_false(folder):
    code, found = run_without_kernel("verify", "x.book", folder=folder)
    assert (code, found["verdict"]) == (3, "unchecked")
    assert unchecked(found) == {"STATES", "PARAMETERS", "CERTIFICATES"}
    assert {check["name"] for check in found["checks"] if check["holds"]} >= {"STORE", "LEDGER", "CONTENTS", "COUNTS"}


def test_a_certificate_and_its_forgery_are_verified_and_refuted(folder):
    kept = so.read_quotes(folder / "kept.csv")
    assert so.verify((folder / "plain.json").read_bytes(), kept).verdict is Verdict.VERIFIED
    assert so.verify((folder / "plain-forged.json").read_bytes(), kept).verdict is Verdict.REFUTED


def test_a_model_of_the_users_own_cannot_be_checked_without_it():
    x = np.linspace(0, 3, 60)
    quotes = so.Quotes.from_columns([f"q{i}" for i in range(60)], np.sin(2 * x) + 0.01 * np.cos(31 * x), x=x)
    model = so.custom_model("wave", parameters={"b": 2.2}, price=lambda b, x: np.sin(b * x))
    certificate = so.forget(so.calibrate(quotes, model), ids=["q3"]).certificate
    kept = quotes.without(["q3"])
    assert so.verify(certificate, kept).verdict is Verdict.UNCHECKED
    assert so.verify(certificate, kept, model=model).verdict is Verdict.VERIFIED


def test_a_verification_names_model_objective_parameters_and_what_counts(folder):
    certificate = Certificate.from_bytes((folder / "plain.json").read_bytes())
    facts = dict(so.verify(certificate, so.read_quotes(folder / "kept.csv")).facts)
    assert facts["model"] == certificate.model
    assert f"{certificate.counts['retained']:,}" in facts["quotes"]
    assert all(name in facts["parameters"] for name in certificate.parameters)
    assert set(facts["claims"].split(", ")) == {claim.name for claim in certificate.claimed()}
    assert facts["not claimed"] == "STEP"


def test_a_certificate_without_an_optimum_is_verified_in_part(folder):
    certificate = Certificate.from_bytes((folder / "plain.json").read_bytes())
    claims = {name: made for name, made in certificate.claims.items() if name != "OPTIMUM"}
    bare = dataclasses.replace(certificate, claims=claims, obstacles={**certificate.obstacles, "OPTIMUM": "FAR"})
    found = so.verify(bare, so.read_quotes(folder / "kept.csv"))
    assert (found.verdict, found.is_optimum) == (Verdict.VERIFIED, None)
    assert found.headline.startswith("Verified in part")


def test_an_optimum_that_holds_only_to_rounding_is_reported_as_such(folder):
    certificate = Certificate.from_bytes((folder / "plain.json").read_bytes())
    kept = so.read_quotes(folder / "kept.csv")
    for tolerance, is_of_rounding in ((1e-5, False), (1e-300, True)):
        claims = {**certificate.claims, "OPTIMUM": {"tolerance": tolerance.hex()}}
        found = so.verify(dataclasses.replace(certificate, claims=claims), kept)
        (optimum,) = (check for check in found.checks if check.name == "OPTIMUM")
        assert optimum.holds
        assert ("rounding" in optimum.found) == is_of_rounding
