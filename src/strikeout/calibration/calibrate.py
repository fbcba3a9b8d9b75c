"""Calibrate a model: quotes, or their moments, and a model in, a calibration out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack, runtime_checkable

import numpy as np

from strikeout.calibration.basin import Progress
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.coordinates import CHOICES, Bounds, Coordinates, coordinates_of
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.calibration.identifiability import INFLATION
from strikeout.calibration.latent_prior import Prior
from strikeout.calibration.latent_problem import (
    PanelObjective,
    PanelProblem,
    Settling,
    latent_bounds,
    latent_errors,
    panel_rmse,
    parts_of,
)
from strikeout.calibration.misfit import far_from_smooth
from strikeout.calibration.panels import (
    AUTO,
    LABEL,
    chosen_panel,
    counted_groups,
    grouped,
    latent_of,
    panel_form,
    shared_space,
)
from strikeout.calibration.problem import AnyPosed, Posed, Problem, RobustSearch, SearchEnd
from strikeout.calibration.result import concluded, panel_termination
from strikeout.calibration.settings import FREE, Choice, Settings, chosen, settings_of, weights_for
from strikeout.calibration.smiles import is_by_smile, search_by_smile
from strikeout.calibration.smoothing import with_prior
from strikeout.calibration.standard_errors import Errors, check_errors
from strikeout.calibration.starts import STARTS, Start, best_of, search, searched, stages_of, starting_points
from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.kernels.arrays import Floats
from strikeout.models.model import Model, ParameterSpace
from strikeout.models.named import with_full_names
from strikeout.statistics.linearize import price_residuals, rows
from strikeout.statistics.losses import SQUARED, AskedLoss, Squared, noise_variance
from strikeout.statistics.moments import Moments
from strikeout.statistics.objective import Objective, Residual, Weighting, objective_of
from strikeout.statistics.system import System
from strikeout.text import Advice, Argument, did_you_mean, many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


class Keywords(TypedDict, total=False):
    """The settings of ``calibrate``, as keywords; the defaults are those of ``Settings``."""

    weights: Weighting
    residual: Residual
    loss: str
    bounds: Bounds | None
    fixed: Mapping[str, float] | None
    feller: Literal["warn", "enforce", "ignore"]
    starts: int | Start | Sequence[Start]
    select: Choice
    panel: str | None
    errors: str | Sequence[str]
    latent: str


@runtime_checkable
class Gathering(Protocol):
    """Anything that adds up to a state, such as the states of a lake."""

    @property
    def parts(self) -> Sequence[object]:
        """The states that are added up."""
        ...

    def total(self, *, pool: bool = False) -> Moments | System:
        """Return the sum; with ``pool`` also of several underlyings."""
        ...


def calibrate(
    quotes: Quotes | Moments | Gathering,
    model: Model,
    *,
    pool: bool = False,
    progress: Progress | None = None,
    **settings: Unpack[Keywords],
) -> Calibration:
    """Fit the parameters of a model to quotes, from cold starts; the same bits every time.

    Minimises ``sum of loss(sqrt(w) (observed - model))`` by Levenberg-Marquardt. The order of the rows does not affect
    a bit. If the search does not converge, or the quotes leave a parameter undetermined, ``converged`` of the result is
    False and ``termination`` gives the reason.

    Args:
        quotes: or the moments of quotes (``moments_of``), which contain their weights, or what is gathered from a lake.
        model: such as ``Heston()``.
        pool: fit quotes of several underlyings as one; without it they are refused. ``calibrate_many`` fits each.
        progress: called with the number of the start and every accepted step.
        weights: of the squared residuals; see ``weights_of``. A rule, an array with one weight per quote, or weights by
            id. Default "given".
        residual: what is compared, "price" (default) or "implied_vol", Black implied volatilities.
        loss: "squared" (default), or one that reduces the effect of outliers: "huber", "soft-l1", "cauchy" or "tukey".
            The scale of a residual is measured (MAD), or given: "huber:0.02". The last two may have several optima.
        bounds: (lower, upper) by parameter name, inside the model's own: ``{"vol_of_vol": (0.1, 1.0)}``. Textbook
            symbols (kappa, theta, sigma, rho, v0) name parameters too, here and in ``fixed`` and ``starts``.
        fixed: values of parameters that are not estimated, by name: ``{"correlation": -0.7}``.
        feller: "warn" (default) if Feller's condition is not met, "enforce" it, or "ignore" it.
        starts: the largest number of canonical starts, or starts of your own by name. By default 4; Bates starts at
            Heston's optimum then, with frequent jumps and with rare ones.
        select: the quotes that count: "all" (default), or "otm", puts below the forward and calls at it and above. The
            others stay in ``Calibration.book``: forwards may depend on them.
        panel: a label of the quotes, such as "date": the model's latent parameter (Heston's initial_variance) then has
            a value of its own for every value of the label (``Calibration.latent``). "auto": a panel by date if there
            are several dates and enough quotes (``panel_choice``); quotes that are forgotten or learnt later may change
            the choice. Default None: one value for all quotes.
        errors: the unit of ``Calibration.errors``: "independent", "cluster:LABEL" (several labels for two-way
            clustering: "cluster:date,source") or "jackknife:LABEL". Default "auto": clusters are the groups of a panel,
            dates if there are several, or expiries. No choice changes parameters or states.
        latent: what ties the dates of a panel to each other: "free" (default), nothing; "smoothed", shared parameters
            and path are estimated together with a prior, that the variance moves from date to date as in the model;
            "filtered", each date follows from its own quotes and those of earlier dates, at the shared parameters of
            "free". "smoothed:2" has a prior of twice the strength: 0 is none, 1 (default) the model's. States do not
            depend on it.

    Raises:
        UsageError: an unknown option, weights that do not match the quotes, or several underlyings without ``pool``.
        ParameterError: an unknown name, one parameter named twice, empty bounds, or a value outside them.
        RefusedError: a quote lacks what the residual or the weighting needs.
        UnidentifiedError: there are too few different contracts for the free parameters.
    """
    given = _added_up(quotes, pool=pool)
    _check_arguments(given, model)
    if not pool and not isinstance(given, Moments):
        check_one_underlying(given)
    full: Any = named_in_full(model, settings)
    return fit(given, model, progress=progress, **full)


def _added_up(quotes: Quotes | Moments | Gathering, *, pool: bool) -> Quotes | Moments:
    if hasattr(quotes, "contracts"):  # the usual case first: a protocol takes longer to check than a start
        return quotes  # type: ignore[return-value]
    if not isinstance(quotes, Gathering):
        return quotes
    total = quotes.total(pool=pool)
    if isinstance(total, System):
        raise UsageError(
            "Normal equations describe the quotes near one reference only, which is one step and not an optimum. Take "
            "that step (gathered.total().step()), or gather moments (without at=) to calibrate."
        )
    return total


def fit(
    quotes: Quotes | Moments, model: Model, *, progress: Progress | None = None, **settings: Unpack[Keywords]
) -> Calibration:
    """Calibrate as ``calibrate``, with full names of parameters, whatever the underlyings: what was asked for once."""
    how = Settings(**settings)
    if isinstance(quotes, Moments):
        _check_moments(quotes, how)
        return calibrate_moments(quotes, model, how, progress=progress)
    if how.feller not in CHOICES:
        raise UsageError(Argument("feller", how.feller), f" is unknown. Use one of {', '.join(CHOICES)}.")
    AskedLoss.of(how.loss)
    check_errors(quotes, how.errors)
    _check_prior(how)
    label = None if how.panel is None else chosen_panel(quotes, model, how)
    return calibrate_as(quotes, model, how, label, progress=progress)


def calibrate_as(
    quotes: Quotes, model: Model, how: Settings, label: str | None, *, progress: Progress | None = None
) -> Calibration:
    """Calibrate as a panel by this label, or plain if it is None, whatever the settings leave open."""
    found = (
        _fit_plain(quotes, model, how, progress) if label is None else _fit_panel(quotes, model, how, label, progress)
    )
    settings, prior = settings_of(quotes, **how.keywords()), None if label is None else Prior.asked(how.latent)
    free = Calibration(
        **found,
        residual=how.residual,
        loss=how.loss,
        feller=how.feller,
        settings=settings if prior is None else replace(settings, latent=FREE),
        asked=model,
        given=quotes,
    )
    return free if prior is None else replace(with_prior(free, prior), settings=settings)


def _fit_plain(quotes: Quotes, model: Model, how: Settings, progress: Progress | None) -> dict[str, Any]:
    """Fit one value of every parameter to all quotes that count."""
    used = chosen(quotes, how.select)
    # A model may price scattered expiries in another way, or have parameters for every expiry of its own.
    suited = getattr(model, "suited", None)
    model = model if suited is None else suited(used.contracts)
    enforced = how.feller == "enforce"
    coordinates = coordinates_of(model.parameters, bounds=how.bounds, fixed=how.fixed, enforce_feller=enforced)
    points = starting_points(model, coordinates, how.starts)
    objective, rule = objective_of(used, residual=how.residual, weights=weights_for(used, quotes, how.weights))
    _check_count(objective, coordinates)
    problem = Problem(objective, model, coordinates, AskedLoss.of(how.loss))
    if is_by_smile(problem):
        ends, best = search_by_smile(problem, points, how.bounds, progress)
    else:
        ends = searched(problem, points, stages_of(model.parameters, how.starts), progress)
        if how.starts == STARTS:
            ends = _with_more_starts(problem, ends, model.parameters.more_starts, partial(_is_far, problem), progress)
        best = best_of(ends)
    theta = coordinates.theta(best.descent.point)
    return {
        **concluded(ends, best, model, coordinates, noise=_noise(best, model, theta), bounds=how.bounds),
        "quotes": used,
        "rmse": _rmse(best, model, theta),
        "count": len(objective),
        "weights": rule,
        "threshold": _threshold(best),
    }


def _with_more_starts(
    problem: RobustSearch[AnyPosed],
    ends: list[SearchEnd[AnyPosed]],
    more: Floats,
    is_far: Callable[[SearchEnd[AnyPosed]], bool],
    progress: Progress | None,
) -> list[SearchEnd[AnyPosed]]:
    """Follow the model's further starts if the best end is far from smooth; keep them if one of them is better."""
    best = best_of(ends)
    is_candidate = best.descent.termination.converged and not problem.asked.is_robust
    if not len(more) or not is_candidate or not is_far(best):
        return ends
    points = [problem.coordinates.point(row) for row in more.tolist()]
    all_ends = [*ends, *search(problem, points, progress, first=best)[1:]]
    return ends if best_of(all_ends) is best else all_ends


