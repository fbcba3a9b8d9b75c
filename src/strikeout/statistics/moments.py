"""Exact moments of quotes, which do not depend on a model or its parameters; they add and subtract.

    symbol  meaning
    s, w    discount * forward of a quote; its weight
    y       its observed price less intrinsic value and Black's reference price
    phi_q   the polynomials of its cell (basis.py)

A cell holds ``sum w s^2 phi_q``, ``sum w s y phi_q``, ``sum w y^2``, ``sum w`` and how many quotes it has. From these
the cost, score and curvature of any model whose prices the basis resolves follow at every theta.

The grid on which moments are taken: fixed panels of log-moneyness and of the expiry, never set by a quote.

symbol  meaning
k       ln(strike / forward)
z       k / sqrt(T): log-moneyness in units in which smiles of all expiries are about equally wide
x       z across its panel, -1 to 1
t       ln T across its panel, -1 to 1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError, UsageError
from strikeout.kernels import black, chebyshev, elementary, int192
from strikeout.kernels.arrays import Floats, Integers, Mask, Words
from strikeout.kernels.int192 import Table
from strikeout.quotes.contracts import Contracts
from strikeout.statistics.groups import Groups
from strikeout.statistics.objective import Weighting, weights_of
from strikeout.text import Advice, many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


# Edges of the panels of |z|: one panel of -0.125 .. 0.125, then one of 0.25, and each further twice as wide. Prices
# bend over a few volatilities around the money and are smooth far from it. The last edge holds strikes of 44 % to 229 %
# of the forward at one day, and more at every longer expiry.
EDGES = np.array([0.125, 0.375, 0.875, 1.875, 3.875, 7.875, 15.875])
# Centre and half-width of the panels of z, the lowest first; the middle one is number zero.
_INNER, _LAST = np.r_[-EDGES[0], EDGES[:-1]], len(EDGES) - 1
_NUMBERS = np.arange(-_LAST, _LAST + 1)
_CENTRES = np.sign(_NUMBERS) * 0.5 * (EDGES + _INNER)[np.abs(_NUMBERS)]
_HALVES = 0.5 * (EDGES - _INNER)[np.abs(_NUMBERS)]
# Width of a panel of ln T: prices in (z, ln T) change over about a factor of e in T.
EXPIRY_PANEL = 0.5
# Black's prices at this volatility are subtracted from quotes and model alike. What is left is small, and smooth at
# the money, where the out-of-the-money price has a corner.
VOLATILITY = 0.25


@dataclass(frozen=True)
class Basis:
    """Chebyshev polynomials on fixed panels: what a quote is resolved into.

    Args:
        expiries: "shared" keeps every expiry apart, exactly as it is; "scattered" takes panels of ln T, for books in
            which hardly two quotes share an expiry.
        nodes: how many polynomials in log-moneyness a panel has.
        expiry_nodes: how many in ln T; for scattered expiries only.

    Raises:
        UsageError: another kind of expiries, or fewer than 4 or more than 256 nodes.
    """

    expiries: Literal["shared", "scattered"] = "shared"
    nodes: int = 32
    expiry_nodes: int = 12

    def __post_init__(self) -> None:
        if self.expiries not in ("shared", "scattered"):
            raise UsageError(f'expiries={self.expiries!r} is unknown. Use "shared" or "scattered".')
        for name, count in (("nodes", self.nodes), ("expiry_nodes", self.expiry_nodes)):
            if not 4 <= count <= 256:
                raise UsageError(
                    f"Basis: {name}={count} is out of range. Use 4 to 256; 32 resolve ordinary smiles.",
                    name=name,
                    count=count,
                )

    @property
    def name(self) -> str:
        """Everything that affects the moments."""
        size = f"{self.nodes}" if self.expiries == "shared" else f"{self.nodes}x{self.expiry_nodes}"
        return f"chebyshev/{self.expiries}-{size}-1"

    @property
    def size(self) -> int:
        """Polynomials, and so nodes, a cell."""
        return self.nodes * self.across

    @property
    def across(self) -> int:
        """Polynomials in ln T."""
        return 1 if self.expiries == "shared" else self.expiry_nodes

    def cells(self, contracts: Contracts) -> tuple[Floats, Mask]:
        """Return the cell of every contract, ``(n, 2)``: its expiry or the number of its panel of ln T, and its panel
        of z.

        The second array is true for contracts off the grid.
        """
        z = contracts.log_moneyness / np.sqrt(contracts.expiry)
        panel = np.searchsorted(EDGES, np.abs(z), side="right")
        first = (
            contracts.expiry if self.expiries == "shared" else np.floor(elementary.log(contracts.expiry) / EXPIRY_PANEL)
        )
        cells = np.empty((len(z), 2))
        cells[:, 0], cells[:, 1] = first, np.where(z < 0.0, -panel, panel)
        return cells, panel >= len(EDGES)

    def values(self, contracts: Contracts, cells: Floats) -> Floats:
        """Return the polynomials of its cell at every contract, ``(size, n)``."""
        places = self.places(contracts, cells)
        along = chebyshev.polynomials(places[0], self.nodes)
        if self.expiries == "shared":
            return along
        across = chebyshev.polynomials(places[1], self.expiry_nodes)
        return (across[:, None, :] * along[None, :, :]).reshape(self.size, -1)

    def places(self, contracts: Contracts, cells: Floats) -> Floats:
        """Return where in its cell every contract lies, -1 to 1: x, and t where expiries are scattered; ``(1 or 2,
        n)``."""
        centre, half = _panels(cells[:, 1])
        x = (contracts.log_moneyness / np.sqrt(contracts.expiry) - centre) / half
        if self.expiries == "shared":
            return x[None]
        return np.stack(
            [x, np.clip(2.0 * (elementary.log(contracts.expiry) / EXPIRY_PANEL - cells[:, 0]) - 1.0, -1.0, 1.0)]
        )

    def contracts(self, cells: Floats, *, between: bool = False) -> Contracts:
        """Return the nodes of these cells as contracts of forward and discount one, out of the money; cell after cell.

        Args:
            between: not the nodes but the points between and beside them; see ``between``.
        """
        points = _between if between else chebyshev.nodes
        centre, half = _panels(cells[:, 1])
        z = centre[:, None] + half[:, None] * points(self.nodes)
        if self.expiries == "shared":
            expiry = np.repeat(cells[:, 0], z.shape[1])
            k = z.ravel() * np.sqrt(expiry)
        else:
            log_expiry = (cells[:, :1] + 0.5 * (points(self.expiry_nodes) + 1.0)) * EXPIRY_PANEL
            years = elementary.exp(log_expiry)[:, :, None]
            k = (z[:, None, :] * np.sqrt(years)).ravel()
            expiry = np.broadcast_to(years, (*log_expiry.shape, z.shape[1])).ravel()
        return Contracts(forward=1.0, strike=elementary.exp(k), expiry=expiry, discount=1.0, is_call=k >= 0.0)

    def between(self, values: Floats) -> Floats:
        """Return the polynomials through values at the nodes, ``(cells, size, columns)``, at the points farthest from a
        function that has these values: between and beside the nodes. No BLAS: a fixed order.
        """
        cells, _, columns = values.shape
        shape = (cells, self.across, self.nodes, columns)
        tensor = chebyshev.transform(_interpolation(self.nodes), values.reshape(shape), 2)
        if self.expiries == "scattered":
            tensor = chebyshev.transform(_interpolation(self.expiry_nodes), tensor, 1)
        return tensor.reshape(cells, -1, columns)

    def weights(self, moments: Floats) -> Floats:
        """Return weights at the nodes, ``(cells, size)``, from moments ``(cells, size)``. No BLAS: a fixed order."""
        if self.expiries == "shared":
            return chebyshev.transform(chebyshev.quadrature(self.nodes), moments, 1)
        tensor = moments.reshape(-1, self.expiry_nodes, self.nodes)
        half = chebyshev.transform(chebyshev.quadrature(self.nodes), tensor, 2)
        whole = chebyshev.transform(chebyshev.quadrature(self.expiry_nodes), half, 1)
        return whole.reshape(len(moments), -1)


@cache
def _between(count: int) -> Floats:
    """Return where ``T_count`` is 1 or -1. What interpolation misses is ``T_count`` times something that changes
    slowly."""
    points: Floats = elementary.sin(np.pi * (np.arange(count + 1) - 0.5 * count) / count)
    return points


@cache
def _interpolation(count: int) -> Floats:
    """From values at the nodes to the polynomial through them at the points between, ``(count + 1, count)``."""
    values = chebyshev.polynomials(_between(count), count)
    return chebyshev.transform(values.T, chebyshev.quadrature(count), 1).T


def reference_price(contracts: Contracts) -> Floats:
    """Return Black's out-of-the-money price at the one fixed volatility."""
    c = contracts
    volatility = np.full(len(c), VOLATILITY)
    return black.price(c.forward, c.strike, c.expiry, volatility, c.discount, c.log_moneyness >= 0.0)


