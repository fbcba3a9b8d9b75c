"""check_model says which promise is broken, and only that one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError, UsageError
from strikeout.models.check import KEPT
from strikeout.quotes.contracts import Features
from tests.raising import raises

SOUND = so.BlackScholes()


@dataclass
class Spoilt:
    """Black and Scholes with one thing done to prices and derivatives on the way out."""

    spoil: Any
    parameters: so.ParameterSpace = field(default_factory=lambda: SOUND.parameters)
    name: str = "spoilt"

    def price(self, theta, contracts):
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta, contracts):
        price, jacobian = SOUND.linearize(theta, contracts)
        return self.spoil(SimpleNamespace(theta=np.asarray(theta), c=contracts, price=price, jacobian=jacobian))


def broken(spoil, **options) -> dict[str, str]:
    found = so.check_model(Spoilt(spoil), **options)
    assert not found.holds
    return {finding.promise: finding.sentence for finding in found.broken}


def test_a_sound_model_keeps_every_promise():
    found = so.check_model(Spoilt(lambda x: (x.price, x.jacobian)))
    assert found.holds
    assert found.broken == ()
    assert "keeps every promise" in found.summary()
    assert found.to_dict()["holds"] is True
    # "inversion" is asked of characteristic functions alone: see tests/attacks/test_misprice_jumps_in_silence.py
    assert {f.promise for f in found.findings} == {*KEPT, "finite"} - {"inversion"}


def test_rows_that_are_mixed_are_found_though_by_a_last_bit_only():
    def mixed(x):
        return x.price * (1.0 + 1e-15 * len(x.price)), x.jacobian

    found = broken(mixed)
    assert set(found) == {"row independence"}
    assert "among all 36 rows" in found["row independence"]


def test_an_order_that_matters_is_found():
    def ordered(x):
        first = np.arange(len(x.price)) == 0
        return x.price + 1e-12 * first * (x.c.strike[0] > x.c.strike[-1]), x.jacobian

    assert "row independence" in broken(ordered)


def test_chance_is_found():
    rng = np.random.default_rng(0)

    def drawn(x):
        return x.price + 1e-14 * rng.standard_normal(len(x.price)), x.jacobian

    assert "two equal calls" in broken(drawn)["determinism"]


def test_two_ways_to_a_price_that_differ_are_found():
    class Twofold(Spoilt):
        def price(self, theta, contracts):
            return self.linearize(theta, contracts)[0] * (1.0 + 1e-15)

    found = so.check_model(Twofold(lambda x: (x.price, x.jacobian)))
    assert {finding.promise for finding in found.broken} == {"one price"}


def test_a_wrong_derivative_is_named_with_both_numbers():
    def tilted(x):
        return x.price, 1.001 * x.jacobian

    found = broken(tilted)
    assert set(found) == {"gradient"}
    assert "derivative by volatility" in found["gradient"]


def test_a_start_without_a_price_is_found():
    def absent(x):
        return np.where(x.theta[0] == SOUND.parameters.starts[1, 0], np.nan, x.price), x.jacobian

    assert "start 2" in broken(absent)["finite"]


def test_an_error_inside_the_bounds_is_found():
    def refuses(x):
        if x.theta[0] > 0.9:
            raise ParameterError("too volatile")
        return x.price, x.jacobian

    assert "too volatile" in broken(refuses)["finite"]


def test_infinity_is_found_and_a_few_holes_are_borne_with():
    def infinite(x):
        return x.price + (np.inf if x.theta[0] > 1.0 else 0.0), x.jacobian

    def holes(x):
        return np.where(x.theta[0] > 1.0, np.nan, x.price), x.jacobian

    assert "infinite" in broken(infinite)["finite"]
    found = so.check_model(Spoilt(holes))
    assert found.holds
    assert "have rows without a price" in found.summary()


def test_prices_below_intrinsic_value_and_broken_parity_are_found():
    def cheap(x):
        return x.price - 0.1, x.jacobian

    def uneven(x):
        return x.price * np.where(x.c.is_call, 1.0, 1.01), x.jacobian * np.where(x.c.is_call, 1.0, 1.01)[:, None]

    assert "arbitrage" in broken(cheap)["no arbitrage"]
    assert "parity" in broken(uneven)["no arbitrage"]


def test_shapes_and_starts_are_checked_first():
    def flat(x):
        return x.price, x.jacobian[:, 0]

    assert set(broken(flat)) == {"shapes"}
    s = SOUND.parameters
    outside = Spoilt(lambda x: (x.price, x.jacobian), replace(s, starts=np.array([[50.0]])))
    assert "lies outside" in so.check_model(outside).broken[0].sentence


def test_the_papers_own_scheme_is_caught():
    found = so.check_model(so.paper.Heston(U_max=50.0, N_u=180))
    assert {finding.promise for finding in found.broken} == {"no arbitrage"}


def test_a_model_of_named_columns_is_checked_on_its_own_rows():
    decay = so.custom_model(
        "decay", parameters={"height": 1.0, "rate": 0.1}, price=lambda height, rate, t: height * np.exp(-rate * t)
    )
    assert so.check_model(decay, Features({"t": np.linspace(0.0, 5.0, 9)})).holds
    mixing = so.custom_model("mixing", parameters={"height": 1.0}, price=lambda height, t: height * (t - t.mean()))
    found = so.check_model(mixing, Features({"t": np.linspace(0.0, 5.0, 9)}))
    assert "mixes rows" in found.broken[0].sentence
    with raises(UsageError, model="decay/custom-1"):
        so.check_model(decay)


def test_what_is_no_model_is_refused():
    with pytest.raises(UsageError, match="takes a model"):
        so.check_model(so.Heston)  # type: ignore[arg-type]
