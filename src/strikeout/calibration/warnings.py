"""Warnings about a calibration: what a user must not overlook, in sentences."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.coordinates import MEAN_REVERSION, VOL_OF_VOL
from strikeout.calibration.from_moments import coarseness
from strikeout.calibration.panels import NAMED
from strikeout.calibration.smiles import dated, dates_by_label, smile_warnings
from strikeout.calibration.summary import is_latent_free
from strikeout.statistics.losses import AskedLoss
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

FORGOTTEN = 5.0  # mean_reversion times the first expiry: exp(-5) = 0.7 % of the initial variance is left by then
DAYS = 365.0
LN_2 = 0.6931471805599453
RARE = 0.02  # jumps expected up to the last expiry
ONE_SIZE = 0.1  # jump_deviation over |jump_mean|
TRADING_DAYS = 252.0
WEEK = 7.0  # days
HALF = 0.5


def warnings(calibration: Calibration) -> tuple[str, ...]:
    """Return all warnings, the most important first."""
    found = [] if calibration.converged else [f"{calibration.termination}."]
    found += smile_warnings(calibration) if calibration.model.parameters.is_curve else _ends(calibration)
    found += _latent_warnings(calibration) if calibration.is_panel else _plain_warnings(calibration)
    found += _pooled_underlyings(calibration)
    found += dominated_fit(calibration)
    ratio = calibration.feller_ratio
    if calibration.feller == "warn" and ratio is not None and ratio < 1.0:
        found.append(f"Feller's condition is not met (ratio {ratio:.3g}, needs 1): the variance can touch zero.")
    if calibration.moments is None and AskedLoss.of(calibration.loss).redescends:
        found += _other_optima(calibration)
    elif len(calibration.starts) > 1 and calibration.agreement == 1:
        found.append(f"Only 1 of {len(calibration.starts)} starts ended here; the optimum may not be the only one.")
    return tuple(found)


def _other_optima(calibration: Calibration) -> list[str]:
    """Return a warning if starts ended at other optima of a loss that redescends."""
    others = [start for start in calibration.starts if start.termination.converged and not start.agrees]
    if not others:
        return []
    lowest = min(start.cost for start in others)
    return [
        f"The loss {calibration.loss} has several optima here: {many(len(others), 'start')} of "
        f"{len(calibration.starts)} ended at others, of cost {lowest:.4g} and more. This one has the lowest "
        f"cost found, {calibration.cost:.4g}; a lower one may exist."
    ]


def _ends(calibration: Calibration) -> list[str]:
    """Return one sentence per parameter that the quotes leave open, or that is on a bound."""
    dates = dates_by_label(calibration)
    found = [
        f"{dated(name, dates)} is {calibration.identifiability[name]}: quote more expiries and strikes, or fix it."
        for name in calibration.unidentified
    ]
    return found + [
        f"{dated(name, dates)} is on its bound {bound:g}; it has no standard error, and the others hold given it."
        for name, bound in calibration.on_bound.items()
    ]


def _pooled_underlyings(calibration: Calibration) -> list[str]:
    if calibration.moments is not None or "underlying" not in calibration.quotes.labels:
        return []
    count = len(set(calibration.quotes.labels["underlying"].tolist()))
    if count < 2:
        return []
    return [f"The quotes are of {count:,} underlyings, fitted as one: calibrate_many(by='underlying') fits each."]


def dominated_fit(calibration: Calibration) -> list[str]:
    """Return a warning if few quotes, with a zero bid or in their last week, dominate a fit of implied volatilities."""
    if calibration.settings.residual != "implied_vol" or calibration.moments is not None or calibration.quotes is None:
        return []
    from strikeout.calibration.fit_errors import quote_fits

    fits, quotes = quote_fits(calibration), calibration.used
    if "expiry_years" not in fits:  # quotes of features, not of options
        return []
    cost = np.nan_to_num(fits["weight"] * fits["vol_residual"] * fits["vol_residual"])
    total = float(cost.sum())
    bid = quotes.labels.get("bid")
    kinds = {("without a bid", "Q207=reject"): np.zeros(len(cost), bool) if bid is None else bid == 0.0}
    kinds["in their last week", "Q214=7,reject"] = fits["expiry_years"] * DAYS < WEEK
    found = []
    for (words, rule), few in kinds.items():
        share = float(cost[few].sum()) / total if total > 0.0 else 0.0
        count = int(few.sum())
        if share > HALF and count < HALF * len(cost):
            found.append(
                f"{share:.0%} of the squared errors in implied volatility are from {count:,} of "
                f"{many(len(cost), 'quote')}, {words}. The check {rule} leaves them out."
            )
    return found


def _plain_warnings(calibration: Calibration) -> list[str]:
    arbitrage = getattr(calibration.model, "arbitrage", None)  # of models that do not exclude it
    if arbitrage is None:
        found = [*fast_mean_reversion(calibration), *degenerate_jumps(calibration)]
    else:
        contracts = None if calibration.quotes is None else calibration.quotes.contracts
        dates = {at: names[0] for at, names in dates_by_label(calibration).items() if len(names) == 1}
        every = arbitrage(calibration.parameters, contracts, dates=dates)
        found = [*every[:NAMED]]
        if len(every) > NAMED:
            found.append(
                f"And {many(len(every) - NAMED, 'more arbitrage')}: "
                "calibration.model.arbitrage(calibration.parameters, calibration.quotes.contracts) lists all."
            )
    return found if calibration.moments is None else [*found, *coarseness(calibration)]


def _latent_warnings(calibration: Calibration) -> list[str]:
    latent, found = calibration.latent_name, []
    held = list(calibration.latent_on_bound)
    if held:
        found.append(
            f"{latent} is on its bound in {_named(held)}: it has no standard error there, and the rest holds given it."
        )
    free = [group for group in calibration.groups if is_latent_free(calibration, group)]
    if free:
        found.append(f"{latent} is free within its own size in {_named(free)}: quote more there, or leave them out.")
    alone = [group for group in calibration.groups if calibration.counts[group] == 1]
    if alone:
        found.append(f"There is only 1 quote in {_named(alone)}: it determines {latent} there and nothing else.")
    return found


def fast_mean_reversion(calibration: Calibration) -> list[str]:
    """Return a warning if mean reversion is too fast to be identified from the shortest expiry.

    As mean_reversion and vol_of_vol grow together, Heston's model tends to a Levy process, the normal inverse Gaussian
    one, which depends on a ratio of the two only: the cost hardly changes along the way.
    """
    speed, contracts = calibration.parameters.get(MEAN_REVERSION), getattr(calibration.quotes, "contracts", None)
    if speed is None or contracts is None or VOL_OF_VOL not in calibration.parameters:
        return []
    first = float(np.min(contracts.expiry))
    if not speed * first > FORGOTTEN:
        return []
    return [
        f"Variance returns to its mean before the first expiry: half of any excess is gone in {_spell(LN_2 / speed)}, "
        f"and the first expiry is in {_spell(first)}. The quotes determine vol_of_vol / mean_reversion, and little "
        "more of either or of initial_variance."
    ]


def degenerate_jumps(calibration: Calibration) -> list[str]:
    """Return one sentence if the fitted jumps are not what jumps are for: rare, of one size, or lost in ordinary moves.

    Such an end is a corner of the model: prices then depend on one product of the jump parameters, and characteristic
    functions decay so slowly that a search takes many times as long.
    """
    found, contracts = calibration.parameters, getattr(calibration.quotes, "contracts", None)
    if contracts is None or not {"jump_intensity", "jump_mean", "jump_deviation"} <= set(found):
        return []
    intensity, mean, deviation = found["jump_intensity"], found["jump_mean"], found["jump_deviation"]
    expected, size = intensity * float(np.max(contracts.expiry)), sqrt(mean * mean + deviation * deviation)
    ordinary = sqrt(found.get("initial_variance", 0.0) / TRADING_DAYS)
    if expected < RARE:
        reason = f"{expected:.2g} jumps are expected up to the last expiry, so the quotes hardly depend on their size"
    elif deviation < ONE_SIZE * abs(mean):
        reason = f"all of them have nearly one size ({mean:.3g}, deviation {deviation:.2g})"
    elif size < ordinary:
        reason = f"one of them ({size:.2g}) is smaller than the move of an ordinary day ({ordinary:.2g})"
    else:
        return []
    return [
        f"The jumps are degenerate: {reason}. Fix jump_mean and jump_deviation, or compare with Heston, "
        "which has no jumps."
    ]


def _spell(years: float) -> str:
    days = DAYS * years
    number, unit = (f"{24.0 * days:.2g}", "hour") if days < 1.0 else (f"{days:.3g}", "day")
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


def _named(groups: list[Any]) -> str:
    shown = ", ".join(map(str, groups[:NAMED]))
    rest = len(groups) - NAMED
    return f"{many(len(groups), 'group')} ({shown}{f' and {rest} more' if rest > 0 else ''})"
