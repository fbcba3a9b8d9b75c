"""The rules about the market: each finds what it is for, names the quotes involved, and is silent otherwise."""

from __future__ import annotations

import csv
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from strikeout.errors import UsageError
from strikeout.kernels import black
from strikeout.quotes.checks.catalogue import RULES, Checks
from strikeout.quotes.checks.market import CHECKED, applies, check_market
from strikeout.quotes.reading import accept, inspect_quotes

FORWARD, DISCOUNT = 100.0, 0.99


def chain(*, years: tuple[float, ...] = (0.5,), strikes: tuple[float, ...] = (80, 90, 100, 110, 120)) -> pl.DataFrame:
    """A clean chain: both sides of every strike at a volatility of 20 %, bid and ask 0.05 apart."""
    rows = [(t, float(k), c) for t in years for k in strikes for c in (True, False)]
    t, k, is_call = (np.array(column) for column in zip(*rows, strict=True))
    mid = black.price(FORWARD, k, t, 0.2, DISCOUNT, is_call)
    return pl.DataFrame({
        "at": np.arange(len(k)), "row": np.arange(len(k)) + 2, "strike": k, "is_call": is_call, "expiry_years": t,
        "forward": FORWARD, "discount": DISCOUNT, "observed": mid, "bid": mid - 0.025, "ask": mid + 0.025,
    }).with_columns(pl.col("bid").clip(0.0))  # fmt: skip


def changed(frame: pl.DataFrame, at: int, **values: Any) -> pl.DataFrame:
    """The frame with other values in one row; None elsewhere in a column it did not have."""
    for name, value in values.items():
        old = pl.col(name) if name in frame.columns else pl.lit(None)
        frame = frame.with_columns(pl.when(pl.col("at") == at).then(pl.lit(value)).otherwise(old).alias(name))
    return frame


def codes(issues: pl.DataFrame) -> list[tuple[str, int]]:
    return sorted(zip(issues["code"], issues["at"], strict=True))


def test_a_clean_chain_is_met_with_silence() -> None:
    frame = chain(years=(0.25, 0.5, 2.0), strikes=(90, 95, 100, 105, 110)).with_columns(
        quote_date=pl.date(2024, 1, 2), expiry=pl.date(2024, 7, 2), exercise=pl.lit("E"), volume=pl.lit(3),
        open_interest=pl.lit(0), iv=pl.lit(0.2), underlying=pl.lit("SPX"), root=pl.lit("SPXW"),
        settlement=pl.lit("pm"), deliverable=pl.lit("100"), spot=pl.lit(100.0), american_mid=pl.lit(None, pl.Float64),
    )  # fmt: skip
    assert [code for code in CHECKED if not applies(code, frame.columns)] == []
    assert check_market(frame).height == 0


ONE_ROW = [
    ("Q202", {"observed": 19.0}, "the price 19 is below the intrinsic value 19.8"),
    ("Q205", {"observed": 99.5}, "the price 99.5 is above the upper bound 99"),
    ("Q206", {"bid": 20.05, "ask": 20.05}, "bid and ask are both 20.05"),
    ("Q207", {"bid": 0.0}, "there is no bid"),
    ("Q208", {"bid": 10.0, "ask": 30.0}, "the spread is 1 of the mid, more than 0.5"),
    ("Q203", {"exercise": "American"}, "'American' is American"),
    ("Q211", {"deliverable": "10 shares and cash"}, "'10 shares and cash' is not the standard deliverable"),
    ("Q211", {"underlying": "AAPL", "root": "AAPL1"}, "'AAPL1' is the root of an adjusted contract"),
    ("Q213", {"volume": 0, "open_interest": 0}, "no volume and no open interest"),
    ("Q220", {"american_mid": 21.0, "observed": 20.0}, "early exercise is worth 1, more than the spread of 0.05"),
    ("Q221", {"american_mid": 20.02, "spot": 100.0}, "worth 0.02 more than exercising now pays"),
]


@pytest.mark.parametrize(("code", "values", "words"), ONE_ROW)
def test_a_doubtful_row_is_flagged_and_the_sentence_says_why(code: str, values: dict[str, Any], words: str) -> None:
    issues = check_market(changed(chain(), 0, **values), numbering="line").filter(pl.col("code") == code)
    assert issues["at"].to_list() == [0]
    assert issues["sentence"][0].startswith("line 2, column ")
    assert words in issues["sentence"][0]
    assert not issues["is_rejected"].any()


