"""What a calibration found, how well, and how it got there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.feller import feller_ratio
from strikeout.calibration.loop import Visit
from strikeout.calibration.settings import Settings
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.symmetric import condition
from strikeout.models.model import Model, Theta
from strikeout.statistics.bending import AT_ONCE, Bending, Bends, bending_of, bends_of
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearization import Linearization

if TYPE_CHECKING:
    from strikeout.calibration.fit_errors import FitErrors
    from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One accepted step of the best start; ``gradient`` is the next step's length in standard errors."""

    cost: float
    gradient: float
    damping: float
    parameters: dict[str, float]


class Trace(NamedTuple):
    """The accepted points of the best start, as its search saw them."""

    visits: tuple[Visit, ...]
    coordinates: Coordinates

    def steps(self) -> tuple[Step, ...]:
        """The same by parameter."""
        named = self.coordinates.named
        return tuple(Step(v.cost, v.gradient, v.damping, named(v.point)) for v in self.visits)


@dataclass(frozen=True)
class StartEnd:
    """Where one start ended; ``agrees`` where it is the optimum that was taken."""

    parameters: dict[str, float]
    cost: float
    termination: Termination
    evaluations: int
    agrees: bool


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Parameters by name, their standard errors, and everything needed to judge them.

    ``rmse`` is in the currency of the quotes, unweighted; made from moments, it is the weighted root mean square. A
    standard error is not-a-number where the parameter was fixed or is held on a bound. ``relative_errors`` are standard
    errors over the size of the parameter (over ``1 - rho^2`` for a correlation). ``equations`` are the normal equations
    at the parameters.

    ``quotes`` are those the objective is made of, ``book`` all that were given: see ``select`` of ``calibrate``.
    ``calibrate(quotes, asked, **settings.keywords())`` calibrates other quotes the same way.
    """

    model: Model
    quotes: Quotes
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
    threshold: float | None  # Huber's, on weighted residuals
    feller: str
    settings: Settings
    asked: Model  # as it was given; ``model`` may be a form of it that suits the quotes
    moments: Any = None  # what it was made from, where that was not quotes
    given: Quotes | None = None  # all the quotes, where only some of them count

    @property
    def converged(self) -> bool:
        return self.termination.converged

    @property
    def agreement(self) -> int:
        """How many starts ended at this optimum."""
        return sum(start.agrees for start in self.starts)

    @property
    def feller_ratio(self) -> float | None:
        """``2 mean_reversion long_variance / vol_of_vol^2``; None where the model has no such parameters."""
        return feller_ratio(self.parameters)

    @cached_property
    def history(self) -> tuple[Step, ...]:
        """The steps of the best start."""
        return self.trace.steps()

    @cached_property
    def condition(self) -> float:
        """Condition number of the Jacobi-scaled curvature of the parameters that were estimated."""
        names = self.model.parameters.names
        kept = [i for i, name in enumerate(names) if name not in self.fixed and name not in self.on_bound]
        rows = self.equations.rows
        return condition([[rows[i][j] for j in kept] for i in kept])

    @cached_property
    def residuals(self) -> Floats:
        """Observed less model price, one a quote, in the order of the quotes.

        Raises:
            UsageError: the calibration was made from moments.
        """
        return self.used.observed - self.model.price(self.parameters, self.used.contracts)

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
        """The quotes that count, for whatever has to look at them.

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
        from strikeout.calibration.quote_fits import quote_fits
        from strikeout.quotes.frames import frame_from

        return frame_from(quote_fits(self), library)

    @cached_property
    def state(self) -> Any:
        """What is known of the quotes, whatever the parameters: exact, and equal for equal books. See ``digest()``.

        ``NormalEquations`` at the model's first canonical start; the ``Moments``, if it was made from those.

        Raises:
            RefusedError: a quote is too large for the grid of the state; the error names it.
        """
        if self.moments is not None:
            return self.moments
        return self._footprints_at(self.model.parameters.starts[0]).total()

    @cached_property
    def reference(self) -> dict[str, float]:
        """Where footprints are taken: the parameters under Huber's loss, which a few bad quotes hardly move."""
        from strikeout.calibration.reference import robust_reference

        return robust_reference(self)

    @cached_property
    def footprints(self) -> Footprints:
        """What every quote leaves behind at the reference, under squared loss.

        Raises:
            RefusedError: a quote is too large for the grid, or there are no quotes but moments.
        """
        return self._footprints_at(self.reference)

    @cached_property
    def bending(self) -> Bending:
        """How residuals and prices bend around the reference, summed over the quotes: what one step leaves out.

        Raises:
            ParameterError: the reference is too close to where the model ends.
        """
        return self._bends.total if len(self.quotes) <= AT_ONCE else self._bending_of(self.quotes)

    def bending_of(self, ids: ArrayLike) -> Bending:
        """The part of these quotes in ``bending``. A book of moderate size keeps every quote's; a large one does not.

        Raises:
            UnknownIdError: an id that no quote has, or one given twice.
            ParameterError: the reference is too close to where the model ends.
        """
        if len(self.quotes) <= AT_ONCE:
            return self._bends.only(self.footprints.places(ids))
        return self._bending_of(self.quotes.only(ids))

    @cached_property
    def _bends(self) -> Bends:
        how = self.settings
        return bends_of(self.quotes, self.model, self.reference, residual=how.residual, weights=how.weights)

    def _bending_of(self, quotes: Quotes) -> Bending:
        how = self.settings
        return bending_of(quotes, self.model, self.reference, residual=how.residual, weights=how.weights)

    def _footprints_at(self, theta: Theta) -> Footprints:
        if self.moments is not None:
            raise RefusedError(
                "Footprints of a calibration made from moments: it holds no quotes to take them from. "
                "Calibrate from the quotes, or forget through the moments."
            )
        how = self.settings
        return footprints_of(self.quotes, self.model, theta, residual=how.residual, weights=how.weights)

    @cached_property
    def identifiability(self) -> dict[str, str]:
        """One sentence a parameter: how well the quotes determine it."""
        from strikeout.calibration.summary import identified

        return {name: identified(self, name) for name in self.parameters}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a user must not overlook, in sentences; empty where there is nothing."""
        from strikeout.calibration.haste import haste
        from strikeout.calibration.resolution import coarseness
        from strikeout.calibration.summary import warnings

        arbitrage = getattr(self.model, "arbitrage", None)  # of models that do not rule it out
        if arbitrage is None:
            more = haste(self)
        else:
            more = arbitrage(self.parameters, None if self.quotes is None else self.quotes.contracts)
        return warnings(self, more if self.moments is None else (*more, *coarseness(self)))

    def summary(self) -> str:
        """A table of the parameters, how good they are, and how the search ended."""
        from strikeout.calibration.summary import summary

        return summary(self)

    def report(self) -> str:
        """The summary, every start, and every step of the best one."""
        from strikeout.calibration.summary import report

        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the quotes and the model as plain values for JSON; a number that does not exist is None."""
        from strikeout.calibration.summary import to_dict

        return to_dict(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return f"Calibration({values}; rmse={self.rmse:.3g}, count={self.count}, {self.termination.name.lower()})"

    def _repr_html_(self) -> str:
        from strikeout.calibration.summary import html

        return html(self)
