"""Models from plain functions: derivatives found and checked, rows kept apart, books of named columns."""

from __future__ import annotations

import math
import pickle
import sys

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError, RefusedError, UnidentifiedError, UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import restep
from strikeout.quotes.contracts import Features
from strikeout.quotes.quotes import join
from strikeout.quotes.selection import select
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.system import FootprintBlocks, System
from tests.raising import raises

T = np.linspace(0.1, 6.0, 40)
X = Features({"t": T})
STARTED = {"height": 1.0, "rate": 1.0, "floor": 0.0}
TRUTH = {"height": 3.0, "rate": 0.4, "floor": -0.5}


def decay(height, rate, floor, t):
    return height * np.exp(-rate * t) + floor


def decay_jacobian(height, rate, floor, t):  # noqa: ARG001
    e = np.exp(-rate * t)
    return {"height": e, "rate": -height * t * e, "floor": 1.0}


def model(price=decay, **options):
    return so.custom_model("decay", parameters=STARTED, price=price, **options)


def book(noise: float = 0.01, **more) -> so.Quotes:
    observed = decay(**TRUTH, t=T) + noise * np.random.default_rng(3).standard_normal(len(T))
    return so.Quotes.from_columns([f"q{i}" for i in range(len(T))], observed, t=T, **more)


def exact_jacobian() -> np.ndarray:
    columns = decay_jacobian(**TRUTH, t=T)
    return np.stack([np.broadcast_to(columns[name], T.shape) for name in TRUTH], axis=1)


def test_a_function_is_a_model():
    assert isinstance(model(), so.Model)
    assert (model().price(TRUTH, X) == decay(**TRUTH, t=T)).all()


def test_complex_steps_give_derivatives_to_rounding():
    # exp and two products: a few roundings of 1.1e-16 each.
    assert model().linearize(TRUTH, X)[1] == pytest.approx(exact_jacobian(), rel=1e-15)


@pytest.mark.parametrize(
    "drops_imaginary_parts",
    [
        lambda height, rate, floor, t: height * np.exp(-np.abs(rate) * t) + floor,
        lambda height, rate, floor, t: np.real(decay(height, rate, floor, t)),
        lambda height, rate, floor, t: np.asarray(decay(height, rate, floor, t), dtype=float),
        lambda height, rate, floor, t: np.array([height * math.exp(-rate * x) + floor for x in t]),
        lambda height, rate, floor, t: decay(height, rate, floor, t) if rate > 0 else t,
    ],
    ids=["abs", "real", "cast", "math", "comparison"],
)
def test_a_function_that_drops_imaginary_parts_is_noticed_and_differenced(drops_imaginary_parts):
    _, jacobian = model(drops_imaginary_parts).linearize(TRUTH, X)
    # Fourth order with steps of 1e-3: 2e-13 of the value over the parameter, and the value is up to six parameters.
    assert jacobian == pytest.approx(exact_jacobian(), rel=1e-11, abs=1e-11)


def test_a_part_that_drops_imaginary_parts_is_noticed_in_its_rows_alone():
    def split(height, rate, floor, t):
        return np.where(t < 3.0, decay(height, rate, floor, t), decay(height, np.abs(rate), floor, t))

    _, jacobian = model(split).linearize(TRUTH, X)
    near = T < 3.0
    assert (jacobian[near] == model().linearize(TRUTH, X)[1][near]).all()
    assert jacobian[~near] == pytest.approx(exact_jacobian()[~near], rel=1e-11, abs=1e-11)


def test_large_terms_that_cancel_do_not_discredit_the_complex_step():
    def cancelling(a, b, t):
        return 1e8 * a * t - 1e8 * b * t  # values near 1, terms of 1e8: differences are good to 1e-5 only

    line = so.custom_model("line", parameters={"a": 1.0, "b": 1.0}, price=cancelling)
    _, jacobian = line.linearize([1.0, 1.0 - 1e-8], X)
    assert jacobian == pytest.approx(1e8 * np.stack([T, -T], axis=1), rel=1e-15)