def test_the_moneyness_band_is_one_of_ratios() -> None:
    frame = chain(strikes=(49, 51, 100, 199, 201)).filter("is_call")
    assert [at for code, at in codes(check_market(frame)) if code == "Q209"] == [0, 8]
    tight = codes(check_market(frame, Checks.of({"Q209": 1.5})))
    assert [at for code, at in tight if code == "Q209"] == [0, 2, 6, 8]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [0]),
        ({"root": "SPXW"}, []),
        ({"settlement": "am"}, []),
        ({"settlement": "unknown"}, [0]),
        ({"underlying": "DAX"}, []),
        ({"expiry": "2024-06-20"}, []),
    ],
)
def test_settlement_is_asked_for_only_where_there_are_two(given: dict[str, str], expected: list[int]) -> None:
    row = {"underlying": "^SPX", "expiry": "2024-06-21", **given}
    frame = chain()[:1].with_columns(pl.lit(value).alias(name) for name, value in row.items())
    issues = check_market(frame.with_columns(pl.col("expiry").str.to_date()))
    assert issues.filter(pl.col("code") == "Q212")["at"].to_list() == expected


def test_a_quote_that_stood_still_while_the_market_moved_is_stale() -> None:
    first = chain().with_columns(quote_date=pl.date(2024, 1, 2), spot=pl.lit(100.0))
    second = chain().with_columns(
        quote_date=pl.date(2024, 1, 3), spot=pl.lit(102.0), forward=pl.lit(102.0), at=pl.col("at") + 10
    )
    both = pl.concat([first, second]).with_columns(expiry=pl.date(2024, 7, 2), row=pl.col("at"))
    issues = check_market(both).filter(pl.col("code") == "Q210").sort("at")
    # 2 % of the forward moves every option here by more than its half spread of 0.025.
    assert issues["at"].to_list() == list(range(10, 20))
    assert issues["others"].to_list() == [[at] for at in range(10)]
    assert "unchanged at" in issues["sentence"][0]
    assert "moved by 2 %" in issues["sentence"][0]
    wide = both.with_columns(ask=pl.col("bid") + 40.0)
    assert "Q210" not in check_market(wide)["code"]
    still = both.with_columns(spot=pl.lit(100.0))
    assert "Q210" not in check_market(still)["code"]
    fresh = both.with_columns(bid=pl.when(pl.col("at") == 14).then(pl.col("bid") + 0.01).otherwise("bid"))
    assert 14 not in check_market(fresh).filter(pl.col("code") == "Q210")["at"].to_list()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (pl.col("strike") * 1000, "the median strike is 1000 times the forward"),
        (pl.lit(21.5).alias("iv"), "the median volatility is 21.5: in percent?"),
        ((pl.col("observed") / 1000).alias("observed"), "100 % of the prices that can be judged"),
    ],
)
def test_a_slice_in_another_unit_is_suspected_once(change: pl.Expr, words: str) -> None:
    frame = chain().with_columns(change)
    issues = check_market(frame).filter(pl.col("code") == "Q301")
    assert issues["at"].to_list() == [0]
    assert issues["others"].to_list() == [list(range(1, 10))]
    assert words in issues["sentence"][0]


def test_a_broken_parity_names_call_and_put() -> None:
    frame = chain()
    dear = changed(frame, 4, bid=7.0, ask=7.1)  # the call at 100, worth 5.58
    issues = check_market(dear).filter(pl.col("code") == "Q302")
    assert (issues["at"].to_list(), issues["others"].to_list()) == ([4], [[5]])
    assert "too dear by 1.39" in issues["sentence"][0]  # 7.00 - (5.582 + 0.025)
    loose = check_market(dear, Checks.of({"Q302": 0.02})).filter(pl.col("code") == "Q302")
    assert loose.height == 0
    american = check_market(dear.with_columns(exercise=pl.lit("A"))).filter(pl.col("code") == "Q302")
    assert american.height == 0


