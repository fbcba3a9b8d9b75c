"""Forwards and discounts by put-call parity: right, robust, and a function of the slice's own quotes alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from strikeout.errors import RefusedError
from strikeout.quotes.columns import SOME_ROWS
from strikeout.quotes.forwards import derived, is_derived, refits, shares_forwards, touched_by, underived
from strikeout.quotes.parity import slice_numbers
from strikeout.quotes.quotes import Quotes, join
from strikeout.quotes.reading import inspect_quotes
from strikeout.quotes.writing import write_quotes
from tests.quotes.chains import chain
from tests.raising import raises

COLUMNS = ("forward", "strike", "expiry", "discount", "is_call")


def same(one: Quotes, other: Quotes) -> bool:
    """Ids, contracts, prices and labels, bit for bit, in the same order."""
    contracts = all((getattr(one.contracts, name) == getattr(other.contracts, name)).all() for name in COLUMNS)
    labels = one.labels.keys() == other.labels.keys() and all(
        one.labels[name].astype(str).tolist() == other.labels[name].astype(str).tolist() for name in one.labels
    )
    return one.ids.tolist() == other.ids.tolist() and contracts and labels and (one.observed == other.observed).all()


def read(frame: pl.DataFrame, **options: object) -> Quotes:
    return inspect_quotes(frame, **options).quotes


@pytest.mark.parametrize(("rate", "dividend"), [(0.03, 0.01), (-0.006, 0.02), (0.12, 0.0)])
def test_rates_dividends_and_negative_rates_come_out_of_the_prices(rate: float, dividend: float) -> None:
    found = inspect_quotes(chain(rate=rate, dividend=dividend)).forwards
    assert found is not None
    assert set(found.source) == {"parity"}
    truth = 100.0 * np.exp((rate - dividend) * found.years)
    # Mids are off by up to 0.01 at some ten strikes: a forward by a third of that, a rate by that over 15 and years.
    assert np.abs(found.forward - truth).max() < 0.01
    assert np.abs(found.implied_rate - rate).max() < 0.003 / found.years.min()
    assert np.abs(found.discount - np.exp(-rate * found.years)).max() < 2e-3
    assert (found.r_squared > 0.9999).all()
    assert (found.pairs >= 9).all()


def test_exact_prices_give_the_exact_forward() -> None:
    found = inspect_quotes(chain(noise=0.0, expiries=("2026-03-06",))).forwards
    assert found is not None
    # Bids and asks are rounded to the sixth digit, and what is known of rates beforehand moves the discount by 1e-4.
    assert found.forward[0] == pytest.approx(100.0 * np.exp(0.02 * found.years[0]), rel=1e-6)
    assert found.implied_rate[0] == pytest.approx(0.03, abs=1e-6)
    assert found.rate[0] == pytest.approx(0.03, abs=1e-4)


@pytest.mark.parametrize("known", [True, False], ids=["rate given", "rate from prices"])
def test_forwards_are_as_far_off_as_their_standard_errors_allow(known: bool) -> None:
    # 60 slices, each with its own noise, which does not grow with the spreads that weigh the pairs. Ten pairs determine
    # an error itself to a fourth or so; 60 of them on average to a tenth.
    dates = [f"2024-{month:02}-{day:02}" for month in (1, 2, 3, 4, 5) for day in (1, 3, 5, 8)]
    frame = chain(dates=dates, expiries=("2024-08-02", "2024-12-06", "2025-03-07"), noise=0.02, seed=11)
    found = inspect_quotes(frame, constants={"rate": 0.03} if known else None).forwards
    assert found is not None
    off = found.forward - 100.0 * np.exp(0.02 * found.years)
    assert 0.8 < np.sqrt(np.mean(off * off)) / np.sqrt(np.mean(found.forward_error**2)) < 1.25
    assert np.mean(np.abs(off) < 2.0 * found.forward_error) > 0.85


def test_a_forward_that_is_given_has_no_error_and_one_with_a_spot_has_a_borrow() -> None:
    frame = chain(noise=0.0).with_columns(spot=100.0, rate=0.03)
    fitted, given = (inspect_quotes(f).all_forwards() for f in (frame, frame.with_columns(forward=100.5)))
    assert fitted.borrow == pytest.approx(0.01, abs=2e-4)
    assert (fitted.forward_error < 1e-3).all()
    assert np.isnan(given.forward_error).all()
    assert given.borrow == pytest.approx(0.03 - np.log(1.005) / given.years)
    assert np.isnan(inspect_quotes(frame.drop("spot")).all_forwards().borrow).all()


def test_one_price_ten_times_too_large_hardly_moves_the_forward() -> None:
    frame = chain(expiries=("2024-06-07",))
    row = frame.with_row_index().filter((pl.col("strike") == 97) & (pl.col("right") == "C"))["index"][0]
    shifted = frame.with_row_index().with_columns(
        pl.when(pl.col("index") == row).then(10 * pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in ("bid", "ask")
    )
    clean, dirty = (inspect_quotes(f).forwards for f in (frame, shifted.drop("index")))
    assert clean is not None
    assert dirty is not None
    assert abs(dirty.forward[0] - clean.forward[0]) < 0.01  # the price is off by 45
    assert abs(dirty.discount[0] - clean.discount[0]) < 1e-3


def test_a_forward_does_not_depend_on_the_order_of_the_rows_nor_on_other_slices() -> None:
    frame = chain(dates=("2024-03-01", "2024-03-04"))
    book, mixed = read(frame), read(frame.sample(fraction=1.0, shuffle=True, seed=3))
    mixed = mixed[[mixed.ids.tolist().index(name) for name in book.ids.tolist()]]
    assert (mixed.contracts.forward == book.contracts.forward).all()
    assert (mixed.contracts.discount == book.contracts.discount).all()
    alone = read(frame.filter((pl.col("expiry") == "2024-06-07") & (pl.col("quote_date") == "2024-03-04")))
    assert (alone.contracts.forward == book.only(alone.ids).contracts.forward).all()


def test_a_given_forward_is_kept_and_a_given_rate_gives_the_discount() -> None:
    frame = chain().with_columns(forward=pl.when(pl.col("expiry") == "2024-04-05").then(101.5), rate=pl.lit(0.03))
    book = read(frame)
    given = book.labels["expiry_date"] == "2024-04-05"
    assert set(book.labels["forward_from"][given]) == {"given"}
    assert set(book.contracts.forward[given].tolist()) == {101.5}
    assert set(book.labels["forward_from"][~given]) == {"parity"}
    assert set(book.labels["discount_from"].tolist()) == {"rate"}
    assert np.allclose(book.contracts.discount, np.exp(-0.03 * book.contracts.expiry), rtol=1e-15)


def test_spot_rate_and_dividend_stand_in_where_there_are_no_pairs() -> None:
    frame = chain().filter((pl.col("expiry") != "2024-06-07") | (pl.col("right") == "C"))
    frame = frame.with_columns(spot=pl.lit(100.0), rate=pl.lit(0.03), dividend_yield=pl.lit(0.01))
    found = inspect_quotes(frame).forwards
    assert found is not None
    assert found.source == ("parity", "spot", "parity")
    assert found.forward[1] == pytest.approx(100.0 * np.exp(0.02 * found.years[1]), rel=1e-12)


def test_a_slice_without_a_forward_is_rejected_row_by_row() -> None:
    frame = chain().filter((pl.col("expiry") != "2024-06-07") | (pl.col("right") == "C"))
    reading = inspect_quotes(frame)
    assert reading.forwards is not None
    assert reading.forwards.source == ("parity", "none", "parity")
    assert reading.issues.counts["Q116"] == 21
    assert set(reading.quotes.labels["expiry_date"].tolist()) == {"2024-04-05", "2024-12-06"}
    assert reading.rows == len(reading.quotes) + reading.rejected


def test_american_chains_are_marked_and_use_the_strikes_around_the_money() -> None:
    plain = inspect_quotes(chain()).forwards
    american = inspect_quotes(chain().with_columns(exercise=pl.lit("A"))).forwards
    assert plain is not None
    assert american is not None
    assert american.american.all()
    assert (american.pairs < plain.pairs).all()
    assert "(American)" in american.summary()


def test_what_is_left_of_a_book_is_what_reading_the_file_without_those_rows_gives() -> None:
    frame = chain(dates=("2024-03-01", "2024-03-04"))
    book = read(frame)
    rng = np.random.default_rng(11)
    for count in (1, 2, 9, 30):
        gone = rng.choice(len(book), count, replace=False)
        again = read(frame.with_row_index().filter(~pl.col("index").is_in(gone.tolist())).drop("index"))
        assert same(book.without(book.ids[gone]), again)


def test_striking_out_a_pair_moves_the_forwards_of_its_slice_and_no_other() -> None:
    book = read(chain())
    c = book.contracts
    middle = c.expiry == np.unique(c.expiry)[1]
    gone = book.ids[middle & (c.strike == 100.0)]
    left = book.without(gone)
    before = book.only(left.ids).contracts
    moved = left.contracts.forward != before.forward
    assert moved.tolist() == middle[~np.isin(book.ids, gone)].tolist()
    (refit,) = refits(book, left)
    assert refit.name == "2024-03-01 2024-06-07"
    assert refit.forward == (float(c.forward[middle][0]), float(left.contracts.forward[moved][0]))


def test_a_quote_that_no_line_rests_on_moves_no_forward() -> None:
    book = read(chain())
    far = book.ids[book.contracts.strike == 130.0]  # outside the band
    assert refits(book, book.without(far)) == ()


def test_taking_a_slice_below_its_pairs_is_refused_and_taking_all_of_it_is_not() -> None:
    book = read(chain())
    first = book.contracts.expiry == book.contracts.expiry.min()
    puts = book.ids[first & ~book.contracts.is_call]
    with raises(RefusedError, slices=["2024-03-01 2024-04-05"]):
        book.without(puts)
    assert len(book.without(book.ids[first])) == len(book) - 42


def test_two_halves_joined_are_the_whole() -> None:
    frame = chain(dates=("2024-03-01", "2024-03-04"))
    book = read(frame)
    halves = frame.filter(pl.col("strike") <= 100), frame.filter(pl.col("strike") > 100)
    joined = join(*(read(half) for half in halves))
    assert same(joined.only(book.ids)[[joined.ids.tolist().index(name) for name in book.ids.tolist()]], book)


def test_views_refit_nothing() -> None:
    book = read(chain())
    half = book[::2]
    assert (half.contracts.forward == book.contracts.forward[::2]).all()
    assert (book.only(half.ids).contracts.discount == half.contracts.discount).all()


def test_stand_ins_hold_nothing_of_other_quotes_and_bring_the_same_bits_back() -> None:
    book = read(chain())
    bare = underived(book)
    assert (bare.contracts.forward == book.contracts.strike).all()
    assert (bare.contracts.discount == 1.0).all()
    assert same(derived(bare)[0], book)
    assert is_derived(bare).all()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_written_book_remembers_what_was_derived_and_finds_it_anew(ending: str, tmp_path: Path) -> None:
    book = read(chain())
    path = write_quotes(book, tmp_path / f"book.{ending}")
    again = read(path)
    assert (again.contracts.forward == book.contracts.forward).all()
    gone = book.ids[[20, 21, 60]]
    assert (again.without(gone).contracts.forward == book.without(gone).contracts.forward).all()
    if ending == "csv":  # a line taken out by hand takes its part in the forwards with it
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:21] + lines[22:]))
        left = read(path)
        assert (left.contracts.forward == book.without(book.ids[[20]]).contracts.forward).all()
        assert (left.contracts.forward != book.without(book.ids[[20]]).only(left.ids).contracts.forward).sum() == 0


def test_forwards_fit_a_real_index_chain_as_an_independent_fit_did(shared_data) -> None:
    path = shared_data("chains/day_cboe_spx_2022-01-07.parquet")
    kept = pl.read_parquet(path).filter((pl.col("bid") > 0) & (pl.col("root") == "SPXW"))
    theirs = {
        str(expiry): (forward, discount)
        for expiry, forward, discount in kept.group_by("expiry").agg(pl.col("forward", "discount").median()).iter_rows()
        if forward is not None
    }
    found = inspect_quotes(kept.drop("forward", "discount", "rate", "dividend")).forwards
    assert found is not None
    apart = [
        abs(found.forward[n] / theirs[name.split()[-1]][0] - 1.0)
        for n, name in enumerate(found.names)
        if name.split()[-1] in theirs
    ]
    assert len(apart) == 10
    assert max(apart) < 2e-5  # a tenth of a dollar in 4,700; spreads around the money are half a dollar to ten


def test_asked_for_parity_passes_over_what_is_given_and_asked_for_spot_takes_each_row_at_its_word() -> None:
    frame = chain().with_columns(
        forward=pl.lit(90.0), spot=pl.lit(100.0), rate=pl.lit(0.03), dividend_yield=pl.lit(0.01)
    )
    assert set(read(frame).contracts.forward.tolist()) == {90.0}
    assert read(frame, forwards="parity").contracts.forward.min() > 99.0
    spot = read(frame, forwards="spot")
    assert np.allclose(spot.contracts.forward, 100.0 * np.exp(0.02 * spot.contracts.expiry), rtol=1e-12)
    assert not {"forward_from", "discount_from"} & spot.labels.keys()  # nothing rests on any other quote


@pytest.mark.parametrize("is_sorted", [True, False])
def test_slices_are_numbered_in_the_order_in_which_they_first_occur(is_sorted):
    rng = np.random.default_rng(2)
    row = np.sort(rng.integers(0, 6, 500)) if is_sorted else rng.integers(0, 6, 500)
    labels = {"underlying": np.array(["A", "A", "B", "B", "B", ""], object)[row], "date": np.array(["x"] * 500, object)}
    expiry = np.array([0.1, 0.2, 0.1, 0.2, 0.3, 0.3])[row]
    numbers, first = slice_numbers(labels, expiry)
    seen: dict[tuple[str, float], int] = {}
    wanted = [seen.setdefault(key, len(seen)) for key in zip(labels["underlying"], expiry, strict=True)]
    assert numbers.tolist() == wanted
    assert first.tolist() == [wanted.index(number) for number in range(len(seen))]
    none, no_first = slice_numbers({}, np.empty(0))
    assert len(none) == len(no_first) == 0


def test_pairs_are_found_behind_many_rows_without_any() -> None:
    pairs = chain()
    lonely = pl.DataFrame({"strike": np.arange(1.0, 2.0 + SOME_ROWS), "right": "C", "bid": 1.0, "ask": 1.1})
    lonely = lonely.with_columns(quote_date=pl.lit("2023-03-01"), expiry=pl.lit("2023-09-01")).select(pairs.columns)
    found = read(pl.concat([lonely, pairs]))
    assert same(found, read(pairs))


def test_forwards_are_shared_by_groups_if_a_slice_has_quotes_of_two() -> None:
    quotes = read(chain())
    by_slice, _ = slice_numbers(quotes.labels, quotes.contracts.expiry)
    mixed = np.where(np.arange(len(quotes)) == 7, 9, by_slice)
    for group in (by_slice, by_slice % 2, mixed):
        expected = any(touched_by(quotes, group == own).any() for own in np.unique(group))
        assert shares_forwards(quotes, group) == expected
    assert shares_forwards(quotes, mixed)
    assert not shares_forwards(quotes, by_slice)


@pytest.mark.parametrize("odd", ["", " ", "x"])
def test_columns_of_one_value_are_read_as_columns_of_several(odd: str) -> None:
    frame = chain().with_columns(underlying=pl.lit(" SPX "), licence=pl.lit("L1"))
    more = frame.tail(2).with_columns(underlying=pl.lit(odd), licence=pl.lit("L2"), quote_date=pl.lit("2024-03-04"))
    alone, beside = read(frame), read(pl.concat([frame, more]))
    kept = beside[np.isin(beside.ids, alone.ids)]
    assert len(kept) == len(alone) == frame.height
    assert same(kept, alone)
    assert {name: column.tolist() for name, column in kept.labels.items()} == {
        name: column.tolist() for name, column in alone.labels.items()
    }
