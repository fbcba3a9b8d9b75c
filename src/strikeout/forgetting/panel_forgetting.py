"""What striking quotes out of a panel came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from strikeout.assurance.certificate import Certificate
from strikeout.assurance.optimality import Optimality
from strikeout.assurance.panel_issuing import issue_panel
from strikeout.calibration.latent_moves import latent_moves
from strikeout.calibration.notebook import html_table
from strikeout.calibration.panel_calibration import AnyCalibration, PanelCalibration
from strikeout.forgetting.forgetting import MOVED, answer_of, move_rows, move_table, moves
from strikeout.forgetting.trust import Trust
from strikeout.quotes.forwards import Refit
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.system import Group, OneStep
from strikeout.wording import as_lines, many


@dataclass(frozen=True, eq=False, repr=False)
class PanelForgetting:
    """The panel's parameters without the quotes that were struck out, how they were found, and what was there before.

    As ``Forgetting``, with ``parameters`` the shared ones and ``latent`` the others by group. A group that lost all its
    quotes is in ``dropped`` and has no latent parameter any more. ``before`` may be a plain calibration, where a panel
    was left open (``panel="auto"``) and only what is left is one.
    """

    ids: Names
    before: AnyCalibration
    forgotten: Quotes
    parameters: dict[str, float]
    latent: dict[Group, float]
    operator: str
    path: tuple[str, ...]
    step: OneStep | None = None
    trust: Trust | None = None
    tolerance: float | None = None
    refits: tuple[Refit, ...] = ()
    _found: Callable[[], Optimality] | None = field(default=None, kw_only=True)  # of one step, by the retained quotes
    _calibrated: PanelCalibration | Callable[[], PanelCalibration] = field(kw_only=True)

    @cached_property
    def calibration(self) -> PanelCalibration:
        """The calibration of what is retained, as if nothing else had ever been seen; made when first asked for.

        Raises:
            RefusedError: the retained quotes give no calibration.
        """
        return self._calibrated if isinstance(self._calibrated, PanelCalibration) else self._calibrated()

    @cached_property
    def certificate(self) -> Certificate:
        """What is claimed of this, for others to check: ``verify(certificate, retained)``.

        Raises:
            RefusedError: the retained quotes give no calibration.
        """
        step = self.step
        made = isinstance(self._calibrated, PanelCalibration)
        return issue_panel(
            self.before,
            answer_of(self),
            self.latent,
            after=self.calibration if made or step is None else None,
            state=None if step is None else step.system,
            found=None if self._found is None else self._found(),
        )

    @property
    def count(self) -> int:
        """How many quotes were struck out."""
        return len(self.forgotten)

    @property
    def dropped(self) -> tuple[Group, ...]:
        """The groups that went as a whole, with their latent parameters."""
        return tuple(group for group in self.latent_before if group not in self.latent)

    @property
    def latent_before(self) -> dict[Group, float]:
        """The latent path of before; none where that was no panel."""
        return self.before.latent if isinstance(self.before, PanelCalibration) else {}

    @property
    def latent_moves(self) -> list[str]:
        """What became of the latent path, in sentences; none where before was no panel."""
        before = self.before
        if not isinstance(before, PanelCalibration):
            return []
        return latent_moves(before.latent, self.latent, name=before.latent_name, label=before.panel, is_done=True)

    @property
    def _groups(self) -> int:
        return len(self.latent) + len(self.dropped)

    @property
    def moved(self) -> dict[str, float]:
        """By how many standard errors (of before) each shared parameter moved; not-a-number for one that was held."""
        return moves(self.before, self.parameters)

    def summary(self) -> str:
        """Before, after and the move of every shared parameter, then the groups and the path, one fact a line."""
        lines = move_table(self.before, self.parameters)
        lines += ["", f"forgotten  {self.count:,} of {many(self.before.size, 'quote')}"]
        gone = f"; {', '.join(map(str, self.dropped[:3]))}{', ...' if len(self.dropped) > 3 else ''} went as a whole"
        left = f"{len(self.latent):,} of {self._groups:,} left"
        lines += [f"groups     {left}{gone if self.dropped else ''}"]
        lines += [f"latent     {sentence}" for sentence in self.latent_moves]
        return as_lines([*lines, *(f"path       {sentence}" for sentence in self.path)])

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return (
            f"PanelForgetting({values}; {many(self.count, 'quote')} struck out by {self.operator}, "
            f"{len(self.dropped)} of {many(self._groups, 'group')} with all of theirs)"
        )

    def _repr_html_(self) -> str:
        struck = f"forgotten: {self.count:,} of {many(self.before.size, 'quote')}, by {self.operator}"
        left = f"groups: {len(self.latent):,} of {self._groups:,} left"
        facts = [struck, left, *(f"path: {sentence}" for sentence in self.path)]
        return html_table(MOVED, move_rows(self.before, self.parameters), facts)
