"""Exact normal equations: a group of states with a digest, and a step read out of them."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.kernels.compiled import default_kernel
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import footprints_of, linearize
from strikeout.statistics.normal_equations import NormalEquations, Schema
from strikeout.statistics.objective import objective_of
from tests.raising import raises

QUOTES = so.paper.quotes("small", seed=3)
HESTON = so.Heston()
START = HESTON.parameters.starts[0]
FOOTPRINTS = footprints_of(QUOTES, HESTON, START)
EQUATIONS = FOOTPRINTS.total()
SOME = QUOTES.ids[::50].tolist()


def small(rows: list[list[int]]) -> Footprints:
    schema = Schema("line", ("slope",), reference=(0.0,), exponents=(1, 2), residual="price", weights="none")
    return Footprints(schema, np.array([f"q{i}" for i in range(len(rows))]), np.array(rows, np.int64))


def test_two_small_rows_sum_to_what_a_pencil_says():
    # Column 1 in halves, column 2 in quarters: rows (1.5, 1), (-2, 0.25). H = 6.25, G = 1, cost = 1.0625.
    equations = small([[3, 4], [-4, 1]]).total()
    system = equations.system()
    assert (system.curvature.tolist(), system.score.tolist(), system.cost, system.count) == ([[6.25]], [1.0], 1.0625, 2)
    np.testing.assert_allclose(equations.step(), [0.16], rtol=4 * 2**-52)  # two roots and four products


def test_the_read_out_is_the_floating_point_linearization_to_rounding():
    floating = linearize(objective_of(QUOTES)[0], HESTON, START.tolist())
    # Each row is rounded to 2^-42 of quantities of size 1 to 1000; 540 of them. Without a compiler the floating sums
    # are those of series, not of rows: see kernels/fourier_series.py.
    rounding = 1e-11 if default_kernel() == "native" else 1e-9
    np.testing.assert_allclose(EQUATIONS.system().triangle, floating.triangle, rtol=rounding)
    assert EQUATIONS.count == floating.count


def test_taking_rows_away_in_one_call_is_subtracting_their_total():
    left = EQUATIONS.less(FOOTPRINTS, FOOTPRINTS.places(SOME))
    assert left == EQUATIONS - FOOTPRINTS.only(SOME).total() == EQUATIONS.less(FOOTPRINTS.only(SOME))
    assert left == footprints_of(QUOTES.without(SOME), HESTON, START).total()
    assert left.count == len(QUOTES) - len(SOME)
    fresh = NormalEquations(left.schema, left.words, left.count)
    assert left.system() == fresh.system()
    assert left.step().tolist() == fresh.step().tolist()


def test_zero_is_neutral_and_a_state_less_itself_is_zero():
    zero = NormalEquations.zero(EQUATIONS.schema)
    assert EQUATIONS + zero == EQUATIONS == EQUATIONS - zero
    assert zero == EQUATIONS - EQUATIONS
    assert EQUATIONS.less(FOOTPRINTS).digest() == zero.digest()


def test_a_total_of_none_is_refused_and_of_one_is_itself():
    assert NormalEquations.total([EQUATIONS]) == EQUATIONS
    with pytest.raises(UsageError, match="zero"):
        NormalEquations.total([])


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (footprints_of(QUOTES, HESTON, START * 1.01), "reference"),
        (footprints_of(QUOTES, HESTON, START, weights="none"), "weights"),
        (footprints_of(QUOTES, HESTON, START, grid=40), "exponents"),
        (footprints_of(QUOTES, so.paper.Heston(), START), "model"),
    ],
)
def test_states_of_different_schemas_do_not_mix(other, differs):
    for mix in (
        lambda: EQUATIONS + other.total(),
        lambda: EQUATIONS - other.total(),
        lambda: EQUATIONS.less(other),
        lambda: NormalEquations.total([EQUATIONS, other.total()]),
    ):
        with raises(UsageError, differs=[differs]):
            mix()
    assert other.total() != EQUATIONS
    assert EQUATIONS.digest() != other.total().digest()


def test_an_equal_schema_built_twice_mixes():
    again = footprints_of(QUOTES.only(SOME), so.Heston(), START.copy())
    assert again.schema is not EQUATIONS.schema
    assert EQUATIONS.less(again) == EQUATIONS - again.total()


def test_the_digest_sees_one_unit_in_one_sum_and_the_count():
    words = EQUATIONS.words.copy()
    words[7, 0] += np.uint64(1)
    assert NormalEquations(EQUATIONS.schema, words, EQUATIONS.count).digest() != EQUATIONS.digest()
    assert NormalEquations(EQUATIONS.schema, EQUATIONS.words, EQUATIONS.count + 1).digest() != EQUATIONS.digest()
    assert NormalEquations(EQUATIONS.schema, EQUATIONS.words.copy(), EQUATIONS.count).digest() == EQUATIONS.digest()


def test_the_step_solves_the_system():
    # Against exact rational arithmetic on the very same integers.
    system = EQUATIONS.system()
    H = [[Fraction(x) for x in row] for row in system.curvature.tolist()]
    G = [Fraction(x) for x in system.score.tolist()]
    step = [Fraction(x) for x in EQUATIONS.step().tolist()]
    for row, g in zip(H, G, strict=True):
        terms = [h * x for h, x in zip(row, step, strict=True)]
        # Backward stable: the residual is a few eps of what was summed, times p for the triangle solves.
        assert abs(sum(terms) - g) <= 50 * 2**-53 * sum(map(abs, terms))


def test_a_scaled_ridge_adds_a_share_of_the_curvature_and_the_papers_adds_its_own():
    system = EQUATIONS.system()
    H, G = system.curvature, system.score
    # cond(H), Jacobi-scaled, is a few hundred: 1e-11 leaves room for it.
    scaled = np.linalg.solve(H + 0.1 * np.diag(np.diag(H)), G)
    np.testing.assert_allclose(EQUATIONS.step(ridge=0.1), scaled, rtol=1e-9)
    np.testing.assert_allclose(EQUATIONS.step(ridge="paper"), np.linalg.solve(H + 1e-6 * np.eye(5), G), rtol=1e-8)
    assert EQUATIONS.step(ridge=0.0).tolist() == EQUATIONS.step().tolist()
    assert EQUATIONS.step(ridge="paper").tolist() != EQUATIONS.step().tolist()


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), float("inf"), "scaled"])
def test_other_ridges_are_refused(ridge):
    with pytest.raises(UsageError, match="paper"):
        EQUATIONS.step(ridge=ridge)


def test_what_no_quotes_leave_behind_takes_no_step():
    assert NormalEquations.zero(EQUATIONS.schema).step().tolist() == [0.0] * 5


def test_nothing_that_is_given_out_can_change_the_state():
    for equations in (EQUATIONS, EQUATIONS.less(FOOTPRINTS, FOOTPRINTS.places(SOME))):
        with pytest.raises(ValueError, match="read-only"):
            equations.step()[:] = 0.0
        with pytest.raises(ValueError, match="read-only"):
            equations.words[0, 0] = 0


def test_a_state_travels():
    assert pickle.loads(pickle.dumps(EQUATIONS)) == EQUATIONS
    assert len({EQUATIONS, FOOTPRINTS.total()}) == 1


def test_words_of_another_shape_are_refused():
    with raises(UsageError, count=5, needed=(21, 3)):
        NormalEquations(EQUATIONS.schema, EQUATIONS.words[:-1], 1)
