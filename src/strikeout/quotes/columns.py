"""Find which column of a table means what; `Layout.columns` reports all of it.

`Derivation` is what is computed from what: from the columns of a table to expiries, prices, discounts and forwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from strikeout.errors import ColumnError, UsageError
from strikeout.quotes.parity import MOMENT, PAIRS
from strikeout.text import Argument, Mention

FORWARD_SOURCES = ("given", "parity", "spot")
BESIDE = "beside"  # parity, of slices whose other quotes are elsewhere: in the book these will be part of
SLICE = (*MOMENT, "expiry", "expiry_years")
SOME_ROWS = 10_000  # of a file, among which a slice with calls and puts is looked for first
_BY_VALUE = ("strike", "expiry_years")
_DESCRIBED = {
    "given": "forward",
    "parity": "put-call parity of its slice",
    "spot": "spot * exp(-dividend_yield * expiry_years) / discount",
}


@dataclass(frozen=True)
class Derivation:
    """The columns that prices depend on, those of them with cells that may be empty, and where each quantity is from.

    ``forward_sources`` are those available, in the order in which they are tried for each slice.
    """

    used: frozenset[str]
    optional: frozenset[str]
    forward_sources: tuple[str, ...]
    observed_from: str
    expiry_from: str
    forward_from: str
    discount_from: str


def derivation_of(
    frame: pl.DataFrame, places: Mapping[str, str], empty: list[str], *, forwards: str = "auto"
) -> Derivation:
    """Return how every quantity of a quote is found in this table."""
    if forwards not in ("auto", BESIDE, *FORWARD_SOURCES):
        raise UsageError(f"forwards is {forwards!r}; it is one of auto, {', '.join(FORWARD_SOURCES)}.")
    missing = _Missing([name for name in frame.columns if name not in empty], len(empty))
    for role, remedy in (("strike", "Add a column strike."), ("right", "Add a column right holding C or P.")):
        if role not in places:
            raise missing(role, remedy)
    used = {"strike", "right"} | ({"id", "weight"} & places.keys())
    expiry, expiry_from = _expiry(places, missing)
    observed, observed_from = _observed(places, missing)
    forward_sources = _forward_sources(frame, places, forwards, is_price=observed != {"iv"})
    if not forward_sources:
        raise _no_road(places, missing, forwards)
    needed, discount_from = _money(places, forward_sources)
    return Derivation(
        used=frozenset(used | expiry | observed | needed),
        # A column that no other source could replace keeps the rule that its cells are filled.
        optional=frozenset() if len(forward_sources) == 1 and forward_sources != ("parity",) else frozenset(needed),
        forward_sources=forward_sources,
        observed_from=observed_from,
        expiry_from=expiry_from,
        forward_from=", else ".join(_DESCRIBED[source] for source in forward_sources),
        discount_from=discount_from,
    )


@dataclass(frozen=True)
class _Missing:
    """Make the error for a missing column: what is missing, what is there, and what to do."""

    filled: list[str]
    hollow: int

    def __call__(self, what: str, *remedy: str | Mention) -> ColumnError:
        shown = ", ".join(self.filled[:20]) + (f" and {len(self.filled) - 20} more" if len(self.filled) > 20 else "")
        hollow = f" ({self.hollow} more without a single value)" if self.hollow else ""
        found = f"No column for {what}. Found: {shown}{hollow}. "
        return ColumnError(found, *remedy, missing=what, columns=self.filled)


def _expiry(places: Mapping[str, str], missing: _Missing) -> tuple[set[str], str]:
    if "expiry_years" in places:
        return {"expiry_years"}, "expiry_years"
    if {"expiry", "quote_date"} <= places.keys():
        return {"expiry", "quote_date"}, "(expiry - quote_date) in days / 365"
    if "expiry" in places:
        found = f"{places['expiry']} is taken for a date, and the time to it needs both expiry and quote_date"
        date = Argument("constants", {"quote_date": "YYYY-MM-DD"})
        raise missing("quote_date", f"{found}: add quote_date (", date, "), or expiry_years.")
    raise missing("the expiry", "Add expiry_years, or both expiry and quote_date.")


def _observed(places: Mapping[str, str], missing: _Missing) -> tuple[set[str], str]:
    if "price" in places:
        return {"price"}, "price"
    if {"bid", "ask"} <= places.keys():
        return {"bid", "ask"}, "(bid + ask) / 2"
    if "iv" in places:
        return {"iv"}, "Black-76 price of iv"
    raise missing("the price", "Add price, or both bid and ask, or iv.")


def _forward_sources(
    frame: pl.DataFrame, places: Mapping[str, str], forwards: str, *, is_price: bool
) -> tuple[str, ...]:
    has_discount = "discount" in places or "rate" in places
    given = "forward" in places and has_discount
    spot = {"spot", "dividend_yield"} <= places.keys() and has_discount
    if forwards == BESIDE:
        return ("parity",) if is_price else ()
    if forwards != "auto":
        opened = {"given": given, "parity": is_price and _has_pairs(frame, places), "spot": spot}
        return (forwards,) if opened[forwards] else ()
    is_derived = is_price and "forward_from" in places  # a book written down: what was derived is refitted
    if given and not frame[places["forward"]].null_count() and not is_derived:
        return ("given",)
    if "forward" in places and not has_discount and not frame[places["forward"]].null_count():
        return ()  # half of what is needed was given: the other half must be given, too
    parity = is_price and (given or spot or _has_pairs(frame, places))
    return tuple(source for source, is_open in zip(FORWARD_SOURCES, (given, parity, spot), strict=True) if is_open)


def _has_pairs(frame: pl.DataFrame, places: Mapping[str, str]) -> bool:
    """Return whether any slice has calls and puts at enough strikes for a line."""
    return bool(_paired(rights(frame, places)).height)


def paired_rows(frame: pl.DataFrame, places: Mapping[str, str]) -> pl.DataFrame:
    """Return the rows of a slice that has calls and puts at enough strikes for a line; none if no slice has."""
    if frame.height > SOME_ROWS:  # most files have one among the first rows
        found = paired_rows(frame.head(SOME_ROWS), places)
        if found.height:
            return found
    named = rights(frame, places)
    slice_ = [role for role in SLICE if role in named.columns]
    of_one = named.join(_paired(named).head(1), on=slice_, how="semi", nulls_equal=True, maintain_order="left")
    return frame[of_one["at"]]


def rights(frame: pl.DataFrame, places: Mapping[str, str]) -> pl.DataFrame:
    """Return the columns that identify slices, strikes and rights, by role, and their place (``at``)."""
    roles = [role for role in (*SLICE, "strike", "right") if role in places]
    columns = [frame[places[role]].alias(role) for role in roles]
    return pl.DataFrame([_by_value(one) if one.name in _BY_VALUE else one for one in columns]).with_row_index("at")


def _by_value(column: pl.Series) -> pl.Series:
    """Return numbers as numbers: 100 and 100.0 are one strike. If a cell is not one, all as text that is as
    unambiguous."""
    if column.dtype != pl.String:
        return column
    number = column.str.strip_chars().cast(pl.Float64, strict=False)
    if number.null_count() == column.null_count():
        return number
    return pl.select(pl.coalesce(number.cast(pl.String), column)).to_series()


def _paired(named: pl.DataFrame) -> pl.DataFrame:
    """Return the slices that have calls and puts at enough strikes for a line; see ``rights``."""
    slice_ = [role for role in SLICE if role in named.columns]
    many = named.lazy().group_by([*slice_, "strike"]).agg(pl.col("right").n_unique().alias("rights"))
    pairs = many.filter(pl.col("rights") > 1).group_by(slice_).len("pairs")
    return pairs.filter(pl.col("pairs") >= PAIRS).select(slice_).collect()


def _money(places: Mapping[str, str], forward_sources: tuple[str, ...]) -> tuple[set[str], str]:
    needed = {"forward"} if "given" in forward_sources else set()
    if "spot" in forward_sources:
        needed |= {"spot", "dividend_yield"}
    if "discount" in places:
        needed, discount_from = needed | {"discount"}, "discount"
    elif "rate" in places:
        needed, discount_from = needed | {"rate"}, "exp(-rate * expiry_years)"
    else:
        discount_from = _DESCRIBED["parity"]
    if forward_sources[0] == "parity" and discount_from != _DESCRIBED["parity"]:
        discount_from = f"{discount_from}, else {_DESCRIBED['parity']}"
    return needed, discount_from


# The missing quantity in such an error.
NO_ROAD = ("put-call parity", "the discount", "the dividend yield", "the forward")


def _no_road(places: Mapping[str, str], missing: _Missing, forwards: str) -> ColumnError:
    if forwards == "parity":
        return missing(
            "put-call parity",
            "It takes prices of a call and a put of one strike and expiry; give forwards another way.",
        )
    if "discount" not in places and "rate" not in places:
        return missing(
            "the discount",
            "Add discount or rate (also if the rate is 0: ",
            Argument("constants", {"rate": 0}),
            ").",
        )
    if "spot" in places and "dividend_yield" not in places:
        return missing(
            "the dividend yield", "Spot alone gives no forward: add forward, or dividend_yield (also if it is 0)."
        )
    return missing("the forward", "Add forward, or spot and dividend_yield.")


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

    ``forward_sources`` are those available, the first to be tried first: "given", "parity", "spot".
    ``optional`` are columns of ``used`` whose cells may be empty, since another source may give what is missing.
    """

    places: Mapping[str, str]
    used: frozenset[str]
    forward_sources: tuple[str, ...]
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
    """
    problems = [name for name in frame.columns if name in QUARANTINE]  # a quarantine file that was corrected
    frame = frame.drop(problems)
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    places = {name: name for name in frame.columns if name in ALIASES and name not in empty} if vendor else {}
    places = places or _places(frame, empty)
    for role in constants or {}:
        if role not in ALIASES:
            raise UsageError(
                Argument("constants"), f": {role!r} is not a canonical column. They are {', '.join(ALIASES)}."
            )
        if role in places:
            raise ColumnError(
                Argument("constants"),
                f" gives {role}, but the file has it in column {places[role]!r}. Leave out one of the two.",
                role=role,
            )
        places[role] = f"{role} (constant)"
    frame = with_constants(frame, constants)
    routes = derivation_of(frame, places, empty, forwards=forwards)
    labels = tuple(name for name in frame.columns if name not in empty and name not in places.values())
    layout = Layout(
        places=places, used=routes.used, optional=routes.optional, labels=labels,
        forward_sources=routes.forward_sources,
        observed_from=routes.observed_from, expiry_from=routes.expiry_from, forward_from=routes.forward_from,
        discount_from=routes.discount_from,
        columns=tuple(replace(column, is_used=column.role in routes.used) for column in vendor)
        or (
            *_understood(frame, places, routes.used, empty),
            *(
                Column(name, None, "the problem, in a quarantine file: left out", is_used=False, is_kept=False)
                for name in problems
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


def once(column: pl.Series, function: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Return a function of each cell; computed for one cell if all are equal, which is common in files of one date."""
    if column.len() < 2 or column.null_count() or not (column == column[0]).all():
        return function(column)
    return function(column.head(1)).new_from_index(0, column.len())


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
    """Return the name of a column among the labels."""
    return LABEL_NAMES.get(str(role_or_name), str(role_or_name))
