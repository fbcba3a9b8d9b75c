"""What must hold of every model's prices, whatever the parameters and the book."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts
from tests.kernels.kernel_choice import KERNELS, needs_native, total_variance, under_each
from tests.models.test_characteristic import BATES

HESTONS = [Heston(kernel, expiries) for kernel in KERNELS for expiries in ("shared", "scattered")]
each_heston = pytest.mark.parametrize("model", HESTONS, ids=lambda model: model.name)
each_model = pytest.mark.parametrize("model", [*HESTONS, BATES], ids=lambda model: model.name)
JUMPS = [0.4, -0.1, 0.2]


def between(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers spread evenly over orders of magnitude."""
    return st.floats(0.0, 1.0).map(lambda x: float(low ** (1.0 - x) * high**x))


ORDINARY = st.tuples(
    between(0.1, 20.0), between(0.01, 0.5), between(0.1, 2.0), st.floats(-0.9, 0.9), between(0.005, 0.5)
)
SEEDS = st.integers(0, 2**32 - 1)


def theta_of(model: Model, theta: tuple[float, ...]) -> list[float]:
    return [*theta, *JUMPS[: len(model.parameters) - 5]]


def book_of(seed: int, count: int = 40) -> Contracts:
    """A few shared expiries and some of their own, strikes from deep in to far out of the money, repeated rows."""
    rng = np.random.default_rng(seed)
    shared = rng.uniform(0.02, 3.0, 3)
    expiry = np.where(rng.random(count) < 0.7, rng.choice(shared, count), rng.uniform(0.01, 5.0, count))
    forward = rng.choice([97.0, 100.0, 102.5], count)
    strike = forward * np.exp(rng.normal(0.0, 0.5, count) * np.sqrt(expiry)).clip(0.05, 20.0)
    whole = Contracts(forward=forward, strike=strike, expiry=expiry, discount=0.98, is_call=rng.random(count) < 0.5)
    return whole[np.r_[np.arange(count), rng.integers(0, count, 5)]]


@each_model
@settings(max_examples=25)
@given(theta=ORDINARY, seed=SEEDS, rows=st.lists(st.integers(0, 44), min_size=1, max_size=60))
def test_a_price_does_not_depend_on_its_batch(model, theta, seed, rows):
    """Any subset, in any order, with repetitions: the same bits, of prices and of sensitivities."""
    book, vector = book_of(seed), theta_of(model, theta)
    price, jacobian = model.linearize(vector, book)
    some, some_jacobian = model.linearize(vector, book[rows])
    assert some.tobytes() == price[rows].tobytes()
    assert some_jacobian.tobytes() == jacobian[rows].tobytes()
    assert model.price(vector, book[rows]).tobytes() == some.tobytes()


@each_model
def test_a_price_does_not_depend_on_a_batch_a_hundred_times_larger(model):
    """Large enough for every block and chunk of the kernels."""
    rng = np.random.default_rng(5)
    expiry = np.r_[rng.choice(np.linspace(0.05, 3.0, 12), 9_000), rng.uniform(0.02, 5.0, 200)]
    strike = 100.0 * np.exp(rng.normal(0.0, 0.4, len(expiry)) * np.sqrt(expiry))
    book = Contracts(forward=100.0, strike=strike, expiry=expiry, discount=1.0, is_call=strike > 100.0)
    vector = theta_of(model, (2.0, 0.06, 0.4, -0.6, 0.05))
    price, jacobian = model.linearize(vector, book)
    for rows in (rng.permutation(len(book))[:700], rng.integers(0, len(book), 37), np.array([123])):
        some, some_jacobian = model.linearize(vector, book[rows])
        assert some.tobytes() == price[rows].tobytes()
        assert some_jacobian.tobytes() == jacobian[rows].tobytes()


@needs_native
@pytest.mark.parametrize("expiries", ["shared", "scattered"])
def test_threads_change_no_bit_of_rows_or_sums(expiries, monkeypatch):
    """A book large enough for threads to be used: 51,000 quotes on 300 expiries."""
    rng = np.random.default_rng(7)
    expiry = np.repeat(np.linspace(0.02, 4.0, 300), 170)
    strike = 100.0 * np.exp(rng.normal(0.0, 0.3, len(expiry)) * np.sqrt(expiry))
    book = Contracts(forward=100.0, strike=strike, expiry=expiry, discount=1.0, is_call=strike > 100.0)
    theta, model, found = [2.0, 0.06, 0.4, -0.6, 0.05], Heston("native", expiries), set()
    observed = model.price(theta, book) + rng.normal(0.0, 1e-3, len(book))
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("STRIKEOUT_THREADS", threads)
        price, jacobian = model.linearize(theta, book)
        sums = model.accumulate(theta, book, observed, np.ones(len(book)))
        found.add(price.tobytes() + jacobian.tobytes() + sums.tobytes())
    assert len(found) == 1


