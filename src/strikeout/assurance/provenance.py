"""How the quotes of a certificate were read, and digests by which the retained ones are recognised.

The digests are of retained quotes alone. They are plain, so that anyone can compare them: a certificate is removed with
any quote that it retained, unlike an entry of the ledger. The settings are stated by the issuer: no check can confirm
how a file was read that the reader does not have.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from hashlib import file_digest, sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from strikeout.assurance.certificate import Certificate
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.parity import AMERICAN_MID
from strikeout.quotes.quotes import Quotes

BOOK = "book"  # the layout of quotes that a book retains


def with_reading(
    certificate: Certificate,
    retained: Quotes | None,
    *,
    layout: str,
    settings: Mapping[str, Any],
    file: str | PathLike[str] | None = None,
) -> Certificate:
    """Return an unsigned certificate that states how its quotes were read, with digests of the retained ones.

    Args:
        retained: None if the issuer did not read them.
        layout: of the file that was read, such as the name of a profile.
        settings: with which it was read, by name; how many American prices are read as European is added.
        file: with the retained quotes.
    """
    mid = None if retained is None else retained.labels.get(AMERICAN_MID)
    converted = 0 if mid is None else int(np.count_nonzero(np.isfinite(mid)))
    settings = {**settings, **({"American prices converted": converted} if converted else {})}
    reading: dict[str, Any] = {
        "layout": layout,
        "settings": {name: str(value) for name, value in settings.items()},
    }
    if retained is not None:
        reading["quotes"] = digest_of_quotes(retained)
    if file is not None:
        reading["file"] = digest_of_file(file)
    return replace(certificate, reading=reading, signed=None)


def digest_of_file(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with Path(path).open("rb") as data:
        return file_digest(data, "sha256").hexdigest()


def digest_of_quotes(quotes: Quotes) -> str:
    """Return the SHA-256 of ids, contracts, prices, weights and spreads in the order of ids, whatever file has them.

    Forwards and discounts that are derived are left out: they follow from the other quotes.

    >>> from strikeout import paper
    >>> quotes = paper.quotes("small")
    >>> digest_of_quotes(quotes) == digest_of_quotes(quotes[::-1])
    True
    """
    made = is_derived(quotes)
    c = quotes.contracts
    columns = getattr(c, "columns", None)
    numbers = (
        [np.where(made, 0.0, c.forward), np.where(made, 0.0, c.discount), c.strike, c.expiry, c.is_call]
        if columns is None
        else [columns[name] for name in sorted(columns)]
    )
    spread = np.where(np.isnan(quotes.spread), -1.0, quotes.spread)
    rows = np.column_stack([*(np.asarray(one, float) for one in numbers), quotes.observed, quotes.weight, spread])
    names = [name.encode("utf-8", "surrogatepass") for name in quotes.ids.tolist()]
    whole = sha256()
    for place in sorted(range(len(names)), key=names.__getitem__):
        whole.update(struct.pack("<Q", len(names[place])) + names[place])
        whole.update(rows[place].astype("<f8").tobytes())
    return whole.hexdigest()


def reading_line(reading: Mapping[str, Any]) -> str:
    """Return how the quotes were read, in one line."""
    if reading["layout"] == BOOK:
        return " | ".join(f"{name}: {line}" for name, line in reading["settings"].items())
    return line_of(reading["layout"], reading["settings"])


def line_of(layout: str, settings: Mapping[str, str]) -> str:
    """Return the layout and the settings that are not the defaults, in one line."""
    return f"{layout}; {', '.join(f'{name} {value}' for name, value in settings.items()) or 'default settings'}"
