"""What the compiled kernel refuses, and that the twin stands in for it everywhere."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest

from strikeout.kernels import compiled, heston
from strikeout.kernels.heston_twin import Parts
from strikeout.models.heston import Heston
from strikeout.quotes.contracts import Contracts
from tests.kernels.kernel_choice import each_kernel, needs_native, under_each
from tests.reference.lewis_integral import otm

THETA = np.array([2.0, 0.06, 0.3, -0.6, 0.06])


def native_rows(k: list[float], offsets: list[int] | None = None, theta: np.ndarray = THETA) -> np.ndarray:
    module = compiled.native()
    assert module is not None
    ends = np.array([0, len(k)] if offsets is None else offsets, np.int64)
    return module.heston_rows(theta, np.full(len(ends) - 1, 0.5), ends, np.array(k, float), None, 0.0, 1)


@needs_native
@pytest.mark.parametrize(
    "k",
    [[0.1, 0.0], [0.0, np.nan], [np.nan, 0.0], [np.inf], [-np.inf, 0.0]],
    ids=["falling", "nan", "nan", "inf", "-inf"],
)
def test_strikes_that_are_not_finite_and_ascending_are_refused(k):
    with pytest.raises(ValueError, match="finite and ascending"):
        native_rows(k)


@needs_native
@pytest.mark.parametrize("where", range(11))
def test_one_strike_out_of_order_is_found_wherever_it_stands(where):
    """Strikes are compared four at a time, and the last few one by one; the other part is sound."""
    sound = np.linspace(-0.2, 0.2, 12)
    k = sound.copy()
    k[where] = k[where + 1] + 1e-9
    assert native_rows([*sound, *sound], [0, 12, 24]).shape == (6, 24)
    for strikes in ([*k, *sound], [*sound, *k]):
        with pytest.raises(ValueError, match="finite and ascending"):
            native_rows(strikes, [0, 12, 24])


@needs_native
def test_sums_over_strikes_out_of_order_are_refused():
    ones, k = np.ones(2), np.array([0.1, 0.0])
    with pytest.raises(ValueError, match="finite and ascending"):
        heston.accumulator("native", Parts(np.array([0.5]), np.array([0, 2]), k), ones, ones)(THETA)


@needs_native
def test_columns_give_the_same_bits_in_whatever_way_they_are_held():
    """Read-only, with gaps, integers for doubles, narrow integers: read in place or converted."""
    k = np.linspace(-0.3, 0.3, 13)
    gaps = np.repeat(k, 2)[::2]
    frozen = k.copy()
    frozen.flags.writeable = False
    module, T, ends = compiled.native(), np.array([2.0]), np.array([0, 13])
    expected = module.heston_rows(THETA, T, ends, k, None, 0.0, 1).tobytes()
    every_other = np.repeat(THETA, 2)[::2]
    for theta, expiries, offsets, strikes in (
        (THETA, T, ends, frozen),
        (every_other, T, ends, gaps),
        (THETA, np.array([2]), ends.astype(np.int32), k),
    ):
        assert module.heston_rows(theta, expiries, offsets, strikes, None, 0.0, 1).tobytes() == expected


@needs_native
@pytest.mark.parametrize("column", ["strikes", np.zeros((2, 2)), np.array(["a", "b"])])
def test_what_is_no_column_of_numbers_is_refused(column):
    with pytest.raises(TypeError, match="column of numbers"):
        compiled.native().heston_rows(THETA, np.array([0.5]), np.array([0, 2]), column, None, 0.0, 1)


@needs_native
@pytest.mark.parametrize("out", [np.empty(20), np.empty((3, 7)), np.empty(21, np.float32), np.empty(42)[::2]])
def test_sums_are_not_written_where_they_do_not_fit(out):
    k = np.zeros(1)
    with pytest.raises((TypeError, ValueError)):
        compiled.native().HestonSums(k + 0.5, np.array([0, 1]), k, None, 0.0, k, k, 1).at(THETA, out)


@needs_native
def test_a_book_made_ready_keeps_its_arrays_and_gives_the_same_sums_for_any_theta_in_any_order():
    def book():
        k = np.linspace(-0.4, 0.4, 2000)
        return np.array([0.5]), np.array([0, 2000]), k, None, 0.0, np.ones(2000), np.cos(k), 1

    other = THETA * [1.1, 0.9, 1.2, 0.8, 1.3]
    alone = [
        heston.accumulator("native", Parts(*book()[:5]), *book()[5:7])(theta).tobytes() for theta in (THETA, other)
    ]
    ready = compiled.native().HestonSums(*book())  # nobody else holds these arrays
    thrown_away = [np.full(2000, 9.0) for _ in range(50)]  # where they would have lain
    out = np.empty(21)
    for theta, expected in zip((THETA, other, THETA), (*alone, alone[0]), strict=True):
        ready.at(theta, out)
        assert out.tobytes() == expected
    assert len(thrown_away) == 50


@needs_native
def test_what_becomes_of_the_arrays_of_a_book_made_ready_is_noticed_or_harmless():
    k, offsets, ones, out = np.array([-0.1, 0.0, 0.1]), np.array([0, 3]), np.ones(3), np.empty(21)
    seen = k[:]
    seen.flags.writeable = False  # and yet k can be written to
    ready = compiled.native().HestonSums(np.array([0.5]), offsets, seen, None, 0.0, ones, ones, 1)
    ready.at(THETA, out)
    expected = out.tobytes()
    offsets[1] = 1 << 40
    ready.at(THETA, out)
    assert out.tobytes() == expected
    k[0] = 0.2
    for _ in range(2):
        with pytest.raises(ValueError, match="ascending"):
            ready.at(THETA, out)


@needs_native
def test_columns_that_are_not_as_long_as_the_strikes_are_refused():
    k, one = np.zeros(2), np.zeros(1)
    for scale, target in ((one, k), (k, one)):
        with pytest.raises(ValueError, match="as long as k"):
            compiled.native().HestonSums(one + 0.5, np.array([0, 2]), k, None, 0.0, scale, target, 1)
    for theta in (THETA[:4], np.repeat(THETA, 2)):
        with pytest.raises(ValueError, match="5 numbers"):
            compiled.native().HestonSums(one + 0.5, np.array([0, 2]), k, None, 0.0, k, k, 1).at(theta, np.empty(21))


@needs_native
@pytest.mark.parametrize("offsets", [[0, 1], [1, 2], [0, 2, 1, 2], [0, 3], [-1, 2]])
def test_offsets_that_do_not_cover_the_strikes_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets"):
        native_rows([0.0, 0.1], offsets)


@needs_native
def test_a_parameter_too_many_is_refused():
    with pytest.raises(ValueError, match="shapes"):
        native_rows([0.0], theta=np.ones(6))


@needs_native
def test_shorter_polynomials_cost_a_price_less_than_3e_13_and_a_derivative_less_than_3e_11():
    """ECONOMY and SLACK of native/cells.hpp; the twin keeps every power.

    Worst measured: 7.2e-14 and 7.2e-12. With LOST at ln 1e-9, 9.7e-13 and 1.1e-10; with ECONOMY at 1e-9, 9.2e-10.
    """
    T = np.array([0.02, 0.1, 0.3, 1.0, 3.0])
    k = np.concatenate([np.linspace(-4.0, 4.0, 161) * np.sqrt(0.06 * t) for t in T])
    slices = Parts(T, np.arange(6) * 161, k)
    apart = np.abs(heston.rows("native", THETA, slices) - heston.rows("numpy", THETA, slices))
    assert apart[0].max() < 3e-13
    assert apart[1:].max() < 3e-11


@needs_native
def test_no_strikes_give_no_rows():
    assert native_rows([]).shape == (6, 0)


@each_kernel
@pytest.mark.parametrize("expiries", ["shared", "scattered"])
def test_a_book_that_is_far_out_of_the_money_throughout_is_worth_its_intrinsic_value(kernel, expiries):
    book = Contracts(forward=100.0, strike=[1.0, 2.0, 5000.0], expiry=0.01, discount=0.99, is_call=True)
    price, jacobian = Heston(kernel, expiries).linearize(THETA, book)
    assert price.tolist() == book.intrinsic.tolist()
    assert not jacobian.any()


@each_kernel
@pytest.mark.parametrize("expiries", ["shared", "scattered"])
def test_one_strike_is_a_book(kernel, expiries):
    book = Contracts(forward=100.0, strike=100.0, expiry=1.0, discount=1.0, is_call=True)
    expected = 100.0 * otm(THETA.tolist(), 1.0, [0.0])[0]
    assert Heston(kernel, expiries).price(THETA, book)[0] == pytest.approx(expected, rel=0, abs=1e-11 * 100.0)


NODES = Contracts(forward=1.0, strike=np.exp(np.tile(np.linspace(-9.0, 9.0, 45), 2)), expiry=np.repeat([0.1, 2.0], 45),
                  discount=1.0, is_call=np.tile(np.linspace(-9.0, 9.0, 45) >= 0.0, 2))  # fmt: skip


@each_kernel
def test_weighed_sums_are_those_of_the_rows_one_by_one(kernel):
    """Weights of either sign, nodes that are worth nothing among them, and no multiple of eight."""
    quadratic, linear, centre = np.random.default_rng(3).normal(size=(3, len(NODES)))
    price, J = Heston(kernel).linearize(THETA, NODES)
    d = price - centre
    expected = []
    for i in range(5):
        expected += [fsum(quadratic * J[:, i] * J[:, j]) for j in range(i, 5)]
        expected.append(fsum((linear - quadratic * d) * J[:, i]))
    expected += [fsum(linear * d), fsum(quadratic * d * d)]
    found = Heston(kernel).weigher(NODES, quadratic, linear, centre)(THETA)
    # A sum of 90 products of order one: 90 roundings of the largest.
    np.testing.assert_allclose(found, expected, rtol=0, atol=90 * 2.0**-52 * 10.0)


@needs_native
def test_weighed_sums_have_the_same_bits_on_every_instruction_set():
    weights = np.random.default_rng(4).normal(size=(3, len(NODES)))
    found = under_each(lambda: Heston("native").weigher(NODES, *weights)(THETA).tobytes())
    assert len(set(found.values())) == 1


@needs_native
def test_weights_of_another_length_are_refused():
    with pytest.raises(ValueError, match="as long as k"):
        heston.weighed("native", THETA, NODES.slices.parts, *np.ones((3, 5)))


@each_kernel
def test_where_no_moment_beyond_the_first_exists_the_price_is_right_or_not_a_number(kernel):
    """rho sigma > kappa over years: E[S^p] explodes for p just above 1, and the contours on that side have no room."""
    theta = [0.002, 0.007, 7.5, 0.92, 0.004]
    book = Contracts(forward=1.0, strike=[0.8, 1.0, 1.25], expiry=8.0, discount=1.0, is_call=True)
    price = Heston(kernel).price(theta, book)
    inside = (price >= np.maximum(1.0 - book.strike, 0.0)) & (price <= 1.0)
    assert np.all(inside | np.isnan(price))


def test_the_number_of_threads_can_be_set_and_nonsense_is_not_taken(monkeypatch):
    monkeypatch.setenv("STRIKEOUT_THREADS", "3")
    assert compiled.threads() == 3
    for nonsense in ("0", "-2", "many", ""):
        monkeypatch.setenv("STRIKEOUT_THREADS", nonsense)
        assert compiled.threads() >= 1


def test_the_twin_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("STRIKEOUT_KERNEL", "numpy")
    assert compiled.default_kernel() == "numpy"
    assert "numpy" in Heston().name


SIZES = [5e-324, 1e-200, 1e-12, 1.0, 1e12, 1e200, 1e308]


@each_kernel
@pytest.mark.parametrize("expiries", ["shared", "scattered"])
def test_no_numbers_are_too_absurd_for_an_answer(expiries, kernel):
    """Kernels never raise: what has no price is not-a-number, whatever overflows or vanishes on the way."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        kappa, vbar, v0 = rng.choice(SIZES, 3)
        theta = [kappa, vbar, rng.choice([1e-3, 1.0, 1e150, 1e308]), rng.choice([-1 + 1e-16, 0.0, 1 - 1e-16]), v0]
        book = Contracts(forward=1.0, strike=rng.choice([1e-300, 0.5, 1.0, 1e300], 3), expiry=rng.choice(SIZES, 3),
                         discount=1.0, is_call=True)  # fmt: skip
        model = Heston(kernel, expiries)
        price, jacobian = model.linearize(theta, book)
        assert price.shape == (3,)
        assert jacobian.shape == (3, 5)
        assert model.accumulate(theta, book, np.ones(3), np.ones(3)).shape == (21,)