def test_a_parameter_at_zero_is_differentiated_on_the_scale_of_its_start():
    power = so.custom_model("power", parameters={"a": 1e-6}, price=lambda a, t: np.abs(a + 1e-6 * t))
    assert power.linearize([0.0], X)[1][:, 0] == pytest.approx(1.0, rel=1e-9)


def test_a_given_jacobian_is_taken_by_name():
    shuffled = model(
        jacobian=lambda height, rate, floor, t: dict(reversed(decay_jacobian(height, rate, floor, t).items()))
    )
    assert (shuffled.linearize(TRUTH, X)[1] == exact_jacobian()).all()


def test_a_row_does_not_depend_on_its_neighbours():
    whole, rows = model().linearize(TRUTH, X)
    for row in (0, 7, 39):
        alone, its = model().linearize(TRUTH, X[[row]])
        assert alone[0] == whole[row]
        assert (its[0] == rows[row]).all()


@pytest.mark.parametrize(
    "mixes",
    [
        lambda height, rate, floor, t: decay(height, rate, floor, t - t.mean()),
        lambda height, rate, floor, t: decay(height, rate, floor, t)[::-1],
        lambda height, rate, floor, t: np.cumsum(decay(height, rate, floor, t)),
        lambda height, rate, floor, t: decay(height, rate, floor, t) * np.arange(len(t)),
    ],
    ids=["mean", "order", "running sum", "row number"],
)
def test_a_function_that_mixes_rows_is_refused(mixes):
    with pytest.raises(UsageError, match="mixes rows"):
        so.calibrate(book(), model(mixes))


def test_a_calibration_finds_the_least_squares_optimum():
    quotes = book()
    calibration = so.calibrate(quotes, model())
    assert calibration.converged
    theta = np.array(list(calibration.parameters.values()))
    residual = quotes.observed - decay(*theta, T)
    columns = decay_jacobian(*theta, T)
    gradient = [float(np.sum(columns[name] * residual)) for name in columns]
    # Stationary to 1e-8 standard errors: the gradient is that times the noise, 0.01, and a column's length, below 10.
    assert gradient == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    for name, value in TRUTH.items():
        assert abs(calibration.parameters[name] - value) < 4.0 * calibration.standard_errors[name]
    assert "height" in calibration.summary()


def test_the_order_of_rows_and_columns_changes_no_bit():
    def plane(a, b, c, u, v):
        return a + b * u * np.exp(c * v)

    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 4, 60) * 0.5, rng.integers(0, 4, 60) * 0.25  # many ties
    y = plane(1.0, 2.0, 0.5, u, v) + 0.1 * rng.standard_normal(60)
    ids = np.array([f"q{i}" for i in range(60)])
    flat = so.custom_model("plane", parameters={"a": 0.0, "b": 1.0, "c": 0.1}, price=plane)
    first = so.calibrate(so.Quotes.from_columns(ids, y, u=u, v=v), flat)
    for seed in range(3):
        p = np.random.default_rng(seed).permutation(60)
        again = so.calibrate(so.Quotes.from_columns(ids[p], y[p], v=v[p], u=u[p]), flat)
        assert again.parameters == first.parameters


def test_bounds_may_be_open_to_one_side():
    optimum = so.calibrate(book(), model())
    half = so.calibrate(book(), model(bounds={"rate": (0.0, math.inf), "height": (-math.inf, 10.0)}))
    assert half.converged
    for name in TRUTH:
        assert half.parameters[name] == pytest.approx(optimum.parameters[name], abs=1e-6 * half.standard_errors[name])


def test_a_bound_that_binds_is_reported():
    held = so.calibrate(book(), model(bounds={"floor": (-0.1, math.inf)}), bounds={"floor": (-0.1, math.inf)})
    assert held.on_bound == {"floor": -0.1}


def test_a_signed_parameter_is_judged_by_its_own_size():
    calibration = so.calibrate(book(), model())
    error = calibration.standard_errors["floor"]
    assert calibration.relative_errors["floor"] == pytest.approx(error / abs(calibration.parameters["floor"]))


