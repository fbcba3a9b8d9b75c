"""How much a calibration can be relied on: what its residuals share, and what the quotes determine.

symbol  meaning
e       weighted residuals; under a robust loss how they pull
r_k     autocorrelation of e at lag k: sum of e_i e_(i+k) over sum of e_i^2, each over the pairs there are
m       quotes of one slice (one date and expiry), sorted by log-moneyness
n_eff   sum over slices of m^2 / (m + 2 sum over k of (m - k) r_k): as many independent quotes have this mean error
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import fit
from strikeout.calibration.deletions import QuoteRows, cells_of, days_of, deletions, panel_deletions
from strikeout.calibration.latent_prior import refuse_prior
from strikeout.calibration.panels import LABEL
from strikeout.calibration.quote_rows import free_names, panel_rows, quote_rows
from strikeout.calibration.summary import html_table
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.normal import two_sided
from strikeout.quotes.contracts import Features
from strikeout.statistics.losses import SQUARED
from strikeout.text import Argument, as_lines, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration


LAGS = 40
FEW_PAIRS = 20  # with fewer pairs of neighbours there is no autocorrelation to report
EXPIRY_CELLS, STRIKE_CELLS = 3, 5  # cells in which residuals are averaged to compare one date with the next
POOR = 0.25  # a standard error above this share of the parameter is badly identified: its interval is profiled
CLOSE = 0.8  # correlations of parameters from here on are listed
DOUBLINGS = 8  # of the distance at which the end of a profile interval is looked for
HALVINGS = 8


@dataclass(frozen=True)
class ProfileInterval:
    """The values of a parameter at which the others still fit the quotes nearly as well.

    ``low`` and ``high`` are not-a-number if the cost does not rise enough before the bound of the parameter: the quotes
    do not bound it on that side. ``wald`` is the symmetric interval of the standard error, for comparison.
    """

    name: str
    value: float
    low: float
    high: float
    wald: tuple[float, float]
    level: float


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics:
    """What the residuals of a calibration share, and what its quotes determine; see ``Calibration.diagnostics``.

    Attributes:
        count: quotes that count.
        strike_correlation: autocorrelation of weighted residuals from strike to strike, at lags 1, 2, ...; empty with
            too few neighbours.
        date_correlation: correlation of residuals, averaged by expiry and moneyness, from one date to the next;
            not-a-number without several dates.
        effective: how many independent quotes would have the same mean error, given ``strike_correlation``.
        effective_by_parameter: quotes over the squared ratio of clustered to independent errors.
        names, correlation: of the estimated (shared) parameters.
        profiles: intervals of parameters that are badly identified, or were asked for.
        ids, leverage, studentized, residual: one per quote, in the order of the quotes. Leverage is the share of the
            information on the parameters that a quote has; ``residual`` is weighted.
    """

    count: int
    strike_correlation: tuple[float, ...]
    date_correlation: float
    effective: float
    effective_by_parameter: Mapping[str, float]
    names: tuple[str, ...]
    correlation: Floats
    profiles: tuple[ProfileInterval, ...]
    ids: NDArray[Any]
    leverage: Floats
    studentized: Floats
    residual: Floats
    errors: str  # the unit of the errors, in words

    @property
    def high_leverage(self) -> Mask:
        """Which quotes have more than three times the average leverage."""
        return np.asarray(self.leverage > 3.0 * np.mean(self.leverage[self.leverage > 0.0], dtype=float))

    def summary(self) -> str:
        """Return all of it as plain text."""
        lines = [f"{name:<{self._width}}  {value}" for name, value in self.facts()]
        heads, rows = self.correlation_table()
        lines += ["", "correlation of the parameters", *_aligned([heads, *rows])]
        if self.profiles:
            lines += ["", "profile intervals", *_aligned([PROFILED, *self.profile_rows()])]
        return as_lines(lines)

    def facts(self) -> list[tuple[str, str]]:
        """Return the name and the text of each finding but tables."""
        lag = self.strike_correlation[0] if self.strike_correlation else nan
        strikes = f"{lag:.2f} from one strike to the next" if isfinite(lag) else "too few neighbouring strikes"
        step = self.date_correlation
        dates = f"{step:.2f} from one date to the next" if isfinite(step) else "too few dates"
        facts = [
            ("residuals", f"autocorrelation {strikes}; {dates}"),
            ("effective quotes", f"{self.effective:,.0f} of {self.count:,}, by the correlation of strikes"),
            ("errors", self.errors),
        ]
        by = {n: x for n, x in self.effective_by_parameter.items() if isfinite(x) and x != self.count}
        if by:
            worth = (f"{name} {f'{value:,.0f}' if value >= 1.0 else 'below 1'}" for name, value in by.items())
            facts.append(("by parameter", ", ".join(worth)))
        high = int(np.count_nonzero(self.high_leverage))
        most = float(np.max(self.leverage, initial=0.0))
        facts.append(("leverage", f"at most {most:.3g}; {many(high, 'quote')} with more than three times the average"))
        close = [
            f"{self.names[i]} and {self.names[j]} {self.correlation[i, j]:+.2f}"
            for i in range(len(self.names))
            for j in range(i)
            if abs(self.correlation[i, j]) >= CLOSE
        ]
        facts.append(("close to each other", ", ".join(close) or f"no correlation of parameters above {CLOSE:g}"))
        return facts

    @property
    def _width(self) -> int:
        return max(len(name) for name, _ in self.facts())

    def correlation_table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the heads and the rows of the table of correlations, below the diagonal."""
        rows = [
            (name, *(f"{self.correlation[i, j]:+.2f}" if j < i else "" for j in range(len(self.names) - 1)))
            for i, name in enumerate(self.names)
        ]
        return ("", *self.names[:-1]), rows

    def profile_rows(self) -> list[tuple[str, ...]]:
        """Return one row of text per profile interval."""
        return [
            (
                one.name,
                f"{one.value:.5g}",
                f"{one.low:.5g}" if isfinite(one.low) else "not bounded",
                f"{one.high:.5g}" if isfinite(one.high) else "not bounded",
                f"{one.wald[0]:.5g} to {one.wald[1]:.5g}" if isfinite(one.wald[0]) else "-",
            )
            for one in self.profiles
        ]

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per quote: id, leverage, studentized residual, weighted residual.

        Raises:
            UsageError: another library than "polars", "pandas" or "pyarrow".
        """
        from strikeout.tables import frame_from

        columns = {"id": np.asarray(self.ids), "leverage": self.leverage}
        return frame_from({**columns, "studentized": self.studentized, "residual": self.residual}, library)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without those of single quotes; a number that does not exist is None."""
        return {
            "count": self.count,
            "strike_correlation": [_known(x) for x in self.strike_correlation],
            "date_correlation": _known(self.date_correlation),
            "effective": _known(self.effective),
            "effective_by_parameter": {name: _known(x) for name, x in self.effective_by_parameter.items()},
            "parameters": list(self.names),
            "correlation": [[_known(x) for x in row] for row in self.correlation.tolist()],
            "largest_leverage": _known(float(np.max(self.leverage, initial=0.0))),
            "profiles": [
                {
                    "parameter": one.name,
                    "value": one.value,
                    "low": _known(one.low),
                    "high": _known(one.high),
                    "wald": [_known(x) for x in one.wald],
                    "level": one.level,
                }
                for one in self.profiles
            ],
            "errors": self.errors,
        }

    def __repr__(self) -> str:
        return f"<Diagnostics of {many(self.count, 'quote')}: {self.effective:,.0f} effective>"

    def _repr_html_(self) -> str:
        heads, rows = self.correlation_table()
        text = html_table(heads, rows, [f"{name}: {value}" for name, value in self.facts()])
        return text + (html_table(PROFILED, self.profile_rows()) if self.profiles else "")


