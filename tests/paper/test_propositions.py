"""The paper's propositions under its own numbers: numbers, not pictures.

1 shards, 2 relinearization, 3 stability, 4 exactness, 5 linearized stability with lambda, 6 accuracy after one
relinearization, 7 complexity.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.paper import heston as paper_scheme
from strikeout.paper.experiments import complexity
from strikeout.paper.experiments.complexity import growths
from strikeout.paper.experiments.conditions import conditions, pulls, relinearizing, remainders
from strikeout.paper.experiments.equivalence import CUTS, exactness
from strikeout.paper.experiments.measuring import slope_of
from strikeout.statistics.system import FootprintBlocks, OneStep


@pytest.fixture(scope="module")
def large():
    return so.calibrate(so.paper.quotes("large"), so.Heston())


@pytest.fixture(scope="module")
def lines():
    return relinearizing(so.paper.quotes("small"), so.Heston(), noises=(0.0, 1e-3, 1e-1), points=9, seed=42)


@pytest.fixture(scope="module")
def held(large):
    return list(conditions(large, counts=(1, 27, 1890), runs=20, seed=42))


def holds(found, bound, count, *, scaled):
    return next(one.holds for one in found if (one.bound, one.forgotten, one.scaled) == (bound, count, scaled))


def test_proposition_1_recomputed_shards_are_the_rebuild_bit_for_bit_however_the_book_is_cut(large):
    found = list(exactness(large, fractions=(0.01, 0.25), seed=42))
    assert {one.cut for one in found} == set(CUTS)
    assert all(one.is_equal for one in found)
    assert all(1 <= one.touched <= one.shards for one in found)


def test_proposition_4_in_doubles_subtraction_and_rebuild_differ_at_rounding(large):
    """eps * condition number = 2e-16 * 3.5e7 = 8e-9 of the step at the very most; sums of doubles do far better."""
    found = list(exactness(large, fractions=(0.01, 0.05, 0.25), seed=42))
    assert 0.0 < max(one.in_doubles for one in found) < 1e-10


def test_proposition_2_without_residuals_the_second_step_is_the_square_of_the_first(lines):
    """The interval is of the fit's scatter; third-order terms bend a line up to 5 % long by about a hundredth."""
    assert lines[0].slope.value == pytest.approx(2.0, abs=0.03)
    assert lines[0].slope.high - lines[0].slope.low < 0.05


def test_proposition_2_with_large_residuals_the_second_step_is_only_proportional(lines):
    assert lines[2].slope.value == pytest.approx(1.0, abs=0.1)


def test_proposition_2_noise_adds_to_the_second_step_where_the_first_is_short(lines):
    quiet, noisy = lines[0].second, lines[1].second
    assert noisy[0] > 2.0 * quiet[0]
    assert noisy[-1] == pytest.approx(quiet[-1], rel=0.05)


def test_proposition_3_no_bound_whose_condition_holds_is_ever_broken(held):
    assert min(one.respected for one in held) == 1.0