def _panels(panel: Floats) -> tuple[Floats, Floats]:
    """Centre and half-width of panels of z by number."""
    number = panel.astype(np.intp) + _LAST
    return _CENTRES[number], _HALVES[number]


# What one quote may count for. 32,768 quotes at the limit still fit in 192 bits, and real ones are far below it: enough
# for books of any size, and for a price of 1e12 that was typed in place of "none".
LARGEST = (("w s^2", 2.0**40), ("w s y", 2.0**56), ("w y^2", 2.0**96), ("w", 2.0**40))
_LIMITS = np.array([[largest] for _, largest in LARGEST])
PLAIN_EXPONENT = -chebyshev.FACTOR_GRID  # of the lowest bit of sum w y^2 and sum w


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """An exact state of quotes: ``a + b``, ``a - b``, ``digest()``. No quote is in it, but it is data to guard.

    ``cells`` are the cells that hold quotes, in order; ``words`` their sums (see the module), integers of 192 bits in
    units of 2^-120, the last two of 2^-72; ``counts`` how many quotes each holds. All read-only.
    """

    basis: Basis
    weights: str  # the name of the weighting
    cells: Floats  # (c, 2)
    words: Words  # (c, 2 size + 2, 3)
    counts: Integers  # (c,)

    @staticmethod
    def zero(basis: Basis | None = None, *, weights: str = "given") -> Moments:
        """Return what no quotes leave behind."""
        basis = basis or Basis()
        nothing = np.zeros((0, 2 * basis.size + 2, 3), np.uint64)
        return _frozen(basis, weights, np.zeros((0, 2)), nothing, np.zeros(0, np.int64))

    @staticmethod
    def total(parts: Iterable[Moments]) -> Moments:
        """Return what the quotes of all the parts leave behind, whatever their order.

        Raises:
            UsageError: there are none, or they differ in basis or weighting.
        """
        given = list(parts)
        if not given:
            raise UsageError("Moments.total of nothing: use Moments.zero().")
        for other in given[1:]:
            given[0]._refuse_another(other)
        return _held(given[0].basis, given[0].weights, _summed([part._table for part in given]))

    def __add__(self, other: Moments) -> Moments:
        """Return what the quotes of both leave behind.

        Raises:
            UsageError: they differ in basis or weighting.
        """
        return Moments.total((self, other))

    def __sub__(self, other: Moments) -> Moments:
        """Return what is left without the quotes of the other, as if they had never been added.

        Raises:
            UsageError: they differ in basis or weighting, or the other holds quotes that were never in this one.
        """
        self._refuse_another(other)
        return _held(self.basis, self.weights, int192.merged(self._table, other._table, subtract=True))

    def __len__(self) -> int:
        """Return how many quotes."""
        return int(self.counts.sum())

    @property
    def count(self) -> int:
        return len(self)

    @property
    def numbers(self) -> int:
        """How many numbers represent the quotes."""
        return int(self.words.shape[0] * self.words.shape[1])

    def digest(self) -> str:
        """Return 64 hexadecimal digits that name what is known: equal for equal quotes, whatever was added and taken
        away."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        named = f"strikeout moments 1\n{self.basis.name}\n{self.weights}\n{len(self.cells)}\n"
        columns = (self.cells.astype("<f8"), self.counts.astype("<i8"), self.words.astype("<u8"))
        return sha256(named.encode() + b"".join(column.tobytes() for column in columns)).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moments) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        what = f"{many(len(self), 'quote')} in {many(len(self.cells), 'cell')}"
        return f"Moments({what}, {self.basis.name}, {self._digest[:12]})"

    @property
    def _table(self) -> Table:
        return Table(self.cells, self.words, self.counts)

    def _refuse_another(self, other: Moments) -> None:
        for what, mine, theirs in (
            ("basis", self.basis.name, other.basis.name),
            ("weighting", self.weights, other.weights),
        ):
            if mine != theirs:
                raise UsageError(
                    f"Moments with the {what} {mine} and with {theirs} have nothing to do with each other. "
                    f"Take both with the same {what}.",
                    what=what,
                    mine=mine,
                )


def moments_of(quotes: Quotes, *, weights: Weighting = "given", basis: Basis | None = None) -> Moments:
    """Return what these quotes leave behind for calibrations by squared price residuals: exact, and additive.

    Large books can be taken in chunks: the sum of the moments of the chunks is that of the whole, bit for bit.

    Args:
        weights: of the squared residuals; see ``weights_of``. Quotes of weight zero are left out.
        basis: the grid, ``Basis()`` where not given. Moments add and subtract only on one basis.

    Raises:
        UsageError: an unknown weighting, or quotes that are not European options.
        RefusedError: quotes off the grid or beyond its range; ``error.ids`` names them, and nothing is taken.

    >>> import strikeout as so
    >>> book = so.paper.quotes("small")
    >>> moments_of(book) - moments_of(book[:5]) == moments_of(book[5:])
    True
    """
    points = _points(quotes, weights, basis or Basis())
    if points.is_off.any():
        what = "lie off the grid of the moments, ln(strike / forward) / sqrt(expiry) of"
        _refuse(quotes, points.is_off & points.counts, what)
    for row, (name, largest) in zip(points.factors, LARGEST, strict=True):
        unfit = ~(np.abs(row) < largest)  # true for what is not a number
        _refuse(quotes, unfit, f"count for more than moments can hold, {name} of {largest:.2g} and above, at")
    return points.moments(points.counts)


def moments_by_group(
    quotes: Quotes, groups: Groups, *, weights: Weighting = "given", basis: Basis | None = None
) -> tuple[list[Moments], Mask]:
    """Return the moments of each group of quotes, and which quotes are in none because moments cannot hold them."""
    points = _points(quotes, weights, basis or Basis())
    left_out = ((points.is_off & points.counts) | ~(np.abs(points.factors) < _LIMITS).all(axis=0)).astype(bool)
    number = groups.number.astype(np.int16 if groups.count <= 2**15 else np.int32)  # of 16 bits NumPy sorts by radix
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(groups.number[order], np.arange(groups.count + 1))
    held = points.counts & ~left_out
    rows = (order[begin:end] for begin, end in pairwise(ends.tolist()))
    return [points.moments(own[held[own]]) for own in rows], left_out


@dataclass(frozen=True)
class _Points:
    """Quotes on the grid: their cells, the four factors of each, and the cells' places once they are summed."""

    contracts: Contracts
    basis: Basis
    rule: str
    cells: Floats
    factors: Floats
    counts: Mask  # of a weight above zero
    is_off: Mask  # off the grid

    def moments(self, rows: NDArray[Any]) -> Moments:
        """Return the moments of some of the points: a mask, or numbers."""
        contracts, cells, factors = self.contracts, self.cells, self.factors
        if rows.dtype != bool or not rows.all():
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows
            # By take: an index would leave the factors of a point side by side, for every later pass to pick apart.
            contracts, cells, factors = contracts[rows], cells[rows], factors.take(rows, axis=1)
        if not len(cells):
            return Moments.zero(self.basis, weights=self.rule)
        places = self.basis.places(contracts, cells)
        parts: list[Table] = []
        size = chebyshev.points_at_once(factors)  # changes no bit: the sums are exact
        for begin in range(0, len(cells), size):
            chunk = slice(begin, begin + size)
            columns = cells[chunk], places[:, chunk], factors[:, chunk]
            parts.append(chebyshev.exact_cells(*columns, along=self.basis.nodes, across=self.basis.across))
            if len(parts) == 32:
                parts = [_summed(parts)]
        return _held(self.basis, self.rule, _summed(parts))