def _is_far(problem: Problem, end: SearchEnd[Objective]) -> bool:
    theta = np.array(problem.coordinates.theta(end.descent.point))
    return far_from_smooth([(end.objective, theta)], problem.model, len(problem.coordinates.free))


def _is_panel_far(problem: PanelProblem, end: SearchEnd[PanelObjective]) -> bool:
    shared, parts = problem.coordinates.theta(end.descent.point), end.objective.parts.values()
    settled = replace(problem, objective=end.objective).settle(shared, negligible=0.0)
    rows = [np.insert(settled.theta, problem.latent, own) for own in settled.latents.tolist()]
    free = len(problem.coordinates.free) + len(rows)
    return far_from_smooth(list(zip(parts, rows, strict=True)), problem.model, free)


@dataclass(frozen=True, eq=False)
class Shared:
    """As much of a model as the search for its shared parameters needs."""

    name: str
    parameters: ParameterSpace
    inflation: float


def _fit_panel(quotes: Quotes, model: Model, how: Settings, label: str, progress: Progress | None) -> dict[str, Any]:
    """Fit shared parameters and a latent one per group.

    Minimises the sum over groups of the cost of a plain calibration, each group at its own latent parameter. The order
    of rows and of groups does not affect a bit, and time and memory are linear in the number of groups.
    """
    latent, space = latent_of(model), model.parameters
    if latent in (how.fixed or {}):
        raise UsageError(
            Argument("fixed"),
            f" names {latent}, which a panel estimates for every group. Fix it with ",
            Argument("panel", None),
            ", or leave it free.",
        )
    k = space.names.index(latent)
    shared = Shared(model.name, shared_space(model, latent), getattr(model, "inflation", INFLATION))
    own = {name: ends for name, ends in (how.bounds or {}).items() if name != latent}
    coordinates = coordinates_of(shared.parameters, bounds=own, fixed=how.fixed, enforce_feller=how.feller == "enforce")
    lower, upper = latent_bounds(space, k, how.bounds)
    points = starting_points(shared, coordinates, _without_latent(how.starts, latent))  # type: ignore[arg-type]
    used = chosen(quotes, how.select)
    groups = grouped(used, label)
    whole, rule = objective_of(used, residual=how.residual, weights=weights_for(used, quotes, how.weights))
    objective = PanelObjective(parts_of(whole, groups))
    _check_panel_count(objective, coordinates, latent, label)
    formed = panel_form(model, used, groups)
    start = min(max(float(space.starts[0][k]), lower), upper)
    problem = PanelProblem(objective, formed, coordinates, k, lower, upper, start, AskedLoss.of(how.loss))
    ends = searched(problem, points, stages_of(shared.parameters, how.starts), progress)
    if how.starts == STARTS:
        ends = _with_more_starts(
            problem, ends, shared.parameters.more_starts, partial(_is_panel_far, problem), progress
        )
    best = best_of(ends)
    problem = replace(problem, objective=best.objective)  # with the threshold of the best end
    at = problem.settle(coordinates.theta(best.descent.point), negligible=0.0)
    noise = _panel_noise(problem, at, best)
    freed = None if latent in (how.bounds or {}) else problem.freed(at, best.descent.point)
    found = concluded(ends, best, shared, coordinates, noise=noise, bounds=own, freed=freed)  # type: ignore[arg-type]
    names, values = tuple(objective.parts), at.latents.tolist()
    on_bound = {
        g: x for g, x, held in zip(names, values, at.held.tolist(), strict=True) if held and x in (lower, upper)
    }
    return {
        **found,
        "model": formed,
        "termination": panel_termination(found["termination"], on_bound, how.bounds, latent, space),
        "quotes": used,
        "panel": label,
        "latent": dict(zip(names, values, strict=True)),
        "latent_standard_errors": dict(zip(names, latent_errors(problem, at, best.descent, noise), strict=True)),
        "latent_on_bound": on_bound,
        "counts": {group: len(part) for group, part in objective.parts.items()},
        "rmse": panel_rmse(problem.objective.parts.values(), formed, k, at.theta, at.latents),
        "count": objective.count,
        "weights": rule,
        "threshold": _threshold(best),
    }


