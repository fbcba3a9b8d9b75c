"""Exact states of functions whose values or derivatives are far from one: the grid follows from stated ranges."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError, RefusedError, UsageError
from strikeout.quotes.features import Features
from strikeout.results import Claim
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.schema import schema_of


def rational(b1, b2, b3, b4, b5, b6, b7, x):
    return (b1 + b2 * x + b3 * x**2 + b4 * x**3) / (1 + b5 * x + b6 * x**2 + b7 * x**3)


def exponential(b1, b2, b3, x):
    return b1 * np.exp(b2 / (x + b3))


# NIST's second starts and certified values (StRD, nonlinear regression). The rows are drawn from the certified values.
PROBLEMS = {
    "Hahn1": (
        rational,
        (1.0, -0.1, 0.005, -0.000001, -0.005, 0.0001, -0.0000001),
        (1.07763517, -0.1226929692, 0.004086375061, -1.42626625e-06, -0.0057609941, 0.000240537355, -1.231445e-07),
        (10.0, 860.0),
        0.08,
    ),
    "MGH10": (
        exponential,
        (0.02, 4000.0, 250.0),
        (5.6096364710e-03, 6.1813463463e03, 3.4522363462e02),
        (50.0, 125.0),
        2.6,
    ),
    "Thurber": (
        rational,
        (1300.0, 1500.0, 500.0, 75.0, 1.0, 0.4, 0.05),
        (1288.1396800, 1491.0792535, 583.23836877, 75.416644291, 0.96629502864, 0.39797285797, 0.049727297349),
        (-3.1, 2.2),
        14.0,
    ),
}  # fmt: skip


def problem(name: str, **options):
    """The model from its start, and forty rows."""
    function, start, answer, (low, high), noise = PROBLEMS[name]
    names = [f"b{i + 1}" for i in range(len(start))]
    x = np.linspace(low, high, 40)
    observed = function(*answer, x) + noise * np.random.default_rng(1).standard_normal(len(x))
    quotes = so.Quotes.from_columns([f"row {i}" for i in range(len(x))], observed, x=x)
    starts = dict(zip(names, start, strict=True))
    return so.custom_model(name, parameters=starts, price=function, **options), quotes


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_default_grid_has_no_room_and_ranges_make_it(name):
    model, quotes = problem(name)
    with pytest.raises(RefusedError):
        footprints_of(quotes, model, model.parameters.starts[0])
    model, quotes = problem(name, ranges={"x": PROBLEMS[name][3]})
    start = model.parameters.starts[0]
    gone = ["row 3", "row 4", "row 30"]
    whole, part = footprints_of(quotes, model, start), footprints_of(quotes.only(gone), model, start)
    fresh = footprints_of(quotes.without(gone), model, start)
    assert (whole.total() - part.total()).digest() == fresh.total().digest()
    # The integers keep 2^-50 of the largest derivative: read back, rows agree with those of the function to that.
    value, slopes = model.linearize(start, quotes.contracts)
    rows = np.column_stack([slopes, quotes.observed - value])
    kept = np.ldexp(rows, np.array(whole.schema.exponents))
    assert np.abs(kept).max() < 2.0**62
    assert (np.abs(kept).max(axis=0) > 2.0**40).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_certificate_claims_the_state(name):
    model, quotes = problem(name, ranges={"x": PROBLEMS[name][3]})
    done = so.forget(so.calibrate(quotes, model), ids=["row 7"])
    assert Claim.STATE in done.certificate.claimed()
    assert so.verify(done.certificate, quotes.without(["row 7"]), model=model)


def test_the_grid_follows_from_the_ranges_and_no_quote_can_move_it():
    model, quotes = problem("MGH10", ranges={"x": (50.0, 125.0)})
    start = model.parameters.starts[0]
    wide, _ = problem("MGH10", ranges={"x": (0.0, 1000.0)})
    assert schema_of(model, start).exponents != schema_of(wide, start).exponents
    few = quotes.only(["row 0", "row 39"])
    assert footprints_of(few, model, start).schema == footprints_of(quotes, model, start).schema
    # Two columns: derivatives are one and x, at most 1 and 8; the values at most 9.
    plane = partial(so.custom_model, "plane", parameters={"a": 1.0, "b": 1.0}, price=lambda a, b, x, y: a * x + b * y)
    assert plane(ranges={"x": (0.0, 1.0), "y": (-8.0, 8.0)}).exponents({"a": 1.0, "b": 1.0}) == (50, 47, 47)
    assert plane().exponents({"a": 1.0, "b": 1.0}) is None


@pytest.mark.parametrize("ranges", [{}, {"y": (0.0, 1.0)}, {"x": (1.0, 0.0)}, {"x": (0.0, np.inf)}])
def test_ranges_that_are_not_one_per_column_are_refused(ranges):
    with pytest.raises(UsageError):
        problem("MGH10", ranges=ranges)


def test_a_function_without_a_value_in_its_ranges_has_no_grid():
    model = so.custom_model(
        "root", parameters={"a": 1.0}, price=lambda a, x: a * np.sqrt(x), ranges={"x": (-2.0, -1.0)}
    )
    with pytest.raises(ParameterError):
        model.exponents({"a": 1.0})
    assert np.isnan(model.price({"a": 1.0}, Features({"x": [-1.0]}))).all()
