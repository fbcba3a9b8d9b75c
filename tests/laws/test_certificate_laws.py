"""No certificate is issued that its own verification rejects, however coarse the moments it was made from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.calibration.interpolation import interpolation_error
from strikeout.calibration.resolution import interpolation_bound

truths = st.fixed_dictionaries(
    {
        "mean_reversion": st.sampled_from([0.3, 0.5, 2.0, 6.0]),
        "long_variance": st.sampled_from([0.01, 0.04, 0.3]),
        "vol_of_vol": st.sampled_from([0.2, 0.5, 1.0]),
        "correlation": st.sampled_from([-0.9, -0.5, 0.1]),
        "initial_variance": st.sampled_from([0.0025, 0.01, 0.04, 0.2]),
    }
)
books = st.builds(
    so.random_quotes,
    st.integers(60, 400),
    maturities=st.integers(3, 8),
    seed=st.integers(0, 99),
    theta=truths,
    noise=st.sampled_from([1e-2, 5e-4, 1e-5, 1e-7]),  # the less noise, the more standard errors is the same way
)
bases = st.sampled_from([so.Basis(), so.Basis(nodes=8), so.Basis(nodes=16), so.Basis("scattered", 24, 8)])


@settings(max_examples=60)
@given(books, bases)
def test_what_is_certified_of_moments_holds_of_the_quotes(book, basis):
    gone = book[::10]
    try:
        before = so.calibrate(so.moments_of(book, basis=basis), so.Heston())
        done = so.forget(before, quotes=gone)
    except so.StrikeoutError:
        return  # refused, and nothing was certified
    found = so.verify(done.certificate.to_bytes(), book.without(gone.ids))
    assert found.holds, found.summary()


@settings(max_examples=60)
@given(books, bases)
def test_no_calibration_from_moments_is_farther_off_than_its_bound(book, basis):
    try:
        found = so.calibrate(so.moments_of(book, basis=basis), so.Heston())
    except so.StrikeoutError:
        return
    if found.converged:
        # Both searches stop at 1e-8 standard errors, or where the cost is rounding.
        assert interpolation_error(found, book) <= interpolation_bound(found) + 1e-6
