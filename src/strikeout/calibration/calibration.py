"""The result of a calibration: parameters, their errors, and the exact states of the quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.coordinates import Coordinates, feller_ratio
from strikeout.calibration.latent_prior import refuse_prior
from strikeout.calibration.loop import Visit
from strikeout.calibration.panels import grouped, latent_of
from strikeout.calibration.settings import Settings
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.arrays import Floats, Rows
from strikeout.kernels.symmetric import condition
from strikeout.models.model import Model, Theta
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import footprints_of, normal_equations_of
from strikeout.statistics.normal_equations import NormalEquations, Schema
from strikeout.statistics.second_order import AT_ONCE, QuoteTerms, SecondOrder, quote_terms_of, second_order_of
from strikeout.statistics.system import WHOLE, FootprintBlocks, Group, System
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.diagnostics import Diagnostics
    from strikeout.calibration.fit_errors import FitErrors
    from strikeout.calibration.latent_filter import VariancePath
    from strikeout.calibration.regime_path import RegimePath
    from strikeout.calibration.standard_errors import StandardErrors
    from strikeout.plots.drawing import Drawing
    from strikeout.quotes.quotes import Quotes


@dataclass(frozen=True)
class Step:
    """One accepted step of the best start; ``gradient`` is the length of the next step in standard errors."""

    cost: float
    gradient: float
    damping: float
    parameters: dict[str, float]


class Trace(NamedTuple):
    """The accepted points of the best start, in the coordinates of the search."""

    visits: tuple[Visit, ...]
    coordinates: Coordinates

    def steps(self) -> tuple[Step, ...]:
        """Return the same by parameter."""
        named = self.coordinates.named
        return tuple(Step(v.cost, v.gradient, v.damping, named(v.point)) for v in self.visits)


@dataclass(frozen=True)
class StartEnd:
    """The end of one start; ``agrees`` is true if it is the optimum that was taken."""

    parameters: dict[str, float]
    cost: float
    termination: Termination
    evaluations: int
    agrees: bool


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Parameters by name, their standard errors, and everything needed to judge them.

    ``standard_errors`` are those of independent quotes, the unit of tolerances, moves, influence and certificates.
    ``errors`` has the ones that ``summary()`` prints, clustered unless asked otherwise.

    ``rmse`` is in the currency of the quotes, unweighted; from moments, it is the weighted root mean square. A standard
    error is not-a-number if the parameter was fixed or is held on a bound. ``relative_errors`` are standard errors over
    the size of the parameter (over ``1 - rho^2`` for a correlation). ``equations`` are the normal equations at the
    parameters; in a panel those of the shared parameters, the latent ones eliminated.

    A panel has a ``panel`` label, and for every group of quotes a value of the latent parameter: ``parameters`` are the
    shared ones, ``latent`` the others by group. A plain calibration has ``panel`` None and empty ``latent``. With a
    prior on the path (``latent`` of ``calibrate``) ``cost`` is that of the quotes alone, and ``starts`` and ``history``
    are those of the search without it.

    ``quotes`` are the quotes of the objective, ``book`` all that were given: see ``select`` of ``calibrate``.
    ``calibrate(quotes, asked, **settings.keywords())`` calibrates other quotes the same way.
    """

    model: Model
    quotes: Quotes  # None if it was made from moments; ``used`` raises then
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    relative_errors: dict[str, float]
    unidentified: tuple[str, ...]
    on_bound: dict[str, float]
    fixed: dict[str, float]
    rmse: float
    cost: float
    count: int
    termination: Termination
    equations: Linearization
    trace: Trace
    starts: tuple[StartEnd, ...]
    residual: str
    weights: str
    loss: str
    feller: str
    settings: Settings
    asked: Model  # as it was given; ``model`` may be a form of it that suits the quotes
    threshold: float | None = None  # of Huber's loss, on weighted residuals
    moments: Any = None  # what it was made from, if not from quotes
    given: Quotes | None = None  # all the quotes, if only some of them count
    panel: str | None = None
    latent: dict[Group, float] = field(default_factory=dict)
    latent_standard_errors: dict[Group, float] = field(default_factory=dict)
    latent_on_bound: dict[Group, float] = field(default_factory=dict)
    counts: dict[Group, int] = field(default_factory=dict)
    known: System | None = None  # states of groups that are known already, at the model's first canonical start

    @property
    def converged(self) -> bool:
        return self.termination.converged

    @cached_property
    def errors(self) -> StandardErrors:
        """Standard errors in the unit of the settings: clusters, a jackknife, or independent quotes; intervals."""
        from strikeout.calibration.standard_errors import standard_errors

        return standard_errors(self)

    @property
    def agreement(self) -> int:
        """How many starts ended at this optimum."""
        return sum(start.agrees for start in self.starts)

    @property
    def feller_ratio(self) -> float | None:
        """``2 mean_reversion long_variance / vol_of_vol^2``; None if the model has no such parameters."""
        return feller_ratio(self.parameters)

    @cached_property
    def history(self) -> tuple[Step, ...]:
        """The steps of the best start."""
        return self.trace.steps()

    @cached_property
    def condition(self) -> float:
        """Condition number of the Jacobi-scaled curvature of the (shared) parameters that were estimated."""
        kept = [i for i, name in enumerate(self.parameters) if name not in self.fixed and name not in self.on_bound]
        rows = self.equations.rows
        return condition([[rows[i][j] for j in kept] for i in kept])

    @property
    def is_panel(self) -> bool:
        return self.panel is not None

    @cached_property
    def latent_name(self) -> str | None:
        """The parameter that every group of a panel has for itself; None for a plain calibration."""
        return None if self.panel is None else latent_of(self.model)

    @property
    def has_prior(self) -> bool:
        """Whether the latent path has a prior (``latent`` of ``calibrate``)."""
        return self.is_panel and self.settings.has_prior

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of a panel, in order."""
        return tuple(self.latent)

    @property
    def blocks(self) -> tuple[Group, ...]:
        """The groups of a panel; for a plain calibration the one group of all quotes, ``WHOLE``."""
        return (WHOLE,) if self.panel is None else tuple(self.latent)

    def theta(self, group: Group = WHOLE) -> dict[str, float]:
        """Return all parameters of one group, in the model's order.

        Raises:
            KeyError: a group that is not in the panel.
        """
        if self.panel is None:
            return self.parameters
        latent = self.latent[group]
        return {name: self.parameters.get(name, latent) for name in self.model.parameters.names}

    @cached_property
    def rows(self) -> dict[Group, Rows]:
        """The row numbers of the quotes of every group; of a plain calibration all of them, under ``WHOLE``."""
        return {WHOLE: np.arange(len(self.used))} if self.panel is None else grouped(self.used, self.panel)

    def quotes_of(self, group: Group) -> Quotes:
        """Return the quotes of one group."""
        return self.used if self.panel is None else self.used[self.rows[group]]

    @cached_property
    def residuals(self) -> Floats:
        """Observed less model price, one per quote, in the order of the quotes.

        Raises:
            UsageError: the calibration was made from moments.
        """
        used = self.used
        if self.panel is None:
            return used.observed - self.model.price(self.parameters, used.contracts)
        out = np.full(len(used), np.nan)
        for group in self.latent:
            rows = self.rows[group]
            out[rows] = used.observed[rows] - self.model.price(self.theta(group), used.contracts[rows])
        return out

    @property
    def book(self) -> Quotes:
        """All the quotes it was given, those that count (``quotes``) and those that ``select`` left out.

        Raises:
            UsageError: the calibration was made from moments and holds no quotes.
        """
        return self.used if self.given is None else self.given

    @property
    def size(self) -> int:
        """How many quotes it was given, those that ``select`` left out included."""
        return self.count if self.settings.select == "all" or self.given is None else len(self.given)

    @property
    def used(self) -> Quotes:
        """The quotes that count.

        Raises:
            UsageError: the calibration was made from moments and holds no quotes.
        """
        if self.moments is not None:
            raise UsageError(
                "This calibration was made from moments and holds no quotes, so there is nothing to draw or to list "
                "quote by quote. Calibrate from the quotes for that."
            )
        return self.quotes

    @cached_property
    def fit_errors(self) -> FitErrors:
        """The root mean square residuals in volatility points, spreads and price, overall and by expiry.

        Raises:
            UsageError: the calibration was made from moments and holds no quotes.
        """
        from strikeout.calibration.fit_errors import fit_errors

        return fit_errors(self)

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per quote: id, contract, market, model, implied volatilities, residual, weight, spread.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library, or the calibration was made from moments and holds no quotes.
        """
        from strikeout.calibration.fit_errors import quote_fits
        from strikeout.tables import frame_from

        return frame_from(quote_fits(self), library)

    @cached_property
    def state(self) -> Any:
        """What the quotes leave behind, whatever the parameters: exact, and equal for equal books. See ``digest()``.

        A ``System`` at the model's first canonical start; the ``Moments``, if it was made from those.

        Raises:
            RefusedError: a quote is too large for the grid of the state; the error names it.
        """
        if self.moments is not None:
            return self.moments
        start, known = self.model.parameters.starts[0], {} if self.known is None else self.known.blocks
        blocks = {
            group: known[group] if group in known else self.equations_of(self.quotes_of(group), start)
            for group in self.rows
        }
        return System(blocks, self.latent_name)

    @cached_property
    def references(self) -> Mapping[Group, dict[str, float]]:
        """The parameters at which footprints are taken, by group.

        Of a plain calibration those under Huber's loss, which a few bad quotes hardly move; of a panel its own.
        """
        if self.panel is not None:
            return {group: self.theta(group) for group in self.latent}
        from strikeout.calibration.calibrate import robust_reference

        return {WHOLE: robust_reference(self)}

    @cached_property
    def footprints(self) -> FootprintBlocks:
        """The footprint of every quote at its reference, under squared loss, by group.

        Raises:
            RefusedError: a quote is too large for the grid, or there are no quotes but moments.
            UsageError: the path of the panel has a prior.
        """
        if self.moments is not None:
            raise RefusedError(
                "Footprints of a calibration made from moments: it holds no quotes to take them from. "
                "Calibrate from the quotes, or forget through the moments."
            )
        refuse_prior(self, "footprints")
        blocks = {
            group: self.footprints_of(self.quotes_of(group), reference) for group, reference in self.references.items()
        }
        return FootprintBlocks(blocks, self.latent_name, frozenset(self.latent_on_bound))

    @property
    def system(self) -> System:
        """The exact sum of all footprints, by group.

        Raises:
            RefusedError: a quote is too large for the grid, or there are no quotes but moments.
        """
        return self.footprints.system

    def footprints_of(self, quotes: Quotes, theta: Theta) -> Footprints:
        """Return the footprints of these quotes at any parameters.

        Raises:
            RefusedError: a quote is too large for the grid; the error names it.
        """
        how = self.settings
        return footprints_of(quotes, self.model, theta, residual=how.residual, weights=how.weights)

    def equations_of(
        self, quotes: Quotes, theta: Theta, *, only: Rows | None = None, schema: Schema | None = None
    ) -> NormalEquations:
        """Return ``footprints_of(quotes, theta).total()``, without keeping the footprints.

        Args:
            only: distinct row numbers of those to sum; all if not given.
            schema: that of the sum, if it is known.

        Raises:
            RefusedError: a quote is too large for the grid; the error names it.
        """
        how = self.settings
        return normal_equations_of(
            quotes, self.model, theta, residual=how.residual, weights=how.weights, only=only, schema=schema
        )

    @cached_property
    def second_order(self) -> Mapping[Group, SecondOrder]:
        """The second-order sums around the references, by group: what one step leaves out.

        Raises:
            ParameterError: a reference is too close to the boundary of the model.
        """
        if self._keeps_terms:
            return {WHOLE: self._quote_terms.total}
        return {group: self._second_order_of(group, self.quotes_of(group)) for group in self.blocks}

    def second_order_without(self, ids: ArrayLike) -> Mapping[Group, SecondOrder]:
        """Return ``second_order`` once these quotes are struck out; only groups that have one of them are computed.

        Raises:
            UnknownIdError: an id that no quote has, or one given twice.
            ParameterError: a reference is too close to the boundary of the model.
        """
        whole = self.second_order
        if self._keeps_terms:
            gone = {WHOLE: self._quote_terms.only(self.footprints.blocks[WHOLE].places(ids))}
        else:
            struck = self.quotes.only(ids)
            rows = {WHOLE: slice(None)} if self.panel is None else grouped(struck, self.panel) if len(struck) else {}
            gone = {g: self._second_order_of(g, struck[own]) for g, own in rows.items() if g in whole}
        return {group: sums - gone[group] if group in gone else sums for group, sums in whole.items()}

    @property
    def _keeps_terms(self) -> bool:
        """Whether the second-order terms of every quote are held: in a plain calibration of moderate size."""
        return self.panel is None and len(self.quotes) <= AT_ONCE

    @cached_property
    def _quote_terms(self) -> QuoteTerms:
        how = self.settings
        return quote_terms_of(
            self.quotes, self.model, self.references[WHOLE], residual=how.residual, weights=how.weights
        )

    def _second_order_of(self, group: Group, quotes: Quotes) -> SecondOrder:
        how = self.settings
        return second_order_of(quotes, self.model, self.references[group], residual=how.residual, weights=how.weights)

    def filter(self, *, strength: float = 1.0, dates: Iterable[str] = ()) -> VariancePath:
        """Return the variance of every date of a panel, filtered and smoothed by the model's own dynamics.

        The shared parameters stay as they are. Dates with many quotes hardly change; those with few follow their
        neighbours.

        Args:
            strength: of the prior, 1 for the model's. 0 leaves the latent path as it is; an infinite strength gives one
                variance for all dates.
            dates: further dates without quotes, between those of the panel or after them: "2024-01-09".

        Raises:
            UsageError: this is not a panel of dates under squared loss, the model has no mean_reversion, long_variance
                and vol_of_vol, the strength is below zero, or a date is none.
            RefusedError: a quote is too large for the grid of the states.
        """
        from strikeout.calibration.latent_filter import filter_panel

        return filter_panel(self, strength=strength, dates=dates)

    def regimes(
        self,
        *,
        count: int = 2,
        switching: Sequence[str] = ("vol_of_vol",),
        progress: Callable[[int, int], None] | None = None,
    ) -> RegimePath:
        """Return regimes of a panel: chosen shared parameters that switch between a few values from date to date.

        The other shared parameters have one value, refitted with the regimes. One regime is the panel itself.

        Args:
            count: the number of regimes, 1 to 3.
            switching: the parameters that differ between regimes.
            progress: called with the number of the start and of the round.

        Raises:
            UsageError: this is not a panel under squared loss, Feller's condition is enforced, or an argument is
                invalid.
            RefusedError: there are too few dates, or they show no such regimes.
        """
        from strikeout.calibration.regimes import regimes_of

        return regimes_of(self, count=count, switching=switching, progress=progress)

    def diagnostics(self, *, profiles: str | Sequence[str] = "auto", level: float = 0.95) -> Diagnostics:
        """Return what the residuals share and what the quotes determine: autocorrelation, leverage, profile intervals.

        Args:
            profiles: parameters whose intervals are profiled: "auto" for those with a standard error above a quarter of
                their value, "all", "none", or names. Each takes some twenty refits.
            level: the probability of these intervals.

        Raises:
            UsageError: an unknown parameter, a level that is not between 0 and 1, a profile under a robust loss, or the
                calibration was made from moments.
            RefusedError: the quotes do not determine the parameters.
        """
        from strikeout.calibration.diagnostics import diagnostics

        _ = self.used  # raises if there are none
        return diagnostics(self, profiles=profiles, level=level)

    @cached_property
    def identifiability(self) -> dict[str, str]:
        """One sentence per parameter: how well the quotes determine it."""
        from strikeout.calibration.summary import identified

        return {name: identified(self, name) for name in self.parameters}

    @cached_property
    def latent_identifiability(self) -> dict[Group, str]:
        """One sentence per group: how well its quotes determine its latent parameter."""
        from strikeout.calibration.summary import latent_identified

        return {group: latent_identified(self, group) for group in self.latent}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a user must not overlook, in sentences; empty if there is nothing."""
        from strikeout.calibration.warnings import warnings

        return warnings(self)

    def summary(self) -> str:
        """Return a table of the parameters, how good they are, and how the search ended."""
        from strikeout.calibration.summary import summary

        return summary(self)

    def report(self) -> str:
        """Return the summary, every group, every start, and every step of the best one."""
        from strikeout.calibration.summary import report

        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the quotes and the model as plain values for JSON; a missing number is None."""
        from strikeout.calibration.summary import to_dict

        return to_dict(self)

    def plot_smiles(self, **how: Any) -> Drawing:
        """Return the smiles as an interactive picture for a notebook; arguments as for ``so.draw``.

        Raises:
            UsageError: the calibration was made from moments and holds no quotes.
        """
        import strikeout  # pictures are a package above this one: only its public name is used

        return strikeout.draw(self, "smiles", **how)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        path = f"{many(len(self.latent), 'value')} of {self.latent_name}, " if self.is_panel else ""
        return f"Calibration({values}; {path}rmse={self.rmse:.3g}, count={self.count}, {self.termination.name.lower()})"

    def _repr_html_(self) -> str:
        from strikeout.calibration.summary import html

        return html(self)
