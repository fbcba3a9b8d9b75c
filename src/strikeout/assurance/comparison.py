"""Several models on the same quotes, side by side: how well each fits, at what cost, and on which quotes it depends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from strikeout.assurance.influence import influence
from strikeout.calibration.calibrate import calibrate, check_one_underlying
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.settings import Choice, chosen, weights_for
from strikeout.calibration.summary import html_table
from strikeout.errors import StrikeoutError, UsageError
from strikeout.kernels import elementary
from strikeout.models.model import Model
from strikeout.models.named import model_named
from strikeout.statistics.linearize import rows
from strikeout.statistics.objective import Residual, Weighting, objective_of
from strikeout.text import Mention, as_lines, many, render

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

Models = Sequence[Model | str] | Mapping[str, Model | str]

HEADINGS = ("model", "parameters", "status", "most influential quotes")  # the measures are between the second and third
Measure = Literal["aic", "bic", "vol_points", "spreads", "rmse"]
MEASURES: tuple[Measure, ...] = ("aic", "bic", "vol_points", "spreads", "rmse")  # what models can be ranked by
SHOWN_AS: Mapping[Measure, str] = {
    "aic": "AIC", "bic": "BIC", "vol_points": "vol points", "spreads": "spreads", "rmse": "RMSE",
}  # fmt: skip
DEPENDENT = 0.3  # from here on neighbouring residuals are too alike to count as one error a quote


@dataclass(frozen=True, eq=False)
class ModelFit:
    """One model on the quotes of a comparison.

    ``aic`` and ``bic`` are ``n ln(cost / n)`` plus ``2 p`` and ``p ln n``, p the parameters that were estimated: the
    textbook's, up to a number that is the same for every model. Not-a-number if there is no calibration, it did not
    converge, or the loss is not squared. ``dependence`` is the correlation of residuals that are neighbours in expiry
    and strike. ``influential`` are the quotes with the largest Cook's distances, largest first; without an optimum
    there are none.
    """

    name: str
    calibration: Calibration | None
    failure: StrikeoutError | None  # why there is no calibration; None if there is one
    parameters: int
    aic: float
    bic: float
    dependence: float
    influential: dict[str, float]

    @property
    def converged(self) -> bool:
        return self.calibration is not None and self.calibration.converged

    @property
    def rmse(self) -> float:
        """In the currency of the quotes; not-a-number if there is no calibration."""
        return nan if self.calibration is None else self.calibration.rmse

    @property
    def vol_points(self) -> float:
        """The root mean square residual in volatility points; not-a-number if there is none."""
        return self._error("vol_points")

    @property
    def spreads(self) -> float:
        """The root mean square residual in bid-ask spreads; not-a-number if there is none."""
        return self._error("spreads")

    def _error(self, measure: str) -> float:
        if self.calibration is None:
            return nan
        found: float | None = getattr(self.calibration.fit_errors.overall, measure)
        return nan if found is None else found

    @property
    def status(self) -> str:
        """How the search ended, or why there was none."""
        return str(self.failure if self.calibration is None else self.calibration.termination)


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Mapping[str, ModelFit]):
    """Fits by name, the best by ``ranked_by`` first; those that did not converge or could not be calibrated last."""

    fits: dict[str, ModelFit]
    count: int
    ranked_by: Measure = "aic"

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of ``rows``: the measure of the order is the first of the measures, and marked."""
        return (HEADINGS[0], HEADINGS[1], *(self._heading(by) for by in self._measures()), *HEADINGS[-2:])

    def _measures(self) -> list[Measure]:
        return [self.ranked_by, *(by for by in MEASURES if by != self.ranked_by)]

    def _heading(self, by: Measure) -> str:
        return f"{SHOWN_AS[by]} (rank)" if by == self.ranked_by else SHOWN_AS[by]

    def __getitem__(self, name: str) -> ModelFit:
        return self.fits[name]

    def __iter__(self) -> Any:
        return iter(self.fits)

    def __len__(self) -> int:
        return len(self.fits)

    def best(self, by: Measure | None = None) -> ModelFit | None:
        """Return the converged fit with the lowest figure; None if none converged or the figure has no meaning.

        Args:
            by: a measure; that of the order by default.

        Raises:
            UsageError: no such figure.
        """
        by = self.ranked_by if by is None else by
        if by not in MEASURES:
            raise UsageError(f"best(by={by!r}): give one of {', '.join(MEASURES)}.", by=by)
        judged = [fit for fit in self.fits.values() if fit.converged and not np.isnan(getattr(fit, by))]
        return min(judged, key=lambda fit: float(getattr(fit, by)), default=None)

    def ranked(self, by: Measure) -> ModelComparison:
        """Return the same fits, the best by this measure first.

        Args:
            by: "aic", "bic", or a fit error: "vol_points", "spreads" or "rmse" (in price).

        Raises:
            UsageError: no such measure.
        """
        if by not in MEASURES:
            raise UsageError(f"ranked({by!r}): give one of {', '.join(MEASURES)}.", by=by)
        order = sorted(self.fits.values(), key=lambda fit: _rank(fit, by))
        return ModelComparison({fit.name: fit for fit in order}, self.count, by)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the conclusions from the figures, and how reliable they are."""
        return (*self._verdict(), *(f"{fit.name}: {fit.status}." for fit in self.fits.values() if _is_lost(fit)))

    def _verdict(self) -> list[str]:
        first, second, closest = self.best("aic"), self.best("bic"), self.best("rmse")
        if first is None or second is None:
            lowest = f" The lowest RMSE is that of {closest.name}." if closest else ""
            return ["No model can be judged by AIC or BIC: none converged, or the loss is not squared." + lowest]
        winners = f"{first.name} has the lowest AIC" + (" and BIC" if first is second else f", {second.name} BIC")
        if any(_is_lost(fit) and fit.rmse < first.rmse for fit in self.fits.values()):
            winners += " of those that converged"
        if self.ranked_by not in ("aic", "bic"):
            winner = self.best(self.ranked_by)
            named = {"vol_points": "volatility points", "spreads": "spreads", "rmse": "price"}[self.ranked_by]
            winners = f"Ranked by fit error in {named}: {winner.name if winner else 'none'} first. {winners}"
        alike = first.dependence
        if not alike > DEPENDENT:
            return [winners + "."]
        worth = max(self.count * (1.0 - alike) / (1.0 + alike), 1.0)
        return [
            winners + ".",
            f"Residuals of {first.name} are alike from one strike to the next (correlation {alike:.2f}), so the "
            f"{self.count:,} quotes are worth about {worth:,.0f} independent ones: take AIC and BIC for an order, not "
            "for odds.",
        ]

    def rows(self, spell: Callable[[Iterable[str | Mention]], str] = render) -> list[tuple[str, ...]]:
        """Return one row per model, below ``headings``: AIC and BIC as what they are above the lowest.

        Args:
            spell: renders the message of a failure for the reader.
        """
        lowest = {by: getattr(self.best(by), by, nan) for by in ("aic", "bic")}

        def shown(fit: ModelFit, by: Measure) -> str:
            figure = getattr(fit, by)
            return _above(figure, lowest[by]) if by in lowest else _shown(figure, ".4g" if by == "rmse" else ".3g")

        return [
            (
                fit.name,
                str(fit.parameters) if fit.parameters else "-",
                *(shown(fit, by) for by in self._measures()),
                _ended(fit, spell),
                ", ".join(fit.influential) or "-",
            )
            for fit in self.fits.values()
        ]

    def summary(self) -> str:
        """Return the models as a table, then the conclusions."""
        table = [self.headings, *self.rows()]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = [
            "  ".join(
                f"{cell:>{width}}" if 0 < i < 7 else f"{cell:<{width}}"
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return as_lines([*lines, "", *self.sentences])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON; a number that does not exist is None."""
        return {
            "count": self.count,
            "models": [
                {
                    "name": fit.name,
                    "model": fit.calibration.model.name if fit.calibration else None,
                    "parameters": fit.parameters,
                    "rmse": _number(fit.rmse),
                    "vol_points": _number(fit.vol_points),
                    "spreads": _number(fit.spreads),
                    "aic": _number(fit.aic),
                    "bic": _number(fit.bic),
                    "converged": fit.converged,
                    "status": fit.status,
                    "dependence": _number(fit.dependence),
                    "influential": {name: _number(value) for name, value in fit.influential.items()},
                    "values": fit.calibration.to_dict()["parameters"] if fit.calibration else None,
                    "warnings": list(fit.calibration.warnings) if fit.calibration else [],
                }
                for fit in self.fits.values()
            ],
            "best": {by: getattr(self.best(by), "name", None) for by in MEASURES},
            "ranked_by": self.ranked_by,
            "sentences": list(self.sentences),
        }

    def __repr__(self) -> str:
        return f"<ModelComparison of {', '.join(self.fits)} on {many(self.count, 'quote')}>"

    def _repr_html_(self) -> str:
        return html_table(self.headings, self.rows(), self.sentences)


