"""Names of contracts, taken apart."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from strikeout.quotes.profile import FORMS, parse_symbols

# Each name is of the vendor's own documentation or files; the parts are read off it by eye.
NAMES = [
    ("occ", "SPXW  260821C05000000", ("SPXW", date(2026, 8, 21), 5000.0, "C")),
    ("occ", "AAPL190830P00130500", ("AAPL", date(2019, 8, 30), 130.5, "P")),
    ("occ", "BRKB1 260116C00000500", ("BRKB1", date(2026, 1, 16), 0.5, "C")),
    ("deribit", "BTC-27MAR26-50000-C", ("BTC", date(2026, 3, 27), 50000.0, "C")),
    ("deribit", "BTC-6MAR26-68500-P", ("BTC", date(2026, 3, 6), 68500.0, "P")),
    ("deribit", "XRP_USDC-27MAR26-2d5-C", ("XRP_USDC", date(2026, 3, 27), 2.5, "C")),
    ("okx", "ETH-USD-260807-1950-P", ("ETH-USD", date(2026, 8, 7), 1950.0, "P")),
    ("barchart", "SPY|20210115|25.00C", ("SPY", date(2021, 1, 15), 25.0, "C")),
    ("bloomberg", "SPX US 12/20/24 C5000 Index", ("SPX", date(2024, 12, 20), 5000.0, "C")),
]


@pytest.mark.parametrize(("form", "name", "parts"), NAMES)
def test_a_name_says_class_expiry_strike_and_right(form: str, name: str, parts: tuple[object, ...]) -> None:
    found = parse_symbols(pl.Series([name]), form)
    assert (found.root.item(), found.expiry.item(), found.strike.item(), found.right.item()) == parts


@pytest.mark.parametrize("form", FORMS)
def test_a_name_of_another_form_says_nothing(form: str) -> None:
    others = [name for other, name, _ in NAMES if other != form] + ["", "SPX", "AAPL190830X00130500"]
    found = parse_symbols(pl.Series(others), form)
    assert found.strike.null_count() == len(others)
    assert found.right.null_count() == len(others)
