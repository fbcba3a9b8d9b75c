"""The paper's open question: does a curvature of higher order, or a quasi-Newton one, better a data-free step?

One data-free step with different cached curvatures: what each keeps of a quote, and where its step leads.

    symbol     meaning                                                          shape
    r, J, D    residual, sensitivities, second derivatives of a quote's price   n; n, p; n, p, p
    H, G       sum J J', sum J r: Gauss-Newton's curvature and the score        p, p; p
    S, T, Q    sum r D, sum J D, sum D D: what the second order adds            p, p; p, p, p; p, p, p, p
    C          what a secant update found missing in H, from the calibration    p, p
    d          the step                                                         p

Rows are weighted by the square roots of the weights. All sums are of the retained quotes at a reference that was
fitted with the forgotten ones in it. They are summed here directly, which gives what subtracting the forgotten rows
gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal

import numpy as np

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.loop import updated
from strikeout.kernels.arrays import Floats
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.paper.experiments.corruption import Feed, apart, feeds
from strikeout.paper.experiments.report import Column, Finding, Picture, Progress, Scale, Section, Table
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.objective import objective_of
from strikeout.statistics.second_order import STEP, SecondOrder
from strikeout.statistics.system import WHOLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ITERATIONS = 50  # of the search in the quadratic model of the prices, which has no prices to compute
SETTLED = 1e-10
# Standard errors: a shorter step of a calibration changes the score by little more than its rounding; a longer one
# comes from so far away that its curvature shows nothing of the optimum.
TELLING = (1e-2, 30.0)


@dataclass(frozen=True, eq=False)
class Cache:
    """What is kept of the retained quotes at one reference."""

    reference: Floats
    r: Floats
    J: Floats
    D: Floats

    @property
    def curvature(self) -> Floats:
        return np.asarray(self.J.T @ self.J)

    @property
    def score(self) -> Floats:
        return np.asarray(self.J.T @ self.r)

    @property
    def second_order(self) -> SecondOrder:
        return SecondOrder(np.einsum("n,nab->ab", self.r, self.D), np.einsum("nk,nab->kab", self.J, self.D))


def cached(quotes: Quotes, model: Model, reference: Floats) -> Cache:
    """Return residuals, sensitivities and second derivatives of these quotes at a reference."""
    objective, _ = objective_of(quotes)
    root = objective.root_weight[:, None]
    r, J = rows(objective, model, reference)
    D = np.empty((len(r), len(reference), len(reference)))
    for i, h in enumerate(STEP * np.abs(reference)):
        up, down = (rows(objective, model, reference + s * h * np.eye(len(reference))[i])[1] for s in (1.0, -1.0))
        D[:, :, i] = (up - down) / (2.0 * h)
    return Cache(reference, objective.root_weight * r, root * J, 0.5 * root[:, :, None] * (D + D.transpose(0, 2, 1)))


def learnt(calibration: Calibration, update: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
    """Return C: what a secant update along the accepted steps of the calibration adds to H, forgotten quotes and all.

    ``update`` takes a curvature, a step and the change of the score over it. As in structured methods H is that of the
    point, and only what is missing is carried on. Steps too short to separate curvature from rounding are left out.
    """
    objective, _ = objective_of(calibration.quotes)
    points = [calibration.model.parameters.vector(one.parameters) for one in calibration.history]
    systems = [linearize(objective, calibration.model, point.tolist()) for point in points]
    C = np.zeros_like(systems[-1].curvature)
    for here, there, a, b in zip(points[:-1], points[1:], systems[:-1], systems[1:], strict=True):
        s, H = there - here, b.curvature
        if TELLING[0] < np.sqrt(s @ H @ s / (b.cost / b.count)) < TELLING[1]:
            C = update(H + C, s, a.score - b.score) - H
    return C


def rank_one(B: Floats, s: Floats, y: Floats) -> Floats:
    """Return the symmetric rank-one update."""
    found = updated(None, B.tolist(), s.tolist(), y.tolist())
    return B if found is None else B + np.array(found)


def bfgs(B: Floats, s: Floats, y: Floats) -> Floats:
    """Return Broyden's, Fletcher's, Goldfarb's and Shanno's update; None if the step finds no positive curvature."""
    if not y @ s > 0.0:
        return B
    Bs = B @ s
    return np.asarray(B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (y @ s))


def step(H: Floats, G: Floats) -> Floats:
    """``H^-1 G``, scaled; not-a-number if H is not positive definite and a step would lead uphill."""
    diagonal = np.diag(H)
    if not (diagonal > 0.0).all():
        return np.full(len(G), np.nan)
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H * np.outer(scale, scale)
    if not np.linalg.eigvalsh(scaled)[0] > 0.0:
        return np.full(len(G), np.nan)
    return np.asarray(scale * np.linalg.solve(scaled, scale * G))


def gauss_newton(cache: Cache) -> Floats:
    """Return the paper's: H alone."""
    return step(cache.curvature, cache.score)


