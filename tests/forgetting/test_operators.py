"""The operators alone: three roads to one exact state, and what floating point makes of the same subtraction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnknownIdError, UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import recompute, recompute_shards, refine, restep
from strikeout.kernels import exact
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.shards import Shards, one_shard, shard, shard_states
from strikeout.statistics.system import FootprintBlocks
from tests.raising import raises

SMALL = so.calibrate(so.paper.quotes("small", seed=7), so.Heston())
LARGE = so.calibrate(so.paper.quotes("large", seed=7), so.Heston())


def some(calibration: so.results.Calibration, share: float, seed: int = 0) -> np.ndarray:
    ids = calibration.quotes.ids
    return np.random.default_rng(seed).choice(ids, max(1, round(share * len(ids))), replace=False)


def vector(parameters: dict[str, float]) -> np.ndarray:
    return np.array(list(parameters.values()))


def apart(parameters: dict[str, float], optimum: so.results.Calibration) -> float:
    """The largest difference in standard errors of the optimum."""
    return float(np.max(np.abs(vector(parameters) - vector(optimum.parameters)) / vector(optimum.standard_errors)))


@pytest.mark.parametrize("calibration", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("share", [0.01, 0.02, 0.05, 0.10, 0.25])
@pytest.mark.parametrize("by", ["date", "expiry", "product"])
def test_fast_sharded_and_rebuilt_steps_are_equal_bit_for_bit(calibration, share, by):
    """The paper's three operators (its figures and tables compare them at these shares)."""
    ids, footprints = some(calibration, share), calibration.footprints.whole
    fast = downdate(FootprintBlocks.of(footprints), ids)
    sharded = recompute_shards(calibration, calibration.quotes.places(ids), shards=shard(calibration.quotes, by)).step
    rebuilt = restep(calibration.quotes.without(ids), calibration.model, footprints.schema)
    assert fast.equations.digest() == sharded.equations.digest() == rebuilt.equations.digest()
    assert fast.change.tobytes() == sharded.change.tobytes() == rebuilt.change.tobytes()
    assert fast.parameters == sharded.parameters == rebuilt.parameters
    assert fast.equations.count == len(calibration.quotes) - len(ids)


def test_a_no_op_a_wrong_sign_and_a_wrong_set_are_not_equal():
    """Negative controls: what the equality above must not be blind to."""
    ids, footprints = some(SMALL, 0.02), SMALL.footprints.whole
    truth = restep(SMALL.quotes.without(ids), SMALL.model, footprints.schema).equations
    total = footprints.total()
    assert total != truth
    assert total + footprints.only(ids).total() != truth
    assert downdate(FootprintBlocks.of(footprints), some(SMALL, 0.02, seed=1)).equations != truth
    assert downdate(FootprintBlocks.of(footprints), ids[:-1]).equations != truth
    assert downdate(FootprintBlocks.of(footprints), ids).equations == truth


def test_shards_are_left_as_if_they_had_never_held_the_quotes():
    ids, shards = some(SMALL, 0.05), shard(SMALL.quotes, "date")
    after = recompute_shards(SMALL, SMALL.quotes.places(ids), shards=shards).states
    retained = SMALL.footprints.whole.without(ids)
    fresh = shard_states(retained, shard(SMALL.quotes.without(ids), "date"))
    assert {name: state.digest() for name, state in after.items() if state.count} == {
        name: state.digest() for name, state in fresh.items()
    }


def test_a_whole_shard_can_go():
    ids = SMALL.quotes.ids[SMALL.quotes.labels["day"] == 3]
    sharded = recompute_shards(SMALL, SMALL.quotes.places(ids), shards=shard(SMALL.quotes, "day"))
    assert sharded.states["3"].count == 0
    assert sharded.step.equations == downdate(FootprintBlocks.of(SMALL.footprints.whole), ids).equations


def test_quotes_without_footprints_are_healed_through_their_shard():
    """The footprints of one day are lost: a downdate refuses its quotes, the shard's state and raw quotes suffice."""
    quotes, footprints, shards = SMALL.quotes, SMALL.footprints.whole, shard(SMALL.quotes, "day")
    states = shard_states(footprints, shards)
    day = shards.members("5")
    kept = footprints.without(day)
    with raises(UnknownIdError, ids=["small-005-30-90", "small-005-30-100"]):
        downdate(FootprintBlocks.of(kept), day[:2])
    touched, left = shards.touched(day[:2])
    rebuilt = recompute(states, touched, quotes[left], model=SMALL.model)
    assert rebuilt.step.equations == footprints.without(day[:2]).total()


