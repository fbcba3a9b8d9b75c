"""Models side by side on a real chain: the S&P 500 of 15 September 2005, Gatheral's own example."""

from __future__ import annotations

import pytest

import strikeout as so
from tests.reference.real_books import book


@pytest.fixture(scope="module")
def found(shared_data):
    quotes, _ = book("gatheral_spx_2005-09-15", shared_data)
    return so.compare_models(quotes, ["black-scholes", "heston", "bates", "ssvi"])


def test_every_model_finds_an_optimum(found):
    assert [fit.name for fit in found.values() if not fit.converged] == []
    assert {name: fit.parameters for name, fit in found.items() if name != "ssvi"} == {
        "black-scholes": 1,
        "heston": 5,
        "bates": 8,
    }


def test_a_model_that_contains_another_costs_no_more(found):
    cost = {name: fit.calibration.cost for name, fit in found.items()}
    assert cost["bates"] < cost["heston"] < cost["black-scholes"]


def test_jumps_earn_their_parameters_and_one_volatility_is_not_enough(found):
    assert list(found).index("bates") < list(found).index("heston")
    assert list(found)[-1] == "black-scholes"
    assert found["heston"].bic - found["bates"].bic > 50.0


def test_the_residuals_of_a_smile_that_is_missed_go_together(found):
    assert found["black-scholes"].dependence > 0.9
    assert any("independent ones" in sentence for sentence in found.sentences)


@pytest.mark.parametrize("name", ["ssvi", "heston"])
def test_what_is_most_influential_is_forgotten_bit_for_bit(found, name):
    fit = found[name]
    gone = list(fit.influential)
    forgotten = so.forget(fit.calibration, ids=gone)
    fresh = so.calibrate(fit.calibration.quotes.without(gone), fit.calibration.asked)
    assert forgotten.parameters == fresh.parameters
    assert forgotten.calibration.state.digest() == fresh.state.digest()
