"""Derive forwards: fitted to a slice from the quotes of that slice, and refitted when one of them is removed.

The label ``forward_from`` is the source of the forward of each quote:

    given    its own row; also if there is no such label
    parity   put-call parity of the slice: see ``parity``
    spot     its own spot, rate and dividend yield, since parity gave none

and in ``discount_from`` likewise: "given" and "rate" are its own row's, "parity" is of the slice. What is not given is
a function of the slice's quotes in the book, of nothing else: a forward does not depend on a quote that was struck
out.

`forward_table` lists how the forward of every slice was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError
from strikeout.kernels import black, elementary, parity
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.dividends import DIVIDENDS, borrows, less_dividends
from strikeout.quotes.exercise import ROUNDS, european_prices, is_american
from strikeout.quotes.parity import AMERICAN_MID, KEYS, PAIRS, RATE, parity_lines, slice_name, slice_numbers
from strikeout.text import agreeing, as_lines, many, printable

if TYPE_CHECKING:
    import polars as pl

    from strikeout.quotes.quotes import Quotes


CONVERSION = ("converted", "correction")  # columns only if American quotes are converted


@dataclass(frozen=True, eq=False)
class Forwards:
    """How the forward of every slice was found, one row per slice, in the order of the quotes.

    ``source`` is "given", "parity", "spot", or "none" if there is none. ``rate`` is the rate of the discount used,
    ``implied_rate`` the rate that the prices imply, known discount or not; ``r_squared`` is of the line through
    ``pairs`` calls and puts. ``forward_error`` is the standard error of the line at the forward, together with the last
    move if American quotes are converted in rounds. ``borrow`` is the yield that forward, spot and rate imply beside
    the cash dividends of the quotes; without cash dividends it includes all dividends. ``converted`` American quotes of
    the slice are read as European; out of the money their median ``correction`` is this many volatility points less.
    """

    names: tuple[str, ...]
    source: tuple[str, ...]
    years: Floats
    forward: Floats
    discount: Floats
    rate: Floats
    quotes: Rows
    pairs: Rows
    r_squared: Floats
    implied_rate: Floats
    forward_error: Floats
    borrow: Floats
    american: Mask
    converted: Rows
    correction: Floats

    @staticmethod
    def none() -> Forwards:
        """Return a table of no slices."""
        number, count = np.empty(0), np.empty(0, np.intp)
        some = np.empty(0, bool)
        return Forwards(
            (), (), number, number, number, number, count, count, number, number, number, number, some, count, number
        )

    @staticmethod
    def joined(parts: Sequence[Forwards], order: Rows) -> Forwards:
        """Return the slices of several tables as one, in this order."""
        columns: dict[str, Any] = {}
        for column in fields(Forwards):
            values = [getattr(part, column.name) for part in parts]
            if column.name in ("names", "source"):
                texts = [text for value in values for text in value]
                columns[column.name] = tuple(texts[place] for place in order)
            else:
                columns[column.name] = np.concatenate(values)[order]
        return Forwards(**columns)

    def __len__(self) -> int:
        return len(self.names)

    def to_frame(self) -> pl.DataFrame:
        """Return a Polars frame; what does not exist is null."""
        import polars as pl

        columns: dict[str, Any] = {"slice": list(self.names), "source": list(self.source)}
        numbers = [field.name for field in fields(self) if field.name not in ("names", "source", *CONVERSION)]
        columns |= {name: getattr(self, name) for name in numbers}
        if self.converted.any():
            columns |= {name: getattr(self, name) for name in CONVERSION}
        return pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))

    def counts(self) -> dict[str, int]:
        """Return how many slices have each source."""
        return {word: self.source.count(word) for word in ("given", "parity", "spot", "none") if word in self.source}

    def headline(self) -> str:
        """Return how many slices have their forward from where, in a line."""
        described = {
            "given": "given",
            "parity": "by put-call parity",
            "spot": "from spot, rate and dividend",
            "none": "none",
        }
        return ", ".join(f"{count:,} {described[word]}" for word, count in self.counts().items())

    def conversion_sentence(self) -> str:
        """Return how many American prices are read as European ones, and by how much this changes volatilities."""
        count = int(self.converted.sum())
        known = self.correction[np.isfinite(self.correction)]
        range_ = f"{known.min():.2f} to {known.max():.2f}" if known.size else ""
        far = f"; the median of a slice falls by {range_} volatility points out of the money" if known.size else ""
        return f"{count:,} American prices are read as European ones{far}"

    def summary(self) -> str:
        """Return one line per slice."""
        head = ("slice", "from", "forward", "discount", "rate", "pairs", "R^2", "implied", "error", "borrow")
        rows = [head, *(self._row(n) for n in range(len(self)))]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        return as_lines(
            "  ".join(f"{text:{'<' if i < 2 else '>'}{widths[i]}}" for i, text in enumerate(row)) for row in rows
        )

    def _row(self, n: int) -> tuple[str, ...]:
        return (
            printable(self.names[n]) + (" (American)" if self.american[n] else ""),
            self.source[n],
            _number(self.forward[n], ".8g"),
            _number(self.discount[n], ".6f"),
            _number(self.rate[n], ".2%"),
            f"{self.pairs[n]:,}" if self.pairs[n] else "-",
            _number(self.r_squared[n], ".6f"),
            _number(self.implied_rate[n], ".2%"),
            _number(self.forward_error[n], ".2g"),
            _number(self.borrow[n], ".2%"),
        )


def _number(value: float, form: str) -> str:
    return format(float(value), form) if np.isfinite(value) else "-"


FORWARD_FROM, DISCOUNT_FROM = "forward_from", "discount_from"
NEEDED = (
    *KEYS,
    "exercise",
    "spot",
    "dividend_yield",
    DISCOUNT_FROM,
    AMERICAN_MID,
    DIVIDENDS,
)  # labels; a large book has many more
WORDS = np.array(["none", "parity", "spot"], object)
CLOSE, ENOUGH = 0.08, 20  # |K / F - 1|, wider than the band of parity; quotes of a slice that are enough there
PLAIN = 1.0  # the discount that stands in the place of one that is to be derived


def is_derived(quotes: Quotes) -> Mask:
    """Return whether the forward of each quote depends on its slice."""
    known = quotes.labels.get(FORWARD_FROM)
    if known is None:
        return np.zeros(len(quotes), bool)
    found: Mask = (known != "given") & (known != "")
    return found


def derived(quotes: Quotes, *, rows: Mask | None = None) -> tuple[Quotes, Forwards]:
    """Return the quotes with derived forwards and discounts refitted to them; and how, slice by slice.

    Quotes without a forward keep the placeholders of ``underived``; their label and their slice have the source "none".

    Args:
        rows: whose slices are looked at; all whose forward is derived where not given. Whole slices, or the answer is
            that of a smaller book.
    """
    chosen = is_derived(quotes) if rows is None else rows & is_derived(quotes)
    return _refit(quotes, chosen) if chosen.any() else (quotes, Forwards.none())


def _refit(quotes: Quotes, rows: Mask) -> tuple[Quotes, Forwards]:
    """Return the same as ``derived``, for rows that are all derived, and at least one."""
    at: Rows | slice = slice(None) if rows.all() else np.flatnonzero(rows)  # all of a file are not copied
    count = int(np.count_nonzero(rows))
    c, labels = quotes.contracts[at], {name: quotes.labels[name][at] for name in NEEDED if name in quotes.labels}
    numbers, first = slice_numbers(labels, c.expiry)
    is_own = _column(labels, DISCOUNT_FROM, count) != "parity"
    years, american = c.expiry[first], _any(numbers, _is_american(labels, count), len(first))
    own = _medians(numbers, np.where(is_own, c.discount, np.nan), len(first))
    mid = _numbers(labels, AMERICAN_MID, count)
    early = np.isfinite(mid)
    price, converted = np.where(early, mid, quotes.observed[at]), _any(numbers, early, len(first))
    spot, spread = np.where(is_own, _from_spot(labels, c), np.nan), quotes.spread[at]
    rounds = ROUNDS if early.any() else 0
    near = np.ones(count, bool)  # whose European prices the next round needs
    last = moved = np.full(len(first), np.nan)  # forwards of the round before, and what the last round moved them by
    for turn in range(rounds + 1):
        # American slices keep their narrow band in every round: far from the money mids determine volatilities poorly.
        some = slice(None) if near.all() else near
        lines = parity_lines(
            parity.Quotes(numbers[some], c.strike[some], c.is_call[some], price[some], spread[some]),
            years=years, discount=own if turn else _begin(own, years, converted), american=american,
        )  # fmt: skip
        moved, last = lines.forward - last, lines.forward
        discount = np.where(is_own, c.discount, lines.discount[numbers])
        has_line = np.isfinite(lines.forward)[numbers]
        forward = np.where(has_line, lines.forward[numbers], np.where(np.isfinite(spot) & (spot > 0.0), spot, np.nan))
        lost = ~np.isfinite(forward)
        near = np.ones(count, bool) if turn == rounds else _near(numbers, c.strike, lines.forward, near, converted)
        price = _as_european(c, labels, price, near, forward=forward, discount=discount)
    source = WORDS[np.where(lost, 0, np.where(has_line, 1, 2))]
    forward, discount = np.where(lost, c.strike, forward), np.where(lost & ~is_own, PLAIN, discount)
    made = _placed(quotes, at, forward=forward, discount=discount, source=source, observed=price)
    described = WORDS[np.where(_any(numbers, lost, len(first)), 0, np.where(has_line, 1, 2)[first])]
    report = Forwards(
        names=tuple(slice_name(labels, float(years[n]), row=int(row)) for n, row in enumerate(first)),
        source=tuple(described.tolist()),
        years=years,
        forward=np.where(described == "none", np.nan, forward[first]),
        discount=np.where(described == "none", np.nan, discount[first]),
        rate=np.where(described == "none", np.nan, _rate(discount[first], years)),
        quotes=np.bincount(numbers, minlength=len(first)),
        pairs=lines.pairs,
        r_squared=np.where(lines.pairs >= PAIRS, lines.r_squared, np.nan),
        implied_rate=_rate(lines.implied, years),
        forward_error=np.where(
            described == "parity",
            np.where(converted, np.sqrt(lines.error * lines.error + moved * moved), lines.error),
            np.nan,
        ),
        borrow=np.where(described == "none", np.nan, _borrow(labels, numbers, first, made.contracts[at])),
        american=american,
        **_conversion(numbers, mid, made, at, len(first)),
    )
    return made, report


def forwards_of(quotes: Quotes) -> Forwards:
    """Return the forward of every slice, derived or given; a given one is that of the first row of the slice."""
    _, found = derived(quotes)
    return with_given(found, quotes)


def with_given(found: Forwards, quotes: Quotes) -> Forwards:
    """Return the slices whose forwards are given, before those that were derived."""
    rows = np.flatnonzero(~is_derived(quotes))
    if not rows.size:
        return found
    c, labels = quotes.contracts[rows], {name: quotes.labels[name][rows] for name in NEEDED if name in quotes.labels}
    numbers, first = slice_numbers(labels, c.expiry)
    years, discount, nothing = c.expiry[first], c.discount[first], np.full(len(first), np.nan)
    given = Forwards(
        names=tuple(slice_name(labels, float(years[n]), row=int(row)) for n, row in enumerate(first)),
        source=("given",) * len(first), years=years, forward=c.forward[first], discount=discount,
        rate=_rate(discount, years), quotes=np.bincount(numbers, minlength=len(first)),
        pairs=np.zeros(len(first), np.intp), r_squared=nothing, implied_rate=nothing, forward_error=nothing,
        borrow=_borrow(labels, numbers, first, c),
        american=_any(numbers, _is_american(labels, len(rows)), len(first)),
        **_conversion(numbers, _numbers(labels, AMERICAN_MID, len(rows)), quotes, rows, len(first)),
    )  # fmt: skip
    if not len(found):
        return given
    return Forwards.joined([given, found], np.arange(len(given) + len(found)))


def with_forwards(quotes: Quotes) -> tuple[Quotes, Forwards | None, Mask]:
    """Return a book as it was read, stand-ins and all, with the forwards of its slices; how they were found, and the
    rows, left out of the book, for which there is none."""
    rows = is_derived(quotes)
    if not rows.any():
        return quotes, None, rows
    made, report = _refit(quotes, rows)
    if "none" not in report.source:
        return made, report, np.zeros(len(quotes), bool)
    lost: Mask = made.labels[FORWARD_FROM] == "none"
    return made[~lost], report, lost


def refitted(quotes: Quotes, rows: Mask) -> Quotes:
    """Return the quotes with the forwards of these rows, whole slices, refitted."""
    if not (rows & is_derived(quotes)).any():
        return quotes
    made, report = derived(quotes, rows=rows)
    if "none" in report.source:
        lost = [name for name, source in zip(report.names, report.source, strict=True) if source == "none"]
        n = report.source.index("none")
        left = f"{many(report.quotes[n], 'quote')} {agreeing(report.quotes[n], 'is', 'are')}"
        raise RefusedError(
            f"Of the slice {lost[0]} {left} left with {many(report.pairs[n], 'pair')} of a call and a put around the "
            f"money, and {PAIRS} are needed to find its forward ({many(len(lost), 'such slice')}). Strike "
            "out the rest of the slice too, or read the file with a column forward, or with spot, rate and "
            "dividend_yield.",
            slices=lost,
            ids=made.ids[made.labels[FORWARD_FROM] == "none"].tolist(),
        )
    return made


def underived(quotes: Quotes) -> Quotes:
    """Return the book with stand-ins for what is derived: the strike for a forward, 1 for a discount. Nothing of any
    other quote is left in a row of it; ``derived`` brings the numbers back."""
    at = np.flatnonzero(is_derived(quotes))
    if not at.size:
        return quotes
    c = quotes.contracts[at]
    is_own = _column(quotes.labels, DISCOUNT_FROM, len(quotes))[at] != "parity"
    mid = _numbers(quotes.labels, AMERICAN_MID, len(quotes))[at]
    return _placed(
        quotes,
        at,
        forward=np.array(c.strike),
        discount=np.where(is_own, c.discount, PLAIN),
        source=np.full(len(at), "parity", object),
        observed=np.where(np.isfinite(mid), mid, quotes.observed[at]),
    )


def as_given(quotes: Quotes) -> Quotes:
    """Return the book with every forward as it is now, for good: as if each had come with its own row."""
    if not is_derived(quotes).any():
        return quotes
    labels = {name: column for name, column in quotes.labels.items() if name not in (FORWARD_FROM, DISCOUNT_FROM)}
    return _with(quotes, contracts=quotes.contracts, labels=labels, observed=quotes.observed)


def touched_by(quotes: Quotes, gone: Mask) -> Mask:
    """Return the retained rows whose forward depends on removed rows."""
    rests = is_derived(quotes)
    if not (rests & gone).any():
        return np.zeros(len(quotes), bool)
    numbers, first = slice_numbers(quotes.labels, quotes.contracts.expiry)
    hit = np.zeros(len(first), bool)
    hit[numbers[gone & rests]] = True
    found: Mask = hit[numbers] & rests & ~gone
    return found


def shares_forwards(quotes: Quotes, group: Rows) -> bool:
    """Return whether a derived forward depends on quotes of different groups."""
    rows = is_derived(quotes)
    if not rows.any():
        return False
    numbers, first = slice_numbers(quotes.labels, quotes.contracts.expiry)
    of_slice = np.full(len(first), -1, np.intp)
    of_slice[numbers[rows]] = group[rows]  # of several assignments to one place the last one stays
    return bool((of_slice[numbers[rows]] != group[rows]).any())


def _conversion(numbers: Rows, mid: Floats, made: Quotes, at: Rows | slice, count: int) -> Any:
    """Return how many American mids of each slice are European prices now, and what that is in volatility points."""
    early = np.isfinite(mid)
    if not early.any():
        return {"converted": np.zeros(count, np.intp), "correction": np.full(count, np.nan)}
    c = made.contracts[at]
    outside = np.flatnonzero(early & (c.is_call == (c.strike >= c.forward)))
    part = c[outside]
    before, after = (
        black.implied_volatility(price[outside], part.forward, part.strike, part.expiry, part.discount, part.is_call)
        for price in (mid, made.observed[at])
    )
    apart = np.full(len(c), np.nan)
    apart[outside] = 100.0 * (before - after)
    converted = np.bincount(numbers, weights=early, minlength=count).astype(np.intp)
    return {"converted": converted, "correction": _medians(numbers, apart, count)}


def _begin(discount: Floats, years: Floats, converted: Mask) -> Floats:
    """Return the discount of the first round: where American mids would have to give it, that of the prior rate.

    The slope of American mids is far off: early exercise of puts makes it steeper, as a negative rate would.
    """
    prior: Floats = elementary.exp(-RATE * years)
    return np.where(converted & ~np.isfinite(discount), prior, discount)


def _near(numbers: Rows, strike: Floats, forward: Floats, before: Mask, converted: Mask) -> Mask:
    """Return the rows of which parity needs European prices: those around the money, or all of a slice with few of
    them.

    Found after the first round and kept: what parity is fitted to must not change from round to round.
    """
    if not before.all():
        return before
    with np.errstate(invalid="ignore"):
        close = np.abs(strike / forward[numbers] - 1.0) <= CLOSE
    enough = np.bincount(numbers, weights=close, minlength=len(forward)) >= ENOUGH
    found: Mask = close | ~(enough & converted)[numbers]
    return found


def _as_european(
    c: Contracts, labels: Mapping[str, NDArray[Any]], price: Floats, near: Mask, *, forward: Floats, discount: Floats
) -> Floats:
    """Return the prices with those of American mids replaced by European ones, as far as forward and discount are
    known."""
    mid = _numbers(labels, AMERICAN_MID, len(c))
    rows = np.flatnonzero(near & np.isfinite(mid) & np.isfinite(forward) & np.isfinite(discount) & (discount > 0.0))
    if not rows.size:
        return price
    part, spot = c[rows], _numbers(labels, "spot", len(c))[rows]
    contracts = Contracts(
        forward=forward[rows], discount=discount[rows], strike=part.strike, expiry=part.expiry, is_call=part.is_call
    )
    found = np.array(price)
    found[rows] = european_prices(mid[rows], spot, contracts, _column(labels, DIVIDENDS, len(c))[rows])
    return found


def _placed(
    quotes: Quotes, at: Rows | slice, *, forward: Floats, discount: Floats, source: Any, observed: Floats
) -> Quotes:
    c = quotes.contracts
    columns = {"forward": np.array(c.forward), "discount": np.array(c.discount)}
    columns["forward"][at], columns["discount"][at] = forward, discount
    label = np.array(quotes.labels[FORWARD_FROM], object)
    label[at] = source
    contracts = Contracts(**columns, strike=c.strike, expiry=c.expiry, is_call=c.is_call)
    prices = np.array(quotes.observed)
    prices[at] = observed
    return _with(quotes, contracts=contracts, labels={**quotes.labels, FORWARD_FROM: label}, observed=prices)


def _with(quotes: Quotes, *, contracts: Contracts, labels: Mapping[str, NDArray[Any]], observed: Floats) -> Quotes:
    return type(quotes)._trusted(
        ids=quotes.ids, contracts=contracts, observed=observed, weight=quotes.weight, spread=quotes.spread,
        labels=labels,
    )  # fmt: skip


def _from_spot(labels: Mapping[str, NDArray[Any]], contracts: Contracts) -> Floats:
    """``spot exp(-dividend_yield T) / discount`` less cash dividends; not-a-number if a label is missing."""
    spot, dividend = (_numbers(labels, name, len(contracts)) for name in ("spot", "dividend_yield"))
    if not np.isfinite(spot).any():
        return spot
    with np.errstate(over="ignore"):
        carry: Floats = elementary.exp(-dividend * contracts.expiry)
        found = spot * carry / contracts.discount
    T, texts = contracts.expiry, _column(labels, DIVIDENDS, len(contracts)).tolist()
    return less_dividends(found, texts, spot=spot, expiry=T, cost=_rate(contracts.discount, T) - dividend)


def _borrow(labels: Mapping[str, NDArray[Any]], numbers: Rows, first: Rows, c: Contracts) -> Floats:
    """Return the yield that the forward of each slice and the median of its spots imply, beside cash dividends."""
    part, spot = c[first], _medians(numbers, _numbers(labels, "spot", len(c)), len(first))
    texts = _column({name: column[first] for name, column in labels.items()}, DIVIDENDS, len(first)).tolist()
    return borrows(texts, spot=spot, forward=part.forward, expiry=part.expiry, rate=_rate(part.discount, part.expiry))


def _column(labels: Mapping[str, NDArray[Any]], name: str, count: int) -> NDArray[Any]:
    # np.full takes 20 times as long.
    return labels[name] if name in labels else np.repeat(np.array([""], object), count)


def _numbers(labels: Mapping[str, NDArray[Any]], name: str, count: int) -> Floats:
    held = labels.get(name)
    return held.astype(float) if held is not None and held.dtype.kind in "fiu" else np.full(count, np.nan)


def _is_american(labels: Mapping[str, NDArray[Any]], count: int) -> Mask:
    return is_american(labels["exercise"]) if "exercise" in labels else np.zeros(count, bool)


def _any(numbers: Rows, mask: Mask, count: int) -> Mask:
    found: Mask = np.bincount(numbers[mask], minlength=count) > 0
    return found


def _medians(numbers: Rows, values: Floats, count: int) -> Floats:
    """Return the median of the known numbers of each slice; not-a-number if none is known."""
    known = np.isfinite(values)
    out = np.full(count, np.nan)
    s, v = numbers[known], values[known]
    order = np.lexsort((v, s))
    many = np.bincount(s, minlength=count)
    some = many > 0
    out[some] = v[order][(np.cumsum(many) - many + (many - 1) // 2)[some]]
    return out


def _rate(discount: Floats, years: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm: Floats = elementary.log(discount)
        return -logarithm / years


@dataclass(frozen=True)
class Refit:
    """A slice whose forward was refitted because quotes of it were removed or added."""

    name: str
    forward: tuple[float, float]  # before and after
    discount: tuple[float, float]

    def __str__(self) -> str:
        (f, g), (d, e) = self.forward, self.discount
        return f"{self.name}: forward {f:.8g} -> {g:.8g}, discount {d:.6f} -> {e:.6f}"


def refits(before: Quotes, after: Quotes) -> tuple[Refit, ...]:
    """Return the slices with quotes in both books whose forward or discount differs in a bit, and the numbers."""
    if not (is_derived(before).any() or is_derived(after).any()):
        return ()
    both = np.intersect1d(before.ids, after.ids)
    old, new = before.only(both), after.only(both)
    old, new = old[np.argsort(old.ids)], new[np.argsort(new.ids)]
    a, b = old.contracts, new.contracts
    moved = np.flatnonzero((a.forward != b.forward) | (a.discount != b.discount))
    if not moved.size:
        return ()
    part = new[moved]
    _, first = slice_numbers(part.labels, part.contracts.expiry)
    return tuple(
        Refit(
            slice_name(part.labels, float(b.expiry[moved[n]]), row=int(n)),
            (float(a.forward[moved[n]]), float(b.forward[moved[n]])),
            (float(a.discount[moved[n]]), float(b.discount[moved[n]])),
        )
        for n in np.sort(first).tolist()
    )
