"""Which quotes, days, expiries or sources the shared parameters of a panel hang on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.confirmation import refit_without
from strikeout.assurance.deletions import Deletions
from strikeout.assurance.groups import Groups
from strikeout.assurance.indicator import sizes
from strikeout.assurance.panel_deletions import (
    Cells,
    PanelEvidence,
    cells_of,
    days_of,
    followers,
    outer_sums,
    panel_deletions,
)
from strikeout.calibration.identifiability import INFLATION
from strikeout.kernels.products import inner, product
from strikeout.statistics.linearize import rows
from strikeout.statistics.objective import objective_of

if TYPE_CHECKING:
    from strikeout.calibration.panel_calibration import PanelCalibration

Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

# The largest price change looks at every quote for every group. Beyond this many pairs only the most influential
# thousand groups get one.
PAIRS = 400_000_000
MOST = 1000


def panel_columns(calibration: PanelCalibration, groups: Groups) -> Columns:
    """The columns of ``influence`` for a panel: what striking out each group does to the shared parameters and prices.

    Latent parameters follow; a day that goes as a whole takes its own along.

    Raises:
        numpy.linalg.LinAlgError: the quotes do not determine the shared parameters.
    """
    evidence, prices = evidence_of(calibration)
    days = days_of(evidence)
    cells = cells_of(evidence, groups.number, days)
    found = panel_deletions(evidence, cells, days, groups.count)
    names = _free(calibration)
    space = calibration.model.parameters
    first = calibration.theta(calibration.groups[0])  # the latent one, of whichever day, is not looked at
    scale = np.array(sizes(space, tuple(first.values())))[[space.names.index(name) for name in names]]
    single = "id" in groups.keys and groups.count == len(calibration.quotes)
    sign = np.sign(evidence.rows[:, -1]) if single else 1.0
    price, rmse = _money(calibration, evidence, prices, cells, days, found)
    columns: Columns = {
        **groups.keys,
        "count": found.count,
        "cooks_d": found.cooks_d,
        "leverage": found.leverage,
        "resid_studentized": sign * found.studentized,
        "price_change": price,
        "rmse_change": rmse,
        "indicator": found.reach * np.max(np.abs(found.move) / scale, axis=1, initial=0.0),
        "is_identified": found.is_identified,
    }
    columns |= {f"dfbetas_{name}": found.dfbetas[:, i] for i, name in enumerate(names)}
    return columns | {f"change_{name}": found.move[:, i] for i, name in enumerate(names)}


def evidence_of(calibration: PanelCalibration) -> tuple[PanelEvidence, Floats]:
    """The quotes of a panel as weighted rows at its parameters, in the order of the quotes, and as rows of prices.

    A latent parameter on a bound is held: its column is zero.

    Raises:
        UsageError, RefusedError: as ``calibrate``, of the quotes and the weights.
    """
    how, model, quotes = calibration.settings, calibration.model, calibration.quotes
    space, latent = model.parameters, calibration.latent_name
    columns = [space.names.index(name) for name in (*_free(calibration), latent)]
    weighted, prices = (np.zeros((len(quotes), len(columns) + 1)) for _ in range(2))
    day = np.zeros(len(quotes), np.intp)
    weights = how.weights
    for number, (group, places) in enumerate(calibration.rows.items()):
        day[places] = number
        if group not in calibration.latent:  # no quote of it counts
            continue
        part, theta = quotes[places], space.vector(calibration.theta(group))
        objective, _ = objective_of(part, residual=how.residual, weights=weights)
        difference, jacobian = rows(objective, model, theta)
        at = places[objective.order]
        weighted[at, :-1] = objective.root_weight[:, None] * jacobian[:, columns]
        weighted[at, -1] = objective.root_weight * difference
        value, jacobian = model.linearize(theta, part.contracts)
        prices[places, :-1], prices[places, -1] = jacobian[:, columns], part.observed - value
        if group in calibration.latent_on_bound:
            weighted[at, -2] = prices[places, -2] = 0.0
    inflation = getattr(model, "inflation", INFLATION)
    return PanelEvidence(weighted, day, len(calibration.rows), inflation), prices


def panel_confirmed(
    calibration: PanelCalibration, number: NDArray[np.intp], first: NDArray[np.intp], count: int
) -> Columns:
    """The panel calibrated anew without each of the first groups, as columns; not-a-number where it gives none."""
    names = ("price_change", "rmse_change", *calibration.parameters)
    out: Columns = {f"confirmed_{name}": np.full(count, np.nan) for name in names}
    out["confirmed_status"] = np.full(count, "", object)
    quotes = calibration.quotes
    for row, group in enumerate(first):
        kept = number != group
        # A move is between parameters of the same name: the same panel.
        after, status = refit_without(calibration, quotes.ids[~kept], panel=calibration.panel)
        out["confirmed_status"][row] = status.value
        if after is None:
            continue
        out["confirmed_price_change"][row] = _farthest(calibration, after, kept)
        out["confirmed_rmse_change"][row] = after.rmse - calibration.rmse
        for name, value in after.parameters.items():
            out[f"confirmed_{name}"][row] = value - calibration.parameters[name]
    return out


def _farthest(before: PanelCalibration, after: PanelCalibration, kept: NDArray[np.bool_]) -> float:
    """The largest change of the price of a contract whose quote stays, its forward as it was."""
    quotes, found = before.quotes, 0.0
    for group, places in before.rows.items():
        left = places[kept[places]]
        if len(left) and group in after.latent and group in before.latent:
            then = after.model.price(after.theta(group), quotes.contracts[left])
            apart = then - (quotes.observed[left] - before.residuals[left])
            found = max(found, float(np.abs(apart).max()))
    return found


def _free(calibration: PanelCalibration) -> list[str]:
    held = {*calibration.fixed, *calibration.on_bound}
    return [name for name in calibration.parameters if name not in held]


def _money(
    calibration: PanelCalibration, evidence: PanelEvidence, prices: Floats, cells: Cells, days: Floats, found: Deletions
) -> tuple[Floats, Floats]:
    """The largest price change over what is left, and the RMSE of that after less that of the book now."""
    # (1, -move) says where every residual goes: by its own sensitivities, and by the latent parameter of its day.
    ahead = np.concatenate([np.ones((len(found.move), 1)), -found.move], axis=1)
    follow, left = followers(days), followers(cells.left)
    priced = np.concatenate([prices[:, -1:], prices[:, :-1]], axis=1) * evidence.counted[:, None]  # (r, J, J latent)
    squares = outer_sums(priced, evidence.day, evidence.days)
    rest = squares[cells.day] - outer_sums(priced, cells.of_row, len(cells.day))
    now, then = _followed(squares, follow), _followed(rest, left)
    part = ahead[cells.group]
    change = inner(inner(then - now[cells.day], part[:, None, :]), part)
    total = inner(product(ahead, now.sum(axis=0)), ahead) + np.bincount(cells.group, change, len(ahead))
    count = evidence.counted.sum() - np.bincount(cells.group[cells.of_row], evidence.counted, len(ahead))
    with np.errstate(divide="ignore", invalid="ignore"):
        rmse = np.sqrt(np.maximum(total, 0.0) / count) - calibration.rmse
    return _largest(evidence, priced, ahead, cells, follow, left, rank=found.cooks_d), rmse


def _followed(squares: Floats, follow: Floats) -> Floats:
    """The sums of squares as a form in (1, -move) alone: the latent parameter of each day follows."""
    own, latent = squares[:, :-1, :-1], squares[:, :-1, -1]
    cross = latent[:, :, None] * follow[:, None, :]
    return (
        own
        - cross
        - cross.transpose(0, 2, 1)
        + squares[:, -1, -1, None, None] * follow[:, :, None] * follow[:, None, :]
    )


def _largest(
    evidence: PanelEvidence, priced: Floats, ahead: Floats, cells: Cells, follow: Floats, left: Floats, *, rank: Floats
) -> Floats:
    """The largest price change a group; not-a-number for all but the first thousand where there are too many."""
    out = np.full(len(ahead), np.nan)
    many = len(priced) * len(ahead) > PAIRS
    order = np.argsort(evidence.day, kind="stable")
    edges = np.searchsorted(evidence.day[order], np.arange(evidence.days + 1))
    b, owner = priced[order], cells.of_row[order]
    moving = np.asfortranarray(b[:, :-1] - b[:, -1:] * follow[evidence.day[order]])  # added column by column
    by_group = np.argsort(cells.group, kind="stable")
    ends = np.searchsorted(cells.group[by_group], np.arange(len(ahead) + 1))
    for group in (np.argsort(-rank, kind="stable")[:MOST] if many else np.arange(len(ahead))).tolist():
        change = np.abs(inner(moving, ahead[group]) - b[:, 0])
        for cell in by_group[ends[group] : ends[group + 1]].tolist():
            day = slice(edges[cells.day[cell]], edges[cells.day[cell] + 1])
            anew = b[day, :-1] - b[day, -1:] * left[cell]
            change[day] = np.where(owner[day] == cell, 0.0, np.abs(inner(anew, ahead[group]) - b[day, 0]))
        out[group] = change.max(initial=0.0)
    return out
