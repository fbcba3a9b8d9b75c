"""The coordinates of a search: the free parameters, with the Feller condition as a bound if it is enforced.

The Feller condition, ``2 mean_reversion long_variance >= vol_of_vol^2``: variance never touches zero.

    symbol  meaning
    omega   vol_of_vol / sqrt(2 mean_reversion long_variance); the condition is omega <= 1
    c_k     derivative of the parameter that omega replaces, by free coordinate k

To enforce it, omega takes the place of vol_of_vol (of mean_reversion where vol_of_vol is fixed), and the condition is
a plain upper bound: a search that ends on it ends at a true constrained optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, nan, sqrt
from operator import itemgetter

from strikeout.calibration.loop import Box, Evaluation
from strikeout.errors import ParameterError
from strikeout.models.model import ParameterSpace
from strikeout.models.named import ALIASES
from strikeout.statistics.linearization import Linearization, places
from strikeout.text import Argument, did_you_mean

MEAN_REVERSION, LONG_VARIANCE, VOL_OF_VOL = "mean_reversion", "long_variance", "vol_of_vol"
CHOICES = ("warn", "enforce", "ignore")
NAMES = (MEAN_REVERSION, LONG_VARIANCE, VOL_OF_VOL)


def feller_ratio(parameters: Mapping[str, float]) -> float | None:
    """``2 mean_reversion long_variance / vol_of_vol^2``, at least one where the condition holds; None without these."""
    if not all(name in parameters for name in NAMES):
        return None
    sigma = parameters[VOL_OF_VOL]
    return 2.0 * parameters[MEAN_REVERSION] * parameters[LONG_VARIANCE] / (sigma * sigma)


@dataclass(frozen=True)
class FellerShare:
    """omega in the place of one parameter; the numbers are places in the parameter vector."""

    mean_reversion: int
    long_variance: int
    vol_of_vol: int
    replaced: int  # vol_of_vol, or mean_reversion

    def omega(self, theta: Sequence[float]) -> float:
        return theta[self.vol_of_vol] / sqrt(2.0 * theta[self.mean_reversion] * theta[self.long_variance])

    def value(self, theta: Sequence[float], omega: float) -> float:
        """Return the replaced parameter, given the others and omega."""
        if self.replaced == self.vol_of_vol:
            return omega * sqrt(2.0 * theta[self.mean_reversion] * theta[self.long_variance])
        sigma = theta[self.vol_of_vol]
        return sigma * sigma / (2.0 * theta[self.long_variance] * omega * omega)

    def slopes(self, theta: Sequence[float], omega: float) -> dict[int, float]:
        """Return the derivatives c_k of the replaced parameter; its own place holds the one by omega."""
        x = theta[self.replaced]
        if self.replaced == self.vol_of_vol:
            return {
                self.mean_reversion: 0.5 * x / theta[self.mean_reversion],
                self.long_variance: 0.5 * x / theta[self.long_variance],
                self.replaced: x / omega,
            }
        return {self.long_variance: -x / theta[self.long_variance], self.replaced: -2.0 * x / omega}


Bounds = Mapping[str, tuple[float, float]]
Picked = Callable[[tuple[float, ...]], tuple[float, ...]]

# Parameters that act through a product with a second one, wherever a model has both (see loop.py).
PRODUCTS = {
    "long_variance": "mean_reversion",
    "correlation": "vol_of_vol",
    "jump_mean": "jump_intensity",
    "jump_deviation": "jump_intensity",
}
SMALLEST_SHARE = 1e-3  # of the largest vol_of_vol that Feller's condition allows


@dataclass(frozen=True)
class Coordinates:
    """The free coordinates u of a calibration and their way to the parameters theta.

    u is theta without the fixed parameters; where ``share`` is set, one of them is replaced by Feller's omega.
    """

    names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    fixed: dict[int, float]
    box: Box
    free: tuple[int, ...]
    share: FellerShare | None = None

    def on_edge(self, held: Iterable[int], u: Sequence[float]) -> set[int]:
        """Return which of the coordinates held on bounds are at an edge of the model: nothing lies beyond."""
        return {i for i in held if i in self.box.edges and u[i] <= self.box.lower[i]}

    @property
    def replaced(self) -> set[int]:
        """The parameter that Feller's omega replaces, if any."""
        return set() if self.share is None else {self.share.replaced}

    def at(self, u: Sequence[float], values: Mapping[str, float]) -> list[float]:
        """Return the point with the free ones of these parameters moved there, or to the nearest of their bounds."""
        given = [values.get(self.names[i], x) for i, x in zip(self.free, u, strict=True)]
        return [min(max(x, lo), hi) for x, lo, hi in zip(given, self.box.lower, self.box.upper, strict=True)]

    def pinned(self, u: Sequence[float], names: Iterable[str]) -> Coordinates:
        """Return the coordinates with bounds that leave these parameters no other value than at u."""
        held = [self.names[i] in names for i in self.free]
        lower = tuple(x if h else lo for x, h, lo in zip(u, held, self.box.lower, strict=True))
        upper = tuple(x if h else hi for x, h, hi in zip(u, held, self.box.upper, strict=True))
        return replace(self, box=replace(self.box, lower=lower, upper=upper))

    def theta(self, u: Sequence[float]) -> list[float]:
        """Return the parameters; not-a-number throughout where the replaced one would leave its bounds."""
        if not self.fixed and self.share is None:
            return list(u)
        theta = [self.fixed.get(i, 0.0) for i in range(len(self.names))]
        for i, x in zip(self.free, u, strict=True):
            theta[i] = x
        if self.share is not None:
            r = self.share.replaced
            theta[r] = self.share.value(theta, theta[r])
            if not self.lower[r] <= theta[r] <= self.upper[r]:
                return [nan] * len(theta)
        return theta

    def named(self, u: Sequence[float]) -> dict[str, float]:
        """Return the parameters by name."""
        return dict(zip(self.names, self.theta(u), strict=True))

    def point(self, theta: Sequence[float]) -> list[float]:
        """Return the coordinates of theta, moved inside the box where it lies outside or on a wall."""
        values = list(theta)
        for i, x in self.fixed.items():
            values[i] = x
        if self.share is not None:
            values[self.share.replaced] = self.share.omega(values)
        inside = []
        for i, lo, hi in zip(self.free, self.box.lower, self.box.upper, strict=True):
            x = values[i]
            width = hi - lo if hi - lo < inf else max(abs(lo) if lo > -inf else 0.0, abs(x))
            margin = 0.05 * width if lo <= 0.0 else 0.05 * min(lo, width)
            low, high = lo + margin, hi - min(margin, 0.05 * width)
            inside.append(x if low <= x <= high else min(max(x, low), high))
        return inside

    def system(self, equations: Linearization, u: Sequence[float], theta: Sequence[float]) -> Evaluation:
        """Return the normal equations of theta, in u."""
        if self.share is None:
            triangle, (curvature, score) = equations.triangle, self._picked
            return Evaluation(
                [list(row(triangle)) for row in curvature], list(score(triangle)), triangle[-1], equations
            )
        free, p = self.free, len(self.names)
        slopes = self.share.slopes(theta, u[free.index(self.share.replaced)])
        rows = _chained(equations.rows, self.share.replaced, slopes)
        return Evaluation(
            [[rows[i][j] for j in free] for i in free], [rows[p][i] for i in free], equations.cost, equations
        )

    @cached_property
    def _picked(self) -> tuple[list[Picked], Picked]:
        """From a triangle, the rows of the curvature and the score of the free parameters."""
        of, free = places(len(self.names) + 1), self.free
        return [_picked([of[i][j] for j in free]) for i in free], _picked([of[-1][i] for i in free])

    def variances(self, covariance: Sequence[Sequence[float]], u: Sequence[float], kept: Sequence[int]) -> list[float]:
        """Return variances of all parameters from the covariance of the kept coordinates; not-a-number if there is
        none."""
        out = [nan] * len(self.names)
        place = {self.free[k]: n for n, k in enumerate(kept)}
        for i, n in place.items():
            out[i] = covariance[n][n]
        if self.share is not None:
            slopes = self.share.slopes(self.theta(u), u[self.free.index(self.share.replaced)])
            c = [(place[i], slope) for i, slope in slopes.items() if i in place]
            out[self.share.replaced] = sum(a * b * covariance[m][n] for m, a in c for n, b in c) if c else nan
        return out