def newton(cache: Cache) -> Floats:
    """Step with the second-order term of the residuals, H - S, the true second derivative of the cost."""
    return step(cache.curvature - cache.second_order.residual, cache.score)


def corrected(cache: Cache) -> Floats:
    """Take Gauss-Newton's step, then what it misses to second order: S and T."""
    d = gauss_newton(cache)
    return d + cache.second_order.left_out(cache.curvature, d)


def quadratic(cache: Cache) -> Floats:
    """Return the optimum of the quotes when every price is its own quadratic at the reference: H, G, S, T and Q.

    The search needs the sums alone; it runs over the rows here, which is the same.
    """
    d, damping = np.zeros(len(cache.reference)), 0.0
    r, J = _bent(cache, d)
    cost = r @ r
    for _ in range(ITERATIONS):
        H, G = J.T @ J, J.T @ r
        change = step(H + damping * np.diag(np.diag(H)), G)
        ahead = _bent(cache, d + change)
        if not ahead[0] @ ahead[0] <= cost:
            damping = max(4.0 * damping, 1e-3)
            continue
        (r, J), d, damping = ahead, d + change, 0.2 * damping
        if cost - r @ r <= SETTLED * cost:
            break
        cost = r @ r
    return d


def _bent(cache: Cache, d: Floats) -> tuple[Floats, Floats]:
    Dd = cache.D @ d
    return cache.r - (cache.J + 0.5 * Dd) @ d, cache.J + Dd


SECTION = Section(
    "curvature",
    "Curvature of higher order, and quasi-Newton's",
    "The paper leaves open whether a richer cached curvature would better its one step. Every candidate is tried on "
    "the same strike-outs: from clean books, from a market that Heston cannot meet, and of corrupt feeds. All are "
    "data-free: they use sums kept at a reference, from which the forgotten quotes' are subtracted. The yardstick is "
    "a refit of the retained quotes.",
)
GROUPS = ("clean", "misfit", "corrupt")
WORDS = {"clean": "clean books", "misfit": "a market Heston misses", "corrupt": "corrupt feeds"}
MISFIT = 0.02  # currency: twenty times the noise of the books
HELPS, HURTS = 0.5, 2.0  # of the error, at the median, against Gauss-Newton from the same reference

Reference = Literal["least squares", "robust"]


@dataclass(frozen=True)
class Way:
    """A curvature to keep: its name, the point it is taken at, and how many numbers it is for five parameters."""

    name: str
    reference: Reference
    numbers: int

    @property
    def words(self) -> str:
        return f"{self.name}, {self.reference}"


# 15 + 5 numbers are H and G; S and C have 15, T 75, Q 120.
PLAIN, ROBUST = Way("Gauss-Newton", "least squares", 20), Way("Gauss-Newton", "robust", 20)
WAYS = (
    PLAIN,
    Way("+ residual x second derivatives", "least squares", 35),
    Way("+ rank one, learnt in the search", "least squares", 35),
    Way("+ BFGS, learnt in the search", "least squares", 35),
    Way("averaged over two references", "least squares", 40),
    Way("+ correction of second order", "least squares", 110),
    Way("quadratic prices", "least squares", 230),
    ROBUST,
    Way("+ residual x second derivatives", "robust", 35),
    Way("+ correction of second order", "robust", 110),
    Way("quadratic prices", "robust", 230),
)


@dataclass(frozen=True, eq=False)
class Tried:
    """One strike-out: how far each way's answer is from the refit, worst parameter, in its standard errors."""

    group: str
    name: str
    forgotten: int
    errors: dict[Way, float]


def run(scale: Scale, progress: Progress) -> Finding:
    """Return every way on every strike-out of both of the paper's books."""
    books = [(size, seed) for seed in scale.seeds for size in ("small", "large")]
    found: list[Tried] = []
    for place, (size, seed) in enumerate(books):
        progress(place / len(books), f"{size} set, seed {seed}")
        found += tried(paper_quotes(size, seed=seed), name=f"{size} {seed}", seed=seed)  # type: ignore[arg-type]
    progress(1.0, "done")
    return Finding(
        paragraphs=_paragraphs(found),
        tables={"ways": ways_table(found), "every-strike-out": every_table(found)},
        figures={
            "errors": Picture(
                "Every strike-out under every curvature: distance of the data-free answer from the refit, worst "
                "parameter, in its standard errors. A bar marks the median; rings at the right edge are curvatures "
                "that are not positive definite and give no step.",
                lambda: _errors(found),
            )
        },
    )


