"""Real option chains that nobody here made: each reads by its profile, gets its forwards, and calibrates or says why.

Nothing is prepared: ``calibrate`` gets what ``inspect_quotes`` gives. Of a panel one day is taken (of several
underlyings one, of several times of day the first), so that the whole set takes seconds.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ColumnError, UnreadableFileError
from strikeout.quotes.reading import Reading, inspect_quotes
from tests.raising import raises

Data = Callable[[str], Path]

GOOD = "CONVERGED"
# File -> profile, how its calibration ends. Where it does not converge, the reason is one of the market, not of the
# search: one or two expiries say little of mean reversion, and a VIX is not a Heston process.
CHAINS = {
    "day_andreasenhuge_sx5e_2010-03-01": GOOD,
    "day_barchart_spy_2020-07-02": "AT_BOUND",  # two expiries
    "day_cboe_aapl_2019-08-23": GOOD,
    "day_cboe_ndx_2022-02-04": GOOD,
    "day_cboe_spx_2019-05-10": GOOD,
    "day_cboe_spx_2020-09-04": GOOD,
    "day_cboe_spx_2022-01-07": GOOD,
    "day_cboe_spx_2022-06-10": GOOD,
    "day_cboe_spx_2023-06-09": GOOD,
    "day_cboe_spx_2023-12-08": GOOD,
    "day_cboe_spy_2023-09-14": GOOD,
    "day_deribit_btc_2020-09-12": GOOD,
    "day_quantlib_dax_2002-07-05": GOOD,
    "day_ragtop_tsla_2016-05-02": GOOD,
    "day_rnd_spx_2013-04-19": "NOT_IDENTIFIED",  # one expiry
    "day_rnd_vix_2013-06-25": "NOT_IDENTIFIED",  # one expiry
    "day_surface_spx_2005-09-15": GOOD,
    "day_surface_spx_2017-05-19": GOOD,
    "day_surface_spx_2022-11-07": GOOD,
    "day_surface_spy_2022-04-14": GOOD,
    "day_surface_vix_2017-05-19": "AT_BOUND",  # correlation runs into 0.999
    "intraday_deribit_btc_2026-03-01_07": GOOD,
    "panel_deribit_btc_2025-12_2026-04": GOOD,
    "panel_nse_nifty_2025_2026": GOOD,  # settlement prices, theoretical where nothing traded: mean_reversion 324
    "panel_okx_eth_2026-07_08": GOOD,
    "panel_spx_2026-07-22_08-05": GOOD,
    "panel_spx_weekly_2011_h1": GOOD,
    "panel_spy_2026-08-07_13": GOOD,
    "panel_us_equity_ladder_2026-04_a": GOOD,
    "panel_us_etf_yahoo_2026-08_a": GOOD,
}
RAW = {
    "barchart_spy_2021-01-15.csv": ("barchart", "AT_BOUND"),  # one expiry
    "cboe_aapl_2019-08-23.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_json_SPX_2026-07-22.csv.gz": ("cboe-json", GOOD),
    "cboe_ndx_2022-02-04.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_spx_2019-05-10.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_spx_2020-09-04.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_spx_2022-01-07.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_spx_2022-06-10.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_spx_2023-06-09.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_spx_2023-12-08.csv.gz": ("cboe-dashboard", GOOD),
    "cboe_spy_2023-09-14.csv.gz": ("cboe-dashboard", GOOD),
    "yahoo_SPY_2026-08-12.csv.gz": ("yahoo", GOOD),
    "yahoo_SPY_2026-08-13.csv.gz": ("yahoo", GOOD),
    "yahoo_SPY_2026-08-14.csv.gz": ("yahoo", GOOD),
}
# Volatilities against forwards, and no rate anywhere: a price needs one, and which is not ours to say.
NO_RATE = ("day_surface_spx_2005-09-15", "day_surface_spx_2017-05-19", "day_surface_vix_2017-05-19")


def chain(shared_data: Data, name: str) -> Reading:
    constants = {"rate": 0.0} if name in NO_RATE else None
    return inspect_quotes(shared_data(f"chains/{name}.parquet"), constants=constants)


def one_moment(quotes: so.Quotes) -> so.Quotes:
    """The quotes of the first day, underlying and time of day."""
    for label in ("date", "underlying", "quote_time"):
        values = np.unique(quotes.labels.get(label, np.empty(0, "U1")))
        if 0 < len(values) < len(quotes) / 2:  # where every quote has its own time, the day is the moment
            quotes = quotes[quotes.labels[label] == values[0]]
    return quotes


def calibrated(quotes: so.Quotes) -> so.results.Calibration:
    """To out-of-the-money quotes, where there are calls and puts to choose from."""
    both = len(set(quotes.contracts.is_call.tolist())) == 2
    return so.calibrate(quotes, so.Heston(), select="otm" if both else "all")


def test_every_file_of_the_reference_data_is_in_these_tables(shared_data: Data) -> None:
    assert {path.stem for path in shared_data("chains").glob("*.parquet")} == CHAINS.keys()
    assert {path.name for path in shared_data("raw").iterdir()} == {*RAW, "zattera_spx_decimal_comma.csv"}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_known_by_its_columns_and_calibrates_or_says_why(shared_data: Data, name: str) -> None:
    reading = chain(shared_data, name)
    assert reading.table.profile is not None
    assert reading.table.profile.name == "tidy"
    assert len(reading.quotes) + reading.rejected + reading.repeated == reading.rows
    if reading.forwards is not None:
        assert set(reading.forwards.source) <= {"parity", "spot", "none"}
    ended = calibrated(one_moment(reading.quotes)).termination
    assert ended.name == CHAINS[name], ended


@pytest.mark.parametrize("name", RAW)
def test_a_vendors_file_is_known_by_its_columns_and_calibrates_or_says_why(shared_data: Data, name: str) -> None:
    reading = inspect_quotes(shared_data(f"raw/{name}"))
    profile, ends = RAW[name]
    assert reading.table.profile is not None
    assert reading.table.profile.name == profile
    assert reading.forwards is not None
    assert reading.forwards.counts()["parity"] >= len(reading.forwards) - 1
    ended = calibrated(reading.quotes).termination
    assert ended.name == ends, ended


@pytest.mark.parametrize("name", NO_RATE)
def test_a_surface_without_a_rate_is_refused_until_one_is_said(shared_data: Data, name: str) -> None:
    with raises(ColumnError, mentions={"constants"}, missing="the discount"):
        inspect_quotes(shared_data(f"chains/{name}.parquet"))


def test_what_is_no_table_of_quotes_is_refused_with_the_reason(shared_data: Data) -> None:
    with raises(UnreadableFileError, source="fx_smiles.json"):
        inspect_quotes(shared_data("chains/fx_smiles.json"))
    with raises(ColumnError, missing="right", columns=["Strike", "Bid", "Ask", "Price", "Expiry"]):
        inspect_quotes(shared_data("raw/zattera_spx_decimal_comma.csv"))


def test_a_file_with_decimal_commas_reads_by_a_profile_of_its_own(shared_data: Data, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'name = "own"\n[columns]\nstrike = "Strike"\nbid = "Bid"\nask = "Ask"\n'
        'expiry_years = { column = "Expiry", divide = 365 }\n[constants]\nright = "C"\n'
    )
    money = {"forward": 4520.0, "discount": 0.999}
    reading = inspect_quotes(shared_data("raw/zattera_spx_decimal_comma.csv"), profile=own, constants=money)
    # One bid of the file is above its ask: 260,8 in line 157.
    assert [(issue.code, issue.row) for issue in reading.issues if issue.is_rejected] == [("Q103", 157)]
    # The first line of the file: 4355;166,6;168,3;167,45;1.
    assert (reading.quotes.contracts.strike[0], reading.quotes.observed[0]) == (4355.0, (166.6 + 168.3) / 2)
    assert "decimal comma" in reading.table.notes[0]


def told(quotes: so.Quotes) -> set[tuple[object, ...]]:
    """What the market said, apart from ids, forwards and times of day."""
    c, labels = quotes.contracts, quotes.labels
    columns = (labels["expiry_date"], c.strike, c.is_call, labels["bid"], labels["ask"])
    roots = labels["root"] if "root" in labels else np.full(len(quotes), "")
    return set(zip(roots.tolist(), *(column.tolist() for column in columns), strict=True))


TWINS = {
    "cboe_aapl_2019-08-23.csv.gz": "day_cboe_aapl_2019-08-23",
    "cboe_ndx_2022-02-04.csv.gz": "day_cboe_ndx_2022-02-04",
    "cboe_spx_2019-05-10.csv.gz": "day_cboe_spx_2019-05-10",
    "cboe_spx_2020-09-04.csv.gz": "day_cboe_spx_2020-09-04",
    "cboe_spx_2022-01-07.csv.gz": "day_cboe_spx_2022-01-07",
    "cboe_spx_2022-06-10.csv.gz": "day_cboe_spx_2022-06-10",
    "cboe_spx_2023-06-09.csv.gz": "day_cboe_spx_2023-06-09",
    "cboe_spx_2023-12-08.csv.gz": "day_cboe_spx_2023-12-08",
    "cboe_spy_2023-09-14.csv.gz": "day_cboe_spy_2023-09-14",
}


@pytest.mark.parametrize("name", TWINS)
def test_a_vendors_file_and_its_tidy_twin_tell_the_same_quotes(shared_data: Data, name: str) -> None:
    raw = inspect_quotes(shared_data(f"raw/{name}")).quotes
    tidy = chain(shared_data, TWINS[name]).quotes
    assert set(raw.labels["date"]) == set(tidy.labels["date"])
    extra = told(raw) - told(tidy)
    assert told(tidy) <= told(raw)
    # One file was taken at 13:40: the options that end that afternoon are alive in it, and the twin knows no hour.
    assert {row[1] for row in extra} == ({"2023-06-09"} if "2023-06-09" in name else set())


def test_barchart_and_cboe_json_files_agree_with_their_panels(shared_data: Data) -> None:
    raw = inspect_quotes(shared_data("raw/barchart_spy_2021-01-15.csv")).quotes
    tidy = chain(shared_data, "day_barchart_spy_2020-07-02").quotes
    tidy = tidy[tidy.labels["expiry_date"] == "2021-01-15"]
    assert {row[1:] for row in told(raw)} == {row[1:] for row in told(tidy)}
    raw = inspect_quotes(shared_data("raw/cboe_json_SPX_2026-07-22.csv.gz")).quotes
    panel = chain(shared_data, "panel_spx_2026-07-22_08-05").quotes
    assert told(raw) == told(panel[panel.labels["date"] == "2026-07-22"])


def test_parity_finds_the_forwards_an_independent_fit_found(shared_data: Data) -> None:
    """The tidy twins carry forwards that others fitted by parity; ours are found from the same prices."""
    raw = inspect_quotes(shared_data("raw/cboe_spx_2022-06-10.csv.gz")).quotes
    tidy = chain(shared_data, "day_cboe_spx_2022-06-10").quotes
    fitted = dict(zip(slices(tidy), tidy.contracts.forward, strict=True))
    theirs = np.array([fitted[key] for key in slices(raw)])
    # Two fits with weights of their own differ by a fraction of an at-the-money spread, here 1e-4 of the index.
    apart = np.abs(raw.contracts.forward / theirs - 1.0)
    assert np.median(apart) < 1e-5
    assert apart.max() < 1e-4


def slices(quotes: so.Quotes) -> list[tuple[str, str]]:
    return list(zip(quotes.labels["root"], quotes.labels["expiry_date"], strict=True))


def rewritten(shared_data: Data, folder: Path, change: Callable[[list[str]], None]) -> Path:
    """The chain of 2022-01-07 with one put changed: strike 4500 of 2022-01-21, out of the money and well traded."""
    text = gzip.decompress(shared_data("raw/cboe_spx_2022-01-07.csv.gz").read_bytes()).decode()
    lines = list(csv.reader(text.splitlines()))
    (row,) = [line for line in lines if "SPXW220121P04500000" in line]
    change(row)
    path = folder / "changed.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return path


BID, ASK = 16, 17  # of the put, in a row of the file


def test_a_decimal_shift_in_a_real_chain_is_first_in_influence_and_striking_it_out_restores_every_bit(
    shared_data: Data, tmp_path: Path
) -> None:
    def shift(row: list[str]) -> None:
        row[BID], row[ASK] = str(float(row[BID]) * 10), str(float(row[ASK]) * 10)

    def leave_out(row: list[str]) -> None:
        row[BID] = row[ASK] = ""

    spoilt = inspect_quotes(rewritten(shared_data, tmp_path, shift)).quotes
    never = inspect_quotes(rewritten(shared_data, tmp_path, leave_out)).quotes
    assert len(spoilt) == len(never) + 1
    calibration = so.calibrate(spoilt, so.Heston(), select="otm")
    first = str(so.influence(calibration)["id"][0])
    assert first.endswith("2022-01-21/4500/P"), first
    clean = so.calibrate(never, so.Heston(), select="otm")
    struck = so.forget(calibration, ids=[first])
    assert struck.parameters == clean.parameters
    assert struck.calibration.quotes.contracts.forward.tobytes() == clean.quotes.contracts.forward.tobytes()
    # The shift did move them, or restoring would say nothing: one by more than a standard error.
    moved = {name: abs(calibration.parameters[name] - value) for name, value in clean.parameters.items()}
    assert max(moved[name] / clean.standard_errors[name] for name in moved) > 1.0
