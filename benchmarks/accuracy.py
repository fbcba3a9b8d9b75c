"""How far a pricer is off, to be printed beside how fast it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.paper import heston as paper_scheme
from strikeout.quotes.contracts import Contracts

Floats = NDArray[np.float64]
Pricer = Callable[[Floats, Contracts], Floats]

CORNERS = Path(__file__).parents[2] / "shared" / "data" / "reference" / "heston_corners.json"
SAMPLE = 30


def sample(contracts: Contracts) -> NDArray[np.intp]:
    """Rows of up to 30 contracts of a book."""
    return np.linspace(0, len(contracts) - 1, min(SAMPLE, len(contracts))).astype(np.intp)


def book_error(pricer: Pricer, theta: Floats, contracts: Contracts) -> float:
    """Worst error over the forward on up to 30 contracts of a book.

    The yardstick is the paper's formula on a mesh fine enough for ordinary parameters and expiries above two weeks:
    half the step or twice the range moves no price by more than 1e-13 of the forward.
    """
    some = contracts[sample(contracts)]
    exact = paper_scheme.price(
        theta, some.forward, some.strike, some.expiry, some.discount, some.is_call, u_max=600.0, nodes=6000
    )
    return float(np.max(np.abs(pricer(theta, some) - exact) / some.forward))


def corner_error(pricer: Pricer, *, of: str = "price") -> float | None:
    """Worst error over the forward at the 45-digit references in the corners of the parameter space.

    None if the reference file is not at hand.

    Args:
        of: "price", or "gradient" for what gives the derivatives instead.
    """
    if not CORNERS.exists():
        return None
    return max(_slice_error(pricer, one, of) for one in json.loads(CORNERS.read_text())["slices"])


def _slice_error(pricer: Pricer, one: Any, of: str) -> float:
    strikes = np.exp([row["log_moneyness"] for row in one["rows"]])
    contracts = Contracts(forward=1.0, strike=strikes, expiry=one["expiry"], discount=1.0, is_call=True)
    exact = np.array([np.asarray(row[of], float) for row in one["rows"]])
    return float(np.max(np.abs(pricer(np.array(one["theta"]), contracts) - exact)))
