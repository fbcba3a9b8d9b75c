"""Strike quotes out of a panel's exact states by subtraction; no quote is looked at, and no other group is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike

from strikeout.forgetting.step import OneStep
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.panel_state import ArrowStep, Group, PanelState


@dataclass(frozen=True, eq=False)
class PanelStep:
    """Where one Gauss-Newton step leads a panel, and the exact states it was solved from: equal states, equal bits.

    ``free`` are the numbers of the shared parameters that may move; None where all may. A step is not a number where
    the states do not determine it.
    """

    state: PanelState
    free: tuple[int, ...] | None = None

    @cached_property
    def arrow(self) -> ArrowStep:
        """The change of the shared parameters, and that of every latent one, which follows."""
        whole = self.state.whole
        return self.state.followed(whole, OneStep(whole, free=self.free).change)

    @property
    def parameters(self) -> dict[str, float]:
        """The shared parameters after the step, by name."""
        return self.arrow.parameters

    @property
    def latent(self) -> dict[Group, float]:
        """The latent parameter of every group that is left, after the step."""
        return self.arrow.latent_values


def panel_downdate(
    arrow: PanelState,
    footprints: Mapping[Group, Footprints],
    ids: Mapping[Group, ArrayLike],
    *,
    free: tuple[int, ...] | None = None,
) -> PanelStep:
    """The step at the reference once these quotes are taken away, group by group; exact to the last bit.

    A group that loses all its quotes goes, and its latent parameter with it. The states of the groups that lose none
    are those of before, not copies.

    Args:
        arrow: the sums of the footprints, by group.
        ids: of the quotes to strike out, by group.

    Raises:
        UnknownIdError: an id without a footprint in its group, or one given twice.
    """
    arrow.pieces  # noqa: B018  (worked out here once; what is left takes those of the other groups over)
    gone = {group: footprints[group].total(footprints[group].places(names)) for group, names in ids.items()}
    return PanelStep(arrow - PanelState(arrow.latent, gone), free)
