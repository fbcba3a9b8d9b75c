"""The books every benchmark shares, and where their calibrations begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import strikeout as so

TRUTH = np.array([2.0, 0.06, 0.30, -0.6, 0.06])  # the paper's, in the order of so.Heston().parameters.names
START = np.array([1.0, 0.04, 0.20, -0.3, 0.04])  # the paper's


def paper() -> so.Quotes:
    """The paper's large set: 2,700 calls on three maturities."""
    return so.paper.quotes("large", seed=42)


def in_order(quotes: so.Quotes) -> tuple[so.Contracts, NDArray[np.float64]]:
    """Contracts and observed prices by expiry and log-moneyness, the order of our passes; a calibration sorts once."""
    order = quotes.contracts.slices.order
    return quotes.contracts[order], quotes.observed[order]


def fresh(quotes: so.Quotes) -> so.Quotes:
    """The same quotes as new objects: what an earlier call has sorted and kept must not make the next one cheaper."""
    return so.Quotes(ids=quotes.ids, contracts=quotes.contracts[:], observed=quotes.observed)
