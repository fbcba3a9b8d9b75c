"""Preview what forgetting would do; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.summary import html_table
from strikeout.calibration.termination import Termination
from strikeout.errors import RefusedError
from strikeout.forgetting.evidence import Unsupported
from strikeout.forgetting.forget import forget, try_step
from strikeout.forgetting.forgetting import aligned, moves
from strikeout.forgetting.recalibrate import new_kind
from strikeout.forgetting.request import Request, request_of
from strikeout.forgetting.step_error import step_error
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.statistics.system import Group
from strikeout.text import Mention, as_lines, many, render

LOOKED = ("parameter", "would be", "moved (independent SE)")


@dataclass(frozen=True, eq=False, repr=False)
class Preview:
    """The parameters after forgetting, and how accurate they are.

    ``error`` is the tolerance, in standard errors, that is certified for ``parameters``: zero if the answer is the
    final one, infinite if one step is not enough and ``forget`` would have to calibrate again. ``refusal`` is the error
    ``forget`` would raise, as far as a preview can show; None if there is none.
    """

    ids: Names
    before: int  # how many quotes there are
    operator: str
    parameters: dict[str, float]
    moved: dict[str, float]  # in standard errors after
    error: float
    refusal: RefusedError | None
    latent: dict[Group, float] = field(default_factory=dict)  # what would be left of the path of a panel
    given: int | None = None  # how many quotes would be struck out, if they have no ids here

    @property
    def count(self) -> int:
        """How many quotes would be struck out."""
        return len(self.ids) if self.given is None else self.given

    @property
    def retained(self) -> int:
        """How many quotes would be left."""
        return self.before - self.count

    @property
    def sentence(self) -> str:
        """The preview in one sentence."""
        return render(self.parts)

    @property
    def parts(self) -> tuple[str | Mention, ...]:
        """The parts of the sentence; see ``text.Mention``."""
        what = f"Striking out {many(self.count, 'quote')} leaves {self.retained:,}"
        if self.refusal is not None:
            return f"{what} and would be refused: ", *self.refusal.parts
        largest = max((abs(x) for x in self.moved.values() if isfinite(x)), default=0.0)
        if not isfinite(self.error):
            return (f"{what} and moves the parameters too far for one step: forget will calibrate again.",)
        sure = "exactly" if self.error == 0.0 else f"to within {self.error:.2g}"
        return (
            f"{what} and moves a parameter by up to {largest:.2g} standard errors of independent quotes, known {sure}.",
        )

    def __repr__(self) -> str:
        return f"<Preview: {self.sentence}>"

    def summary(self) -> str:
        """Return every parameter after forgetting, then the preview in one sentence."""
        return as_lines([*aligned([LOOKED, *self._rows()]), "", self.sentence])

    def _repr_html_(self) -> str:
        return html_table(LOOKED, self._rows(), [self.sentence])

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(name, f"{value:.6g}", f"{self.moved[name]:.3g}") for name, value in self.parameters.items()]


def preview(
    calibration: Calibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
) -> Preview:
    """Return what striking these quotes out would do, as cheaply as possible: one exact downdate.

    If one step cannot replace the answer (a robust loss, refitted forwards, moments, a panel that becomes plain or the
    reverse), or leaves a parameter free, the quotes are forgotten in a trial. So a refusal is that of ``forget``.

    Raises:
        UsageError: not exactly one of ids, where and quotes is given.
        UnknownIdError: an id that no quote of the book has, or one given twice.
        RefusedError: the calibration holds no quotes, and none are given.
    """
    request = request_of(calibration, ids=ids, where=where, quotes=quotes, everything=True)
    taken = None
    if request.book is not None and 0 < request.count < len(request.book) and new_kind(calibration, request) is None:
        try:
            taken = try_step(calibration, request)
        except RefusedError:  # what is left of a slice gives no forward: the trial raises it
            taken = None
    if taken is None or isinstance(taken, Unsupported):
        return _tried(calibration, request)
    step, judged = taken, step_error(taken, calibration, ids=lambda: request.used)
    # What rows determine at the parameters of now does not show what the retained quotes determine at theirs: a fit to
    # bad quotes may leave free what the good ones fix. Only the trial shows whether forget refuses. A calibration that
    # ran into the model's bound is torn between valleys: there a step that goes too far is reported without a trial.
    is_torn = calibration.termination is Termination.AT_BOUND and not calibration.is_panel
    if judged.free and not is_torn:
        return _tried(calibration, request)
    return Preview(
        request.ids,
        calibration.size if request.book is None else len(request.book),
        "downdate",
        step.parameters,
        moves(calibration.parameters, step.parameters, judged.standard_errors),
        judged.error,
        None,
        dict(step.latent) if calibration.is_panel else {},
    )


def retained_rmse(
    calibration: Calibration, parameters: Mapping[str, float], latent: Mapping[str, float], ids: ArrayLike
) -> float:
    """Return the RMSE in price of the quotes without these, at the parameters after; not-a-number if none is left.

    ``latent`` has the latent parameters of a panel after, by the text of the group.

    Forwards are as they are now: those that a strike-out refits move it a little.
    """
    quotes = calibration.used
    counted = ~np.isin(quotes.ids, np.asarray(ids)) & (quotes.weight > 0.0)
    squares, count = 0.0, 0
    for group, rows in calibration.rows.items():
        kept = rows[counted[rows]]
        if not len(kept) or (calibration.is_panel and str(group) not in latent):
            continue
        theta = {**calibration.theta(group), **parameters}
        if calibration.is_panel:
            theta[str(calibration.latent_name)] = latent[str(group)]
        error = quotes.observed[kept] - calibration.model.price(theta, quotes.contracts[kept])
        squares, count = squares + float(np.add.reduce(error * error)), count + len(kept)
    return sqrt(squares / count) if count else nan


def _tried(calibration: Calibration, request: Request) -> Preview:
    names, size = request.ids, calibration.size
    given = None if request.book is not None else request.count
    try:
        done = forget(calibration, quotes=request.forgotten) if request.book is None else forget(calibration, ids=names)
    except RefusedError as error:
        same = dict(calibration.parameters)
        still = moves(same, same, calibration.standard_errors)
        return Preview(names, size, "none", same, still, inf, error, given=given)
    return Preview(names, size, done.operator, done.parameters, done.moved, 0.0, None, dict(done.latent), given)