def coordinates_of(
    space: ParameterSpace, *, bounds: Bounds | None, fixed: Mapping[str, float] | None, enforce_feller: bool
) -> Coordinates:
    """Return the coordinates of a calibration with these bounds and fixed parameters."""
    if bounds or fixed:
        return _coordinates_of(space, bounds or {}, fixed or {}, enforce_feller=enforce_feller)
    return _plain_coordinates(space, enforce_feller=enforce_feller)


@lru_cache(maxsize=16)
def _plain_coordinates(space: ParameterSpace, *, enforce_feller: bool) -> Coordinates:
    """Return those without bounds or fixed parameters of one's own: found once for a model, whose space is one
    value."""
    return _coordinates_of(space, {}, {}, enforce_feller=enforce_feller)


def _coordinates_of(
    space: ParameterSpace, bounds: Bounds, fixed: Mapping[str, float], *, enforce_feller: bool
) -> Coordinates:
    names = space.names
    lower, upper = _bounds(space, bounds)
    held = {names.index(_known(name, names, "fixed")): float(value) for name, value in fixed.items()}
    for i in range(len(names)):
        if i not in held and lower[i] == upper[i]:
            held[i] = lower[i]
        if i in held and not lower[i] <= held[i] <= upper[i]:
            raise ParameterError(
                f"fixed {names[i]} = {held[i]:g} lies outside its bounds [{lower[i]:g}, {upper[i]:g}]. "
                "Fix it inside, or widen the bounds.",
                parameter=names[i],
            )
    free = tuple(i for i in range(len(names)) if i not in held)
    if not free:
        raise ParameterError("Every parameter is fixed: nothing is left to calibrate. Leave one free.")
    share = _feller(names, held, lower, upper) if enforce_feller else None
    low, high = [lower[i] for i in free], [upper[i] for i in free]
    if share is not None:
        at = free.index(share.replaced)
        low[at], high[at] = SMALLEST_SHARE, 1.0
    place = {i: n for n, i in enumerate(free)}
    pairs = tuple(
        (place[a], place[b])
        for a, b in _products(names)
        if a in place
        and b in place
        and low[place[b]] > 0.0
        and not (share and b == share.replaced == share.mean_reversion)
    )
    # A bound that was asked for is a bound like any other.
    edges = tuple(n for n, i in enumerate(free) if names[i] in space.edges and lower[i] == space.lower[i])
    box = Box(tuple(low), tuple(high), pairs, edges)
    return Coordinates(names, tuple(lower), tuple(upper), held, box, free, share)


