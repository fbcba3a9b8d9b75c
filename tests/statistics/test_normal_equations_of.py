"""Normal equations straight from quotes: the bits of summed footprints."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError
from strikeout.kernels import exact
from strikeout.statistics import linearize
from strikeout.statistics.linearize import footprints_of, normal_equations_of
from strikeout.synthetic import random_quotes
from tests.kernels.kernel_choice import under_each
from tests.raising import raises

MODELS = {
    "heston": so.Heston(),
    "scattered": so.Heston(expiries="scattered"),
    "numpy": so.Heston(kernel="numpy"),
    "bates": so.Bates(),
    "sabr": so.SABR(),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("residual", ["price", "implied_vol"])
def test_the_state_is_that_of_the_footprints_bit_for_bit(name, residual, monkeypatch):
    model, quotes = MODELS[name], random_quotes(120, seed=3, noise=1e-3, maturities=5)
    model = model.suited(quotes.contracts) if hasattr(model, "suited") else model
    weights = np.linspace(0.0, 2.0, 120)  # the first counts for nothing
    theta = model.parameters.starts[0]
    whole = footprints_of(quotes, model, theta, residual=residual, weights=weights).total()
    monkeypatch.setattr(linearize, "RUN", 30)
    assert normal_equations_of(quotes, model, theta, residual=residual, weights=weights) == whole
    assert normal_equations_of(quotes[::-1], model, theta, residual=residual, weights=weights[::-1]) == whole
    assert whole.count == 119


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("residual", "rule"),
    [("price", "given"), ("price", "vega"), ("price", "array"), ("price", "by id"), ("implied_vol", "array")],
)
@pytest.mark.parametrize("count", [0, 3, 60, 120])
def test_some_rows_have_the_state_of_a_book_of_them_bit_for_bit(name, residual, rule, count, monkeypatch):
    model, quotes = MODELS[name], random_quotes(120, seed=3, noise=1e-3, maturities=5)
    model = model.suited(quotes.contracts) if hasattr(model, "suited") else model
    own = np.linspace(0.0, 2.0, 120)  # the first counts for nothing
    weights = {"array": own, "by id": dict(zip(quotes.ids.tolist(), own.tolist(), strict=True))}.get(rule, rule)
    theta, rows = model.parameters.starts[0], np.random.default_rng(5).permutation(120)[:count]
    of_rows = {"array": own[rows]}.get(rule, weights)
    alone = footprints_of(quotes[rows], model, theta, residual=residual, weights=of_rows).total()
    monkeypatch.setattr(linearize, "RUN", 30)
    assert normal_equations_of(quotes, model, theta, residual=residual, weights=weights, only=rows) == alone


def test_no_quotes_leave_nothing_behind():
    none, theta = random_quotes(50)[:0], so.Heston().parameters.starts[0]
    found = normal_equations_of(none, so.Heston(), theta)
    assert found == footprints_of(none, so.Heston(), theta).total()
    assert found.count == 0


def test_a_quote_too_large_for_the_grid_is_named():
    quotes = random_quotes(50, seed=1)
    prices = quotes.observed.copy()
    prices[7] = 1e12
    with pytest.raises(RefusedError) as caught:
        normal_equations_of(quotes.with_observed(prices), so.Heston(), so.Heston().parameters.starts[0])
    assert caught.value.facts["ids"] == [str(quotes.ids[7])]
    wrong, theta = quotes.with_observed(prices), so.Heston().parameters.starts[0]
    with raises(RefusedError, ids=[str(quotes.ids[7])]):
        normal_equations_of(wrong, so.Heston(), theta, only=np.array([9, 7]))
    rest = np.delete(np.arange(50), 7)
    assert normal_equations_of(wrong, so.Heston(), theta, only=rest).count == 49


def rows_of(count: int, seed: int = 4) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    jacobian = rng.normal(size=(5, count)) * np.array([[1e-6], [1.0], [30.0], [1e5], [0.1]])
    residual, root = rng.normal(size=count), rng.uniform(0.0, 2.0, count)
    jacobian[:, ::9], residual[::9] = 0.0, 0.0  # rows that leave nothing behind
    return jacobian, residual, root, np.array([44, 40, 38, 41, 42, 41], np.int32)


@pytest.mark.parametrize("spoilt", [None, np.nan, np.inf, 1e30])
def test_compiled_sums_of_footprints_have_the_bits_of_their_twin(spoilt):
    jacobian, residual, root, exponents = rows_of(1000)
    if spoilt is not None:
        jacobian[2, 17] = residual[500] = spoilt
    words, counted, unfit = exact.footprint_sums(jacobian, residual, root, exponents)
    other, same, bad = exact.footprint_sums_twin(jacobian, residual, root, exponents)
    assert unfit == bad == (0 if spoilt is None else 2)
    if unfit == 0:  # otherwise the state is good for nothing
        assert counted == same == 888
        assert (words == other).all()


def test_builds_for_other_instructions_give_the_same_sums():
    first, *others = under_each(lambda: exact.footprint_sums(*rows_of(777))[0]).values()
    assert all((first == other).all() for other in others)
