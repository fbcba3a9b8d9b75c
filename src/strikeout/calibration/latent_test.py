"""Test whether one latent parameter for many dates is enough."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from strikeout.calibration.latent_problem import parts_of
from strikeout.calibration.panels import LABEL, LATENT, grouped
from strikeout.errors import StrikeoutError
from strikeout.statistics.linearize import linearize_each, rows
from strikeout.statistics.objective import objective_of
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

# Twice what noise alone would gain, and more than a thousandth of the misfit: a value per date is worth its parameters.
WORTH, SHARE = 2.0, 1e-3


@dataclass(frozen=True)
class LatentTest:
    """The gain from a latent parameter per date, the shared parameters left as they are.

    To first order, from one linearization. ``ratio`` is the fall of the cost per further parameter over the mean square
    that is left: about one if there is only noise to fit. ``factor`` is what the root mean square is divided by.
    """

    latent: str
    dates: int
    ratio: float
    factor: float

    @property
    def worth_it(self) -> bool:
        return self.ratio > WORTH and self.factor > 1.0 + SHARE

    def sentence(self, remedy: str) -> str:
        """Return the result for a plain calibration in a sentence, with a remedy."""
        held = f"one value for {many(self.dates, 'date')}"
        if not self.worth_it:
            return f"{held}, and a value per date would gain no more than noise does"
        gain = f"a value per date, the others as they are, would lower the misfit {self._lowered()}"
        return f"{held}; {gain}: calibrate with {remedy}"

    def cost(self) -> str:
        """Return the result for a panel in a sentence: what one value for all would cost."""
        if not self.worth_it:
            return "one value for all would fit as well, up to noise"
        much = f"by about {100.0 * (self.factor - 1.0):.2g} %" if self.factor < 2.0 else self._times()
        return f"one value for all, the others as they are, would raise the misfit {much}"

    def _lowered(self) -> str:
        if self.factor < 2.0:
            return f"by about {100.0 * (1.0 - 1.0 / self.factor):.2g} %"
        return self._times() if isfinite(self.factor) else "to nothing"

    def _times(self) -> str:
        if not isfinite(self.factor):
            return "from nothing"
        return f"about {self.factor:,.0f} times" if self.factor >= 10.0 else f"about {self.factor:.2g} times"

    def __str__(self) -> str:
        return self.sentence(f'panel="{LABEL}"')


def latent_test(calibration: Calibration) -> LatentTest | None:
    """Return what a panel would gain over a plain calibration; None if there is one date, or no latent parameter.

    A score test: one pass over the quotes, and the Gauss-Newton step of every date's own value alone.
    """
    model, how = calibration.model, calibration.settings
    names = model.parameters.names
    latent = getattr(model, "latent", LATENT)
    plain = calibration.moments is None and how.loss == "squared" and isfinite(calibration.cost)
    if not plain or latent not in names or latent in calibration.fixed or LABEL not in calibration.quotes.labels:
        return None
    try:
        groups = grouped(calibration.quotes, LABEL)
        objective, _ = objective_of(calibration.quotes, residual=how.residual, weights=how.weights)
    except StrikeoutError:  # a quote without a date, for example: there is no panel to compare with
        return None
    further, k = len(groups) - 1, names.index(latent)
    left = len(objective) - len(names) - further
    if further < 1 or left < 1:
        return None
    number = np.empty(len(calibration.quotes), np.intp)
    for n, rows_of_group in enumerate(groups.values()):
        number[rows_of_group] = n
    residual, jacobian = rows(objective, model, np.array(list(calibration.parameters.values())))
    e, j = objective.root_weight * residual, objective.root_weight * jacobian[:, k]
    which = number[objective.order]
    score, curvature = np.bincount(which, j * e), np.bincount(which, j * j)
    gained = float(np.add.reduce(score * score / np.where(curvature > 0.0, curvature, np.inf)))
    cost = calibration.cost - gained  # not below zero: each is the part of the residuals along j
    if not cost > 0.0:
        return LatentTest(latent, further + 1, inf, inf)
    return LatentTest(latent, further + 1, gained / further / (cost / left), sqrt(calibration.cost / cost))


def one_value(panel: Calibration) -> LatentTest | None:
    """Return what the groups of a panel gain by a value each over one for all; None if there is one group.

    From the parabola of the cost around every group's own value: one pass over the quotes. Squared loss only.
    """
    how, names = panel.settings, panel.model.parameters.names
    groups, left = len(panel.latent), panel.count - len(panel.parameters) - len(panel.latent)
    if groups < 2 or left < 1 or not isfinite(panel.cost) or panel.loss != "squared" or panel.has_prior:
        return None
    whole, _ = objective_of(panel.quotes, residual=how.residual, weights=how.weights)
    parts = parts_of(whole, panel.rows)
    posed = [(parts[group], list(panel.theta(group).values())) for group in panel.latent]
    assert panel.latent_name is not None, "a panel has a latent parameter"
    k = names.index(panel.latent_name)
    curvature = [equations.rows[k][k] for equations in linearize_each(posed, panel.model)]
    values = list(panel.latent.values())
    total = fsum(curvature)
    middle = fsum(c * x for c, x in zip(curvature, values, strict=True)) / total if total > 0.0 else 0.0
    lost = fsum(c * (x - middle) * (x - middle) for c, x in zip(curvature, values, strict=True))
    if not panel.cost > 0.0:
        return LatentTest(panel.latent_name, groups, inf, inf)
    ratio = lost / (groups - 1) / (panel.cost / left)
    return LatentTest(panel.latent_name, groups, ratio, sqrt(1.0 + lost / panel.cost))
