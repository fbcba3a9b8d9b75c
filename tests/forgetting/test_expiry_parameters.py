"""Models with parameters for every expiry, one of which goes: the others are calibrated, or a sentence says why not."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from tests.raising import raises

QUOTES = so.paper.quotes("large")[::7]
FIRST = QUOTES.ids[np.min(QUOTES.contracts.expiry) == QUOTES.contracts.expiry]
SABR = so.calibrate(QUOTES, so.SABR())
GONE = "alpha[0.119048]"


@pytest.mark.parametrize("model", [so.SABR(), so.SVI("natural"), so.SSVI(), so.BlackScholes("quoted")])
def test_resolving_without_an_expiry_gives_the_parameters_of_the_others(model):
    calibration = so.calibrate(QUOTES, model)
    resolved = so.forget(calibration, ids=FIRST, operator="resolve").parameters
    fresh = so.calibrate(QUOTES.without(FIRST), model)
    assert resolved.keys() == fresh.parameters.keys()
    for name, value in fresh.parameters.items():
        assert abs(resolved[name] - value) < 1e-3 * fresh.standard_errors[name]  # what the moments' basis leaves open


@pytest.mark.parametrize("operator", ["downdate", "restep", "recompute", "refine"])
def test_a_step_does_not_say_that_quotes_are_missing_where_an_expiry_is(operator):
    with raises(UsageError, mentions={"operator"}) as said:
        so.forget(SABR, ids=FIRST, operator=operator)
    assert "recalibrate" in str(said.value)
    assert "fixed" not in str(said.value)


def test_a_tolerance_passes_the_step_over_and_says_so():
    done = so.forget(SABR, ids=FIRST, tolerance=0.05)
    assert "the last quote of an expiry is struck out" in done.path[0]
    assert done.parameters == so.calibrate(QUOTES.without(FIRST), so.SABR()).parameters


def test_a_step_within_expiries_that_stay_is_still_a_step():
    assert so.forget(SABR, ids=QUOTES.ids[:3], operator="downdate").operator == "downdate"


@pytest.mark.parametrize("operator", [None, "recalibrate", "resolve"])
@pytest.mark.parametrize(
    ("where", "given"),
    [
        ("bounds", {GONE: (0.01, 5.0)}),
        ("fixed", {GONE: SABR.parameters[GONE]}),
        ("starts", [SABR.parameters]),
    ],
)
def test_what_names_a_parameter_of_the_vanished_expiry_is_said_with_what_is_left(where, given, operator):
    calibration = so.calibrate(QUOTES, so.SABR(), **{where: given})
    with pytest.raises(RefusedError, match=f"{where} names .*alpha\\[0.119048\\]") as refused:
        so.forget(calibration, ids=FIRST, operator=operator)
    assert GONE in refused.value.gone
    assert "what is left has alpha[0.238095]" in str(refused.value)
    assert f"{where}={{...}}" in str(refused.value)
