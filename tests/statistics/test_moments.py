"""Moments: what they hold, what they refuse, and that no quote shows in where they came from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels import exact
from strikeout.kernels.compiled import default_kernel
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.moments import EDGES, Basis, Moments, moments_of, reference_price
from strikeout.statistics.quadrature import quadrature_of
from tests.raising import raises

BOOK = so.paper.quotes("small")
TRUTH = np.array([2.0, 0.06, 0.3, -0.6, 0.06])


def book(*, strike=100.0, observed=5.0, expiry=0.5, count=3, **columns) -> so.Quotes:
    contracts = so.Contracts(forward=100.0, strike=np.full(count, strike), expiry=expiry, discount=1.0, is_call=True)
    names = [f"q{i}" for i in range(count)]
    return so.Quotes(ids=names, contracts=contracts, observed=np.full(count, observed), **columns)


def test_the_sums_are_those_of_the_definition():
    quotes = BOOK[:7]
    moments, c = moments_of(quotes), quotes.contracts
    s, y = c.scale, quotes.observed - c.intrinsic - reference_price(c)
    for cell, row in zip(moments.cells, moments.words, strict=True):
        mine = (moments.basis.cells(c)[0] == cell).all(axis=1)
        phi = moments.basis.values(c[mine], moments.basis.cells(c[mine])[0])
        got = np.array([total / 2**120 for total in exact.to_integers(row[:-2])]).reshape(2, -1)
        # Each basis value is rounded to 2^-48, so a sum of w s^2 phi (1e4 a quote) errs by 1e4 * 2^-49 a quote.
        assert np.abs(got[0] - phi @ (s * s)[mine]).max() < 7e4 * 2.0**-48
        assert np.abs(got[1] - phi @ (s * y)[mine]).max() < 7e4 * 2.0**-48
        last = [total / 2**72 for total in exact.to_integers(row[-2:])]
        assert last == pytest.approx([(y * y)[mine].sum(), mine.sum()], rel=1e-14)


def test_pieces_of_any_size_add_up_to_the_whole():
    quotes = so.synthetic.random_quotes(20_000, maturities=3, seed=1)  # taken in three pieces by itself
    assert Moments.total(moments_of(quotes[i::7]) for i in range(7)) == moments_of(quotes)


def test_taking_quotes_away_leaves_the_moments_of_the_others():
    gone = BOOK[::11]
    assert moments_of(BOOK) - moments_of(gone) == moments_of(BOOK.without(gone.ids))
    assert len(moments_of(BOOK) - moments_of(gone)) == len(BOOK) - len(gone)


def test_taking_everything_away_leaves_nothing():
    assert moments_of(BOOK) - moments_of(BOOK) == Moments.zero()
    assert moments_of(BOOK[[]]) == Moments.zero()


def test_a_price_of_a_million_million_is_taken_away_without_a_trace():
    absurd = book(observed=1e12, count=2)
    assert (moments_of(BOOK) + moments_of(absurd)) - moments_of(absurd) == moments_of(BOOK)


@pytest.mark.parametrize("change", ["observed", "weight", "strike"])
def test_every_column_moves_the_digest(change):
    other = {
        "observed": book(observed=np.nextafter(5.0, 6.0)),
        "weight": book(weight=np.full(3, 2.0)),
        "strike": book(strike=100.00001),
    }[change]
    assert moments_of(other) != moments_of(book())


def test_the_order_of_the_quotes_does_not_show():
    assert moments_of(BOOK[::-1]).digest() == moments_of(BOOK).digest()


@pytest.mark.parametrize("expiries", ["shared", "scattered"])
def test_quotes_off_the_grid_are_refused_by_name(expiries):
    far = book(strike=100.0 * float(np.exp(EDGES[-1] * np.sqrt(0.01) * 1.0001)), expiry=0.01)
    with raises(RefusedError, ids=["q0", "q1", "q2"]) as caught:
        moments_of(far, basis=Basis(expiries))
    assert caught.value.ids == ["q0", "q1", "q2"]
    near = book(strike=100.0 * float(np.exp(EDGES[-1] * np.sqrt(0.01) * 0.9999)), expiry=0.01)
    assert len(moments_of(near, basis=Basis(expiries))) == 3


def test_a_quote_beyond_the_range_is_refused_by_name():
    with raises(RefusedError, ids=["q0", "q1", "q2"]):
        moments_of(book(observed=1e15))
    with raises(RefusedError, ids=["q0", "q1", "q2"]):
        moments_of(book(weight=np.full(3, 1e9)))


def test_quotes_that_were_never_in_cannot_be_taken_away():
    with pytest.raises(UsageError, match="never in"):
        moments_of(BOOK[:5]) - moments_of(BOOK[:6])
    with pytest.raises(UsageError, match="never in"):
        moments_of(BOOK[:1]) - moments_of(BOOK[:1].with_observed(BOOK.observed[:1] + 1.0))
    with pytest.raises(UsageError, match="never in"):  # fewer quotes, but they cost more than the whole
        moments_of(BOOK) - moments_of(BOOK[:30].with_observed(BOOK.observed[:30] + 100.0))


def test_moments_of_different_bases_or_weightings_do_not_mix():
    with raises(UsageError, what="basis", mine="chebyshev/shared-32-1"):
        moments_of(BOOK) + moments_of(BOOK, basis=Basis(nodes=48))
    with raises(UsageError, what="weighting", mine="given"):
        moments_of(BOOK) - moments_of(BOOK, weights="none")
    with pytest.raises(UsageError, match="nothing"):
        Moments.total([])


@pytest.mark.parametrize("options", [{"expiries": "each"}, {"nodes": 3}, {"nodes": 1000}, {"expiry_nodes": 2}], ids=str)
def test_a_basis_that_makes_no_sense_is_refused(options):
    with pytest.raises(UsageError, match=r"unknown|out of range"):
        Basis(**options)


def test_quotes_of_weight_zero_are_left_out():
    weights = np.r_[0.0, np.ones(len(BOOK) - 1)]
    assert moments_of(BOOK, weights=weights) == moments_of(BOOK[1:], weights=weights[1:])


@pytest.mark.parametrize("basis", [Basis(), Basis("scattered")], ids=lambda basis: basis.name)
def test_curvature_score_and_cost_are_those_of_the_quotes_at_every_theta(basis):
    model, c = so.Heston(), BOOK.contracts
    quadrature = quadrature_of(moments_of(BOOK, basis=basis))
    for theta in (TRUTH, np.array([4.0, 0.09, 0.8, -0.5, 0.09]), np.array([1.0, 0.2, 0.5, 0.3, 0.1])):
        got, want = quadrature.linearize(model, theta), model.accumulate(theta, c, BOOK.observed, BOOK.weight)
        matrix = np.array(Linearization(tuple(want), len(BOOK)).rows)
        sizes = np.sqrt(np.diag(matrix))
        sizes[-1] = np.sqrt(quadrature.constant)
        # Relative to what is summed; Heston's sensitivities are promised to 1e-9 of the forward, and sizes are near 1.
        # Without a compiler a book is summed by another rule than its moments, see kernels/fourier_series.py.
        allowed = 1e-10 if default_kernel() == "native" else 3e-10
        assert (np.abs(np.array(got.rows) - matrix) / np.outer(sizes, sizes)).max() < allowed


def test_centring_restores_the_digits_of_the_cost():
    model, theta = so.Heston(), np.array([3.0, 0.5, 1.2, -0.4, 0.6])
    observed = model.price(theta, BOOK.contracts) + 1e-4 * np.random.default_rng(0).standard_normal(len(BOOK))
    quadrature = quadrature_of(moments_of(BOOK.with_observed(observed)))
    d = [Fraction(x) for x in (model.price(theta, quadrature.nodes) - quadrature.centre).tolist()]
    weights = zip(d, quadrature.linear.tolist(), quadrature.quadratic.tolist(), strict=True)
    cost = Fraction(quadrature.constant) + sum(x * (x * Fraction(b) - 2 * Fraction(a)) for x, a, b in weights)
    assert float(cost) == pytest.approx(1e-8 * len(BOOK), rel=0.2)  # a part in a billion of the constant
    assert quadrature.constant > 1e8 * cost
    centred = quadrature.centred(model, theta)
    # Products and their sum are exact; only the new linear weights are rounded: 1e-10 of the cost here.
    assert centred.constant == pytest.approx(float(cost), rel=1e-9, abs=0.0)
    assert quadrature.linearize(model, theta).cost != pytest.approx(float(cost), rel=1e-9, abs=0.0)
    assert centred.linearize(model, theta).cost == centred.constant
    near, plain = (problem.linearize(model, theta * (1.0 + 1e-9)) for problem in (centred, quadrature))
    assert np.allclose(near.curvature, plain.curvature, rtol=1e-12)
