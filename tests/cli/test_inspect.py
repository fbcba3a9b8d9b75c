"""``strikeout inspect`` says how a file is understood."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from strikeout.cli import strikeout

TABLE = """Date,Expiration,Strike,cp_flag,Bid,Ask,Underlying_Price,rate,dividend,desk
2024-01-02,2024-07-02,100,C,4.0,4.2,100,0.01,0,west
2024-01-02,2024-07-02,110,C,1.0,1.2,100,0.01,0,west
2024-01-02,2024-07-02,90,P,0.9,1.1,100,0.01,0,east
2024-01-02,2024-07-02,80,P,0.2,0.3,100,0.01,0,east
"""
BAD = "2024-01-02,2024-07-02,120,C,0.9,0.3,100,0.01,0,east\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "chain.csv"
    path.write_text(TABLE)
    return path


def run(*words):
    return CliRunner().invoke(strikeout, ["inspect", *map(str, words)])


def test_every_column_is_named_with_its_role_and_unit(table):
    result = json.loads(run(table, "--json").stdout)
    roles = {column["name"]: column["role"] for column in result["columns"]}
    assert roles["Date"] == "quote_date"
    assert roles["cp_flag"] == "right"
    assert roles["Underlying_Price"] == "spot"
    assert roles["desk"] is None
    assert result["computed_from"]["observed"] == "(bid + ask) / 2"


def test_three_quotes_are_shown_in_canonical_units(table):
    quotes = json.loads(run(table, "--json").stdout)["quotes"]
    assert len(quotes) == 3
    assert quotes[0]["observed"] == pytest.approx(4.1, abs=1e-15)
    assert quotes[0]["expiry_years"] == pytest.approx(182 / 365, abs=1e-15)
    assert (quotes[2]["right"], quotes[2]["labels"]["desk"]) == ("P", "east")


def test_the_words_say_the_same_as_the_json(table):
    said = run(table).stdout
    assert "4 rows, 4 quotes, 0 rejected" in said
    assert "underlying_price" in said.lower()
    assert "(bid + ask) / 2" in said
    assert "0.49863014" in said


def test_rows_that_would_be_rejected_are_findings(table):
    table.write_text(TABLE + BAD)
    done = run(table, "--json")
    assert done.exit_code == 1
    result = json.loads(done.stdout)
    assert (result["count"], result["rejected"], result["issues"]["counts"]) == (4, 1, {"Q103": 1})
    assert result["issues"]["first"][0]["row"] == 6
    spoken = run(table)
    assert spoken.exit_code == 1
    assert "Q103" in spoken.stdout
    assert "crossed market" in spoken.stdout


def test_a_file_without_bad_rows_is_done(table):
    assert run(table).exit_code == 0


YAHOO = """contractSymbol,lastTradeDate,strike,lastPrice,bid,ask,volume,openInterest,impliedVolatility
SPX240315C04500000,2024-01-31 20:00:00+00:00,4500.0,101,100.5,101.5,10,20,0.15
SPX240315P04500000,2024-01-31 20:00:00+00:00,4500.0,91,90.5,91.5,10,20,0.15
"""


def test_a_vendors_file_is_shown_with_its_profile_its_columns_and_what_the_profile_adds(tmp_path):
    path = tmp_path / "yahoo.csv"
    path.write_text(YAHOO)
    told = ("--constant", "quote_date=2024-01-31", "--constant", "forward=4510", "--constant", "discount=0.99")
    result = json.loads(run(path, *told, "--json").stdout)
    assert result["profile"] == "yahoo"
    found = {(column["name"], column["role"]) for column in result["columns"]}
    assert {("contractSymbol", "expiry"), ("lastPrice", None), ("-", "exercise")} <= found
    assert [quote["observed"] for quote in result["quotes"]] == [101.0, 91.0]
    shown = run(path, *told).stdout
    assert "layout: yahoo, Yahoo Finance" in shown
    assert "left out" in shown


def test_a_profile_that_does_not_fit_or_is_not_there_is_refused_by_name(table):
    assert "the profile yahoo needs contractsymbol" in run(table, "--profile", "yahoo").output
    assert "'nobody' is none of barchart" in run(table, "--profile", "nobody").output


def test_profiles_are_listed_and_one_is_shown_in_full():
    listed = CliRunner().invoke(strikeout, ["profiles"])
    assert listed.exit_code == 0
    assert "optionmetrics" in listed.stdout
    one = json.loads(CliRunner().invoke(strikeout, ["profiles", "optionmetrics", "--json"]).stdout)
    strike = next(column for column in one["columns"] if column["canonical"] == "strike")
    assert (strike["column"], strike["how"]) == ("strike_price", "divided by 1,000")
    assert "-99.99 is none" in CliRunner().invoke(strikeout, ["profiles", "optionmetrics"]).stdout


def test_what_is_wrong_with_a_row_that_holds_a_call_and_a_put_is_listed_once(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(
        "ticker,stkPx,expirDate,yte,strike,cVolu,cOi,pVolu,pOi,cBidPx,cAskPx,pBidPx,pAskPx,cMidIv,pMidIv,trade_date\n"
        "SPX,4490.1,03/15/2024,0.12,4500,10,20,10,20,100.5,101.5,90.5,91.5,0.15,0.15,01/31/2024\n"
        "SPX,4490.1,soon,0.12,4600,10,20,10,20,60.5,61.5,150.5,151.5,0.15,0.15,01/31/2024\n"
    )
    options = ("--constant", "forward=4510", "--constant", "discount=0.99")
    result = json.loads(run(path, *options, "--json").stdout)
    assert (result["rejected"], result["issues"]["counts"]["Q110"]) == (2, 2)
    told = [issue["sentence"] for issue in result["issues"]["first"] if issue["code"] == "Q110"]
    assert len(told) == 1
    assert run(path, *options).stdout.count(told[0]) == 1
