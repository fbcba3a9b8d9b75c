"""The cheapest honest look at what forgetting would do; nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite

from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.notebook import html_table
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.forgetting.crossing import crossing
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.forget import forget, free_parameters, unstepped
from strikeout.forgetting.forgetting import aligned, moves
from strikeout.forgetting.panel import look_at
from strikeout.forgetting.panel_forgetting import PanelForgetting
from strikeout.forgetting.request import Request, request_of
from strikeout.forgetting.trust import Trust, trust
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.statistics.system import FootprintBlocks, Group
from strikeout.wording import Mention, as_lines, many, render

LOOKED = ("parameter", "would be", "moves by (SE)")


@dataclass(frozen=True, eq=False, repr=False)
class Preview:
    """Where the parameters would go, and how far that can be relied on.

    ``error`` is the tolerance, in standard errors, that is certified for ``parameters``: zero where the answer is the
    final one, infinite where one step says nothing and ``forget`` would have to calibrate anew. ``refusal`` is the
    error ``forget`` would raise, as far as a look can tell; None if there is none.
    """

    ids: Names
    count: int  # how many quotes would be struck out
    retained: int
    operator: str
    parameters: dict[str, float]
    moved: dict[str, float]  # in standard errors of the calibration
    error: float
    refusal: RefusedError | None
    latent: dict[Group, float] = field(default_factory=dict)  # of a panel: what would be left of the path

    @property
    def sentence(self) -> str:
        """The look in one sentence."""
        return render(self.parts)

    @property
    def parts(self) -> tuple[str | Mention, ...]:
        """The parts of the sentence; see ``wording.Mention``."""
        what = f"Striking out {many(self.count, 'quote')} leaves {self.retained:,}"
        if self.refusal is not None:
            return f"{what} and would be refused: ", *self.refusal.parts
        largest = max((abs(x) for x in self.moved.values() if isfinite(x)), default=0.0)
        if not isfinite(self.error):
            return (f"{what} and moves the parameters too far for one step to tell: forget will calibrate again.",)
        sure = "exactly" if self.error == 0.0 else f"to within {self.error:.2g}"
        return (f"{what} and moves a parameter by up to {largest:.2g} standard errors, known {sure}.",)

    def __repr__(self) -> str:
        return f"<Preview: {self.sentence}>"

    def summary(self) -> str:
        """Where every parameter would go, then the look in one sentence."""
        return as_lines([*aligned([LOOKED, *self._rows()]), "", self.sentence])

    def _repr_html_(self) -> str:
        return html_table(LOOKED, self._rows(), [self.sentence])

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(name, f"{value:.6g}", f"{self.moved[name]:.3g}") for name, value in self.parameters.items()]


def preview(
    calibration: Calibration | PanelCalibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
) -> Preview:
    """What striking these quotes out would do, as cheaply as it can be told honestly: one exact downdate.

    Where one step cannot stand for the answer (a robust loss, forwards that are found anew, moments, a panel that
    becomes plain or the reverse), the real thing is done.

    Raises:
        UsageError: what to forget is said in no way or in two.
        UnknownIdError: an id that no quote of the book has, or one given twice.
        RefusedError: the calibration holds no quotes, and none are given.
    """
    request = request_of(calibration, ids=ids, where=where, quotes=quotes, everything=True)
    names = request.ids
    if crossing(calibration, request) is not None:
        return _rehearsed(calibration, request)
    if isinstance(calibration, PanelCalibration):
        return _of_panel(calibration, request)
    if request.book is not None and 0 < len(names) < len(request.book) and _is_stepped(calibration, request):
        try:
            footprints = calibration.footprints
        except RefusedError:  # a quote too large to have one: the real thing it is
            return _rehearsed(calibration, request)
        step = downdate(FootprintBlocks.of(footprints), request.used, free=free_parameters(calibration))
        judged = trust(step, calibration, ids=lambda: request.used)
        # A calibration that ran into the model's bound is torn, and what its rows determine there says nothing of the
        # parameters that the others may lead to.
        is_torn = calibration.termination is Termination.AT_BOUND
        refusal = _undetermined(judged) if judged.free and not is_torn else None
        moved = moves(calibration, step.parameters)
        return Preview(
            names, len(names), len(request.book) - len(names), "downdate", step.parameters, moved, judged.error, refusal
        )
    return _rehearsed(calibration, request)


def _is_stepped(calibration: Calibration, request: Request) -> bool:
    try:
        return unstepped(calibration, request) is None
    except RefusedError:  # what is left of a slice gives no forward: the rehearsal will say so
        return False


def _of_panel(calibration: PanelCalibration, request: Request) -> Preview:
    names, retained = request.ids, calibration.size - len(request.ids)
    looked = look_at(calibration, request) if 0 < len(names) < len(calibration.book) else None
    if looked is None:
        return _rehearsed(calibration, request)
    step, judged = looked
    refusal = _undetermined(judged) if judged.free else None
    moved = moves(calibration, step.parameters)
    latent = dict(step.latent)
    return Preview(names, len(names), retained, "downdate", step.parameters, moved, judged.error, refusal, latent)


def _undetermined(judged: Trust) -> RefusedError:
    free = judged.free
    return UnidentifiedError(f"{', '.join(free)} would no longer be determined.", unidentified=list(free))


def _rehearsed(calibration: Calibration | PanelCalibration, request: Request) -> Preview:
    names, count = request.ids, len(request.forgotten)
    retained = calibration.size - count
    try:
        done = forget(calibration, quotes=request.forgotten) if request.book is None else forget(calibration, ids=names)
    except RefusedError as error:
        before = calibration.parameters
        return Preview(names, count, retained, "none", dict(before), moves(calibration, before), inf, error)
    latent = dict(done.latent) if isinstance(done, PanelForgetting) else {}
    return Preview(names, count, retained, done.operator, done.parameters, done.moved, 0.0, None, latent)
