"""Independent Heston variances and lognormal jumps on the line, compiled if that is installed, else by NumPy.

X = ln(S_T / forward) is a sum of independent parts, so everything the line asks about it is a sum over parts: the
logarithm of the characteristic function (heston_cf.py, jump_cf.py), of the moments, and of the bound. theta is that of
the first Heston part, of the second, then of the jumps. Two variances are priced on bent contours (double_heston.py);
the line is for strikes that have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strikeout.kernels import double_heston, fourier_trapezoid, heston_cf, jump_cf, jump_split
from strikeout.kernels.arrays import Complexes, Floats
from strikeout.kernels.compiled import compiled, threads
from strikeout.kernels.heston_twin import Parts

VERSION = 4  # of the rule and of the terms: another one moves the last bits of a price
WORTH_THREADS = 5_000  # strikes, each as dear as some dozens of Heston's; an expiry counts as
EXPIRY = 300


@dataclass(frozen=True)
class Family:
    """A model that is such a sum: how many Heston parts, with jumps or without."""

    compiled: str  # the name of its rows in the compiled module
    variances: int
    jumps: bool

    def log_cf(self, z: Complexes, T: float, theta: Floats) -> tuple[Complexes, Sequence[Complexes]]:
        """Return ``ln E[exp(i z X)]`` and its derivatives, in the order of the parameters."""
        q = z * z + 1j * z
        found = [heston_cf.log_cf(z, q, T, part) for part in self._variances(theta)]
        if self.jumps:
            found.append(jump_cf.log_cf(z, T, theta[-3:]))  # type: ignore[arg-type]
        total = found[0][0]
        for value, _ in found[1:]:
            total = total + value
        return total, tuple(slope for _, gradient in found for slope in gradient)

    def known(self, T: float, theta: Floats) -> fourier_trapezoid.Known:
        """Return the moments and the bound, which do not follow from log_cf alone."""

        def log_mgf(p: Floats) -> Floats:
            found = [heston_cf.log_mgf(p, T, part) for part in self._variances(theta)]
            return sum(found[1:], found[0]) + (jump_cf.log_mgf(p, T, theta[-3:]) if self.jumps else 0.0)

        def bound(u: Floats) -> tuple[Floats, Floats]:
            found = [heston_cf.bound(u, T, part) for part in self._variances(theta)]
            found += [jump_cf.bound(u, T, theta[-3:])] if self.jumps else []
            return np.add.reduce([size for size, _ in found]), np.maximum.reduce([slope for _, slope in found])

        return fourier_trapezoid.Known(log_mgf, bound)

    def _variances(self, theta: Floats) -> list[Floats]:
        return [theta[5 * i : 5 * i + 5] for i in range(self.variances)]


BATES = Family("bates_rows", 1, True)
DOUBLE_HESTON = Family("double_heston_rows", 2, False)


def rows(kernel: str, family: Family, theta: Floats, part: Parts) -> Floats:
    """Return out-of-the-money value over the discounted forward, and its derivatives: ``(1 + p, n)``.

    Not-a-number if the characteristic function decays too slowly.
    """
    if kernel == "native":
        count = threads() if part.k.size + EXPIRY * part.expiries.size >= WORTH_THREADS else 1
        found: Floats = getattr(compiled(), family.compiled)(theta, part.expiries, part.offsets, part.k, count)
        return found
    out = np.empty((1 + len(theta), len(part.k))) if family.jumps else double_heston.rows(theta, part)
    for j, T in enumerate(part.expiries.tolist()):
        here = np.arange(part.offsets[j], part.offsets[j + 1])
        if not family.jumps:
            here = here[~np.isfinite(out[0, here])]  # strikes without a contour
            if not len(here):
                continue
        known = family.known(T, theta)
        if family.jumps and jump_split.is_split(T, theta):
            out[:, here] = jump_split.values(T, theta, part.k[here], family.log_cf, known)
        else:
            found_line = fourier_trapezoid.rule(family.log_cf, T, theta, known)
            out[:, here] = fourier_trapezoid.values(found_line, part.k[here], "numpy")
    return out
