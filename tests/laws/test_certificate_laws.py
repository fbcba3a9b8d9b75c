"""No certificate is issued that its own verification rejects, whatever was asked and however coarse the moments."""

from __future__ import annotations

from hypothesis import example, given, settings
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


@settings(max_examples=40)
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


hard = {"mean_reversion": 6.0, "long_variance": 0.3, "vol_of_vol": 0.5, "correlation": 0.1, "initial_variance": 1e-8}
sparse = st.builds(
    so.random_quotes,
    st.integers(12, 200),
    maturities=st.integers(2, 6),
    seed=st.integers(0, 99),
    theta=truths | st.just(hard),
    noise=st.sampled_from([1.0, 0.1, 1e-2, 5e-4, 0.0]),  # none: then worthless quotes leave nothing behind
)
asked = st.sampled_from(
    [
        {}, {"weights": "none"}, {"loss": "huber"}, {"feller": "enforce"}, {"residual": "implied_vol"},
        {"fixed": {"mean_reversion": 2.0}}, {"bounds": {"correlation": (-0.6, 0.0)}},
        {"bounds": {"initial_variance": (1e-3, 1.0)}},
    ]
)  # fmt: skip
ways = st.sampled_from([{}, {"tolerance": 0.1}, *({"operator": name} for name in ("downdate", "refine", "resolve"))])


@settings(max_examples=40)
@given(sparse, asked, ways, st.integers(1, 12))
@example(  # a bound left: the calibration ended on it with the quotes that go, and does not without them
    so.random_quotes(76, maturities=4, seed=9, theta=hard, noise=0.1),
    {"bounds": {"initial_variance": (1e-3, 1.0)}},
    {"operator": "refine"},
    10,
)
@example(so.random_quotes(76, maturities=4, seed=9, theta=hard, noise=0.1), {}, {"operator": "resolve"}, 4)
def test_what_is_certified_of_quotes_holds_of_them(book, how, way, every):
    gone = book.ids[:: every + 1]
    try:
        made = so.forget(so.calibrate(book, so.Heston(), **how), ids=gone, **way).certificate
    except so.StrikeoutError:
        return  # refused, and nothing was certified
    found = so.verify(made.to_bytes(), book.without(gone))
    assert found.holds, found.summary()


def test_a_worthless_quote_is_retained_though_it_leaves_nothing_behind():
    """Without noise a quote far out of the money has a row of zeros: one step does not see it, and counts it."""
    book = so.random_quotes(171, maturities=4, seed=2, theta=[10.0, 0.04, 2.0, -0.97, 0.1], noise=0.0)
    before = so.calibrate(book, so.Heston())
    assert before.footprints.total().count < len(book)
    done = so.forget(before, ids=book.ids[:20], operator="downdate")
    assert done.certificate.counts == {"before": 171, "forgotten": 20, "retained": 151}
    assert so.verify(done.certificate, book[20:]).holds


@settings(max_examples=40)
@given(books, bases)
def test_no_calibration_from_moments_is_farther_off_than_its_bound(book, basis):
    try:
        found = so.calibrate(so.moments_of(book, basis=basis), so.Heston())
    except so.StrikeoutError:
        return
    if found.converged:
        # Both searches stop at 1e-8 standard errors, or where the cost is rounding.
        assert interpolation_error(found, book) <= interpolation_bound(found) + 1e-6
