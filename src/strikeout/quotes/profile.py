"""Vendors' layouts as values: which column means what, in which unit, and what follows from a contract's class.

A profile is a TOML file; the package's are in the folder ``profiles``. docs/reference/profiles.md explains each key.
Every key is checked before anything is read by it, so that a wrong one has a remedy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from functools import cache
from importlib import resources
from math import isfinite
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from strikeout.errors import ColumnError, UsageError
from strikeout.quotes.clock import Clock
from strikeout.quotes.toml_files import read_toml, shown

CLOCKS = {"epoch-s": 10**9, "epoch-ms": 10**6, "epoch-us": 10**3, "epoch-ns": 1}  # nanoseconds a unit
DAYS = ("quote_date", "expiry")
MONTHS = frozenset(map(str, range(1, 13)))

Test = Callable[[Any], bool]
Shape = tuple[Test, str]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_value(value: Any) -> bool:
    return _is_text(value) or _is_number(value)


def _are(test: Test) -> Test:
    return lambda value: isinstance(value, list | tuple) and all(map(test, value))


def _table(test: Test) -> Test:
    return lambda value: isinstance(value, Mapping) and all(map(test, value.values()))


def _is_pattern(value: Any) -> bool:
    """Return a regular expression with a group, in the syntax that takes linear time."""
    return _is_text(value) and _works(lambda: pl.Series([""]).str.extract_groups(value).struct.unnest().columns[0])


def _is_found(value: Any) -> bool:
    return _is_text(value) and _works(lambda: pl.Series([""]).str.extract(f"({value})"))


def _is_format(value: Any) -> bool:
    return value in ("", *CLOCKS) or (
        _is_text(value) and _works(lambda: pl.Series(["2024-01-31"]).str.to_date(value, strict=False))
    )


def _is_hour(value: Any) -> bool:
    return _is_text(value) and _works(lambda: time.fromisoformat(value))


def _works(trial: Callable[[], object]) -> bool:
    try:
        trial()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, IndexError):
        return False
    return True


PATTERN = "a regular expression with a group, without look-around"
TEXT: Shape = (_is_text, "a text")
TEXTS: Shape = (_are(_is_text), "a list of texts")
TABLE: Shape = (lambda value: isinstance(value, Mapping), "a table")
HOUR: Shape = (_is_hour, "a time such as 09:30")
PROFILE: Mapping[str, Shape] = {
    "name": (lambda value: _is_text(value) and value != "", "a text"),
    "title": TEXT,
    "documented": TEXT,
    "symbol": TEXT,
    "header": TEXTS,
    "labels": TEXTS,
    "columns": TABLE,
    "calls": TABLE,
    "puts": TABLE,
    "constants": (_table(lambda x: _is_value(x) or isinstance(x, date)), "a table of texts and numbers"),
    "by_class": (
        _table(_table(lambda value: _is_text(value) or _are(_is_text)(value))),
        'a table of tables such as { E = ["SPX"], otherwise = "A" }',
    ),
    "coin": TABLE,
    "preamble": TABLE,
    "time": TABLE,
}
ORIGIN: Mapping[str, Shape] = {
    "column": (
        lambda value: _is_text(value) or (_are(_is_text)(value) and len(value) > 0),
        "the name of a column, or a list of names",
    ),
    "optional": (lambda value: isinstance(value, bool), "true or false"),
    "divide": (lambda value: _is_number(value) and value > 0, "a number above zero"),
    "format": (_is_format, f"a form of dates such as %d.%m.%Y, or one of {', '.join(CLOCKS)}"),
    "sentinels": (_are(_is_number), "a list of numbers"),
    "values": (_table(_is_value), "a table of texts and numbers"),
    "drop": TEXT,
    "before": (lambda value: value in ("", *DAYS), f"one of {', '.join(DAYS)}"),
    "extract": (lambda value: value == "" or _is_pattern(value), PATTERN),
    "unless": TEXTS,
}
COIN: Mapping[str, Shape] = {"column": TEXT, "values": TEXTS, "classes": TEXTS}
PREAMBLE: Mapping[str, Shape] = {
    "spot": (_is_pattern, PATTERN),
    "stamp": (_is_found, "a regular expression, without look-around"),
    "opens": HOUR,
    "closes": HOUR,
    "months": (
        lambda value: _table(_are(_is_text))(value) and set(value) <= MONTHS,
        "a table of lists of names, from 1 to 12",
    ),
}


def check_shapes(where: str, given: Any, shapes: Mapping[str, Shape]) -> None:
    """Raise UsageError unless every key is known and holds what it must; ``where`` is the place, for the error."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f"profile {where}: {shown(given)} is not a table. Give a table of {', '.join(shapes)}.", profile=where
        )
    for key, value in given.items():
        if key not in shapes:
            raise UsageError(
                f"profile {where}: {key!r} is none of the keys: {', '.join(shapes)}.", profile=where, unknown=[key]
            )
        test, wanted = shapes[key]
        if not test(value):
            raise UsageError(f"profile {where}: {key} is {shown(value)}; give {wanted}.", profile=where, key=key)


Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Origin:
    """The source of a canonical column: the vendor's column (or its names), and how it is converted.

    ``divide``: by this, 1000 for thousandths and 100 for percent. ``format``: of dates, as strptime has it, or epoch-s,
    -ms, -us, -ns. ``sentinels``: numbers that mean an empty cell. ``values``: what the vendor's words mean. ``drop``:
    characters to remove from the number. ``before``: the column counts days back from that canonical column.
    ``extract``: a regular expression whose first group is the value. ``unless``: not used if these canonical
    columns have values.
    """

    column: tuple[str, ...]
    optional: bool = False
    divide: float = 1.0
    format: str = ""
    sentinels: tuple[float, ...] = ()
    values: Facts = field(default_factory=dict)
    drop: str = ""
    before: str = ""
    extract: str = ""
    unless: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """What is done to the column, in words."""
        words = []
        if self.divide != 1.0:
            words.append("in percent" if self.divide == 100.0 else f"divided by {self.divide:,.0f}")
        if self.format:
            words.append(f"as {self.format}")
        if self.sentinels:
            words.append(f"{', '.join(f'{number:.15g}' for number in self.sentinels)} is none")
        if self.before:
            words.append(f"days before {self.before}")
        return "; ".join(words)


