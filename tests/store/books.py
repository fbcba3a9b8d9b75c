"""Small books for the tests of the store: of every kind of column, and equal only where every bit is."""

from __future__ import annotations

import numpy as np

from strikeout import Contracts, Quotes


def quotes(count: int, *, seed: int = 0, prefix: str = "q") -> Quotes:
    """Options whose numbers are random to the last bit, with labels of every kind."""
    draw = np.random.default_rng(seed)
    return Quotes(
        ids=[f"{prefix}-{seed}-{row:04d}" for row in range(count)],
        contracts=Contracts(
            forward=draw.uniform(90, 110, count),
            strike=draw.uniform(50, 150, count),
            expiry=draw.uniform(0.05, 3, count),
            discount=draw.uniform(0.9, 1, count),
            is_call=draw.random(count) < 0.5,
        ),
        observed=draw.uniform(0.1, 30, count),
        weight=draw.uniform(0.5, 2, count),
        spread=np.where(draw.random(count) < 0.3, np.nan, draw.uniform(0.01, 0.1, count)),
        labels={
            "source": draw.choice(["vendor-a", "vendor-b", "Börse"], count).astype(object),
            "venue": draw.choice(["x", "yy"], count),
            "volume": draw.integers(0, 1000, count),
            "delta": draw.uniform(-1, 1, count),
            "late": draw.random(count) < 0.1,
            "date": np.datetime64("2024-01-01") + draw.integers(0, 90, count).astype("timedelta64[D]"),
        },
    )


def features(count: int, *, seed: int = 0) -> Quotes:
    """Quotes of no option."""
    draw = np.random.default_rng(seed)
    return Quotes.from_columns(
        [f"f-{row}" for row in range(count)], draw.normal(size=count), dose=draw.normal(size=count), age=30.0
    )


def bits(book: Quotes) -> list[tuple[str, str, bytes]]:
    """Every column as name, kind and bytes: equal only where two books are the same to the last bit."""
    c = book.contracts
    described = (
        {name: getattr(c, name) for name in ("forward", "strike", "expiry", "discount", "is_call")}
        if isinstance(c, Contracts)
        else dict(c.columns)
    )
    columns = {
        "ids": book.ids,
        "observed": book.observed,
        "weight": book.weight,
        "spread": book.spread,
        **described,
        **{f"label {name}": column for name, column in book.labels.items()},
    }
    return [
        (name, "text", repr(column.tolist()).encode())
        if column.dtype.kind in "OU"
        else (name, column.dtype.str, column.tobytes())
        for name, column in columns.items()
    ]
