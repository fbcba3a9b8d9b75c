"""The judgement of a step: the compiled one is the twin's to the bit, and each verdict has a case of its own."""

from __future__ import annotations

from itertools import product
from math import inf, isinf, nan, sqrt

import numpy as np
import pytest

from strikeout.kernels.symmetric import Judged, inverse_twin, judged, judged_twin, solve

BOTH = pytest.mark.parametrize("judge", [judged, judged_twin], ids=["used", "twin"])


def packed(H, G, cost, step) -> np.ndarray:
    whole = np.block([[np.array(H, float), np.array(G, float)[:, None]], [np.array(G, float)[None, :], cost]])
    return np.concatenate([whole[np.triu_indices(len(whole))], np.array(step, float)])


def limits(*, reference, size=None, beyond=None, low=None, high=None) -> np.ndarray:
    p = len(reference)
    columns = (reference, size or [1.0] * p, beyond or [inf] * p, low or [-inf] * p, high or [inf] * p)
    return np.array(columns, float).ravel()


def bits(found: Judged) -> tuple:
    return np.array(found.values).tobytes(), np.array(found.errors).tobytes(), *found[2:]


def test_the_compiled_judgement_is_the_twins_to_the_bit():
    rng = np.random.default_rng(4)
    seen = set()
    for p, kind, freedom in product((1, 2, 5, 8, 9, 12), range(8), (-1, 0, 1, 300)):
        rows = rng.standard_normal((p + 3, p + 1)) * 10.0 ** rng.uniform(-3.0, 3.0, p + 1)
        if kind == 1:
            rows[:, 0] = 0.0  # nothing is known of a parameter
        if kind == 2 and p > 1:
            rows[:, 1] = rows[:, 0] * (1.0 + 1e-9 * rng.standard_normal(p + 3))  # one imitates another
        whole = rows.T @ rows
        H, G = whole[:-1, :-1], whole[:-1, -1]
        step = np.array(solve(H.tolist(), G.tolist()))
        if kind == 3:
            step[-1] = nan
        if kind == 4:
            step[0] = inf
        reference = rng.standard_normal(p)
        values = limits(
            reference=reference,
            size=(np.zeros(p) if kind == 5 else np.abs(step) * 10.0 ** rng.uniform(-1.0, 2.0, p)).tolist(),
            beyond=(10.0 ** rng.uniform(-6.0, 6.0, p)).tolist(),
            low=(reference - 1e3).tolist(),
            high=(reference + (1e-3 if kind == 6 else 1e9)).tolist(),
        )
        solved = packed(H, G, -1.0 if kind == 7 else whole[-1, -1], step)
        for far in (-1.0, 0.3, inf):
            used, twin = (f(solved, values, freedom, inflation=1e7, far=far) for f in (judged, judged_twin))
            assert bits(used) == bits(twin), (p, kind, freedom, far)
            seen.add((used.is_near, bool(used.free), bool(used.outside)))
    assert seen == set(product((True, False), repeat=3))  # every verdict occurred


@BOTH
def test_a_sound_step_has_the_errors_of_the_inverse(judge):
    H, G, step = [[4.0, 1.0], [1.0, 2.0]], [0.5, 0.25], [0.1, 0.075]
    found = judge(packed(H, G, 9.0, step), limits(reference=[2.0, 3.0]), 7, inflation=1e7, far=0.3)
    noise = (9.0 - (0.5 * 0.1 + 0.25 * 0.075)) / 7
    assert found.values == [2.1, 3.075]
    assert found.errors == [sqrt(row[i] * noise) for i, row in enumerate(inverse_twin(H))]
    assert (found.is_near, found.free, found.outside) == (True, [], [])


@BOTH
def test_each_reason_is_told_by_the_number_of_its_parameter(judge):
    solved = packed(np.eye(3), [0.0] * 3, 6.0, [0.1, 0.2, 0.2])
    known = {"reference": [1.0, 1.0, 1.0]}

    def found(freedom=6, inflation=1e7, **more):
        return judge(solved, limits(**known, **more), freedom, inflation=inflation, far=0.3)

    assert found(beyond=[2.0, 0.5, 2.0]).free == [1]
    assert found(high=[1.05, 9.0, 9.0]).outside == [0]
    assert found(low=[0.0, 1.2, 1.3]).outside == [1, 2]  # on a bound is not inside
    assert found(freedom=0).free == [0, 1, 2]
    assert found(inflation=1.0).free == [0, 1, 2]
    far = found(size=[1.0, 1.0, 0.5], beyond=[0.5] * 3)
    assert not far.is_near
    assert far.free == []  # the noise is not known there, so no error is too large


@BOTH
def test_a_step_that_is_no_number_is_neither_near_nor_inside(judge):
    for wrong in (nan, inf, -inf):
        found = judge(packed([[1.0]], [0.0], 1.0, [wrong]), limits(reference=[1.0]), 3, inflation=1e7, far=inf)
        assert not found.is_near
        assert found.outside == [0]


@BOTH
def test_a_curvature_of_nothing_leaves_its_parameter_free(judge):
    found = judge(packed([[0.0]], [0.0], 1.0, [0.0]), limits(reference=[1.0]), 3, inflation=1e7, far=0.3)
    assert found.free == [0]
    assert isinf(found.errors[0])
