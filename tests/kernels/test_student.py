"""Student's quantiles, against scipy."""

from __future__ import annotations

import pytest
from scipy.stats import t

from strikeout.kernels.normal import LARGE, two_sided


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 10, 29, 100, 999, LARGE])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_quantiles_are_those_of_scipy(level, freedom):
    assert two_sided(level, freedom) == pytest.approx(t.ppf(0.5 + 0.5 * level, freedom), rel=1e-9)


def test_beyond_the_limit_the_normal_quantile_is_right_to_three_digits():
    assert two_sided(0.95, LARGE + 1) == pytest.approx(t.ppf(0.975, LARGE + 1), rel=2e-3)