def _ended(fit: ModelFit, spell: Callable[[Iterable[str | Mention]], str]) -> str:
    if fit.calibration is not None:
        return fit.calibration.termination.status
    return "" if fit.failure is None else spell(fit.failure.parts)


def compare_models(
    quotes: Quotes,
    models: Models,
    *,
    weights: Weighting = "given",
    residual: Residual = "price",
    loss: str = "squared",
    select: Choice = "all",
    most: int = 3,
    progress: Callable[[str, int, int], None] | None = None,
) -> ModelComparison:
    """Calibrate every model to the same quotes in the same way, and put them side by side.

    A model that refuses these quotes is in the table with its sentence; the others go on.

    Args:
        models: models, or names of built-in ones ("heston"); a mapping gives them names of your own.
        select: which quotes count, "all" or "otm", as for ``calibrate``.
        most: how many influential quotes to name for each.
        progress: called before every model with its name, how many are done, and how many there are.

    Raises:
        UsageError: no model, two of one name, an unknown name or option, or quotes of several underlyings.

    >>> from strikeout import paper
    >>> compare_models(paper.quotes("small"), ["heston"]).best().name
    'heston'
    """
    named = _named(models)
    how: dict[str, Any] = {"weights": weights, "residual": residual, "loss": loss, "select": select}
    used = chosen(quotes, select)
    # What is wrong for every model is an error, not a row.
    objective_of(used, residual=residual, weights=weights_for(used, quotes, weights))
    fits: list[ModelFit] = []
    check_one_underlying(quotes, can_pool=False)
    for name, model in named.items():
        if progress is not None:
            progress(name, len(fits), len(named))
        fits.append(_fit(name, model, quotes, how, most))
    return ModelComparison({fit.name: fit for fit in fits}, len(used)).ranked("aic")


