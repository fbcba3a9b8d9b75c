"""What operators ask of a calibration, in memory or in a book, and which operators each kind of calibration supports.

    operator      quotes, squared loss    quotes, Huber's loss     Feller enforced    moments
    downdate      plain, panel            no: ROBUST_LOSS          no: FELLER         no: NO_QUOTES
    restep        plain, panel            no: ROBUST_LOSS          no: FELLER         no: NO_QUOTES
    recompute     plain, panel            no: ROBUST_LOSS          no: FELLER         no: NO_QUOTES
    refine        plain, panel            no: ROBUST_LOSS          no: FELLER         no: NO_QUOTES
    resolve       plain; panel: PANEL     no: NOT_SQUARED_PRICES   yes                yes
    recalibrate   plain, panel            plain, panel             plain, panel       no: NO_QUOTES
    paper         plain; panel: PAPER     no: ROBUST_LOSS          no: FELLER         no: NO_QUOTES

``unsupported`` is this table for calibrations from quotes, in memory and in books, which also choose moments by it
(``book.spec``); a calibration from moments has ``resolve`` alone. A panel whose path has a prior is recalibrated
(PRIOR). Reasons that depend on the quotes to strike out are checked with the request. In a book a downdate also needs
stored footprints without noise (NO_FOOTPRINTS, NOISE).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from numpy.typing import ArrayLike

from strikeout.assurance.issue import Before
from strikeout.calibration.settings import Settings
from strikeout.models.model import Model
from strikeout.statistics.second_order import SecondOrder
from strikeout.statistics.system import Group

Operator = Literal["downdate", "restep", "recompute", "resolve", "recalibrate", "refine", "paper"]
OPERATORS: tuple[Operator, ...] = ("downdate", "restep", "recompute", "resolve", "recalibrate", "refine", "paper")
STEPS = frozenset({"downdate", "restep", "recompute", "refine", "paper"})


class Unsupported(StrEnum):
    """Why an operator cannot replace a calibration of the retained quotes; the values are clauses."""

    ROBUST_LOSS = "a robust loss changes its weights, which a step does not"
    FELLER = "Feller's condition is enforced, which a step ignores"
    PRIOR = "the path of the panel has a prior, which a step ignores"
    NO_QUOTES = "it needs the quotes, and this calibration was made from moments"
    NOT_SQUARED_PRICES = "moments support squared price residuals only"
    PAPER = "the paper's step has no latent parameters"
    PANEL = "moments have one state for all groups, and a panel needs one per group"
    FORWARDS = "forwards depend on these quotes, and footprints of retained quotes depend on the forwards"
    NOT_COUNTED = "none of these quotes counts in the objective"
    EXPIRY = "the last quote of an expiry is struck out, and a step cannot remove its parameters"
    TOO_LARGE = "a quote is too large to have a footprint"
    LOST_GROUP = "the quotes left in a group have zero sensitivities, so a step would lose the group"
    NO_GROUP = "no group is left"
    OTHER_KIND = "the retained quotes are a panel and the calibration is not, or the reverse"
    NO_FOOTPRINTS = "the book keeps no footprints"
    NOISE = "the footprints are perturbed, and nothing can be certified from them"
    UNDECIDED = "only a calibration decides whether the retained quotes form a panel"
    UNIDENTIFIED = "unidentified"
    OUT_OF_BOUNDS = "out of bounds"
    TOO_FAR = "too far"
    NOT_DETERMINED = "at its end, the retained quotes do not determine every parameter"
    NOT_THERE = "at its end, the retained quotes lead further than the tolerance"
    UNCLEAR = "only the retained quotes can show whether they determine the parameters at the end of the step"


class Evidence(Before, Protocol):
    """What a step is judged and certified by: a calibration in memory, or what a book or an update keeps of one.

    A plain calibration has no latent parameter, and one group, ``WHOLE``.
    """

    @property
    def fixed(self) -> Mapping[str, float]: ...

    def second_order_without(self, ids: ArrayLike) -> Mapping[Group, SecondOrder]:
        """Return what one step leaves out once these quotes are struck out, by group."""
        ...


@dataclass(frozen=True, eq=False)
class KeptEvidence:
    """``Evidence`` of a calibration that is not computed again: what a book or an update keeps of it.

    Args:
        size: how many quotes there were.
        without: returns ``second_order_without`` of ids. Not needed if no step is judged.
    """

    model: Model
    settings: Settings
    size: int
    panel: str | None
    latent_name: str | None
    on_bound: Mapping[str, float] = field(default_factory=dict)
    without: Callable[[ArrayLike], Mapping[Group, SecondOrder]] = field(default=lambda _: {})

    @property
    def fixed(self) -> Mapping[str, float]:
        return self.settings.fixed or {}

    def second_order_without(self, ids: ArrayLike) -> Mapping[Group, SecondOrder]:
        return self.without(ids)


def unsupported(operator: str, settings: Settings, *, is_panel: bool) -> Unsupported | None:
    """Return why a calibration with these settings does not support an operator, whatever the quotes; None if it does.

    >>> unsupported("downdate", Settings(loss="huber"), is_panel=False)
    <Unsupported.ROBUST_LOSS: 'a robust loss changes its weights, which a step does not'>
    """
    if operator == "resolve":
        if is_panel:
            return Unsupported.PANEL
        is_supported = settings.loss == "squared" and settings.residual == "price"
        return None if is_supported else Unsupported.NOT_SQUARED_PRICES
    if operator not in STEPS:
        return None
    if operator == "paper" and is_panel:
        return Unsupported.PAPER
    if settings.loss != "squared":
        return Unsupported.ROBUST_LOSS
    if is_panel and settings.has_prior:
        return Unsupported.PRIOR
    return Unsupported.FELLER if settings.feller == "enforce" else None


def free_parameters(evidence: Evidence) -> tuple[int, ...] | None:
    """Return the numbers of the (shared) parameters that are not fixed; None if all are free."""
    if not evidence.fixed:
        return None
    names = [name for name in evidence.model.parameters.names if name != evidence.latent_name]
    return tuple(i for i, name in enumerate(names) if name not in evidence.fixed)
