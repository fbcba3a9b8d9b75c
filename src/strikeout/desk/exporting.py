"""A book's results for other programs: JSON, and a few lines of Python that build the model in QuantLib."""

from __future__ import annotations

import json
from typing import Any

from strikeout.desk.version import Version
from strikeout.errors import RefusedError

QUANTLIB_ORDER = ("initial_variance", "mean_reversion", "long_variance", "vol_of_vol", "correlation")


def as_json(version: Version, *, book: str) -> str:
    """The calibration as JSON that people and programs read; a standard error that does not exist is null."""
    content = {
        "book": book,
        "entry": version.entry,
        "model": version.model,
        "parameters": dict(version.parameters),
        "standard_errors": {name: value if value == value else None for name, value in version.standard_errors.items()},
        "rmse": version.rmse,
        "count": version.count,
        "converged": version.converged,
        "termination": version.termination,
        "state": version.state,
        **_path(version),
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def as_quantlib(version: Version, *, book: str) -> str:
    """Python that builds this Heston model in QuantLib, a panel's on its last day; spot and rates are yours to set.

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
        values["initial_variance"], when = version.latent[last][0], f" of {last}"
    v0, kappa, theta, sigma, rho = (values[name] for name in QUANTLIB_ORDER)
    return f'''"""Heston's model as book {book} calibrated it to {version.count:,} quotes (entry {version.entry})."""

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


def _path(version: Version) -> dict[str, Any]:
    """The latent parameters of a panel; nothing for a plain calibration."""
    if not version.latent:
        return {}
    errors = {group: error if error == error else None for group, (_, error) in version.latent.items()}
    return {"latent": {g: value for g, (value, _) in version.latent.items()}, "latent_standard_errors": errors}
