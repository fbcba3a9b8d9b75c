"""Vendors' files, in the vendors' own words: each is known by its columns and comes out as the same quotes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from strikeout.errors import ColumnError, UsageError
from strikeout.quotes.chunked_reader import Plan
from strikeout.quotes.columns import ALIASES
from strikeout.quotes.profile import match, nearest, profile_of, shipped_profiles
from strikeout.quotes.reading import Reading, inspect_quotes
from strikeout.quotes.tables import open_sheet
from tests.raising import raises

MONEY = {"forward": 4510.0, "discount": 0.99}

# Every file tells of one call and one put: strike 4500, 2024-03-15, quoted on 2024-01-31 at 100.5 / 101.5 and
# 90.5 / 91.5, in the vendor's own columns and units. Third entry: what a file of this vendor does not say.
FILES = {
    "optionmetrics": (
        "secid,date,exdate,cp_flag,strike_price,best_bid,best_offer,volume,open_interest,impl_volatility,am_settlement,ss_flag\n"
        "108105,2024-01-31,2024-03-15,C,4500000,100.5,101.5,10,20,0.15,1,0\n"
        "108105,2024-01-31,2024-03-15,P,4500000,90.5,91.5,10,20,-99.99,1,0\n",
        MONEY,
    ),
    "cboe-datashop-eod": (
        "underlying_symbol,quote_date,root,expiration,strike,option_type,trade_volume,bid_1545,ask_1545,"
        "active_underlying_price_1545,bid_eod,ask_eod,open_interest\n"
        "^SPX,2024-01-31,SPX,2024-03-15,4500.000,C,10,100.5,101.5,4490.1,1,2,20\n"
        "^SPX,2024-01-31,SPX,2024-03-15,4500.000,P,10,90.5,91.5,4490.1,1,2,20\n",
        MONEY,
    ),
    "cboe-datashop-interval": (
        "underlying_symbol,quote_datetime,root,expiration,strike,option_type,bid,ask,underlying_bid\n"
        "^SPX,2024-01-31 15:45:00,SPX,2024-03-15,4500.000,C,100.5,101.5,4490.1\n"
        "^SPX,2024-01-31 15:45:00,SPX,2024-03-15,4500.000,P,90.5,91.5,4490.1\n",
        MONEY,
    ),
    "cboe-dashboard": (
        '\nS&P 500 INDEX,Last: 4490.1,Change:  1.2\n"Date: January 31, 2024 at 4:31 PM EST",Bid: 1,Ask: 2\n'
        "Expiration Date,Calls,Last Sale,Net,Bid,Ask,Volume,IV,Delta,Gamma,Open Interest,Strike,"
        "Puts,Last Sale,Net,Bid,Ask,Volume,IV,Delta,Gamma,Open Interest\n"
        "Fri Mar 15 2024,SPX240315C04500000,1,0,100.5,101.5,10,0.15,0.5,0,20,4500.00,"
        "SPX240315P04500000,1,0,90.5,91.5,10,0.15,-0.5,0,20\n",
        MONEY,
    ),
    "cboe-json": (
        "session_date,ticker,expiry,right,strike,option,bid,ask,volume,open_interest,iv,last_trade_time\n"
        "2024-01-31,_SPX,2024-03-15,C,4500.000,SPX240315C04500000,100.5,101.5,10,20,0.15,2024-01-31T09:46:42\n"
        "2024-01-31,_SPX,2024-03-15,P,4500.000,SPX240315P04500000,90.5,91.5,10,20,0.15,2024-01-31T09:46:42\n",
        MONEY,
    ),
    "orats-files": (
        "ticker,stkPx,expirDate,yte,strike,cVolu,cOi,pVolu,pOi,cBidPx,cAskPx,pBidPx,pAskPx,cMidIv,pMidIv,trade_date\n"
        "SPX,4490.1,03/15/2024,0.12,4500,10,20,10,20,100.5,101.5,90.5,91.5,0.15,0.15,01/31/2024\n",
        MONEY,
    ),
    "orats-api": (
        "ticker,tradeDate,expirDate,dte,strike,stockPrice,callBidPrice,callAskPrice,putBidPrice,putAskPrice,expiryTod\n"
        "SPX,2024-01-31,2024-03-15,44,4500,4490.1,100.5,101.5,90.5,91.5,am\n",
        MONEY,
    ),
    # Coins: 100.5 = 0.0223... * 4510 is no round number, so the forward is 5000 here and prices are 0.0201 and so on.
    "tardis": (
        "exchange,symbol,timestamp,local_timestamp,type,strike_price,expiration,open_interest,bid_price,bid_iv,ask_price,"
        "ask_iv,mark_iv,underlying_price\n"
        "deribit,BTC-15MAR24-4500-C,1706715000000000,1706715000000001,call,4500,1710489600000000,20,0.0201,15,0.0203,16,15.5,5000\n"
        "deribit,BTC-15MAR24-4500-P,1706715000000000,1706715000000001,put,4500,1710489600000000,20,0.0181,15,0.0183,16,15.5,5000\n",
        {},
    ),
    "deribit": (
        "instrument_name,underlying_price,mark_iv,bid_price,ask_price,open_interest,creation_timestamp,base_currency\n"
        "BTC-15MAR24-4500-C,5000,15.5,0.0201,0.0203,20,1706715000000,BTC\n"
        "BTC-15MAR24-4500-P,5000,15.5,0.0181,0.0183,20,1706715000000,BTC\n",
        {},
    ),
    "databento-opra": (
        "ts_recv,ts_event,bid_px_00,ask_px_00,bid_sz_00,ask_sz_00,symbol\n"
        "1706715000000000001,1706715000000000000,100500000000,101500000000,1,1,SPX   240315C04500000\n"
        "1706715000000000001,1706715000000000000,90500000000,91500000000,1,1,SPX   240315P04500000\n"
        "1706715000000000001,1706715000000000000,9223372036854775807,91500000000,1,1,SPX   240315P04600000\n",
        MONEY,
    ),
    "yahoo": (
        "contractSymbol,lastTradeDate,strike,lastPrice,bid,ask,volume,openInterest,impliedVolatility,contractSize\n"
        "SPX240315C04500000,2024-01-31 20:00:00+00:00,4500.0,101,100.5,101.5,10,20,0.15,REGULAR\n"
        "SPX240315P04500000,2024-01-31 20:00:00+00:00,4500.0,91,90.5,91.5,10,20,0.15,REGULAR\n",
        {**MONEY, "quote_date": "2024-01-31"},
    ),
    "optionsdx": (
        "[QUOTE_UNIXTIME], [QUOTE_READTIME], [QUOTE_DATE], [UNDERLYING_LAST], [EXPIRE_DATE], [C_IV], [C_VOLUME], "
        "[C_BID], [C_ASK], [STRIKE], [P_BID], [P_ASK], [P_IV], [P_VOLUME]\n"
        "1706734800, 2024-01-31 16:00, 2024-01-31, 4490.1, 2024-03-15, 0.15, 10, "
        "100.5, 101.5, 4500, 90.5, 91.5, 0.15, 10\n",
        MONEY,
    ),
    "bloomberg": (
        "Ticker,OPT_UNDL_TICKER,OPT_STRIKE_PX,OPT_EXPIRE_DT,OPT_PUT_CALL,PX_BID,PX_ASK,IVOL_MID,LAST_UPDATE_DT\n"
        "SPX US 03/15/24 C4500 Index,SPX,4500,03/15/2024,Call,100.5,101.5,15.5,01/31/2024\n"
        "SPX US 03/15/24 P4500 Index,SPX,4500,03/15/2024,Put,90.5,91.5,15.5,01/31/2024\n",
        MONEY,
    ),
    "openbb": (
        "underlying_symbol,underlying_price,contract_symbol,eod_date,expiration,strike,option_type,bid,ask,implied_volatility\n"
        "SPX,4490.1,SPX240315C04500000,2024-01-31,2024-03-15,4500,call,100.5,101.5,0.15\n"
        "SPX,4490.1,SPX240315P04500000,2024-01-31,2024-03-15,4500,put,90.5,91.5,0.15\n",
        MONEY,
    ),
    "barchart": (
        "Symbol,Strike,Last,Bid,Midpoint,Ask,IV,Volume,Open Int,Type,DTE,Exp Date,Time\n"
        'SPX|20240315|4500.00C,4500,101,100.5,101,101.5,15.50%,"1,010",20,Call,44,03/15/24,01/31/24\n'
        "SPX|20240315|4500.00P,4500,91,90.5,91,91.5,15.50%,10,20,Put,44,03/15/24,N/A\n",
        MONEY,
    ),
}

SHIPPED = sorted((Path(profile_of.__code__.co_filename).parent / "profiles").glob("*.toml"))


def reading_of(folder: Path, name: str, **options: object) -> Reading:
    text, constants = FILES[name]
    path = folder / f"{name}.csv"
    path.write_text(text, encoding="utf-8")
    return inspect_quotes(path, constants=constants, **options)


@pytest.mark.parametrize("name", FILES)
def test_the_same_quotes_come_out_of_every_vendors_file(tmp_path: Path, name: str) -> None:
    reading = reading_of(tmp_path, name)
    quotes = reading.quotes
    assert reading.table.profile is not None
    assert reading.table.profile.name == name
    assert quotes.contracts.is_call.tolist() == [True, False], reading.summary()
    assert quotes.contracts.strike.tolist() == [4500.0, 4500.0]
    # Prices of coins are products of two decimals: one rounding.
    assert quotes.observed == pytest.approx([101.0, 91.0], rel=4e-16)
    assert set(quotes.labels["date"]) == {"2024-01-31"}
    assert set(quotes.labels["expiry_date"]) == {"2024-03-15"}


def test_every_vendors_file_is_tested_here_but_the_one_of_the_reference_data() -> None:
    assert FILES.keys() == shipped_profiles().keys() - {"tidy"}


@pytest.mark.parametrize("name", shipped_profiles())
def test_the_documented_header_of_a_profile_is_known_as_that_profile_and_no_other(name: str) -> None:
    profile = profile_of(name)
    assert match(profile.header) is profile
    assert profile.documented
    assert set(profile.columns) <= {*ALIASES, "symbol"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_profile_passes_the_checks_of_a_users_own(path: Path) -> None:
    profile = profile_of(path)
    assert profile == shipped_profiles()[profile.name]


def test_sentinels_are_nothing_and_what_they_stood_for_is_missing(tmp_path: Path) -> None:
    assert reading_of(tmp_path, "optionmetrics").quotes.labels["iv"][0] == 0.15
    assert reading_of(tmp_path, "optionmetrics").quotes.labels["iv"][1] != -99.99
    (issue,) = reading_of(tmp_path, "databento-opra").issues[:1]
    assert (issue.code, issue.row, issue.column) == ("Q101", 4, "bid_px_00")


def test_what_a_class_tells_is_told_of_each_quote(tmp_path: Path) -> None:
    labels = reading_of(tmp_path, "cboe-dashboard").quotes.labels
    assert set(labels["exercise"]) == {"E"}
    assert set(labels["settlement"]) == {"am"}
    assert set(labels["underlying"]) == {"SPX"}
    assert set(labels["spot"]) == {4490.1}


# Bloomberg and OptionMetrics have a column for it, which may be absent; OptionsDX does not name the underlying.
STYLED = {
    "bloomberg": ("LAST_UPDATE_DT\n", "01/31/2024\n", "LAST_UPDATE_DT,OPT_EXER_TYP\n", "01/31/2024,{}\n"),
    "optionmetrics": ("ss_flag\n", ",1,0\n", "ss_flag,exercise_style\n", ",1,0,{}\n"),
}


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"deribit", "tardis", "optionsdx"}))
@pytest.mark.parametrize(("underlying", "style"), [("SPX", "European"), ("SPY", "American")])
def test_the_style_of_exercise_is_read_from_every_vendors_file(
    tmp_path: Path, name: str, underlying: str, style: str
) -> None:
    text, constants = FILES[name]
    text = text.replace("SPX", underlying)
    if name in STYLED:
        head, row, headed, filled = STYLED[name]
        text = text.replace(head, headed).replace(row, filled.format(style))
    (tmp_path / "file.csv").write_text(text, encoding="utf-8")
    reading = inspect_quotes(tmp_path / "file.csv", constants=constants)
    assert reading.table.profile is not None
    assert reading.table.profile.name == name
    assert {word[0] for word in reading.quotes.labels["exercise"]} == {style[0]}
    is_american, has_spot = style == "American", "spot" in reading.quotes.labels
    assert ("american_mid" in reading.quotes.labels) == (is_american and has_spot)
    assert ("Q203" in reading.issues.counts) == (is_american and not has_spot)


@pytest.mark.parametrize("name", ["deribit", "tardis"])
def test_options_on_coins_are_european(tmp_path: Path, name: str) -> None:
    assert set(reading_of(tmp_path, name).quotes.labels["exercise"]) == {"E"}


def test_a_summary_names_the_layout_and_what_was_noticed(tmp_path: Path) -> None:
    told = reading_of(tmp_path, "cboe-dashboard").summary()
    assert "layout: cboe-dashboard, Cboe delayed quotes page" in told
    assert "note: the header is line 4" in told


def test_an_adjusted_contract_is_not_called_standard(tmp_path: Path) -> None:
    text, constants = FILES["yahoo"]
    path = tmp_path / "adjusted.csv"
    lines = text.replace(",contractSize", "").replace(",REGULAR", "").replace("SPX240315C", "SPX1240315C")
    path.write_text(lines)
    assert inspect_quotes(path, constants=constants).quotes.labels["deliverable"].tolist() == ["adjusted", "standard"]


def test_percent_and_epochs_are_told_in_canonical_units(tmp_path: Path) -> None:
    labels = reading_of(tmp_path, "tardis").quotes.labels
    assert labels["iv"].tolist() == [0.155, 0.155]
    # 1706715000 s after 1970 is 2024-01-31 15:30 UTC.
    assert labels["quote_time"].tolist() == ["2024-01-31T15:30:00.000000+00:00"] * 2
    assert reading_of(tmp_path, "barchart").quotes.labels["volume"].tolist() == [1010.0, 10.0]


def test_a_header_between_profiles_is_refused_and_the_nearest_three_say_what_they_miss(tmp_path: Path) -> None:
    path = tmp_path / "almost.csv"
    path.write_text("contractSymbol,strike,lastPrice,bid,ask,volume,openInterest\nSPX240315C04500000,4500,1,1,2,3,4\n")
    near = nearest(["contractSymbol", "strike", "lastPrice", "bid", "ask", "volume", "openInterest"])
    assert len(near) == 3
    assert (near[0][0].name, sorted(near[0][1])) == ("yahoo", ["impliedvolatility", "lasttradedate"])
    with raises(ColumnError, missing="right"):
        inspect_quotes(path)


def test_a_header_of_two_profiles_is_not_guessed() -> None:
    both = [*profile_of("yahoo").header, *profile_of("openbb").header]
    with raises(ColumnError, profiles=["openbb", "yahoo"]):
        match(both)


def test_of_two_profiles_that_fit_the_one_that_asks_for_more_is_meant(tmp_path: Path) -> None:
    columns = {"less": 'strike = "K"\nright = "R"', "more": 'strike = "K"\nright = "R"\nprice = "P"'}
    for name, lines in columns.items():
        (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\n[columns]\n{lines}')
    both = {name: profile_of(tmp_path / f"{name}.toml") for name in columns}
    less, more = both["less"], both["more"]
    assert match(["K", "R", "P"], both) is more
    assert match(["K", "R"], both) is less
    assert match(["K"], both) is None


def test_a_price_in_coins_is_times_the_exchanges_forward_and_times_the_spot_only_where_there_is_none(
    tmp_path: Path,
) -> None:
    text, _ = FILES["deribit"]
    path = tmp_path / "coins.csv"
    lines = text.replace("base_currency", "estimated_delivery_price").replace(",BTC\n", ",4000\n")
    path.write_text(lines + "BTC-15MAR24-4600-C,,15.5,0.0201,0.0203,20,1706715000000,4000\n")
    reading = inspect_quotes(path, forwards="auto")
    # By the forward, 5000: 0.0202 and 0.0182 coins. The last row has no forward, and alone it gives none.
    assert reading.quotes.observed == pytest.approx([101.0, 91.0], rel=4e-16)
    assert [(issue.code, issue.row) for issue in reading.issues if issue.is_rejected] == [("Q116", 4)]
    table, _ = next(Plan(open_sheet(path)).tables())
    assert table.frame["bid"][2] == pytest.approx(0.0201 * 4000.0, rel=4e-16)


def test_a_profile_asked_for_by_name_is_taken_or_says_what_it_misses(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("strike,right,price,expiry_years,forward,discount\n90,C,12,0.5,100,1\n")
    assert inspect_quotes(path, profile="strikeout").table.profile is None
    with raises(ColumnError):
        inspect_quotes(path, profile="yahoo")
    with raises(UsageError, profile="reuters"):
        inspect_quotes(path, profile="reuters")


OWN = """
name = "desk"
[columns]
strike = { column = "Basis", divide = 10 }
right = { column = "Art", values = { K = "C", V = "P" } }
price = "Kurs"
expiry_years = { column = "Monate", divide = 12 }
[constants]
forward = 100.0
discount = 1.0
"""


def test_a_profile_of_ones_own_reads_a_file_nobody_else_knows(tmp_path: Path) -> None:
    profile, path = tmp_path / "desk.toml", tmp_path / "kurse.csv"
    profile.write_text(OWN)
    path.write_text("Basis;Art;Kurs;Monate\n900;K;12,5;6\n1100;V;11,25;6\n")
    reading = inspect_quotes(path, profile=profile)
    assert reading.quotes.contracts.strike.tolist() == [90.0, 110.0]
    assert reading.quotes.observed.tolist() == [12.5, 11.25]
    assert reading.quotes.contracts.is_call.tolist() == [True, False]
    assert reading.quotes.contracts.expiry.tolist() == [0.5, 0.5]
    # A constant of the caller goes before the profile's.
    assert inspect_quotes(path, profile=profile, constants={"forward": 99.0}).quotes.contracts.forward[0] == 99.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "is not TOML"),
        ('name = "x"', "columns is missing"),
        ('name = "x"\ncolour = 1\n[columns]\nstrike = "K"', "'colour' is none of the keys"),
        ('name = "x"\n[columns]\nstryke = "K"', "'stryke' is none of the canonical columns"),
        ('name = "x"\n[columns]\nstrike = { column = "K", scale = 2 }', "'scale' is none of the keys"),
        ('name = "x"\n[columns]\nstrike = { divide = 2 }', "column is missing"),
        ('name = "x"\nsymbol = "isin"\n[columns]\nstrike = "K"', "the forms are occ"),
        ('name = "x"\n[columns]\nstrike = "K"\n[calls]\nbid = "B"', "calls and puts go together"),
    ],
)
def test_a_broken_profile_says_what_is_wrong_with_it(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        profile_of(path)


def test_a_garbled_cell_of_a_wide_file_is_named_with_its_line_and_goes_to_quarantine_whole(tmp_path: Path) -> None:

    text, constants = FILES["cboe-dashboard"]
    path = tmp_path / "garbled.csv"
    good = text.splitlines()[-1].replace("C04500000", "C04600000").replace("P04500000", "P04600000")
    path.write_text(text + good.replace("90.5", "n/a").replace("4500.00", "4600.00") + "\n")
    reading = inspect_quotes(path, constants=constants)
    bad = [issue for issue in reading.issues if issue.is_rejected]
    assert [(issue.code, issue.row) for issue in bad] == [("Q102", 6)]
    assert "column Bid or Bid (2): 'n/a' is not a number" in bad[0].sentence
    assert len(reading.quotes) == 3
    target = tmp_path / "bad.csv"
    reading.write_quarantine(target)
    target.write_text(target.read_text().replace("n/a", "90.5"))
    again = inspect_quotes(target, constants=constants)
    assert again.quotes.contracts.strike.tolist() == [4600.0, 4600.0]
    assert again.quotes.observed.tolist() == [101.0, 91.0]
    assert set(again.quotes.labels["spot"]) == {4490.1}


def test_a_side_of_a_wide_row_that_is_empty_is_no_quote(tmp_path: Path) -> None:
    text, constants = FILES["optionsdx"]
    path = tmp_path / "half.csv"
    path.write_text(
        text + text.splitlines()[1].replace(" 90.5, 91.5, 0.15, 10", " , , , ").replace("4500", "4600") + "\n"
    )
    reading = inspect_quotes(path, constants=constants)
    assert reading.quotes.contracts.strike.tolist() == [4500.0, 4500.0, 4600.0]
    assert (reading.rows, reading.rejected) == (3, 0)


def test_frames_are_known_by_their_columns_as_files_are() -> None:
    frame = pl.DataFrame({
        "contractSymbol": ["SPX240315C04500000"], "lastTradeDate": [None], "strike": [4500.0], "bid": [100.5],
        "ask": [101.5], "volume": [1], "openInterest": [2], "impliedVolatility": [0.1], "lastPrice": [1.0],
    })  # fmt: skip
    reading = inspect_quotes(frame, constants={**MONEY, "quote_date": "2024-01-31"})
    assert reading.quotes.observed.tolist() == [101.0]
    told = {(column.name, column.role) for column in reading.columns}
    assert {("strike", "strike"), ("lastPrice", None), ("contractSymbol", "expiry"), ("-", "exercise")} <= told
