"""The public names: adding, removing or renaming one is a decision, made here and in the changelog."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

import strikeout

NAMES = {
    "Bates",
    "BlackScholes",
    "Book",
    "CharacteristicModel",
    "Clock",
    "Contracts",
    "DoubleHeston",
    "Heston",
    "Model",
    "ParameterSpace",
    "Quotes",
    "SABR",
    "SSVI",
    "SVI",
    "VarianceGamma",
    "__version__",
    "american",
    "calibrate",
    "check_model",
    "compare_models",
    "custom_model",
    "draw",
    "errors",
    "forget",
    "influence",
    "inspect_quotes",
    "learn",
    "outliers",
    "paper",
    "preview",
    "read_quotes",
    "restore",
    "results",
    "robustness",
    "roll",
    "scale",
    "states",
    "synthetic",
    "verify",
    "write_quotes",
}


def test_the_public_names_are_these_and_no_others():
    assert set(strikeout.__all__) == NAMES
    assert len(strikeout.__all__) == len(NAMES) <= 40


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_is_there_and_explained(name):
    value = getattr(strikeout, name)
    assert name in dir(strikeout)
    if name != "__version__":
        assert (value.__doc__ or "").strip(), f"{name} has no docstring"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match="calibrate"):
        strikeout.fit  # noqa: B018


def test_the_version_is_the_one_the_package_declares(root):
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert strikeout.__version__ == declared


def test_the_module_can_be_run_as_the_command():
    done = subprocess.run([sys.executable, "-m", "strikeout", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "calibrate" in done.stdout
