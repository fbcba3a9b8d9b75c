"""Steps in a box: Gauss-Newton inside, held on its walls, straight in the products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.calibration.loop import FACTOR, Box

H = [[4.0, 1.0], [1.0, 9.0]]
OPEN = Box((-100.0, -100.0), (100.0, 100.0))


def test_an_undamped_step_in_the_open_is_gauss_newtons():
    to, promised = OPEN.step([1.0, 2.0], H, [0.4, -0.3], damping=0.0)
    s = np.linalg.solve(H, [0.4, -0.3])
    assert to == pytest.approx([1.0 + s[0], 2.0 + s[1]], rel=1e-14)
    assert promised == pytest.approx(np.dot([0.4, -0.3], s), rel=1e-14)  # 2 G's - s'Hs with Hs = G


def test_damping_shortens_the_step():
    short, _ = OPEN.step([0.0, 0.0], H, [4.0, 9.0], damping=10.0)
    full, _ = OPEN.step([0.0, 0.0], H, [4.0, 9.0], damping=0.0)
    assert np.linalg.norm(short) < 0.2 * np.linalg.norm(full)


def test_a_coordinate_pushed_against_its_wall_stays_and_the_others_are_solved_given_that():
    box = Box((0.0, -100.0), (100.0, 100.0))
    to, _ = box.step([0.0, 2.0], H, [-1.0, 0.9], damping=0.0)
    assert to == pytest.approx([0.0, 2.0 + 0.9 / 9.0], rel=1e-14)
    assert box.pushed([0.0, 2.0], [-1.0, 0.9]) == (0,)


def test_a_coordinate_on_a_wall_that_the_cost_pulls_away_from_is_free():
    assert Box((0.0,), (1.0,)).pushed([0.0], [1.0]) == ()
    assert Box((0.0,), (1.0,)).pushed([1.0], [1.0]) == (0,)


def test_a_step_never_leaves_the_box():
    box = Box((0.01, -0.9, 0.01), (10.0, 0.9, 10.0), pairs=((1, 0),))
    rng = np.random.default_rng(0)
    for _ in range(200):
        J = rng.standard_normal((6, 3))
        u = [rng.uniform(lo, hi) for lo, hi in zip(box.lower, box.upper, strict=True)]
        to, _ = box.step(u, (J.T @ J).tolist(), (100.0 * rng.standard_normal(3)).tolist(), damping=1e-3)
        assert all(lo <= x <= hi for x, lo, hi in zip(to, box.lower, box.upper, strict=True))


def test_a_positive_coordinate_moves_by_a_factor_at_most():
    to, _ = Box((1e-3,), (1e3,)).step([1.0], [[1.0]], [1e6], damping=0.0)
    assert to == [FACTOR]


def test_a_wall_can_be_reached_in_a_finite_number_of_steps():
    box, u = Box((-1.0, 1e-3), (1.0, 10.0)), [0.0, 5.0]
    for _ in range(20):
        u, _ = box.step(u, [[1.0, 0.0], [0.0, 1.0]], [5.0, -50.0], damping=0.0)
    assert u == [1.0, 1e-3]


def test_a_step_along_a_product_keeps_the_other_factor_free():
    box = Box((1e-3, 1e-3), (1e3, 1e3), pairs=((1, 0),))
    # The cost sees only u_0 u_1, at 2 now and 6 at its minimum: r = 6 - u_0 u_1, J = (u_1, u_0).
    u, r = [1.0, 2.0], 4.0
    J = [u[1], u[0]]
    A = [[J[i] * J[j] + (1e-12 if i == j else 0.0) for j in range(2)] for i in range(2)]
    to, _ = box.step(u, A, [J[0] * r, J[1] * r], damping=1e-6)
    assert to[0] * to[1] == pytest.approx(6.0, rel=1e-4)  # reached at once; the damping takes its millionth


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 6), damping=st.sampled_from([0.0, 1e-6, 0.3, 1e9]))
def test_the_compiled_step_is_that_of_the_definition_to_the_last_bit(seed, size, damping):
    """Coordinates of either sign, walls near and far or touched, products, damping of both kinds."""
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(8, size)) * np.exp(rng.normal(0.0, 2.0, size))
    H, G = (J.T @ J).tolist(), (J.T @ rng.normal(size=8)).tolist()
    u = rng.uniform(0.1, 2.0, size).tolist()
    room = np.where(rng.random((2, size)) < 0.2, 0.0, rng.exponential(0.3, (2, size)))
    pairs = ((0, size - 1),) if size > 1 and rng.random() < 0.5 else ()
    box = Box(tuple((u - room[0]).tolist()), tuple((u + room[1]).tolist()), pairs)
    for scale in (None, np.abs(rng.normal(size=size)).tolist()):
        found = box.step(u, H, G, damping, scale=scale)
        assert repr(found) == repr(
            box.step_twin(u, H, G, damping, scale=scale)
        )  # repr: not-a-number is equal to itself
