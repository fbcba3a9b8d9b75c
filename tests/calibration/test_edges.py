"""A variance may begin at zero: a search that ends there has found its optimum, and says so with what it rests on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.issue import Answer, issue
from strikeout.calibration.coordinates import coordinates_of
from strikeout.calibration.identifiability import precision_of
from strikeout.calibration.loop import EDGE, FACTOR, Box, Descent, Evaluation
from strikeout.calibration.termination import Termination
from strikeout.statistics.linearization import Linearization

HESTON = so.Heston()
ZERO = 1e-8
TRUTH = {
    "mean_reversion": 6.0,
    "long_variance": 0.06,
    "vol_of_vol": 1.2,
    "correlation": -0.6,
    "initial_variance": ZERO,
}
QUOTES = so.synthetic.random_quotes(400, maturities=6, seed=0, theta=TRUTH, noise=0.01)
FOUND = so.calibrate(QUOTES, HESTON)


def test_a_variance_that_begins_at_zero_is_converged_on_from_every_start():
    assert FOUND.termination is Termination.CONVERGED_ON_EDGE
    assert FOUND.converged
    assert FOUND.on_bound == {"initial_variance": ZERO}
    assert FOUND.agreement == 4
    assert any("initial_variance is on its bound 1e-08" in sentence for sentence in FOUND.warnings)
    for name in ("mean_reversion", "long_variance", "vol_of_vol", "correlation"):
        assert abs(FOUND.parameters[name] - TRUTH[name]) < 4.0 * FOUND.standard_errors[name]


@pytest.mark.parametrize("seed", [1, 3, 5, 7])
def test_a_variance_just_above_zero_that_could_be_zero_is_as_good_an_answer_as_zero(seed):
    """The same truth, other noise: the optimum is not at the edge but within its standard error of it."""
    quotes = so.synthetic.random_quotes(400, maturities=6, seed=seed, theta=TRUTH, noise=0.01)
    found = so.calibrate(quotes, HESTON, errors="independent")
    value, error = found.parameters["initial_variance"], found.standard_errors["initial_variance"]
    assert ZERO < value < error < 0.01 * found.parameters["long_variance"]
    assert found.termination is Termination.CONVERGED
    assert found.unidentified == ()
    assert found.identifiability["initial_variance"] == f"zero within its error: below {value + 2.0 * error:.2g}"
    done = so.forget(found, ids=quotes.ids[:20])
    verdict = so.verify(done.certificate, quotes.without(quotes.ids[:20]))
    assert verdict.holds, verdict.summary()
    assert "OPTIMUM" in done.certificate.claims


@pytest.mark.parametrize(("error", "free"), [(0.05, ()), (0.07, (1,))])
def test_an_initial_variance_near_zero_is_free_where_it_could_as_well_be_the_long_variance(error, free):
    space = so.ParameterSpace(
        ("long_variance", "initial_variance"), np.full(2, ZERO), np.ones(2), np.full((1, 2), 0.06),
        edges=("initial_variance",),
    )  # fmt: skip
    coordinates = coordinates_of(space, bounds=None, fixed=None, enforce_feller=False)
    system = Evaluation([[1e4, 0.0], [0.0, error**-2]], [0.0, -1.0], 1.0, Linearization((1.0,) * 6, 10))
    descent = Descent([0.06, 1e-3], system, Termination.CONVERGED, (), 1, held=())
    assert precision_of(space, coordinates, descent, noise_variance=1.0).free == free


def test_no_larger_initial_variance_is_better():
    for value in (1e-7, 1e-5, 1e-3, 0.02):
        assert so.calibrate(QUOTES, HESTON, fixed={"initial_variance": value}).cost > FOUND.cost


def test_zero_itself_would_change_no_price_by_more_than_a_thousandth_of_its_noise():
    """What the edge leaves out: prices are linear in a variance so small, and 1e-8 of it is not to be seen."""
    _, jacobian = HESTON.linearize(FOUND.parameters, QUOTES.contracts)
    assert np.abs(ZERO * jacobian[:, 4]).max() < 1e-3 * FOUND.rmse


def test_a_bound_that_was_asked_for_is_no_edge():
    asked = so.calibrate(QUOTES, HESTON, bounds={"initial_variance": (1e-3, 3.0)})
    assert asked.termination is Termination.CONVERGED_ON_BOUND
    assert asked.on_bound == {"initial_variance": 1e-3}


def test_another_bound_of_the_models_own_is_no_answer_beside_an_edge():
    steep = so.synthetic.random_quotes(400, maturities=6, seed=0, theta={**TRUTH, "correlation": -0.99999}, noise=0.01)
    found = so.calibrate(steep, HESTON)
    assert found.on_bound == {"correlation": -0.999, "initial_variance": ZERO}
    assert found.termination is Termination.AT_BOUND


def test_the_answer_at_an_edge_can_be_forgotten_from_certified_and_verified():
    done = so.forget(FOUND, ids=QUOTES.ids[:20])
    kept = QUOTES.without(QUOTES.ids[:20])
    assert done.calibration.termination is Termination.CONVERGED_ON_EDGE
    assert done.parameters == so.calibrate(kept, HESTON).parameters
    assert so.verify(done.certificate, kept).holds


def test_a_certificate_that_calls_another_parameter_an_edge_is_refuted():
    at = so.calibrate(QUOTES, HESTON, fixed={"vol_of_vol": 1.0})
    made = issue(FOUND, Answer(FOUND.parameters, "recalibrate"), after=FOUND)
    fake = replace(
        made,
        parameters={name: float(value).hex() for name, value in at.parameters.items()},
        objective={**made.objective, "on_bound": {"initial_variance": ZERO.hex(), "vol_of_vol": (1.0).hex()}},
    )
    found = so.verify(fake, QUOTES)
    assert not found.holds
    assert any("vol_of_vol" in reason for reason in found.reasons)


def test_a_parameter_at_an_edge_that_the_others_can_imitate_is_not_determined():
    """Two columns of the same curvature: held at zero, the second still stands for the first."""
    space = so.ParameterSpace(("a", "b"), np.array([1e-3, 1e-8]), np.ones(2), np.full((1, 2), 0.5), edges=("b",))
    coordinates = coordinates_of(space, bounds=None, fixed=None, enforce_feller=False)

    def precision(together: float) -> tuple[int, ...]:
        H = [[1.0, together], [together, 1.0]]
        system = Evaluation(H, [0.0, -1.0], 1.0, Linearization((1.0, together, 0.0, 1.0, -1.0, 1.0), 10))
        descent = Descent([0.5, 1e-8], system, Termination.CONVERGED, (), 1, held=(1,))
        return precision_of(space, coordinates, descent, noise_variance=1e-4).free

    assert precision(0.9) == ()
    assert precision(1.0 - 1e-9) == (0, 1)


@pytest.mark.parametrize("step", [Box.step, Box.step_twin])
def test_a_step_cut_short_next_to_an_edge_goes_there_and_no_other_does(step):
    box = Box((ZERO, ZERO), (3.0, 3.0), edges=(0,))
    near = 0.9 * FACTOR * EDGE * ZERO
    to, promised = step(box, [near, near], [[1.0, 0.0], [0.0, 1.0]], [-1.0, -1.0], 0.0)
    assert to == [ZERO, near / FACTOR]
    assert promised > 0.0
    # Farther away a factor of three is all, and a step that ends by itself is left alone.
    assert step(box, [0.1, 0.1], [[1.0, 0.0], [0.0, 1.0]], [-1.0, -1.0], 0.0)[0] == pytest.approx([0.1 / 3] * 2)
    assert step(box, [near, near], [[1.0, 0.0], [0.0, 1.0]], [-0.1 * near] * 2, 0.0)[0] == pytest.approx(
        [0.9 * near] * 2
    )


def test_variance_too_fast_for_the_first_expiry_is_said_with_its_half_life():
    fast = {**TRUTH, "mean_reversion": 400.0, "vol_of_vol": 25.0, "initial_variance": 0.05}
    quotes = so.synthetic.random_quotes(400, maturities=6, seed=0, theta=fast, noise=1e-4)
    found = so.calibrate(quotes, HESTON)
    said = [sentence for sentence in found.warnings if "before the first expiry" in sentence]
    assert len(said) == 1
    assert "15 hours" in said[0]  # ln 2 / 400 years
    assert f"{365 * quotes.contracts.expiry.min():.3g} days" in said[0]
    assert not any("before the first expiry" in sentence for sentence in FOUND.warnings)
