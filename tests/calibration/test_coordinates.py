"""Coordinates: fixed parameters, bounds, and Feller's condition as a bound."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.coordinates import Coordinates, coordinates_of, feller_ratio
from strikeout.errors import ParameterError
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from tests.calibration.smile_model import Smile
from tests.raising import raises

SPACE = so.Heston().parameters
THETA = [2.0, 0.06, 0.3, -0.6, 0.05]


def coordinates(**options) -> Coordinates:
    return coordinates_of(SPACE, **{"bounds": None, "fixed": None, "enforce_feller": False, **options})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fixed": {"mean_reversion": 2.0}},
        {"enforce_feller": True},
        {"enforce_feller": True, "fixed": {"vol_of_vol": 0.3}},
        {"enforce_feller": True, "fixed": {"correlation": -0.6}},
    ],
)
def test_parameters_go_to_coordinates_and_back(options):
    here = coordinates(**options)
    assert here.theta(here.point(THETA)) == pytest.approx(THETA, rel=1e-14)


@pytest.mark.parametrize(
    "options",
    [
        {"enforce_feller": True},
        {"enforce_feller": True, "fixed": {"vol_of_vol": 0.3}},
        {"fixed": {"correlation": -0.6}},
    ],
)
def test_the_score_in_the_coordinates_is_the_gradient_there(options):
    here = coordinates(**options)
    objective, _ = objective_of(so.paper.quotes("small", seed=3))
    model, u = so.Heston(), here.point(THETA)
    system = here.system(linearize(objective, model, here.theta(u)), u, here.theta(u))
    for i in range(len(u)):
        h = 1e-6 * u[i]
        up, down = ([x + sign * h * (i == j) for j, x in enumerate(u)] for sign in (1.0, -1.0))
        rise = linearize(objective, model, here.theta(up)).cost - linearize(objective, model, here.theta(down)).cost
        # A central difference of relative step 1e-6 of a cost of order one: 1e-16 / 1e-6, on a slope of order one.
        assert system.score[i] == pytest.approx(-rise / (4 * h), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("fixed", [{}, {"vol_of_vol": 0.5}, {"mean_reversion": 1.0}, {"long_variance": 0.02}])
def test_no_point_of_the_enforced_box_breaks_fellers_condition(fixed):
    here = coordinates(enforce_feller=True, fixed=fixed)
    rng = np.random.default_rng(0)
    drawn = [[rng.uniform(lo, hi) for lo, hi in zip(here.box.lower, here.box.upper, strict=True)] for _ in range(300)]
    inside = [theta for theta in map(here.theta, drawn) if theta[0] == theta[0]]
    assert len(inside) >= 296  # a few corners of the box are no point of the model
    for theta in inside:
        ratio = feller_ratio(dict(zip(here.names, theta, strict=True)))
        assert ratio is not None
        assert ratio >= 1.0 - 1e-14


def test_a_lone_free_parameter_takes_the_condition_as_its_bound():
    here = coordinates(enforce_feller=True, fixed={"mean_reversion": 2.0, "long_variance": 0.04})
    assert here.share is None
    assert here.upper[2] == pytest.approx(0.4)
    low = coordinates(enforce_feller=True, fixed={"mean_reversion": 2.0, "vol_of_vol": 0.4})
    assert low.lower[1] == pytest.approx(0.04)


def test_a_parameter_replaced_beyond_its_own_bounds_is_no_point():
    here = coordinates(enforce_feller=True, bounds={"vol_of_vol": (0.1, 0.2)})
    assert all(np.isnan(here.theta([50.0, 2.0, 0.9, 0.0, 0.1])))


def test_a_start_outside_the_bounds_is_moved_inside():
    here = coordinates(bounds={"mean_reversion": (0.5, 1.0)})
    assert 0.5 < here.point(THETA)[0] < 1.0


@pytest.mark.parametrize(
    ("lower", "upper", "start", "inside"),
    [
        (-np.inf, np.inf, 3.0, 3.0),
        (0.0, np.inf, 3.0, 3.0),
        (0.0, np.inf, 1e-9, 1e-9),
        (2.0, np.inf, 1.0, 2.1),
        (-np.inf, 10.0, 10.0, 9.5),
    ],
)
def test_a_start_in_open_bounds_stays_where_it_is_unless_on_a_wall(lower, upper, start, inside):
    space = so.ParameterSpace(("x",), np.array([lower]), np.array([upper]), np.array([[start]]))
    assert coordinates_of(space, bounds=None, fixed=None, enforce_feller=False).point([start]) == pytest.approx(
        [inside]
    )


def test_bounds_that_meet_fix_the_parameter():
    here = coordinates(bounds={"correlation": (-0.5, -0.5)})
    assert here.fixed == {3: -0.5}
    assert 3 not in here.free


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bounds": {"kappa": (0.0, 1.0)}}, "bounds names 'kappa'"),
        ({"fixed": {"rho": 0.0}}, "fixed names 'rho'"),
        ({"bounds": {"correlation": (0.5, -0.5)}}, "contain no number"),
        ({"bounds": {"correlation": (-2.0, 0.0)}}, "beyond where the model can be priced"),
        ({"fixed": {"correlation": -1.5}}, "outside its bounds"),
        ({"fixed": dict(zip(SPACE.names, THETA, strict=True))}, "nothing is left"),
        (
            {"enforce_feller": True, "fixed": {"mean_reversion": 1.0, "long_variance": 0.01, "vol_of_vol": 1.0}},
            "no point that meets Feller",
        ),
    ],
)
def test_a_question_without_an_answer_is_refused_in_words(options, says):
    with pytest.raises(ParameterError, match=says):
        coordinates(**options)


def test_a_space_is_nobodys_to_change_once_coordinates_rest_on_it():
    """Coordinates are found once for a space, and all Hestons share one."""
    mine = np.array([0.5])
    own = so.ParameterSpace(("x",), mine, np.array([2.0]), np.array([[1.0]]))
    mine[0] = 0.9
    assert own.lower[0] == 0.5
    for space in (own, so.Heston().parameters):
        for array in (space.lower, space.upper, space.starts):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0.9


def test_fellers_condition_is_not_asked_of_a_model_without_it():
    with raises(ParameterError, mentions={"feller"}):
        coordinates_of(Smile().parameters, bounds=None, fixed=None, enforce_feller=True)
