"""Write what a book holds for others: quotes, the calibration as JSON, and Python for QuantLib."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

from strikeout.book.records import Snapshot
from strikeout.book.version import Version
from strikeout.errors import RefusedError, UsageError
from strikeout.text import many

QUANTLIB_ORDER = ("initial_variance", "mean_reversion", "long_variance", "vol_of_vol", "correlation")
STALE = "Stale when this was written: quotes were added or removed since the book was calibrated."
Writer = Callable[[Path], Path]


def export(seen: Snapshot, path: Path) -> Path:
    """Write the quotes held (.csv, .parquet), the calibration (.json), or Python for QuantLib (.py)."""
    ending = path.suffix.lower()
    if ending in (".csv", ".parquet"):
        from strikeout.quotes.writing import write_quotes

        return hand_out(seen, path, partial(write_quotes, seen.quotes))
    if ending not in (".json", ".py"):
        raise UsageError(f"{path.name}: exports are .csv, .parquet, .json or .py. Give the file one of them.")
    from strikeout.quotes.writing import replace_file

    written = as_json if ending == ".json" else as_quantlib
    text = written(seen.check_calibrated(), book=seen.name, is_current=seen.is_current)
    return replace_file(path, lambda part: part.write_text(text, encoding="utf-8"))


def hand_out(seen: Snapshot, path: Path, write: Writer, *, what: str = "export") -> Path:
    """Write a file that shows quotes and enter it in the ledger, so that an erasure of its quotes deletes it."""
    held = seen.store.counts().retained
    written: Path | None = None
    try:
        with seen.session.writing(seen.position) as book:
            written = write(path)  # first: the book records the digest of its bytes
            book.record_file(written)
            book.enter(what, None, counts={"exported": held})
    except BaseException:
        if written is not None:  # the book has no record of it
            written.unlink(missing_ok=True)
        raise
    return written


def as_json(version: Version, *, book: str, is_current: bool) -> str:
    """Return the calibration as JSON; a standard error that does not exist is null."""
    content = {"book": book, "entry": version.entry, "current": is_current, **version.to_dict()}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def as_quantlib(version: Version, *, book: str, is_current: bool) -> str:
    """Return Python that builds this Heston model in QuantLib, a panel's on its last day; set spot and rates yourself.

    No text of the quotes enters the program: numbers, the book's hash, and a day that was parsed as one.
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
    """Return " of 2024-01-31" if the group is a day; other text could end the comment with a line break."""
    try:
        return f" of {date.fromisoformat(str(group)).isoformat()}"
    except ValueError:
        return " of the last group"