def test_a_parameter_near_zero_is_not_called_undetermined():
    """A slope that may as well be zero is known to be small: its error is the size of nothing it is relative to."""
    rng = np.random.default_rng(1)
    flat = so.custom_model("flat", parameters={"a": 1.0, "b": 1.0}, price=lambda a, b, t: a + b * t)
    calibration = so.calibrate(
        so.Quotes.from_columns(np.arange(40).astype(str), 5.0 + 0.1 * rng.standard_normal(40), t=T), flat
    )
    assert calibration.converged
    assert calibration.unidentified == ()


def test_parameters_that_cannot_be_told_apart_are():
    twice = so.custom_model("twice", parameters={"a": 1.0, "b": 2.0}, price=lambda a, b, t: (a + b) * t)
    calibration = so.calibrate(book(), twice)
    assert not calibration.converged
    assert set(calibration.unidentified) == {"a", "b"}


def test_fewer_places_than_parameters_are_refused():
    quotes = so.Quotes.from_columns(["a", "b", "c", "d"], [1.0, 2.0, 3.0, 4.0], t=[1.0, 1.0, 2.0, 2.0])
    with raises(UnidentifiedError, mentions={"fixed"}, count=4, places=2, free=3):
        so.calibrate(quotes, model())


@pytest.mark.parametrize("options", [{"residual": "implied_vol"}, {"weights": "vega"}])
def test_what_needs_options_is_refused(options):
    with raises(UsageError, column="forward"):
        so.calibrate(book(), model(), **options)


def test_a_model_of_options_refuses_a_book_of_columns():
    with raises(UsageError, column="slices"):
        so.calibrate(book(), so.Heston())


def test_a_custom_model_refuses_a_book_of_options():
    with pytest.raises(UsageError, match="from_columns"):
        so.calibrate(so.paper.quotes("small"), model())


def test_a_missing_column_is_named():
    quotes = so.Quotes.from_columns(["a"], [1.0], time=[1.0])
    with raises(UsageError, missing=["t"]):
        model().price(TRUTH, quotes.contracts)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"parameters": {}}, UsageError, "a start by name"),
        ({"parameters": {"height": 1.0, "rate": 1.0, "roof": 0.0}}, UsageError, "by name"),
        ({"parameters": [{"height": 1.0, "rate": 1.0, "floor": 0.0}, {"height": 1.0}]}, ParameterError, "missing"),
        ({"bounds": {"roof": (0.0, 1.0)}}, ParameterError, "roof"),
        ({"bounds": {"rate": (2.0, 1.0)}}, ParameterError, "bounds of rate"),
        ({"bounds": {"rate": (2.0, 3.0)}}, ParameterError, "outside its bounds"),
        ({"grid": 2000}, UsageError, "grid=2000"),
        ({"price": lambda *everything: everything}, UsageError, "by name"),
        ({"name": " "}, UsageError, "name"),
    ],
)
def test_what_cannot_be_a_model_is_refused(changes, error, says):
    given = {"name": "decay", "parameters": {"height": 1.0, "rate": 1.0, "floor": 0.0}, "price": decay, **changes}
    with pytest.raises(error, match=says):
        so.custom_model(given.pop("name"), **given)


def test_a_function_that_gives_back_the_wrong_shape_is_refused():
    with raises(UsageError, name="decay/custom-1", count=40):
        model(lambda height, rate, floor, t: np.ones(3) * height * rate * floor * t[0]).price(TRUTH, X)


def test_a_jacobian_without_every_name_is_refused():
    short = model(jacobian=lambda height, rate, floor, t: {"height": height * rate * floor * t})
    with pytest.raises(UsageError, match="mapping of height, rate, floor"):
        short.linearize(TRUTH, X)


def test_arguments_with_a_default_are_constants():
    shifted = so.custom_model("shifted", parameters={"a": 1.0}, price=lambda a, t, shift=2.0: a * (t + shift))
    assert shifted.features == ("t",)
    assert (shifted.price([2.0], X) == 2.0 * (T + 2.0)).all()


