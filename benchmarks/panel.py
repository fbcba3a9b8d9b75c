"""Panels: a day struck out of all parameters at once, a whole calibration, and time and memory a day."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import least_squares

import strikeout as so
from benchmarks.memory import peak_bytes
from benchmarks.rows import Result, Row
from benchmarks.timing import interleave, same
from strikeout.statistics.system import System
from strikeout.synthetic.heston_quotes import TRUTH

Floats = NDArray[np.float64]

DAYS = 180
NOISE = 5e-4


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """The arrow step against dense solutions of the same equations; SciPy over the same prices; 2,000 days."""
    rows = _forget(rounds=5 if is_quick else 41)
    rows += _calibrate(20 if is_quick else DAYS, rounds=1 if is_quick else 3)
    sizes = [20, 40] if is_quick else [250, 500, 1000, 2000]
    linear, facts = _linear(sizes, rounds=1 if is_quick else 3)
    beside = _beside(20, 2) if is_quick else _beside(DAYS, 20)
    return Result("panel", is_quick, tuple(rows + linear), facts | beside)


def _forget(*, rounds: int) -> list[Row]:
    """One day more than 180, struck out again: 184 parameters are left."""
    arrow = so.calibrate(so.synthetic.panel_quotes(DAYS + 1, seed=3), so.Heston(), panel="date", starts=1).system
    day = arrow.groups[90]
    left = {group: part for group, part in arrow.blocks.items() if group != day}
    H, G = dense(System(left, arrow.latent))
    step = arrow.step_without(day)
    ours = np.concatenate([step.change, step.latent_changes])
    scale = np.sqrt(np.diag(H))
    apart = float(np.max(np.abs((np.linalg.solve(H, G) - ours) * scale)) / np.max(np.abs(ours * scale)))
    timed = interleave(
        {
            "strikeout": same(lambda: arrow.step_without(day)),
            "strikeout, rebuilt": same(lambda: System(left, arrow.latent).step()),
            "NumPy, dense": same(lambda: np.linalg.solve(H, G)),
            "SciPy, dense Cholesky": same(lambda: cho_solve(cho_factor(H, check_finite=False), G, check_finite=False)),
        },
        rounds=rounds,
    )
    notes = {
        "strikeout": "one exact subtraction, a 4 by 4 solution, and the other days follow",
        "strikeout, rebuilt": "every other day's latent parameter eliminated again: the same bits",
        "NumPy, dense": f"np.linalg.solve, its matrix at hand and not counted; {apart:.0e} from ours",
        "SciPy, dense Cholesky": "cho_factor and cho_solve, the matrix at hand and not counted",
    }
    required = {"NumPy, dense": 20.0}
    task = f"1 of {DAYS + 1} days, the step of all {len(G)} parameters left"
    return [Row(task, n, t.seconds, t.ratio, required.get(n), note=notes[n]) for n, t in timed.items()]


def dense(state: System) -> tuple[Floats, Floats]:
    """The curvature and the score of all parameters: shared ones first, then one latent parameter per group."""
    shared = len(state.schema.parameters)
    size = shared + len(state.groups)
    H, G = np.zeros((size, size)), np.zeros(size)
    for n, part in enumerate(state.blocks.values()):
        system, k = part.system(), part.schema.parameters.index(state.latent)
        kept = [i for i in range(shared + 1) if i != k]
        places = np.array([*range(shared), shared + n])
        order = np.array([*kept, k])
        H[np.ix_(places, places)] += system.curvature[np.ix_(order, order)]
        G[places] += system.score[order]
    return H, G


def _calibrate(days: int, *, rounds: int) -> list[Row]:
    """From the first canonical start. SciPy gets our own prices and sensitivities: what is compared is the method."""
    quotes = so.synthetic.panel_quotes(days, seed=3)
    timed = interleave(
        {
            "strikeout": same(lambda: so.calibrate(quotes, so.Heston(), panel="date", starts=1)),
            "strikeout, 4 starts": same(lambda: so.calibrate(quotes, so.Heston(), panel="date")),
            "SciPy": same(lambda: scipy_panel(quotes)),
        },
        rounds=rounds,
    )
    ours, peer = so.calibrate(quotes, so.Heston(), panel="date", starts=1), scipy_panel(quotes)
    apart = max(abs(peer[n] - x) / ours.standard_errors[name] for n, (name, x) in enumerate(ours.parameters.items()))
    notes = {"SciPy": f"least_squares, trf, dense Jacobian of our own rows; {apart:.0e} standard errors from ours"}
    task = f"calibrate {days} days, {len(quotes):,} quotes, {days + 4} parameters"
    return [Row(task, n, t.seconds, t.ratio, note=notes.get(n, "")) for n, t in timed.items()]


def scipy_panel(quotes: so.Quotes) -> Floats:
    """The same problem for a general optimiser: residuals and a dense Jacobian of all parameters."""
    model, dates = so.Heston(), quotes.labels["date"].astype(str)
    rows = [np.flatnonzero(dates == date) for date in np.unique(dates)]
    contracts = [quotes.contracts[some] for some in rows]
    space, start = model.parameters, model.parameters.starts[0]

    def evaluate(x: Floats) -> tuple[Floats, Floats]:
        residual, jacobian = np.empty(len(quotes)), np.zeros((len(quotes), len(x)))
        for n, (some, day) in enumerate(zip(rows, contracts, strict=True)):
            price, slopes = model.linearize(np.array([*x[:4], x[4 + n]]), day)
            residual[some] = price - quotes.observed[some]
            jacobian[some, :4], jacobian[some, 4 + n] = slopes[:, :4], slopes[:, 4]
        return residual, jacobian

    def spread(values: Floats) -> Floats:
        return np.concatenate([values[:4], np.full(len(rows), values[4])])

    found = least_squares(
        lambda x: evaluate(x)[0],
        spread(start),
        jac=lambda x: evaluate(x)[1],
        bounds=(spread(space.lower), spread(space.upper)),
        x_scale="jac",
        ftol=1e-12,
        xtol=1e-12,
        gtol=1e-12,
    )
    return np.asarray(found.x)


def _linear(sizes: list[int], *, rounds: int) -> tuple[list[Row], dict[str, float | str]]:
    """The ratios are over the smallest panel's time; facts are memory a day, at the smallest and at the largest."""
    books = {days: so.synthetic.panel_quotes(days, seed=1) for days in sizes}
    timed = interleave(
        {
            f"of {days:,} days": same(lambda quotes=quotes: so.calibrate(quotes, so.Heston(), panel="date", starts=1))
            for days, quotes in books.items()
        },
        rounds=rounds,
    )
    rows = [
        Row("calibrate, 1 start", n, t.seconds, t.ratio, note=f"{1e3 * t.seconds / days:.2f} ms a day")
        for (n, t), days in zip(timed.items(), sizes, strict=True)
    ]
    facts: dict[str, float | str] = {}
    for days in (sizes[0], sizes[-1]):
        most = peak_bytes(lambda days=days: so.calibrate(books[days], so.Heston(), panel="date", starts=1))
        facts[f"kilobytes a day, {days:,} days"] = round(most / days / 1024, 1)
    return rows, facts


