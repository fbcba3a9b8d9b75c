"""Clean and corrupt panels, days and quotes struck out: what is said of a step is so, or nothing is said."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError


def scenario(seed: int) -> tuple[so.Quotes, np.ndarray]:
    """A panel, perhaps with bad quotes, and which rows of it are to go (the bad ones, where there are any)."""
    rng = np.random.default_rng(seed)
    book = so.panel_quotes(int(rng.integers(4, 16)), seed=seed, noise=float(10 ** rng.uniform(-5, -1.5)))
    day, price = book.labels["day"], book.observed.copy()
    on = day == rng.choice(day)
    kind = seed % 6
    if kind == 0:  # a day in another unit
        price[on] *= 1.0 + 10 ** rng.uniform(-3, 0.3)
    elif kind == 1:  # a noisy day
        price[on] += rng.normal(0.0, 10 ** rng.uniform(-3, 0.5), on.sum())
    elif kind == 2:  # bad ticks everywhere
        on = rng.random(len(book)) < 0.1
        price[on] += rng.normal(0.0, 10 ** rng.uniform(-3, 0.5), on.sum())
    elif kind == 3:  # a good day, and quotes of others
        on |= rng.random(len(book)) < 0.05
    elif kind == 4:
        on = rng.random(len(book)) < 0.5
    else:  # half the days
        on = np.isin(day, rng.choice(np.unique(day), max(1, len(np.unique(day)) // 2), replace=False))
    return book.with_observed(np.maximum(price, 1e-3)), on


@pytest.mark.parametrize("seed", [*range(18), 31, 72, 86, 120, 144])  # the last five are far beyond one step
def test_what_is_said_of_a_step_is_so_or_nothing_is_said(seed):
    book, on = scenario(seed)
    panel = so.calibrate(book, so.Heston(), panel="date")
    fresh = so.calibrate(book[~on], so.Heston(), panel="date")
    assert fresh.converged
    try:
        step = so.forget(panel, ids=book.ids[on], operator="downdate")
    except RefusedError:  # out of the bounds: no answer is given
        return
    shared = [abs(step.parameters[n] - v) / fresh.standard_errors[n] for n, v in fresh.parameters.items()]
    latent = [abs(step.latent[g] - v) / fresh.latent_standard_errors[g] for g, v in fresh.latent.items()]
    true = max(shared + latent)
    assert true <= step.trust.error
    if isfinite(step.trust.missed) and true > 1e-6:
        assert step.trust.missed == pytest.approx(true, rel=0.2)
    if not isfinite(step.trust.missed):
        assert "too far to say how good it is" in step.path[0]
