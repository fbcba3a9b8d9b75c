"""What the calibration of a panel found: shared parameters, and a latent one for every group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibration import Calibration, StartEnd, Step, Trace
from strikeout.calibration.feller import feller_ratio
from strikeout.calibration.panel_groups import Rows, grouped, latent_of
from strikeout.calibration.settings import Settings
from strikeout.calibration.termination import Termination
from strikeout.kernels.symmetric import condition
from strikeout.models.model import Model, Theta
from strikeout.statistics.bending import Bending, bending_of
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.system import FootprintBlocks, Group, System
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.calibration.fit_errors import FitErrors
    from strikeout.calibration.panel_smoothing import SmoothedPanel
    from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PanelCalibration:
    """Shared parameters by name, a latent one by group, their standard errors, and everything needed to judge them.

    As ``Calibration``, with ``parameters`` the shared ones. ``equations`` are the normal equations of those once every
    latent parameter follows them. A latent standard error is not-a-number where the value is held on a bound.

    ``calibrate(quotes, asked, **settings.keywords())`` calibrates other quotes the same way.
    """

    model: Model
    quotes: Quotes
    panel: str
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    relative_errors: dict[str, float]
    unidentified: tuple[str, ...]
    on_bound: dict[str, float]
    fixed: dict[str, float]
    latent: dict[Group, float]
    latent_standard_errors: dict[Group, float]
    latent_on_bound: dict[Group, float]
    counts: dict[Group, int]
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
    threshold: None = None  # a plain calibration's, under Huber's loss
    moments: None = None  # a plain calibration's, where it was made from those
    given: Quotes | None = None  # all the quotes, where only some of them count
    known: System | None = None  # states of groups that were found before, at the model's first canonical start

    @property
    def latent_name(self) -> str:
        """The parameter that every group has for itself."""
        return latent_of(self.model)

    @property
    def groups(self) -> tuple[Group, ...]:
        """In order."""
        return tuple(self.latent)

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
        """Condition number of the Jacobi-scaled curvature of the shared parameters that were estimated."""
        kept = [i for i, name in enumerate(self.parameters) if name not in self.fixed and name not in self.on_bound]
        rows = self.equations.rows
        return condition([[rows[i][j] for j in kept] for i in kept])

    @property
    def book(self) -> Quotes:
        """All the quotes it was given, those that count (``quotes``) and those that ``select`` left out."""
        return self.quotes if self.given is None else self.given

    @property
    def used(self) -> Quotes:
        """The quotes that count, as of a plain calibration."""
        return self.quotes

    @property
    def size(self) -> int:
        """How many quotes it was given, those that ``select`` left out included."""
        return self.count if self.settings.select == "all" else len(self.book)

    def theta(self, group: Group) -> dict[str, float]:
        """All parameters of one group, in the model's order.

        Raises:
            KeyError: no such group.
        """
        latent = self.latent[group]
        return {name: self.parameters.get(name, latent) for name in self.model.parameters.names}

    @cached_property
    def rows(self) -> dict[Group, Rows]:
        """The row numbers of every group's quotes."""
        return grouped(self.quotes, self.panel)

    @cached_property
    def residuals(self) -> Floats:
        """Observed less model price, one a quote, in the order of the quotes."""
        out = np.full(len(self.quotes), np.nan)
        for group, rows in self.rows.items():
            if group in self.latent:
                price = self.model.price(self.theta(group), self.quotes.contracts[rows])
                out[rows] = self.quotes.observed[rows] - price
        return out

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
    def state(self) -> System:
        """What is known of the quotes, whatever the parameters: exact, and equal for equal books. See ``digest()``.

        Every group at the model's first canonical start.

        Raises:
            RefusedError: a quote is too large for the grid of the state; the error names it.
        """
        start = self.model.parameters.starts[0]
        known = {} if self.known is None else self.known.blocks
        parts = {
            g: known[g] if g in known else self.footprints_of(self.quotes[rows], start).total()
            for g, rows in self.rows.items()
        }
        return System(parts, self.latent_name)

    @cached_property
    def footprints(self) -> dict[Group, Footprints]:
        """What every quote leaves behind at the shared parameters and its group's latent one, by group.

        Raises:
            RefusedError: a quote is too large for the grid; the error names it.
        """
        return {group: self.footprints_of(self.quotes[self.rows[group]], self.theta(group)) for group in self.latent}

    @cached_property
    def blocks(self) -> FootprintBlocks:
        """The footprints by group, from which quotes and groups can be taken away in microseconds.

        Raises:
            RefusedError: a quote is too large for the grid; the error names it.
        """
        return FootprintBlocks(self.footprints, self.latent_name, frozenset(self.latent_on_bound))

    @property
    def system(self) -> System:
        """The footprints summed, by group.

        Raises:
            RefusedError: a quote is too large for the grid; the error names it.
        """
        return self.blocks.system

    @cached_property
    def bending(self) -> dict[Group, Bending]:
        """How residuals and prices bend around the parameters, group by group: what one step leaves out.

        Raises:
            ParameterError: the parameters are too close to where the model ends.
        """
        how = self.settings
        return {
            group: bending_of(
                self.quotes[self.rows[group]], self.model, self.theta(group), residual=how.residual, weights=how.weights
            )
            for group in self.latent
        }

    def smoothed(self) -> SmoothedPanel:
        """The panel with a prior on its path: that the variance moves from date to date as the model says it does.

        Dates with many quotes hardly change; those with few lean on their neighbours. The calibration itself has no
        such prior, and stays what it is: this follows from it and its quotes, so what is forgotten here is forgotten
        there.

        Raises:
            UsageError: the groups are no dates, the model has no mean_reversion, long_variance and vol_of_vol, or
                Feller's condition is enforced.
        """
        from strikeout.calibration.panel_smoothing import smoothed

        return smoothed(self)

    def footprints_of(self, quotes: Quotes, theta: Theta) -> Footprints:
        """Return the footprints of these quotes at any parameters.

        Raises:
            RefusedError: a quote is too large for the grid; the error names it.
        """
        how = self.settings
        return footprints_of(quotes, self.model, theta, residual=how.residual, weights=how.weights)

    @cached_property
    def identifiability(self) -> dict[str, str]:
        """One sentence a shared parameter: how well the quotes determine it."""
        from strikeout.calibration.summary import identified

        return {name: identified(self, name) for name in self.parameters}

    @cached_property
    def latent_identifiability(self) -> dict[Group, str]:
        """One sentence a group: how well its quotes determine its latent parameter."""
        from strikeout.calibration.panel_summary import latent_identified

        return {group: latent_identified(self, group) for group in self.latent}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a user must not overlook, in sentences; empty where there is nothing."""
        from strikeout.calibration.panel_summary import warnings

        return warnings(self)

    def summary(self) -> str:
        """A table of the shared parameters, the latent path, how good they are, and how the search ended."""
        from strikeout.calibration.panel_summary import summary

        return summary(self)

    def report(self) -> str:
        """The summary, every group, every start, and every step of the best one."""
        from strikeout.calibration.panel_summary import report

        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the quotes and the model as plain values for JSON; a number that does not exist is None."""
        from strikeout.calibration.panel_summary import to_dict

        return to_dict(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return (
            f"PanelCalibration({values}; {many(len(self.latent), 'value')} of {self.latent_name}, "
            f"rmse={self.rmse:.3g}, count={self.count}, {self.termination.name.lower()})"
        )

    def _repr_html_(self) -> str:
        from strikeout.calibration.panel_summary import html

        return html(self)


AnyCalibration = Calibration | PanelCalibration