PROFILED = ("parameter", "value", "from", "to", "by its standard error")


def diagnostics(
    calibration: Calibration, *, profiles: str | Sequence[str] = "auto", level: float = 0.95
) -> Diagnostics:
    """Return the diagnostics of a calibration; see ``Calibration.diagnostics``."""
    if not 0.0 < level < 1.0:
        raise UsageError(f"diagnostics: level {level:g} is not between 0 and 1. Give 0.95, for example.")
    refuse_prior(calibration, "diagnostics")
    asked = _profiled(calibration, profiles)
    e, place = _weighted_residuals(calibration)
    rho = _along_strikes(e, place)
    found = _single_deletions(calibration)
    errors = calibration.errors
    count = calibration.count
    ratios = {name: errors.ratios.get(name, nan) for name in errors.names}
    return Diagnostics(
        count=count,
        strike_correlation=tuple(rho),
        date_correlation=_along_dates(calibration, e),
        effective=_effective(place, rho),
        effective_by_parameter={n: count / (x * x) if isfinite(x) and x > 0.0 else nan for n, x in ratios.items()},
        names=errors.names,
        correlation=_correlation(errors.covariance),
        profiles=tuple(_profile(calibration, name, level) for name in asked),
        ids=np.asarray(calibration.used.ids),
        leverage=found[0],
        studentized=found[1],
        residual=e,
        errors=errors.sentence,
    )


