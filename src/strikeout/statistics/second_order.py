"""What one Gauss-Newton step leaves out, as sums over quotes: how residuals and prices bend around a reference.

    symbol    meaning                                                            shape
    r, J, D   residual, sensitivities and second derivatives of a quote's price  -, p, p x p
    S         sum w r D                                                          p x p
    T         sum w J D                                                          p x p x p
    d         the step, H d = G with H = sum w J J', G = sum w J r               p

Put the optimum at reference + d + e and expand its equation, sum w J r = 0 there, to second order in d:

    (H - S_d) e = S_d d - T(d, d) / 2,    S_d = S - T . d

S_d belongs to the residuals that are left after the step: noise cancels in it, a misfit does not, and that is why H and
G alone do not show how good a step is in a real market. Both sums add and subtract like every other state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.kernels.arrays import Floats
from strikeout.kernels.arrow import expand
from strikeout.kernels.products import inner
from strikeout.kernels.symmetric import solve
from strikeout.models.model import Model, Theta
from strikeout.statistics.linearize import rows
from strikeout.statistics.objective import Objective, Residual, Weighting, objective_of, weights_of
from strikeout.statistics.system import Group, exchanged_rows, picked

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


STEP = 1e-4  # of a parameter's size: central differences of sensitivities good to 1e-9 err by 1e-5 at most
AT_ONCE = 1 << 14  # quotes, whose second derivatives are held at the same time: 20 MB of them


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """The sums S and T of some quotes at a reference, in floating point: they judge a step, they do not make one."""

    residual: Floats
    sensitivity: Floats

    def __add__(self, other: SecondOrder) -> SecondOrder:
        return SecondOrder(self.residual + other.residual, self.sensitivity + other.sensitivity)

    def __sub__(self, other: SecondOrder) -> SecondOrder:
        return SecondOrder(self.residual - other.residual, self.sensitivity - other.sensitivity)

    def left_out(self, curvature: Floats, step: Floats) -> Floats:
        """Return what the step ``H^-1 G`` misses the optimum by, to second order; not-a-number if there is no optimum.

        Args:
            curvature: H of the same quotes, for the parameters that may move.
            step: of these parameters; the sums are of them too (see ``only``).
        """
        after, missed, _ = expand(self.residual, self.sensitivity, step)
        true = curvature - after
        if not (np.isfinite(true).all() and (np.diag(true) > 0.0).all()):
            return np.full(len(step), np.nan)
        return np.array(solve(true.tolist(), missed.tolist()))

    def curvature_after(self, curvature: Floats, step: Floats) -> Floats:
        """Return the curvature where a step ends, to first order.

        What that leaves out, ``sum w (D d)(D d)'``, is nowhere negative: no parameter is less determined by it.

        Args:
            curvature, step: as for ``left_out``.
        """
        turned = inner(self.sensitivity, step)
        return curvature + turned + turned.T

    def only(self, free: ArrayLike) -> SecondOrder:
        """Return the sums for these parameters, by number, the others being fixed."""
        i = np.asarray(free, np.intp)
        return SecondOrder(self.residual[np.ix_(i, i)], self.sensitivity[np.ix_(i, i, i)])


@dataclass(frozen=True, eq=False, repr=False)
class GroupSums(Mapping[Group, SecondOrder]):
    """The sums of every group of a panel in two arrays, so that one group is exchanged without stacking the others."""

    groups: tuple[Group, ...]
    S: Floats  # groups x p x p
    T: Floats  # groups x p x p x p

    @staticmethod
    def of(sums: Mapping[Group, SecondOrder]) -> GroupSums:
        """Return the same sums, stacked."""
        if isinstance(sums, GroupSums):
            return sums
        S, T = ([getattr(one, name) for one in sums.values()] for name in ("residual", "sensitivity"))
        return GroupSums(tuple(sums), np.array(S), np.array(T))

    def exchanged(self, lost: Collection[Group], new: Mapping[Group, SecondOrder]) -> GroupSums:
        """Return the sums without some groups and with new ones, in the order of ``System.exchanged``."""
        groups, rows = exchanged_rows(self.groups, lost, new)
        S, T = (np.array([getattr(one, name) for one in new.values()]) for name in ("residual", "sensitivity"))
        return GroupSums(groups, *(picked(a, b if new else None, rows) for a, b in ((self.S, S), (self.T, T))))

    @cached_property
    def _places(self) -> dict[Group, int]:
        return {group: n for n, group in enumerate(self.groups)}

    def __getitem__(self, group: Group) -> SecondOrder:
        n = self._places[group]
        return SecondOrder(self.S[n], self.T[n])

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(frozen=True, eq=False, repr=False)
class QuoteTerms:
    """What every quote of a book adds to the sums, in the order of the quotes, and the sums themselves."""

    each: Floats  # (n, p + 1, p p): J and r times D, weighted
    total: SecondOrder

    def only(self, places: NDArray[np.integer]) -> SecondOrder:
        """Return the sums of the quotes at these rows."""
        return _summed(self.each[places])


def second_order_of(
    quotes: Quotes,
    model: Model,
    reference: Theta,
    *,
    residual: Residual = "price",
    weights: Weighting = "given",
    objective: Objective | None = None,
) -> SecondOrder:
    """Return the sums of these quotes at a reference; zero for none of them. Large books are taken in parts.

    Args:
        objective: that these quotes pose, if already at hand.

    Raises:
        ParameterError: the reference is not a point of the model, or too close to its boundary.
        UsageError, RefusedError: as for ``objective_of``.
    """
    if objective is not None and len(quotes) <= AT_ONCE:
        return terms_of(objective, model, reference).total
    if len(quotes) <= AT_ONCE:
        return quote_terms_of(quotes, model, reference, residual=residual, weights=weights).total
    weight, _ = weights_of(quotes, weights)
    parts = [slice(begin, begin + AT_ONCE) for begin in range(0, len(quotes), AT_ONCE)]
    sums = (quote_terms_of(quotes[at], model, reference, residual=residual, weights=weight[at]).total for at in parts)
    return reduce(SecondOrder.__add__, sums)


def quote_terms_of(
    quotes: Quotes, model: Model, reference: Theta, *, residual: Residual = "price", weights: Weighting = "given"
) -> QuoteTerms:
    """Return what each of these quotes adds to the sums: p p (p + 1) numbers per quote.

    Raises:
        ParameterError: the reference is not a point of the model, or too close to its boundary.
        UsageError, RefusedError: as for ``objective_of``.
    """
    weight, _ = weights_of(quotes, weights)
    if not weight.any():
        size = len(model.parameters)
        return QuoteTerms(*_summed_up(np.zeros((len(quotes), size + 1, size * size))))
    return terms_of(objective_of(quotes, residual=residual, weights=weight)[0], model, reference)


def terms_of(objective: Objective, model: Model, reference: Theta) -> QuoteTerms:
    """Return what each quote of an objective adds to the sums, in the order of the quotes.

    Raises:
        ParameterError: the reference is not a point of the model, or too close to its boundary.
    """
    theta, size = model.parameters.vector(reference), len(model.parameters)
    r, J = rows(objective, model, theta)
    D = np.empty((len(r), size, size))
    for i, h in enumerate(STEP * np.maximum(np.abs(theta), np.abs(model.parameters.starts[0]))):
        up, down = theta.copy(), theta.copy()
        up[i], down[i] = theta[i] + h, theta[i] - h
        D[:, :, i] = (rows(objective, model, up)[1] - rows(objective, model, down)[1]) / (2.0 * h)
    flat = (D + D.transpose(0, 2, 1)).reshape(len(r), 1, -1) * (0.5 * objective.weight[:, None, None])
    each = np.zeros((len(objective.weights), size + 1, size * size))
    each[objective.order] = np.concatenate([J, r[:, None]], axis=1)[:, :, None] * flat
    return QuoteTerms(*_summed_up(each))


def _summed_up(each: Floats) -> tuple[Floats, SecondOrder]:
    each.flags.writeable = False
    return each, _summed(each)


def _summed(each: Floats) -> SecondOrder:
    sums = np.add.reduce(each, axis=0)
    size = len(sums) - 1
    return SecondOrder(sums[-1].reshape(size, size), sums[:-1].reshape(size, size, size))
