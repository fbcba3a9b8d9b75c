"""``strikeout certificate FILE`` shows what a certificate file claims, and refuses a damaged file."""

from __future__ import annotations

from pathlib import Path

import pytest

from strikeout.assurance.certificate import Certificate
from tests.cli.typed import done, run, told

EARLY = "date < '2024-01-10'"


@pytest.fixture
def file(book):
    """The certificate of forgetting 36 of 540 quotes, written to a file."""
    done("forget", book, "--where", EARLY, "--yes")
    done("certificate", book, 4, "--out", "c.json")
    return Path("c.json")


def test_a_certificate_file_is_shown_with_its_claims_parameters_and_model(file):
    issued, shown = Certificate.from_bytes(file.read_bytes()), told("certificate", file)
    assert {"STATE", "OPTIMUM"} <= set(shown["claims"])
    assert set(shown["claims"]) == {claim.name for claim in issued.claimed()}
    assert shown["parameters"] == issued.parameters
    assert set(shown["parameters"]) == {"correlation", "long_variance", "mean_reversion", "vol_of_vol"}
    assert shown["model"] == issued.model
    assert shown["model"].startswith("heston/")
    assert shown["counts"] == {"forgotten": 36, "retained": 504}
    assert (shown["digest"], shown["out"]) == (issued.digest(), None)
    assert all(name in done("certificate", file).stdout for name in shown["parameters"])


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "other format"])
def test_a_damaged_certificate_file_is_bad_input(file, damage):
    good = file.read_bytes()
    changed = good.replace(b'"forgotten":36', b'"forgotten":35')
    assert changed != good
    other = good.replace(b"strikeout certificate 2", b"strikeout certificate 9")
    file.write_bytes({"truncated": good[:-1], "changed": changed, "empty": b"", "other format": other}[damage])
    ended = run("certificate", file, "--json")
    assert (ended.exit_code, ended.stdout) == (2, "")


def test_a_file_has_one_certificate_and_must_exist(file):
    assert run("certificate", file, 4).exit_code == 2
    assert run("certificate", "missing.json").exit_code == 2