def test_weights_of_your_own_stay_with_their_quotes():
    quotes = so.paper.quotes("small", seed=7)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(quotes))
    calibration = so.calibrate(quotes, so.Heston(), weights=weights)
    ids, footprints = some(calibration, 0.1), calibration.footprints.whole
    fast = downdate(FootprintBlocks.of(footprints), ids)
    retained = quotes.without(ids)
    rebuilt = restep(retained, calibration.model, footprints.schema, weights=calibration.settings.weights)
    sharded = recompute_shards(calibration, quotes.places(ids)).step
    assert fast.equations == rebuilt.equations == sharded.equations
    with pytest.raises(UsageError, match="give them again"):
        restep(retained, calibration.model, footprints.schema)


def test_a_model_that_is_not_the_schemas_is_refused():
    with raises(UsageError, differs=["model"]):
        restep(SMALL.quotes, so.Heston(expiries="scattered"), SMALL.footprints.whole.schema)


def test_an_unknown_shard_is_refused_by_name():
    states = shard_states(SMALL.footprints.whole, shard(SMALL.quotes, "day"))
    with raises(UsageError, shards=["90"]):
        recompute(
            states, Shards(SMALL.quotes.ids[:3], np.zeros(3, np.intp), ("90",)), SMALL.quotes[:3], model=SMALL.model
        )


def test_fixed_parameters_do_not_move():
    fixed = {"mean_reversion": 2.0, "correlation": -0.6}
    calibration = so.calibrate(SMALL.quotes, so.Heston(), fixed=fixed)
    ids, footprints = some(calibration, 0.05), calibration.footprints.whole
    step = downdate(FootprintBlocks.of(footprints), ids, free=(1, 2, 4))
    assert {name: step.parameters[name] for name in fixed} == fixed
    optimum = so.calibrate(SMALL.quotes.without(ids), so.Heston(), fixed=fixed)
    free = ["long_variance", "vol_of_vol", "initial_variance"]
    errors = [(step.parameters[n] - optimum.parameters[n]) / optimum.standard_errors[n] for n in free]
    assert np.max(np.abs(errors)) < 0.01  # one step of under a standard error errs by its square, in relative terms


@pytest.mark.parametrize("ridge", [None, 1e-3, "paper"])
def test_a_ridge_is_the_same_whether_all_or_listed_parameters_are_free(ridge):
    footprints = SMALL.footprints.whole
    one = downdate(FootprintBlocks.of(footprints), some(SMALL, 0.1), ridge=ridge)
    other = downdate(FootprintBlocks.of(footprints), some(SMALL, 0.1), ridge=ridge, free=(0, 1, 2, 3, 4))
    assert one.change.tobytes() == other.change.tobytes()


def test_the_papers_ridge_biases_the_step_and_a_scaled_one_is_asked_for_by_number():
    """1e-6 on every diagonal is not small for a parameter of small curvature: it moves the step by 1e-5 and more."""
    footprints, ids = SMALL.footprints.whole, some(SMALL, 0.1)
    plain, paper, scaled = (
        downdate(FootprintBlocks.of(footprints), ids, ridge=ridge).change for ridge in (None, "paper", 1e-9)
    )
    bias = np.abs(paper / plain - 1.0).max()
    assert 1e-6 < bias < 1e-2
    assert np.abs(scaled / plain - 1.0).max() < 1e-5


def test_a_downdate_of_a_huge_quote_leaves_nothing_of_it():
    quotes = SMALL.quotes
    observed = quotes.observed.copy()
    observed[17] = 1e5
    schema = SMALL.footprints.whole.schema
    spoilt = so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=observed)
    rows = SMALL.footprints.whole.rows.copy()
    rows[17] = exact.quantise(np.r_[np.ldexp(rows[17, :5].astype(float), -schema.grid[:5]), 1e5][None, :], schema.grid)[
        0
    ][0]
    footprints = Footprints(schema, spoilt.ids, rows)
    truth = SMALL.footprints.whole.without([quotes.ids[17]]).total()
    left = downdate(FootprintBlocks.of(footprints), [quotes.ids[17]])
    assert left.equations == truth