@dataclass(frozen=True)
class Profile:
    """One layout. ``columns``, ``calls`` and ``puts`` are the sources of canonical columns; the last two of wide rows.

    ``symbol`` is the form of contract names; ``by_class`` what follows from a contract's class; ``coin`` which prices
    are in units of the underlying; ``preamble`` how the lines above the header are read; ``time`` when quotes are taken
    and contracts end; ``header`` the columns as documented.
    """

    name: str
    title: str
    documented: str
    columns: Mapping[str, Origin]
    calls: Mapping[str, Origin] = field(default_factory=dict)
    puts: Mapping[str, Origin] = field(default_factory=dict)
    symbol: str = ""
    header: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    constants: Facts = field(default_factory=dict)
    by_class: Mapping[str, Facts] = field(default_factory=dict)
    coin: Facts = field(default_factory=dict)
    preamble: Facts = field(default_factory=dict)
    time: Facts = field(default_factory=dict)

    @property
    def is_wide(self) -> bool:
        """Whether a row holds a call and a put."""
        return bool(self.calls)

    @property
    def needs(self) -> frozenset[tuple[str, ...]]:
        """The columns a file of this layout must have; each as the names it may go by, without case and spaces."""
        every = [*self.columns.values(), *self.calls.values(), *self.puts.values()]
        return frozenset(tuple(map(plain, origin.column)) for origin in every if not origin.optional)


def plain(name: str) -> str:
    """Return a column's name without what spelling varies in: case, brackets, spaces."""
    return name.strip().strip("[]").strip().lower().replace(" ", "_")


@cache
def shipped_profiles() -> Mapping[str, Profile]:
    """Return the profiles of the package, by name; tests check their keys."""
    folder = resources.files("strikeout.quotes") / "profiles"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    profiles = (_profile(tomllib.loads(entry.read_text(encoding="utf-8"))) for entry in found)
    return MappingProxyType({profile.name: profile for profile in profiles})


