"""The paper's bounds hold wherever their condition does, and how much they say is measured."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strikeout as so
from strikeout.assurance.bounds import huber, leverages, neumann, relinearization, stability, weyl
from strikeout.errors import UsageError
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from tests.calibration.smile_model import Smile
from tests.calibration.smile_model import book as smile_book
from tests.raising import raises


def gram(rows: np.ndarray) -> Linearization:
    whole = rows.T @ rows
    return Linearization(tuple(whole[np.triu_indices(len(whole))].tolist()), len(rows))


def all_bounds(before, after, scaled):
    return [
        stability(before, after, scaled=scaled),
        neumann(before, after, scaled=scaled),
        neumann(before, after, norms="separate", scaled=scaled),
        weyl(before, after, scaled=scaled),
    ]


@given(seed=st.integers(0, 10**6), forgotten=st.integers(1, 30), scaled=st.booleans())
def test_every_bound_is_respected_whatever_is_forgotten(seed, forgotten, scaled):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 4)) * 10.0 ** rng.uniform(-2, 2, 4)
    before, after = gram(rows), gram(rows[forgotten:])
    found = all_bounds(before, after, scaled)
    found.append(
        huber(before, after, forgotten=rows[:forgotten, :3], threshold=np.abs(rows[:, 3]).max(), scaled=scaled)
    )
    assert [str(bound) for bound in found if not bound.is_respected] == []
    assert all(0.0 <= bound.tightness <= 1.0 + 1e-9 for bound in found if bound.condition_holds)


def test_a_bound_that_is_broken_says_so():
    before = gram(np.random.default_rng(0).standard_normal((40, 4)))
    more = before + before  # not a deletion: the smallest eigenvalue doubles, which no lower bound minds
    assert weyl(before, more).truth == pytest.approx(2.0 * np.linalg.eigvalsh(before.curvature)[0])
    bound = stability(before, gram(np.random.default_rng(0).standard_normal((40, 4))[1:]))
    broken = type(bound)(bound.name, 0.5 * bound.truth, bound.side, bound.condition, True, bound.truth)
    assert bound.is_respected
    assert not broken.is_respected


def test_one_quote_in_two_thousand_seven_hundred_is_too_many_for_the_papers_conditions():
    """The curvature stays positive definite all the same, and in unit-free parameters the bounds do speak."""
    book, model = so.paper.quotes("large"), so.Heston()
    theta = list(so.calibrate(book, model).parameters.values())
    before = linearize(objective_of(book)[0], model, theta)
    singles = np.random.default_rng(1).choice(book.ids, 20, replace=False)
    left = [linearize(objective_of(book.without([one]))[0], model, theta) for one in singles]
    assert sum(weyl(before, after).condition_holds for after in left) <= 2
    assert sum(neumann(before, after, norms="separate").condition_holds for after in left) <= 2
    assert all(weyl(before, after).truth > 0.0 for after in left)
    assert all(weyl(before, after, scaled=True).condition_holds for after in left)
    assert all(neumann(before, after, scaled=True).tightness > 0.9 for after in left)
    assert max(leverages(before, after)[-1] for after in left) < 0.02


def test_the_leverage_spectrum_is_the_share_that_rests_on_the_forgotten():
    rows = np.random.default_rng(2).standard_normal((50, 4)) * [1.0, 1e4, 1e-3, 1.0]
    before, after = gram(rows), gram(rows[20:])
    H, gone = before.curvature, before.curvature - after.curvature
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(H, gone)).real)
    np.testing.assert_allclose(leverages(before, after), expected, rtol=1e-6)
    assert ((leverages(before, after) > 0.0) & (leverages(before, after) < 1.0)).all()


def test_leverage_is_one_where_nobody_else_says_anything():
    rows = np.random.default_rng(3).standard_normal((30, 4))
    rows[1:, 2] = 0.0  # only the first row moves with the third parameter
    assert leverages(gram(rows), gram(rows[1:]))[-1] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("scaled", [False, True])
def test_the_second_step_is_within_the_bound_made_from_the_first(scaled):
    model, noisy = Smile(), smile_book(noise=1e-3, seed=4)
    near = relinearization(noisy, model, reference=[0.2, -0.1, 0.3002], scaled=scaled)
    assert near.condition_holds
    assert near.is_respected
    assert 0.0 < near.tightness < 1.0
    far = relinearization(noisy, model, reference=[0.9, 0.5, 2.0], scaled=scaled)
    assert not far.condition_holds
    assert isnan(far.tightness)


def test_bounds_refuse_what_they_cannot_compare():
    rows = np.random.default_rng(6).standard_normal((30, 4))
    with pytest.raises(UsageError, match="3 parameters before, 2 after"):
        stability(gram(rows), gram(rows[:, 1:]))
    with pytest.raises(UsageError, match="singular"):
        leverages(gram(rows[:2]), gram(rows[:1]))
    with pytest.raises(UsageError, match="positive definite"):
        weyl(gram(rows[:2]), gram(rows[:1]))
    with raises(UsageError, norms="both"):
        neumann(gram(rows), gram(rows[1:]), norms="both")
    with raises(UsageError, count=3):
        huber(gram(rows), gram(rows[1:]), forgotten=rows[:1], threshold=1.0)