def _beside(days: int, seeds: int) -> dict[str, float | str]:
    """How far both models are from the truth, over several books."""
    apart, path, ours, constants, biases = [], [], [], [], []
    for seed in range(seeds):
        quotes = so.synthetic.panel_quotes(days, seed=seed)
        panel = so.calibrate(quotes, so.Heston(), panel="date", starts=1)
        apart += [abs(x - TRUTH[name]) / panel.standard_errors[name] for name, x in panel.parameters.items()]
        truth = dict(zip(quotes.labels["date"].tolist(), quotes.labels["variance"].tolist(), strict=True))
        path.append(np.sqrt(np.mean([(x - truth[day]) ** 2 for day, x in panel.latent.items()])))
        ours.append(panel.rmse / NOISE)
        constant = so.calibrate(quotes, so.Heston())
        constants.append(constant.rmse / NOISE)
        name = "correlation"
        biases.append((constant.parameters[name] - TRUTH[name]) / constant.standard_errors[name])
    return {
        f"books of {days} days": seeds,
        "shared parameters, farthest from the truth, standard errors": round(max(apart), 2),
        "variance path, largest RMSE": f"{max(path):.2g}",
        "RMSE over the noise, one variance per date": f"{min(ours):.3f} to {max(ours):.3f}",
        "RMSE over the noise, constant variance": f"{min(constants):.0f} to {max(constants):.0f}",
        "correlation, constant variance, standard errors above the truth": f"{min(biases):.1f} to {max(biases):.1f}",
    }
