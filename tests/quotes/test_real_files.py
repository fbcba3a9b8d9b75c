"""Real chains, nothing cleaned: they read where they hold what is needed, and say what is missing where not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from strikeout.errors import ColumnError
from strikeout.quotes.reading import inspect_quotes
from tests.raising import raises

Data = Callable[[str], Path]

# Counts: of rows with a price (bid and ask not both zero, or mid, or iv), forward, discount and an expiry after the
# quote date, as counted with a query of the file alone.
READ = [
    ("day_quantlib_dax_2002-07-05", 104, 104, {}),
    ("day_andreasenhuge_sx5e_2010-03-01", 155, 155, {}),
    ("panel_spx_weekly_2011_h1", 5064, 5064, {}),
    # Its source dropped the class (SPX, SPXW), so 2,712 rows are told apart by nothing but their values.
    ("day_surface_spx_2022-11-07", 9578, 6059, {"Q101": 794, "Q108": 2712, "Q201": 13}),
    ("day_surface_spy_2022-04-14", 1081, 954, {"Q101": 127, "Q203": 954}),
    ("day_cboe_spx_2023-06-09", 17788, 17388, {"Q105": 390, "Q114": 10}),
]


@pytest.mark.parametrize(("name", "rows", "good", "counts"), READ)
def test_a_real_chain_reads_with_every_row_accounted_for(
    shared_data: Data, name: str, rows: int, good: int, counts: dict[str, int]
) -> None:
    reading = inspect_quotes(shared_data(f"chains/{name}.parquet"))
    assert (reading.rows, len(reading.quotes)) == (rows, good)
    found = reading.issues.counts.items()
    assert {code: count for code, count in found if code.startswith("Q1") or code in ("Q201", "Q203")} == counts
    assert len(reading.quotes) + reading.rejected + reading.repeated == rows


def test_the_dax_grid_reads_as_published(shared_data: Data) -> None:
    quotes = inspect_quotes(shared_data("chains/day_quantlib_dax_2002-07-05.parquet")).quotes
    # 13 strikes and 8 maturities, spot 4468.17: the grid of QuantLib's Heston test.
    assert (len(np.unique(quotes.contracts.strike)), len(np.unique(quotes.contracts.expiry))) == (13, 8)
    assert set(quotes.labels["spot"]) == {4468.17}
    assert np.all(quotes.observed > quotes.contracts.intrinsic)


def test_morning_and_afternoon_expiries_of_one_day_stay_apart(shared_data: Data) -> None:
    quotes = inspect_quotes(shared_data("chains/day_cboe_spx_2023-06-09.parquet")).quotes
    assert set(quotes.labels["root"]) == {"SPX", "SPXW"}
    assert len(np.unique(quotes.ids)) == len(quotes)


def test_a_surface_without_rates_says_so_and_reads_with_a_constant(shared_data: Data) -> None:
    path = shared_data("chains/day_surface_spx_2005-09-15.parquet")
    with raises(ColumnError, mentions={"constants"}, missing="the discount"):
        inspect_quotes(path)
    assert len(inspect_quotes(path, constants={"rate": 0.035}).quotes) == 239


def test_a_vendors_export_that_lacks_what_nobody_can_know_says_what(shared_data: Data) -> None:
    path = shared_data("raw/zattera_spx_decimal_comma.csv")
    with raises(ColumnError, missing="right", columns=["Strike", "Bid", "Ask", "Price", "Expiry"]):
        inspect_quotes(path)
