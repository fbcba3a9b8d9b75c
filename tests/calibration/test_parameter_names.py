"""Textbook symbols name parameters wherever parameters are named in Python, as at the command line."""

from __future__ import annotations

import pytest

import strikeout as so
from strikeout.errors import ParameterError, UsageError
from tests.raising import raises

QUOTES = so.paper.quotes("small")
FULL = {"correlation": -0.7, "mean_reversion": 2.0}
SHORT = {"rho": -0.7, "kappa": 2.0}


def test_symbols_and_names_give_the_same_calibration():
    bounds, symbols = {"initial_variance": (0.01, 0.2)}, {"v0": (0.01, 0.2)}
    full = so.calibrate(QUOTES, so.Heston(), fixed=FULL, bounds=bounds)
    short = so.calibrate(QUOTES, so.Heston(), fixed=SHORT, bounds=symbols)
    assert short.parameters == full.parameters
    assert short.settings == full.settings
    assert (short.settings.fixed, short.settings.bounds) == (FULL, bounds)


def test_symbols_name_the_parameters_of_a_start():
    start = {"kappa": 2.0, "theta": 0.05, "sigma": 0.4, "rho": -0.5, "v0": 0.04}
    found = so.calibrate(QUOTES, so.Heston(), starts=[start])
    assert found.settings.starts[0]["long_variance"] == 0.05


@pytest.mark.parametrize("setting", ["fixed", "bounds"])
def test_two_names_of_one_parameter_are_refused(setting):
    value = -0.7 if setting == "fixed" else (-0.9, -0.1)
    with pytest.raises(ParameterError) as refused:
        so.calibrate(QUOTES, so.Heston(), **{setting: {"rho": value, "correlation": value}})
    assert refused.value.facts["name"] == "correlation"


def test_an_argument_that_calibrate_does_not_have_is_refused_by_name(tmp_path):
    with raises(UsageError, argument="wieghts"):
        so.calibrate(QUOTES, so.Heston(), wieghts="spread")
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(QUOTES)
        with raises(UsageError, argument="wieghts"):
            book.calibrate(wieghts="spread")


def test_a_symbol_that_is_no_parameter_of_the_model_is_refused():
    with pytest.raises(ParameterError):
        so.calibrate(QUOTES, so.BlackScholes(), fixed={"kappa": 1.0})


def test_a_book_keeps_the_full_names(tmp_path):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(QUOTES)
        book.calibrate(fixed=SHORT, panel=None)
        assert book.options()["fixed"].keys() == FULL.keys()
