"""A calibration quote by quote: what the market and the model are, and how much each quote counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.fit_errors import implied_volatilities
from strikeout.quotes.contracts import Features
from strikeout.statistics.objective import objective_of

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

LABELS = ("date", "expiry_date", "underlying")


def quote_fits(calibration: Calibration) -> dict[str, NDArray[Any]]:
    """Return columns with one row per quote, in the order of the quotes.

    ``residual`` is market - model in price, ``vol_residual`` the same in implied volatility. A number that does not
    exist, such as the implied volatility of a price outside the no-arbitrage bounds, is not-a-number.

    Raises:
        UsageError: the calibration was made from moments and holds no quotes.
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
