"""Reading American rows: which are converted, what is rejected and flagged, and that forgetting leaves no trace."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout import american
from strikeout.cli import strikeout
from strikeout.errors import ColumnError, UsageError
from strikeout.quotes.reading import Chunking, inspect_quotes
from tests.american.test_to_european import RATE, SPOT, frame
from tests.quotes.in_chunks import assert_same, read_both_ways

pytestmark = pytest.mark.filterwarnings("ignore::strikeout.quotes.issues.QuotesWarning")
CHAIN = frame(seed=1)


def same(a: so.Quotes, b: so.Quotes) -> bool:
    """Whether two books are the same, bit for bit and row for row."""
    return (
        a.ids.tolist() == b.ids.tolist()
        and a.observed.tobytes() == b.observed.tobytes()
        and a.contracts.forward.tobytes() == b.contracts.forward.tobytes()
        and a.contracts.discount.tobytes() == b.contracts.discount.tobytes()
    )


def sound(chain: pl.DataFrame) -> pl.DataFrame:
    """The rows worth more than exercising them."""
    now = pl.when(pl.col("right") == "C").then(SPOT - pl.col("strike")).otherwise(pl.col("strike") - SPOT)
    return chain.filter((pl.col("bid") + pl.col("ask")) / 2 > now)


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    return so.read_quotes(CHAIN)


def test_rows_marked_american_are_converted_and_no_longer_flagged(quotes):
    found = inspect_quotes(CHAIN)
    assert "Q203" not in found.issues.counts
    assert inspect_quotes(CHAIN, exercise="european").issues.counts["Q203"] == CHAIN.height
    assert np.isfinite(quotes.labels["american_mid"]).all()
    assert same(quotes, american.to_european(so.read_quotes(sound(CHAIN), exercise="european")))


def test_a_chain_that_does_not_state_its_exercise_is_american_if_asked(quotes):
    unmarked = CHAIN.drop("exercise")
    assert same(so.read_quotes(unmarked, exercise="american"), quotes)
    assert same(so.read_quotes(unmarked), so.read_quotes(unmarked, exercise="european"))


def test_rows_marked_european_stay_as_they_are_among_american_ones():
    mixed = CHAIN.with_columns(exercise=pl.when(pl.col("expiry_years") < 0.2).then(pl.lit("E")).otherwise(pl.lit("A")))
    found, plain = so.read_quotes(mixed), so.read_quotes(mixed, exercise="european")
    short = found.contracts.expiry < 0.2
    assert np.isnan(found.labels["american_mid"][short]).all()
    assert np.isfinite(found.labels["american_mid"][~short]).all()
    stays = found.only(found.ids[short])
    assert same(stays, plain.only(stays.ids))


def test_american_rows_need_a_spot():
    with pytest.raises(ColumnError) as refused:
        so.read_quotes(CHAIN.drop("spot"), exercise="american")
    assert refused.value.missing == "spot"
    without = inspect_quotes(CHAIN.drop("spot"))
    assert without.issues.counts["Q203"] == without.count == CHAIN.height
    constant = so.read_quotes(CHAIN.drop("spot"), exercise="american", constants={"spot": SPOT})
    assert same(constant, so.read_quotes(CHAIN))


def test_other_words_are_refused():
    with pytest.raises(UsageError) as refused:
        so.read_quotes(CHAIN, exercise="bermudan")
    assert refused.value.exercise == "bermudan"
    with pytest.raises(TypeError, match="exercize"):
        so.read_quotes(CHAIN, exercize="auto")


def test_a_price_that_exercising_now_pays_is_rejected_with_its_code():
    deep = pl.col("strike").is_in([116.0, 120.0]) & (pl.col("right") == "P")
    now = pl.col("strike") - SPOT
    chain = CHAIN.with_columns(
        bid=pl.when(deep).then(now - 0.05).otherwise(pl.col("bid")),
        ask=pl.when(deep).then(now + 0.05).otherwise(pl.col("ask")),
    )
    found = inspect_quotes(chain)
    assert found.issues.counts["Q117"] >= chain.filter(deep).height == 6
    assert found.unreadable == 0  # such rows do not speak against the file
    assert inspect_quotes(chain, exercise="european").issues.counts.get("Q117", 0) == 0


def test_large_premiums_and_loose_conversions_are_flagged(quotes):
    found = inspect_quotes(CHAIN)
    c, mid = quotes.contracts, quotes.labels["american_mid"]
    assert found.issues.counts["Q220"] == np.count_nonzero(mid - quotes.observed > quotes.spread)
    now = np.where(c.is_call, SPOT - c.strike, c.strike - SPOT)
    assert found.issues.counts.get("Q221", 0) == np.count_nonzero((now > 0) & (mid - now < 0.5 * quotes.spread))
    strict = inspect_quotes(CHAIN, checks={"Q220": "reject"})
    assert strict.cut == found.issues.counts["Q220"]


def test_a_row_with_its_own_forward_depends_on_itself_alone():
    T = pl.col("expiry_years")
    chain = CHAIN.with_columns(forward=SPOT * (0.032 * T).exp(), rate=RATE)
    whole, part = so.read_quotes(chain), so.read_quotes(chain[5:9])
    assert same(whole.only(part.ids), part)
    assert (whole.labels["american_mid"] - whole.observed).max() > 0.1


def test_volatilities_in_the_place_of_prices_are_read_as_they_are():
    chain = CHAIN.drop("bid", "ask").with_columns(iv=0.2, forward=100.0, discount=1.0)
    assert same(so.read_quotes(chain), so.read_quotes(chain, exercise="european"))


def test_chunks_on_disk_give_the_same_bits(quotes, tmp_path):
    CHAIN.write_csv(tmp_path / "chain.csv")
    with inspect_quotes(tmp_path / "chain.csv", chunking=Chunking(folder=tmp_path, size=600, at_once=10)) as found:
        assert same(found.quotes, quotes)
        assert same(found.sample(3), quotes[:3])


def test_a_written_file_gives_the_same_bits(quotes, tmp_path):
    so.write_quotes(quotes, tmp_path / "quotes.csv")
    for exercise in ("european", "auto"):
        assert same(so.read_quotes(tmp_path / "quotes.csv", exercise=exercise), quotes)


def test_the_correction_by_slice_is_the_difference_of_volatilities(quotes):
    found = inspect_quotes(CHAIN).conversion()
    assert found.converted.sum() == len(quotes)
    assert (np.diff(found.correction) > 0).all()  # early exercise is worth more the longer the option runs
    assert 0.0 < found.correction[0] < found.correction[-1] < 1.5
    assert inspect_quotes(CHAIN, exercise="european").conversion() is None
    assert inspect_quotes(CHAIN.with_columns(exercise=pl.lit("E"))).conversion() is None


ROWS = st.lists(st.integers(0, sound(CHAIN).height - 1), min_size=1, max_size=6, unique=True)


@settings(max_examples=8, deadline=None)
@given(ROWS)
def test_whatever_is_removed_what_is_left_has_the_bits_of_a_file_that_never_had_it(rows):
    chain = sound(CHAIN)
    whole = so.read_quotes(chain)
    gone = whole.ids[rows]
    never = so.read_quotes(chain[[n for n in range(chain.height) if n not in rows]])
    assert same(whole.without(gone), never)


@pytest.mark.parametrize("where", ["at the money", "far away"])
def test_forgetting_equals_a_file_that_never_had_the_rows_also_if_the_forward_moves(where):
    chain = sound(CHAIN)
    strike = 100.0 if where == "at the money" else 80.0
    gone = (pl.col("strike") == strike) & (pl.col("expiry_years") > 0.9)
    whole, never = (so.read_quotes(rows) for rows in (chain, chain.filter(~gone)))
    calibration = so.calibrate(whole, so.Heston(), select="otm")
    ids = np.setdiff1d(whole.ids, never.ids)
    done = so.forget(calibration, ids=ids)
    assert done.parameters == so.calibrate(never, so.Heston(), select="otm").parameters
    assert [refit.name for refit in done.refits] == (["XYZ 1 years"] if where == "at the money" else [])
    assert so.verify(done.certificate, never)


def run(*words: object) -> tuple[int, str]:
    outcome = CliRunner().invoke(strikeout, [str(word) for word in words])
    return outcome.exit_code, outcome.stdout


def test_the_command_line_reads_american_files_into_fits_and_books(tmp_path):
    file, less, book = tmp_path / "chain.csv", tmp_path / "less.csv", tmp_path / "chain.book"
    chain = sound(CHAIN)
    chain.write_csv(file)
    gone = (pl.col("strike") == 100.0) & (pl.col("expiry_years") > 0.9)
    chain.filter(~gone).write_csv(less)
    shown = json.loads(run("inspect", file, "--json")[1])
    assert shown["american"]["converted"] == chain.height
    assert len(shown["american"]["slices"]) == 3
    assert json.loads(run("rules", file, "--json")[1])["american"] == shown["american"]
    assert "American prices are read as European" in run("inspect", file)[1]
    fitted = json.loads(run("calibrate", less, "--select", "otm", "--json")[1])["parameters"]
    european = json.loads(run("calibrate", less, "--exercise", "european", "--select", "otm", "--json")[1])[
        "parameters"
    ]
    assert fitted != european
    assert run("init", book)[0] == 0
    for words in (("calibrate", file, "--select", "otm"), ("import", book, file)):
        ended = CliRunner().invoke(strikeout, [str(word) for word in words])
        assert ended.exit_code == 0
        assert inspect_quotes(file).conversion().conversion_sentence() in " ".join(ended.stderr.split())
    assert run("calibrate", book, "--select", "otm")[0] == 0
    where = "strike = 100 and expiry_years > 0.9"
    assert run("forget", book, "--where", where, "--reason", "bad-feed", "--yes")[0] == 0
    with so.Book.open(book) as held:
        assert held.calibration().parameters == fitted
    assert run("calibrate", book, "--exercise", "european")[0] == 2


def test_a_certificate_states_how_american_prices_were_read(tmp_path):
    file, never, written = tmp_path / "chain.csv", tmp_path / "never.csv", tmp_path / "c.json"
    chain = sound(CHAIN)
    chain.write_csv(file)
    chain.filter(pl.col("strike") != 80.0).write_csv(never)
    forgotten = ("--where", "strike = 80", "--select", "otm", "--model", "black-scholes", "--certificate", written)
    assert run("forget", file, *forgotten)[0] == 0
    settings = json.loads(written.read_bytes())["reading"]["settings"]
    retained = chain.height - chain.filter(pl.col("strike") == 80.0).height
    assert settings == {"exercise": "auto", "American prices converted": str(retained)}
    assert run("verify", written, never)[0] == 0
    assert run("verify", written, never, "--exercise", "european")[0] == 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_american_prices_that_were_read_as_they_are_stay_so_in_a_written_file(ending, tmp_path):
    read = so.read_quotes(CHAIN, exercise="european")
    so.write_quotes(read, tmp_path / f"quotes.{ending}")
    again = inspect_quotes(tmp_path / f"quotes.{ending}")
    assert same(again.quotes, read)
    assert again.quotes.labels.keys() == read.labels.keys()
    assert again.conversion() is None
    assert again.issues.counts["Q203"] == CHAIN.height


def test_american_rows_without_a_rate_have_a_note_and_others_none():
    for chain, count in (
        (CHAIN, 1),
        (CHAIN.with_columns(rate=RATE), 0),
        (CHAIN.with_columns(exercise=pl.lit("E")), 0),
    ):
        assert len(inspect_quotes(chain).table.notes) == count


def test_a_part_of_a_file_without_american_rows_is_read_with_the_others(tmp_path):
    """Its chunk has no American mid; the quotes are those of the file read as a whole."""
    half = CHAIN.height // 2
    mixed = pl.concat([CHAIN[:half].with_columns(exercise=pl.lit("E")), CHAIN[half:]])
    for name, frame_of in (("first", mixed), ("last", mixed.reverse())):
        path = tmp_path / f"{name}.parquet"
        frame_of.write_parquet(path)
        whole, chunked = read_both_ways(path, size=half, at_once=5)
        with chunked:
            assert chunked.count == whole.count
            assert_same(whole, chunked, tmp_path)
