"""The compiled search is the search in Python: every point on the way, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.basin import Joining, basin_of
from strikeout.calibration.coordinates import coordinates_of
from strikeout.calibration.loop import BUILTIN, Convergence, descend
from strikeout.calibration.problem import Problem
from strikeout.calibration.starts import starting_points
from strikeout.calibration.termination import Termination
from strikeout.kernels.compiled import native
from strikeout.statistics.objective import objective_of

pytestmark = pytest.mark.skipif(native() is None, reason="the compiled kernel is not installed")


class InPython(so.Heston):
    """Heston's model without a compiled search."""

    searcher = None


def problems_of(quotes, *, bounds=None, fixed=None, expiries="shared"):
    """Return one problem that is followed by compiled code, and one that is not."""
    objective, _ = objective_of(quotes)
    coordinates = coordinates_of(so.Heston().parameters, bounds=bounds, fixed=fixed, enforce_feller=False)
    made = [Problem(objective, model(expiries=expiries), coordinates) for model in (so.Heston, InPython)]
    assert made[0]._search is not None
    assert made[1]._search is None
    return made


def random_book(seed):
    """Books of every kind: easy, noisy, with absurd prices, at an edge of the model, of a few quotes."""
    rng = np.random.default_rng(seed)
    low, high = np.log([0.1, 0.005, 0.05, 1e-6]), np.log([40.0, 0.5, 8.0, 0.5])
    kappa, vbar, sigma, v0 = np.exp(rng.uniform(low, high))
    theta = [kappa, vbar, sigma, rng.uniform(-0.98, 0.9), v0]
    count, noise = int(rng.integers(6, 120)), 10.0 ** rng.uniform(-13.0, 0.3)
    quotes = so.synthetic.random_quotes(
        count, maturities=int(rng.integers(1, 7)), seed=seed, theta=theta, noise=0.0 if seed % 7 == 0 else noise
    )
    if seed % 3:
        return quotes
    prices = quotes.observed.copy()
    prices[rng.choice(count, max(count // 8, 1), replace=False)] *= rng.uniform(0.1, 5.0)
    return quotes.with_observed(prices)


CHOICES = (
    {},
    {"fixed": {"correlation": -0.4}},
    {"fixed": {"mean_reversion": 2.0, "vol_of_vol": 0.5}},
    {"bounds": {"vol_of_vol": (0.3, 0.6), "long_variance": (0.03, 0.05)}},
    {"bounds": {"correlation": (-0.2, 0.2)}, "fixed": {"initial_variance": 0.05}},
    {"expiries": "scattered"},
)


def follow_both(compiled, python, start, known):
    box = compiled.coordinates.box
    watch = None if known is None else Joining(basin_of(known), box, 0, None)
    found, twin = compiled.descend(start, watch), python.descend(start, watch)
    # repr: not-a-number is equal to itself; the last bit of a double shows
    assert repr(found) == repr(twin)
    return found


@pytest.mark.parametrize("choice", range(len(CHOICES)))
def test_every_point_on_the_way_is_that_of_the_definition_to_the_last_bit(choice):
    ended = set()
    for seed in range(40):
        compiled, python = problems_of(random_book(seed + 1000 * choice), **CHOICES[choice])
        starts = starting_points(compiled.model, compiled.coordinates, 4)
        known = None
        for start in starts:
            end = follow_both(compiled, python, start, known)
            ended.add(end.termination)
            known = end if end.termination.converged else known
    assert {Termination.CONVERGED, Termination.JOINED} <= ended


@pytest.mark.parametrize("cap", [1, 2, 5, 9])
def test_a_search_that_is_cut_short_gives_what_python_gives(cap):
    compiled, python = problems_of(random_book(4))
    c, start = compiled.coordinates, starting_points(compiled.model, compiled.coordinates, 1)[0]
    convergence = Convergence(len(compiled.objective) - 5, compiled.objective.rounding)
    limits = (convergence.freedom, convergence.rounding, convergence.tolerance, cap)
    ended, point, *_, evaluations, _ = compiled._search(start, c.free, c.box.given, limits, None)
    twin = descend(python.evaluate, start, box=c.box, convergence=convergence, limits=replace(BUILTIN, cap=cap))
    assert (ended, point, evaluations) == (twin.termination.name, twin.point, twin.evaluations) == ("CAP", point, cap)


def test_one_that_reports_its_progress_is_followed_in_python():
    compiled, python = problems_of(random_book(5))
    seen = []
    start = starting_points(compiled.model, compiled.coordinates, 1)[0]
    watch = Joining(None, compiled.coordinates.box, 2, lambda number, visit: seen.append((number, visit)))
    end = compiled.descend(start, watch)
    assert seen == [(2, visit) for visit in end.visits]
    assert repr(end) == repr(python.descend(start, None))


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("theta", [1.0]),
        ("free", (0, 5)),
        ("free", (0, -1)),
        ("walls", ([0.0], [1.0], (), (), (3.0, 0.7, 0.02, 1000.0))),
        ("walls", ([0.1] * 2, [9.0] * 2, ((0, 7),), (), (3.0, 0.7, 0.02, 1000.0))),
        ("walls", ([0.1] * 2, [9.0] * 2, (), (2,), (3.0, 0.7, 0.02, 1000.0))),
        ("known", ([1.0], [1.0], 1.0, False, [1.0], [1.0], [1.0], [1.0])),
    ],
)
def test_places_and_lengths_that_do_not_fit_are_refused(what, value):
    compiled, _ = problems_of(random_book(5))
    layout = compiled.objective.contracts.slices
    ones = np.ones(len(compiled.objective))
    search = native().HestonSums(*layout.parts, ones, ones, 1).descend
    given = {
        "theta": [2.0, 0.06, 0.3, -0.6, 0.06],
        "kept": None,
        "free": (0, 1),
        "walls": ([0.1, 1e-3], [9.0, 1.0], (), (), (3.0, 0.7, 0.02, 1000.0)),
        "limits": (10.0, 1e-12, 1e-8, 20),
        "known": None,
    }
    assert search(**given)[0]
    with pytest.raises(ValueError, match=r"needed|place|five|every"):
        search(**(given | {what: value}))
