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
    book = so.synthetic.panel_quotes(int(rng.integers(4, 16)), seed=seed, noise=float(10 ** rng.uniform(-5, -1.5)))
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


OUT_OF_BOUNDS = (7,)  # half of the quotes go, and the step leads out of the model


@pytest.mark.parametrize("seed", OUT_OF_BOUNDS)
def test_a_step_out_of_the_bounds_is_refused(seed):
    book, on = scenario(seed)
    with pytest.raises(RefusedError) as refused:
        so.forget(so.calibrate(book, so.Heston(), panel="date"), ids=book.ids[on], operator="downdate")
    assert refused.value.facts["outside"]


# The last five are far beyond one step.
@pytest.mark.parametrize("seed", [seed for seed in (*range(18), 31, 72, 86, 120, 144) if seed not in OUT_OF_BOUNDS])
def test_what_is_said_of_a_step_is_so_or_nothing_is_said(seed):
    book, on = scenario(seed)
    panel = so.calibrate(book, so.Heston(), panel="date")
    fresh = so.calibrate(book[~on], so.Heston(), panel="date")
    assert fresh.converged
    step = so.forget(panel, ids=book.ids[on], operator="downdate")
    shared = [abs(step.parameters[n] - v) / fresh.standard_errors[n] for n, v in fresh.parameters.items()]
    latent = [abs(step.latent[g] - v) / fresh.latent_standard_errors[g] for g, v in fresh.latent.items()]
    true = max(shared + latent)
    assert true <= step.step_error.error
    if isfinite(step.step_error.predicted) and true > 1e-6:
        assert step.step_error.predicted == pytest.approx(true, rel=0.2)
    if not isfinite(step.step_error.predicted):
        assert "too far to predict its error" in step.path[0]