def test_refining_converges_to_the_refit_and_says_what_is_left():
    ids = LARGE.quotes.ids[LARGE.quotes.labels["day"] < 60]
    optimum = so.calibrate(LARGE.quotes.without(ids), so.Heston())
    found = [refine(LARGE, ids, passes=passes) for passes in range(3)]
    errors = [apart(one.parameters, optimum) for one in found]
    assert errors[0] > 100 * errors[1]
    assert errors[2] < 1e-6
    # The step after a pass is the error left by it, in the metric of the curvature: at least the largest coordinate.
    assert errors[0] <= found[0].error * 1.2
    assert found[2].errors[:2] == (found[0].error, found[1].error)


def test_refining_goes_through_a_retained_book_that_still_has_fixed_parameters():
    fixed = so.calibrate(SMALL.quotes, so.Heston(), fixed={"mean_reversion": 2.0})
    ids = some(fixed, 0.1)
    found = refine(fixed, ids, passes=3)
    again = so.calibrate(SMALL.quotes.without(ids), so.Heston(), fixed={"mean_reversion": 2.0})
    assert found.parameters["mean_reversion"] == 2.0
    assert found.parameters == pytest.approx(again.parameters, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: refine(SMALL, some(SMALL, 0.1), passes=-1), "passes=-1"),
        (lambda: refine(replace(SMALL, loss="huber"), some(SMALL, 0.1)), "squared loss"),
    ],
)
def test_refine_says_what_it_does_not_take(call, says):
    with pytest.raises(UsageError, match=says):
        call()


def test_nothing_left_behind_is_zero():
    footprints = SMALL.footprints.whole
    left = downdate(FootprintBlocks.of(footprints), footprints.ids)
    assert left.equations == NormalEquations.zero(footprints.schema)
    assert not left.change.any() or np.isnan(left.change).any()


def test_a_book_as_one_shard_has_all_its_quotes():
    shards = one_shard(SMALL.quotes)
    assert shards.sizes == {"all": 540}
    assert shard_states(SMALL.footprints.whole, shards)["all"] == SMALL.footprints.whole.total()


CUTS = ["expiry", "date:10", "month", "product:30,60", "source", "expiry_days", ["date:30", "product:60,90"]]


@pytest.mark.parametrize("shards", CUTS)
def test_however_the_shards_are_cut_the_public_call_gives_the_bits_of_a_downdate(shards):
    ids = some(SMALL, 0.03)
    found = [
        so.forget(SMALL, ids=ids, operator="recompute", shards=given) for given in (shards, shard(SMALL.quotes, shards))
    ]
    assert found[0].parameters == found[1].parameters == so.forget(SMALL, ids=ids, operator="downdate").parameters


def test_only_the_touched_shards_are_priced_again(monkeypatch):
    priced = []
    whole_of = so.Heston.linearize
    SMALL.footprints.whole.total()
    monkeypatch.setattr(
        so.Heston, "linearize", lambda self, theta, c: priced.append(len(c)) or whole_of(self, theta, c)
    )
    recompute_shards(SMALL, np.arange(2), shards="day:10").step.change  # noqa: B018
    assert priced == [10 * 6 - 2]


@pytest.mark.parametrize("operator", ["downdate", "restep", None])
def test_shards_are_for_recompute_alone(operator):
    with pytest.raises(UsageError):
        so.forget(SMALL, ids=SMALL.quotes.ids[:2], operator=operator, shards="month")


def test_shards_of_other_quotes_are_refused():
    with pytest.raises(UsageError):
        so.forget(SMALL, ids=SMALL.quotes.ids[:2], operator="recompute", shards=shard(SMALL.quotes[1:], "date"))


def test_forget_heals_quotes_that_are_too_large_for_a_footprint_through_their_shard():
    """A price of 1e30 has no footprint: a downdate refuses, recompute rebuilds its shard without it."""
    quotes = so.paper.quotes("small", seed=7)
    wrong = quotes.with_observed(np.where(np.arange(len(quotes)) == 100, 1e30, quotes.observed))
    start = so.Heston().parameters.named(so.Heston().parameters.starts[0])
    calibration = so.calibrate(wrong, so.Heston(), starts=[start], loss="squared")
    ids = wrong.ids[98:103]
    with pytest.raises(RefusedError):
        calibration.footprints.whole.total()
    found = recompute_shards(calibration, calibration.quotes.places(ids), shards="date:10")
    kept = wrong.without(ids)
    rebuilt = restep(kept, calibration.model, found.step.equations.schema)
    assert found.step.equations == rebuilt.equations
    assert NormalEquations.total(found.states.values()) == rebuilt.equations
    with pytest.raises(RefusedError):
        recompute_shards(calibration, np.arange(5), shards="date:10")
