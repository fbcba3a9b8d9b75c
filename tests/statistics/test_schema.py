"""The grid of a state: fixed by the model and the reference, and named by a digest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError, UsageError
from strikeout.statistics.normal_equations import GRID, Schema, schema_of
from tests.raising import raises

HESTON = so.Heston()
START = HESTON.parameters.starts[0]
SCHEMA = schema_of(HESTON, START)


def test_residuals_are_on_the_grid_and_columns_times_their_parameters_near_it():
    assert SCHEMA.exponents[-1] == GRID == 41
    # starts[0] = 4, 0.09, 0.8, -0.5, 0.09: the nearest powers of two are 2^2, 2^-3, 2^0, 2^-1, 2^-3
    assert SCHEMA.exponents[:-1] == (43, 38, 41, 40, 38)


def test_the_grid_does_not_depend_on_the_reference():
    elsewhere = schema_of(HESTON, START * 1.7)
    assert elsewhere.exponents == SCHEMA.exponents
    assert elsewhere.digest() != SCHEMA.digest()


def test_a_reference_by_name_and_one_in_order_are_the_same():
    assert schema_of(HESTON, HESTON.parameters.named(START)) == SCHEMA


@pytest.mark.parametrize(
    "change",
    [
        {"model": "heston/other"},
        {"parameters": ("a", "b", "c", "d", "e")},
        {"reference": tuple(np.nextafter(START, 9.0))},
        {"exponents": (42, 38, 41, 40, 38, 41)},
        {"residual": "implied_vol"},
        {"weights": "vega"},
    ],
)
def test_whatever_differs_shows_in_the_digest(change):
    assert replace(SCHEMA, **change).digest() != SCHEMA.digest()


class Gridded(so.Heston):
    grid = 50


def test_a_model_may_state_its_own_grid_and_the_caller_another():
    assert schema_of(Gridded(), START).exponents[-1] == 50
    assert schema_of(Gridded(), START, grid=20).exponents == (22, 17, 20, 19, 17, 20)


def test_the_nearest_power_of_two_counts_and_one_for_a_parameter_that_starts_at_zero():
    class Odd(so.Heston):
        @property
        def parameters(self) -> so.ParameterSpace:
            return replace(super().parameters, starts=np.array([[0.0, 0.7, -0.75, 1.4, 1.5]]))

    assert schema_of(Odd(), START).exponents == (41, 40, 41, 41, 42, 41)


def test_a_reference_that_is_no_point_of_the_model_is_refused():
    with raises(ParameterError, unknown=[]):
        schema_of(HESTON, {"mean_reversion": 1.0})


def test_lengths_that_do_not_match_and_absurd_grids_are_refused():
    with raises(UsageError, count=1):
        Schema("m", ("a",), reference=(0.0,), exponents=(41,), residual="price", weights="none")
    with pytest.raises(UsageError, match="coarser grid"):
        schema_of(HESTON, START, grid=399)