@each_model
@settings(max_examples=25)
@given(theta=ORDINARY, seed=SEEDS)
def test_prices_are_smooth_in_the_parameters_and_sensitivities_are_their_slopes(model, theta, seed):
    """Fourth-order differences with steps of 1e-4: contours, cells and cuts move with the parameters and must not show.

    The rule itself errs by step^4, below 1e-13. What else differs is the error of a price, which need not be smooth:
    1e-12 of the forward at most where it was measured, amplified by 1.5 / step.
    """
    expiry, vector = np.random.default_rng(seed).uniform(0.05, 2.0), np.array(theta_of(model, theta))
    assume(total_variance(theta, expiry) > 1e-3)
    k = np.sqrt(total_variance(theta, expiry)) * np.linspace(-2.5, 2.5, 31)
    book = Contracts(forward=1.0, strike=np.exp(k), expiry=expiry, discount=1.0, is_call=k >= 0.0)
    price, jacobian = model.linearize(vector, book)
    assume(np.isfinite(price).all())  # the general rule gives no price where it would take too many nodes
    for i in range(5):
        step = 1e-4 * max(abs(vector[i]), 0.1 if i == 3 else 0.0)
        p = [model.price(vector + m * step * np.eye(len(vector))[i], book) for m in (1, -1, 2, -2)]
        differences = (8.0 * (p[0] - p[1]) - (p[2] - p[3])) / (12.0 * step)
        np.testing.assert_allclose(jacobian[:, i], differences, rtol=0, atol=1e-9 + 1.5e-12 / step)


@each_model
@settings(max_examples=10)
@given(theta=ORDINARY, seed=SEEDS)
def test_calls_and_puts_keep_parity_to_rounding(model, theta, seed):
    book, vector = book_of(seed, count=20), theta_of(model, theta)
    columns = {name: getattr(book, name) for name in ("forward", "strike", "expiry", "discount")}
    call, by_call = model.linearize(vector, Contracts(**columns, is_call=True))
    put, by_put = model.linearize(vector, Contracts(**columns, is_call=False))
    assert by_call.tobytes() == by_put.tobytes()
    forward = book.discount * (book.forward - book.strike)
    priced = np.isfinite(call)  # the general rule gives no price where it would take too many nodes
    rounding = 2.0**-52 * (book.forward + book.strike)  # of the two prices and of their difference
    assert np.all(np.abs(call - put - forward)[priced] <= rounding[priced])


@each_model
@settings(max_examples=25)
@given(theta=ORDINARY, expiry=between(0.01, 5.0))
def test_prices_fall_or_rise_with_the_strike_and_are_convex_and_inside_the_bounds(model, theta, expiry):
    """To 1e-12 of the forward, the error of a price; across every boundary between cells, groups and far wings."""
    assume(total_variance(theta, expiry) < 1.0)
    strike = np.linspace(0.2, 3.0, 561)
    book = Contracts(forward=1.0, strike=strike, expiry=expiry, discount=1.0, is_call=True)
    call = model.price(theta_of(model, theta), book)
    assume(np.isfinite(call).all())
    put = call - 1.0 + strike
    assert np.all(np.diff(call) <= 2e-12)
    assert np.all(np.diff(put) >= -2e-12)
    assert np.all(np.diff(call, 2) >= -4e-12)
    assert np.all(call >= np.maximum(1.0 - strike, 0.0) - 1e-11)
    assert np.all(call <= 1.0 + 1e-11)


@each_heston
@settings(max_examples=25)
@given(theta=ORDINARY, seed=SEEDS)
def test_accumulating_is_linearizing_and_summing(model, theta, seed):
    book = book_of(seed)
    rng = np.random.default_rng(seed)
    price, jacobian = model.linearize(theta, book)
    observed, weight = price + rng.normal(0.0, 1.0, len(book)), rng.uniform(0.0, 3.0, len(book))
    sums = model.accumulate(theta, book, observed, weight)
    a = np.column_stack([jacobian, observed - price])
    expected = (a * weight[:, None]).T @ a
    size = (np.abs(a) * weight[:, None]).T @ np.abs(a)
    upper = np.triu_indices(6)
    # A residual of size 1 is a difference of numbers of size 100, so it is good to 100 ulps; then a sum of 45.
    allowed = 1e-12 * size + 1e-12
    if model.name == "heston/numpy-shared-2":  # sums of series, not of rows: kernels/fourier_series
        apart = np.outer(weight * book.scale, [1e-9] * 5 + [2e-12])
        allowed += apart.T @ np.abs(a) + np.abs(a).T @ apart
    assert np.all(np.abs(sums - expected[upper]) <= allowed[upper])


@needs_native
@pytest.mark.parametrize("expiries", ["shared", "scattered"])
@settings(max_examples=40)
@given(theta=ORDINARY, seed=SEEDS)
def test_every_instruction_set_gives_the_same_bits(expiries, theta, seed):
    book, model = book_of(seed), Heston("native", expiries)
    weight = np.ones(len(book))

    def everything() -> bytes:
        price, jacobian = model.linearize(theta, book)
        sums = model.accumulate(theta, book, np.zeros(len(book)), weight)
        return price.tobytes() + jacobian.tobytes() + sums.tobytes()

    assert len(set(under_each(everything).values())) == 1


@each_model
def test_the_same_call_gives_the_same_bits(model):
    book, vector = book_of(1), theta_of(model, (2.0, 0.06, 0.4, -0.6, 0.05))
    first, second = model.linearize(vector, book), model.linearize(vector, book)
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1].tobytes() == second[1].tobytes()


@settings(max_examples=20)
@given(theta=ORDINARY, seed=SEEDS)
def test_scattered_expiries_are_priced_like_shared_ones(theta, seed):
    book = book_of(seed)
    assume(all(total_variance(theta, T) < 1.0 for T in book.expiry))
    for kernel in KERNELS:
        price, jacobian = Heston(kernel, "shared").linearize(theta, book)
        scattered, slopes = Heston(kernel, "scattered").linearize(theta, book)
        np.testing.assert_allclose(scattered, price, rtol=0, atol=1e-11 * 100.0)
        np.testing.assert_allclose(slopes, jacobian, rtol=0, atol=1e-9 * 100.0)
