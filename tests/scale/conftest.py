"""A small lake: three days of one underlying in files of their own, with two licences."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so

TRUTH = [2.0, 0.04, 0.4, -0.7, 0.05]
DAYS = ("2024-03-01", "2024-03-04", "2024-03-05", "2024-03-06")


def day_of_quotes(date, seed, underlying="SPX", forward=100.0):
    """Quotes of one day, of two licences, with given forwards."""
    T, K = (one.ravel() for one in np.meshgrid([0.1, 0.5, 1.0, 2.0], forward * np.arange(0.8, 1.21, 0.05)))
    contracts = so.Contracts(forward=forward, strike=K, expiry=T, discount=1.0, is_call=forward < K)
    draws = np.random.default_rng(seed)
    observed = so.Heston().price(TRUTH, contracts) + draws.normal(0.0, 2e-3, len(K))
    return so.Quotes(
        ids=[f"{underlying}-{date}-{i}" for i in range(len(K))],
        contracts=contracts,
        observed=observed,
        labels={
            "underlying": [underlying] * len(K),
            "date": [date] * len(K),
            "licence": np.where(draws.random(len(K)) < 0.3, "L3", "L1"),
        },
    )


@pytest.fixture(scope="module")
def days():
    return [day_of_quotes(date, seed) for seed, date in enumerate(DAYS)]


@pytest.fixture(scope="module")
def lake(days, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    for date, quotes in zip(DAYS, days, strict=True):
        so.write_quotes(quotes, folder / f"{date}.parquet")
    return so.scale.Lake(folder)
