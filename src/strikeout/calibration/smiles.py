"""Parameters of smiles by expiry: dates instead of years in their names, and one row per smile.

Search smile by smile: expiries that share no parameter are problems of their own.

One damping for all of them would be that of the worst: each smile has starts, steps and a convergence of its own, and
the best end of each smile is a part of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.basin import Progress
from strikeout.calibration.coordinates import Bounds, Coordinates, coordinates_of
from strikeout.calibration.fit_errors import quote_fits
from strikeout.calibration.latent_problem import parts_of
from strikeout.calibration.loop import Descent, Visit
from strikeout.calibration.problem import Problem, SearchEnd
from strikeout.calibration.starts import best_of, search
from strikeout.calibration.termination import Termination
from strikeout.models.expiries import Smiles, label
from strikeout.models.svi import SVI
from strikeout.quotes.contracts import Features
from strikeout.statistics.objective import Objective
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

NAMED = 3  # expiries in a warning


def dates_by_label(calibration: Calibration) -> dict[str, tuple[str, ...]]:
    """Return the expiry dates of the quotes by the label of their smile, such as "[0.25]"; empty if unknown."""
    quotes = None if calibration.moments is not None else calibration.quotes
    if quotes is None or isinstance(quotes.contracts, Features) or "expiry_date" not in quotes.labels:
        return {}
    found: dict[str, set[str]] = {}
    for years, date in set(zip(quotes.contracts.expiry.tolist(), map(str, quotes.labels["expiry_date"]), strict=True)):
        found.setdefault(label(years), set()).add(date)
    return {name: tuple(sorted(dates)) for name, dates in found.items()}


def dated_names(calibration: Calibration) -> dict[str, str]:
    """Return the names of parameters to show: those of one expiry date carry it instead of years."""
    dates = dates_by_label(calibration)
    return {name: dated(name, dates) for name in calibration.parameters}


def dated(name: str, dates: dict[str, tuple[str, ...]]) -> str:
    """Return a parameter's name with its expiry date, if it has one; quotes of several dates may share an expiry.

    >>> dated("left[0.25]", {"[0.25]": ("2024-03-15",)}), dated("left[0.5]", {"[0.5]": ("2024-06-14", "2024-06-21")})
    ('left[2024-03-15]', 'left[0.5]')
    """
    word, bracket, rest = name.partition("[")
    found = dates.get(bracket + rest, ())
    return f"{word}[{found[0]}]" if len(found) == 1 else name


def has_smiles(calibration: Calibration) -> bool:
    """Return whether the parameters are those of raw SVI smiles, which are shown one per row."""
    model = calibration.model
    return isinstance(model, SVI) and model.form == "raw" and calibration.moments is None


def smile_table(calibration: Calibration) -> Table:
    """Return one row per raw SVI smile: Gatheral's letters, what the quotes leave open, and the fit error."""
    rows = [
        (
            smile["expiry"],
            *(number(smile[letter]) for letter in ("a", "b", "rho", "m", "sigma")),
            f"{smile['quotes']:,}",
            number(smile["vol_points"], ".3g"),
            ", ".join([f"{name} on its bound" for name in smile["on_bound"]] + [f"{n} open" for n in smile["open"]]),
        )
        for smile in smile_records(calibration)
    ]
    heads = ("expiry", "a", "b", "rho", "m", "sigma", "quotes", "vol points", "note")
    return Table(heads, rows, numbers=(1, 2, 3, 4, 5, 6, 7), whole=(0,), keys=1)


def smile_records(calibration: Calibration) -> list[dict[str, Any]]:
    """Return the smiles of raw SVI as plain values, in the order of their expiries."""
    model, quotes = calibration.model, calibration.quotes
    assert isinstance(model, SVI)
    assert quotes is not None
    dates, names = dates_by_label(calibration), model.parameters.names
    expiry = np.array([label(T) for T in quotes.contracts.expiry.tolist()])
    fits = quote_fits(calibration)
    points = 100.0 * (np.asarray(fits["market_vol"], float) - np.asarray(fits["model_vol"], float))
    found = []
    for at, letters in model.raw(calibration.parameters, quotes.contracts).items():
        here = points[expiry == at]
        known = here[np.isfinite(here)]
        own = [name for name in names if name.endswith(at)]
        found.append(
            {
                "expiry": " and ".join(dates.get(at, ())[:NAMED]) or f"{at[1:-1]} years",
                "years": float(at[1:-1]),
                **letters,
                "quotes": int(np.count_nonzero(expiry == at)),
                "vol_points": float(np.sqrt(np.mean(known * known))) if known.size else None,
                "on_bound": [name.removesuffix(at) for name in own if name in calibration.on_bound],
                "open": [name.removesuffix(at) for name in own if name in calibration.unidentified],
            }
        )
    return found


