"""No certificate is issued that its own verification rejects, whatever was asked and however coarse the moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, reject, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.assurance.certificate import Claim
from strikeout.calibration.from_moments import interpolation_bound, interpolation_error
from strikeout.errors import RefusedError
from tests.raising import raises

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
    so.synthetic.random_quotes,
    st.integers(60, 400),
    maturities=st.integers(3, 8),
    seed=st.integers(0, 99),
    theta=truths,
    noise=st.sampled_from([1e-2, 5e-4, 1e-5, 1e-7]),  # the less noise, the more standard errors is the same way
)
bases = st.sampled_from(
    [so.states.Basis(), so.states.Basis(nodes=8), so.states.Basis(nodes=16), so.states.Basis("scattered", 24, 8)]
)


@settings(max_examples=40)
@given(books, bases)
def test_what_is_certified_of_moments_holds_of_the_quotes(book, basis):
    gone = book[::10]
    try:
        before = so.calibrate(so.states.moments_of(book, basis=basis), so.Heston())
        done = so.forget(before, quotes=gone)
    except so.errors.StrikeoutError:
        reject()  # refused, and nothing was certified
    found = so.verify(done.certificate.to_bytes(), book.without(gone.ids))
    assert found.holds, found.summary()


hard = {"mean_reversion": 6.0, "long_variance": 0.3, "vol_of_vol": 0.5, "correlation": 0.1, "initial_variance": 1e-8}
sparse = st.builds(
    so.synthetic.random_quotes,
    st.integers(12, 200),
    maturities=st.integers(2, 6),
    seed=st.integers(0, 99),
    theta=truths | st.just(hard),
    noise=st.sampled_from([1.0, 0.1, 1e-2, 5e-4, 0.0]),  # none: then worthless quotes leave nothing behind
)
asked = st.sampled_from(
    [
        {}, {"weights": "none"}, {"loss": "huber"}, {"loss": "tukey:0.01"},
        {"feller": "enforce"}, {"residual": "implied_vol"},
        {"fixed": {"mean_reversion": 2.0}}, {"bounds": {"correlation": (-0.6, 0.0)}},
        {"bounds": {"initial_variance": (1e-3, 1.0)}},
    ]
)  # fmt: skip
ways = st.sampled_from([{}, {"tolerance": 0.1}, *({"operator": name} for name in ("downdate", "refine", "resolve"))])


@settings(max_examples=40)
@given(sparse, asked, ways, st.integers(1, 12))
@example(  # a bound left: the calibration ended on it with the quotes that go, and does not without them
    so.synthetic.random_quotes(76, maturities=4, seed=9, theta=hard, noise=0.1),
    {"bounds": {"initial_variance": (1e-3, 1.0)}},
    {"operator": "refine"},
    10,
)
@example(so.synthetic.random_quotes(76, maturities=4, seed=9, theta=hard, noise=0.1), {}, {"operator": "resolve"}, 4)
def test_what_is_certified_of_quotes_holds_of_them(book, how, way, every):
    gone = book.ids[:: every + 1]
    try:
        made = so.forget(so.calibrate(book, so.Heston(), **how), ids=gone, **way).certificate
    except so.errors.StrikeoutError:
        reject()  # refused, and nothing was certified
    found = so.verify(made.to_bytes(), book.without(gone))
    assert found.holds, found.summary()


def test_a_worthless_quote_is_retained_though_it_leaves_nothing_behind():
    """Without noise a quote far out of the money has a row of zeros: one step does not see it, and counts it."""
    book = so.synthetic.random_quotes(171, maturities=4, seed=2, theta=[10.0, 0.04, 2.0, -0.97, 0.1], noise=0.0)
    before = so.calibrate(book, so.Heston())
    assert before.footprints.whole.total().count < len(book)
    done = so.forget(before, ids=book.ids[:20], operator="downdate")
    assert done.certificate.counts == {"forgotten": 20, "retained": 151}
    assert so.verify(done.certificate, book[20:]).holds


@settings(max_examples=40)
@given(books, bases)
def test_no_calibration_from_moments_is_farther_off_than_its_bound(book, basis):
    try:
        found = so.calibrate(so.states.moments_of(book, basis=basis), so.Heston())
    except so.errors.StrikeoutError:
        reject()
    assume(found.converged)
    # Both searches stop at 1e-8 standard errors, or where the cost is rounding.
    assert interpolation_error(found, book) <= interpolation_bound(found) + 1e-6


DAYS = 3


def panel_of(book: so.Quotes, worthless: int, price: float) -> so.Quotes:
    """The quotes dealt out to days; on the first of them some calls so far out that no parameter moves their price."""
    c, far = book.contracts, DAYS * np.arange(worthless)
    strike, expiry, is_call, observed = c.strike.copy(), c.expiry.copy(), c.is_call.copy(), book.observed.copy()
    strike[far], expiry[far], is_call[far], observed[far] = 1.8 * c.forward[far], 0.02, True, price
    dealt = so.Contracts(forward=c.forward, strike=strike, expiry=expiry, discount=c.discount, is_call=is_call)
    date = np.array([f"2024-01-{1 + i % DAYS:02d}" for i in range(len(book))])
    return so.Quotes(ids=book.ids, contracts=dealt, observed=observed, labels={"date": date})


calm = {"mean_reversion": 2.0, "long_variance": 0.06, "vol_of_vol": 0.3, "correlation": -0.6, "initial_variance": 0.04}
tiny = {"mean_reversion": 0.5, "long_variance": 0.3, "vol_of_vol": 0.2, "correlation": -0.9, "initial_variance": 0.0025}
panels = st.builds(
    panel_of,
    st.builds(
        so.synthetic.random_quotes,
        st.integers(60, 150),
        maturities=st.integers(3, 5),
        seed=st.integers(0, 99),
        theta=truths | st.just(calm),
        noise=st.sampled_from([1e-2, 1e-3, 1e-5, 0.0]),
    ),
    st.integers(0, 3),
    st.sampled_from([0.0, 1e-3]),
)
of_panels = st.sampled_from([{}, {"tolerance": 0.1}, {"operator": "downdate"}, {"operator": "restep"}])


@settings(max_examples=40)
@example(  # a variance next to nothing: the search's curvature is rounding, and a linearization's is zero
    panel_of(so.synthetic.random_quotes(134, maturities=3, seed=2, theta=tiny, noise=0.01), 0, 0.0), {}, 1, 0
)
@given(panels, of_panels, st.integers(0, 4), st.integers(0, 3))
def test_what_is_certified_of_a_panel_holds_of_its_quotes(book, way, left, more):
    day = book.ids[::DAYS]
    gone = [*day[left:].tolist(), *book.ids[1::DAYS][:more].tolist()]
    try:
        made = so.forget(so.calibrate(book, so.Heston(), panel="date"), ids=gone, **way).certificate
    except so.errors.StrikeoutError:
        reject()  # refused, and nothing was certified
    found = so.verify(made.to_bytes(), book.without(gone))
    assert found.holds, found.summary()


@pytest.mark.parametrize("way", [{}, {"tolerance": 0.1}])
@pytest.mark.parametrize("price", [0.0, 1e-3])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_day_left_with_a_worthless_quote_alone_is_retained_and_not_called_optimal(way, price):
    book = panel_of(so.synthetic.random_quotes(150, maturities=4, seed=3, theta=calm, noise=1e-3), 1, price)
    gone = book.ids[::DAYS][1:]
    made = so.forget(so.calibrate(book, so.Heston(), panel="date"), ids=gone, **way).certificate
    assert len(made.latent) == DAYS
    assert made.claimed() == (Claim.STATE, Claim.NEVER_SEEN)
    assert made.obstacles["OPTIMUM"] == "LOOSE_GROUP"
    assert so.verify(made.to_bytes(), book.without(gone)).holds


@pytest.mark.parametrize("operator", ["downdate", "restep"])
def test_no_step_is_taken_that_would_lose_a_day_of_worthless_quotes(operator):
    book = panel_of(so.synthetic.random_quotes(150, maturities=4, seed=3, theta=calm, noise=1e-3), 1, 0.0)
    before = so.calibrate(book, so.Heston(), panel="date")
    with raises(RefusedError, mentions={"operator"}):
        so.forget(before, ids=book.ids[::DAYS][1:], operator=operator)
    whole = so.forget(before, ids=book.ids[::DAYS], operator=operator)  # with its last quote the day itself is gone
    assert so.verify(whole.certificate, book.without(book.ids[::DAYS])).holds


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_claim_of_an_optimum_for_a_day_that_nothing_determines_does_not_hold():
    book = panel_of(so.synthetic.random_quotes(150, maturities=4, seed=3, theta=calm, noise=1e-3), 1, 0.0)
    gone = book.ids[::DAYS][1:]
    made = so.forget(so.calibrate(book, so.Heston(), panel="date"), ids=gone).certificate
    made.claims["OPTIMUM"] = {"tolerance": (1e-5).hex()}
    del made.obstacles["OPTIMUM"]
    found = so.verify(made, book.without(gone))
    assert [reason for reason in found.reasons if "do not determine initial_variance" in reason]
