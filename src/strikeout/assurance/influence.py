"""The influence of quotes, days, expiries or sources on the parameters.

``influence(confirm=...)`` compares one step with a refit.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.indicator import sizes
from strikeout.calibration.calibrate import calibrate_as
from strikeout.calibration.deletions import (
    Cells,
    Deletions,
    PanelRows,
    cells_of,
    days_of,
    deletions,
    followers,
    outer_sums,
    panel_deletions,
)
from strikeout.calibration.quote_rows import free_names, panel_rows, quote_rows
from strikeout.calibration.summary import html_table
from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.products import inner, product
from strikeout.quotes.conditions import literal
from strikeout.quotes.names import Names
from strikeout.statistics.groups import By, Groups, groups_of
from strikeout.tables import plain
from strikeout.text import Argument, as_lines, many, printable

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.plots.drawing import Drawing
    from strikeout.quotes.quotes import Quotes


class Confirmation(StrEnum):
    """How a refit without a group ended."""

    REFITTED = "refitted"
    WITHOUT_SLICES = "refitted-without-slices"  # the rest of a slice was struck out too: it gave no forward any more
    NOT_CONVERGED = "not-converged"
    UNIDENTIFIED = "unidentified"  # too few quotes are left for the parameters
    REFUSED = "refused"


def refit_without(calibration: Calibration, ids: Names) -> tuple[Calibration | None, Confirmation]:
    """Return a calibration of the same kind without these quotes, None if there is none, and how the refit ended.

    The same kind, plain or panel: a move is between parameters of the same name.

    If the quotes that stay of a slice give no forward, as the in-the-money quotes of an expiry whose out-of-the-money
    quotes are struck out, they are struck out too.
    """
    status = Confirmation.REFITTED
    try:
        try:
            left = calibration.book.without(ids)
        except RefusedError as error:
            if "slices" not in error.facts:
                raise
            left, status = _without_slices(calibration.book, ids, error), Confirmation.WITHOUT_SLICES
        after = calibrate_as(left, calibration.asked, calibration.settings, calibration.panel)
    except UnidentifiedError:
        return None, Confirmation.UNIDENTIFIED
    except RefusedError:
        return None, Confirmation.REFUSED
    return (after, status) if after.converged else (None, Confirmation.NOT_CONVERGED)


def _without_slices(book: Quotes, ids: Names, error: RefusedError) -> Quotes:
    return book.without(np.union1d(np.asarray(ids).astype(str), np.asarray(error.ids).astype(str)))


Columns = dict[str, NDArray[Any]]
Found = TypeVar("Found")
Effects = tuple[Deletions, Floats, tuple[Floats, Floats]]  # with the pull of every row, price and RMSE changes

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
        """Return the first rows alone."""
        return Influence({name: column[:count] for name, column in self.columns.items()})

    @property
    def keys_of_rows(self) -> list[str]:
        """The columns that name a row: those before its count."""
        names = list(self)
        return names[: names.index("count")]

    def condition(self, row: int = 0) -> str:
        """Return the condition in SQL that selects the quotes of a row."""
        return " and ".join(f"{_column(name)} = {literal(self[name][row])}" for name in self.keys_of_rows)

    def to_dict(self, count: int = 10) -> dict[str, Any]:
        """Return how many rows there are, and the columns of the first ones as plain values for JSON."""
        first = self.top(count)
        columns = {name: [plain(value) for value in column.tolist()] for name, column in first.items()}
        return {"groups": self.rows, "columns": columns}

    def summary(self, count: int = 10) -> str:
        """Return the first rows as a table of plain text."""
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

    def plot_map(self, *, parameter: str | None = None) -> Drawing:
        """Return a map of influences by one or two labels as an interactive picture for a notebook.

        Args:
            parameter: colour the cells by the move of this parameter instead of Cook's distance.

        Raises:
            UsageError: the influences are of single quotes, or by more than two labels.
        """
        import strikeout  # pictures are a package above this one: only its public name is used

        return strikeout.draw(self, parameter=parameter)

    def __repr__(self) -> str:
        return f"<Influence of {many(self.rows, 'row')}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return html_table(*self._shown(20))


def influence(calibration: Calibration, by: By = None, *, confirm: int = 0) -> Influence:
    """Return the effect of striking out each quote, or each group of quotes, on the parameters and the prices.

    Every row is an exact block downdate at the calibrated parameters: the refit itself for a linear model, otherwise
    one Gauss-Newton step, whose error ``indicator`` measures. Under Huber's loss the threshold stays. In a panel the
    parameters are the shared ones; the latent ones follow, and that of a group without quotes is removed.

    Args:
        by: None for each quote; a label or a cut of ``states.shard`` or several, like "date", "month,expiry" or
            ["maturity:30,60", "source"]; or an array of group names.
        confirm: how many of the first rows to calibrate again without the group, in ``confirmed_...`` columns.

    Raises:
        UsageError: a label that the quotes do not have, or a negative ``confirm``.
        RefusedError: the calibration has no quotes, or its quotes do not determine its parameters.
    """
    if confirm < 0:
        raise UsageError(f"confirm={confirm}: give how many of the first rows to confirm, from 0 on.", confirm=confirm)
    groups, columns = _measured(calibration, by, _columns)
    # The largest distance first; groups without which nothing is determined before all others. Ties keep the order of
    # the groups.
    order = np.argsort(-columns["cooks_d"], kind="stable")
    ranked = {name: column[order] for name, column in columns.items()}
    if confirm:
        ranked |= _confirmed(calibration, groups.number, order[:confirm], groups.count)
    return Influence({name: _frozen(column) for name, column in ranked.items()})


def deletions_by(calibration: Calibration, by: By) -> tuple[Groups, Deletions, list[str]]:
    """Return the groups, what striking each of them out does to the parameters, and the names of these.

    It is what ``influence`` measures without the effect on prices, which takes most of the time.
    """
    groups, found = _measured(calibration, by, _deletions)
    return groups, found, free_names(calibration)


def _measured(
    calibration: Calibration, by: By, measure: Callable[[Calibration, Groups], Found]
) -> tuple[Groups, Found]:
    if calibration.quotes is None or calibration.moments is not None:
        raise RefusedError(
            "Influence of a calibration made from moments: it holds no quotes to strike out one by one. "
            "Calibrate from the quotes."
        )
    groups = groups_of(calibration.quotes, by)
    try:
        return groups, measure(calibration, groups)
    except np.linalg.LinAlgError as error:
        raise RefusedError(
            "Influence: the quotes do not determine the parameters, so no influence can be measured. "
            "Calibrate with the undetermined ones fixed (",
            Argument("fixed", ...),
            ").",
        ) from error


def _deletions(calibration: Calibration, groups: Groups) -> Deletions:
    if not calibration.is_panel:
        return deletions(quote_rows(calibration)[0], groups.number, groups.count)
    evidence = panel_rows(calibration)
    days = days_of(evidence)
    return panel_deletions(evidence, cells_of(evidence, groups.number, days), days, groups.count)


def _columns(calibration: Calibration, groups: Groups) -> Columns:
    effects = _panel_effects if calibration.is_panel else _plain_effects
    found, pull, (price, rmse) = effects(calibration, groups)
    space, names = calibration.model.parameters, free_names(calibration)
    theta = calibration.theta(calibration.blocks[0])  # of any group: the size of the latent parameter is not used
    scale = np.array(sizes(space, tuple(theta.values())))[[space.names.index(name) for name in names]]
    single = "id" in groups.keys and groups.count == len(calibration.quotes)
    columns: Columns = {
        **groups.keys,
        "count": found.count,
        "cooks_d": found.cooks_d,
        "leverage": found.leverage,
        "resid_studentized": (np.sign(pull) if single else 1.0) * found.studentized,
        "price_change": price,
        "rmse_change": rmse,
        "indicator": found.reach * np.max(np.abs(found.move) / scale, axis=1, initial=0.0),
        "is_identified": found.is_identified,
    }
    columns |= {f"dfbetas_{name}": found.dfbetas[:, i] for i, name in enumerate(names)}
    return columns | {f"change_{name}": found.move[:, i] for i, name in enumerate(names)}


def _plain_effects(calibration: Calibration, groups: Groups) -> Effects:
    evidence, free = quote_rows(calibration)
    found = deletions(evidence, groups.number, groups.count)
    return found, evidence.pull, _plain_money(calibration, groups, evidence.counted, found, free)


def _panel_effects(calibration: Calibration, groups: Groups) -> Effects:
    """Return the effects on the shared parameters; latent parameters follow, and a day without quotes has none."""
    evidence, prices = panel_rows(calibration), _price_rows(calibration)
    days = days_of(evidence)
    cells = cells_of(evidence, groups.number, days)
    found = panel_deletions(evidence, cells, days, groups.count)
    return found, evidence.rows[:, -1], _panel_money(calibration, evidence, prices, cells, days, found)


def _price_rows(calibration: Calibration) -> Floats:
    """Return the quotes of a panel as rows of prices at its parameters: sensitivities, then the residual."""
    model, quotes, space = calibration.model, calibration.quotes, calibration.model.parameters
    columns = [space.names.index(name) for name in (*free_names(calibration), str(calibration.latent_name))]
    prices = np.zeros((len(quotes), len(columns) + 1))
    for group in calibration.latent:
        places = calibration.rows[group]
        value, jacobian = model.linearize(space.vector(calibration.theta(group)), quotes.contracts[places])
        prices[places, :-1], prices[places, -1] = jacobian[:, columns], quotes.observed[places] - value
        if group in calibration.latent_on_bound:
            prices[places, -2] = 0.0
    return prices


def _plain_money(
    calibration: Calibration, groups: Groups, counted: Floats, found: Deletions, free: list[int]
) -> tuple[Floats, Floats]:
    """Return the largest price change over the book, and the RMSE of the rest after less that of the book now."""
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
    """Return ``max |J move|`` per group; not-a-number beyond the first thousand if there are too many."""
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


def _panel_money(
    calibration: Calibration, evidence: PanelRows, prices: Floats, cells: Cells, days: Floats, found: Deletions
) -> tuple[Floats, Floats]:
    """Return the largest price change over what is left, and the RMSE of that after less that of the book now."""
    # A residual changes by (1, -move) times its own sensitivities and those to the latent parameter of its day.
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
    return _largest_by_day(evidence, priced, ahead, cells, follow, left, rank=found.cooks_d), rmse


def _followed(squares: Floats, follow: Floats) -> Floats:
    """Return the sums of squares as a form in (1, -move) alone: the latent parameter of each day follows."""
    own, latent = squares[:, :-1, :-1], squares[:, :-1, -1]
    cross = latent[:, :, None] * follow[:, None, :]
    return (
        own
        - cross
        - cross.transpose(0, 2, 1)
        + squares[:, -1, -1, None, None] * follow[:, :, None] * follow[:, None, :]
    )


def _largest_by_day(
    evidence: PanelRows, priced: Floats, ahead: Floats, cells: Cells, follow: Floats, left: Floats, *, rank: Floats
) -> Floats:
    """Return the largest price change per group; not-a-number beyond the first thousand if there are too many."""
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
            again = b[day, :-1] - b[day, -1:] * left[cell]
            change[day] = np.where(owner[day] == cell, 0.0, np.abs(inner(again, ahead[group]) - b[day, 0]))
        out[group] = change.max(initial=0.0)
    return out


def _confirmed(calibration: Calibration, number: Rows, first: Rows, count: int) -> Columns:
    """Return the calibration repeated without each of the first groups, as columns; not-a-number if it fails."""
    names = ("price_change", "rmse_change", *calibration.parameters)
    out: Columns = {f"confirmed_{name}": np.full(count, np.nan) for name in names}
    out["confirmed_status"] = np.full(count, "", object)
    quotes = calibration.quotes
    for row, group in enumerate(first):
        kept = number != group
        after, status = refit_without(calibration, quotes.ids[~kept])
        out["confirmed_status"][row] = status.value
        if after is None:
            continue
        out["confirmed_price_change"][row] = _farthest(calibration, after, kept)
        out["confirmed_rmse_change"][row] = after.rmse - calibration.rmse
        for name in calibration.parameters:
            out[f"confirmed_{name}"][row] = after.parameters.get(name, np.nan) - calibration.parameters[name]
    return out


def _farthest(before: Calibration, after: Calibration, kept: Mask) -> float:
    """Return the largest change of the price of a contract with its old forward; in a panel of quotes that stay."""
    quotes, found = before.quotes, 0.0
    for group, places in before.rows.items():
        left = places[kept[places]] if before.is_panel else places
        if len(left) and group in after.blocks and group in before.blocks:
            then = after.model.price(after.theta(group), quotes.contracts[left])
            apart = then - before.model.price(before.theta(group), quotes.contracts[left])
            found = max(found, float(np.abs(apart).max()))
    return found


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _column(name: str) -> str:
    return {"expiry": "expiry_years"}.get(name, name)


def _frozen(column: NDArray[Any]) -> NDArray[Any]:
    column = np.asarray(column)
    column.flags.writeable = False
    return column
