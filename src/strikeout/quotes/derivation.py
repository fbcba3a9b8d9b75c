"""What is computed from what: the way from the columns of a table to expiries, prices, discounts and forwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from strikeout.errors import ColumnError, UsageError
from strikeout.quotes.parity import PAIRS
from strikeout.quotes.slices import MOMENT
from strikeout.text import Argument, Mention

ROADS = ("given", "parity", "spot")
BESIDE = "beside"  # parity, of slices whose other quotes are elsewhere: in the book these will be part of
SLICE = (*MOMENT, "expiry", "expiry_years")
_BY_VALUE = ("strike", "expiry_years")
_TOLD = {
    "given": "forward",
    "parity": "put-call parity of its slice",
    "spot": "spot * exp(-dividend_yield * expiry_years) / discount",
}


@dataclass(frozen=True)
class Derivation:
    """The columns that prices depend on, those of them with cells that may be empty, and where each quantity is from.

    ``roads`` are the ways to a forward that are open, in the order in which they are tried for each slice.
    """

    used: frozenset[str]
    optional: frozenset[str]
    roads: tuple[str, ...]
    observed_from: str
    expiry_from: str
    forward_from: str
    discount_from: str


def derivation_of(
    frame: pl.DataFrame, places: Mapping[str, str], empty: list[str], *, forwards: str = "auto"
) -> Derivation:
    """Return how every quantity of a quote is found in this table.

    Raises:
        ColumnError: something a quote needs can be found in no way.
        UsageError: ``forwards`` is not a source of forwards.
    """
    if forwards not in ("auto", BESIDE, *ROADS):
        raise UsageError(f"forwards is {forwards!r}; it is one of auto, {', '.join(ROADS)}.")
    missing = _Missing([name for name in frame.columns if name not in empty], len(empty))
    for role, remedy in (("strike", "Add a column strike."), ("right", "Add a column right holding C or P.")):
        if role not in places:
            raise missing(role, remedy)
    used = {"strike", "right"} | ({"id", "weight"} & places.keys())
    expiry, expiry_from = _expiry(places, missing)
    observed, observed_from = _observed(places, missing)
    roads = _roads(frame, places, forwards, is_price=observed != {"iv"})
    if not roads:
        raise _no_road(places, missing, forwards)
    needed, discount_from = _money(places, roads)
    return Derivation(
        used=frozenset(used | expiry | observed | needed),
        # A column that no other source could replace keeps the rule that its cells are filled.
        optional=frozenset() if len(roads) == 1 and roads != ("parity",) else frozenset(needed),
        roads=roads,
        observed_from=observed_from,
        expiry_from=expiry_from,
        forward_from=", else ".join(_TOLD[road] for road in roads),
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
        told = f"{places['expiry']} is taken for a date, and the time to it needs both expiry and quote_date"
        date = Argument("constants", {"quote_date": "YYYY-MM-DD"})
        raise missing("quote_date", f"{told}: add quote_date (", date, "), or expiry_years.")
    raise missing("the expiry", "Add expiry_years, or both expiry and quote_date.")


def _observed(places: Mapping[str, str], missing: _Missing) -> tuple[set[str], str]:
    if "price" in places:
        return {"price"}, "price"
    if {"bid", "ask"} <= places.keys():
        return {"bid", "ask"}, "(bid + ask) / 2"
    if "iv" in places:
        return {"iv"}, "Black-76 price of iv"
    raise missing("the price", "Add price, or both bid and ask, or iv.")


def _roads(frame: pl.DataFrame, places: Mapping[str, str], forwards: str, *, is_price: bool) -> tuple[str, ...]:
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
    return tuple(road for road, is_open in zip(ROADS, (given, parity, spot), strict=True) if is_open)


def _has_pairs(frame: pl.DataFrame, places: Mapping[str, str]) -> bool:
    """Return whether any slice has calls and puts at enough strikes for a line."""
    return bool(_paired(rights(frame, places)).height)


def paired_rows(frame: pl.DataFrame, places: Mapping[str, str]) -> pl.DataFrame:
    """Return the rows of a slice that has calls and puts at enough strikes for a line; none if no slice has."""
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


def _money(places: Mapping[str, str], roads: tuple[str, ...]) -> tuple[set[str], str]:
    needed = {"forward"} if "given" in roads else set()
    if "spot" in roads:
        needed |= {"spot", "dividend_yield"}
    if "discount" in places:
        needed, discount_from = needed | {"discount"}, "discount"
    elif "rate" in places:
        needed, discount_from = needed | {"rate"}, "exp(-rate * expiry_years)"
    else:
        discount_from = _TOLD["parity"]
    if roads[0] == "parity" and discount_from != _TOLD["parity"]:
        discount_from = f"{discount_from}, else {_TOLD['parity']}"
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
