"""Which cached curvature betters a data-free step: the candidates compute what they say, and the verdict holds."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.forgetting.downdate import downdate
from strikeout.paper.experiments import curvature
from strikeout.paper.experiments.curvature import PLAIN, ROBUST, WAYS, Cache, cached, gain, tried, verdict
from strikeout.paper.experiments.report import QUICK, find
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.system import WHOLE, FootprintBlocks

MODEL = so.Heston()


@pytest.fixture(scope="module")
def calibration():
    return so.calibrate(so.paper.quotes("small"), MODEL)


@pytest.fixture(scope="module")
def found():
    return list(tried(so.paper.quotes("small"), name="small", seed=42))


def of(name: str, reference: str) -> curvature.Way:
    return next(way for way in WAYS if way.name == name and way.reference == reference)


def test_gauss_newton_over_the_retained_rows_is_the_downdate(calibration):
    ids = calibration.quotes.ids[::7]
    footprints = footprints_of(calibration.quotes, calibration.model, calibration.parameters)
    exact = downdate(FootprintBlocks.of(footprints), ids).change
    cache = cached(calibration.quotes.without(ids), calibration.model, np.array(list(calibration.parameters.values())))
    # Footprints are rounded once to their grid. Beside a step that the struck quotes nearly leave at zero that may be
    # any share; beside what the quotes can tell it is nothing.
    errors = np.array(list(calibration.standard_errors.values()))
    np.testing.assert_array_less(np.abs(curvature.gauss_newton(cache) - exact), 1e-9 * errors)


def test_the_correction_is_the_one_that_judges_a_downdate(calibration):
    ids = calibration.quotes.ids[::7]
    cache = cached(
        calibration.quotes.without(ids), calibration.model, np.array(list(calibration.references[WHOLE].values()))
    )
    d = curvature.gauss_newton(cache)
    known = calibration.second_order_without(ids)[WHOLE].left_out(cache.curvature, d)
    # Second derivatives are differences, with steps of another size here: good to some 1e-6.
    np.testing.assert_allclose(curvature.corrected(cache) - d, known, rtol=1e-3)


def test_with_one_parameter_newton_misses_by_three_times_as_much_as_gauss_newton():
    """Prices exp(b x) met exactly at b = 1, seen from b = 0.99: H, S and T are known in closed form."""
    x, b = np.linspace(0.1, 1.0, 20), 0.99
    value = np.exp(b * x)
    cache = Cache(np.array([b]), np.exp(x) - value, (x * value)[:, None], (x**2 * value)[:, None, None])
    gauss_newton, newton, corrected, quadratic = (
        abs(float(b + way(cache)[0]) - 1.0)
        for way in (curvature.gauss_newton, curvature.newton, curvature.corrected, curvature.quadratic)
    )
    assert newton / gauss_newton == pytest.approx(3.0, rel=0.02)
    assert corrected < 0.02 * gauss_newton  # another order in the distance, which is 0.01
    assert quadratic < 0.02 * gauss_newton


def test_quadratic_prices_end_where_their_own_cost_is_flat():
    rng = np.random.default_rng(3)
    D = rng.standard_normal((30, 3, 3))
    cache = Cache(
        np.ones(3), 0.3 * rng.standard_normal(30), rng.standard_normal((30, 3)), 0.2 * (D + D.transpose(0, 2, 1))
    )
    d = curvature.quadratic(cache)
    bent = cache.J + cache.D @ d
    score = bent.T @ (cache.r - (cache.J + 0.5 * cache.D @ d) @ d)
    assert np.abs(score).max() < 1e-4 * np.abs(cache.score).max()


@pytest.mark.parametrize("update", [curvature.rank_one, curvature.bfgs])
def test_a_secant_update_has_the_curvature_of_the_step_it_learnt_from(update):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((4, 9))
    H, s = A @ A.T, rng.standard_normal(4)
    y = 1.3 * H @ s + 0.1 * rng.standard_normal(4)
    np.testing.assert_allclose(update(H, s, y) @ s, y, rtol=1e-9)


def test_a_curvature_that_is_not_positive_definite_gives_no_step():
    assert np.isnan(curvature.step(np.diag([1.0, -1.0]), np.ones(2))).all()
    assert np.isnan(curvature.step(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2))).all()


@pytest.mark.parametrize("reference", ["least squares", "robust"])
def test_both_halves_of_the_second_order_help_and_one_alone_hurts(found, reference):
    assert verdict(found, of("+ correction of second order", reference)) == "helps"
    assert verdict(found, of("quadratic prices", reference)) == "helps"
    assert verdict(found, of("+ residual x second derivatives", reference)) == "hurts"


def test_no_quasi_newton_curvature_helps(found):
    for name in ("+ rank one, learnt in the search", "+ BFGS, learnt in the search"):
        assert verdict(found, of(name, "least squares")) != "helps"


def test_on_clean_books_the_correction_takes_two_digits_or_more_off_the_error(found):
    clean = [one for one in found if one.group == "clean"]
    assert gain(clean, of("+ correction of second order", "least squares")) < 0.01


def test_after_corrupt_feeds_the_reference_matters_and_no_curvature_does(found):
    corrupt = [one for one in found if one.group == "corrupt"]
    assert len(corrupt) == 7
    for one in corrupt:
        assert one.errors[ROBUST] < 0.1
        assert min(error for way, error in one.errors.items() if way.reference == "least squares") > 1.0


def test_the_section_says_what_its_numbers_say():
    finding = find("curvature", QUICK)
    table = finding.tables["ways"]
    assert len(table.rows) == len(WAYS)
    ratios = dict(zip(WAYS, table.column("of Gauss-Newton"), strict=True))
    assert ratios[PLAIN] == ratios[ROBUST] == 1.0
    helps = finding.paragraphs[0].partition("Helps: ")[2].partition("Hurts")[0]
    assert {way.words for way in WAYS if ratios[way] <= curvature.HELPS} == {w.words for w in WAYS if w.words in helps}
    assert find("curvature", QUICK).tables["ways"].rows == table.rows  # a seed gives the same numbers again
