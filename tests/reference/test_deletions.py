"""Stored deletions: what one step and a whole refit give without some rows, computed elsewhere in many digits."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import restep
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.system import FootprintBlocks
from tests.reference.real_books import FILES, book, rows_of
from tests.reference.regressions import Regression, nist, numbers, r
from tests.reference.test_nist import NIST

R = ("BOD", "DNase1_weighted", "Indometh1_biexp", "O2K", "Puromycin_treated", "vmkm")
PROBLEMS = [*(f"nist/{name}" for name in NIST), *(f"r/{name}" for name in R)]
# Doubles lose the digits of the curvature's condition: 3e9 here, 2e8 at most elsewhere.
ILL_CONDITIONED = "nist/Bennett5"


def problem(name: str, shared_data) -> Regression:
    return (nist if name.startswith("nist/") else r)(shared_data(f"nls/{name}.json"))


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != ILL_CONDITIONED])
def test_one_step_after_every_stored_deletion(name, shared_data):
    case = problem(name, shared_data)
    footprints = footprints_of(case.quotes, case.model(), case.answer)
    for what, rows, step, _ in case.deletions():
        found = downdate(FootprintBlocks.of(footprints), case.quotes.ids[rows]).parameters
        assert list(found.values()) == pytest.approx(step, rel=1e-9), what


def test_one_step_in_integers_where_doubles_do_not_reach(shared_data):
    case = problem(ILL_CONDITIONED, shared_data)
    footprints = footprints_of(case.quotes, replace(case.model(), grid=50), case.answer)
    doubles = []
    for what, rows, step, _ in case.deletions():
        left = footprints.total().less(footprints, footprints.places(case.quotes.ids[rows]))
        # The rows themselves are on a grid of 2^-50; their condition is the root of the curvature's, 6e4.
        assert case.answer + left.exact_step() == pytest.approx(step, rel=1e-11), what
        doubles.append(np.max(np.abs((case.answer + left.step()) / step - 1.0)))
    assert 1e-9 < max(doubles) < 1e-6


@pytest.mark.parametrize("name", ["nist/Misra1a", "nist/Gauss1", "nist/Nelson", "r/DNase1_weighted"])
def test_subtracting_footprints_equals_rebuilding_them_bit_for_bit(name, shared_data):
    case = problem(name, shared_data)
    model = case.model()
    footprints = footprints_of(case.quotes, model, case.answer)
    for what, rows, _, _ in case.deletions()[-4:]:
        ids = case.quotes.ids[rows]
        fast = downdate(FootprintBlocks.of(footprints), ids)
        rebuilt = restep(case.quotes.without(ids), model, footprints.schema)
        assert fast.equations.digest() == rebuilt.equations.digest(), what
        assert fast.parameters == rebuilt.parameters, what


def refit_all(case: Regression, deletions) -> None:
    for what, rows, _, refit in deletions:
        calibration = so.calibrate(case.quotes.without(case.quotes.ids[rows]), case.model())
        assert calibration.converged, what
        assert list(calibration.parameters.values()) == pytest.approx(refit, rel=1e-8), what


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_refit_after_stored_deletions(name, shared_data):
    case = problem(name, shared_data)
    deletions = case.deletions()
    refit_all(case, deletions[-4:] + deletions[: -4 : max(1, len(deletions) // 4)])


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_refit_after_every_stored_deletion(name, shared_data):
    case = problem(name, shared_data)
    refit_all(case, case.deletions())


@pytest.mark.parametrize("name", FILES)
def test_heston_on_real_books_after_stored_deletions(name, shared_data):
    cases = json.loads(shared_data("reference/heston_real_data_deletions.json").read_text())
    case = next(case for case in cases if case["name"] == name)
    quotes, frame = book(name, shared_data)
    assert len(quotes) == case["n"]
    model, full = so.Heston(), numbers(case["full"]["theta"])
    calibration = so.calibrate(quotes, model)
    assert list(calibration.parameters.values()) == pytest.approx(full, rel=1e-8)
    # Volatilities make the prices of two books again, to 1e-12 or so of the forward: their costs show it.
    assert calibration.cost == pytest.approx(float(case["full"]["sse"]), rel=1e-9)
    footprints = footprints_of(quotes, model, full)
    for what, deletion in case["deletions"].items():
        ids = quotes.ids[rows_of(deletion, frame)]
        assert len(ids) == deletion["n_deleted"], what
        one = downdate(FootprintBlocks.of(footprints), ids)
        assert list(one.parameters.values()) == pytest.approx(numbers(deletion["one_gauss_newton_step"]), rel=1e-9), (
            what
        )
        again = so.calibrate(quotes.without(ids), model)
        assert again.converged, what
        assert list(again.parameters.values()) == pytest.approx(numbers(deletion["refit"]), rel=1e-8), what
