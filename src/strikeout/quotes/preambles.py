"""What stands above the header of a vendor's file: the underlying's price, and when the file was made."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from math import isfinite
from typing import Any

import polars as pl

from strikeout.quotes.profile import Profile

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::\d{2})?\s*([AaPp])?\.?[Mm]?")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
SATURDAY = 5


def preamble_values(profile: Profile, lines: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Canonical columns that the lines above the header give, and what was made of them in words.

    A stamp of a weekend, or of an hour before the market opens, belongs to the weekday before: the quotes in such a
    file are the last of that day, of the hour the market closes. Holidays are not known; a date given as a constant
    goes before.
    """
    text = "\n".join(lines)
    rules = profile.preamble
    said: dict[str, Any] = {}
    notes = []
    price = _spot(text, rules["spot"]) if "spot" in rules else None
    if price is not None:
        said["spot"] = price
    line = _found(text, f"({rules['stamp']})")[0] if "stamp" in rules else None
    stamp = _moment(line, rules.get("months", {})) if line else None
    if stamp is not None:
        day = _session(stamp, time.fromisoformat(rules.get("opens", "00:00")))
        closes = time.fromisoformat(rules.get("closes", "23:59"))
        said["quote_date"] = day.isoformat()
        said["quote_time"] = min(stamp.time(), closes).isoformat() if day == stamp.date() else closes.isoformat()
        if day != stamp.date():
            notes.append(
                f"stamped {stamp:%Y-%m-%d %H:%M}, when the market was closed: the quotes are of {day}; if not, give "
                "quote_date as a constant"
            )
    return said, tuple(notes)


def _found(text: str, pattern: str) -> list[str | None]:
    """Return the groups of the first match, None for each that took no part; by Polars, in time linear in the text."""
    groups = pl.Series([text]).str.extract_groups(f"(?m){pattern}").struct.unnest()
    return list(groups.row(0))


def _spot(text: str, pattern: str) -> float | None:
    try:
        price = float(next((group for group in _found(text, pattern) if group), "").replace(",", ""))
    except ValueError:
        return None
    return price if isfinite(price) else None


def _moment(text: str, months: dict[str, list[str]]) -> datetime | None:
    """Return the date and time in a line such as "Date: 9 June 2023, 1:40 PM EDT", whatever the order of its parts."""
    names = {word.lower(): int(number) for number, words in months.items() for word in words}
    words = re.findall(r"[^\W\d_]+", text.lower())
    month = next((names[word] for word in words if word in names), None)
    year, clock = _YEAR.search(text), _CLOCK.search(text)
    if month is None or year is None or clock is None:
        return None
    rest = text[: clock.start()].replace(year.group(0), " ")
    day = re.search(r"\b(\d{1,2})\b", rest)
    hour = int(clock.group(1)) % 12 if clock.group(3) else int(clock.group(1))
    hour += 12 if (clock.group(3) or "").lower() == "p" else 0
    try:
        return datetime(int(year.group(0)), month, int(day.group(1)), hour, int(clock.group(2))) if day else None
    except ValueError:  # the 31st of June
        return None


def _session(stamp: datetime, opens: time) -> Any:
    day = stamp.date() if stamp.time() >= opens else stamp.date() - timedelta(days=1)
    while day.weekday() >= SATURDAY:
        day -= timedelta(days=1)
    return day