def smile_warnings(calibration: Calibration) -> list[str]:
    """Return one sentence per parameter of a curve that ends on bounds or stays open, with the expiries."""
    dates, found = dates_by_label(calibration), []
    for held, words in (
        (calibration.on_bound, "is on its bound"),
        (calibration.unidentified, "is left open by the quotes"),
    ):
        kinds: dict[str, list[str]] = {}
        for name in held:
            word = name.partition("[")[0]
            kinds.setdefault(word, []).append(dated(name, dates).partition("[")[2].rstrip("]"))
        for word, where in kinds.items():
            shown = ", ".join(where[:NAMED]) + (", ..." if len(where) > NAMED else "")
            at = f" in {many(len(where), 'expiry', 'expiries')} ({shown})" if where[0] else ""
            found.append(f"{word} {words}{at}: no standard error there; the smile between the quotes is determined.")
    shared = [label for label, several in dates.items() if len(several) > 1]
    if shared:
        found.append(
            f"{many(len(shared), 'smile')} of {len(dates):,} pool quotes of several dates with the same time to expiry."
            " Calibrate each date apart: calibrate_many(quotes, model, by='date'), or --by date."
        )
    return found


Ends = list[SearchEnd[Objective]]


@dataclass(frozen=True, eq=False)
class SmilePart:
    """The problem of one smile, and where its coordinates are among all."""

    problem: Problem
    at: tuple[int, ...]


def is_by_smile(problem: Problem) -> bool:
    """Return whether smiles are searched one by one; the scale of a robust loss is one for all of them."""
    model = problem.model
    if not isinstance(model, Smiles) or not model.parameters.is_curve or model.expiries == "quoted":
        return False
    return not problem.asked.is_robust


def search_by_smile(
    problem: Problem, points: Sequence[Sequence[float]], bounds: Bounds | None, progress: Progress | None = None
) -> tuple[Ends, SearchEnd[Objective]]:
    """Return the end of each start, and the end that is the best of every smile."""
    found = []
    for part in smile_parts(problem, bounds):
        starts = [[point[i] for i in part.at] for point in points]
        found.append((part, search(part.problem, starts, progress)))
    ends = [_whole(problem, [(part, ends[n]) for part, ends in found]) for n in range(len(points))]
    return ends, _whole(problem, [(part, best_of(ends)) for part, ends in found])


def smile_parts(problem: Problem, bounds: Bounds | None) -> list[SmilePart]:
    """Return the problem of each smile that has a free parameter."""
    model, coordinates, objective = problem.model, problem.coordinates, problem.objective
    assert isinstance(model, Smiles)
    assert model.expiries != "quoted"
    expiry = objective.book.expiry
    parts = parts_of(objective, {T: np.flatnonzero(expiry == T) for T in model.expiries})
    place = {coordinates.names[i]: n for n, i in enumerate(coordinates.free)}
    found = []
    for T, part in parts.items():
        alone = model.only(float(T))
        names = alone.parameters.names
        own = _own_coordinates(coordinates, alone, bounds)
        at = tuple(place[name] for name in names if name in place)
        if at:
            found.append(SmilePart(Problem(part, alone, own), at))
    return found


def _own_coordinates(coordinates: Coordinates, alone: Smiles, bounds: Bounds | None) -> Coordinates:
    """Return the coordinates of one smile, with the bounds and fixed values that name its parameters."""
    names = alone.parameters.names
    fixed = {coordinates.names[i]: value for i, value in coordinates.fixed.items() if coordinates.names[i] in names}
    own = {name: ends for name, ends in (bounds or {}).items() if name in names}
    return coordinates_of(alone.parameters, bounds=own, fixed=fixed, enforce_feller=False)


def _whole(problem: Problem, parts: Sequence[tuple[SmilePart, SearchEnd[Objective]]]) -> SearchEnd[Objective]:
    """Return the end of a search of all smiles, from the end of each."""
    u = [0.0] * len(problem.coordinates.free)
    ended, evaluations, held = Termination.CONVERGED_TO_ROUNDING, 0, set()
    for part, end in parts:
        evaluations += end.descent.evaluations
        reached = end if end.joined is None else end.joined  # the end it was on its way to
        for i, x in zip(part.at, reached.descent.point, strict=True):
            u[i] = x
        held |= {part.at[i] for i in reached.descent.held}
        ended = _worse(ended, reached.descent.termination)
    system = problem.evaluate(u)
    visit = Visit(system.cost, 0.0, 0.0, tuple(u), evaluations)
    descent = Descent(u, system, ended, (visit,), evaluations, tuple(sorted(held)))
    return SearchEnd(descent, problem.objective, system.cost)


def _worse(one: Termination, other: Termination) -> Termination:
    """Return the first of two ends that did not converge; of two that did, the one that is not due to rounding."""
    if not one.converged:
        return one
    return other if not other.converged or one is Termination.CONVERGED_TO_ROUNDING else one
