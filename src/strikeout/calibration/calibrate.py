"""Quotes and a model in, a calibration out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.choosing import Choice, chosen, weights_for
from strikeout.calibration.conclusion import concluded
from strikeout.calibration.coordinates import Bounds, Coordinates, coordinates_of
from strikeout.calibration.descents import End, Problem
from strikeout.calibration.feller import CHOICES
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.calibration.panel import calibrate_panel
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.panel_choice import AUTO, chosen_panel
from strikeout.calibration.settings import STARTS, Settings, settings_of
from strikeout.calibration.starts import Progress, Start, best_of, search, starting_points
from strikeout.errors import UnidentifiedError, UsageError
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.linearize import price_residuals, rows
from strikeout.statistics.losses import Huber, Loss, Squared, noise_variance
from strikeout.statistics.moments import Moments
from strikeout.statistics.objective import Objective, Residual, objective_of
from strikeout.statistics.weights import Weighting
from strikeout.wording import Argument, many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

LOSSES: dict[str, Loss] = {"squared": Squared(), "huber": Huber(1.0)}


@overload
def calibrate(
    quotes: Quotes | Moments,
    model: Model,
    *,
    weights: Weighting = "given",
    residual: Residual = "price",
    loss: Literal["squared", "huber"] = "squared",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    feller: Literal["warn", "enforce", "ignore"] = "warn",
    starts: int | Start | Sequence[Start] = STARTS,
    select: Choice = "all",
    panel: None = None,
    progress: Progress | None = None,
) -> Calibration: ...


@overload
def calibrate(  # type: ignore[overload-overlap]  # a word among the labels
    quotes: Quotes | Moments,
    model: Model,
    *,
    weights: Weighting = "given",
    residual: Residual = "price",
    loss: Literal["squared", "huber"] = "squared",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    feller: Literal["warn", "enforce", "ignore"] = "warn",
    starts: int | Start | Sequence[Start] = STARTS,
    select: Choice = "all",
    panel: Literal["auto"],
    progress: Progress | None = None,
) -> Calibration | PanelCalibration: ...


@overload
def calibrate(
    quotes: Quotes | Moments,
    model: Model,
    *,
    weights: Weighting = "given",
    residual: Residual = "price",
    loss: Literal["squared", "huber"] = "squared",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    feller: Literal["warn", "enforce", "ignore"] = "warn",
    starts: int | Start | Sequence[Start] = STARTS,
    select: Choice = "all",
    panel: str,
    progress: Progress | None = None,
) -> PanelCalibration: ...


def calibrate(
    quotes: Quotes | Moments,
    model: Model,
    *,
    weights: Weighting = "given",
    residual: Residual = "price",
    loss: Literal["squared", "huber"] = "squared",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    feller: Literal["warn", "enforce", "ignore"] = "warn",
    starts: int | Start | Sequence[Start] = STARTS,
    select: Choice = "all",
    panel: str | None = None,
    progress: Progress | None = None,
) -> Calibration | PanelCalibration:
    """The parameters that bring the model closest to the quotes, from cold starts, the same bits every time.

    Minimises ``sum of loss(sqrt(w) (observed - model))`` by Levenberg-Marquardt. The rows' order cannot change a bit.
    A search that did not converge, or quotes that leave a parameter undetermined, come back as a calibration whose
    ``converged`` is False and whose ``termination`` says why.

    Args:
        quotes: or the moments of quotes (``moments_of``), which have their weights in them.
        weights: of the squared residuals; see ``weights_of``. An array has one weight a quote, a mapping goes by id.
        residual: what is compared, prices or Black implied volatilities.
        bounds: (lower, upper) by parameter name, inside the model's own.
        fixed: parameters that are known, by name.
        feller: "warn" says when Feller's condition is not met, "enforce" keeps to it.
        starts: how many canonical starts at most, or starts of your own by name.
        select: which quotes count: "all", or "otm", puts below the forward and calls at it and above. The others stay
            in ``Calibration.book``: forwards may rest on them.
        panel: a label of the quotes, such as "date": the model's latent parameter (Heston's initial_variance) then
            has a value of its own for every value of the label, and a ``PanelCalibration`` comes back. "auto" is a
            panel by date where there are several dates and quotes enough (``panel_choice``), else plain; what is
            forgotten or learnt later decides it anew.
        progress: called with the number of the start and every accepted step.

    Raises:
        UsageError: an unknown option, or weights that do not match the quotes.
        ParameterError: an unknown name, empty bounds, or a value outside them.
        RefusedError: a quote lacks what the residual or the weighting needs.
        UnidentifiedError: there are too few different contracts for the free parameters.
    """
    _refuse_what_is_neither(quotes, model)
    if isinstance(quotes, Moments):
        _refuse_what_moments_fix(quotes, weights, residual, loss, select, panel)
        found = calibrate_moments(
            quotes, model, bounds=bounds, fixed=fixed, feller=feller, starts=starts, progress=progress
        )
        return found if panel is None else replace(found, settings=replace(found.settings, panel=panel))
    how = Settings(weights, residual, loss, bounds, fixed, feller, starts, select, panel)
    _refuse_unknown(how)
    label = None if panel is None else chosen_panel(quotes, model, how)
    if label is not None:
        return calibrate_panel(quotes, model, label=label, settings=how, progress=progress)
    return _plain(quotes, model, how, progress)


def _plain(quotes: Quotes, model: Model, how: Settings, progress: Progress | None) -> Calibration:
    """One value of every parameter for all the quotes that count."""
    used = chosen(quotes, how.select)
    # A model may price scattered expiries in another way, or have parameters for every expiry of its own.
    asked, suited = model, getattr(model, "suited", None)
    model = model if suited is None else suited(used.contracts)
    enforced = how.feller == "enforce"
    coordinates = coordinates_of(model.parameters, bounds=how.bounds, fixed=how.fixed, enforce_feller=enforced)
    points = starting_points(model, coordinates, how.starts)
    objective, rule = objective_of(used, residual=how.residual, weights=weights_for(used, quotes, how.weights))
    _refuse_too_few(objective, coordinates)
    posed = objective if how.loss == "squared" else objective.with_loss(LOSSES[how.loss])
    ends = search(Problem(posed, model, coordinates), points, progress)
    best = best_of(ends)
    theta = coordinates.theta(best.descent.point)
    return Calibration(
        **concluded(ends, best, model, coordinates, noise=_noise(best, model, theta), bounds=how.bounds),
        quotes=used,
        rmse=_rmse(best, model, theta),
        count=len(objective),
        residual=how.residual,
        weights=rule,
        loss=how.loss,
        threshold=best.merit if how.loss == "huber" else None,
        feller=how.feller,
        settings=settings_of(quotes, **how.keywords()),
        asked=asked,
        given=quotes,
    )


def _refuse_unknown(how: Settings) -> None:
    if how.feller not in CHOICES:
        raise UsageError(Argument("feller", how.feller), f" is unknown. Use one of {', '.join(CHOICES)}.")
    if how.loss not in LOSSES:
        raise UsageError(Argument("loss", how.loss), f" is unknown. Use one of {', '.join(LOSSES)}.")


def _refuse_what_is_neither(quotes: object, model: object) -> None:
    # By what they have: an import of Quotes here would let the data-free operators reach it.
    if not isinstance(quotes, Moments) and not (hasattr(quotes, "contracts") and hasattr(quotes, "observed")):
        raise UsageError(
            f"calibrate takes quotes, or the moments of quotes; got {type(quotes).__name__}. "
            "read_quotes makes quotes of a file or a frame."
        )
    if isinstance(model, type):
        raise UsageError(f"calibrate takes a model, and {model.__name__} is a class: write {model.__name__}().")
    if not isinstance(getattr(model, "parameters", None), ParameterSpace):
        raise UsageError(f"calibrate takes a model, such as Heston(); got {type(model).__name__}.")


def _refuse_what_moments_fix(
    moments: Moments, weights: Weighting, residual: str, loss: str, select: str, panel: str | None
) -> None:
    if panel not in (None, AUTO):
        raise UsageError(
            Argument("panel", panel),
            " needs the quotes: moments do not record which group a quote was in. Calibrate from the quotes.",
        )
    if select != "all":
        raise UsageError(
            Argument("select", select),
            ": moments do not distinguish their quotes. Select the quotes before you take the moments.",
        )
    if not isinstance(weights, str) or weights not in ("given", moments.weights):
        raise UsageError(
            "These moments were taken with ",
            Argument("weights", moments.weights),
            ", which cannot be changed afterwards. Take them again: moments_of(quotes, weights=...).",
        )
    if residual != "price" or loss != "squared":
        raise UsageError(
            "Moments support squared price residuals only, not ",
            Argument("residual", residual),
            " and ",
            Argument("loss", loss),
            ". Calibrate from the quotes.",
        )


def _refuse_too_few(objective: Objective, coordinates: Coordinates) -> None:
    places, free = objective.places, len(coordinates.free)
    if len(objective) <= free or places < free:
        held = many(len(objective), "quote")
        raise UnidentifiedError(
            f"{held} of {places} different (expiry, moneyness) cannot determine {free} free parameters with standard "
            f"errors: at least {free + 1} quotes on {free} different contracts are needed. Add quotes, or fix "
            "parameters (",
            Argument("fixed", ...),
            ").",
            count=len(objective),
            places=places,
            free=free,
        )


def _rmse(best: End[Objective], model: Model, theta: list[float]) -> float:
    posed = best.objective
    if posed.residual == "price" and isinstance(posed.loss, Squared) and bool((posed.weights == 1.0).all()):
        return sqrt(best.descent.system.cost / len(posed))
    errors = price_residuals(posed, model, theta)
    return sqrt(float(np.add.reduce(errors * errors)) / len(posed))


def _noise(best: End[Objective], model: Model, theta: list[float]) -> float:
    if isinstance(best.objective.loss, Squared):
        return best.descent.system.cost / (len(best.objective) - len(best.descent.point))
    residual, _ = rows(best.objective, model, np.array(theta))
    return noise_variance(best.objective.loss, best.objective.root_weight * residual, len(best.descent.point))
