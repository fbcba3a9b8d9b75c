"""Whether one latent parameter for many dates is enough: what a value a date would gain, the others as they are."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import TYPE_CHECKING

from strikeout.calibration.coordinates import coordinates_of
from strikeout.calibration.panel_groups import LATENT, grouped
from strikeout.calibration.panel_problem import PanelObjective, PanelProblem, parts_of
from strikeout.errors import StrikeoutError
from strikeout.statistics.objective import objective_of

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

LABEL = "date"
# Twice what noise alone would gain, and more than a thousandth of the misfit: a value a date is worth its parameters.
WORTH, SHARE = 2.0, 1e-3


@dataclass(frozen=True)
class Constancy:
    """What a value of the latent parameter for every date would gain, with the shared parameters left as they are.

    ``ratio`` is the fall of the cost a further parameter over the mean square that is left: about one where there is
    nothing but noise to gain. ``factor`` is what the root mean square would be divided by; re-finding the shared
    parameters as well can only make it larger.
    """

    latent: str
    dates: int
    ratio: float
    factor: float

    @property
    def worth_it(self) -> bool:
        return self.ratio > WORTH and self.factor > 1.0 + SHARE

    def __str__(self) -> str:
        held = f"one value for {self.dates} dates"
        if not self.worth_it:
            return f"{held}, and a value a date would gain no more than noise does"
        return f'{held}; a value a date would lower the misfit {self.factor:.3g} times: calibrate with panel="{LABEL}"'


def constancy(calibration: Calibration) -> Constancy | None:
    """What a panel would gain over this calibration; None where there is one date, or nothing latent, to speak of.

    One search in one dimension a date: a few passes over the quotes.
    """
    model, how = calibration.model, calibration.settings
    names = model.parameters.names
    latent = getattr(model, "latent", LATENT)
    plain = calibration.moments is None and how.loss == "squared" and isfinite(calibration.cost)
    if not plain or latent not in names or latent in calibration.fixed or LABEL not in calibration.quotes.labels:
        return None
    try:
        groups = grouped(calibration.quotes, LABEL)
        whole, _ = objective_of(calibration.quotes, residual=how.residual, weights=how.weights)
    except StrikeoutError:  # a quote without a date, say: no panel, and nothing to say of one
        return None
    objective = PanelObjective(parts_of(whole, groups))
    further, k = len(objective.parts) - 1, names.index(latent)
    left = objective.count - len(names) - further
    if further < 1 or left < 1:
        return None
    box = coordinates_of(model.parameters, bounds=how.bounds, fixed=None, enforce_feller=False)
    at = calibration.parameters[latent]
    problem = PanelProblem(objective, model, box, k, box.lower[k], box.upper[k], at)
    cost = problem.settle([value for name, value in calibration.parameters.items() if name != latent]).cost
    if not cost >= 0.0:
        return None
    mean = cost / left
    ratio = (calibration.cost - cost) / further / mean if mean > 0.0 else inf
    return Constancy(latent, further + 1, ratio, sqrt(calibration.cost / cost) if cost > 0.0 else inf)
