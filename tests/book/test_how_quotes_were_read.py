"""The ledger has how the file of each import was read, and certificates of a book name it and the retained quotes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import strikeout as so
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.provenance import digest_of_quotes
from strikeout.errors import UsageError
from strikeout.store.entry import Act, Entry, Reason
from tests.cli.typed import done, told
from tests.raising import raises

READ = {"layout": "tidy", "Q209": "off"}
OTHER = {"layout": "cboe-dashboard", "rate": "0.02"}


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    """600 quotes on three dates, in turn."""
    found = so.synthetic.random_quotes(600, maturities=6, seed=7)
    dates = [f"2024-01-{2 + row % 3:02d}" for row in range(len(found))]
    return so.Quotes(ids=found.ids, contracts=found.contracts, observed=found.observed, labels={"date": dates})


def of_three_imports(path: Path, quotes: so.Quotes, *, is_encrypted: bool = False, **how) -> so.Book:
    """A calibrated book whose first two imports were read in one way and the third in another."""
    book = so.Book.create(path, is_encrypted=is_encrypted)
    for part, reading in ((quotes[:200], READ), (quotes[200:400], READ), (quotes[400:], OTHER)):
        book.import_quotes(part, reading=reading)
    book.calibrate(**{"panel": None, **how})
    return book


def test_an_entry_has_how_the_file_of_its_import_was_read_and_is_signed_over_it(tmp_path, quotes):
    with of_three_imports(tmp_path / "a.book", quotes) as book:
        assert [dict(entry.reading) for entry in book.log()] == [{}, READ, READ, OTHER, {}]
        entry = book.log()[1]
    assert Entry.from_bytes(entry.to_bytes()) == entry
    assert entry.is_signed()
    assert not replace(entry, reading=OTHER).is_signed()
    for odd in ({"layout": "two\nlines"}, {"a\u202eb": "x"}):
        with raises(UsageError):
            Act("a", "import", datetime.now(UTC), reading=odd)


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "encrypted"])
def test_the_certificate_of_a_recalibration_names_every_way_of_reading_once_and_the_retained_quotes(
    tmp_path, quotes, is_encrypted
):
    with of_three_imports(tmp_path / "a.book", quotes, is_encrypted=is_encrypted) as book:
        plan = book.plan_forget(ids=quotes.ids[:5])
        issued = book.apply(plan).certificate
        assert issued is not None
        assert replace(issued, signed=None) == replace(plan.certificate, signed=None)
        assert issued.reading == {
            "layout": "book",
            "settings": {
                "entries 2 to 3": "tidy; Q209 off",
                "entry 4": "cboe-dashboard; rate 0.02",
            },
            "quotes": digest_of_quotes(book.quotes()),
        }
        assert so.verify(issued, book.quotes()).holds
        assert Certificate.from_bytes(issued.to_bytes()) == issued


def test_certificates_of_one_step_and_of_moments_name_the_readings_but_no_quotes_that_were_not_read(tmp_path, quotes):
    readings = {"entries 2 to 3": "tidy; Q209 off", "entry 4": "cboe-dashboard; rate 0.02"}
    with of_three_imports(tmp_path / "step.book", quotes) as book:
        issued = book.forget(ids=quotes.ids[:5], tolerance=0.05).certificate
        assert (issued.operator, issued.reading) == ("downdate", {"layout": "book", "settings": readings})
        assert so.verify(issued, book.quotes()).holds
    with of_three_imports(tmp_path / "moments.book", quotes, through="moments") as book:
        issued = book.forget(ids=quotes.ids[:5]).certificate
        assert (issued.operator, issued.reading) == ("resolve", {"layout": "book", "settings": readings})
        assert so.verify(issued, book.quotes()).holds


@pytest.mark.parametrize("tolerance", [None, 0.2], ids=["recalibrated", "by one step"])
def test_the_certificate_of_a_roll_names_the_reading_of_the_file_that_it_adds(tmp_path, quotes, tolerance):
    days = [quotes[quotes.labels["date"] == f"2024-01-{day:02d}"] for day in (2, 3, 4)]
    with so.Book.create(tmp_path / "a.book") as book:
        for day in days[:2]:
            book.import_quotes(day, reading=READ)
        book.calibrate(panel=None)
        done_ = book.roll(days[2], window=2, reading=OTHER, tolerance=tolerance)
        issued = done_.certificate
        assert issued is not None
        assert dict(book.log()[-1].reading) == OTHER
        assert issued.reading["settings"] == {
            "entries 2 to 3": "tidy; Q209 off",
            "entry 5": "cboe-dashboard; rate 0.02",
        }
        if issued.operator == "recalibrate":
            assert issued.reading["quotes"] == digest_of_quotes(book.quotes())
        assert so.verify(issued, book.quotes()).holds


def test_quotes_in_memory_are_named_as_such(tmp_path, quotes):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
        issued = book.forget(ids=quotes.ids[:5]).certificate
    assert list(issued.reading["settings"]) == ["entry 2"]
    assert "layout" not in issued.reading["settings"]["entry 2"]


def test_the_digest_of_the_retained_quotes_is_gone_with_any_of_them(tmp_path, quotes):
    """With the quotes that are left it would be a plain hash of the erased one."""
    with of_three_imports(tmp_path / "a.book", quotes) as book:
        digest = book.forget(ids=quotes.ids[:5]).certificate.reading["quotes"]
        book.erase(ids=quotes.ids[40:60], reason=Reason("error"))
        assert all(digest not in entry.to_bytes().decode() for entry in book.log())
    assert digest.encode() not in (tmp_path / "a.book").read_bytes()


@pytest.fixture
def page(tmp_path, monkeypatch) -> str:
    """A file of a vendor in the working directory, and a book."""
    monkeypatch.chdir(tmp_path)
    done("sample", "page.csv")
    done("init", "a.book")
    return "page.csv"


def test_commands_record_the_options_of_reading(page):
    done("import", "a.book", page, "--check", "Q209=off", "--source", "desk", "--quarantine", "bad.csv")
    entry = told("log", "a.book")["entries"][-1]
    assert entry["reading"] == {"layout": "cboe-dashboard", "exercise": "auto", "Q209": "off", "source": "given"}


def test_no_value_of_a_constant_but_the_rate_reaches_ledger_or_certificates(tmp_path, quotes, monkeypatch):
    """A file with one quote may have its strike as a constant, and an entry is kept when the quote is erased."""
    monkeypatch.chdir(tmp_path)
    so.write_quotes(quotes, "all.csv")
    frame = pl.read_csv("all.csv")
    frame.filter(pl.col("strike") == frame["strike"][0]).drop("strike").write_csv("one.csv")
    reading = so.inspect_quotes("one.csv", constants={"strike": frame["strike"][0]})
    assert reading.settings["strike"] == str(frame["strike"][0])
    assert reading.conventions == {"layout": "strikeout's own column names", "exercise": "auto", "strike": "given"}
    priced = so.inspect_quotes("one.csv", constants={"strike": 100.0, "rate": 0.03}, checks="desk", forwards="given")
    assert priced.conventions == {
        "layout": "strikeout's own column names",
        "exercise": "auto",
        "forwards": "given",
        "strike": "given",
        "rate": "0.03",
        "checks": "desk",
    }


def test_files_are_named_without_their_folder(tmp_path, quotes):
    so.write_quotes(quotes, tmp_path / "q.csv")
    (tmp_path / "curve.csv").write_text("years,rate\n0.1,0.01\n5,0.03\n")
    for rates in (tmp_path / "curve.csv", str(tmp_path / "curve.csv")):
        assert so.inspect_quotes(tmp_path / "q.csv", rates=rates).settings == {"exercise": "auto", "rates": "curve.csv"}