def _named(models: Models) -> dict[str, Model]:
    pairs: list[tuple[str | None, Model | str]]
    pairs = list(models.items()) if isinstance(models, Mapping) else [(None, model) for model in models]
    if isinstance(models, str) or not pairs:
        raise UsageError('compare_models: give a list of models, such as [Heston(), "bates"], or a mapping by name.')
    named: dict[str, Model] = {}
    for name, given in pairs:
        model = model_named(given) if isinstance(given, str) else given
        called = name or (given if isinstance(given, str) else model.name.partition("/")[0])
        if called in named:
            raise UsageError(
                f"compare_models: two models are called {called}. Give a mapping with a name for each.", name=called
            )
        named[called] = model
    return named


def _fit(name: str, model: Model, quotes: Quotes, how: dict[str, Any], most: int) -> ModelFit:
    try:
        found = calibrate(quotes, model, **how)
    except StrikeoutError as error:
        return ModelFit(name, None, error, len(model.parameters), nan, nan, nan, {})
    estimated = len(found.parameters) - len(found.fixed)
    judged = found.converged and found.loss == "squared"
    n = found.count
    # A cost of zero is a perfect fit of made-up quotes: nothing can be better.
    base = (n * float(elementary.log(found.cost / n)) if found.cost > 0.0 else -inf) if judged else nan
    return ModelFit(
        name,
        found,
        None,
        estimated,
        base + 2.0 * estimated,
        base + estimated * float(elementary.log(n)),
        _dependence(found),
        _influential(found, most),
    )


def _dependence(calibration: Calibration) -> float:
    how = calibration.settings
    objective, _ = objective_of(calibration.used, residual=how.residual, weights=how.weights)
    residual, _ = rows(objective, calibration.model, calibration.model.parameters.vector(calibration.parameters))
    e = objective.root_weight * residual
    squares = float(np.add.reduce(e * e))
    return float(np.add.reduce(e[1:] * e[:-1])) / squares if squares > 0.0 else nan


def _influential(calibration: Calibration, most: int) -> dict[str, float]:
    if not calibration.converged:  # what is not determined depends on nothing in particular
        return {}
    first = influence(calibration).top(most)
    return {str(name): float(distance) for name, distance in zip(first["id"], first["cooks_d"], strict=True)}


def _is_lost(fit: ModelFit) -> bool:
    """Return whether it was calibrated without an optimum. If there is no calibration, the table gives the reason."""
    return fit.calibration is not None and not fit.converged


def _rank(fit: ModelFit, by: Measure) -> tuple[bool, bool, float]:
    figure: float = getattr(fit, by)
    figure = fit.rmse if np.isnan(figure) else figure
    return fit.calibration is None, not fit.converged, figure


def _shown(value: float, form: str) -> str:
    return "-" if not isfinite(value) else format(value, form)


def _above(value: float, lowest: float) -> str:
    return "-" if not isfinite(value - lowest) else f"+{value - lowest:,.1f}"


def _number(value: float) -> float | None:
    return value if isfinite(value) else None
