"""An attacker wants an optimum certified that the retained quotes do not determine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.errors import RefusedError, UnidentifiedError

TRUTH = [1.0, 0.05, 0.6, -0.3, 0.03]


def noisy_book(seed: int, noise: float = 0.12) -> so.Quotes:
    """Return thirty quotes whose noise is as large as what they could tell of some parameters."""
    rng = np.random.default_rng(seed)
    expiry = np.repeat([0.1, 0.5, 1.5], 10)
    k = rng.normal(0.0, 0.25, 30) * np.sqrt(expiry)
    contracts = so.Contracts(forward=100.0, strike=100.0 * np.exp(k), expiry=expiry, discount=1.0, is_call=k > 0)
    observed = so.Heston().price(TRUTH, contracts) + noise * rng.standard_normal(30)
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


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    noise=st.floats(0.02, 0.3),
    gone=st.sets(st.integers(0, 29), min_size=1, max_size=4),
)
@example(seed=79, noise=0.12, gone={0, 7})
@example(seed=361, noise=0.12, gone={0, 7})
@example(seed=435, noise=0.12, gone={0, 7})
def test_nothing_is_issued_that_its_own_verification_rejects(seed, noise, gone):
    """Identification is asked at the answer: a claimed optimum is one that a fresh calibration finds determined."""
    quotes, ids = noisy_book(seed, noise), [str(number) for number in sorted(gone)]
    retained = quotes.without(ids)
    try:
        done = so.forget(so.calibrate(quotes, so.Heston()), ids=ids, tolerance=0.3)
    except (UnidentifiedError, RefusedError):
        event("refused")
        # Refused with a reason: before, because the book has no optimum, or after, because its remainder has none.
        assert not (so.calibrate(quotes, so.Heston()).converged and so.calibrate(retained, so.Heston()).converged)
    else:
        event(f"issued by {done.operator}")
        assert "OPTIMUM" in done.certificate.claims
        assert so.verify(done.certificate, retained).holds
        assert so.calibrate(retained, so.Heston()).converged