def strike_outs(book: Quotes, *, seed: int) -> Iterator[tuple[str, Feed]]:
    """Choose what is struck out: random quotes, a block of days, a strike; from a clean and a bent book; bad feeds."""
    rng = np.random.default_rng(seed)
    c, day = book.contracts, book.labels["day"]
    begin = int(day.max() + 1) // 3
    gone = {f"{100 * share:g} % at random": rng.random(len(book)) < share for share in (0.01, 0.05, 0.10, 0.25, 0.50)}
    gone["20 days"] = (day >= begin) & (day < begin + 20)
    gone["the highest strike"] = c.strike == c.strike.max()
    # A smile that no Heston has: a wave in log-moneyness.
    wave = MISFIT * np.sin(25.0 * np.log(c.strike / c.forward)) * np.sqrt(c.expiry)
    for group, quotes in (("clean", book), ("misfit", book.with_observed(book.observed + wave))):
        for name, bad in gone.items():
            yield group, Feed(name, quotes, np.asarray(bad))
    for feed in feeds(book, seed=seed):
        if "nothing bad" not in feed.name:
            yield "corrupt", feed


def tried(book: Quotes, *, name: str, seed: int) -> Iterator[Tried]:
    """Return every way on every strike-out of a book; those whose refit does not converge are left out."""
    model = Heston()
    for group, feed in strike_outs(book, seed=seed):
        ids = feed.quotes.ids[feed.bad]
        retained = feed.quotes.without(ids)
        before, refit = calibrate(feed.quotes, model), calibrate(retained, model)
        if not refit.converged:
            continue
        space = model.parameters
        plain = cached(retained, before.model, space.vector(before.parameters))
        robust = cached(retained, before.model, space.vector(before.references[WHOLE]))
        steps = _steps(plain, robust, learnt(before, rank_one), learnt(before, bfgs))
        ends = {
            way: (plain if way.reference == "least squares" else robust).reference + steps[way]  # a step may be NaN
            for way in WAYS
        }
        errors = {way: apart(space.named(end), refit) for way, end in ends.items()}
        yield Tried(group, f"{name}, {feed.name}", len(ids), errors)


def _steps(plain: Cache, robust: Cache, by_rank_one: Floats, by_bfgs: Floats) -> dict[Way, Floats]:
    solved = step
    found = (
        gauss_newton(plain),
        newton(plain),
        solved(plain.curvature + by_rank_one, plain.score),
        solved(plain.curvature + by_bfgs, plain.score),
        solved(0.5 * (plain.curvature + robust.curvature), plain.score),
        corrected(plain),
        quadratic(plain),
        gauss_newton(robust),
        newton(robust),
        corrected(robust),
        quadratic(robust),
    )
    return dict(zip(WAYS, found, strict=True))


def gain(found: Sequence[Tried], way: Way) -> float:
    """Return the median error over that of Gauss-Newton from the same reference; infinite if there is none."""
    beside = PLAIN if way.reference == "least squares" else ROBUST
    ratios = [one.errors[way] / one.errors[beside] for one in found if isfinite(one.errors[beside])]
    return float(np.median(ratios))


def ways_table(found: Sequence[Tried]) -> Table:
    """Return a row a way."""

    def figures(group: str, way: Way) -> tuple[float, float]:
        errors = [one.errors[way] for one in found if one.group == group]
        return float(np.median(errors)), max(errors)

    return Table(
        f"{len(found)} strike-outs. Errors are distances from the refit, worst parameter, in standard errors (SE): "
        "the median and the worst. A dash: no step, because the curvature is not positive definite. The last column "
        "is the error over that of Gauss-Newton from the same reference, at the median.",
        (
            Column("kept"),
            Column("reference"),
            Column("numbers", "count", "d"),
            *(Column(f"{WORDS[group]}{which}", "SE", ".1e") for group in GROUPS for which in ("", ", worst")),
            Column("of Gauss-Newton", "ratio", ".2g"),
        ),
        [
            (
                way.name,
                way.reference,
                way.numbers,
                *(figure for group in GROUPS for figure in figures(group, way)),
                gain(found, way),
            )
            for way in WAYS
        ],
    )


def every_table(found: Sequence[Tried]) -> Table:
    """Return a row a strike-out, a column a way."""
    return Table(
        "Every strike-out: distances from the refit, in standard errors.",
        (
            Column("group"),
            Column("strike-out"),
            Column("forgotten", "quotes", "d"),
            *(Column(way.words, "SE", ".2e") for way in WAYS),
        ),
        [(one.group, one.name, one.forgotten, *(one.errors[way] for way in WAYS)) for one in found],
        is_shown=False,
    )


def verdict(found: Sequence[Tried], way: Way) -> Literal["helps", "hurts", "changes little"]:
    """Return whether a way is worth keeping, by its median error against Gauss-Newton's."""
    ratio = gain(found, way)
    return "helps" if ratio <= HELPS else "hurts" if ratio >= HURTS else "changes little"


