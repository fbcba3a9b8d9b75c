"""Smiles: implied volatility over log-moneyness, one panel per expiry, market against model.

Total variance, volatility squared times expiry, over log-moneyness: slices that cross are calendar arbitrage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels import black
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.models.named import title_of
from strikeout.plots import style
from strikeout.plots.style import WHOLE, View, caption, is_panel
from strikeout.quotes.contracts import Contracts
from strikeout.text import duration, many

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration
    from strikeout.models.model import Model
    from strikeout.quotes.quotes import Quotes


MOST_PANELS = 9
FULL = 5  # an expiry with fewer quotes makes a poor smile, and is shown if there is no better one
CURVE_POINTS = 81
MONEYNESS = "log-moneyness, ln(strike / forward)"
WIDEST = 7.0  # standard deviations of the log-price around the forward; what is quoted beyond would squeeze the smile
FAINTEST = 1e-10  # of the forward: a model price below it is too near the kernel's own error to imply a volatility


@dataclass(frozen=True, eq=False)
class Smile:
    """One expiry: the market's volatilities (bid and ask not-a-number if unknown) and the model's curve."""

    expiry: float
    title: str
    moneyness: Floats
    volatility: Floats
    bid: Floats
    ask: Floats
    is_otm: Mask  # out of the money; in the money a spread is wide in volatility
    curve_moneyness: Floats
    curve: Floats
    missing: int  # quotes whose price no volatility gives
    beyond: int  # quotes too far from the forward to be shown
    date: str = ""  # of the expiry, if it is known
    ids: tuple[str, ...] = ()  # of the quotes

    def window(self) -> tuple[float, float]:
        """Return the volatilities to show: the model's, and the market's without its most scattered twentieth."""
        known = np.concatenate([self.curve[np.isfinite(self.curve)], *_middle(self.volatility)])
        if not known.size:
            return 0.0, 1.0
        low, high = float(known.min()), float(known.max())
        room = max(0.12 * (high - low), 0.005)
        return max(low - room, 0.0), high + room

    @property
    def outside(self) -> int:
        """How many quotes have a volatility and are not in the panel."""
        low, high = self.window()
        return self.beyond + int(np.count_nonzero((self.volatility < low) | (self.volatility > high)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        market = {"volatility": self.volatility, "bid": self.bid, "ask": self.ask}
        return {
            "title": self.title,
            "expiry_years": self.expiry,
            "market": {
                "log_moneyness": style.plain(self.moneyness),
                **{name: style.plain(values) for name, values in market.items()},
                "is_out_of_the_money": self.is_otm.tolist(),
                "id": list(self.ids),
            },
            "model": {"log_moneyness": style.plain(self.curve_moneyness), "volatility": style.plain(self.curve)},
            "window": list(self.window()),
            "outside": self.outside,
            "missing": self.missing,
        }


@dataclass(frozen=True, eq=False)
class Day:
    """One group of a panel, with what a picture needs of a calibration."""

    model: Model
    parameters: dict[str, float]
    used: Quotes
    name: str


def smiles_of(calibration: Calibration | Day, *, at_most: int = MOST_PANELS, view: View = WHOLE) -> tuple[Smile, ...]:
    """Return the smiles of a calibration by expiry; evenly chosen ones if there are more expiries than ``at_most``.

    For a panel, those of one group, by default its last.
    """
    if at_most < 1:
        raise UsageError(f"at_most is {at_most}; at least one panel is needed.", at_most=at_most)
    seen = seen_in(calibration, view)
    quotes = seen.used
    contracts = quotes.contracts
    candidates, _ = _expiries(seen)
    places = np.unique(np.round(np.linspace(0, len(candidates) - 1, min(at_most, len(candidates)))).astype(int))
    dates = quotes.labels.get("expiry_date")
    return tuple(_smile(seen, np.flatnonzero(contracts.expiry == expiry), dates) for expiry in candidates[places])


def plot_smiles(
    calibration: Calibration,
    *,
    title: str | None = None,
    at_most: int = MOST_PANELS,
    name: str = "model",
    others: Mapping[str, Calibration] | None = None,
    view: View = WHOLE,
) -> Figure:
    """Return a figure of the smiles: dots are the market (bars from bid to ask if known), the line is the model.

    Quotes in the money are pale and have no bars. For a panel, the smiles of one group, by default its last.

    Args:
        name: the name of the line.
        others: up to three more calibrations by name, whose curves are drawn dashed over the same quotes.
        view: the expiries and the date to show.
    """
    beside = dict(others or {})
    if len(beside) > len(style.OTHERS):
        raise UsageError(f"{len(beside)} other calibrations; at most {len(style.OTHERS)} are distinct enough.")
    seen = seen_in(calibration, view)
    smiles = smiles_of(seen, at_most=at_most)
    across = {1: 1, 2: 2, 4: 2}.get(len(smiles), 3)
    down = ceil(len(smiles) / across)
    with style.styled():
        figure = style.blank(height=1.2 + (2.9 if across < 3 else 2.05) * down)
        marks: list[tuple[str, str, Literal["o", "-", "--"]]] = [
            ("market", style.MARKET, "o"),
            (name, style.MODEL, "-"),
        ]
        if not all(smile.is_otm.all() for smile in smiles):
            marks.insert(1, ("in the money", style.MARKET_PALE, "o"))
        marks += [(other, colour, "--") for other, colour in zip(beside, style.OTHERS, strict=False)]
        style.title(figure, title or _headline(seen), marks, caption=caption(calibration, view))
        panels = figure.subplots(down, across, squeeze=False).ravel()
        are_many = sum(len(smile.moneyness) for smile in smiles) > style.MANY
        for panel, smile in zip(panels, smiles, strict=False):
            curves = [curve_of(other, smile.curve_moneyness, smile.expiry) for other in beside.values()]
            _draw(panel, smile, curves, are_many=are_many)
        for panel in panels[len(smiles) :]:
            panel.set_axis_off()
        figure.supylabel("implied volatility, % per year", fontsize=8.5)
        notes = _notes(seen, smiles)
        figure.supxlabel("\n".join([MONEYNESS, "; ".join(notes)] if notes else [MONEYNESS]), fontsize=8.5)
    return figure


def smiles_data(calibration: Calibration, *, view: View = WHOLE) -> dict[str, Any]:
    """Return the smiles as plain values for JSON; a volatility that does not exist is None."""
    smiles = smiles_of(calibration, view=view)
    return {"panels": [smile.to_dict() for smile in smiles], "notes": _notes(seen_in(calibration, view), smiles)}


def expiries_shown(calibration: Calibration | Day, smiles: tuple[Smile, ...]) -> list[str]:
    """Return which expiries the smiles leave out and why, in words; empty if they leave out none."""
    full, thin = _expiries(seen_in(calibration))
    notes = [f"{len(smiles)} of {len(full):,} expiries, evenly chosen"] if len(smiles) < len(full) else []
    counted = many(thin, "expiry", "expiries")
    return notes + ([f"{counted} of fewer than {FULL} quotes left out"] if thin else [])


def _expiries(seen: Calibration | Day) -> tuple[Floats, int]:
    """Return the expiries with enough quotes for a smile (all if none has), and how many others there are."""
    expiries, counts = np.unique(seen.used.contracts.expiry, return_counts=True)
    full = expiries[counts >= FULL] if (counts >= FULL).any() else expiries
    return full, len(expiries) - len(full)


def seen_in(calibration: Calibration | Day, view: View = WHOLE) -> Calibration | Day:
    """Return what smiles show: the quotes of the view, for a panel those of one group, by default the last."""
    if isinstance(calibration, Day):
        return calibration
    groups = list(getattr(calibration, "rows", {}))
    if not is_panel(calibration):
        rows = view.rows(calibration.used)
        if rows.all():
            return calibration
        return Day(calibration.model, calibration.parameters, calibration.used[rows], view.date or "")
    panel: Any = calibration
    group = groups[-1] if view.date is None else next((each for each in groups if str(each) == view.date), None)
    if group is None:
        raise UsageError(f"date {view.date!r}: not a group of the panel.", missing=[view.date])
    quotes = panel.used[panel.rows[group]]
    rows = replace(view, date=None).rows(quotes)
    return Day(panel.model, panel.theta(group), quotes[rows], str(group))


def _smile(calibration: Calibration | Day, rows: Rows, dates: NDArray[np.generic] | None) -> Smile:
    quotes = calibration.used
    contracts = quotes.contracts[rows]
    observed, half = quotes.observed[rows], quotes.spread[rows] / 2
    moneyness, expiry = contracts.log_moneyness, float(contracts.expiry[0])
    volatility = _volatility(observed, contracts)
    known = np.isfinite(volatility) & (volatility > 0)
    shown = known & (np.abs(moneyness) <= _reach(moneyness[known], volatility[known], expiry))
    ends = moneyness[shown] if shown.any() else moneyness
    grid = np.linspace(ends.min(), ends.max(), CURVE_POINTS)
    date = _date(None if dates is None else dates[rows])
    return Smile(
        expiry=expiry,
        date=date,
        title=f"{date} · {duration(expiry)}" if date else duration(expiry),
        moneyness=moneyness[shown],
        volatility=volatility[shown],
        bid=_volatility(observed - half, contracts)[shown],
        ask=_volatility(observed + half, contracts)[shown],
        is_otm=((moneyness >= 0.0) == contracts.is_call)[shown],
        curve_moneyness=grid,
        curve=curve_of(calibration, grid, expiry),
        missing=int(np.count_nonzero(~known)),
        beyond=int(np.count_nonzero(known & ~shown)),
        ids=tuple(quotes.ids[rows][shown].tolist()),
    )


def curve_of(calibration: Calibration | Day, grid: Floats, expiry: float) -> Floats:
    """Return the volatilities of a model over log-moneyness; not-a-number where its price is too small for one."""
    # Out of the money on both sides, with forward 1: a model's volatility depends on moneyness and expiry alone.
    contracts = Contracts(forward=1.0, strike=np.exp(grid), expiry=expiry, discount=1.0, is_call=grid >= 0.0)
    prices = calibration.model.price(calibration.parameters, contracts)
    return np.where(prices > FAINTEST, _volatility(prices, contracts), np.nan)


def _reach(moneyness: Floats, volatility: Floats, expiry: float) -> float:
    """Return how far from the forward to show: `WIDEST` deviations at the volatility of the five nearest quotes."""
    if not moneyness.size:
        return inf
    nearest = np.argsort(np.abs(moneyness), kind="stable")[:5]
    reach = WIDEST * float(np.median(volatility[nearest])) * sqrt(expiry)
    return max(reach, float(np.abs(moneyness[nearest]).max()))


def _volatility(prices: Floats, contracts: Contracts) -> Floats:
    c = contracts
    return np.asarray(black.implied_volatility(prices, c.forward, c.strike, c.expiry, c.discount, c.is_call))


def _middle(volatility: Floats) -> list[Floats]:
    return [np.percentile(volatility, [2.5, 97.5])] if volatility.size else []


def _date(dates: NDArray[np.generic] | None) -> str:
    known = set() if dates is None else {str(date) for date in dates} - {""}
    return known.pop() if len(known) == 1 else ""


def _draw(panel: Axes, smile: Smile, curves: Sequence[Floats], *, are_many: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    # Many dots are small; the line is thinner then, or it would cover a market it goes right through.
    size, opacity, width = (11.0, 0.9, 1.5) if len(smile.moneyness) < 60 else (5.5, 0.6, 1.0)
    # In the money the same spread is many times as wide in volatility: such bars would bury the smile.
    known = np.isfinite(smile.bid) & np.isfinite(smile.ask) & smile.is_otm
    bars = (smile.moneyness[known], smile.bid[known], smile.ask[known])
    panel.vlines(*bars, color=style.MARKET, linewidth=0.7, alpha=0.5)
    for rows, colour in ((~smile.is_otm, style.MARKET_PALE), (smile.is_otm, style.MARKET)):
        x, y = smile.moneyness[rows], smile.volatility[rows]
        panel.scatter(x, y, s=size, color=colour, alpha=opacity, linewidth=0, rasterized=are_many)
    panel.plot(smile.curve_moneyness, smile.curve, color=style.MODEL, linewidth=width)
    for curve, colour in zip(curves, style.OTHERS, strict=False):
        panel.plot(smile.curve_moneyness, curve, color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
    panel.set_title(smile.title)
    panel.set_ylim(*smile.window())
    panel.margins(x=0.04)
    panel.xaxis.set_major_locator(MaxNLocator(4))
    panel.yaxis.set_major_locator(MaxNLocator(5))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda volatility, _: f"{100 * volatility:.4g}"))


def _headline(calibration: Calibration | Day) -> str:
    when = f", {calibration.name}" if isinstance(calibration, Day) and calibration.name else ""
    return f"{title_of(calibration.model.name)} against the market{when}"


def _notes(calibration: Calibration | Day, smiles: tuple[Smile, ...]) -> list[str]:
    outside, missing = sum(smile.outside for smile in smiles), sum(smile.missing for smile in smiles)
    notes = expiries_shown(calibration, smiles)
    notes += [f"{many(outside, 'quote')} outside the ranges shown"] if outside else []
    return notes + ([f"{many(missing, 'quote')} without an implied volatility"] if missing else [])


MOST_SLICES = 12
MOST_NAMES = 7  # of expiries beside the bar


def variance_data(calibration: Calibration, *, view: View = WHOLE) -> dict[str, Any]:
    """Return the slices as plain values for JSON: market and model, one entry per expiry."""
    return {
        "slices": [
            {
                "expiry_years": smile.expiry,
                "title": smile.title,
                "market": {
                    "log_moneyness": style.plain(smile.moneyness),
                    "total_variance": style.plain(smile.volatility**2 * smile.expiry),
                },
                "model": {
                    "log_moneyness": style.plain(smile.curve_moneyness),
                    "total_variance": style.plain(smile.curve**2 * smile.expiry),
                },
            }
            for smile in smiles_of(calibration, at_most=MOST_SLICES, view=view)
        ]
    }


def plot_variance(
    calibration: Calibration, *, title: str | None = None, at_most: int = MOST_SLICES, view: View = WHOLE
) -> Figure:
    """Return a figure of total variance by expiry, in the colour of its expiry: dots are the market, lines the model.

    Total variance grows with expiry if there is no calendar arbitrage; the axis is logarithmic, so that both a week
    and five years can be read. For a panel, that of one group, by default its last.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    seen = seen_in(calibration, view)
    smiles = smiles_of(seen, at_most=at_most)
    named = isinstance(seen, Day) and seen.name
    headline = f"Total variance by expiry, {named}" if named else "Total variance by expiry"
    expiries = np.array([smile.expiry for smile in smiles])
    with style.styled():
        figure = style.blank(height=4.6)
        marks: list[tuple[str, str, Literal["o", "-", "--"]]] = [("market", style.INK, "o"), ("model", style.INK, "-")]
        style.title(figure, title or headline, marks, caption=caption(calibration, view))
        panel = figure.subplots()
        low, high = float(expiries.min()), float(expiries.max())
        norm = LogNorm(low / 1.001, high * 1.001) if high > low else LogNorm(low / 2.0, high * 2.0)
        colours = style.in_order()
        are_many = sum(len(smile.moneyness) for smile in smiles) > style.MANY
        for smile in smiles:
            _draw_variance(panel, smile, colours(norm(smile.expiry)), are_many=are_many)
        panel.set_yscale("log")
        panel.set_ylim(*_window(smiles))
        panel.yaxis.set_major_locator(LogLocator(10.0, subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda variance, _: f"{variance:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.margins(x=0.02)
        panel.set_xlabel("log-moneyness, ln(strike / forward)")
        panel.set_ylabel("total variance, volatility² x years")
        bar = figure.colorbar(style.scale_of(norm, colours), ax=panel, pad=0.01, label="expiry")
        titles = {smile.expiry: smile.date or duration(smile.expiry) for smile in smiles}
        shown = np.unique(np.linspace(0, len(smiles) - 1, min(MOST_NAMES, len(smiles))).round().astype(int))
        bar.ax.yaxis.set_major_locator(FixedLocator(expiries[shown].tolist()))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda years, _: titles.get(years, duration(years))))
        bar.ax.yaxis.set_minor_locator(NullLocator())
        notes = expiries_shown(seen, smiles)
        if notes:
            figure.supxlabel("; ".join(notes), fontsize=8.5)
    return figure


def _draw_variance(panel: Axes, smile: Smile, colour: Any, *, are_many: bool) -> None:
    variance = smile.volatility**2 * smile.expiry
    size = 9.0 if len(smile.moneyness) < 60 else 3.0
    panel.scatter(smile.moneyness, variance, s=size, color=colour, alpha=0.6, linewidth=0, rasterized=are_many)
    panel.plot(smile.curve_moneyness, smile.curve**2 * smile.expiry, color=colour, linewidth=1.3)


def _window(smiles: tuple[Smile, ...]) -> tuple[float, float]:
    """Return the least and the largest total variance that the panels of the smiles would show."""
    lows = [max(smile.window()[0], 0.25 * smile.window()[1]) ** 2 * smile.expiry for smile in smiles]
    highs = [smile.window()[1] ** 2 * smile.expiry for smile in smiles]
    return max(min(lows), 1e-9), max(highs) * 1.1
