"""The paper's bounds on a downdate, each with its condition, the measured value and how tight it is.

symbol    meaning
H, G      curvature and score of all quotes at the reference; d = H^-1 G
H', G'    of the retained quotes; d' = H'^-1 G'
dH, dG    H' - H and G' - G: minus what the forgotten quotes left behind
||.||     the spectral norm

A bound whose condition fails is computed all the same, and marked. In the plain parameters these norms mix
units (a variance beside a speed of reversion); ``scaled=True`` takes them in the parameters times sqrt(H_aa).
The quantity that works is the leverage spectrum, ``leverages``.

The paper's bound on one relinearization, with its unstated constants worked out and measured.

    symbol   meaning
    J, r     rows of sqrt(w) dm/dtheta and sqrt(w) (observed - m) at the reference
    d        the Gauss-Newton step there;  d+ the next one, at reference + d
    L        Lipschitz constant of J from the reference along the step
    lambda   smallest eigenvalue of J'J

With E = J(reference + d) - J and R = r(reference + d) - r + J d we have ||E|| <= L ||d||, ||R|| <= L ||d||^2 / 2, and
the score there is E'(r - J d) + (J + E)'R, since J'(r - J d) = 0. Hence, wherever the curvature changes by less than
lambda / 2,

    ||d+|| <= (2 L / lambda) ||r|| ||d|| + (L / lambda) (||J|| + L ||d||) ||d||^2.

The first constant is the paper's C1. It leaves C2 open, and its proof has the sign of J d turned round.

The leverage spectrum: which share of the information, in each direction, depends on the quotes to be forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats
from strikeout.kernels.products import gram, inner, norm
from strikeout.kernels.symmetric import eigenvalues, factor, forward, solve
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import rows
from strikeout.statistics.objective import Objective, Residual, WeightRule, objective_of

ROUNDING = 1e-15  # of the largest entry of a curvature: an eigenvalue below it may as well be zero


@dataclass(frozen=True)
class Bound:
    """A bound, whether its condition holds, and the true value.

    ``tightness`` is 1 if the bound is attained and near 0 if it is far off; not-a-number if its condition fails.
    """

    name: str
    value: float
    side: Literal["at most", "at least"]
    condition: str
    condition_holds: bool
    truth: float

    @property
    def tightness(self) -> float:
        if not self.condition_holds or not np.isfinite(self.value):
            return nan
        small, large = (self.truth, self.value) if self.side == "at most" else (self.value, self.truth)
        return small / large if large > 0.0 else (1.0 if small == large else nan)

    @property
    def is_respected(self) -> bool:
        """The truth lies on the promised side, to rounding; a bound whose condition fails promises nothing."""
        if not self.condition_holds:
            return True
        slack = 1e-9 * max(abs(self.truth), abs(self.value))
        return self.truth <= self.value + slack if self.side == "at most" else self.truth >= self.value - slack

    def __str__(self) -> str:
        if not self.condition_holds:
            return f"{self.name}: does not apply here, it needs {self.condition}; the truth is {self.truth:.3g}"
        return (
            f"{self.name}: {self.side} {self.value:.3g}; the truth is {self.truth:.3g}, tightness {self.tightness:.2g}"
        )


def stability(before: Linearization, after: Linearization, *, scaled: bool = False) -> Bound:
    """Return the change of the step by forgetting: ``||d' - d|| <= ||H'^-1|| (||dG|| + ||dH|| ||d||)``."""
    case = _Case(before, after, scaled=scaled)
    value = case.inverse_after * (case.change_of_score + case.change * case.step) if case.is_definite_after else inf
    return Bound("stability", value, "at most", "a positive definite H'", case.is_definite_after, case.move)


def neumann(
    before: Linearization, after: Linearization, *, norms: Literal["joint", "separate"] = "joint", scaled: bool = False
) -> Bound:
    """Return the inverse after forgetting: ``||H'^-1|| <= ||H^-1|| / (1 - ||H^-1 dH||)``, if that norm is below one.

    Args:
        norms: "joint" takes ``||H^-1 dH||`` (the paper's remark), "separate" the larger ``||H^-1|| ||dH||`` (its
            proposition).
    """
    if norms not in ("joint", "separate"):
        raise UsageError(f'norms={norms!r} is unknown. Use "joint" or "separate".', norms=norms)
    case = _Case(before, after, scaled=scaled)
    shift = case.relative_change if norms == "joint" else case.inverse_before * case.change
    name, holds = ("||H^-1 dH|| < 1" if norms == "joint" else "||H^-1|| ||dH|| < 1"), shift < 1.0
    value = case.inverse_before / (1.0 - shift) if holds else inf
    return Bound("Neumann", value, "at most", name, holds, case.inverse_after)


def weyl(before: Linearization, after: Linearization, *, scaled: bool = False) -> Bound:
    """Return the smallest eigenvalue after forgetting: ``lambda_min(H') >= lambda_min(H) - ||dH||``.

    The paper asks for ``||dH|| < lambda_min(H)`` to have H' positive definite. It is violated by nearly every single
    quote, while H' stays positive definite because it is a sum of squares.
    """
    case = _Case(before, after, scaled=scaled)
    value = case.smallest_before - case.change
    return Bound("Weyl", value, "at least", "||dH|| < lambda_min(H)", value > 0.0, case.smallest_after)


def huber(
    before: Linearization, after: Linearization, *, forgotten: Floats, threshold: float, scaled: bool = False
) -> Bound:
    """Bound the change of the step if no residual pulls harder than ``threshold``, whatever was quoted.

    ``||d' - d|| <= ||H'^-1|| |F| (C_J threshold + C_JJ ||d||)`` with C_J and C_JJ the largest norm of a forgotten row
    of ``sqrt(w) J``, and its square. The paper writes the condition number of H' where the norm of its inverse belongs.

    Args:
        forgotten: the rows of ``sqrt(w) J`` of the forgotten quotes, one per quote.
    """
    case = _Case(before, after, scaled=scaled)
    rows = np.asarray(forgotten, float)
    if rows.ndim != 2 or rows.shape[1] != len(case.scale):
        raise UsageError(
            f"huber: rows of {len(case.scale)} sensitivities are needed; got shape {rows.shape}.", count=len(case.scale)
        )
    scaled_rows = rows * case.scale
    largest = float(np.sqrt(inner(scaled_rows, scaled_rows)).max(initial=0.0))
    pull = len(rows) * (largest * threshold + largest * largest * case.step)
    value = case.inverse_after * pull if case.is_definite_after else inf
    return Bound("Huber", value, "at most", "a positive definite H'", case.is_definite_after, case.move)


class _Case:
    """The norms all bounds are made of."""

    def __init__(self, before: Linearization, after: Linearization, *, scaled: bool) -> None:
        if before.size != after.size:
            raise UsageError(
                f"Bounds compare one problem with itself: {before.size - 1} parameters before, {after.size - 1} after."
            )
        H, H2 = before.curvature, after.curvature
        self.scale = 1.0 / np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0)) if scaled else np.ones(len(H))
        both = self.scale[:, None] * self.scale
        H, H2 = H * both, H2 * both
        spectrum, spectrum_after = eigenvalues(H), eigenvalues(H2)
        G, G2 = before.score * self.scale, after.score * self.scale
        d = np.array(solve(H.tolist(), G.tolist()))
        if not (spectrum[0] > ROUNDING * np.abs(H).max() and np.isfinite(d).all()):
            raise UsageError(
                "Bounds need a curvature that was positive definite before anything is forgotten. "
                "Fix the parameters that the quotes do not determine."
            )
        self.smallest_before, self.smallest_after = float(spectrum[0]), float(spectrum_after[0])
        self.is_definite_after = self.smallest_after > 0.0
        self.inverse_before = _inverted(self.smallest_before)
        self.inverse_after = _inverted(self.smallest_after)
        self.change = float(np.abs(eigenvalues(H2 - H)).max())
        self.change_of_score = norm(G2 - G)
        self.step = norm(d)
        relative = np.array([solve(H.tolist(), column) for column in (H2 - H).tolist()])  # its rows are the columns
        self.relative_change = spectral_norm(relative)
        self.move = norm(np.array(solve(H2.tolist(), G2.tolist())) - d) if self.is_definite_after else nan


def spectral_norm(A: Floats) -> float:
    """Return the largest singular value of a matrix that has few columns."""
    return sqrt(max(float(eigenvalues(gram(A, A))[-1]), 0.0))


def _inverted(eigenvalue: float) -> float:
    return 1.0 / eigenvalue if eigenvalue > 0.0 else inf


POINTS = 8  # along the step, where the Lipschitz constant is measured


def relinearization(
    quotes: Quotes,
    model: Model,
    *,
    reference: Sequence[float],
    weights: WeightRule | ArrayLike = "given",
    residual: Residual = "price",
    scaled: bool = False,
) -> Bound:
    """Return the length of the second Gauss-Newton step over these quotes, bounded from the first alone.

    ``scaled`` takes all norms in the parameters times the norm of their column of J, which have no units.
    The Lipschitz constant is measured at a few points along the step, so it is a lower estimate of the true one.
    """
    objective, _ = objective_of(quotes, residual=residual, weights=weights)
    start = np.array(reference, float)
    unit = np.ones(len(start))
    if scaled:
        unit = 1.0 / _lengths(_weighted(objective, model, start, unit)[1])
    r, J = _weighted(objective, model, start, unit)
    d = _step(r, J)
    size = norm(d)
    ahead = [
        (t, _weighted(objective, model, start + t * unit * d, unit)) for t in (n / POINTS for n in range(1, POINTS + 1))
    ]
    lipschitz = max(spectral_norm(there[1] - J) / (t * size) for t, there in ahead) if size else 0.0
    largest, smallest = spectral_norm(J), float(eigenvalues(gram(J, J))[0])
    shift = lipschitz * size
    first = 2.0 * lipschitz / smallest * norm(r) * size
    second = lipschitz / smallest * (largest + shift) * size * size
    return Bound(
        "relinearization",
        first + second,
        "at most",
        "a curvature that changes by less than half its smallest eigenvalue",
        shift * (2.0 * largest + shift) <= 0.5 * smallest,
        norm(_step(*ahead[-1][1])),
    )


def _step(r: Floats, J: Floats) -> Floats:
    """Return the least-squares solution of ``J d = r``, once more on what it leaves: as good as an orthogonal
    method's."""
    H = gram(J, J).tolist()
    d = np.array(solve(H, gram(J, r[:, None])[:, 0].tolist()))
    rest = r - inner(J, d)
    return np.asarray(d + np.array(solve(H, gram(J, rest[:, None])[:, 0].tolist())))


def _lengths(J: Floats) -> Floats:
    return np.sqrt(np.diag(gram(J, J)))


def _weighted(objective: Objective, model: Model, theta: Floats, unit: Floats) -> tuple[Floats, Floats]:
    residuals, jacobian = rows(objective, model, theta)
    return objective.root_weight * residuals, objective.root_weight[:, None] * jacobian * unit


NO_EIGENVALUE = 1e-14  # an eigenvalue of a curvature with unit diagonal that may as well be zero


def leverages(before: Linearization, after: Linearization) -> Floats:
    """Return the eigenvalues of ``H^-1 (H - H')``, ascending, between 0 and 1 for squared losses.

    0: the forgotten quotes contain nothing in that direction. 1: no other quote does, and forgetting loses it.
    Independent of units. Random deletions of 1 % have a largest one near 0.02, of 70 % near 0.75.
    """
    H, H2 = before.curvature, after.curvature
    if H.shape != H2.shape:
        raise UsageError(f"leverages: {len(H)} parameters before, {len(H2)} after. Linearize both with the same model.")
    scale = 1.0 / np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0))
    both = scale[:, None] * scale
    d, L = factor((H * both).tolist())
    if not (eigenvalues(H * both)[0] > NO_EIGENVALUE and all(row[-1] > 0.0 for row in L)):
        raise UsageError(
            "leverages: the curvature before forgetting is singular, so no direction has a share to lose. "
            "Fix the parameters that the quotes do not determine."
        )
    half = [forward(d, L, column) for column in ((H - H2) * both).tolist()]
    whole = np.array([forward(d, L, row) for row in np.array(half).T.tolist()])
    return eigenvalues(0.5 * (whole + whole.T))