def by_hand(frame: pl.DataFrame, size: int) -> set[int]:
    """Positions of quotes whose bid is above what ``size`` others cost at the ask for no smaller payoff: each tried."""
    found = set()
    for is_call in (True, False):
        side = frame.filter(pl.col("is_call") == is_call).rows(named=True)
        sign = 1.0 if is_call else -1.0
        for sold in side:
            x, bid = sign * sold["strike"], sold["bid"]
            if size == 1:
                asks = [(sign * q["strike"], q["ask"]) for q in side if q["at"] != sold["at"]]
                cheap = any(a < x and ask < bid for a, ask in asks)
                steep = any(a > x and bid - ask > DISCOUNT * (a - x) for a, ask in asks)
                if cheap or steep:
                    found.add(sold["at"])
            for low, high in combinations(side, 2) if size == 2 else ():
                a, b = sorted([(sign * low["strike"], low["ask"]), (sign * high["strike"], high["ask"])])
                share = (b[0] - x) / (b[0] - a[0])
                if 0 < share < 1 and share * a[1] + (1 - share) * b[1] < bid:
                    found.add(sold["at"])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_verticals_and_butterflies_are_those_found_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    noise = random.normal(0.0, 0.6, 2 * 12)
    frame = chain(strikes=tuple(range(70, 130, 5))).with_columns(
        bid=(pl.col("bid") + noise).clip(0.0), ask=(pl.col("bid") + noise).clip(0.0) + random.uniform(0.01, 0.6, 24)
    )
    issues = check_market(frame)
    assert set(issues.filter(pl.col("code") == "Q303")["at"]) == by_hand(frame, 1)
    assert set(issues.filter(pl.col("code") == "Q304")["at"]) == by_hand(frame, 2)


def test_arbitrage_names_the_quotes_that_make_it() -> None:
    frame = chain()
    vertical = check_market(changed(frame, 6, bid=7.0, ask=7.2), numbering="line").filter(pl.col("code") == "Q303")
    # The call at 110 bids more than the call at 100 asks.
    assert (vertical["at"].to_list(), vertical["others"].to_list()) == ([6], [[4]])
    assert vertical["sentence"][0].startswith(
        "lines 8, 6, column bid: the bid 7 at strike 110 is above the ask 5.60583"
    )
    middle = changed(frame, 4, bid=7.5, ask=7.6)
    butterfly = check_market(middle).filter(pl.col("code") == "Q304")
    assert (butterfly["at"].to_list(), butterfly["others"].to_list()) == ([4], [[2, 6]])


def test_quotes_in_any_order_give_the_same_findings() -> None:
    frame = changed(chain(), 6, bid=7.0, ask=7.2)
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=3)
    assert codes(check_market(mixed)) == codes(check_market(frame))


def test_a_calendar_is_held_against_the_same_strike_over_forward() -> None:
    frame = chain(years=(0.5, 1.0))
    near = 6  # the call at 110 of the first expiry; that of the second is worth about 4.3
    issues = check_market(changed(frame, near, bid=4.5, ask=4.6)).filter(pl.col("code") == "Q305")
    assert (issues["at"].to_list(), issues["others"].to_list()) == ([near], [[16, 16]])
    # With the second forward 10 % higher the same quote stands against a strike of 121, which none listed covers.
    higher = frame.with_columns(forward=pl.when(pl.col("expiry_years") == 1.0).then(110.0).otherwise("forward"))
    against = check_market(changed(higher, near, bid=4.5, ask=4.6)).filter(pl.col("code") == "Q305")
    assert near not in against["at"]
    # American options are held against the strike itself.
    american = changed(higher, near, bid=4.5, ask=4.6).with_columns(exercise=pl.lit("A"))
    assert near in check_market(american).filter(pl.col("code") == "Q305")["at"]


def test_a_strike_between_two_of_the_next_expiry_is_held_against_both() -> None:
    frame = chain(years=(0.5,), strikes=(105,)).vstack(
        chain(years=(1.0,), strikes=(100, 110)).with_columns(at=pl.col("at") + 2, row=pl.col("row") + 2)
    )
    cost = (frame["ask"][2] + frame["ask"][4]) / 2
    above = changed(frame, 0, bid=cost + 0.01, ask=cost + 0.1)
    issues = check_market(above).filter(pl.col("code") == "Q305")
    assert (issues["at"].to_list(), issues["others"].to_list()) == ([0], [[2, 4]])
    assert "Q305" not in check_market(changed(frame, 0, bid=cost - 0.01, ask=cost + 0.1))["code"]


