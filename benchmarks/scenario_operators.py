# ruff: noqa: ARG001 - every operator has the form of the first, whether it needs the quotes or not
"""Operators that the scenario bank is run through. A file of your own enters with ``--operator theirs.py``.

An operator is a module (or any object) with

    forget(quotes, model, ids)             the parameters without these quotes, by name
    NAME                                   optional: what to call it
    prepare(quotes, model)                 optional and not timed: what is known before the request, such as a
                                           calibration and a cache; ``forget`` then gets it as a fourth argument

``quotes`` are all quotes, bad ones included, ``ids`` those to forget. ``forget`` returns the parameters; or a pair of
them and the error it claims, in standard errors of the worst parameter; or None if it refuses. A ``RefusedError`` is a
refusal too. Any other exception counts as a failure.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import strikeout as so

Floats = NDArray[np.float64]
Ids = NDArray[np.str_]
Parameters = Mapping[str, float]
Answer = Parameters | tuple[Parameters, float] | None

TOLERANCE = 0.06  # standard errors


@dataclass(frozen=True)
class Operator:
    """An operator by name. ``prepare`` is not timed."""

    name: str
    forget: Callable[[so.Quotes, so.Model, Ids, Any], Answer]
    prepare: Callable[[so.Quotes, so.Model], Any]


def from_file(path: Path) -> Operator:
    """Return the operator of a Python file.

    Raises:
        ValueError: the file cannot be read as Python, or has no function ``forget``.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"--operator {path}: no Python file is there. Give a .py with a function forget.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, "forget", None)):
        raise ValueError(f"--operator {path}: it has no function forget(quotes, model, ids). See {__name__}.")
    prepare = getattr(module, "prepare", None)
    forget = module.forget
    return Operator(
        str(getattr(module, "NAME", path.stem)),
        forget if prepare is not None else lambda quotes, model, ids, _: forget(quotes, model, ids),
        prepare or _nothing,
    )


@dataclass(frozen=True)
class Cached:
    """A calibration and rows of its quotes in floating point at the calibrated parameters."""

    calibration: so.results.Calibration
    theta: Floats
    J: Floats
    r: Floats


def _cached(quotes: so.Quotes, model: so.Model) -> Cached:
    calibration = so.calibrate(quotes, model)
    theta = np.array(list(calibration.parameters.values()))
    price, J = model.linearize(theta, quotes.contracts)
    return Cached(calibration, theta, J, quotes.observed - price)


def _nothing(quotes: so.Quotes, model: so.Model) -> None:
    """Prepare nothing before the request."""


def _named(model: so.Model, theta: Floats) -> Parameters:
    return model.parameters.named(theta)


def _kept(quotes: so.Quotes, model: so.Model) -> so.results.Calibration:
    """A calibration with its footprints and second derivatives, which a book keeps."""
    calibration = so.calibrate(quotes, model)
    with suppress(so.errors.RefusedError, so.errors.ParameterError):
        calibration.footprints.whole.total()
        calibration.second_order  # noqa: B018
    return calibration


def _tolerance(quotes: so.Quotes, model: so.Model, ids: Ids, calibration: so.results.Calibration) -> Answer:
    done = so.forget(calibration, ids=ids, tolerance=TOLERANCE)
    return done.parameters, TOLERANCE if done.step is not None else 1e-5


def _refit_by_forget(quotes: so.Quotes, model: so.Model, ids: Ids, calibration: so.results.Calibration) -> Answer:
    return so.forget(calibration, ids=ids).parameters, 1e-5


def _refit(quotes: so.Quotes, model: so.Model, ids: Ids, prepared: None) -> Answer:
    found = so.calibrate(quotes.without(ids), model)
    return (found.parameters, 1e-5) if found.converged else None


def _paper(quotes: so.Quotes, model: so.Model, ids: Ids, cache: so.paper.Cache) -> Answer:
    return so.paper.fast(cache, ids).parameters  # what it claims is of its own one-step retrain, not of the optimum


def _paper_cache(quotes: so.Quotes, model: so.Model) -> so.paper.Cache:
    calibration = so.calibrate(quotes, model)
    cache = so.paper.Cache(quotes, model=model, theta_ref=calibration.parameters)
    cache.H, cache.G  # noqa: B018  (summed once, before any request)
    return cache


def _one_step(quotes: so.Quotes, model: so.Model, ids: Ids, known: Cached) -> Answer:
    """Subtract in NumPy, solve with LAPACK: iSAM2's removal and statsmodels' group deletion do the same."""
    gone = quotes.places(ids)
    J, r = known.J[gone], known.r[gone]
    H, G = known.J.T @ known.J - J.T @ J, known.J.T @ known.r - J.T @ r
    return _named(model, known.theta + np.linalg.solve(H, G))


def _influence(quotes: so.Quotes, model: so.Model, ids: Ids, known: Cached) -> Answer:
    """First-order influence functions: the curvature of all quotes, the score of the forgotten ones."""
    gone = quotes.places(ids)
    return _named(model, known.theta - np.linalg.solve(known.J.T @ known.J, known.J[gone].T @ known.r[gone]))


def _certified(quotes: so.Quotes, model: so.Model, ids: Ids, known: Cached) -> Answer:
    """Certified removal's Newton step: the whole Hessian of the retained quotes, and the gradient that is left.

    Guo et al. bound the gradient at the answer and hide it under noise. Here it is measured on the retained quotes, and
    twice the next step is claimed, in standard errors; no noise is added. Above 1 standard error it refuses.
    """
    kept = quotes.without(ids)
    hessian, score, _ = _second_order(model, known.theta, kept)
    theta = known.theta + np.linalg.solve(hessian, score)
    hessian, score, noise = _second_order(model, theta, kept)
    inverse = np.linalg.inv(hessian)
    claimed = 2.0 * float(np.max(np.abs(inverse @ score) / np.sqrt(noise * np.abs(np.diag(inverse)))))
    return (_named(model, theta), claimed) if claimed <= 1.0 else None


def _second_order(model: so.Model, theta: Floats, quotes: so.Quotes) -> tuple[Floats, Floats, float]:
    """The Hessian of half the sum of squares by differences, minus its gradient, and the noise variance."""

    def score(at: Floats) -> tuple[Floats, float]:
        price, J = model.linearize(at, quotes.contracts)
        r = quotes.observed - price
        return J.T @ r, float(r @ r)

    here, cost = score(theta)
    columns = []
    for place, value in enumerate(theta):
        step = np.zeros(len(theta))
        step[place] = 1e-5 * max(abs(value), 1e-3)
        columns.append((score(theta - step)[0] - score(theta + step)[0]) / (2 * step[place]))
    hessian = np.array(columns)
    return (hessian + hessian.T) / 2, here, cost / (len(quotes) - len(theta))


OPERATORS = (
    Operator(f"strikeout, tolerance {TOLERANCE:g} SE", _tolerance, _kept),
    Operator("strikeout", _refit_by_forget, so.calibrate),
    Operator("a full refit", _refit, _nothing),
    Operator("the paper's fast", _paper, _paper_cache),
    Operator("NumPy, one step", _one_step, _cached),
    Operator("influence functions", _influence, _cached),
    Operator("certified-removal Newton step", _certified, _cached),
)