@pytest.mark.parametrize("ridge", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("count", [1, 27, 270])
def test_proposition_5_the_bound_with_lambda_holds(ridge, count):
    quotes = so.paper.quotes("small")
    model, start = so.Heston(), so.Heston().parameters.starts[0]
    cache = so.paper.Cache(quotes, model=model, theta_ref=start, ridge=ridge)
    for seed in range(5):
        F = np.random.default_rng(seed).choice(len(quotes), count, replace=False)
        whole, left = so.paper.fast(cache, []), so.paper.fast(cache, F)
        inverse = np.linalg.norm(np.linalg.inv(left.H + ridge * np.eye(5)), 2)
        moved = np.linalg.norm(whole.theta - cache.theta_ref)
        bound = inverse * (np.linalg.norm(left.G - whole.G) + np.linalg.norm(left.H - whole.H, 2) * moved)
        # The bound's proof needs (H' + lambda I) to be solved to rounding: condition number times 1e-16.
        assert 0.0 < np.linalg.norm(left.theta - whole.theta) <= bound * (1 + 1e-6)


def test_proposition_6_after_one_relinearization_the_error_is_of_higher_order_than_promised_without_noise(lines):
    """The paper promises C1 d^2 + C2 eps d. Without noise the second step squares the square that the first one left.

    With noise the error is a share of the first step's own: between first and second order.
    """
    quiet, paper, loud = (line.accuracy.value for line in lines)
    assert quiet == pytest.approx(4.0, abs=0.1)
    assert 2.0 < paper < 3.0
    assert 1.0 < loud < 2.0


def test_the_remark_on_positive_definiteness_is_violated_by_nearly_every_single_quote(held):
    """The paper calls its condition rarely active until 70 % are removed."""
    assert holds(held, "Weyl", 1, scaled=False) <= 0.1
    assert holds(held, "Weyl", 27, scaled=False) == 0.0


def test_the_joint_neumann_condition_holds_up_to_seventy_percent_once_parameters_are_scaled(held):
    assert holds(held, "Neumann, ||H^-1 dH||", 1890, scaled=True) == 1.0
    assert holds(held, "Neumann, ||H^-1|| ||dH||", 27, scaled=True) == 0.0


def test_the_leverage_is_about_the_share_removed(held):
    """A random share of a homogeneous book takes that share of the curvature, and a little more in the worst way."""
    found = {one.forgotten: one.leverage for one in held}
    assert 0.01 < found[27] < 0.04
    assert 0.70 < found[1890] < 0.78


def test_hubers_loss_holds_a_wrong_quote_and_squared_loss_does_not(large):
    found = pulls(large, wrong_by=(0.01, 1.0, 100.0))
    assert len({one.huber for one in found}) == 1
    assert all(0.0 < one.huber <= one.bound for one in found)
    # Linear in the error once that outweighs the quote's own residual, a twentieth of the first error here.
    assert found[2].squared / found[1].squared == pytest.approx(100.0, rel=1e-2)


@pytest.mark.parametrize(("quotes", "nodes"), [(1, 100), (1, 400), (3, 100), (12, 100)])
def test_proposition_7_the_papers_loop_evaluates_two_transforms_eleven_times_per_quote_and_node(
    quotes, nodes, monkeypatch
):
    seen = []
    phi = paper_scheme.phi
    monkeypatch.setattr(paper_scheme, "phi", lambda theta, z, T: (seen.append(z.size), phi(theta, z, T))[1])
    complexity.loop(so.paper.quotes("small"), quotes, nodes)()
    assert sum(seen) == 2 * 11 * quotes * nodes


def test_proposition_7_a_downdate_reads_the_rows_of_the_forgotten_quotes_and_no_others(large):
    """So its cost is linear in them and does not depend on the book: every other row may as well be another number."""
    footprints, total = large.footprints.whole, large.footprints.whole.total()
    ids = footprints.ids[5::100]
    others = np.isin(footprints.ids, ids, invert=True)
    assert (len(ids), np.count_nonzero(others)) == (27, 2673)
    garbled = footprints.rows.copy()
    garbled[others] = garbled[others][::-1] + 1
    wanted = downdate(FootprintBlocks.of(footprints), ids)
    found = OneStep(total.less(replace(footprints, rows=garbled), footprints.places(ids)))
    assert found.change.tobytes() == wanted.change.tobytes()
    assert found.equations.digest() == wanted.equations.digest()
    for place in np.flatnonzero(~others):
        garbled = footprints.rows.copy()
        garbled[place] += 1
        other = total.less(replace(footprints, rows=garbled), footprints.places(ids))
        assert other.digest() != wanted.equations.digest()


def test_proposition_7_every_growth_has_as_many_times_as_sizes_and_says_what_to_expect():
    found = growths(sizes=(250, 500, 1_000), repeats=1, seed=42)
    assert [(one.what, one.against, one.expected) for one in found] == [
        ("the paper's loop", "quotes", 1.0),
        ("the paper's loop", "nodes", 1.0),
        ("our retrain", "quotes", 1.0),
        ("downdate of 27 quotes", "quotes in the book", 0.0),
        ("sharded recompute", "quotes of the touched shards", 1.0),
        ("downdate", "forgotten quotes", 1.0),
        ("the paper's subtraction", "parameters", 2.0),
        ("the solution", "parameters", 3.0),
    ]
    assert all(one.seconds.shape == one.sizes.shape for one in found)


def test_a_slope_is_that_of_a_power_law_and_its_interval_holds_it():
    x = np.geomspace(1.0, 100.0, 12)
    exact = slope_of(x, 3.0 * x**1.5)
    assert exact.value == pytest.approx(1.5, abs=1e-12)
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        found = slope_of(x, x**1.5 * np.exp(0.1 * rng.standard_normal(len(x))))
        inside += found.low <= 1.5 <= found.high
    assert 0.92 <= inside / 400 <= 0.98  # 95 % give or take three standard deviations of 400 draws


def test_a_slope_through_two_points_or_zeros_is_refused():
    with pytest.raises(UsageError, match="three are needed"):
        slope_of([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(UsageError, match="above zero"):
        slope_of([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])


def test_propositions_3_and_5_every_bound_is_there_and_respected(held):
    names = {one.bound for one in held}
    assert {"stability", "combined (remark)", "stability with lambda"} < names
    assert all(one.respected == 1.0 for one in held)
    # The remark's condition is that of Neumann's joint norm, so it holds as often.
    for one in held:
        if one.bound == "combined (remark)":
            joint = next(
                other
                for other in held
                if (other.bound, other.scaled, other.forgotten) == ("Neumann, ||H^-1 dH||", one.scaled, one.forgotten)
            )
            assert one.holds == joint.holds


def test_small_remainders_the_linearization_errs_and_rounding_does_not():
    """The paper names both mechanisms for a larger RMSE; only the first is seen."""
    small = so.calibrate(so.paper.quotes("small"), so.Heston())
    whole, few = remainders(small, counts=(540, 7), runs=20, seed=42)
    assert whole.step == pytest.approx(whole.refit, rel=1e-9)
    assert few.worst > 3.0 * few.refit
    assert few.step > few.linear >= 0.5 * few.refit
    assert max(whole.rounding, few.rounding) < 1e-9 * few.refit
    assert few.condition < 100.0 * whole.condition
