"""Reading quotes: what columns may be called, where prices come from, what is refused."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from strikeout.errors import ColumnError, RejectedError, StrikeoutError, UnreadableFileError, UsageError
from strikeout.kernels import black
from strikeout.quotes.issues import QuotesWarning
from strikeout.quotes.reading import inspect_quotes, read_quotes
from tests.raising import raises

HEAD = "strike,right,price,expiry_years,forward,discount"
ROWS = ["90,C,12,0.5,100,0.99", "100,put,5.5,0.5,100,0.99", "110,c,2.5,0.25,100,0.995"]


def csv_file(folder: Path, *lines: str, name: str = "file.csv", end: str = "\n") -> Path:
    path = folder / name
    path.write_bytes((end.join(lines) + end).encode())
    return path


def frame(**columns: object) -> pl.DataFrame:
    base = {"strike": [90.0, 110.0], "right": ["C", "P"], "price": [12.0, 11.0], "expiry_years": [0.5, 0.5]}
    base |= {"forward": [100.0, 100.0], "discount": [1.0, 1.0]}
    return pl.DataFrame({name: values for name, values in {**base, **columns}.items() if values is not None})


def test_a_plain_file_becomes_a_book(tmp_path: Path) -> None:
    quotes = read_quotes(csv_file(tmp_path, HEAD, *ROWS))
    assert quotes.observed.tolist() == [12.0, 5.5, 2.5]
    assert quotes.contracts.is_call.tolist() == [True, False, True]
    assert quotes.contracts.discount.tolist() == [0.99, 0.99, 0.995]
    assert quotes.weight.tolist() == [1.0, 1.0, 1.0]


def test_the_same_book_comes_from_every_dress_of_a_file(tmp_path: Path) -> None:
    plain = read_quotes(csv_file(tmp_path, HEAD, *ROWS))
    semicolons = [line.replace(",", ";") for line in (HEAD, *ROWS)]
    tabs = [line.replace(",", "\t") for line in (HEAD, *ROWS)]
    spaced = [line.replace(",", ", ") for line in (HEAD, *ROWS)]
    zipped = tmp_path / "zipped.csv.gz"
    zipped.write_bytes(gzip.compress("\n".join((HEAD, *ROWS)).encode()))
    parquet = tmp_path / "file.parquet"
    pl.read_csv(tmp_path / "file.csv").write_parquet(parquet)
    others = [
        csv_file(tmp_path, "\ufeff" + HEAD, *ROWS, name="bom.csv"),
        csv_file(tmp_path, HEAD, *ROWS, name="crlf.csv", end="\r\n"),
        csv_file(tmp_path, *semicolons, name="semicolons.csv"),
        csv_file(tmp_path, *tabs, name="tabs.csv"),
        csv_file(tmp_path, *spaced, name="spaced.csv"),
        csv_file(tmp_path, HEAD.upper(), ROWS[0], "", *ROWS[1:], "", name="blank lines.CSV"),
        zipped,
        parquet,
    ]
    for path in others:
        quotes = read_quotes(path)
        assert quotes.ids.tolist() == plain.ids.tolist(), path.name
        assert quotes.observed.tolist() == plain.observed.tolist(), path.name
        assert quotes.contracts.strike.tolist() == plain.contracts.strike.tolist(), path.name


def test_pandas_polars_and_arrow_frames_give_the_same_book(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = csv_file(tmp_path, HEAD, *ROWS)
    expected = read_quotes(path)
    polars_frame = pl.read_csv(path)
    for source in (polars_frame, polars_frame.lazy(), polars_frame.to_arrow(), pd.read_csv(path)):
        quotes = read_quotes(source)
        assert quotes.ids.tolist() == expected.ids.tolist()
        assert quotes.observed.tolist() == expected.observed.tolist()


def test_pandas_dates_and_missing_values_are_understood() -> None:
    pd = pytest.importorskip("pandas")
    dates = pd.to_datetime(["2024-01-02 15:45", "2024-01-02 15:45", "2024-01-02 00:00"])
    source = pd.DataFrame({
        "quote_date": dates, "expiry": pd.to_datetime(["2024-07-02"] * 3), "strike": [90.0, 100.0, np.nan],
        "right": ["C"] * 3, "price": [12.0, 5.5, 2.5], "forward": 100.0, "discount": 1.0,
    })  # fmt: skip
    reading = inspect_quotes(source)
    assert [(issue.code, issue.row) for issue in reading.issues] == [("Q101", 2)]
    assert reading.issues[0].sentence.startswith("row 2, column strike")
    assert reading.quotes.contracts.expiry.tolist() == [182 / 365, 182 / 365]
    assert reading.quotes.labels["expiry_date"].tolist() == ["2024-07-02"] * 2


def test_prices_come_from_price_before_bid_and_ask_before_iv() -> None:
    market = {"bid": [11.0, 10.0], "ask": [12.0, 11.0], "iv": [0.3, 0.3]}
    assert read_quotes(frame(**market)).observed.tolist() == [12.0, 11.0]
    both = inspect_quotes(frame(**market, price=None))
    assert both.quotes.observed.tolist() == [11.5, 10.5]
    assert both.quotes.spread.tolist() == [1.0, 1.0]
    assert both.routes["observed"] == "(bid + ask) / 2"
    quoted = read_quotes(frame(iv=[0.3, 0.3], price=None)).observed
    expected = black.price(100.0, np.array([90.0, 110.0]), 0.5, 0.3, 1.0, np.array([True, False]))
    assert quoted.tolist() == expected.tolist()


def test_forward_and_discount_come_from_spot_rate_and_dividend_yield() -> None:
    source = frame(forward=None, discount=None, spot=[100.0, 50.0], rate=[0.05, 0.05], dividend_yield=[0.02, 0.0])
    contracts = inspect_quotes(source).quotes.contracts
    # Two exponentials and a division: a few roundings.
    assert contracts.forward == pytest.approx([100 * np.exp(0.015), 50 * np.exp(0.025)], rel=4e-16)
    assert contracts.discount == pytest.approx(np.exp([-0.025, -0.025]), rel=4e-16)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strike": None}, "No column for strike"),
        ({"right": None}, "No column for right"),
        ({"price": None}, "No column for the price"),
        ({"price": None, "bid": [1.0, 1.0]}, "both bid and ask"),
        ({"expiry_years": None}, "No column for the expiry"),
        ({"expiry_years": None, "expiry": ["2024-07-02"] * 2}, "both expiry and quote_date"),
        ({"expiry_years": None, "expiry": ["2024-07-02"] * 2}, "No column for quote_date.*expiry is taken for a date"),
        ({"forward": None}, "No column for the forward"),
        ({"forward": None, "spot": [100.0, 100.0]}, "No column for the dividend yield"),
        ({"discount": None}, "No column for the discount"),
        ({"strike": [None, None]}, r"1 more without a single value"),
        ({"mid": [12.0, 11.0]}, "'price' and 'mid' both claim to be price"),
        ({"Strike": [90.0, 110.0]}, "'strike' and 'Strike' both claim to be strike"),
        ({"tags": [["a"], ["b"]]}, "not one value per row"),
    ],
)
def test_a_missing_or_contested_column_is_refused_by_name(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ColumnError, match=words):
        inspect_quotes(frame(**changes))


def test_constants_stand_in_for_absent_columns_and_only_for_those() -> None:
    reading = inspect_quotes(frame(discount=None), constants={"rate": 0.0, "underlying": "SPX"})
    assert reading.quotes.contracts.discount.tolist() == [1.0, 1.0]
    assert reading.quotes.labels["underlying"].tolist() == ["SPX", "SPX"]
    with raises(ColumnError, role="discount"):
        inspect_quotes(frame(), constants={"discount": 1.0})
    with raises(UsageError, mentions={"constants"}):
        inspect_quotes(frame(), constants={"vol": 1.0})


def test_a_numeric_column_underlying_is_the_spot_only_where_one_is_wanted() -> None:
    spots = {"forward": None, "dividend_yield": [0.0, 0.0]}
    assert inspect_quotes(frame(underlying=[100.0, 100.0], **spots)).quotes.labels["spot"].tolist() == [100.0, 100.0]
    assert inspect_quotes(frame(underlying=["7203", "7203"])).quotes.labels["underlying"].tolist() == ["7203", "7203"]


def test_inspecting_says_what_every_column_was_taken_for() -> None:
    reading = inspect_quotes(frame(price=None, iv_mid=[0.3, 0.3], desk=["x", "y"], settle=[None, None]))
    meant = {column.name: (column.role, column.is_used) for column in reading.columns}
    assert meant["iv_mid"] == ("iv", True)
    assert meant["desk"] == (None, False)
    assert meant["settle"] == (None, False)
    text = reading.summary()
    assert "Black-76 price of iv" in text
    assert "no value in any row" in text
    assert "2 of 2 rows read" in text


def test_other_columns_become_labels() -> None:
    quotes = read_quotes(frame(desk=["x", None], volume=[3, 4], bid=[11.0, 10.0], symbol=["SPX", "SPX"]))
    assert quotes.labels["desk"].tolist() == ["x", ""]
    assert quotes.labels["volume"].tolist() == [3, 4]
    assert quotes.labels["bid"].tolist() == [11.0, 10.0]
    assert quotes.labels["underlying"].tolist() == ["SPX", "SPX"]


def test_derived_ids_say_what_the_quote_is() -> None:
    dated = frame(
        expiry_years=None, quote_date=["2024-01-02", "20240102"], expiry=["2024-07-02", "2024-07-02"],
        symbol=["SPX", "SPX"], source=["cboe", "a very long name of a source"],
    )  # fmt: skip
    digest = hashlib.blake2b(b"a very long name of a source", digest_size=4).hexdigest()
    assert read_quotes(dated).ids.tolist() == [
        "SPX/2024-01-02/2024-07-02/90/C/cboe",
        f"SPX/2024-01-02/2024-07-02/110/P/{digest}",
    ]
    assert read_quotes(frame()).ids.tolist() == ["T0.5/90/C", "T0.5/110/P"]


def test_a_derived_id_does_not_depend_on_the_other_rows() -> None:
    whole = frame(source=["cboe", "ice"])
    assert read_quotes(whole[1:]).ids.tolist() == read_quotes(whole).ids.tolist()[1:]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", "the file is empty"),
        ("blank.csv", b"\n \r\n", "the file is empty"),
        ("header.csv", HEAD.encode() + b"\n", "6 columns and no rows"),
        ("header without end.csv", HEAD.encode(), "6 columns and no rows"),
        ("bytes.csv", HEAD.encode() + b",desk\n90,C,12,0.5,100,1,\x81\n", "not UTF-8"),
        ("utf16 without its mark.csv", (HEAD + "\n").encode("utf-16-le"), "not UTF-8"),
        ("utf16.csv", (HEAD + "\n").encode("utf-16"), "6 columns and no rows"),
        ("quote.csv", HEAD.encode() + b'\n"90,C,12,0.5,100,1\n90,C,12,0.5,100,1\n', "quotation mark"),
        ("twice.csv", b"strike,strike\n1,2\n", "'strike' more than once"),
        ("damaged.csv.gz", b"no gzip at all", "damaged gzip"),
        ("damaged.parquet", b"PAR1 and nothing more", "not a readable Parquet"),
        ("book.xls", b"PK", "neither .csv"),
        ("book.xlsx", b"PK", "not a readable Excel workbook"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises((UnreadableFileError, ColumnError), match=words):
        inspect_quotes(path)


def test_a_path_that_is_no_file_and_a_source_that_is_no_frame_are_refused(tmp_path: Path) -> None:
    with raises(UnreadableFileError):
        read_quotes(tmp_path / "absent.csv")
    with raises(UnreadableFileError):
        read_quotes(tmp_path)
    with raises(UsageError, kind="int"):
        read_quotes(17)


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    path = csv_file(tmp_path, HEAD + ",desk", ROWS[0] + ',"two\nlines"', "", "abc,C,1,1,1,1,x", ROWS[1] + ",y")
    issue = inspect_quotes(path).issues[0]
    assert path.read_text().split("\n")[issue.row - 1].startswith("abc")


def dirty(folder: Path, good: int, bad: int) -> Path:
    rows = [f"{90 + k},C,12,0.5,100,1" for k in range(good)] + ["abc,C,12,0.5,100,1"] * bad
    return csv_file(folder, HEAD, *rows)


def test_a_file_is_refused_above_the_share_of_bad_rows_and_not_at_it(tmp_path: Path) -> None:
    with pytest.warns(QuotesWarning, match="9 of 10 rows read; 1 rejected .Q102 not a number: 1."):
        assert len(read_quotes(dirty(tmp_path, 9, 1))) == 9
    with raises(
        RejectedError, mentions={"max_reject"}, counts={"Q102": 2}, rejected=2, rows=10, unreadable=2
    ) as refused:
        read_quotes(dirty(tmp_path, 8, 2))
    assert refused.value.counts == {"Q102": 2}
    assert [issue.row for issue in refused.value.issues] == [10, 11]
    with pytest.warns(QuotesWarning):
        assert len(read_quotes(dirty(tmp_path, 8, 2), max_reject=0.2)) == 8
    with pytest.warns(QuotesWarning):
        assert len(read_quotes(dirty(tmp_path, 71, 29), max_reject=0.29)) == 71
    with raises(UsageError, max_reject=20):
        read_quotes(dirty(tmp_path, 8, 2), max_reject=20)


def test_a_file_without_a_good_row_is_refused_whatever_is_allowed(tmp_path: Path) -> None:
    with raises(RejectedError, counts={"Q102": 3}, rejected=3, rows=3, unreadable=3):
        read_quotes(dirty(tmp_path, 0, 3), max_reject=1.0)


def test_bad_rows_land_in_the_quarantine_as_found_with_what_is_wrong(tmp_path: Path) -> None:
    source = csv_file(tmp_path, HEAD + ",desk", *(row + ",x" for row in ROWS), 'abc,?,12,0.5,100,1,"a,b"')
    target = tmp_path / "quarantine.csv"
    with pytest.warns(QuotesWarning):
        read_quotes(source, max_reject=0.5, quarantine=target)
    (row,) = pl.read_csv(target).to_dicts()
    assert (row["strike"], row["right"], row["desk"]) == ("abc", "?", "a,b")
    assert (row["quarantine_row"], row["quarantine_code"]) == (5, "Q102 Q107")
    assert "'abc' is not a number" in row["quarantine_sentence"]
    assert "'?' is neither" in row["quarantine_sentence"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.csv", "quarantine.csv"]


def test_a_refused_file_leaves_its_bad_rows_in_the_quarantine_too(tmp_path: Path) -> None:
    with pytest.raises(RejectedError):
        read_quotes(dirty(tmp_path, 1, 3), quarantine=tmp_path / "quarantine.csv")
    assert pl.read_csv(tmp_path / "quarantine.csv").height == 3


def test_no_quarantine_is_written_for_a_clean_file(tmp_path: Path) -> None:
    read_quotes(csv_file(tmp_path, HEAD, *ROWS), quarantine=tmp_path / "quarantine.csv")
    assert not (tmp_path / "quarantine.csv").exists()


def test_a_quarantine_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    with raises(StrikeoutError, errno=2):
        read_quotes(dirty(tmp_path, 9, 1), quarantine=tmp_path / "absent" / "quarantine.csv")


HEADER = "quote_date,quote_time,expiry,strike,right,bid,ask,forward,discount"


def vendor_day(folder: Path, *others: str) -> Path:
    """One good row and these."""
    rows = [HEADER, "2024-06-06,15:45:00,2024-06-07,100,C,1.0,1.2,100,1", *others]
    (folder / "day.csv").write_text("\n".join(rows) + "\n")
    return folder / "day.csv"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("2024-06-08,15:45:00,2024-06-07,{},C,1.0,1.2,100,1", "Q105"),
        ("2024-06-07,16:15:00,2024-06-07,{},C,1.0,1.2,100,1", "Q105"),
        ("2024-06-06,15:45:00,2024-06-07,{},C,0,0,100,1", "Q114"),
        ("2024-06-06,15:45:00,2024-06-07,{},C,,1.2,100,1", "Q101"),
        ("2024-06-06,15:45:00,2024-06-07,{},C,,,100,1", "Q101"),
    ],
)
def test_expired_rows_and_empty_markets_never_refuse_a_file(tmp_path: Path, row: str, code: str) -> None:
    path = vendor_day(tmp_path, *(row.format(90 + n) for n in range(8)))
    with pytest.warns(QuotesWarning):
        assert len(read_quotes(path)) == 1
    reading = inspect_quotes(path)
    assert (reading.rejected, reading.unreadable, set(reading.issues.counts)) == (8, 0, {code})


def test_a_row_that_cannot_be_read_counts_though_it_is_expired_too(tmp_path: Path) -> None:
    path = vendor_day(tmp_path, "2024-06-08,15:45:00,2024-06-07,abc,C,0,0,100,1", "2024-06-06,,2024-06-07,90,C,1,2,,1")
    assert inspect_quotes(path).unreadable == 2
    with pytest.raises(RejectedError) as refused:
        read_quotes(path)
    assert (refused.value.facts["unreadable"], refused.value.facts["rejected"]) == (2, 2)


def test_a_file_without_a_single_quote_is_refused_whatever_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text(f"{HEADER}\n2024-06-08,15:45:00,2024-06-07,100,C,1.0,1.2,100,1\n")
    with pytest.raises(RejectedError) as refused:
        read_quotes(path, max_reject=1.0)
    assert refused.value.facts["unreadable"] == 0
