"""The names by which conditions (``where``) and groups (``by``) call the columns of quotes: the same for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.quotes.features import Features

if TYPE_CHECKING:
    from strikeout.quotes.columns import Column as FileColumn
    from strikeout.quotes.quotes import Quotes

Column = Callable[[], NDArray[Any]]
DAYS_PER_YEAR = 365.0


def own_columns(quotes: Quotes) -> dict[str, Column]:
    """Return the columns that all quotes have, whatever their labels."""
    c = quotes.contracts
    every: dict[str, Column] = {
        "id": lambda: quotes.ids,
        "price": lambda: quotes.observed,
        "weight": lambda: quotes.weight,
        "spread": lambda: quotes.spread,
    }
    if isinstance(c, Features):
        return every
    return every | {
        "strike": lambda: c.strike,
        "right": lambda: np.where(c.is_call, "C", "P"),
        "expiry_years": lambda: c.expiry,
        "forward": lambda: c.forward,
        "discount": lambda: c.discount,
        "log_moneyness": lambda: c.log_moneyness,
    }


def computed_columns(quotes: Quotes) -> dict[str, Column]:
    """Return columns that are computed from others, unless a label has the name: days, strike over forward, month."""
    c, labels = quotes.contracts, quotes.labels
    if isinstance(c, Features):
        return {}
    made: dict[str, Column] = {
        "is_call": lambda: c.is_call,
        "maturity": lambda: c.expiry * DAYS_PER_YEAR,
        "moneyness": lambda: c.strike / c.forward,
    }
    if "date" in labels:
        made["month"] = lambda: np.array([str(day)[:7] for day in labels["date"].tolist()], dtype=object)
    taken = {name.lower() for name in labels}
    return {name: column for name, column in made.items() if name not in taken}


def full_name(name: str, known: Iterable[str]) -> str | None:
    """Return the column that a name means: the name itself in any case, or the column of which it is another name."""
    by_case = {one.lower(): one for one in known}
    if name.lower() in by_case:
        return by_case[name.lower()]
    from strikeout.quotes.columns import ALIASES, label_name

    for role, names in ALIASES.items():
        if name.lower() in (role, *names) and label_name(role).lower() in by_case:
            return by_case[label_name(role).lower()]
    return None


def header_names(columns: Iterable[FileColumn]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the columns of a file mean in a condition, and why the others cannot be used, by header.

    A column that only calls or only puts have is empty for the other side. If a header is repeated for puts, as in
    "Bid" and "Bid (2)", the first means both sides, as the name bid does.
    """
    from strikeout.quotes.columns import label_name

    meant: dict[str, list[FileColumn]] = {}
    for column in columns:
        if column.name != "-":
            meant.setdefault(column.name, []).append(column)
    names, reasons = {}, {}
    for header, found in meant.items():
        roles = [column.role for column in found if column.role is not None]
        if len(roles) > 1:
            reasons[header] = f"is read as {', '.join(map(label_name, roles))}. Use these names"
        elif roles:
            label = f'"{label_name(roles[0])}"'
            side = "" if f"{header} (2)" in meant else found[0].side
            names[header] = f"iif(\"right\" = '{side}', {label}, NULL)" if side else label
        elif not found[0].is_kept:
            reasons[header] = "is left out when this file is read"
    return names, reasons


def by_plain_header(names: Mapping[str, str]) -> dict[str, str]:
    """Return the mapping with headers in lower case, as they are and with underscores for blanks."""
    exact = {header.strip().lower(): value for header, value in names.items()}
    return {header.replace(" ", "_"): value for header, value in exact.items()} | exact
