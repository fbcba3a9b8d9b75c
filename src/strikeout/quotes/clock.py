"""Time to expiry to the second: when a quote was taken, when its contract ends, and which hours count for how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats, Mask

DAY = 86_400.0
DAYS_A_YEAR = 365.0
FRIDAY = 4


@dataclass(frozen=True)
class Clock:
    """When contracts end and quotes are taken, in one time zone; and what weekends, holidays and nights count for.

    Times are "16:00" or "16:00:00". With every weight at 1 it is calendar time: seconds over a year of 365 days. With
    others it is business time, over a year of 365 days of the same weights, so that a volatility stays one per year.

    Args:
        zone: of all times without a zone of their own, such as "America/New_York".
        pm: when contracts end that are not settled in the morning; ``am`` when those do.
        quote: when quotes were taken whose file gives a date only. Without it whole days are counted.
        holidays: dates, "2024-12-25", that count like weekends.
        closed: what a second of a weekend or holiday counts for.
        overnight: what a second counts for between ``close`` and ``open`` of other days.

    Raises:
        UsageError: an unknown zone, a time, date or weight that is none.

    >>> Clock(zone="America/New_York").years("2024-01-19", "15:45:00", expiry="2024-01-19") * 365 * 24 * 60
    15.0
    """

    zone: str = "UTC"
    pm: str = "16:00"
    am: str = "09:30"
    quote: str | None = None
    holidays: tuple[str, ...] = ()
    closed: float = 1.0
    overnight: float = 1.0
    open: str = "09:30"
    close: str = "16:00"

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
            raise UsageError(
                f"clock: the zone {self.zone!r} is unknown. Write one such as America/New_York.", zone=self.zone
            ) from error
        for name in ("pm", "am", "quote", "open", "close"):
            if getattr(self, name) is not None and _time(getattr(self, name)) is None:
                raise UsageError(f"clock: {name} is {getattr(self, name)!r}; write a time such as 16:00.", name=name)
        try:
            object.__setattr__(self, "holidays", tuple(str(date.fromisoformat(str(day))) for day in self.holidays))
        except (ValueError, TypeError) as error:
            raise UsageError(f"clock: a holiday is not a date ({error}). Write 2024-12-25.") from error
        for name in ("closed", "overnight"):
            weight = getattr(self, name)
            if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0.0 <= weight <= 1.0:
                raise UsageError(f"clock: {name} is {weight!r}; it is a weight from 0 to 1.", name=name, weight=weight)
        if self.closed == self.overnight == 0.0 and self.open >= self.close:
            raise UsageError(
                f"clock: open is {self.open} and close {self.close}; then no hour counts.",
                open=self.open,
                close=self.close,
            )

    @staticmethod
    def of(table: Mapping[str, Any]) -> Clock | None:
        """Return the clock of a profile's table of times; None if it has none.

        Raises:
            UsageError: a word that is not a field of a clock, or an invalid value.
        """
        if not table:
            return None
        odd = sorted(set(table) - {field.name for field in fields(Clock)})
        if odd:
            known = ", ".join(field.name for field in fields(Clock))
            raise UsageError(f"clock: {odd[0]!r} is not a field of it. The fields are {known}.", field=odd[0])
        days = table.get("holidays", ())
        if not isinstance(days, list | tuple):
            raise UsageError(f"clock: holidays is {days!r}; give a list of dates such as 2024-12-25.")
        return Clock(**{**table, "holidays": tuple(days)})

    @property
    def is_calendar(self) -> bool:
        """Whether every second counts the same."""
        return self.closed == 1.0 and self.overnight == 1.0

    def __str__(self) -> str:
        """Return how time is counted, in words."""
        if self.is_calendar:
            return f"seconds from the quote to {self.pm} (am: {self.am}) {self.zone} on the expiry / 365 days"
        return (
            f"hours from the quote to {self.pm} (am: {self.am}) {self.zone} on the expiry, nights counting "
            f"{self.overnight:g} and weekends and {len(self.holidays)} holidays {self.closed:g} / a year of such hours"
        )

    def years(self, quote_date: str, quote_time: str | None = None, *, expiry: str, settlement: str = "pm") -> float:
        """Return years from one quote to its expiry; not-a-number if a time or date is not understood.

        Args:
            quote_time: a time of day or a whole timestamp; the clock's own where not given.
            settlement: "am" where the contract ends in the morning.
        """
        taken, ends = self.taken(quote_date, quote_time), self.ends(expiry, settlement)
        if taken is None or ends is None:
            return float("nan")
        return float(self.between(np.array([taken]), np.array([ends]))[0])

    def taken(self, quote_date: str, quote_time: str | None) -> float | None:
        """Return when a quote was taken, in seconds since 1970; None if that is not understood."""
        return self._moment(quote_date, quote_time or self.quote)

    @staticmethod
    def is_local(text: str) -> bool:
        """Return whether a time or timestamp has no zone of its own."""
        try:
            return (_time(text.strip()) or datetime.fromisoformat(text.strip())).tzinfo is None
        except ValueError:
            return False

    def ends(self, expiry: str, settlement: str, expiry_time: str | None = None) -> float | None:
        """Return when a contract ends, in seconds since 1970; None if that is not understood."""
        usual = self.am if settlement.strip().lower() == "am" else self.pm
        return self._moment(expiry, expiry_time or usual)

    def between(self, begin: Floats, end: Floats) -> Floats:
        """Return years from one time to another, both in seconds since 1970."""
        if self.is_calendar:
            return (end - begin) / (DAYS_A_YEAR * DAY)
        business = 5.0 * self._counted(np.array([DAY]), np.array([False]))[0]
        year = DAYS_A_YEAR / 7.0 * (business + 2.0 * self.closed * DAY)
        shown = self._reading(np.concatenate([begin, end]))
        passed: Floats = (shown[len(begin) :] - shown[: len(begin)]) / year
        return passed

    def _reading(self, moments: Floats) -> Floats:
        """Return what a clock shows that runs at the weights from the first day of these moments, in seconds."""
        distinct, back = np.unique(moments, return_inverse=True)
        zone = ZoneInfo(self.zone)
        local = [datetime.fromtimestamp(moment, zone).replace(tzinfo=None) for moment in distinct.tolist()]
        first, last = min(local).date(), max(local).date()
        days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        is_closed = np.array([day.weekday() > FRIDAY or str(day) in self.holidays for day in days])
        passed = np.cumsum(np.r_[0.0, self._counted(np.full(len(days), DAY), is_closed)])
        number = np.array([(moment.date() - first).days for moment in local])
        today = np.array([(moment - datetime.combine(moment.date(), time())).total_seconds() for moment in local])
        shown: Floats = (passed[number] + self._counted(today, is_closed[number]))[back]
        return shown

    def _counted(self, seconds: Floats, is_closed: Mask) -> Floats:
        """Return what the first seconds of a day count for."""
        begin, end = (_seconds(text) for text in (self.open, self.close))
        working = self.overnight * seconds + (1.0 - self.overnight) * np.clip(seconds - begin, 0.0, end - begin)
        return np.where(is_closed, self.closed * seconds, working)

    def _moment(self, day: str, text: str | None) -> float | None:
        if text is None:
            return None
        text = text.strip()
        at = _time(text)
        try:
            moment = datetime.fromisoformat(text) if at is None else datetime.combine(date.fromisoformat(day), at)
        except ValueError:
            return None
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(self.zone))).timestamp()


def _time(text: Any) -> time | None:
    if not isinstance(text, str) or len(text) < 4 or ":" not in text[:3]:
        return None
    try:
        return time.fromisoformat(text if text[1] != ":" else f"0{text}")
    except ValueError:
        return None


def _seconds(text: str) -> float:
    at = _time(text)
    assert at is not None
    return at.hour * 3600.0 + at.minute * 60.0 + at.second
