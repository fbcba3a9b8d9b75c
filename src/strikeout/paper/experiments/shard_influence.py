"""Leave one shard out: which period, maturity, strike or source moves the calibration most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.influence import influence
from strikeout.calibration.calibration import Calibration
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.shards import shard

SOURCES = ("source A", "source B", "source C")
HIGH = 5e-4  # currency: by how much source C quotes too high, as much as the noise of the large set
CUTS = ("period", "maturity", "strike", "source")
PERIOD = 30  # days


@dataclass(frozen=True)
class ShardInfluence:
    """What leaving one shard out does. Moves are the worst parameter's, in standard errors of the whole calibration.

    ``one_step`` is the block downdate, ``refit`` the calibration of the other quotes (not-a-number where they do not
    determine the parameters).
    """

    cut: str
    shard: str
    quotes: int
    parameter: str  # the one that moves most
    one_step: float
    refit: float
    price_change: float  # currency, the largest of any quote
    rmse_change: float  # currency


def sourced(book: Quotes, *, seed: int) -> Quotes:
    """The same quotes in periods of 30 days and from three sources at random, of which source C quotes too high."""
    number = np.random.default_rng(seed).integers(0, len(SOURCES), len(book))
    labels = {name: np.array(column) for name, column in book.labels.items()}
    labels["source"] = np.array(SOURCES)[number]
    labels["period"] = _periods(book)
    labels["maturity"] = np.array([f"{days} trading days" for days in book.labels["expiry_days"].tolist()])
    labels["strike"] = np.array([f"strike {strike:g}" for strike in book.contracts.strike.tolist()])
    observed = book.observed + np.where(number == len(SOURCES) - 1, HIGH, 0.0)
    return Quotes(ids=book.ids, contracts=book.contracts, observed=observed, weight=book.weight, labels=labels)


def _periods(book: Quotes) -> NDArray[np.str_]:
    begins = [int(name) for name in shard(book, f"day:{PERIOD}").names]
    days = np.asarray(book.labels["day"]) // PERIOD * PERIOD
    names = {begin: f"days {begin:03d}-{begin + PERIOD - 1:03d}" for begin in begins}
    return np.array([names[day] for day in days.tolist()])


def shard_influences(calibration: Calibration) -> Iterator[ShardInfluence]:
    """Every shard of every cut left out on its own, each confirmed by a refit.

    Raises:
        UsageError: the quotes lack a label; take them from ``sourced``.
        RefusedError: the quotes do not determine the parameters.
    """
    names = list(calibration.parameters)
    errors = np.array([calibration.standard_errors[name] for name in names])
    for cut in CUTS:
        count = len(np.unique(calibration.quotes.labels[cut]))
        found = influence(calibration, cut, confirm=count)
        one = np.abs(np.stack([found[f"change_{name}"] for name in names], axis=1)) / errors
        refit = np.abs(np.stack([found[f"confirmed_{name}"] for name in names], axis=1)) / errors
        for row in range(found.rows):
            yield ShardInfluence(
                cut=cut,
                shard=str(found[cut][row]),
                quotes=int(found["count"][row]),
                parameter=names[int(np.argmax(one[row]))],
                one_step=float(one[row].max()),
                refit=float(refit[row].max()),
                price_change=float(found["price_change"][row]),
                rmse_change=float(found["rmse_change"][row]),
            )