def profile_of(wanted: str | PathLike[str]) -> Profile:
    """Return the profile of this name, or in the TOML file at this path."""
    shipped = shipped_profiles()
    if str(wanted) in shipped:
        return shipped[str(wanted)]
    path = Path(wanted)
    if path.suffix.lower() != ".toml":
        raise UsageError(
            f"profile {str(wanted)!r} is none of {', '.join(shipped)}, nor a .toml file.",
            profile=str(wanted),
        )
    return _profile(_checked(read_toml(path, f"profile {path}"), path.name))


def _profile(content: Mapping[str, Any]) -> Profile:
    rest = {key: content[key] for key in ("by_class", "coin", "preamble", "time") if key in content}
    rest |= {
        table: {role: _origin({"column": given} if isinstance(given, str) else given) for role, given in roles.items()}
        for table, roles in content.items()
        if table in ("columns", "calls", "puts")
    }
    # TOML has dates, and our columns hold them as text.
    fixed = {key: str(x) if isinstance(x, date) else x for key, x in content.get("constants", {}).items()}
    return Profile(
        name=content["name"], title=content.get("title", content["name"]), documented=content.get("documented", ""),
        header=tuple(content.get("header", ())), labels=tuple(content.get("labels", ())),
        symbol=content.get("symbol", ""), constants=fixed, **rest,
    )  # fmt: skip


def _origin(given: Mapping[str, Any]) -> Origin:
    column = given["column"]
    made = {
        **given,
        "column": (column,) if isinstance(column, str) else tuple(column),
        "divide": float(given.get("divide", 1.0)),
        "sentinels": tuple(map(float, given.get("sentinels", ()))),
        "unless": tuple(given.get("unless", ())),
    }
    return Origin(**made)


