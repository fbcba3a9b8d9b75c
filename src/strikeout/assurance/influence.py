"""Which quotes, days, expiries or sources the parameters hang on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.confirmation import refit_without
from strikeout.assurance.deletions import Deletions, Evidence, deletions
from strikeout.assurance.groups import By, Groups, groups_of
from strikeout.assurance.indicator import sizes
from strikeout.assurance.panel_influence import panel_columns, panel_confirmed
from strikeout.calibration.calibrate import LOSSES
from strikeout.calibration.identifiability import INFLATION
from strikeout.calibration.notebook import html_table
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.products import inner
from strikeout.statistics.linearize import rows
from strikeout.statistics.losses import Huber, Squared, noise_variance
from strikeout.statistics.objective import objective_of
from strikeout.wording import Argument, as_lines, many, printable

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

Floats = NDArray[np.float64]

# The largest price change looks at every quote for every group. Beyond this many pairs only the most influential
# thousand groups get one.
PAIRS = 400_000_000
MOST = 1000
AT_ONCE = 1 << 15  # of those pairs: as many as stay in the cache of a core


class Influence(dict[str, NDArray[Any]]):
    """Columns by name, one row per quote or group, the most influential first. ``pd.DataFrame(...)`` takes it."""

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        return self

    @property
    def rows(self) -> int:
        """How many quotes or groups there are."""
        return len(self.columns["count"])

    def top(self, count: int) -> Influence:
        """The first rows alone."""
        return Influence({name: column[:count] for name, column in self.columns.items()})

    def summary(self, count: int = 10) -> str:
        """The first rows as a table of plain text."""
        names, cells = self._shown(count)
        widths = [max(len(row[i]) for row in [names, *cells]) for i in range(len(names))]
        lines = [
            "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in (names, *cells)
        ]
        rest = self.rows - len(cells)
        return as_lines([*lines, *([f"and {rest:,} more"] if rest > 0 else [])])

    def _shown(self, count: int) -> tuple[list[str], list[list[str]]]:
        plain = [name for name in self.columns if not name.startswith(("dfbetas_", "change_", "confirmed_"))]
        return plain, [
            [printable(_cell(self.columns[name][row])) for name in plain] for row in range(min(count, self.rows))
        ]

    def __repr__(self) -> str:
        return f"<Influence of {many(self.rows, 'row')}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return html_table(*self._shown(20))


def influence(calibration: Calibration | PanelCalibration, by: By = None, *, confirm: int = 0) -> Influence:
    """What striking out each quote, or each group of quotes, would do to the parameters and to the prices.

    Every row is an exact block downdate at the calibrated parameters: the refit itself for a linear model, otherwise
    one Gauss-Newton step, whose error ``indicator`` gives a measure of. Under Huber's loss the threshold stays.
    Of a panel the parameters are the shared ones; latent ones follow, and a group that goes takes its own along.

    Args:
        by: None for each quote; a label or a cut of ``states.shard`` or several, like "date", "month,expiry" or
            ["maturity:30,60", "source"]; or an array of group names.
        confirm: how many of the first rows to calibrate anew without the group, in ``confirmed_...`` columns.

    Raises:
        UsageError: a label that the quotes do not have, or a negative ``confirm``.
        RefusedError: the calibration has no quotes, or its quotes do not determine its parameters.
    """
    if confirm < 0:
        raise UsageError(f"confirm={confirm}: give how many of the first rows to confirm, from 0 on.")
    if calibration.quotes is None or calibration.moments is not None:
        raise RefusedError(
            "Influence of a calibration made from moments: it holds no quotes to strike out one by one. "
            "Calibrate from the quotes."
        )
    groups = groups_of(calibration.quotes, by)
    try:
        columns = (
            panel_columns(calibration, groups)
            if isinstance(calibration, PanelCalibration)
            else _columns(calibration, groups)
        )
    except np.linalg.LinAlgError as error:
        raise RefusedError(
            "Influence: the quotes do not determine the parameters, so none of them can be said to move them. "
            "Calibrate with the undetermined ones fixed (",
            Argument("fixed", ...),
            ").",
        ) from error
    # The largest distance first; groups without which nothing is determined before all others. Ties keep the order of
    # the groups.
    order = np.argsort(-columns["cooks_d"], kind="stable")
    ranked = {name: column[order] for name, column in columns.items()}
    if confirm:
        asked = groups.number, order[:confirm], groups.count
        ranked |= (
            panel_confirmed(calibration, *asked)
            if isinstance(calibration, PanelCalibration)
            else _confirmed(calibration, *asked)
        )
    return Influence({name: _frozen(column) for name, column in ranked.items()})


def evidence_of(calibration: Calibration) -> tuple[Evidence, list[int]]:
    """The quotes of a calibration as rows at its parameters, in the order of the quotes; and which parameters are free.

    A quote of weight zero is a row of zeros.

    Raises:
        UsageError, RefusedError: as ``calibrate``, of the quotes and the weights.
    """
    how, model = calibration.settings, calibration.model
    objective, _ = objective_of(calibration.quotes, residual=how.residual, weights=how.weights)
    loss = Huber(calibration.threshold) if calibration.threshold is not None else LOSSES[how.loss]
    difference, jacobian = rows(objective, model, model.parameters.vector(calibration.parameters))
    held = {*calibration.fixed, *calibration.on_bound}
    free = [i for i, name in enumerate(model.parameters.names) if name not in held]
    e = objective.root_weight * difference
    noise = None if isinstance(loss, Squared) else noise_variance(loss, e, len(free))

    def placed(values: Floats) -> Floats:
        whole = np.zeros((len(calibration.quotes), *values.shape[1:]))
        whole[objective.order] = values
        return whole

    X = placed(objective.root_weight[:, None] * jacobian[:, free])
    charged = placed(loss.pull(e)), placed(loss.stiffness(e)), placed(loss.cost(e)), placed(np.ones(len(e)))
    inflation = getattr(model, "inflation", INFLATION)
    return Evidence(X, *charged, noise=noise, inflation=inflation), free


def _columns(calibration: Calibration, groups: Groups) -> dict[str, NDArray[Any]]:
    evidence, free = evidence_of(calibration)
    found = deletions(evidence, groups.number, groups.count)
    space = calibration.model.parameters
    names = [space.names[i] for i in free]
    scale = np.array(sizes(space, tuple(calibration.parameters.values())))[free]
    single = "id" in groups.keys and groups.count == len(calibration.quotes)
    sign = np.sign(evidence.pull) if single else 1.0
    price, rmse = _money(calibration, groups, evidence.counted, found, free)
    columns: dict[str, NDArray[Any]] = {
        **groups.keys,
        "count": found.count,
        "cooks_d": found.cooks_d,
        "leverage": found.leverage,
        "resid_studentized": sign * found.studentized,
        "price_change": price,
        "rmse_change": rmse,
        "indicator": found.reach * np.max(np.abs(found.move) / scale, axis=1),
        "is_identified": found.is_identified,
    }
    columns |= {f"dfbetas_{name}": found.dfbetas[:, i] for i, name in enumerate(names)}
    return columns | {f"change_{name}": found.move[:, i] for i, name in enumerate(names)}


def _money(
    calibration: Calibration, groups: Groups, counted: Floats, found: Deletions, free: list[int]
) -> tuple[Floats, Floats]:
    """The largest price change over the book, and the RMSE of the rest after less that of the book now."""
    quotes = calibration.quotes
    price, jacobian = calibration.model.linearize(calibration.parameters, quotes.contracts)
    J, r = jacobian[:, free], quotes.observed - price
    rows_of = np.concatenate([J, r[:, None]], axis=1) * counted[:, None]
    # Column by column: an array of (n, p + 1, p + 1) for a million quotes would be large.
    change = np.concatenate([-found.move, np.ones((len(found.move), 1))], axis=1)
    squares = np.zeros(groups.count)
    for i, a in enumerate(rows_of.T):
        for j, b in enumerate(rows_of.T):
            product = a * b
            kept = product.sum() - np.bincount(groups.number, product, groups.count)
            squares += kept * change[:, i] * change[:, j]
    left = counted.sum() - np.bincount(groups.number, counted, groups.count)
    with np.errstate(divide="ignore", invalid="ignore"):
        rmse = np.sqrt(np.maximum(squares, 0.0) / left) - calibration.rmse
    return _largest(J, found.move, found.cooks_d), rmse


def _largest(J: Floats, move: Floats, rank: Floats) -> Floats:
    """``max |J move|`` a group; not-a-number for all but the first thousand where there are too many."""
    out = np.full(len(move), np.nan)
    asked = np.arange(len(move)) if len(J) * len(move) <= PAIRS else np.argsort(-rank, kind="stable")[:MOST]
    out[asked] = 0.0
    for first in range(0, len(J), AT_ONCE):
        rows_here = np.asfortranarray(J[first : first + AT_ONCE])  # added column by column
        size = AT_ONCE // len(rows_here)
        for begin in range(0, len(asked), size):
            part = asked[begin : begin + size]
            out[part] = np.maximum(out[part], np.abs(inner(move[part, None, :], rows_here)).max(axis=1))
    return out


def _confirmed(
    calibration: Calibration, number: NDArray[np.intp], first: NDArray[np.intp], count: int
) -> dict[str, Any]:
    quotes, space = calibration.quotes, calibration.model.parameters
    before = space.vector(calibration.parameters)
    prices = calibration.model.price(before, quotes.contracts)
    out: dict[str, Any] = {name: np.full(count, np.nan) for name in ("confirmed_price_change", "confirmed_rmse_change")}
    out |= {f"confirmed_{name}": np.full(count, np.nan) for name in space.names}
    out["confirmed_status"] = np.full(count, "", object)
    for row, group in enumerate(first):
        # A move is between parameters of the same name: no panel.
        after, status = refit_without(calibration, quotes.ids[number == group], panel=None)
        out["confirmed_status"][row] = status.value
        if after is None:
            continue
        change = space.vector(after.parameters) - before
        out["confirmed_price_change"][row] = np.abs(
            after.model.price(after.parameters, quotes.contracts) - prices
        ).max()
        out["confirmed_rmse_change"][row] = after.rmse - calibration.rmse
        for name, value in zip(space.names, change, strict=True):
            out[f"confirmed_{name}"][row] = value
    return out


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _frozen(column: NDArray[Any]) -> NDArray[Any]:
    column = np.asarray(column)
    column.flags.writeable = False
    return column
