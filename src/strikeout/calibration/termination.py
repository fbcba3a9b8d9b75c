"""How a calibration ended."""

from __future__ import annotations

from enum import Enum


class Termination(Enum):
    """Why the search stopped: a status in a word or two, and what it means. ``converged`` is the answer to rely on."""

    CONVERGED = "converged", "the next step would move no parameter by more than 1e-8 standard errors"
    CONVERGED_TO_ROUNDING = "converged", "what is left to gain is below floating-point rounding"
    CONVERGED_ON_BOUND = "converged on a bound that was asked for", "the cost falls no further inside it"
    CONVERGED_ON_EDGE = (
        "converged at an edge of the model",
        "a parameter is where the model ends, such as a variance of zero, and nothing lies beyond",
    )
    CONVERGED_LOCALLY = (
        "converged to a local optimum",
        "the loss redescends, so there may be others; no start ended at a lower cost",
    )
    CONVERGED_WITH_PRIOR = "converged", "the next step would move no latent parameter by more than 1e-7 standard errors"
    AT_BOUND = "not converged", "a parameter ran into the model's own bound, so the optimum may lie outside"
    NOT_IDENTIFIED = "not identified", "the quotes do not determine every parameter"
    STALLED = "stalled", "no step lowers the cost, though the gradient is not zero"
    CAP = "not converged", "the iteration cap was reached first"
    NOT_FINITE = "not converged", "the model has no finite price at the start"
    JOINED = "joined", "came into the basin of an optimum that an earlier start had found"
    ABANDONED = "abandoned", "far behind an optimum that an earlier start had found, and not catching up"

    @property
    def status(self) -> str:
        """The short form, for tables."""
        return self.value[0]

    @property
    def sentence(self) -> str:
        """The long form as a sentence."""
        return f"{self.value[0].capitalize()}: {self.value[1]}."

    @property
    def converged(self) -> bool:
        """True where the parameters are an optimum of the question that was asked."""
        return self in (
            Termination.CONVERGED,
            Termination.CONVERGED_TO_ROUNDING,
            Termination.CONVERGED_ON_BOUND,
            Termination.CONVERGED_ON_EDGE,
            Termination.CONVERGED_LOCALLY,
            Termination.CONVERGED_WITH_PRIOR,
        )

    def __str__(self) -> str:
        return ": ".join(self.value)