@lru_cache(maxsize=64)
def _products(names: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Return parameters and what they act through a product with: ``correlation[0.5]`` with ``vol_of_vol[0.5]``."""
    parts = [name.partition("[") for name in names]
    pairs = [(i, "".join((PRODUCTS[part[0]], *part[1:]))) for i, part in enumerate(parts) if part[0] in PRODUCTS]
    return tuple((i, names.index(other)) for i, other in pairs if other in names)


def _bounds(space: ParameterSpace, bounds: Bounds) -> tuple[list[float], list[float]]:
    lower, upper = space.lower.tolist(), space.upper.tolist()
    for name, (low, high) in bounds.items():
        i = space.names.index(_known(name, space.names, "bounds"))
        if not low <= high:
            raise ParameterError(
                f"bounds of {name}: ({low:g}, {high:g}) contain no number. Give lower before upper (",
                Argument("bounds", ...),
                ").",
            )
        if low < lower[i] or high > upper[i]:
            raise ParameterError(
                Argument("bounds"),
                f" of {name}: ({low:g}, {high:g}) reach beyond where the model can be priced, "
                f"[{lower[i]:g}, {upper[i]:g}]. Give bounds inside.",
                parameter=name,
            )
        lower[i], upper[i] = float(low), float(high)
    return lower, upper


def _known(name: str, names: tuple[str, ...], where: str) -> str:
    if name not in names:
        raise ParameterError(
            Argument(where),
            f" names {name!r}, no parameter of the model.{did_you_mean(name, (*names, *ALIASES))} They are "
            f"{', '.join(names)}.",
            name=name,
        )
    return name


def _feller(
    names: tuple[str, ...], fixed: Mapping[int, float], lower: list[float], upper: list[float]
) -> FellerShare | None:
    """Return omega if two or more of the three are free; if one is, set a bound; otherwise check the values."""
    if not all(name in names for name in NAMES):
        raise ParameterError(
            Argument("feller", "enforce"),
            f" needs a model with {', '.join(NAMES)}. Use ",
            Argument("feller", "ignore"),
            ".",
        )
    k, t, s = names.index(MEAN_REVERSION), names.index(LONG_VARIANCE), names.index(VOL_OF_VOL)
    loose = [i for i in (k, t, s) if i not in fixed]
    if len(loose) >= 2:
        return FellerShare(k, t, s, replaced=s if s in loose else k)
    if loose == [s]:
        upper[s] = min(upper[s], sqrt(2.0 * fixed[k] * fixed[t]))
    elif loose:
        other = t if loose == [k] else k
        lower[loose[0]] = max(lower[loose[0]], fixed[s] * fixed[s] / (2.0 * fixed[other]))
    if any(lower[i] > upper[i] for i in loose) or (not loose and 2.0 * fixed[k] * fixed[t] < fixed[s] * fixed[s]):
        raise ParameterError(
            "The fixed parameters and the bounds leave no point that meets Feller's condition, "
            "2 mean_reversion long_variance >= vol_of_vol^2. Fix fewer, or use ",
            Argument("feller", "warn"),
            ".",
        )
    return None


def _picked(at: list[int]) -> Picked:
    """Return the numbers at these places; faster than a loop, and the loop of a search does little else."""
    return itemgetter(*at) if len(at) > 1 else itemgetter(slice(at[0], at[0] + 1))


def _chained(rows: list[list[float]], r: int, slopes: Mapping[int, float]) -> list[list[float]]:
    """``C' M C`` for the C that differs from the identity in row r alone."""
    size = len(rows)
    c = [slopes.get(i, 0.0) for i in range(size)]
    half = [[(0.0 if j == r else row[j]) + row[r] * c[j] for j in range(size)] for row in rows]
    return [[(0.0 if i == r else half[i][j]) + c[i] * half[r][j] for j in range(size)] for i in range(size)]
