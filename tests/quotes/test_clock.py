"""Time to expiry: to the second, by settlement and time zone, in calendar or business time."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from strikeout.errors import UsageError
from strikeout.quotes.clock import Clock
from strikeout.quotes.reading import inspect_quotes
from tests.quotes.chains import chain
from tests.raising import raises

NEW_YORK = Clock(zone="America/New_York")
YEAR = 365 * 86_400.0


def test_an_afternoon_contract_ends_at_the_close_and_a_morning_one_at_the_open() -> None:
    close = NEW_YORK.years("2024-01-17", "15:45:00", expiry="2024-01-19")
    morning = NEW_YORK.years("2024-01-17", "15:45:00", expiry="2024-01-19", settlement="AM")
    assert close * YEAR == pytest.approx(2 * 86_400 + 900, abs=1e-6)
    assert (close - morning) * YEAR == pytest.approx(6.5 * 3600, abs=1e-6)


def test_a_quote_of_the_last_day_still_has_its_minutes() -> None:
    assert NEW_YORK.years("2024-01-19", "15:59:30", expiry="2024-01-19") * YEAR == pytest.approx(30.0, abs=1e-6)
    assert NEW_YORK.years("2024-01-19", "16:00:01", expiry="2024-01-19") < 0.0


def test_summer_time_between_quote_and_expiry_is_an_hour_less() -> None:
    # In 2024 New York's clocks went forward on 10 March.
    years = NEW_YORK.years("2024-03-08", "16:00", expiry="2024-03-11")
    assert years * YEAR == pytest.approx(3 * 86_400 - 3600, abs=1e-6)


def test_a_timestamp_with_its_own_zone_is_taken_at_its_word() -> None:
    deribit = Clock(zone="UTC", pm="08:00")
    one = deribit.years("2026-03-01", "2026-03-01T04:47:01.071158+00:00", expiry="2026-12-25")
    two = deribit.years("2026-03-01", "2026-02-28T23:47:01.071158-05:00", expiry="2026-12-25")
    ends = datetime(2026, 12, 25, 8, tzinfo=ZoneInfo("UTC")).timestamp()
    begins = datetime(2026, 3, 1, 4, 47, 1, 71158, tzinfo=ZoneInfo("UTC")).timestamp()
    assert one == two == (ends - begins) / YEAR


def test_business_time_counts_what_it_is_told_to_and_a_year_is_a_year() -> None:
    working_days = Clock(zone="America/New_York", closed=0.0, overnight=0.0)
    day = 1.0 / (365 * 5 / 7)
    assert working_days.years("2024-01-12", "16:00", expiry="2024-01-16") == pytest.approx(2 * day, rel=1e-12)
    assert working_days.years("2024-01-12", "12:45", expiry="2024-01-12") == pytest.approx(day / 2, rel=1e-12)
    holiday = Clock(zone="America/New_York", closed=0.0, overnight=0.0, holidays=("2024-01-15",))
    assert holiday.years("2024-01-12", "16:00", expiry="2024-01-16") == pytest.approx(day, rel=1e-12)
    half = Clock(zone="America/New_York", closed=0.5)
    assert half.years("2024-01-12", "16:00", expiry="2024-01-19") == pytest.approx(7 / 365, rel=1e-12)
    assert half.years("2024-01-12", "16:00", expiry="2024-01-15") < NEW_YORK.years(
        "2024-01-12", "16:00", expiry="2024-01-15"
    )


def test_a_file_with_times_and_a_clock_is_read_to_the_second() -> None:
    frame = chain().with_columns(quote_time=pl.lit("12:30:00"))
    book = inspect_quotes(frame, clock=NEW_YORK).quotes
    days = inspect_quotes(frame).quotes
    first = {name: row for row, name in enumerate(book.labels["expiry_date"].tolist())}
    for expiry, row in first.items():
        assert book.contracts.expiry[row] == NEW_YORK.years("2024-03-01", "12:30:00", expiry=expiry)
    # Three and a half hours more than whole days; an hour less where summer time begins in between.
    assert set(np.round((book.contracts.expiry - days.contracts.expiry) * YEAR).tolist()) == {3.5 * 3600, 2.5 * 3600}
    assert "America/New_York" in inspect_quotes(frame, clock=NEW_YORK).routes["expiry_years"]


def test_settlement_and_an_expiry_time_of_its_own_go_row_by_row() -> None:
    frame = chain().with_columns(
        quote_time=pl.lit("2024-03-01 12:30:00"),
        settlement=pl.when(pl.col("expiry") == "2024-04-05").then(pl.lit("am")).otherwise(pl.lit("pm")),
        expiry_time=pl.when(pl.col("expiry") == "2024-12-06").then(pl.lit("12:30:00")),
    )
    found = inspect_quotes(frame, clock=Clock()).forwards
    assert found is not None
    assert (found.years * 365).tolist() == pytest.approx([35 - 3 / 24, 98 + 3.5 / 24, 280.0])


def test_the_last_day_is_kept_with_a_clock_or_a_time_and_expired_without() -> None:
    frame = chain(expiries=("2024-03-01", "2024-06-07")).filter(pl.col("expiry") != "2024-03-01")
    last = frame.with_columns(quote_date=pl.lit("2024-06-07"), quote_time=pl.lit("12:30:00"))
    assert len(inspect_quotes(last, clock=NEW_YORK, constants={"rate": 0.0}).quotes) == last.height
    plain = inspect_quotes(last, constants={"rate": 0.0})
    assert len(plain.quotes) == last.height  # 12:30 to 16:00 of the same day
    assert set(plain.quotes.contracts.expiry.tolist()) == {3.5 * 3600 / YEAR}
    for late in ("16:00:00", "2024-06-07T12:30:00+00:00", "noon"):
        expired = inspect_quotes(last.with_columns(quote_time=pl.lit(late)))
        assert expired.issues.counts["Q105"] == last.height, late
    assert inspect_quotes(last.drop("quote_time")).issues.counts["Q105"] == last.height


def test_a_time_that_is_none_is_rejected_with_a_code() -> None:
    frame = (
        chain()
        .with_row_index()
        .with_columns(quote_time=pl.when(pl.col("index") == 3).then(pl.lit("noon")).otherwise(pl.lit("12:30:00")))
    )
    reading = inspect_quotes(frame.drop("index"), clock=NEW_YORK)
    issue = next(issue for issue in reading.issues if issue.is_rejected)
    assert (issue.code, issue.row) == ("Q110", 3)
    assert "'noon' is not understood as a time" in issue.sentence


def test_dates_alone_are_whole_days_unless_the_clock_says_when_quotes_are_taken() -> None:
    days = inspect_quotes(chain(), clock=NEW_YORK).quotes.contracts.expiry
    assert (days * 365 == np.round(days * 365)).all()
    timed = inspect_quotes(chain(), clock=Clock(zone="America/New_York", quote="15:45")).quotes.contracts.expiry
    assert ((timed - days) * YEAR).min() == pytest.approx(900 - 3600, abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"zone": "Mars/Base"}, "the zone 'Mars/Base' is unknown"),
        ({"pm": "4pm"}, "pm is '4pm'; write a time such as 16:00"),
        ({"closed": 1.5}, "closed is 1.5; it is a weight from 0 to 1"),
        ({"holidays": ("Christmas",)}, "a holiday is not a date"),
        ({"closed": 0.0, "overnight": 0.0, "open": "16:00"}, "then no hour counts"),
    ],
)
def test_a_clock_that_cannot_be_is_refused_in_a_sentence(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("'", ".")):
        Clock(**wrong)
    with raises(UsageError, field="tz"):
        Clock.of({"tz": "UTC"})


def test_a_profile_of_ones_own_says_how_time_is_counted(tmp_path: Path) -> None:
    chain().with_columns(quote_time=pl.lit("12:30:00")).write_csv(tmp_path / "chain.csv")
    own = tmp_path / "own.toml"
    columns = "\n".join(f'{name} = "{name}"' for name in ("quote_date", "quote_time", "expiry", "strike", "right"))
    own.write_text(
        f'name = "own"\n[columns]\n{columns}\nbid = "bid"\nask = "ask"\n'
        '[time]\nzone = "America/New_York"\nclosed = 0.0\nholidays = ["2024-03-29"]\n'
    )
    found = inspect_quotes(tmp_path / "chain.csv", profile=own).forwards
    assert found is not None
    clock = Clock(zone="America/New_York", closed=0.0, holidays=("2024-03-29",))
    assert found.years[0] == clock.years("2024-03-01", "12:30:00", expiry="2024-04-05")
    # Days but weekends and Good Friday, from 12:30 to 16:00, over 365 * 5 / 7 of them.
    assert found.years[0] == pytest.approx((24 + 3.5 / 24) / (365 * 5 / 7), rel=1e-12)
