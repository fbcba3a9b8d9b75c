"""Small panels drawn as SVG: smiles of market, model and model after a strike-out; parameters over time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from strikeout.plots.drawing import Drawing, Scale, element, path_of, scale_over, short, text, tip
from strikeout.plots.smiles import Day, Smile, curve_of, seen_in, smiles_of
from strikeout.plots.style import WHOLE, View
from strikeout.tables import Cell, Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

WIDTH, HEIGHT = 300.0, 186.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 6.0, 18.0, 22.0
FLOOR = HEIGHT - BOTTOM
MOST_SMILES = 6
BAND = 2.0  # standard errors to either side
MOST_MARKED = 60  # points of a path that have a dot each; a longer path alone is drawn wide


@dataclass(frozen=True)
class After:
    """What a strike-out would leave: the parameters, the latent ones of a panel by group, and the quotes removed."""

    parameters: Mapping[str, float]
    latent: Mapping[str, float] = ()  # type: ignore[assignment]
    removed: Collection[str] = ()


def draw_smiles(
    calibration: Calibration | Day,
    *,
    view: View = WHOLE,
    after: After | None = None,
    difference: bool = False,
    link: str | None = None,
    at_most: int = MOST_SMILES,
    names: tuple[str, str] = ("model", "model after"),
) -> Drawing:
    """Return the smiles of a date: market with bid and ask, model, and the model after a strike-out.

    Args:
        after: what a strike-out would leave; its curves are dashed and its quotes are crossed out.
        difference: show volatilities less those of the model, in volatility points.
        link: the address of a quote's row without the quote's id; each point is then a link.
        at_most: how many expiries.
        names: of the two curves.
    """
    seen = seen_in(calibration, view)
    smiles = smiles_of(seen, at_most=at_most)
    later = None if after is None else _later(calibration, seen, after)
    panels, rows = [], []
    removed = frozenset(() if after is None else after.removed)
    for smile in smiles:
        curve = None if later is None else curve_of(later, smile.curve_moneyness, smile.expiry)
        panels.append(_smile_panel(smile, curve, removed, difference=difference, link=link))
        rows += _smile_rows(smile, curve, removed)
    curves = names[:1] if later is None else names
    heads = ["expiry", "quote", "log-moneyness", "volatility, %", "bid, %", "ask, %", *(f"{c}, %" for c in curves)]
    table = Table([*heads, "struck out"], rows, numbers=tuple(range(2, len(heads))), whole=(0, 1))
    when = f", {seen.name}" if isinstance(seen, Day) and seen.name else ""
    marks = [("so-market", "market"), ("so-model", names[0])]
    marks += [("so-after", names[1])] if later is not None else []
    unit = "volatility points from the model" if difference else "implied volatility, %"
    legend = "".join(f'<span class="{name}">{escape(words)}</span>' for name, words in marks)
    title = f"{'Differences of the smiles' if difference else 'Smiles'}{when}"
    alternative = (
        f"{title}: {unit} over log-moneyness, {many(len(smiles), 'expiry', 'expiries')}: "
        f"{', '.join(smile.title for smile in smiles)}. {many(len(rows), 'quote')}."
    )
    legend = f'<p class="so-legend">{legend}<span>{unit} over ln(strike / forward)</span></p>'
    return Drawing(f'{legend}<div class="so-panels">{"".join(panels)}</div>', table, title, alternative)


def _later(calibration: Calibration | Day, seen: Any, after: After) -> Day:
    theta = {**seen.parameters, **after.parameters}
    if not isinstance(calibration, Day) and calibration.is_panel and isinstance(seen, Day):
        name, latent = str(calibration.latent_name), dict(after.latent)
        theta[name] = latent.get(seen.name, theta[name])
    return Day(calibration.model, {name: theta[name] for name in seen.parameters}, seen.used, "")


def _smile_rows(smile: Smile, after: Any, removed: Collection[str]) -> list[list[Cell]]:
    curves = [smile.curve] if after is None else [smile.curve, after]
    models = [np.interp(smile.moneyness, smile.curve_moneyness, curve) for curve in curves]
    values = zip(smile.ids, smile.moneyness, smile.volatility, smile.bid, smile.ask, *models, strict=True)
    return [
        [
            smile.title,
            name,
            number(float(at), ".4f"),
            *(number(float(value), ".2f", scale=100.0) for value in volatilities),
            "yes" if name in removed else "",
        ]
        for name, at, *volatilities in values
    ]


def _smile_panel(smile: Smile, after: Any, removed: Collection[str], *, difference: bool, link: str | None) -> str:
    base = np.interp(smile.moneyness, smile.curve_moneyness, smile.curve) if difference else 0.0
    ground = smile.curve if difference else 0.0
    x = scale_over([*smile.moneyness, *smile.curve_moneyness], LEFT, WIDTH - RIGHT)
    market, curve = 100.0 * (smile.volatility - base), 100.0 * (smile.curve - ground)
    later = None if after is None else 100.0 * (after - ground)
    if difference:
        kept = market[~np.isin(smile.ids, list(removed))]  # what is struck out would hide the difference
        seen: list[float] = np.percentile(kept, [5, 95]).tolist() if kept.size else []
        y = scale_over([0.0, *seen, *([] if later is None else later)], FLOOR, TOP)
    else:
        low, high = smile.window()
        others = [] if later is None else [value for value in later if isfinite(value)]
        y = Scale(min([100 * low, *others]), max([100 * high, *others]), FLOOR, TOP)
    parts = _frame(smile.title, x, y, [(value, short(value)) for value in x.ticks(6)])
    half = zip(smile.moneyness, 100.0 * (smile.bid - base), 100.0 * (smile.ask - base), smile.is_otm, strict=True)
    parts += [
        element("line", x1=x(at), x2=x(at), y1=_inside(y, bid), y2=_inside(y, ask), class_="so-spread")
        for at, bid, ask, is_otm in half
        if is_otm and isfinite(bid) and isfinite(ask)
    ]
    parts.append(_line([*zip(smile.curve_moneyness, curve, strict=True)], x, y, "so-model"))
    if later is not None:
        parts.append(_line([*zip(smile.curve_moneyness, later, strict=True)], x, y, "so-after"))
    points = zip(smile.ids, smile.moneyness, market, smile.volatility, smile.is_otm, strict=True)
    for name, at, value, volatility, is_otm in points:
        if y.low <= value <= y.high:
            parts.append(_point(name, x(at), y(value), f"{100 * volatility:.2f} %", is_otm, name in removed, link))
    label = f"Smile of {smile.title}"
    return element(
        "svg", *parts, class_="so-chart", viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="group", aria_label=label
    )


def _point(name: str, x: float, y: float, shown: str, is_otm: bool, is_removed: bool, link: str | None) -> str:
    shown_as = tip(f"{name}: {shown}")
    kind = "so-market" if is_otm else "so-market so-pale"
    mark = (
        element("path", shown_as, d=f"M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6", class_="so-struck")
        if is_removed
        else element("circle", shown_as, cx=x, cy=y, r=2.4, class_=kind)
    )
    if link is None:
        return mark
    return element("a", mark, href=f"{link}{quote(name, safe='')}", tabindex="-1", aria_label=f"quote {name}")


def _frame(title: str, x: Scale, y: Scale, below: Sequence[tuple[float, str]]) -> list[str]:
    """Return the title, the grid and the ticks of a panel; ``below`` are places and texts of the ticks across."""
    parts = [text(title, 4.0, 11.0, class_="so-title")]
    for value in y.ticks(6):
        at = y(value)
        parts.append(element("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="so-grid"))
        parts.append(text(short(value), x.start - 4.0, at + 3.5, class_="so-tick", text_anchor="end"))
    parts += [text(words, x(at), FLOOR + 13.0, class_="so-tick", text_anchor="middle") for at, words in below]
    return parts


def _line(points: Sequence[tuple[float, float]], x: Scale, y: Scale, kind: str) -> str:
    places = [(x(at), y(value) if y.low <= value <= y.high else nan) for at, value in points]
    return element("path", d=path_of(places), class_=kind)


def _inside(y: Scale, value: float) -> float:
    return y(min(max(value, y.low), y.high))


@dataclass(frozen=True)
class Track:
    """A value over versions or dates: names, values and standard errors (None if unknown), and places to mark."""

    name: str
    at: Sequence[str]
    values: Sequence[float | None]
    errors: Sequence[float | None]
    marks: Mapping[int, str]  # by place: what happened there


def draw_tracks(tracks: Sequence[Track], *, title: str) -> Drawing:
    """Return one panel per value: its line, a band of twice its standard error, and a tick per mark."""
    rows: list[list[Cell]] = [
        [track.name, at, number(value), number(error, ".2g"), track.marks.get(place, "")]
        for track in tracks
        for place, (at, value, error) in enumerate(zip(track.at, track.values, track.errors, strict=True))
    ]
    table = Table(("value", "at", "number", "standard error", "event"), rows, numbers=(2, 3), whole=(0, 1))
    is_wide = len(tracks) == 1 and len(tracks[0].values) > MOST_MARKED
    panels = "".join(_track_panel(track, is_wide=is_wide) for track in tracks)
    alternative = f"{title}: {', '.join(track.name for track in tracks)}, each with a band of {BAND:g} standard errors."
    return Drawing(f'<div class="so-panels">{panels}</div>', table, title, alternative)


def draw_path(panel: Calibration, *, view: View = WHOLE) -> Drawing:  # noqa: ARG001 - a path shows every group
    """Return the latent parameter of a panel, group by group, with a band of twice its standard error."""
    errors = list(panel.latent_standard_errors.values())
    groups = [str(group) for group in panel.latent]
    name = str(panel.latent_name)
    known = [error if isfinite(error) else None for error in errors]
    return draw_tracks([Track(name, groups, list(panel.latent.values()), known, {})], title=f"{name} by {panel.panel}")


def _track_panel(track: Track, *, is_wide: bool) -> str:
    width, names = (4.0 * WIDTH, 12) if is_wide else (WIDTH, 4)
    values = [nan if value is None else value for value in track.values]
    errors = [0.0 if error is None else BAND * error for error in track.errors]
    known = [v for v in values if isfinite(v)]
    x = Scale(-0.5, max(len(values) - 0.5, 0.5), LEFT + 12, width - RIGHT)
    middle = sorted(known)[len(known) // 2] if known else 0.0
    reach = max((abs(v - middle) for v in known), default=0.0)
    # A band much wider than the path (a parameter that is not identified) would flatten it: it is cut off.
    most = max(3.0 * reach, 1.5 * min((e for e in errors if e > 0.0), default=0.0), 1e-12 * abs(middle)) or inf
    ends = [v + s * min(e, most) for v, e in zip(values, errors, strict=True) for s in (-1.0, 1.0) if isfinite(v)]
    y = scale_over(ends, FLOOR, TOP)
    step = max(1, -(-len(values) // names))
    parts = _frame(track.name, x, y, [(n, track.at[n][:10]) for n in range(0, len(values), step)])
    upper = [(x(n), _inside(y, v + e)) for n, (v, e) in enumerate(zip(values, errors, strict=True)) if isfinite(v)]
    lower = [(x(n), _inside(y, v - e)) for n, (v, e) in enumerate(zip(values, errors, strict=True)) if isfinite(v)]
    if len(upper) > 1:
        parts.append(element("path", d=path_of([*upper, *reversed(lower)]) + "Z", class_="so-band"))
    else:
        parts += [
            element("line", x1=a, x2=a, y1=b, y2=d, class_="so-spread")
            for (a, b), (_, d) in zip(upper, lower, strict=True)
        ]
    parts.append(element("path", d=path_of([(x(n), y(v)) for n, v in enumerate(values)]), class_="so-line"))
    for n, value in enumerate(values):
        if isfinite(value) and len(values) <= MOST_MARKED:
            shown = tip(f"{track.at[n]}: {value:.6g}")
            parts.append(element("circle", shown, cx=x(n), cy=y(value), r=2.4, class_="so-market"))
    parts += [
        element("line", tip(words), x1=x(n), x2=x(n), y1=FLOOR, y2=FLOOR - 9.0, class_="so-event")
        for n, words in track.marks.items()
    ]
    return element(
        "svg",
        *parts,
        class_="so-chart so-wide" if is_wide else "so-chart",
        viewBox=f"0 0 {width:g} {HEIGHT:g}",
        role="group",
        aria_label=track.name,
    )
