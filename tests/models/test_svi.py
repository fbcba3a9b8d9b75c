"""SVI looks for calendar arbitrage where quotes are."""

from __future__ import annotations

import numpy as np

import strikeout as so
from strikeout.quotes.contracts import Contracts


def test_calendar_arbitrage_counts_only_where_both_expiries_are_quoted():
    model = so.SVI("raw", expiries=(0.5, 1.0))
    # The later smile is flatter: it lies below the earlier one far from the forward, and above it near the forward.
    theta = dict(zip(model.parameters.names, (0.02, 0.2, 0.2, 0.0, 0.1, 0.04, 0.05, 0.05, 0.0, 0.1), strict=True))

    def quoted(reach: float) -> Contracts:
        k = np.linspace(-reach, reach, 11)
        expiry = np.repeat([0.5, 1.0], 11)
        return Contracts(forward=1.0, strike=np.exp(np.tile(k, 2)), expiry=expiry, discount=1.0, is_call=True)

    assert sum("calendar" in sentence for sentence in model.arbitrage(theta)) == 1
    assert sum("calendar" in sentence for sentence in model.arbitrage(theta, quoted(1.0))) == 1
    assert sum("calendar" in sentence for sentence in model.arbitrage(theta, quoted(0.05))) == 0
