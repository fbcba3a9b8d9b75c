"""Exact sums: compiled code, the NumPy twin and one line of Python agree on every bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from strikeout.kernels import exact

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def integers(columns: int) -> st.SearchStrategy[np.ndarray]:
    """Rows of any int64, the extremes often among them; none, one or several."""
    element = st.one_of(st.sampled_from([SMALLEST, LARGEST, -1, 0, 1, 2**62 - 1]), st.integers(SMALLEST, LARGEST))
    return st.integers(0, 7).flatmap(lambda n: arrays(np.int64, (n, columns), elements=element))


any_rows = st.integers(1, 7).flatmap(integers)


def audit(rows: np.ndarray) -> list[int]:
    """The definition, by an auditor who has Python and nothing else."""
    table, width = rows.tolist(), rows.shape[1]
    return [sum(row[i] * row[j] for row in table) for i in range(width) for j in range(i, width)]


@given(any_rows)
def test_compiled_code_the_twin_and_the_audit_agree_on_every_bit(rows):
    nothing = exact.zero(rows.shape[1])
    state = exact.change(nothing, rows)
    assert exact.to_integers(state) == audit(rows)
    assert exact.to_integers(exact.change_twin(nothing, rows)) == audit(rows)
    assert (exact.change(nothing, rows, subtract=True) == exact.change_twin(nothing, rows, subtract=True)).all()


def test_the_twin_carries_over_from_one_block_of_rows_to_the_next():
    rows = np.random.default_rng(3).integers(SMALLEST, LARGEST, (2**18 + 5, 2), dtype=np.int64)
    rows[:9] = SMALLEST
    twin = exact.change_twin(exact.zero(2), rows)
    assert (twin == exact.change(exact.zero(2), rows)).all()
    assert exact.to_integers(twin) == audit(rows)


@given(any_rows)
def test_what_was_added_can_be_taken_away(rows):
    before = exact.change(exact.zero(rows.shape[1]), rows[::2])
    after = exact.change(exact.change(before, rows), rows, subtract=True)
    assert (after == before).all()


@given(any_rows, st.data())
def test_picked_rows_are_the_rows_themselves(rows, data):
    pick = np.array(
        data.draw(st.lists(st.integers(0, max(len(rows) - 1, 0)), max_size=5 if len(rows) else 0)), np.int64
    )
    nothing = exact.zero(rows.shape[1])
    assert (exact.change(nothing, rows, pick=pick) == exact.change(nothing, rows[pick])).all()


@given(any_rows, st.integers(0, 7))
def test_two_parts_combine_to_the_whole_and_come_apart_again(rows, cut):
    nothing = exact.zero(rows.shape[1])
    first, second, whole = (exact.change(nothing, part) for part in (rows[:cut], rows[cut:], rows))
    assert (exact.combine(first, second) == whole).all()
    assert (exact.combine(whole, second, subtract=True) == first).all()


@given(st.lists(arrays(np.uint64, (3, 3), elements=st.integers(0, 2**64 - 1)), min_size=1, max_size=6))
def test_the_total_of_states_is_their_sum_with_and_without_compiled_code(states):
    stacked = np.stack(states)
    expected = exact.from_integers([sum(column) for column in zip(*map(exact.to_integers, states), strict=True)])
    assert (exact.total(stacked) == expected).all()
    assert (exact.total_twin(stacked) == expected).all()


sums = st.integers(-(2**191), 2**191 - 1)
ties = st.builds(  # halfway between two doubles, or one beside it: where rounding goes wrong if it can
    lambda m, shift, beside, sign: sign * (((2 * m + 1) << shift) + beside),
    st.integers(2**52, 2**53 - 1),
    st.integers(0, 120),
    st.sampled_from([-1, 0, 1]),
    st.sampled_from([-1, 1]),
)


@given(
    st.lists(st.one_of(sums, ties, st.sampled_from([0, 1, -1])), min_size=3, max_size=3),
    st.tuples(*[st.integers(-400, 400)] * 2),
)
@example([2**53 + 1, -(2**53) - 1, 2**191 - 1], (0, 0))
def test_reading_rounds_once_to_the_nearest_double(totals, exponents):
    state, grid = exact.from_integers(totals), np.array(exponents, np.int32)
    scales = [exponents[0] * 2, sum(exponents), exponents[1] * 2]
    nearest = [float(Fraction(total) / Fraction(2) ** scale) for total, scale in zip(totals, scales, strict=True)]
    assert exact.read(state, grid).tolist() == nearest
    assert exact.read_twin(state, grid).tolist() == nearest


@given(st.lists(sums, min_size=1, max_size=28))
def test_words_and_integers_are_two_spellings_of_one_thing(totals):
    assert exact.to_integers(exact.from_integers(totals)) == totals


def test_a_downdate_is_a_subtraction_a_reading_and_a_solve():
    rng = np.random.default_rng(5)
    rows = rng.integers(-(2**50), 2**50, (60, 6), dtype=np.int64)
    grid, pick = np.array([40, 39, 41, 40, 38, 41], np.int32), np.array([3, 17, 41], np.int64)
    state = exact.change(exact.zero(6), rows)
    left, solved = exact.downdate(state, rows, pick, grid)
    kept = np.delete(rows, pick, axis=0)
    assert (left == exact.change(exact.zero(6), kept)).all()
    triangle = exact.read(left, grid)
    assert solved[:21].tolist() == triangle.tolist()
    twin, by_twin = exact.downdate_twin(state, rows, pick, grid)
    assert (twin == left).all()
    assert by_twin.tolist() == solved.tolist()
    assert not any(array.flags.writeable for array in (left, solved, twin, by_twin))
    assert solved[21:].tolist() == exact.solve(triangle).tolist() == exact.solve_twin(triangle).tolist()
    # The exact solution by least squares on the same rows; a condition number near 2 leaves a few eps.
    real = np.ldexp(kept.astype(float), -grid)
    expected = np.linalg.lstsq(real[:, :5], real[:, 5], rcond=None)[0]
    np.testing.assert_allclose(solved[21:], expected, rtol=1e-12)


def test_taking_every_row_away_leaves_zero():
    rows = np.random.default_rng(6).integers(-(2**50), 2**50, (20, 3), dtype=np.int64)
    grid, state = np.array([40, 40, 41], np.int32), exact.change(exact.zero(3), rows)
    for downdate in (exact.downdate, exact.downdate_twin):
        left, solved = downdate(state, rows, None, grid)
        assert not left.any()
        assert not solved.any()


def test_a_curvature_that_is_not_positive_definite_has_no_step():
    triangle = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0])  # H = [[1, 2], [2, 1]]
    assert np.isnan(exact.solve(triangle)).any()
    assert np.isnan(exact.solve_twin(triangle)).any()


def test_a_million_operations_drift_by_not_one_bit():
    rng = np.random.default_rng(11)
    rows = rng.integers(-(2**61), 2**61, (1000, 6), dtype=np.int64)
    real = rows.astype(float)
    held = np.zeros(1000, bool)
    state, drifting = exact.zero(6), np.zeros((6, 6))
    for _ in range(4000):
        some = rng.permutation(1000)[:250]
        for part, subtract in ((some[held[some]], True), (some[~held[some]], False)):
            state = exact.change(state, rows, subtract=subtract, pick=part.astype(np.int64))
            drifting += (-1.0 if subtract else 1.0) * real[part].T @ real[part]
        held[some] = ~held[some]
    assert (state == exact.change(exact.zero(6), rows[held])).all()
    # The same history in floating point, as a control: it does drift.
    assert not np.array_equal(drifting, real[held].T @ real[held])


@given(arrays(np.float64, (4, 3), elements=st.floats(width=64)))
def test_quantising_rounds_half_to_even_and_tells_what_does_not_fit(values):
    grid = np.array([41, 0, -3], np.int32)
    rows, fit = exact.quantise(values, grid)
    for value, row, fits in zip(values.tolist(), rows.tolist(), fit.tolist(), strict=True):
        scaled = [
            Fraction(x) * Fraction(2) ** int(e) if np.isfinite(x) else None for x, e in zip(value, grid, strict=True)
        ]
        inside = all(x is not None and abs(round(x)) < 2**62 for x in scaled)
        assert fits == inside
        assert row == ([round(x) for x in scaled] if inside else [0, 0, 0])  # Python rounds half to even, exactly


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**62, -(2.0**62), 1e308])
def test_what_is_not_finite_or_too_large_does_not_fit(value):
    _, fit = exact.quantise(np.array([[1.0, value], [1.0, 1.0]]), np.array([0, 0], np.int32))
    assert fit.tolist() == [False, True]