def test_a_book_of_columns_reads_like_any_other():
    quotes = book(labels={"source": ["a", "b"] * 20})
    assert repr(quotes) == "<Quotes: 40 quotes of t>"
    assert "label source" in quotes.summary()
    less = quotes.without(["q0"])
    assert len(less) == 39
    assert less.contracts.columns["t"][0] == T[1]
    again = pickle.loads(pickle.dumps(quotes))
    assert (again.contracts.columns["t"] == T).all()
    assert not again.contracts.columns["t"].flags.writeable


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({}, "no column"),
        ({"t": [1.0, math.nan]}, "row 1 is nan"),
        ({"t": [1.0, 2.0, 3.0], "u": [1.0, 2.0]}, "different lengths"),
        ({"t": ["a", "b"]}, "must be numbers"),
        ({"t": [[1.0], [2.0]]}, "shape"),
        ({"a b": [1.0, 2.0]}, "a b"),
    ],
)
def test_columns_that_are_no_features_are_refused(columns, says):
    with pytest.raises(UsageError, match=says):
        so.Quotes.from_columns(["a", "b"], [1.0, 2.0], **columns)


def test_a_feature_and_a_label_of_one_name_are_refused():
    with raises(UsageError, column="t"):
        book(labels={"t": T})


def test_quotes_are_selected_by_their_features():
    quotes = book(labels={"source": ["a", "b"] * 20})
    chosen = select(quotes, "source = 'a' and t < 1 and price > 0")
    rows = np.flatnonzero((np.arange(40) % 2 == 0) & (T < 1.0) & (quotes.observed > 0.0))
    assert chosen.tolist() == quotes.ids[rows].tolist()
    with raises(UsageError, where="strike < 1"):
        select(quotes, "strike < 1")


def test_halves_of_a_book_of_features_join_to_the_whole():
    quotes = book()
    again = join(quotes[:13], quotes[13:])
    assert (again.contracts.columns["t"] == T).all()
    assert so.calibrate(again, model()).parameters == so.calibrate(quotes, model()).parameters
    with pytest.raises(UsageError, match="book of t and one of options"):
        join(quotes, so.paper.quotes("small"))


def test_what_is_left_after_a_step_is_what_a_book_without_the_quotes_leaves():
    quotes, decaying = book(), model()
    calibration = so.calibrate(quotes, decaying)
    gone = quotes.ids[[3, 5, 17]]
    left = downdate(FootprintBlocks.of(calibration.footprints.whole), gone)
    rebuilt = restep(quotes.without(gone), decaying, calibration.footprints.whole.schema)
    assert left.equations.digest() == rebuilt.equations.digest()
    assert left.parameters == rebuilt.parameters
    fewer = so.calibrate(quotes.without(gone), decaying)
    struck = System.of(footprints_of(quotes.only(gone), decaying, STARTED).total())
    assert (calibration.state - struck).digest() == fewer.state.digest()


def test_residuals_too_large_for_the_grid_are_refused_and_fit_a_coarser_one():
    far = so.Quotes.from_columns(["a", "b"], [1.0, 1e5], t=[1.0, 2.0])
    with raises(RefusedError, ids=["b"], largest=4096.0, column="residual"):
        footprints_of(far, model(grid=50), STARTED)
    assert len(footprints_of(far, model(grid=41), STARTED)) == 2
    assert len(footprints_of(far, model(), STARTED)) == 2


def test_a_jacobian_that_mixes_rows_is_refused_though_the_function_does_not():
    def mixed(height, rate, floor, t):
        found = decay_jacobian(height, rate, floor, t)
        return {**found, "rate": found["rate"] + 1e-12 * np.mean(found["rate"])}

    with raises(UsageError, row=0):
        so.calibrate(book(), model(jacobian=mixed))


def test_without_jax_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)  # importing it fails, as where it is not installed
    with pytest.raises(UsageError, match=r'pip install "strikeout\[jax\]"'):
        so.custom_model("line", parameters={"a": 1.0}, price=lambda a, x: a * x, jacobian="jax")


def test_a_word_that_is_not_jax_is_refused():
    with raises(UsageError, jacobian="autograd"):
        so.custom_model("line", parameters={"a": 1.0}, price=lambda a, x: a * x, jacobian="autograd")