def _points(quotes: Quotes, weights: Weighting, basis: Basis) -> _Points:
    if not isinstance(quotes.contracts, Contracts):
        raise UsageError("moments_of needs quotes of European options (so.Contracts). Calibrate others from quotes.")
    weight, rule = weights_of(quotes, weights)
    cells, is_off = basis.cells(quotes.contracts)
    return _Points(quotes.contracts, basis, rule, cells, _factors(quotes, weight), weight > 0.0, is_off)


def _factors(quotes: Quotes, w: Floats) -> Floats:
    c = quotes.contracts
    s, y = c.scale, quotes.observed - c.intrinsic - reference_price(c)
    factors = np.empty((4, len(c)))
    with np.errstate(over="ignore", invalid="ignore"):
        by_scale, by_price = np.multiply(w, s), np.multiply(w, y)
        factors[0], factors[1], factors[2], factors[3] = by_scale * s, by_scale * y, by_price * y, w
    return factors


def _summed(parts: list[Table]) -> Table:
    """Return the sum of the parts, by halves: a large one is not copied for every small one."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return int192.merged(_summed(parts[:half]), _summed(parts[half:]))


def _held(basis: Basis, weights: str, table: Table) -> Moments:
    """Return the table as moments, without the cells that nothing is left of."""
    cells, sums, counts = table
    # sum w s^2, sum w y^2 and sum w are sums of what is never negative: their sign bits show it.
    signed = sums[:, (0, -2, -1), 2].view(np.int64)
    is_left = counts > 0
    if is_left.all():
        is_sound = signed.min(initial=0) >= 0
    else:
        is_sound = signed.min(initial=0) >= 0 and counts.min() >= 0 and not sums[~is_left].any()
        cells, sums, counts = cells[is_left], sums[is_left], counts[is_left]
    if not is_sound:
        raise UsageError(
            "Moments: quotes are taken away that were never in. Subtract only what was added, with the same "
            "prices and weights."
        )
    return _frozen(basis, weights, cells, sums, counts)


def _frozen(basis: Basis, weights: str, cells: Floats, sums: Words, counts: Integers) -> Moments:
    for array in (cells, sums, counts):
        array.flags.writeable = False
    return Moments(basis, weights, cells, sums, counts)


def _refuse(quotes: Quotes, bad: Mask, what: str) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        ids = [str(quotes.ids[row]) for row in rows]
        c, row = quotes.contracts, rows[0]
        first = f"strike {c.strike[row]:g}, forward {c.forward[row]:g}, expiry {c.expiry[row]:g}"
        raise RefusedError(
            f"{rows.size:,} of {len(quotes):,} quotes {what}: {', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''} "
            f"(the first has {first}, observed {quotes.observed[row]:g}). Leave them out (",
            Advice.STRIKE_OUT,
            "), or calibrate from the quotes themselves.",
            ids=ids,
        )
