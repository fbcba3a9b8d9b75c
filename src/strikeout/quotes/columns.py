"""Find which column of a table means what; `Layout.columns` reports all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from strikeout.errors import ColumnError, UsageError
from strikeout.quotes.derivation import derivation_of

# Canonical name -> other names it may go by. Only names that can mean one thing are here: "strike_price" is a
# thousandth of a dollar at one vendor, "last" may be days old, "ttm" may be days.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("quote_id",),
    "underlying": ("symbol", "ticker"),
    "root": (),
    "quote_date": ("date", "trade_date"),
    "quote_time": ("quote_ts",),
    "expiry": ("expiry_date", "expiration", "expiration_date"),
    "expiry_years": ("t_years", "years_to_expiry"),
    "strike": (),
    "right": ("cp_flag", "option_type", "call_put"),
    "exercise": ("exercise_style",),
    "price": ("mid", "mid_price"),
    "bid": (),
    "ask": (),
    "iv": ("iv_mid", "implied_vol", "implied_volatility"),
    "spread": (),
    "forward": ("forward_price",),
    "spot": ("underlying_price",),
    "rate": ("risk_free_rate",),
    "dividend_yield": ("dividend",),
    "discount": ("discount_factor",),
    "weight": (),
    "source": (),
    "expiry_time": (),
    "settlement": (),
    "volume": (),
    "open_interest": (),
    "last_trade_time": ("last_trade_ts",),
    "deliverable": (),
    "iv_bid": (),
    "iv_ask": (),
    "american_mid": (),
    "dividends": (),
    "forward_from": (),
    "discount_from": (),
}
# Short names and names that may mean something else, used only if no column has a name of ALIASES.
WEAK_ALIASES: Mapping[str, tuple[str, ...]] = {
    "strike": ("k", "strike_price", "exercise_price"),
    "expiry_years": ("t", "tau"),
    "forward": ("f", "fwd"),
    "spot": ("s", "s0"),
    "rate": ("r",),
    "dividend_yield": ("q", "div_yield"),
    "right": ("callput", "cp", "type", "put_call", "putcall", "c/p", "call/put", "optiontype"),
    "expiry": ("maturity_date", "exp_date"),
    "quote_date": ("quotedate", "as_of", "asof"),
    "bid": ("bid_price",),
    "ask": ("ask_price", "offer"),
}
# The columns that a quarantine file adds to its rows.
QUARANTINE = ("quarantine_row", "quarantine_code", "quarantine_sentence")
NUMBERS = (
    "strike",
    "expiry_years",
    "price",
    "bid",
    "ask",
    "iv",
    "spread",
    "forward",
    "spot",
    "rate",
    "dividend_yield",
    "discount",
    "weight",
    "volume",
    "open_interest",
    "iv_bid",
    "iv_ask",
    "american_mid",
)
# Canonical columns that become part of the contract, its price or its weight; the others become labels.
CARRIED = ("id", "strike", "right", "price", "spread", "forward", "discount", "weight", "expiry_years")
# The label a canonical column becomes, where the name differs.
LABEL_NAMES: Mapping[str, str] = {"quote_date": "date", "expiry": "expiry_date"}

UNITS: Mapping[str, str] = {
    "id": "name of the quote",
    "underlying": "name of the underlying",
    "root": "class of the contract",
    "quote_date": "date, YYYY-MM-DD or YYYYMMDD; the time of day is not used",
    "quote_time": "time of the quote, as text",
    "expiry": "date, YYYY-MM-DD or YYYYMMDD; the time of day is not used",
    "expiry_years": "years",
    "strike": "currency of the price",
    "right": "C or P",
    "exercise": "E (European) or A (American)",
    "price": "currency",
    "bid": "currency",
    "ask": "currency",
    "iv": "Black-76 volatility per year, decimal (0.2 is 20 %)",
    "spread": "ask minus bid, currency",
    "forward": "currency of the price, to the expiry",
    "spot": "currency of the price",
    "rate": "per year, continuously compounded, decimal",
    "dividend_yield": "per year, continuously compounded, decimal",
    "discount": "value today of 1 paid at the expiry",
    "weight": "of the squared residual",
    "source": "where the quote came from",
    "expiry_time": "time of day the contract ends, as text",
    "settlement": "am, pm or unknown",
    "volume": "contracts traded that day",
    "open_interest": "contracts open",
    "last_trade_time": "time of the last trade, as text",
    "deliverable": "what one contract delivers, if not the standard",
    "iv_bid": "volatility of the bid, decimal",
    "iv_ask": "volatility of the ask, decimal",
    "american_mid": "price of an American quote whose price column is European; the latter is recomputed from it",
    "dividends": "model, then years:amount of each cash dividend before expiry; see the page on American options",
    "forward_from": "given, or parity or spot if it was derived and is to be refitted",
    "discount_from": "given or rate, or parity if it was derived and is to be refitted",
}


@dataclass(frozen=True)
class Column:
    """One column as it was understood: its name in the file, the canonical name (none for a label), unit, and use.

    ``side`` is C or P if only calls or only puts have it; ``is_kept`` is False if the column is left out.
    """

    name: str
    role: str | None
    meaning: str
    is_used: bool
    side: str = ""
    is_kept: bool = True


@dataclass(frozen=True)
class Layout:
    """How a table will be read: ``places`` maps canonical names to its columns, ``used`` are those prices depend on.

    ``roads`` are the sources of forwards that are available, the first to be tried first: "given", "parity", "spot".
    ``optional`` are columns of ``used`` whose cells may be empty, since another source may give what is missing.
    """

    places: Mapping[str, str]
    used: frozenset[str]
    roads: tuple[str, ...]
    optional: frozenset[str]
    labels: tuple[str, ...]
    observed_from: str
    expiry_from: str
    forward_from: str
    discount_from: str
    columns: tuple[Column, ...]


def understand(
    frame: pl.DataFrame,
    constants: Mapping[str, float | str] | None = None,
    *,
    forwards: str = "auto",
    vendor: tuple[Column, ...] = (),
) -> tuple[pl.DataFrame, Layout]:
    """Return the table with the constants as columns of it, and how it will be read.

    ``forwards`` is the source of the forwards: "given", "parity", "spot", or "auto" for the first of these available.
    ``vendor`` are the columns of a vendor's file, where those of ``frame`` are canonical already.

    Raises:
        ColumnError: a needed column is missing or empty, two claim the same role, or a constant has a column already.
        UsageError: a constant has no canonical name.
    """
    told = [name for name in frame.columns if name in QUARANTINE]  # a quarantine file that was corrected
    frame = frame.drop(told)
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    places = {name: name for name in frame.columns if name in ALIASES and name not in empty} if vendor else {}
    places = places or _places(frame, empty)
    for role in constants or {}:
        if role not in ALIASES:
            raise UsageError(f"constants: {role!r} is not a canonical column. They are {', '.join(ALIASES)}.")
        if role in places:
            raise ColumnError(
                f"constants gives {role}, but the file has it in column {places[role]!r}. Drop one.", role=role
            )
        places[role] = f"{role} (constant)"
    frame = with_constants(frame, constants)
    routes = derivation_of(frame, places, empty, forwards=forwards)
    labels = tuple(name for name in frame.columns if name not in empty and name not in places.values())
    layout = Layout(
        places=places, used=routes.used, optional=routes.optional, roads=routes.roads, labels=labels,
        observed_from=routes.observed_from, expiry_from=routes.expiry_from, forward_from=routes.forward_from,
        discount_from=routes.discount_from,
        columns=tuple(replace(column, is_used=column.role in routes.used) for column in vendor)
        or (
            *_understood(frame, places, routes.used, empty),
            *(
                Column(name, None, "the problem, in a quarantine file: left out", is_used=False, is_kept=False)
                for name in told
            ),
        ),
    )  # fmt: skip
    return frame, layout


def with_constants(frame: pl.DataFrame, constants: Mapping[str, float | str] | None) -> pl.DataFrame:
    """Return the table without the columns of a quarantine file, and with a column for every constant."""
    made = [pl.lit(value).alias(f"{role} (constant)") for role, value in (constants or {}).items()]
    return frame.drop(QUARANTINE, strict=False).with_columns(made)


def _places(frame: pl.DataFrame, empty: list[str]) -> dict[str, str]:
    plain = {name: name.strip().lower().replace(" ", "_") for name in frame.columns if name not in empty}
    keys = set(plain.values())
    # Chains often call the spot "underlying". Numbers can be meant so, unless nothing asks for it: some tickers are
    # numbers too.
    spot_called_underlying = [
        name
        for name, key in plain.items()
        if key == "underlying"
        and not keys & {"spot", *ALIASES["spot"]}
        and (keys & set(ALIASES["underlying"]) or not keys & {"forward", *ALIASES["forward"]})
        and _all_numbers(frame[name])
    ]
    places: dict[str, str] = {}
    for role, others in ALIASES.items():
        names = [name for name, key in plain.items() if key == role or key in others]
        names = names or [name for name, key in plain.items() if key in WEAK_ALIASES.get(role, ())][:1]
        if role == "spot":
            names = names or spot_called_underlying
        elif role == "underlying":
            names = [name for name in names if name not in spot_called_underlying]
        if len(names) > 1:
            raise ColumnError(
                f"Columns {names[0]!r} and {names[1]!r} both claim to be {role}. Rename or drop one.",
                role=role,
                columns=names,
            )
        if names:
            places[role] = names[0]
    return places


def _all_numbers(column: pl.Series) -> bool:
    known = column.drop_nulls()
    if known.dtype == pl.String:
        return known.str.strip_chars().cast(pl.Float64, strict=False).null_count() == 0
    return known.dtype.is_numeric()


def _understood(
    frame: pl.DataFrame, places: Mapping[str, str], used: frozenset[str], empty: list[str]
) -> tuple[Column, ...]:
    roles: dict[str, str] = {name: role for role, name in places.items()}

    def column(name: str) -> Column:
        if name in empty:
            return Column(name, None, "no value in any row: left out", is_used=False, is_kept=False)
        role = roles.get(name)
        return Column(name, role, UNITS[role] if role else "label", is_used=role in used)

    return tuple(column(name) for name in frame.columns)


def as_text(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column as text, whatever its type: what a person would see in the file."""
    column = frame[name]
    if column.dtype == pl.String:
        return column
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.strftime("%Y-%m-%d %H:%M:%S")
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise ColumnError(
            f"Column {name!r} holds {column.dtype}, not one value per row. Flatten or drop it.", column=name
        ) from error


def quotient(column: pl.Series, by: float) -> pl.Series:
    """Return numbers divided by a number, each rounded once.

    Polars multiplies by the reciprocal unless there is a single row, and rounds twice: 1001 / 1000 would be
    1.0010000000000001 in a large file and 1.001 alone.
    """
    whole = pl.Series(column.cast(pl.Float64).to_numpy() / by)
    return pl.select(pl.when(column.is_not_null()).then(whole).alias(column.name)).to_series()


def label_name(role_or_name: Any) -> str:
    """Return the name a column goes by among the labels."""
    return LABEL_NAMES.get(str(role_or_name), str(role_or_name))