@needs_native
def test_polynomials_kept_from_book_to_book_have_the_bits_of_those_found_again():
    module, start = compiled.native(), Heston().parameters.starts[1]
    kept, rng = module.HestonKept(), np.random.default_rng(8)
    for turn in range(60):  # more expiries than are kept, and some again
        T = np.sort(rng.choice(np.arange(1, 60) / 24.0, 4, replace=False))
        k = np.sort(rng.normal(0.0, 0.4 if turn % 2 else 3.0, (4, 25)), axis=1).ravel()
        book = (T, np.arange(5) * 25, k, None, 0.0)
        alone, again = np.empty(21), np.empty(21)
        ones = np.ones(100)
        assert module.heston_rows(start, *book, 1, kept).tobytes() == module.heston_rows(start, *book, 1).tobytes()
        module.HestonSums(*book, ones, ones, 1).at(start, alone)
        module.HestonSums(*book, ones, ones, 1).at(start, again, kept)
        assert alone.tobytes() == again.tobytes()


@needs_native
def test_what_is_kept_belongs_to_one_theta():
    module, (one, two, *_) = compiled.native(), Heston().parameters.starts
    kept, book = module.HestonKept(), (np.array([0.5]), np.array([0, 3]), np.array([-0.1, 0.0, 0.2]), None, 0.0, 1)
    for theta in (one, two, one):
        assert module.heston_rows(theta, *book, kept).tobytes() == module.heston_rows(theta, *book).tobytes()
    assert (module.heston_rows(one, *book, kept) != module.heston_rows(two, *book, kept)).any()