def _checked(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the content of a profile; raise UsageError if a key is unknown, missing or holds what it cannot."""
    from strikeout.quotes.columns import ALIASES

    check_shapes(name, content, PROFILE)
    check_shapes(f"{name}, coin", content.get("coin", {}), COIN)
    check_shapes(f"{name}, preamble", content.get("preamble", {}), PREAMBLE)
    for key in ("name", "columns"):
        if key not in content:
            raise UsageError(f"profile {name}: {key} is missing. docs/reference/profiles.md shows one.", profile=name)
    if content.get("symbol", "occ") not in FORMS:
        raise UsageError(
            f"profile {name}: symbol is {content['symbol']!r}; the forms are {', '.join(FORMS)}.", name=name
        )
    if ("calls" in content) != ("puts" in content):
        raise UsageError(f"profile {name}: calls and puts go together: wide rows hold both.", profile=name)
    for table in ("columns", "calls", "puts"):
        for role, given in content.get(table, {}).items():
            if isinstance(given, str):
                continue
            check_shapes(f"{name}, {role}", given, ORIGIN)
            if "column" not in given:
                raise UsageError(
                    f"profile {name}, {role}: column is missing: the name the vendor gives it.", profile=name
                )
    for table in ("columns", "calls", "puts", "constants", "by_class"):
        more = ["symbol"] if table in ("columns", "calls", "puts") else []
        _known(f"{name}, {table}", content.get(table, {}), [*ALIASES, *more], "canonical columns")
    Clock.of(content.get("time", {}))  # refuses an invalid clock
    return content


def _known(where: str, given: Mapping[str, Any], known: list[str], what: str) -> None:
    odd = sorted(set(given) - set(known))
    if odd:
        raise UsageError(
            f"profile {where}: {odd[0]!r} is none of the {what}: {', '.join(known)}.", profile=where, unknown=odd
        )


SHOWN = 3


def match(header: Iterable[str], profiles: Mapping[str, Profile] | None = None) -> Profile | None:
    """Return the profile whose columns this header has; None if there is none.

    Where one profile asks for all that another asks for and more, the first is meant.
    """
    names = set(map(plain, header))
    fitting = [profile for profile in (profiles or shipped_profiles()).values() if not missing(profile, names)]
    meant = [one for one in fitting if not any(one.needs < other.needs for other in fitting)]
    if len(meant) > 1:
        listed = " and ".join(profile.name for profile in meant)
        raise ColumnError(
            f"The columns are those of {listed}. Choose one with profile=.", profiles=[one.name for one in meant]
        )
    return meant[0] if meant else None


def missing(profile: Profile, names: set[str]) -> list[str]:
    """Return the columns this profile needs that are not among these names, in the order of the profile's header."""
    absent = [ways[0] for ways in profile.needs if not names.intersection(ways)]
    order = [plain(name) for name in profile.header]
    return sorted(absent, key=lambda name: (order.index(name) if name in order else len(order), name))


def nearest(header: Iterable[str]) -> list[tuple[Profile, list[str]]]:
    """Return the three profiles that this header comes nearest to, each with what it misses; the nearest first."""
    names = set(map(plain, header))
    ranked = [(profile, missing(profile, names)) for profile in shipped_profiles().values()]
    shared = [(profile, absent) for profile, absent in ranked if len(absent) < len(profile.needs)]
    return sorted(shared, key=lambda pair: (len(pair[1]) / len(pair[0].needs), pair[0].name))[:SHOWN]


def nearest_profile(header: Sequence[str]) -> str:
    """Return the nearest profiles in a sentence; empty if none is near."""
    near = nearest(header)
    if not near:
        return ""
    parts = [
        f"{profile.name} (misses {', '.join(absent[:4])}{f' and {len(absent) - 4} more' if len(absent) > 4 else ''})"
        for profile, absent in near
    ]
    return f" The nearest profiles: {'; '.join(parts)}."


def is_header(cells: Sequence[str]) -> bool:
    """Return whether these cells are the header of a known layout."""
    names = set(map(plain, cells))
    return any(not missing(profile, names) for profile in shipped_profiles().values())


# Names of contracts, by their form.
DAY = {"occ": "%y%m%d", "okx": "%y%m%d", "deribit": "%d%b%y", "barchart": "%Y%m%d", "bloomberg": "%m/%d/%y"}
PATTERNS: Mapping[str, str] = {
    "occ": r"^(?<root>[A-Z0-9.^$]{1,6}?)\s*(?<day>\d{6})(?<right>[CP])(?<strike>\d{8})$",
    "okx": r"^(?<root>[A-Z0-9]+-[A-Z0-9]+)-(?<day>\d{6})-(?<strike>[0-9.]+)-(?<right>[CP])$",
    "deribit": r"^(?<root>[A-Z0-9_]+)-(?<day>\d{1,2}[A-Z]{3}\d{2})-(?<strike>[0-9d]+)-(?<right>[CP])$",
    "barchart": r"^(?<root>[^|]+)\|(?<day>\d{8})\|(?<strike>[0-9.]+)(?<right>[CP])$",
    "bloomberg": r"^(?<root>\S+)(?: [A-Z]{2})? (?<day>\d{1,2}/\d{1,2}/\d{2}) (?<right>[CP])(?<strike>[0-9.]+)(?: .*)?$",
}
FORMS = tuple(PATTERNS)


@dataclass(frozen=True, eq=False)
class Named:
    """The parts of many names; null where a name is not of the form."""

    root: pl.Series
    expiry: pl.Series
    strike: pl.Series
    right: pl.Series


def parse_symbols(symbols: pl.Series, form: str) -> Named:
    """Return the parts of these names.

    >>> parse_symbols(pl.Series(["SPXW  260821C05000000"]), "occ").strike.item()
    5000.0
    """
    parts = symbols.cast(pl.String).str.strip_chars().str.extract_groups(PATTERNS[form]).struct.unnest()
    strike = parts["strike"].str.replace("d", ".", literal=True).cast(pl.Float64, strict=False)
    # 25SEP20 has one form, 6MAR26 another: the day may have one digit, which the parser wants in two.
    day = parts["day"].str.to_titlecase() if form == "deribit" else parts["day"]
    day = day.str.zfill(7) if form == "deribit" else day
    return Named(
        root=parts["root"],
        expiry=day.str.to_date(DAY[form], strict=False),
        strike=strike / 1000.0 if form == "occ" else strike,
        right=parts["right"],
    )