def test_slices_of_other_moments_and_underlyings_are_not_mixed() -> None:
    cheap = chain().with_columns((pl.col("bid", "ask") / 2), at=pl.col("at") + 10, underlying=pl.lit("B"))
    both = pl.concat([chain().with_columns(underlying=pl.lit("A")), cheap.select([*chain().columns, "underlying"])])
    assert (
        set(check_market(both).filter(pl.col("code").is_in(["Q303", "Q304", "Q305"]))["at"]) & set(range(10)) == set()
    )


def test_a_rule_whose_columns_are_not_there_is_not_run() -> None:
    bare = chain().drop("bid", "ask")
    assert [code for code in CHECKED if applies(code, bare.columns)] == [
        "Q202", "Q205", "Q209", "Q214", "Q215", "Q216", "Q217", "Q222", "Q301",
    ]  # fmt: skip
    assert check_market(bare).height == 0


def test_checks_turn_rules_off_and_flags_into_rejections() -> None:
    frame = changed(chain(), 0, bid=0.0)
    assert "Q207" in check_market(frame)["code"]
    assert "Q207" not in check_market(frame, Checks.of({"Q207": "off"}))["code"]
    assert check_market(frame, Checks.of({"all": "off"})).height == 0
    rejected = check_market(frame, Checks.of({"Q207": "reject"})).filter(pl.col("code") == "Q207")
    assert rejected["is_rejected"].to_list() == [True]
    assert rejected["sentence"][0].endswith("; left out.")
    whole = check_market(frame.with_columns(pl.col("strike") * 1000), Checks.of({"Q301": "reject"}))
    assert whole.filter("is_rejected")["at"].to_list() == list(range(10))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"Q999": "off"}, "there is no rule 'Q999'"),
        ({"Q103": "off"}, "cannot be changed"),
        ({"Q207": 0.5}, "can be off or reject; '0.5' was given"),
        ({"Q208": -1.0}, "or a limit"),
        ({"Q208": "sometimes"}, "'sometimes' was given"),
    ],
)
def test_checks_that_cannot_be_are_refused(given: dict[str, float | str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Checks.of(given)


def test_every_rule_that_is_not_fixed_has_a_function_and_the_reverse() -> None:
    assert sorted(CHECKED) == sorted(code for code, rule in RULES.items() if not rule.is_fixed)


def file_of(folder: Path, frame: pl.DataFrame) -> Path:
    path = folder / "chain.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["strike", "right", "expiry_years", "forward", "discount", "bid", "ask"])
        for q in frame.rows(named=True):
            right = "C" if q["is_call"] else "P"
            writer.writerow([q["strike"], right, q["expiry_years"], q["forward"], q["discount"], q["bid"], q["ask"]])
    return path


def test_a_reading_names_the_quotes_a_finding_rests_on(tmp_path: Path) -> None:
    reading = inspect_quotes(file_of(tmp_path, changed(chain(), 6, bid=7.0, ask=7.2)))
    assert reading.issues.ids("Q303") == ["T0.5/100/C", "T0.5/110/C"]
    assert len(reading.quotes) == 10
    assert reading.issues.ids("Q208") == []


def test_a_rule_told_to_reject_keeps_rows_out_and_does_not_make_the_file_a_bad_one(tmp_path: Path) -> None:
    path = file_of(tmp_path, changed(changed(chain(), 6, bid=0.0), 7, bid=0.0))
    reading = inspect_quotes(path, checks={"Q207": "reject"})
    assert (len(reading.quotes), reading.rejected, reading.cut) == (8, 2, 2)
    accept(reading, max_reject=0.1)
    assert len(reading.quotes) == 8
    assert "T0.5/110/C" not in reading.quotes.ids
    assert "T0.5/110/C" not in reading.issues.ids()


def test_permuted_rows_of_a_file_give_the_same_issues(tmp_path: Path) -> None:
    frame = changed(chain(strikes=(90, 100)), 2, bid=30.0, ask=31.0)
    seen = set()
    for order in permutations(range(4)):
        reading = inspect_quotes(file_of(tmp_path, frame[list(order)]))
        seen.add(tuple(sorted((issue.code, tuple(reading.issues.ids(issue.code))) for issue in reading.issues)))
    assert len({tuple((code, tuple(sorted(ids))) for code, ids in one) for one in seen}) == 1


def test_a_slice_that_gives_no_forward_is_rejected_row_by_row(tmp_path: Path) -> None:
    lonely = chain(years=(1.0,), strikes=(100,)).filter("is_call")
    path = tmp_path / "no forwards.csv"
    both = pl.concat([chain(), lonely])
    right = pl.when("is_call").then(pl.lit("C")).otherwise(pl.lit("P")).alias("right")
    both.select("strike", right, "expiry_years", "bid", "ask").write_csv(path)
    reading = inspect_quotes(path)
    assert [(issue.code, issue.row) for issue in reading.issues if issue.is_rejected] == [("Q116", 12)]
    assert len(reading.quotes) == 10


def test_forwards_are_found_again_without_what_a_rule_left_out(tmp_path: Path) -> None:
    path = tmp_path / "chain.csv"
    frame = changed(chain(), 4, bid=7.0, ask=7.1)  # a call far too dear, on which the parity forward rests too
    right = pl.when("is_call").then(pl.lit("C")).otherwise(pl.lit("P")).alias("right")
    plain = frame.select("at", "strike", right, "expiry_years", "bid", "ask")
    plain.drop("at").write_csv(path)
    cut = inspect_quotes(path, checks={"Q303": "reject", "Q304": "reject"})
    names = pl.concat_str(pl.lit("T0.5/"), pl.col("strike").cast(pl.Int64), pl.lit("/"), "right")
    rest = plain.filter(names.is_in(cut.quotes.ids.tolist()))
    assert 4 not in rest["at"]
    clean = tmp_path / "clean.csv"
    rest.drop("at").write_csv(clean)
    assert inspect_quotes(clean).quotes.contracts.forward.tolist() == cut.quotes.contracts.forward.tolist()


CHEAP, DEAR = 10, 11  # positions of the call and the put at 100 in a chain of eleven strikes
LADDER = tuple(range(75, 130, 5))


@pytest.mark.parametrize("codes", [("Q303",), ("Q304",), ("Q303", "Q304"), ("Q302", "Q303", "Q304")])
@pytest.mark.parametrize(("at", "factor"), [(CHEAP, 0.4), (CHEAP, 1.8), (DEAR, 0.4), (DEAR, 1.8)])
def test_a_rule_set_to_reject_rejects_the_wrong_quote_and_not_its_neighbours(codes, at, factor) -> None:
    frame = chain(strikes=LADDER)
    bid, ask = (frame.filter(pl.col("at") == at)[side].item() * factor for side in ("bid", "ask"))
    frame = changed(frame, at, bid=bid, ask=ask)
    issues = check_market(frame, Checks.of(dict.fromkeys(codes, "reject"))).filter("is_rejected")
    assert issues["at"].unique().to_list() == [at]
    assert not check_market(frame.filter(pl.col("at") != at)).filter(pl.col("code").is_in(codes)).height


def test_what_is_rejected_depends_neither_on_the_order_of_rows_nor_on_other_slices() -> None:
    frame = changed(changed(chain(years=(0.5, 1.0), strikes=LADDER), CHEAP, bid=1.0, ask=1.1), 5, bid=9.0, ask=9.1)
    checks = Checks.of({"Q303": "reject", "Q304": "reject"})

    def rejected(rows: pl.DataFrame) -> set[int]:
        return set(check_market(rows, checks).filter("is_rejected")["at"])

    whole = rejected(frame)
    assert {CHEAP, 5} <= whole
    assert rejected(frame.reverse()) == whole
    assert rejected(frame.filter(pl.col("expiry_years") == 0.5)) == whole
    left = frame.filter(~pl.col("at").is_in(whole))
    assert not check_market(left, checks)["is_rejected"].any()


def test_findings_name_the_quote_they_share() -> None:
    frame = changed(chain(strikes=LADDER), CHEAP, bid=1.0, ask=1.1)
    issues = check_market(frame, numbering="line").filter(pl.col("code") == "Q303")
    assert issues.height > 1
    assert all(
        f"The quote of line {CHEAP + 2} is in {issues.height} of these findings" in s for s in issues["sentence"]
    )
    assert not issues["is_rejected"].any()


@pytest.mark.parametrize(
    ("code", "limit", "flagged"),
    [
        ("Q214", 7, {0.01}), ("Q214", 0, set()), ("Q215", 365, {1.5}), ("Q214", 365, {0.01, 0.5}),
    ],
)  # fmt: skip
def test_expiries_are_limited_in_days(code, limit, flagged) -> None:
    frame = chain(years=(0.01, 0.5, 1.0, 1.5))
    issues = check_market(frame, Checks.of({code: limit}))
    found = frame.filter(pl.col("at").is_in(issues.filter(pl.col("code") == code)["at"].implode()))
    assert set(found["expiry_years"].to_list()) == flagged


def test_a_week_of_seven_days_is_not_short() -> None:
    assert not check_market(chain(years=(7 / 365,)), Checks.of({"Q214": 7})).filter(pl.col("code") == "Q214").height


def test_the_delta_band_is_that_of_the_forward_delta() -> None:
    frame = chain(strikes=(60, 80, 100, 120, 160))
    issues = check_market(frame, Checks.of({"Q216": 0.1})).filter(pl.col("code") == "Q216")
    out = frame.filter(pl.col("at").is_in(issues["at"].implode()))
    # N(d1) at 20 % and half a year: 0.9998, 0.95, 0.53, 0.11, 0.0006.
    assert set(out["strike"].to_list()) == {60.0, 80.0, 160.0}
    assert not check_market(frame).filter(pl.col("code") == "Q216").height


def test_a_band_of_deviations_is_that_of_the_log_strike_over_the_volatility_to_expiry() -> None:
    frame = chain(strikes=(60, 80, 100, 120, 160))
    issues = check_market(frame, Checks.of({"Q222": 2.0})).filter(pl.col("code") == "Q222")
    out = frame.filter(pl.col("at").is_in(issues["at"].implode()))
    # ln(K / 100) / (0.2 sqrt(0.5)) is about -3.6, -1.6, 0, 1.3, 3.3.
    assert set(out["strike"].to_list()) == {60.0, 160.0}
    assert not check_market(frame).filter(pl.col("code") == "Q222").height


def test_prices_volumes_and_open_interest_have_floors() -> None:
    frame = chain().with_columns(volume=pl.col("at"), open_interest=10 - pl.col("at"))
    issues = check_market(frame, Checks.of({"Q217": 1.0, "Q218": 3, "Q219": 3}))
    found = {code: set(issues.filter(pl.col("code") == code)["at"].to_list()) for code in ("Q217", "Q218", "Q219")}
    assert found == {
        "Q217": set(frame.filter(pl.col("observed") < 1.0)["at"].to_list()), "Q218": {0, 1, 2}, "Q219": {8, 9},
    }  # fmt: skip
    assert found["Q217"]


def test_a_preset_is_a_set_of_rules_that_can_be_changed() -> None:
    assert Checks.of("desk") == Checks.of({"preset": "desk"})
    assert Checks.of("desk").limits == {"Q214": 7.0, "Q215": 730.0, "Q216": 0.1}
    changed = Checks.of({"preset": "desk", "Q214": "30,reject", "Q207": "off"})
    assert (changed.limit("Q214"), changed.rejects("Q214"), "Q207" in changed.off) == (30.0, True, True)
    assert Checks.of("academic").reject == {"Q202", "Q205", "Q207", "Q214", "Q217"}
    with pytest.raises(UsageError) as error:
        Checks.of("street")
    assert error.value.facts["preset"] == "street"


def test_the_desk_preset_keeps_seven_days_to_two_years_ten_to_ninety_delta_and_bids(shared_data) -> None:
    reading = inspect_quotes(shared_data("chains/day_cboe_spx_2022-01-07.parquet"), checks="desk")
    quotes = reading.quotes
    days = quotes.contracts.expiry * 365
    assert 0 < len(quotes) < reading.rows
    assert days.min() >= 7 - 1e-6
    assert days.max() <= 730 + 1e-6
    assert (quotes.labels["bid"] > 0).all()
    assert reading.unreadable == 0