def _paragraphs(found: Sequence[Tried]) -> tuple[str, ...]:
    judged = {way: verdict(found, way) for way in WAYS if way not in (PLAIN, ROBUST)}
    by_outcome = {
        word: "; ".join(f"{way.words} ({_times(gain(found, way))})" for way in judged if judged[way] == word)
        for word in ("helps", "hurts", "changes little")
    }

    def middle(way: Way, group: str) -> float:
        return float(np.median([one.errors[way] for one in found if one.group == group]))

    def worst(way: Way, group: str) -> float:
        return max(one.errors[way] for one in found if one.group == group)

    curved, corrected, robustly = WAYS[1], WAYS[5], WAYS[9]
    indefinite = sum(not isfinite(one.errors[curved]) for one in found)
    noisy = [one for one in found if one.group == "clean"]
    best = min(middle(way, "corrupt") for way in WAYS if way.reference == "least squares")
    return (
        "Error over that of Gauss-Newton from the same reference, at the median. "
        + " ".join(f"{word.capitalize()}: {names}." for word, names in by_outcome.items() if names),
        "The second derivatives of the prices belong into the step as a whole or not at all. Residuals times second "
        "derivatives make Gauss-Newton's curvature Newton's; along the step the sensitivities change, and take away "
        "again what that adds. Gauss-Newton leaves out both. Newton keeps one and misses by more, even if the "
        f"remaining residuals are noise: with one parameter by three times as much, here by {gain(noisy, curved):.1f} "
        f"times at the median of the clean books. And its curvature is not positive definite in {indefinite} of "
        f"{len(found)} strike-outs. Both together, 110 numbers in place of 20, take the median error on clean books "
        f"from {middle(PLAIN, 'clean'):.1e} to {middle(corrected, 'clean'):.1e} standard errors.",
        "What a search learns on its way, by rank one or BFGS, is the curvature of the whole book along the few "
        "directions it came from, the forgotten quotes in it. A mean of two references' curvatures is that of neither.",
        "No curvature mends a bad reference. After corrupt feeds Gauss-Newton from the least-squares parameters "
        f"misses by {middle(PLAIN, 'corrupt'):.1e} standard errors at the median, and the best curvature there by "
        f"{best:.1e}; from the robust reference Gauss-Newton alone misses by {middle(ROBUST, 'corrupt'):.1e}, and "
        f"with the correction by {middle(robustly, 'corrupt'):.1e}, at worst {worst(robustly, 'corrupt'):.1e}. Where "
        "the model misses the market residuals are not noise, and the least-squares reference is the nearer one: "
        f"{middle(PLAIN, 'misfit'):.1e} against {middle(ROBUST, 'misfit'):.1e}, and {middle(corrected, 'misfit'):.1e} "
        "with the correction. This package keeps the sums of the correction and judges every step by them; what "
        "forget answers with, unless a tolerance is given, hangs on no reference.",
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2g} times" if isfinite(ratio) else "no step"


def _errors(found: Sequence[Tried]) -> Figure:
    from strikeout.plots import style

    with style.styled():
        figure = style.blank(height=4.2)
        style.title(
            figure,
            "What a richer curvature does to one data-free step",
            [("from the least-squares reference", style.MODEL, "o"), ("from the robust one", style.MARKET, "o")],
        )
        axes = figure.subplots(1, len(GROUPS), sharey=True)
        for panel, group in zip(axes, GROUPS, strict=True):
            panel.set_title(WORDS[group])
            panel.set_xscale("log")
            ours = [one.errors for one in found if one.group == group]
            edge = 30.0 * max(error for errors in ours for error in errors.values() if isfinite(error))
            for row, way in enumerate(WAYS):
                colour = style.MODEL if way.reference == "least squares" else style.MARKET
                errors = np.array([one[way] for one in ours])
                fan = row + 0.25 * np.sin(np.arange(len(errors)) * 2.399963)  # in place of jitter: the same every time
                lost = ~np.isfinite(errors)
                panel.plot(errors[~lost], fan[~lost], ".", color=colour, markersize=3.0, alpha=0.5, mew=0)
                if lost.any():
                    panel.plot(
                        np.full(lost.sum(), edge), fan[lost], "o", color=colour, markersize=3.0, markerfacecolor="none"
                    )
                middle = float(np.median(errors))
                middle = middle if middle < inf else edge
                panel.plot([middle, middle], [row - 0.35, row + 0.35], color=colour, linewidth=1.6)
            panel.set_xlabel("standard errors")
            panel.grid(visible=False, axis="y")
            panel.set_yticks(range(len(WAYS)), [way.name for way in WAYS])
            panel.set_ylim(len(WAYS) - 0.4, -0.6)
            panel.locator_params(axis="x", numticks=5)
    return figure
