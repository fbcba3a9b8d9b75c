"""Convergence does not depend on the last bit: prices off by one unit in the last place give the same digits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.termination import Termination
from tests.models.books import CASES
from tests.reference.last_bits import LastBits
from tests.reference.regressions import nist, numbers
from tests.reference.test_nist import NIST

FAR, NEAR = 0, 1
# Answers of a noise-free book, relative: what rounding is worth over the least that the book says of a parameter.
# Two variances of DoubleHeston act alike, and a volatility far out in the wings is known to 1e-9 only.
EXACT = {"heston": 1e-9, "bates": 1e-8, "double-heston": 1e-6}


def check_digits(name: str, start: int, draw: int, shared_data) -> None:
    problem = nist(shared_data(f"nls/nist/{name}.json"))
    calibration = so.calibrate(problem.quotes, LastBits(problem.model(start), draw))
    assert calibration.converged, (draw, calibration.termination)
    found = list(calibration.parameters.values())
    # As without the noise (test_nist): 10 of NIST's 11 digits.
    assert found == pytest.approx(numbers(problem.case["certified"]["parameters"]), rel=1e-10), draw


@pytest.mark.parametrize("name", NIST)
def test_a_last_bit_here_and_there_moves_no_certified_digit(name, shared_data):
    # Lanczos1 has no noise: its cost is all rounding.
    for draw in range(8 if name == "Lanczos1" else 2):
        check_digits(name, NEAR, draw, shared_data)


# With these last bits, Misra1c once ended at the eighth digit, where the cost could not tell one point from the next;
# MGH17 crept along a valley until its evaluations were spent, held back by second derivatives learnt long before.
@pytest.mark.parametrize(("name", "draw"), [("Misra1c", 0), ("MGH17", 7)])
def test_a_last_bit_here_and_there_does_not_hold_up_a_search_from_afar(name, draw, shared_data):
    check_digits(name, FAR, draw, shared_data)


@pytest.mark.slow
@pytest.mark.parametrize("start", [FAR, NEAR], ids=["far", "near"])
@pytest.mark.parametrize("name", NIST)
def test_no_last_bit_of_fifty_draws_moves_a_certified_digit(name, start, shared_data):
    for draw in range(50):
        check_digits(name, start, draw, shared_data)


def test_deletions_from_a_book_without_noise_converge_whatever_the_last_bits(shared_data):
    problem = nist(shared_data("nls/nist/Lanczos1.json"))
    deletions = problem.deletions()[-4:]
    for draw, (what, rows, _, refit) in enumerate(deletions):
        retained = problem.quotes.without(problem.quotes.ids[rows])
        calibration = so.calibrate(retained, LastBits(problem.model(), draw))
        assert calibration.converged, what
        assert list(calibration.parameters.values()) == pytest.approx(refit, rel=1e-8), what
    assert len(deletions) == 4


@pytest.mark.parametrize("how", [{}, {"weights": "vega"}, {"residual": "implied_vol"}, {"loss": "huber"}], ids=str)
def test_an_exact_book_of_heston_prices_converges_whatever_the_last_bits(how):
    case = CASES["heston"]
    for draw in range(10):
        calibration = so.calibrate(case.quotes(noise=0.0), LastBits(case.suited, draw), **how)
        assert calibration.converged, (draw, calibration.termination)
        assert list(calibration.parameters.values()) == pytest.approx(case.truth, rel=EXACT["heston"]), draw


@pytest.mark.parametrize("name", ["bates", "double-heston"])
def test_exact_volatilities_converge_to_the_rounding_of_prices_over_their_vega(name):
    case = CASES[name]
    for model in (case.model, LastBits(case.suited, 0)):
        calibration = so.calibrate(case.quotes(noise=0.0), model, residual="implied_vol", starts=1)
        assert calibration.termination is Termination.CONVERGED_TO_ROUNDING
        assert list(calibration.parameters.values()) == pytest.approx(case.truth, rel=EXACT[name])


def test_an_exact_book_of_a_function_of_dates_converges_whatever_the_last_bits():
    day = np.linspace(44_990.0, 45_010.0, 21)  # as spreadsheets count days, so that the last bit of one is 7e-12
    truth = {"scale": 3.7, "top": 45_004.73}

    def price(scale, top, day):
        return 1.0 - scale * (day - top) ** 2

    quotes = so.Quotes.from_columns([f"day {d:g}" for d in day], price(**truth, day=day), day=day)
    for draw in range(5):
        inner = so.custom_model("parabola", parameters={"scale": 1e-3, "top": 44_995.3}, price=price)
        calibration = so.calibrate(quotes, LastBits(inner, draw))
        assert calibration.converged, (draw, calibration.termination)
        assert list(calibration.parameters.values()) == pytest.approx(list(truth.values()), rel=1e-12)


def test_a_certificate_of_an_exact_book_holds_with_other_last_bits(shared_data):
    problem = nist(shared_data("nls/nist/Lanczos1.json"))
    issued, checked = (LastBits(problem.model(), draw) for draw in (3, 4))
    gone = problem.quotes.ids[:1]
    certificate = so.forget(so.calibrate(problem.quotes, issued), ids=gone).certificate
    found = so.verify(certificate, problem.quotes.without(gone), model=checked)
    optimum = next(check for check in found.checks if check.name == "OPTIMUM")
    assert optimum.holds, optimum.found


@dataclass(frozen=True, eq=False)
class Restless(LastBits):
    """Prices that are other ones at every call, as those of a simulation without a seed."""

    calls: Any = None

    def _moved(self, price, theta, contracts):
        return LastBits(self.model, next(self.calls), self.units)._moved(price, theta, contracts)


@pytest.mark.parametrize("name", ["Lanczos1", "heston"])
@pytest.mark.parametrize("share", [1e-12, 1e-9, 1e-6])
def test_noise_beyond_rounding_is_not_called_converged(name, share, shared_data):
    if name == "heston":
        inner, quotes = CASES[name].suited, CASES[name].quotes(noise=0.0)
        share *= 100.0  # prices are about a hundredth of the forward, which the rounding of a pricing kernel goes by
    else:
        problem = nist(shared_data(f"nls/nist/{name}.json"))
        inner, quotes = problem.model(), problem.quotes
    units = int(share * 2.0**52)
    for model in (LastBits(inner, 0, units), Restless(inner, 0, units, itertools.count())):
        calibration = so.calibrate(quotes, model)
        assert not calibration.converged
        assert calibration.starts[0].termination in (Termination.STALLED, Termination.CAP)


def test_sensitivities_that_do_not_belong_to_the_prices_are_not_called_converged():
    t = np.linspace(0.0, 3.0, 13)
    quotes = so.Quotes.from_columns([f"t {x:g}" for x in t], 2.0 * np.exp(-0.7 * t), t=t)
    for sign, converges in ((1.0, True), (-1.0, False)):
        model = so.custom_model(
            "decay",
            parameters={"height": 1.0, "rate": 0.5},
            price=lambda height, rate, t: height * np.exp(-rate * t),
            jacobian=lambda height, rate, t, sign=sign: {
                "height": np.exp(-rate * t),
                "rate": -sign * height * t * np.exp(-rate * t),
            },
        )
        calibration = so.calibrate(quotes, model)
        assert calibration.converged is converges
        assert calibration.termination is not Termination.STALLED or not converges