def _profiled(calibration: Calibration, profiles: str | Sequence[str]) -> list[str]:
    """Return the parameters whose intervals are profiled."""
    free = [*free_names(calibration)]
    if profiles == "all":
        return free
    if profiles == "none":
        return []
    if profiles == "auto":
        is_optimum = calibration.converged or calibration.termination is Termination.NOT_IDENTIFIED
        if calibration.loss != SQUARED or not is_optimum:
            return []
        ratios, plain = calibration.errors.ratios, calibration.relative_errors
        wide = {name: plain[name] * max(ratios.get(name, 1.0), 1.0) for name in free}
        return [name for name in free if not wide[name] <= POOR]
    names = [profiles] if isinstance(profiles, str) else list(profiles)
    for name in names:
        if name not in free:
            raise UsageError(
                f"profiles: {name!r} is not an estimated parameter. Use "
                f'{", ".join(free)}, or one of "auto", "all" and "none".',
                name=name,
            )
    if names and calibration.loss != SQUARED:
        raise UsageError(
            "profiles need a likelihood, and under ",
            Argument("loss", calibration.loss),
            " there is not one.",
        )
    return names


def _weighted_residuals(calibration: Calibration) -> tuple[Floats, list[Rows]]:
    """Return e in the order of the quotes, and the rows of every slice, sorted by log-moneyness."""
    if calibration.is_panel:
        panel = panel_rows(calibration)
        e = panel.rows[:, -1] if panel.pull is None else panel.pull
        counted = panel.counted > 0.0
    else:
        plain, _ = quote_rows(calibration)
        e, counted = plain.pull, plain.counted > 0.0
    quotes = calibration.used
    c = quotes.contracts
    if isinstance(c, Features):
        return e, []
    dates = quotes.labels.get(LABEL)
    day = np.zeros(len(quotes), np.intp) if dates is None else np.unique(dates.astype(str), return_inverse=True)[1]
    order = np.lexsort((c.log_moneyness, c.expiry, day))
    order = order[counted[order]]
    new = (np.diff(c.expiry[order]) != 0.0) | (np.diff(day[order]) != 0)
    return e, np.split(order, np.flatnonzero(new) + 1) if len(order) else []


def _along_strikes(e: Floats, slices: Sequence[Rows]) -> list[float]:
    """Return the autocorrelation at lags 1, 2, ...: the lag product over the mean square, pooled over slices."""
    total, count = sum(_dot(e[rows], e[rows]) for rows in slices), sum(map(len, slices))
    found: list[float] = []
    for lag in range(1, LAGS + 1):
        pairs = sum(max(len(rows) - lag, 0) for rows in slices)
        if pairs < FEW_PAIRS or not total > 0.0:
            break
        product = sum(_dot(e[rows[lag:]], e[rows[:-lag]]) for rows in slices if len(rows) > lag)
        found.append((product / pairs) / (total / count))
    return found


def _effective(slices: Sequence[Rows], rho: Sequence[float]) -> float:
    """Return n_eff; correlations count up to the first that is not positive, as usual for a sum of estimates."""
    stop = next((k for k, r in enumerate(rho) if not r > 0.0), len(rho))
    total = 0.0
    for rows in slices:
        m = len(rows)
        shared = sum((m - k) * r for k, r in enumerate(rho[:stop], 1) if m > k)
        total += m * m / (m + 2.0 * shared)
    return total if slices else nan


def _along_dates(calibration: Calibration, e: Floats) -> float:
    """Return the correlation of residuals from one date to the next, averaged in cells of expiry and moneyness."""
    quotes = calibration.used
    dates, c = quotes.labels.get(LABEL), quotes.contracts
    if dates is None or isinstance(c, Features):
        return nan
    names, day = np.unique(dates.astype(str), return_inverse=True)
    if len(names) < 3:
        return nan
    cell = _ranked(c.expiry, EXPIRY_CELLS) * STRIKE_CELLS + _ranked(c.log_moneyness, STRIKE_CELLS)
    size = EXPIRY_CELLS * STRIKE_CELLS
    sums = np.bincount(day * size + cell, e, len(names) * size).reshape(len(names), size)
    held = np.bincount(day * size + cell, minlength=len(names) * size).reshape(len(names), size)
    means = np.where(held > 0, sums / np.maximum(held, 1), nan)
    a, b = means[:-1].ravel(), means[1:].ravel()
    both = np.isfinite(a) & np.isfinite(b)
    if np.count_nonzero(both) < FEW_PAIRS:
        return nan
    a, b = a[both], b[both]
    scale = sqrt(_dot(a, a) * _dot(b, b))
    return _dot(a, b) / scale if scale > 0.0 else nan


def _ranked(values: Floats, cells: int) -> Rows:
    edges = np.quantile(values, np.linspace(0.0, 1.0, cells + 1)[1:-1])
    return np.searchsorted(edges, values, side="right")


