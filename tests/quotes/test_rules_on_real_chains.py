"""The rules on real chains: hardly anything could be traded at a gain in them, and one bad quote stands out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.checks.market import CHECKED
from strikeout.quotes.reading import Chunking, inspect_quotes

Data = Callable[[str], Path]
ARBITRAGE = ("Q303", "Q304", "Q305")
CHAINS = [
    ("day_cboe_spx_2022-06-10", 0),
    ("day_cboe_spx_2023-12-08", 0),
    ("day_cboe_ndx_2022-02-04", 0),
    ("day_cboe_spy_2023-09-14", 2),  # puts at two cents
    ("day_cboe_aapl_2019-08-23", 0),
    ("day_rnd_spx_2013-04-19", 0),
]


@pytest.mark.parametrize(("name", "most"), CHAINS)
def test_a_real_chain_offers_no_free_money(shared_data: Data, name: str, most: int) -> None:
    reading = inspect_quotes(shared_data(f"chains/{name}.parquet"))
    found = [issue for issue in reading.issues if issue.code in ARBITRAGE]
    assert len(found) <= most, [str(issue) for issue in found[:5]]
    assert reading.issues.ids("Q301") == []


@pytest.mark.parametrize("side", ["C", "P"])
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_shifted_decimal_point_in_a_real_chain_is_found_and_named(
    shared_data: Data, tmp_path: Path, side: str, factor: float
) -> None:
    chain = pl.read_parquet(shared_data("chains/day_cboe_spx_2022-01-07.parquet"))
    shifted = (pl.col("cp_flag") == side) & (pl.col("strike") == 4600.0) & (pl.col("expiry") == "2022-01-21")
    assert chain.filter(shifted).height == 1
    path = tmp_path / "chain.parquet"
    spoilt = chain.with_columns(
        pl.when(shifted).then(pl.col(name) * factor).otherwise(pl.col(name)).alias(name)
        for name in ("bid", "ask", "mid")
    )
    spoilt.write_parquet(path)
    issues = inspect_quotes(path).issues
    named = issues.ids("Q303", "Q304")
    assert any(f"/2022-01-21/4600/{side}/" in name for name in named)
    assert len(named) < 600  # of 5,514: those of its own expiry
    clean = inspect_quotes(shared_data("chains/day_cboe_spx_2022-01-07.parquet")).issues
    assert clean.ids("Q303", "Q304") == []


def test_a_large_book_looked_at_in_pieces_gives_the_same_findings(shared_data: Data, tmp_path: Path) -> None:
    """Three days of a panel: rules look along strikes, from expiry to expiry and back in time."""
    panel = pl.read_parquet(shared_data("chains/panel_spx_2026-07-22_08-05.parquet"))
    days = ["2026-07-28", "2026-07-29", "2026-07-30"]
    path = tmp_path / "panel.parquet"
    few = panel.filter(pl.col("quote_date").is_in(days) & (pl.col("expiry") < "2026-08-15"))
    dear = (pl.col("strike") == 7400.0) & (pl.col("cp_flag") == "C")
    few.with_columns(
        pl.when(dear).then(pl.col("bid", "ask", "mid") * 3).otherwise(pl.col("bid", "ask", "mid"))
    ).write_parquet(path)
    checks: dict[str, float | str] = {"Q303": "reject"}
    whole = inspect_quotes(path, checks=checks)
    chunking = Chunking(on_disk=False, size=whole.rows // 7, at_once=whole.rows // 5)
    parts = inspect_quotes(path, checks=checks, chunking=chunking)
    told = [sorted(map(str, reading.issues)) for reading in (whole, parts)]
    assert told[0] == told[1]
    assert {"Q210", "Q302", "Q303", "Q304", "Q305"} <= set(whole.issues.counts)
    assert parts.quotes.ids.tolist() == whole.quotes.ids.tolist()
    assert parts.unchecked == whole.unchecked


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if not (rule.is_fixed or rule.sees_others)])
def test_a_rule_that_looks_at_one_row_finds_the_same_whatever_rows_are_beside_it(shared_data: Data, code: str) -> None:
    chain = pl.read_parquet(shared_data("chains/day_cboe_spx_2022-01-07.parquet"))
    half = chain.with_row_index().filter(pl.col("index") % 2 == 0).drop("index")
    checks: dict[str, float | str] = {other: "off" for other in CHECKED if other != code}
    whole = inspect_quotes(chain, checks=checks)
    found = inspect_quotes(half, checks=checks)
    assert found.issues.ids(code) == [name for name in whole.issues.ids(code) if name in set(found.quotes.ids.tolist())]
