"""QuantLib's HestonModel.calibrate over its fastest engine.

QuantLib wants one spot, whole days and implied vols. A Heston price over the discounted forward depends on strike /
forward alone, so every quote is moved to a forward of 100 at zero rates, and its squared residual is weighted back. A
quote that noise has pushed below its intrinsic value has no implied vol: QuantLib cannot take it, and `Helpers.count`
reports how many are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

DAYS_A_YEAR = 252
SPOT = 100.0


@dataclass(frozen=True, eq=False)
class Helpers:
    """A book as QuantLib sees it; the model is QuantLib's and is mutated by it."""

    model: Any
    helpers: list[Any]
    rows: NDArray[np.intp]
    weights: list[float]

    @property
    def count(self) -> int:
        return len(self.helpers)


def prepare(
    contracts: Any,
    observed: Floats,
    *,
    weight: Floats | None = None,
    residual: Literal["price", "implied_vol"] = "price",
    days_a_year: Literal[252, 365] = DAYS_A_YEAR,
) -> Helpers:
    """Builds the helpers with the exponentially fitted engine, the fastest of QuantLib's on this book.

    ``weight`` counts squared residuals in the currency of the quotes, or in volatility; one each if none is given.

    Raises:
        ValueError: an expiry is not a whole number of days of a 252nd (or 365th) of a year.
    """
    import QuantLib as ql  # noqa: N813

    days = np.rint(contracts.expiry * days_a_year).astype(int)
    if np.abs(days / days_a_year - contracts.expiry).max() > 1e-12:
        raise ValueError(f"QuantLib counts in days of 1/{days_a_year} year; an expiry falls between two of them.")
    today = ql.Date(2, 1, 2024)
    ql.Settings.instance().evaluationDate = today
    calendar = ql.NullCalendar()
    counter = ql.Business252(calendar) if days_a_year == 252 else ql.Actual365Fixed()
    zero = ql.YieldTermStructureHandle(ql.FlatForward(today, 0.0, counter))
    spot = ql.QuoteHandle(ql.SimpleQuote(SPOT))
    model = ql.HestonModel(ql.HestonProcess(zero, zero, spot, 0.04, 1.0, 0.04, 0.2, -0.3))
    engine = ql.ExponentialFittingHestonEngine(model)
    scale = SPOT / (contracts.discount * contracts.forward)
    strike = SPOT * contracts.strike / contracts.forward
    is_price = residual == "price"
    kind_of_error = getattr(ql.BlackCalibrationHelper, "PriceError" if is_price else "ImpliedVolError")
    helpers, rows = [], []
    for row, (k, price, is_call) in enumerate(zip(strike, observed * scale, contracts.is_call, strict=True)):
        kind = ql.Option.Call if is_call else ql.Option.Put
        try:
            deviation = ql.blackFormulaImpliedStdDev(kind, float(k), SPOT, float(price), 1.0, 0.0, 0.1, 1e-12)
        except RuntimeError:
            continue
        volatility = ql.QuoteHandle(ql.SimpleQuote(deviation / np.sqrt(contracts.expiry[row])))
        helper = ql.HestonModelHelper(
            ql.Period(int(days[row]), ql.Days),
            calendar,
            SPOT,
            float(k),
            volatility,
            zero,
            zero,
            kind_of_error,
        )
        helper.setPricingEngine(engine)
        helpers.append(helper)
        rows.append(row)
    picked = np.array(rows, dtype=np.intp)
    # Squared residuals on a forward of 100, weighted back to those of the quotes; a volatility has no unit to change.
    unit = 1.0 / scale[picked] ** 2 if is_price else np.ones(len(picked))
    weights = unit if weight is None else unit * weight[picked]
    return Helpers(model=model, helpers=helpers, rows=picked, weights=weights.tolist())


def price(theta: ArrayLike, book: Helpers) -> Floats:
    """Out-of-the-money values of the kept quotes on a forward of 100: QuantLib turns calls and puts as it likes."""
    _set(theta, book)
    return np.array([helper.modelValue() for helper in book.helpers])


def calibrate(book: Helpers, start: ArrayLike) -> Floats:
    """QuantLib's Levenberg-Marquardt from `start`, by finite differences as it comes."""
    import QuantLib as ql  # noqa: N813

    _set(start, book)
    book.model.calibrate(
        book.helpers,
        ql.LevenbergMarquardt(1e-8, 1e-8, 1e-8),
        ql.EndCriteria(400, 40, 1e-8, 1e-8, 1e-8),
        ql.NoConstraint(),
        book.weights,
    )
    long_variance, mean_reversion, vol_of_vol, correlation, initial_variance = book.model.params()
    return np.array([mean_reversion, long_variance, vol_of_vol, correlation, initial_variance])


def says_converged(book: Helpers) -> bool:
    """Whether QuantLib called its last calibration a success: any end but the cap on iterations."""
    import QuantLib as ql  # noqa: N813

    return int(book.model.endCriteria()) not in (ql.EndCriteria.MaxIterations, ql.EndCriteria.Unknown)


def cost(book: Helpers) -> float:
    """The weighted sum of squares at the model's present parameters, by QuantLib's own prices."""
    errors = np.array([helper.calibrationError() for helper in book.helpers])
    return float(np.add.reduce(np.array(book.weights) * errors * errors))


def _set(theta: ArrayLike, book: Helpers) -> None:
    import QuantLib as ql  # noqa: N813

    mean_reversion, long_variance, vol_of_vol, correlation, initial_variance = np.asarray(theta, float).tolist()
    book.model.setParams(ql.Array([long_variance, mean_reversion, vol_of_vol, correlation, initial_variance]))