def _single_deletions(calibration: Calibration) -> tuple[Floats, Floats]:
    """Return leverage and studentized residual of every quote, each struck out on its own."""
    number = np.arange(len(calibration.used))
    try:
        if not calibration.is_panel:
            evidence, _ = quote_rows(calibration)
            assert isinstance(evidence, QuoteRows)
            found = deletions(evidence, number, len(number))
        else:
            panel = panel_rows(calibration)
            days = days_of(panel)
            found = panel_deletions(panel, cells_of(panel, number, days), days, len(number))
    except np.linalg.LinAlgError as error:
        raise RefusedError(
            "diagnostics: the quotes do not determine the parameters. Calibrate with the undetermined ones fixed (",
            Argument("fixed", ...),
            ").",
        ) from error
    return found.leverage, found.studentized


def _correlation(covariance: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(np.diag(covariance))
        return np.asarray(covariance / scale[:, None] / scale[None, :])


def _profile(calibration: Calibration, name: str, level: float) -> ProfileInterval:
    """Return where the cost, all other parameters refitted, has risen by what the level allows."""
    value, error = calibration.parameters[name], calibration.errors.standard_errors[name]
    error = error if isfinite(error) else calibration.standard_errors[name]
    plain = calibration.standard_errors[name]
    ratio = error / plain if plain > 0.0 and isfinite(plain) else 1.0
    freedom = calibration.errors.freedom
    q = two_sided(level, freedom)
    moving = len(free_names(calibration)) + len(calibration.latent) - len(calibration.latent_on_bound)
    noise = calibration.cost / max(calibration.count - moving, 1)
    # In clusters the cost rises ratio^2 times slower than its likelihood would: the same limit, scaled.
    limit = noise * (q * ratio) * (q * ratio)
    space = calibration.model.parameters
    place = space.names.index(name)
    own = (calibration.settings.bounds or {}).get(name, (float(space.lower[place]), float(space.upper[place])))
    width = q * error if isfinite(error) and error > 0.0 else abs(value) or 1.0
    ends = []
    for bound, sign in zip(own, (-1.0, 1.0), strict=True):
        ends.append(_end(calibration, name, limit, bound, sign, width))
    return ProfileInterval(name, value, ends[0], ends[1], (value - q * error, value + q * error), level)


def _end(calibration: Calibration, name: str, limit: float, bound: float, sign: float, width: float) -> float:
    """Return the value on one side at which the cost has risen by the limit; not-a-number if the bound comes first."""
    value, near, step = calibration.parameters[name], 0.0, width
    room = abs(bound - value)
    far = nan
    risen = {0.0: 0.0}
    for _ in range(DOUBLINGS):
        reach = min(step, 0.999999 * room)
        risen[reach] = _risen(calibration, name, value + sign * reach)
        if not risen[reach] < limit:
            far = reach
            break
        near, step = reach, 2.0 * step
        if reach >= 0.999 * room:
            break
    if not isfinite(far):
        return nan
    for _ in range(HALVINGS):
        # The root of the rise is nearly a straight line: a chord through it, kept inside the interval.
        a, b = sqrt(max(risen[near], 0.0)), sqrt(max(risen[far], 0.0)) if isfinite(risen[far]) else nan
        share = (sqrt(limit) - a) / (b - a) if isfinite(b) and b > a else 0.5
        at = near + min(max(share, 0.1), 0.9) * (far - near)
        risen[at] = _risen(calibration, name, value + sign * at)
        near, far = (at, far) if risen[at] < limit else (near, at)
        if abs(sqrt(max(risen[at], 0.0)) - sqrt(limit)) < 1e-3 * sqrt(limit):
            return value + sign * at
    return value + sign * 0.5 * (near + far)


def _risen(calibration: Calibration, name: str, value: float) -> float:
    """Return by how much the cost is above the lowest, with one parameter held there and the others refitted."""
    how = calibration.settings
    others = {n: x for n, x in calibration.parameters.items() if n != name}
    name_of_latent = calibration.latent_name
    latent = {} if name_of_latent is None else {name_of_latent: next(iter(calibration.latent.values()))}
    settings = replace(
        how,
        fixed={**(how.fixed or {}), name: value},
        starts={**others, **latent, name: value},
        panel=calibration.panel,
        feller="ignore" if how.feller == "warn" else how.feller,
        errors="independent",
    )
    try:
        found = fit(calibration.book, calibration.asked, **settings.keywords())
    except RefusedError:
        return nan
    return found.cost - calibration.cost


def _dot(a: Floats, b: Floats) -> float:
    return float(np.add.reduce(a * b))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([head.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip() for head, *cells in rows]


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
