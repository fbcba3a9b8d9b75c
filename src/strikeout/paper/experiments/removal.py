"""What is left when ever more is removed: positive definiteness, conditioning, the ridge, and what is determined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.bounds import weyl
from strikeout.assurance.spectrum import leverages
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError
from strikeout.forgetting.forget import forget
from strikeout.forgetting.paper_step import paper_step
from strikeout.forgetting.restep import restep
from strikeout.kernels.symmetric import inverse
from strikeout.statistics.footprinting import footprints_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Left:
    """The curvature of what is retained after a random removal; medians over several draws, of ``definite`` the share.

    ``bound_holds`` is the share of draws that meet the paper's condition for positive definiteness. ``condition`` is
    that of H', ``scaled_condition`` with a unit diagonal. ``ridge_bias`` is by what share of itself the paper's
    1e-6 I changes the step of mean_reversion.
    """

    removed: float
    retained: int
    definite: float
    bound_holds: float
    smallest_eigenvalue: float
    leverage: float
    condition: float
    scaled_condition: float
    ridge_bias: float


def removals(calibration: Calibration, *, fractions: Sequence[float], runs: int, seed: int) -> Iterator[Left]:
    """Return random removals of every fraction, at the calibrated parameters.

    Raises:
        UsageError: the curvature of the whole book is singular.
        RefusedError: a quote cannot be counted exactly.
    """
    rng = np.random.default_rng(seed)
    footprints = footprints_of(calibration.quotes, calibration.model, calibration.parameters)
    before = footprints.total().system()
    count = len(footprints)
    for fraction in fractions:
        gone = round(fraction * count)
        drawn = [np.sort(rng.permutation(count)[gone:]).astype(np.int64) for _ in range(runs)]
        kept = [footprints.total(places) for places in drawn]
        spectra = [np.linalg.eigvalsh(one.system().curvature) for one in kept]
        yield Left(
            removed=fraction,
            retained=count - gone,
            definite=float(np.mean([spectrum[0] > 0.0 for spectrum in spectra])),
            bound_holds=float(np.mean([weyl(before, one.system()).condition_holds for one in kept])),
            smallest_eigenvalue=float(np.median([spectrum[0] for spectrum in spectra])),
            leverage=float(np.median([leverages(before, one.system())[-1] for one in kept])),
            condition=float(np.median([spectrum[-1] / spectrum[0] for spectrum in spectra])),
            scaled_condition=float(np.median([_scaled_condition(one.system().curvature) for one in kept])),
            ridge_bias=float(np.median([_bias(one.exact_step(), one.step(ridge="paper")) for one in kept])),
        )


def _scaled_condition(H: Floats) -> float:
    scale = 1.0 / np.sqrt(np.diag(H))
    return float(np.linalg.cond(H * np.outer(scale, scale)))


def _bias(plain: Floats, ridged: Floats) -> float:
    return float(abs(ridged[0] / plain[0] - 1.0))


@dataclass(frozen=True)
class Kept:
    """One maturity kept and all others struck out.

    ``agreement`` is the paper's measure of its own step, which looks perfect; ``within`` the standard error that the
    retained quotes leave mean_reversion, over its value; ``refusal`` the message of ``forget`` instead of an answer.
    """

    kept: str
    agreement: float
    within: float
    step: float  # what the paper's operator gives for mean_reversion
    refusal: str


def single_maturities(calibration: Calibration) -> list[Kept]:
    """Return every maturity of the book kept alone.

    Raises:
        RefusedError: a quote cannot be counted exactly.
    """
    quotes, out = calibration.quotes, []
    term = quotes.labels["expiry_days"]
    for days in np.unique(term).tolist():
        ids = quotes.ids[term != days]
        fast = paper_step(calibration, ids)
        rebuilt = restep(quotes.without(ids), calibration.model, fast.equations.schema, ridge="paper")
        a, b = (np.array(list(step.parameters.values())) for step in (fast, rebuilt))
        unscaled = np.array(inverse(fast.equations.system().curvature.tolist()))
        try:
            refusal = ""
            forget(calibration, ids=ids)
        except RefusedError as error:
            refusal = error.sentence
        out.append(
            Kept(
                kept=f"{days} days",
                agreement=float(np.linalg.norm(a - b) / np.linalg.norm(b)),
                within=float(calibration.rmse * np.sqrt(unscaled[0, 0]) / calibration.parameters["mean_reversion"]),
                step=fast.parameters["mean_reversion"],
                refusal=refusal,
            )
        )
    return out
