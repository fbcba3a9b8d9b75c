"""The variance of a panel from date to date, filtered and smoothed by the model's own dynamics.

    symbol  meaning
    y_t     the latent parameter of date t, as its own quotes determine it given the shared parameters
    J_t     its information, H_xx / s^2: H_xx from the exact state of the date, s^2 the noise of a weighted residual
    h_t     how y_t follows the shared parameters, -H_xi / H_xx, one number per shared parameter
    C       covariance of the shared parameters

Given the shared parameters, each date determines its variance through a parabola: y_t and J_t. These are the
observations of a linear Gaussian state (kernels/state_space.py) that moves as variance_steps.py states. A variance has
the error of the filter and, through h_t, that of the shared parameters. The steps themselves are taken as known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.latent_prior import refuse_prior
from strikeout.calibration.latent_problem import problem_again
from strikeout.calibration.panels import grouped
from strikeout.calibration.settings import Settings
from strikeout.calibration.summary import finite, table_html
from strikeout.calibration.variance_steps import Dates, VarianceSteps, as_dates, dates_of
from strikeout.errors import UnknownIdError, UsageError
from strikeout.kernels.state_space import Belief, Filtered, filter_states, look_back, predict, smooth_states
from strikeout.kernels.symmetric import inverse
from strikeout.models.model import Model
from strikeout.statistics.linearize import normal_equations_of
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.tables import Cell, Table, number
from strikeout.text import Argument, as_lines, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes


COLUMNS = (
    "observed", "observed_error", "filtered", "filtered_error", "smoothed", "smoothed_error", "surprise",
)  # fmt: skip


@dataclass(frozen=True)
class Observation:
    """What the quotes of one date determine of its variance, given the shared parameters."""

    date: str
    value: float
    information: float
    follows: tuple[float, ...]  # h_t, of the shared parameters that were estimated
    quotes: int

    @property
    def belief(self) -> Belief:
        """What is known of the variance if nothing else is."""
        return Belief(np.array([self.value, *self.follows]), 1.0 / self.information)


@dataclass(frozen=True)
class Shared:
    """What a path keeps of its panel: everything but the quotes and the dates."""

    model: Model
    settings: Settings
    parameters: dict[str, float]
    latent: str
    label: str
    free: tuple[int, ...]  # numbers of the shared parameters that were estimated
    covariance: tuple[tuple[float, ...], ...]
    noise: float  # variance of a weighted residual
    converged: bool


@dataclass(frozen=True, eq=False, repr=False)
class VariancePath:
    """The variance of a panel by date: observed, filtered (from this date and earlier ones), smoothed (from all dates).

    Errors are standard errors: of the filter, and of the shared parameters. ``surprise`` is by how much a date's own
    variance misses what the dates before it predict, in standard deviations of that prediction. Dates without quotes
    have no observation.
    """

    shared: Shared
    steps: VarianceSteps
    observations: tuple[Observation, ...]
    asked: tuple[str, ...] = ()  # dates without quotes
    known: Filtered | None = None  # the filter of the first observations

    @property
    def strength(self) -> float:
        """The strength of the prior: 0 none, 1 the model's."""
        return self.steps.strength

    @cached_property
    def dates(self) -> tuple[str, ...]:
        """All dates in order, those without quotes included."""
        return tuple(sorted({*(one.date for one in self.observations), *self.asked}))

    @property
    def log_likelihood(self) -> float:
        """The log density of all observations but the first, each given those before it."""
        return fsum(self._forward.log_density)

    @cached_property
    def observed(self) -> dict[str, float]:
        """The variance that each date's own quotes determine."""
        return {one.date: one.value for one in self.observations}

    @property
    def filtered(self) -> dict[str, float]:
        """The variance of each date from its quotes and those of earlier dates."""
        return {date: float(belief.M[0]) for date, belief in self._filtered.items()}

    @property
    def filtered_errors(self) -> dict[str, float]:
        return {date: self._error(belief) for date, belief in self._filtered.items()}

    @property
    def smoothed(self) -> dict[str, float]:
        """The variance of each date from the quotes of all dates."""
        return {date: float(belief.M[0]) for date, belief in self._smoothed.items()}

    @property
    def smoothed_errors(self) -> dict[str, float]:
        return {date: self._error(belief) for date, belief in self._smoothed.items()}

    @cached_property
    def surprises(self) -> dict[str, float]:
        """The surprise of every observation but the first."""
        return {
            one.date: (one.value - float(before.M[0])) / sqrt(1.0 / one.information + before.P)
            for one, before in zip(self.observations[1:], self._forward.before, strict=True)
        }

    def without(self, dates: str | Iterable[str]) -> VariancePath:
        """Return the path as if the quotes of these dates had never been seen, at the same shared parameters.

        To refit the shared parameters too, forget the quotes (``so.forget``) and filter the result.

        Raises:
            UnknownIdError: a date that has no quotes here.
            UsageError: no date is left.
        """
        gone = {dates} if isinstance(dates, str) else set(dates)
        unknown = sorted(gone - {one.date for one in self.observations})
        if unknown:
            raise UnknownIdError(f"{unknown[0]}: the path has no quotes of this date.", ids=unknown)
        kept = tuple(one for one in self.observations if one.date not in gone)
        if not kept:
            raise UsageError("A path needs a date with quotes, and none is left.")
        return replace(self, observations=kept, known=None)

    def roll(self, quotes: Quotes) -> VariancePath:
        """Return the path with the quotes of further dates, at the same shared parameters: a filter step per date.

        Raises:
            UsageError: a date that the path has already, or a label that is not a date.
        """
        new = _observe(self.shared, quotes)
        as_dates([one.date for one in new], self.shared.label)
        again = sorted({one.date for one in new} & {one.date for one in self.observations})
        if again:
            raise UsageError(f"{again[0]}: the path has quotes of this date already. Leave the date out first.")
        joined = tuple(sorted((*self.observations, *new), key=lambda one: one.date))
        is_later = all(one.date > self.observations[-1].date for one in new)
        return replace(self, observations=joined, known=self._forward if is_later else None)

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per date.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library.
        """
        from strikeout.tables import frame_from

        return frame_from(self.columns(), library)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of ``to_frame``; a missing number is not-a-number."""
        errors = {one.date: self._error(one.belief) for one in self.observations}
        columns = (
            self.observed, errors, self.filtered, self.filtered_errors, self.smoothed, self.smoothed_errors,
            self.surprises,
        )  # fmt: skip
        counts = {one.date: one.quotes for one in self.observations}
        return {
            self.shared.label: np.array(self.dates, dtype=object),
            "quotes": np.array([counts.get(date, 0) for date in self.dates]),
            **{
                name: np.array([found.get(date, nan) for date in self.dates])
                for name, found in zip(COLUMNS, columns, strict=True)
            },
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None."""
        return {
            "parameter": self.shared.latent,
            "by": self.shared.label,
            "strength": finite(self.strength),
            "log_likelihood": finite(self.log_likelihood),
            "mean_surprise": finite(self.mean_surprise),
            **{
                name: [finite(x) if isinstance(x, float) else x for x in column.tolist()]
                for name, column in self.columns().items()
            },
        }

    @property
    def mean_surprise(self) -> float:
        """The root mean square of the surprises: one if the variance moves as the model states."""
        found = [x * x for x in self.surprises.values()]
        return sqrt(fsum(found) / len(found)) if found else nan

    def table(self) -> Table:
        """Return one row per date."""
        columns = self.columns()
        rows: list[tuple[Cell, ...]] = [
            (date, number(count, ",d"), *(number(columns[name][n]) for name in COLUMNS))
            for n, (date, count) in enumerate(zip(self.dates, columns["quotes"].tolist(), strict=True))
        ]
        heads = (self.shared.label, "quotes", *(name.replace("_", " ") for name in COLUMNS))
        return Table(heads, rows, numbers=range(1, len(heads)), whole=(0,), spare=(1, 3, 2, 8))

    def facts(self) -> list[str]:
        """Return what the path shows as a whole, in sentences."""
        first, last = self.dates[0], self.dates[-1]
        span = first if first == last else f"{first} to {last}"
        at = list(self._filtered.values())[-1]
        lines = [
            f"{self.shared.latent} by {self.shared.label}: {many(len(self.observations), 'observation')}, {span}",
            f"filtered on {last}: {float(at.M[0]):.6g}, standard error {self._error(at):.2g} (of independent quotes)",
        ]
        if self.surprises:
            lines += [
                f"log-likelihood {self.log_likelihood:.6g} at strength {self.strength:g}",
                f"surprises: {self.mean_surprise:.3g} root mean square; 1 if the variance moves as the model states",
            ]
        return lines if self.shared.converged else [*lines, "the panel did NOT converge: do not rely on it"]

    def summary(self) -> str:
        """Return the facts and one line per date."""
        return as_lines([*self.facts(), "", *self.table().to_text().splitlines()])

    def __repr__(self) -> str:
        return f"<VariancePath of {many(len(self.dates), 'date')}, strength {self.strength:g}>"

    def _repr_html_(self) -> str:
        return table_html(self.table(), self.facts())

    @cached_property
    def _days(self) -> Dates:
        return as_dates([one.date for one in self.observations], self.shared.label)

    @cached_property
    def _forward(self) -> Filtered:
        rows = np.array([one.belief.M for one in self.observations])
        J = np.array([one.information for one in self.observations])
        return filter_states(rows, J, self.steps.chain(self._days), self.known)

    @cached_property
    def _filtered(self) -> dict[str, Belief]:
        return self._with_asked(self._forward.after)

    @cached_property
    def _smoothed(self) -> dict[str, Belief]:
        return self._with_asked(smooth_states(self._forward, self.steps.chain(self._days)), looks_back=True)

    def _with_asked(self, beliefs: Sequence[Belief], *, looks_back: bool = False) -> dict[str, Belief]:
        """Return beliefs by date. Dates without quotes are added afterwards, so that they change no bit of the others.

        Each follows from the date with quotes before it and, if it looks back, from the one after it.
        """
        found = {one.date: belief for one, belief in zip(self.observations, beliefs, strict=True)}
        for date in sorted({*self.asked} - found.keys()):
            day = as_dates([date], self.shared.label)
            n = int(np.searchsorted(self._days, day[0])) - 1
            if n < 0:
                found[date] = Belief(np.full(1 + len(self.shared.free), nan), nan)
                continue
            found[date] = predict(self._forward.after[n], self.steps.between(self._days[n : n + 1], day)[0])
            if looks_back and n + 1 < len(beliefs):
                slope = self.steps.between(day, self._days[n + 1 : n + 2])[0].a
                found[date] = look_back(found[date], slope, self._forward.before[n], beliefs[n + 1])
        return {date: found[date] for date in self.dates}

    def _error(self, belief: Belief) -> float:
        C, h, variance = self.shared.covariance, belief.M[1:].tolist(), belief.P
        for i, row in enumerate(C):
            for j, c in enumerate(row):
                variance += c * (h[i] * h[j])
        return sqrt(variance) if variance >= 0.0 else nan


def filter_panel(panel: Calibration, *, strength: float = 1.0, dates: Iterable[str] = ()) -> VariancePath:
    """Return the filtered and smoothed variance of a panel; see ``Calibration.filter``."""
    steps = VarianceSteps.of(panel, strength)
    dates_of(panel)
    assert panel.latent_name is not None
    assert panel.panel is not None
    refuse_prior(panel, "filter")
    if panel.loss != "squared":
        raise UsageError(
            "filter: the states of dates are those of squared loss. Use ", Argument("loss", "squared"), "."
        )
    held = {*panel.fixed, *panel.on_bound}
    free = tuple(i for i, name in enumerate(panel.parameters) if name not in held)
    noise, rows = panel.cost / freedom_of(panel), panel.equations.rows
    C = inverse([[rows[i][j] for j in free] for i in free])
    shared = Shared(
        model=panel.model,
        settings=panel.settings,
        parameters=panel.parameters,
        latent=panel.latent_name,
        label=panel.panel,
        free=free,
        covariance=tuple(tuple(noise * c for c in row) for row in C),
        noise=noise,
        converged=panel.converged,
    )
    asked = tuple(str(date) for date in dates)
    as_dates(asked, "dates")
    found = (
        _observation(shared, str(group), panel.latent[group], block, held=group in panel.latent_on_bound)
        for group, block in panel.system.blocks.items()
    )
    observations = tuple(one for one in found if one.information > 0.0)
    if not observations:
        raise UsageError(f"filter: no date determines its {shared.latent}. Add quotes.")
    without = {str(group) for group in panel.groups} - {one.date for one in observations}
    return VariancePath(shared, steps, observations, tuple(sorted({*asked, *without})))


def freedom_of(panel: Calibration) -> int:
    """Return quotes less all parameters, latent ones included; at least one."""
    estimated = len(panel.parameters) - len(panel.fixed) - len(panel.on_bound)
    return max(panel.count - estimated - len(panel.latent) + len(panel.latent_on_bound), 1)


def _observation(shared: Shared, date: str, value: float, block: NormalEquations, *, held: bool) -> Observation:
    """Return the observation of a date from its exact state at its own latent parameter."""
    rows, k = block.system().rows, shared.model.parameters.names.index(shared.latent)
    own = rows[k][k]
    across = [x for i, x in enumerate(rows[k][:-1]) if i != k]
    follows = tuple(0.0 if held or not own > 0.0 else -across[i] / own for i in shared.free)
    return Observation(date, value, own / shared.noise, follows, block.count)


def _observe(shared: Shared, quotes: Quotes) -> list[Observation]:
    """Return the observations of the dates of further quotes, at the shared parameters of the path."""
    how, model = shared.settings, shared.model
    groups = grouped(quotes, shared.label)
    problem = problem_again(quotes, groups, model, shared.latent, how)
    at = problem.settle(list(shared.parameters.values()), negligible=0.0)
    found = []
    for n, group in enumerate(problem.objective.parts):
        x, is_held = float(at.latents[n]), bool(at.held[n])
        theta = {name: shared.parameters.get(name, x) for name in model.parameters.names}
        rows = quotes[groups[group]]
        block = normal_equations_of(rows, model, theta, residual=how.residual, weights=how.weights)
        found.append(_observation(shared, str(group), x, block, held=is_held))
    return [one for one in found if one.information > 0.0]
