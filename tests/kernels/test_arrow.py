"""Steps of many groups judged at once: the kernel gives the bits of its twin, and the twin solves the arrow."""

import numpy as np
import pytest

from strikeout.kernels.arrow import ArrowBlocks, expand, missed, missed_twin


def groups(seed, count, q, *, noise=1e-3, held=0.0):
    """Return curvatures, second-order sums, steps and held groups of random quotes."""
    random = np.random.default_rng(seed)
    J, D = random.normal(size=(count, 3 * q, q)), noise * random.normal(size=(count, 3 * q, q, q))
    D = D + np.swapaxes(D, -1, -2)
    H = np.einsum("gni,gnj->gij", J, J)
    S, T = np.einsum("gn,gnij->gij", J[..., 0], D), np.einsum("gna,gnij->gaij", J, D)
    d = np.column_stack([np.tile(random.normal(size=q - 1), (count, 1)), random.normal(size=count)])
    return H, S, T, 0.1 * d, random.random(count) < held


def same(found, expected):
    (worst, there), (twin, again) = found, expected
    assert worst == twin
    assert (there is None) == (again is None)
    assert there is None or np.array_equal(there, again)


@pytest.mark.parametrize("q", [2, 3, 5, 8])
@pytest.mark.parametrize("count", [1, 2, 37])
def test_the_kernel_and_its_twin_give_the_same_bits(count, q):
    for seed in range(20):
        given = groups(seed, count, q, held=0.3 if seed % 2 else 0.0)
        same(missed(*given, 0.01), missed_twin(*given, 0.01))


def test_groups_that_leave_a_parameter_undetermined_are_judged_alike():
    H, S, T, d, held = groups(3, 4, 4)
    for changed in (-H, np.zeros_like(H), np.where(np.arange(4)[:, None, None] == 2, 0.0 * H, H), H * np.nan):
        same(missed(changed, S, T, d, held, 0.01), missed_twin(changed, S, T, d, held, 0.01))
    assert missed(np.zeros_like(H), S, T, d, held, 0.01)[0] == np.inf
    assert missed(-H, S, T, d, held, 0.01)[1] is None


def test_a_step_without_second_order_misses_nothing():
    H, S, T, d, held = groups(5, 6, 4)
    worst, there = missed(H, 0.0 * S, 0.0 * T, d, held, 0.01)
    assert worst == 0.0
    assert np.array_equal(there, ArrowBlocks(H, held).reduced())


def test_what_a_step_misses_is_the_solution_of_the_whole_matrix():
    """All groups in one dense matrix, solved by NumPy."""
    H, S, T, d, held = groups(7, 5, 4)
    after, out, _ = expand(S, T, d)
    count, k = len(H), 3
    whole, errors, right = np.zeros((k + count, k + count)), np.zeros((k + count, k + count)), np.zeros(k + count)
    for g in range(count):
        at = np.ix_([*range(k), k + g], [*range(k), k + g])
        whole[at] += H[g] - after[g]
        errors[at] += H[g]
        right[[*range(k), k + g]] += out[g]
    apart = np.abs(np.linalg.solve(whole, right)) / (0.01 * np.sqrt(np.diag(np.linalg.inv(errors))))
    assert missed(H, S, T, d, held, 0.01)[0] == pytest.approx(apart.max(), rel=1e-9)
