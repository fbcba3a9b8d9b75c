"""An attacker wants sensitivities that are wrong without a word, next to prices that are right.

Where moments just above the first are about to explode (vol_of_vol and correlation high, over years), contours pass so
close to z = -i that large terms cancel in a careless derivative: 1e-6 of the forward was lost, prices kept 1e-13.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.kernel_choice import each_kernel, values

PROMISED = 1e-9  # of the forward, times the parameter
STEP = 5e-4  # of differences, of the parameter; twice that misses 1e-8 where a correlation is near one
STRIKES = np.array([-2.0, -0.7, -0.2, 0.0, 0.1, 0.5, 1.5])
# The worst of 80 random slices with a reference in 80-bit arithmetic (Lewis' integral): off by 3e-6, 2e-6 and 5e-7.
# Then two at which nearly all variance is gone in mean_reversion: off by 1e-5.
WORST = [
    ((0.3606, 0.7881, 3.496, 0.9575, 0.4339), 9.405),
    ((1.151, 1.77, 14.58, 0.6322, 0.2377), 3.418),
    ((1.146, 2.061, 10.56, 0.6663, 0.5152), 4.456),
    ((0.0021, 0.49, 7.6, 0.59, 1.36), 5.75),
    ((0.0042, 0.17, 15.5, 0.63, 1.3), 2.85),
]


def lost(kernel: str, theta: tuple[float, ...], T: float) -> float:
    """Return how far sensitivities are from differences of prices, times the parameter; not-a-number without a price.

    Prices keep their 1e-13 here, and the rule is of sixth order: right to some 1e-10.
    """
    found = values(kernel, theta, T, STRIKES)[1:]
    off = []
    for i, at in enumerate(theta):
        slope = np.zeros(len(STRIKES))
        for n, weight in enumerate((45.0, -9.0, 1.0), start=1):
            up, down = (
                values(kernel, [*theta[:i], at * (1.0 + x), *theta[i + 1 :]], T, STRIKES)[0]
                for x in (n * STEP, -n * STEP)
            )
            slope += weight / (60.0 * STEP) * (up - down)
        off.append(np.abs(at * found[i] - slope))
    return float(np.max(off))


@each_kernel
@pytest.mark.parametrize(("theta", "T"), WORST)
def test_sensitivities_keep_their_promise_where_they_once_lost_most(kernel, theta, T):
    assert lost(kernel, theta, T) <= PROMISED


@each_kernel
@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_sensitivities_keep_their_promise_on_slices_that_nobody_chose(kernel, count):
    """As the attack drew them, 300: a price is not-a-number, or its sensitivities are right."""
    rng = np.random.default_rng(14)
    found = []
    for _ in range(count):
        kappa, vbar, sigma, v0, T = np.exp(rng.uniform(np.log([1e-3, 1e-3, 1.5, 1e-4, 0.5]), np.log([5, 3, 10, 3, 10])))
        found.append(lost(kernel, (kappa, vbar, sigma, rng.uniform(0.4, 0.99), v0), T))
    priced = [off for off in found if not np.isnan(off)]
    assert len(priced) >= 2 * count // 3
    assert max(priced) <= PROMISED
