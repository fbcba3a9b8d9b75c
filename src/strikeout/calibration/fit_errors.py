"""How far a model is from the quotes: in volatility points, in bid-ask spreads and in price; overall and by expiry.

A calibration quote by quote: what the market and the model are, and how much each quote counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import black
from strikeout.kernels.arrays import Floats, Rows
from strikeout.quotes.contracts import Features
from strikeout.statistics.objective import objective_of
from strikeout.tables import Table, number

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes

HEADINGS = ("expiry", "quotes", "vol points", "spreads", "price")


@dataclass(frozen=True)
class FitError:
    """Root mean square residuals of some quotes; None for a measure that none of them has.

    ``vol_points`` are differences of implied volatilities times 100, over the quotes with an implied volatility;
    ``spreads`` are residuals over the bid-ask spread, over the quotes with one; ``price`` is in the currency.
    """

    count: int
    vol_points: float | None
    spreads: float | None
    price: float


@dataclass(frozen=True)
class FitErrors:
    """The errors of all quotes, and of each expiry by its date (its time in years if dates are unknown)."""

    overall: FitError
    by_expiry: dict[str, FitError]

    @property
    def sentence(self) -> str:
        """The overall errors in a line.

        >>> FitErrors(FitError(2, 0.25, None, 0.125), {}).sentence
        '0.125 in price, 0.25 volatility points'
        """
        error = self.overall
        words = [f"{error.price:.4g} in price"]
        words += [] if error.vol_points is None else [f"{error.vol_points:.3g} volatility points"]
        words += [] if error.spreads is None else [f"{error.spreads:.3g} spreads"]
        return ", ".join(words)

    def to_table(self) -> Table:
        """Return one row per expiry, and one for all quotes if there are several expiries."""
        named = dict(self.by_expiry)
        if len(named) > 1:
            named["all"] = self.overall
        rows = [
            (
                name,
                number(error.count, ",d"),
                number(error.vol_points, ".3g"),
                number(error.spreads, ".3g"),
                number(error.price, ".4g"),
            )
            for name, error in named.items()
        ]
        return Table(HEADINGS, rows, numbers=(1, 2, 3, 4), whole=(0,))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        by_expiry = [{"expiry": name, **asdict(error)} for name, error in self.by_expiry.items()]
        return {**asdict(self.overall), "by_expiry": by_expiry}


def fit_errors(calibration: Calibration) -> FitErrors:
    """Return the fit errors of a calibration."""
    quotes, residual, points = calibration.used, calibration.residuals, _vol_points(calibration)
    with np.errstate(divide="ignore", invalid="ignore"):
        spreads = np.where(quotes.spread > 0.0, residual / quotes.spread, np.nan)
    names, place = expiry_names(quotes)
    errors = [_error(points[rows], spreads[rows], residual[rows]) for rows in (place == n for n in range(len(names)))]
    return FitErrors(_error(points, spreads, residual), dict(zip(names, errors, strict=True)))


def overall_vol_points(calibration: Calibration) -> float | None:
    """Return ``fit_errors(calibration).overall.vol_points``, and nothing else."""
    return _root_mean_square(_vol_points(calibration))


def _vol_points(calibration: Calibration) -> Floats:
    market, model = implied_volatilities(calibration.used, calibration.residuals)
    return 100.0 * (market - model)


def implied_volatilities(quotes: Quotes, residual: Floats) -> tuple[Floats, Floats]:
    """Return the implied volatilities of market and model prices; not-a-number if a price has none."""
    if isinstance(quotes.contracts, Features):
        return np.full(len(quotes), np.nan), np.full(len(quotes), np.nan)
    c = quotes.contracts
    found = [
        np.asarray(black.implied_volatility(price, c.forward, c.strike, c.expiry, c.discount, c.is_call))
        for price in (quotes.observed, quotes.observed - residual)
    ]
    market, model = (np.where(np.isfinite(vol) & (vol > 0.0), vol, np.nan) for vol in found)
    return market, model


def expiry_names(quotes: Quotes) -> tuple[list[str], Rows]:
    """Return the names of the expiries in their order, and which one each quote has.

    A name is the date if the quotes have dates, else the time in years.
    """
    if isinstance(quotes.contracts, Features):
        return ["all"], np.zeros(len(quotes), np.intp)
    dates = quotes.labels.get("expiry_date")
    texts = None if dates is None else dates.astype(str)
    if texts is None or not np.char.str_len(texts.astype(np.str_)).all():
        years, place = np.unique(quotes.contracts.expiry, return_inverse=True)
        return [f"{year:.6g} years" for year in years], place.ravel()
    names, place = np.unique(texts.astype(np.str_), return_inverse=True)
    return [str(name) for name in names], place.ravel()


def _error(points: Floats, spreads: Floats, residual: Floats) -> FitError:
    measures = [_root_mean_square(values) for values in (points, spreads, residual)]
    return FitError(len(residual), measures[0], measures[1], measures[2] or 0.0)


def _root_mean_square(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    # Summed exactly: the order of the quotes does not affect a bit.
    return sqrt(fsum((known * known).tolist()) / known.size) if known.size else None


LABELS = ("date", "expiry_date", "underlying")


def quote_fits(calibration: Calibration) -> dict[str, NDArray[Any]]:
    """Return columns with one row per quote, in the order of the quotes.

    ``residual`` is market - model in price, ``vol_residual`` the same in implied volatility. A number that does not
    exist, such as the implied volatility of a price outside the no-arbitrage bounds, is not-a-number.
    """
    quotes, residual = calibration.used, calibration.residuals
    market_vol, model_vol = implied_volatilities(quotes, residual)
    how = calibration.settings
    weight = objective_of(quotes, residual=how.residual, weights=how.weights)[0].weights
    columns: dict[str, NDArray[Any]] = {"id": np.asarray(quotes.ids)}
    columns |= {name: quotes.labels[name] for name in LABELS if name in quotes.labels}
    contracts = quotes.contracts
    if isinstance(contracts, Features):
        columns |= dict(contracts.columns)
    else:
        columns |= {
            "expiry_years": contracts.expiry,
            "strike": contracts.strike,
            "right": np.where(contracts.is_call, "C", "P"),
            "forward": contracts.forward,
        }
    return columns | {
        "market": quotes.observed,
        "model": quotes.observed - residual,
        "residual": residual,
        "market_vol": market_vol,
        "model_vol": model_vol,
        "vol_residual": market_vol - model_vol,
        "weight": weight,
        "spread": quotes.spread,
    }
