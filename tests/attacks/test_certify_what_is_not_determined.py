"""An attacker wants an optimum certified that the retained quotes do not determine."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UnidentifiedError

TRUTH = [1.0, 0.05, 0.6, -0.3, 0.03]


def noisy_book(seed: int) -> so.Quotes:
    """Return thirty quotes whose noise is as large as what they could tell of some parameters."""
    rng = np.random.default_rng(seed)
    expiry = np.repeat([0.1, 0.5, 1.5], 10)
    k = rng.normal(0.0, 0.25, 30) * np.sqrt(expiry)
    contracts = so.Contracts(forward=100.0, strike=100.0 * np.exp(k), expiry=expiry, discount=1.0, is_call=k > 0)
    observed = so.Heston().price(TRUTH, contracts) + 0.12 * rng.standard_normal(30)
    return so.Quotes(ids=[str(i) for i in range(30)], contracts=contracts, observed=observed)


@pytest.mark.parametrize("seed", [79, 435])
def test_what_a_step_cannot_determine_is_calibrated_and_verified(seed):
    quotes, gone = noisy_book(seed), ["0", "7"]
    done = so.forget(so.calibrate(quotes, so.Heston()), ids=gone, tolerance=0.3)
    assert "OPTIMUM" in done.certificate.claims
    assert so.verify(done.certificate, quotes.without(gone)).holds
    assert so.calibrate(quotes.without(gone), so.Heston()).converged


def test_a_remainder_without_an_optimum_is_refused():
    quotes, gone = noisy_book(361), ["0", "7"]
    with pytest.raises(UnidentifiedError):
        so.forget(so.calibrate(quotes, so.Heston()), ids=gone, tolerance=0.3)
    assert not so.calibrate(quotes.without(gone), so.Heston()).converged
