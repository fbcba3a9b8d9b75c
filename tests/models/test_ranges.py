"""Exact states of functions whose values or derivatives are far from one: the grid follows from stated ranges."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError, UsageError
from strikeout.quotes.contracts import Features
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import schema_of
from tests.models.nist import PROBLEMS, problem


@pytest.mark.parametrize("name", ["MGH10", "Thurber"])
def test_the_certified_values_are_found_in_exact_integers_too(name):
    case = PROBLEMS[name]
    model, quotes = problem(name, ranges={"x": case.within})
    residual = quotes.observed - case.function(*case.certified, np.array(case.x, float))
    assert float(residual @ residual) == pytest.approx(case.squares, rel=1e-10)
    found = so.calibrate(quotes, model)
    assert found.converged
    # NIST certifies 11 digits; measured: 1.2e-11 and 3.6e-11.
    assert list(found.parameters.values()) == pytest.approx(case.certified, rel=1e-10)


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_are_exact_integers_on_the_grid_that_the_ranges_give(name):
    model, quotes = problem(name, ranges={"x": PROBLEMS[name].within})
    start = model.parameters.starts[0]
    whole = footprints_of(quotes, model, start)
    # The integers keep 2^-50 of the largest derivative: read back, rows agree with those of the function to that.
    value, slopes = model.linearize(start, quotes.contracts)
    rows = np.column_stack([slopes, quotes.observed - value])
    kept = np.ldexp(rows, np.array(whole.schema.exponents))
    assert np.abs(kept).max() < 2.0**62
    assert (np.abs(kept).max(axis=0) > 2.0**40).all()


def test_the_grid_follows_from_the_ranges_and_no_quote_can_move_it():
    model, quotes = problem("MGH10", ranges={"x": (50.0, 125.0)})
    start = model.parameters.starts[0]
    wide, _ = problem("MGH10", ranges={"x": (0.0, 1000.0)})
    assert schema_of(model, start).exponents != schema_of(wide, start).exponents
    few = quotes.only(["row 0", "row 15"])
    assert footprints_of(few, model, start).schema == footprints_of(quotes, model, start).schema
    # Two columns: derivatives are one and x, at most 1 and 8; the values at most 9.
    plane = partial(so.custom_model, "plane", parameters={"a": 1.0, "b": 1.0}, price=lambda a, b, x, y: a * x + b * y)
    assert plane(ranges={"x": (0.0, 1.0), "y": (-8.0, 8.0)}).exponents == (50, 47, 47)
    assert plane(grid=30).exponents is None


@pytest.mark.parametrize("ranges", [{}, {"y": (0.0, 1.0)}, {"x": (1.0, 0.0)}, {"x": (0.0, np.inf)}])
def test_ranges_that_are_not_one_per_column_are_refused(ranges):
    with pytest.raises(UsageError):
        problem("MGH10", ranges=ranges)


def test_a_function_without_a_value_in_its_ranges_has_no_grid():
    model = so.custom_model(
        "root", parameters={"a": 1.0}, price=lambda a, x: a * np.sqrt(x), ranges={"x": (-2.0, -1.0)}
    )
    with pytest.raises(ParameterError):
        _ = model.exponents
    assert np.isnan(model.price({"a": 1.0}, Features({"x": [-1.0]}))).all()
