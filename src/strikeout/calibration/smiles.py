"""Parameters of smiles by expiry: dates instead of years in their names, and one row per smile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.quote_fits import quote_fits
from strikeout.models.expiries import label
from strikeout.models.svi import SVI
from strikeout.quotes.contracts import Features
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

NAMED = 3  # expiries in a warning


def dates_by_label(calibration: Calibration) -> dict[str, tuple[str, ...]]:
    """Return the expiry dates of the quotes by the label of their smile, such as "[0.25]"; empty if unknown."""
    quotes = None if calibration.moments is not None else calibration.quotes
    if quotes is None or isinstance(quotes.contracts, Features) or "expiry_date" not in quotes.labels:
        return {}
    found: dict[str, set[str]] = {}
    for years, date in set(zip(quotes.contracts.expiry.tolist(), map(str, quotes.labels["expiry_date"]), strict=True)):
        found.setdefault(label(years), set()).add(date)
    return {name: tuple(sorted(dates)) for name, dates in found.items()}


def dated_names(calibration: Calibration) -> dict[str, str]:
    """Return the names of parameters to show: those of one expiry date carry it instead of years."""
    dates = dates_by_label(calibration)
    return {name: dated(name, dates) for name in calibration.parameters}


def dated(name: str, dates: dict[str, tuple[str, ...]]) -> str:
    """Return a parameter's name with its expiry date, if it has one; quotes of several dates may share an expiry.

    >>> dated("left[0.25]", {"[0.25]": ("2024-03-15",)}), dated("left[0.5]", {"[0.5]": ("2024-06-14", "2024-06-21")})
    ('left[2024-03-15]', 'left[0.5]')
    """
    word, bracket, rest = name.partition("[")
    found = dates.get(bracket + rest, ())
    return f"{word}[{found[0]}]" if len(found) == 1 else name


def has_smiles(calibration: Calibration) -> bool:
    """Return whether the parameters are those of raw SVI smiles, which are shown one per row."""
    model = calibration.model
    return isinstance(model, SVI) and model.form == "raw" and calibration.moments is None


def smile_table(calibration: Calibration) -> Table:
    """Return one row per raw SVI smile: Gatheral's letters, what the quotes leave open, and the fit error."""
    rows = [
        (
            smile["expiry"],
            *(number(smile[letter]) for letter in ("a", "b", "rho", "m", "sigma")),
            f"{smile['quotes']:,}",
            number(smile["vol_points"], ".3g"),
            ", ".join([f"{name} on its bound" for name in smile["on_bound"]] + [f"{n} open" for n in smile["open"]]),
        )
        for smile in smile_records(calibration)
    ]
    heads = ("expiry", "a", "b", "rho", "m", "sigma", "quotes", "vol points", "note")
    return Table(heads, rows, numbers=(1, 2, 3, 4, 5, 6, 7), whole=(0,), spare=(8,))


def smile_records(calibration: Calibration) -> list[dict[str, Any]]:
    """Return the smiles of raw SVI as plain values, in the order of their expiries."""
    model, quotes = calibration.model, calibration.quotes
    assert isinstance(model, SVI)
    assert quotes is not None
    dates, names = dates_by_label(calibration), model.parameters.names
    expiry = np.array([label(T) for T in quotes.contracts.expiry.tolist()])
    fits = quote_fits(calibration)
    points = 100.0 * (np.asarray(fits["market_vol"], float) - np.asarray(fits["model_vol"], float))
    found = []
    for at, letters in model.raw(calibration.parameters, quotes.contracts).items():
        here = points[expiry == at]
        known = here[np.isfinite(here)]
        own = [name for name in names if name.endswith(at)]
        found.append(
            {
                "expiry": " and ".join(dates.get(at, ())[:NAMED]) or f"{at[1:-1]} years",
                "years": float(at[1:-1]),
                **letters,
                "quotes": int(np.count_nonzero(expiry == at)),
                "vol_points": float(np.sqrt(np.mean(known * known))) if known.size else None,
                "on_bound": [name.removesuffix(at) for name in own if name in calibration.on_bound],
                "open": [name.removesuffix(at) for name in own if name in calibration.unidentified],
            }
        )
    return found


def smile_warnings(calibration: Calibration) -> list[str]:
    """Return one sentence per parameter of a curve that ends on bounds or stays open, with the expiries."""
    dates, found = dates_by_label(calibration), []
    for held, words in (
        (calibration.on_bound, "is on its bound"),
        (calibration.unidentified, "is left open by the quotes"),
    ):
        kinds: dict[str, list[str]] = {}
        for name in held:
            word = name.partition("[")[0]
            kinds.setdefault(word, []).append(dated(name, dates).partition("[")[2].rstrip("]"))
        for word, where in kinds.items():
            shown = ", ".join(where[:NAMED]) + (", ..." if len(where) > NAMED else "")
            at = f" in {many(len(where), 'expiry', 'expiries')} ({shown})" if where[0] else ""
            found.append(f"{word} {words}{at}: no standard error there; the smile between the quotes is determined.")
    shared = [label for label, several in dates.items() if len(several) > 1]
    if shared:
        found.append(
            f"{many(len(shared), 'smile')} of {len(dates):,} pool quotes of several dates with the same time to expiry."
            " Calibrate each date apart: calibrate_many(quotes, model, by='date'), or --by date."
        )
    return found
