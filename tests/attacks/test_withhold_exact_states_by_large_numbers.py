"""Somebody brings a function of large numbers, and wants no exact state of its quotes, so that nothing can be checked.

NIST's Hahn1, MGH10 and Thurber from their second start: values up to a million, derivatives up to 1e11. The grid of
exact rows follows from the typical size of the function at the first start, never from a quote.
"""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.forgetting.recompute import restep
from strikeout.results import Claim
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import schema_of
from tests.models.nist import PROBLEMS, problem

GONE = ["row 3", "row 4", "row 13"]
either = pytest.mark.parametrize("is_stated", [False, True], ids=["", "with ranges"])


def made(name: str, is_stated: bool):
    return problem(name, **({"ranges": {"x": PROBLEMS[name].within}} if is_stated else {}))


@either
@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_struck_out_leave_the_exact_state_of_the_others(name, is_stated):
    model, quotes = made(name, is_stated)
    start = model.parameters.starts[0]
    whole, part = footprints_of(quotes, model, start), footprints_of(quotes.only(GONE), model, start)
    fresh = footprints_of(quotes.without(GONE), model, start)
    assert (whole.total() - part.total()).digest() == fresh.total().digest()


@either
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_certificate_claims_the_state_and_holds(name, is_stated):
    model, quotes = made(name, is_stated)
    done = so.forget(so.calibrate(quotes, model), ids=["row 7"])
    assert Claim.STATE in done.certificate.claimed()
    assert so.verify(done.certificate, quotes.without(["row 7"]), model=model)


@either
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_step_from_raw_quotes_is_that_of_the_state(name, is_stated):
    model, quotes = made(name, is_stated)
    found = so.calibrate(quotes, model)
    again = restep(quotes.without(GONE), model, found.footprints.whole.schema)
    assert again.parameters == so.forget(found, ids=GONE, operator="downdate").parameters


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_quote_moves_the_grid(name):
    model, quotes = problem(name)
    start = model.parameters.starts[0]
    spoilt = quotes.with_observed(quotes.observed * 1e3)
    grids = {footprints_of(some, model, start).schema.exponents for some in (quotes, quotes.only(GONE), spoilt)}
    assert grids == {schema_of(model, start).exponents}


def test_the_grid_follows_the_size_of_the_function_at_its_start():
    def grid(price, a=1.0):
        return so.custom_model("f", parameters={"a": a}, price=price).exponents

    assert grid(lambda a, x: a + 0.0 * x) == (42, 42)
    assert grid(lambda a, x: a + 0.0 * x, 2.0**20) == (42, 22)
    assert grid(lambda a, x: a * 2.0**-30 + 0.0 * x) == (72, 72)
    assert grid(lambda a, x: np.where(x > 300.0, a, np.nan)) == (42, 42)  # no value where it is probed


def test_a_function_that_refuses_the_probes_has_the_grid_of_one():
    table = np.arange(10.0)

    def looked_up(a, row):
        return a * table[row.astype(int)]

    model = so.custom_model("table", parameters={"a": 1.0}, price=looked_up)
    assert model.exponents == (42, 42)
