"""The sums of the NumPy twin: as accurate as its rows, and a function of the book and theta alone."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from strikeout.kernels import fourier_samples, fourier_series, heston, heston_twin
from strikeout.kernels.heston_cf import log_mgf, log_moment
from strikeout.kernels.heston_twin import Parts

THETA = np.array([2.0, 0.06, 0.3, -0.6, 0.06])
OTHERS = [
    np.array([4.0, 0.09, 0.8, -0.5, 0.09]),
    np.array([10.0, 0.06, 2.0, -0.5, 0.2]),
    np.array([1.0, 0.1, 0.1, 0.3, 0.02]),
    np.array([2.0, 0.2, 1.0, -0.7, 0.1]),
]
SLOW = np.array([0.5, 0.01, 1.5, -0.9, 0.001])  # over a day: nearly all of its variance in a few jumps of the spot
EXPIRIES = [0.02, 0.3, 1.0, 5.0]

thetas = st.tuples(
    st.floats(0.1, 20.0), st.floats(0.01, 0.5), st.floats(0.05, 1.5), st.floats(-0.95, 0.95), st.floats(0.001, 0.5)
).map(np.array)


def book(sizes: tuple[int, ...] = (3, 40, 700, 1), expiries: list[float] = EXPIRIES, seed: int = 5):
    """Slices that are their own samples and slices that are not, with scales and targets."""
    rng = np.random.default_rng(seed)
    k = np.concatenate([np.sort(0.25 * rng.normal(size=n) * np.sqrt(T)) for n, T in zip(sizes, expiries, strict=True)])
    parts = Parts(np.array(expiries), np.cumsum([0, *sizes]), k)
    scale = rng.uniform(0.5, 2.0, len(k))
    return parts, scale, scale * rng.uniform(0.0, 0.2, len(k))


LONGER = {"IMAGES": 36.0, "GAUSSIAN": 40.0, "EXPONENTIAL": 31.0, "HALF_CELL": (0.8, 0.45)}


def each_row(theta: np.ndarray, parts: Parts, *, is_longer: bool) -> np.ndarray | None:
    """What is multiplied by itself, ``(6, n)``: derivatives, minus the value; None where contours took over."""
    seen, original, ones = [], fourier_samples.squares, np.ones(len(parts.k))
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in LONGER.items() if is_longer else ():
            monkeypatch.setattr(fourier_series, name, value)
        if is_longer:
            monkeypatch.setattr(fourier_samples, "VALUE", 1e-15)
            monkeypatch.setattr(fourier_samples, "SLOPE", 1e-13)
        monkeypatch.setattr(fourier_samples, "squares", lambda a: seen.append(a.copy()) or original(a))
        monkeypatch.setattr(fourier_series.Sums, "_add_contours", lambda *_: seen.clear())
        fourier_series.Sums(parts, ones, 0.0 * ones)(theta)
    return np.concatenate(seen, axis=1) if seen else None


@settings(max_examples=150, deadline=None)
@given(theta=thetas, T=st.floats(1 / 365, 10.0), count=st.sampled_from([1, 7, 300]))
@example(theta=np.array([1.536822, 0.093948, 0.531185, -0.526384, 0.004818]), T=8.44695, count=300)
def test_a_series_is_as_good_as_one_of_many_more_terms(theta, T, count):
    k = np.linspace(np.log(0.5), np.log(2.0), count) if count > 1 else np.array([0.1])
    parts = Parts(np.array([T]), np.array([0, count]), k)
    got, expected = each_row(theta, parts, is_longer=False), each_row(theta, parts, is_longer=True)
    assume(got is not None and expected is not None)
    assert np.max(np.abs(got[5] - expected[5])) < 1e-12
    assert np.max(np.abs(got[:5] - expected[:5])) < 5e-10


def test_slices_on_contours_and_slices_by_series_may_lie_in_any_order():
    """Forty expiries: three lots of slices whose terms are found at once, some of every lot on contours."""
    expiries = [1 / 365 if at % 3 == 1 else 1.0 + at / 10.0 for at in range(40)]
    parts, scale, target = book(tuple(3 + 5 * (at % 13) for at in range(40)), expiries)
    got = fourier_series.Sums(parts, scale, target)(SLOW)
    rows = heston_twin.rows(SLOW, parts)
    assert got == pytest.approx(fourier_series.sums_of_rows(rows, scale, target), rel=1e-9)
    assert got.tobytes() != fourier_series.sums_of_rows(rows, scale, target).tobytes()


def test_a_part_without_strikes_adds_nothing():
    parts, scale, target = book((3, 200), [0.3, 1.0])
    gaps = Parts(np.array([0.1, 0.3, 0.5, 1.0, 2.0]), np.array([0, 0, 3, 3, 203, 203]), parts.k)
    assert (
        fourier_series.Sums(gaps, scale, target)(THETA).tobytes()
        == fourier_series.Sums(parts, scale, target)(THETA).tobytes()
    )


@pytest.mark.parametrize("theta", [THETA, *OTHERS, SLOW])
def test_sums_are_those_of_the_rows(theta):
    parts, scale, target = book()
    got = heston.accumulator("numpy", parts, scale, target)(theta)
    rows = heston_twin.rows(theta, parts)
    a = np.concatenate([rows[1:] * scale, [target - scale * rows[0]]])
    size = np.sqrt(np.sum(a * a, axis=1))
    expected = np.array([[np.sum(x * y) for y in a] for x in a])
    assert np.max(np.abs(got - expected[np.triu_indices(6)]) / np.outer(size, size)[np.triu_indices(6)]) < 1e-9


def test_a_slice_of_slow_decay_is_priced_on_its_contours_and_a_usual_one_is_not():
    for theta, expiry, by_contours in ((SLOW, 1 / 365, True), (THETA, 0.3, False)):
        parts, scale, target = book((200,), [expiry])
        rows = fourier_series.sums_of_rows(heston_twin.rows(theta, parts), scale, target)
        assert (fourier_series.Sums(parts, scale, target)(theta).tobytes() == rows.tobytes()) is by_contours


@pytest.mark.parametrize(("name", "value"), [("GAUSSIAN", 1.0), ("HALF_CELL", (9.0, 9.0))])
def test_a_series_or_a_polynomial_that_is_cut_too_early_is_not_taken(monkeypatch, name, value):
    """Far fewer nodes, or cells, than a slice needs: it is seen from the last terms, and contours take over."""
    parts, scale, target = book((300,), [0.3])
    parts = parts._replace(k=np.linspace(-1.0, 1.0, 300))
    monkeypatch.setattr(fourier_series, name, value)
    monkeypatch.setattr(fourier_series, "EXPONENTIAL", 1.0 if name == "GAUSSIAN" else fourier_series.EXPONENTIAL)
    rows = fourier_series.sums_of_rows(heston_twin.rows(THETA, parts), scale, target)
    assert fourier_series.Sums(parts, scale, target)(THETA).tobytes() == rows.tobytes()


def test_sums_do_not_depend_on_what_was_asked_for_before():
    """Matrices are kept for the periods, the meshes and the nodes asked for; here more than are kept."""
    parts, scale, target = book()
    used = fourier_series.Sums(parts, scale, target)
    spread = [np.array([2.0, v, s, -0.6, v]) for v in (0.01, 0.03, 0.1, 0.3, 1.0) for s in (0.05, 0.3, 1.5)]
    for theta in [THETA, *OTHERS, *spread, THETA, *spread[::-1]]:
        assert used(theta).tobytes() == fourier_series.Sums(parts, scale, target)(theta).tobytes()


def test_sums_are_the_same_whether_polynomials_are_kept_or_made_anew(monkeypatch):
    parts, scale, target = book((2000, 3000), [0.3, 1.0])
    kept = fourier_series.Sums(parts, scale, target)(THETA)
    monkeypatch.setattr(fourier_series, "KEPT", 0)
    assert fourier_series.Sums(parts, scale, target)(THETA).tobytes() == kept.tobytes()


def test_strikes_all_alike_are_a_slice():
    parts = Parts(np.array([0.5]), np.array([0, 100]), np.full(100, 0.1))
    ones = np.ones(100)
    one = Parts(np.array([0.5]), np.array([0, 1]), np.array([0.1]))
    many = fourier_series.Sums(parts, ones, ones)(THETA)
    assert many == pytest.approx(100.0 * fourier_series.Sums(one, ones[:1], ones[:1])(THETA), rel=1e-11)


def test_no_strikes_sum_to_nothing():
    none = np.zeros(0)
    assert fourier_series.Sums(Parts(none, np.zeros(1, np.intp), none), none, none)(THETA).tolist() == [0.0] * 21


def test_no_product_is_large_enough_for_a_second_thread():
    """262,144 multiplications are where OpenBLAS begins to share (its SMP_THRESHOLD_MIN times its default of 4)."""
    assert fourier_samples.FUNCTIONS * fourier_samples.COLUMNS * fourier_samples.STRIKES <= 262_144
    assert 2 * fourier_samples.AT_ONCE * fourier_samples.DEGREE * fourier_samples.COLUMNS <= 262_144
    parts, scale, target = book((20_000,), [1.0])
    found = fourier_samples.Slice(parts.k, scale, target, tables=1, phases=1)
    for cells in (1, 5, 25):
        most = fourier_samples.PRODUCT // (fourier_samples.FUNCTIONS * len(found.mesh(cells)))
        for nodes, added in ((most // 2, True), (most // 2 + 1, False)):
            terms = np.zeros((fourier_samples.FUNCTIONS, 2 * nodes))
            assert found.add(terms, 0, [cells], np.zeros((6, 6))) is added


SEARCH = """
import strikeout as so
found = so.calibrate(so.paper.quotes("large", seed=7), so.Heston(kernel="numpy"))
print([value.hex() for value in found.parameters.values()], found.rmse.hex())
"""


def test_the_number_of_threads_of_blas_changes_no_bit_of_a_calibration():
    said = [
        subprocess.run(
            [sys.executable, "-c", SEARCH],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert said[0] == said[1] != ""


@settings(max_examples=200, deadline=None)
@given(theta=thetas, p=st.floats(-60.0, 60.0), T=st.floats(1 / 365, 10.0))
def test_one_moment_is_that_of_the_array(theta, p, T):
    assert log_moment(p, T, tuple(theta.tolist())) == pytest.approx(
        log_mgf(np.array([p]), T, theta).item(), rel=1e-12, abs=1e-13
    )