def _threshold(best: SearchEnd[Posed]) -> float | None:
    return getattr(best.objective.loss, "threshold", None)  # only a robust loss has one


def check_one_underlying(quotes: Quotes, *, can_pool: bool = True) -> None:
    """Raise UsageError if the quotes are of several underlyings, which one set of parameters does not describe.

    Args:
        can_pool: whether the message offers to fit them as one.
    """
    labels = quotes.labels.get("underlying")
    names = sorted({str(name) for name in labels.tolist()}) if labels is not None else []
    if len(names) > 1:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise UsageError(
            f"The quotes are of {len(names):,} underlyings ({shown}), which one set of parameters does not describe. ",
            Advice.FIT_EACH,
            *((", or fit them as one (", Argument("pool", True), ").") if can_pool else (".",)),
            underlyings=len(names),
        )


def named_in_full(model: Model, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which textbook symbols of parameters are replaced by the names of this model's parameters."""
    unknown = sorted(settings.keys() - Keywords.__annotations__.keys())
    if unknown:
        raise UsageError(
            f"calibrate has no argument {unknown[0]}.{did_you_mean(unknown[0], Keywords.__annotations__)} "
            f"It takes {', '.join(Keywords.__annotations__)}.",
            argument=unknown[0],
        )
    found = dict(settings)
    for name in ("bounds", "fixed"):
        if isinstance(found.get(name), Mapping):
            found[name] = with_full_names(found[name], model)
    starts = found.get("starts")
    if isinstance(starts, Mapping):
        found["starts"] = with_full_names(starts, model)
    elif isinstance(starts, Sequence):
        found["starts"] = [with_full_names(one, model) if isinstance(one, Mapping) else one for one in starts]
    return found


def _check_arguments(quotes: object, model: object) -> None:
    # By their attributes: an import of Quotes here would let the data-free operators reach it.
    if not isinstance(quotes, Moments) and not (hasattr(quotes, "contracts") and hasattr(quotes, "observed")):
        raise UsageError(
            f"calibrate takes quotes, or the moments of quotes; got {type(quotes).__name__}. "
            "read_quotes makes quotes of a file or a frame.",
            kind=type(quotes).__name__,
        )
    if isinstance(model, type):
        raise UsageError(f"calibrate takes a model, and {model.__name__} is a class: write {model.__name__}().")
    if not isinstance(getattr(model, "parameters", None), ParameterSpace):
        raise UsageError(f"calibrate takes a model, such as Heston(); got {type(model).__name__}.")


def _check_prior(how: Settings) -> None:
    prior = Prior.asked(how.latent)
    if prior is not None and how.panel is None:
        raise UsageError(
            Argument("latent", how.latent),
            " needs a panel of dates. Add ",
            Argument("panel", LABEL),
            ", or leave it out.",
        )


def _check_moments(moments: Moments, how: Settings) -> None:
    Errors.asked(how.errors)
    _check_prior(how)
    if how.panel not in (None, AUTO):
        raise UsageError(
            Argument("panel", how.panel),
            " needs the quotes: moments do not record which group a quote was in. Calibrate from the quotes.",
        )
    if how.select != "all":
        raise UsageError(
            Argument("select", how.select),
            ": moments do not distinguish their quotes. Select the quotes before you take the moments.",
        )
    if not isinstance(how.weights, str) or how.weights not in ("given", moments.weights):
        raise UsageError(
            "These moments were taken with ",
            Argument("weights", moments.weights),
            ", which cannot be changed afterwards. Take them again: moments_of(quotes, weights=...).",
        )
    if how.residual != "price" or how.loss != "squared":
        raise UsageError(
            "Moments support squared price residuals only, not ",
            Argument("residual", how.residual),
            " and ",
            Argument("loss", how.loss),
            ". Calibrate from the quotes.",
        )


def _check_count(objective: Objective, coordinates: Coordinates) -> None:
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


def _check_panel_count(objective: PanelObjective, coordinates: Coordinates, latent: str, panel: str) -> None:
    free, groups = len(coordinates.free), len(objective.parts)
    if len(objective) <= free:
        raise UnidentifiedError(
            f"{many(objective.count, 'quote')} of {counted_groups(groups, panel)} cannot determine "
            f"{many(free, 'shared parameter')} and {many(groups, 'value')} of {latent} with standard errors: at least "
            f"{free + groups + 1:,} are needed. Add "
            "quotes, fix parameters (",
            Argument("fixed", ...),
            "), or have one value for all (",
            Argument("panel", None),
            ").",
            count=objective.count,
            groups=groups,
            free=free,
        )


def _without_latent(starts: Any, latent: str) -> Any:
    """Return starts without the latent parameter, which is solved for at every point."""
    if isinstance(starts, int):
        return starts
    given: Sequence[Any] = [starts] if isinstance(starts, Mapping) else list(starts)
    return [
        {name: value for name, value in start.items() if name != latent} if isinstance(start, Mapping) else start
        for start in given
    ]


def _rmse(best: SearchEnd[Objective], model: Model, theta: list[float]) -> float:
    posed = best.objective
    if posed.residual == "price" and isinstance(posed.loss, Squared) and bool((posed.weights == 1.0).all()):
        return sqrt(best.descent.system.cost / len(posed))
    errors = price_residuals(posed, model, theta)
    return sqrt(float(np.add.reduce(errors * errors)) / len(posed))


def _noise(best: SearchEnd[Objective], model: Model, theta: list[float]) -> float:
    if isinstance(best.objective.loss, Squared):
        return best.descent.system.cost / (len(best.objective) - len(best.descent.point))
    residual, _ = rows(best.objective, model, np.array(theta))
    return noise_variance(best.objective.loss, best.objective.root_weight * residual, len(best.descent.point))


def _panel_noise(problem: PanelProblem, at: Settling, best: SearchEnd[PanelObjective]) -> float:
    moving = len(best.descent.point) + int(np.count_nonzero(~at.held))
    if isinstance(best.objective.loss, Squared):
        return best.descent.system.cost / max(best.objective.count - moving, 1)
    return noise_variance(best.objective.loss, problem.residuals_at(at), moving)


def robust_reference(calibration: Calibration) -> dict[str, float]:
    """Return the parameters of the same quotes, calibrated the same way but under Huber's loss.

    Rows taken there make one Gauss-Newton step good to a few hundredths of a standard error with up to a fifth of the
    quotes bad; at the least-squares parameters a single bad day can ruin it. Every point of the model is a valid
    reference, so a search that did not converge still gives one.
    """
    if calibration.loss != SQUARED or calibration.moments is not None:
        return dict(calibration.parameters)
    robust = replace(calibration.settings, loss="huber")
    found: dict[str, float] = fit(calibration.quotes, calibration.asked, **robust.keywords()).parameters
    if not all(isfinite(value) for value in found.values()):
        raise RefusedError("No reference: the search under Huber's loss ended at no finite parameters. Fix parameters.")
    return found
