"""A book's results for other programs: JSON, and a few lines of Python that build the model in QuantLib."""

from __future__ import annotations

import json
from datetime import date

from strikeout.book.describe import described_version
from strikeout.book.version import Version
from strikeout.errors import RefusedError
from strikeout.wording import many

QUANTLIB_ORDER = ("initial_variance", "mean_reversion", "long_variance", "vol_of_vol", "correlation")
STALE = "Stale when this was written: quotes came to the book or went since it was calibrated."


def as_json(version: Version, *, book: str, is_current: bool) -> str:
    """The calibration as JSON that people and programs read; a standard error that does not exist is null."""
    content = {"book": book, "entry": version.entry, "current": is_current, **described_version(version)}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def as_quantlib(version: Version, *, book: str, is_current: bool) -> str:
    """Python that builds this Heston model in QuantLib, a panel's on its last day; spot and rates are yours to set.

    No text of the quotes enters the program: numbers, the book's hash, and a day that was parsed as one.

    Raises:
        RefusedError: the book is calibrated with another model.
    """
    if not version.model.startswith("heston/"):
        raise RefusedError(
            f"The book is calibrated with {version.model.partition('/')[0]}; Python for QuantLib is written for Heston "
            "only. Export .json, which every model has.",
            model=version.model,
        )
    values, when = dict(version.parameters), ""
    if version.latent:
        last = list(version.latent)[-1]
        values["initial_variance"], when = version.latent[last][0], _of_day(last)
    v0, kappa, theta, sigma, rho = (float(values[name]) for name in QUANTLIB_ORDER)
    quotes, stale = many(version.count, "quote"), "" if is_current else f"\n# {STALE}\n"
    return f'''"""Heston's model as book {book} calibrated it to {quotes} (entry {version.entry})."""
{stale}
import QuantLib as ql

today = ql.Date.todaysDate()  # yours to set, like the three lines below
spot = ql.QuoteHandle(ql.SimpleQuote(100.0))
rate = ql.YieldTermStructureHandle(ql.FlatForward(today, 0.0, ql.Actual365Fixed()))
dividend = ql.YieldTermStructureHandle(ql.FlatForward(today, 0.0, ql.Actual365Fixed()))

process = ql.HestonProcess(
    rate,
    dividend,
    spot,
    {v0!r},  # initial variance{when}, v0
    {kappa!r},  # mean reversion, kappa
    {theta!r},  # long variance, theta
    {sigma!r},  # vol of vol, sigma
    {rho!r},  # correlation, rho
)
model = ql.HestonModel(process)
engine = ql.AnalyticHestonEngine(model)
'''


def _of_day(group: object) -> str:
    """ " of 2024-01-31" if the group is a day; of any other text nothing, since a line break would end the comment."""
    try:
        return f" of {date.fromisoformat(str(group)).isoformat()}"
    except ValueError:
        return " of the last group"
