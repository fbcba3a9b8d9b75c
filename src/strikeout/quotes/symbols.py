"""Parse the name of a contract: its class, expiry, strike and right, for published naming schemes.

occ        SPXW  260821C05000000        Options Symbology Initiative: root, yymmdd, C or P, 1000 * strike, 8 digits
deribit    XRP_USDC-27MAR26-2d5-C       docs.deribit.com, naming; d is the decimal point
okx        ETH-USD-260807-1950-P        OKX API guide, instId of options
barchart   SPY|20210115|25.00C          as exported
bloomberg  SPX US 12/20/24 C5000 Index  as exported
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

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
