"""What is left of removed and erased quotes: in results, in files, in times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from strikeout.assurance.bounds import leverages, weyl
from strikeout.book import Book
from strikeout.book.spec import Through
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.errors import ParameterError, RefusedError
from strikeout.forgetting.forget import forget
from strikeout.forgetting.recompute import paper_step, restep
from strikeout.kernels.arrays import Floats
from strikeout.kernels.symmetric import inverse
from strikeout.models.heston import Heston
from strikeout.paper.experiments.computing_back import (
    Guess,
    computed_back,
    computed_back_of_panel,
    parameters_in,
    prices_back,
)
from strikeout.paper.experiments.report import Column, Finding, Progress, Scale, Section, Table, tabulated
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import footprints_of
from strikeout.synthetic.heston_quotes import panel_quotes
from strikeout.text import many


@dataclass(frozen=True)
class Left:
    """The curvature of what is retained after a random removal; medians over several draws, of ``definite`` the share.

    ``bound_holds`` is the share of draws that meet the paper's condition for positive definiteness. ``condition`` is
    that of H', ``scaled_condition`` with a unit diagonal. ``ridge_bias`` is by what share of itself the paper's
    1e-6 I changes the step of mean_reversion.
    """

    removed: float
    retained: int
    definite: float
    bound_holds: float
    smallest_eigenvalue: float
    leverage: float
    condition: float
    scaled_condition: float
    ridge_bias: float


def removals(calibration: Calibration, *, fractions: Sequence[float], runs: int, seed: int) -> Iterator[Left]:
    """Return random removals of every fraction, at the calibrated parameters."""
    rng = np.random.default_rng(seed)
    footprints = footprints_of(calibration.quotes, calibration.model, calibration.parameters)
    before = footprints.total().system()
    count = len(footprints)
    for fraction in fractions:
        gone = round(fraction * count)
        drawn = [np.sort(rng.permutation(count)[gone:]).astype(np.int64) for _ in range(runs)]
        kept = [footprints.total(places) for places in drawn]
        spectra = [np.linalg.eigvalsh(one.system().curvature) for one in kept]
        yield Left(
            removed=fraction,
            retained=count - gone,
            definite=float(np.mean([spectrum[0] > 0.0 for spectrum in spectra])),
            bound_holds=float(np.mean([weyl(before, one.system()).condition_holds for one in kept])),
            smallest_eigenvalue=float(np.median([spectrum[0] for spectrum in spectra])),
            leverage=float(np.median([leverages(before, one.system())[-1] for one in kept])),
            condition=float(np.median([spectrum[-1] / spectrum[0] for spectrum in spectra])),
            scaled_condition=float(np.median([_scaled_condition(one.system().curvature) for one in kept])),
            ridge_bias=float(np.median([_bias(one.exact_step(), one.step(ridge="paper")) for one in kept])),
        )


def _scaled_condition(H: Floats) -> float:
    scale = 1.0 / np.sqrt(np.diag(H))
    return float(np.linalg.cond(H * np.outer(scale, scale)))


def _bias(plain: Floats, ridged: Floats) -> float:
    return float(abs(ridged[0] / plain[0] - 1.0))


@dataclass(frozen=True)
class Kept:
    """One maturity kept and all others struck out.

    ``agreement`` is the paper's measure of its own step, which looks perfect; ``within`` the standard error that the
    retained quotes leave mean_reversion, over its value; ``refusal`` the message of ``forget`` instead of an answer.
    """

    kept: str
    agreement: float
    within: float
    step: float  # what the paper's operator gives for mean_reversion
    refusal: str


def single_maturities(calibration: Calibration) -> list[Kept]:
    """Return every maturity of the book kept alone."""
    quotes, out = calibration.quotes, []
    term = quotes.labels["expiry_days"]
    for days in np.unique(term).tolist():
        ids = quotes.ids[term != days]
        fast = paper_step(calibration, ids)
        rebuilt = restep(quotes.without(ids), calibration.model, fast.equations.schema, ridge="paper")
        a, b = (np.array(list(step.parameters.values())) for step in (fast, rebuilt))
        unscaled = np.array(inverse(fast.equations.system().curvature.tolist()))
        try:
            refusal = ""
            forget(calibration, ids=ids)
        except RefusedError as error:
            refusal = error.sentence
        out.append(
            Kept(
                kept=f"{days} days",
                agreement=float(np.linalg.norm(a - b) / np.linalg.norm(b)),
                within=float(calibration.rmse * np.sqrt(unscaled[0, 0]) / calibration.parameters["mean_reversion"]),
                step=fast.parameters["mean_reversion"],
                refusal=refusal,
            )
        )
    return out


SECTION = Section(
    "erasure",
    "What earlier parameters give away",
    "The paper publishes parameters before and after quotes are forgotten. Quotes are erased from a book, and someone "
    "who reads its file, without a key, tries to compute them back from the parameters in it and the quotes that "
    "stay. How often does that work when results of earlier calibrations are kept, and when they are removed? And how "
    "many prices can be computed back when it is known which contracts were erased?",
)
MODEL = Heston()
NAMES = MODEL.parameters.names
LATENT = "initial_variance"
SHARED = tuple(name for name in NAMES if name != LATENT)
KEEPING, REMOVING = "bad-feed", "subject-request"  # reasons: results are kept, results are removed
TOGETHER = (1, 2, 3, 4, 5, 6, 8, 12)
RIGHT = 1e-6  # of a price, in currency; noise is 5e-4 to 1e-3
RIGHT_OF_PANEL = 1e-3  # a panel's price is found by one linear step


@dataclass(frozen=True)
class Kind:
    """How a book is calibrated, and how many quotes are erased from it at once."""

    name: str
    count: int = 1
    is_panel: bool = False
    through: Through = "quotes"
    is_aside: bool = False  # struck out first, and erased from there

    @property
    def right(self) -> float:
        """Up to how much a price may be off to be called computed back."""
        return RIGHT_OF_PANEL if self.is_panel else RIGHT


KINDS = (
    Kind("plain"),
    Kind("two at once", count=2),
    Kind("panel", is_panel=True),
    Kind("moments", through="moments"),
    Kind("two of moments", count=2, through="moments"),
    Kind("set aside", is_aside=True),
    Kind("a panel's, set aside", is_panel=True, is_aside=True),
)
SHOWN = KINDS[:4]


@dataclass(frozen=True)
class Attack:
    """Whether all the quotes erased from a book were computed back, and how far off the worst price is."""

    kind: Kind
    seed: int
    reason: str
    is_solved: bool
    off: float


def run(scale: Scale, progress: Progress) -> Finding:
    """Return random erasures from random books, with earlier results kept and removed."""
    runs = 3 if scale.is_quick else 50
    found: list[Attack] = []
    with TemporaryDirectory() as folder:
        for n, kind in enumerate(SHOWN):
            progress(0.8 * n / len(SHOWN), f"quotes erased: {kind.name}")
            for reason in (KEEPING, REMOVING):
                found += [attack(kind, Path(folder), seed=seed, reason=reason) for seed in range(1, runs + 1)]
    progress(0.8, "known contracts")
    known = {count: [prices_off(count, seed=seed) for seed in range(1, runs + 1)] for count in TOGETHER}
    progress(1.0, "done")
    return Finding(
        paragraphs=_paragraphs(found, known),
        tables={"computed-back": attacks_table(found), "known-contracts": known_table(known)},
    )


def attack(kind: Kind, folder: Path, *, seed: int, reason: str | None) -> Attack:
    """Erase random quotes from a random book, and try to compute them back from the file."""
    path = folder / f"{kind.name}-{seed}-{reason}.book"
    gone = erased(path, kind, seed=seed, reason=reason)
    return attacked(path, kind, gone, seed=seed, reason=reason or "")


def erased(path: Path, kind: Kind, *, seed: int, reason: str | None) -> Quotes:
    """Return a book from which random quotes were erased; these quotes."""
    quotes = panel_quotes(12, seed=seed) if kind.is_panel else paper_quotes("small", seed=seed)
    rows = np.sort(np.random.default_rng(seed).choice(len(quotes), kind.count, replace=False))
    with Book.create(path) as book:
        book.import_quotes(quotes)
        book.calibrate(panel="date" if kind.is_panel else None, through=kind.through)
        if kind.is_aside:
            book.forget(ids=quotes.ids[rows])
        done = book.erase(ids=quotes.ids[rows], reason=reason)
        assert done.residue == 0, "bytes of erased quotes are left"
    return quotes[rows]


def attacked(path: Path, kind: Kind, gone: Quotes, *, seed: int, reason: str) -> Attack:
    """Return the best that can be computed from any set of numbers in a book's file that are named like parameters."""
    from strikeout.store.sqlite import SqliteStore

    store = SqliteStore.open(path, key=None)
    try:
        retained, known = store.now.quotes(), parameters_in(store.now, SHARED if kind.is_panel else NAMES)
    finally:
        store.close()
    assert known, "a book that is calibrated holds parameters"
    off = min(_off(guesses, gone) for guesses in _guesses(kind, known, retained))
    return Attack(kind, seed, reason, off <= kind.right, off)


def _guesses(kind: Kind, known: Iterable[Mapping[str, float]], retained: Quotes) -> Iterable[Sequence[Guess]]:
    for parameters in known:
        try:
            if kind.is_panel:
                yield (computed_back_of_panel(MODEL, parameters, LATENT, retained),)
            else:
                yield computed_back(MODEL, parameters, retained, count=kind.count, through=kind.through)
        except ParameterError:  # numbers by these names that are not parameters, such as standard errors
            yield ()


def _off(guesses: Sequence[Guess], gone: Quotes) -> float:
    """Return how far off the worst price is; infinite if a contract is another one."""
    return max((guess.off(gone) for guess in guesses), default=inf)


def prices_off(count: int, *, seed: int) -> float:
    """Return the error of the worst price of ``count`` erased quotes with known contracts, from older parameters."""
    quotes = paper_quotes("small", seed=seed)
    rows = np.sort(np.random.default_rng(seed).choice(len(quotes), count, replace=False))
    gone = quotes[rows]
    found = prices_back(MODEL, calibrate(quotes, MODEL).parameters, quotes.without(gone.ids), gone.contracts)
    return float(np.abs(found - gone.observed).max())


def attacks_table(found: Sequence[Attack]) -> Table:
    """Return a row per kind of book and reason."""
    by_kind = {
        (kind, reason): [one for one in found if (one.kind, one.reason) == (kind, reason)]
        for kind in SHOWN
        for reason in (KEEPING, REMOVING)
    }
    solved = {key: [one.off for one in ours if one.is_solved] for key, ours in by_kind.items()}
    return tabulated(
        f"Erasures from random books, and how many were computed back: every contract right, every price to {RIGHT:g} "
        f"(a panel's to {RIGHT_OF_PANEL:g}). For the reason {KEEPING} results of earlier calibrations stay in the "
        f"book, for {REMOVING} they go. Last column: the median price error of those computed back.",
        [
            {
                "book": kind.name,
                "reason": reason,
                Column("erasures", "", "d"): len(ours),
                Column("computed back", "", "d"): len(off),
                Column("price error", "currency", ".0e"): float(np.median(off)) if off else None,
            }
            for (kind, reason), ours in by_kind.items()
            for off in [solved[kind, reason]]
        ],
    )


def known_table(known: Mapping[int, Sequence[float]]) -> Table:
    """Return a row per number of quotes that were erased together."""
    return tabulated(
        "Quotes erased together whose contracts are known, from the small set: error of the worst price, computed "
        "back from the five parameters of before. The noise of a price is 1e-3.",
        [
            {
                Column("erased together", "quotes", "d"): count,
                Column("median error", "currency", ".0e"): float(np.median(errors)),
                Column("largest error", "currency", ".0e"): max(errors),
            }
            for count, errors in known.items()
        ],
    )


def _paragraphs(found: Sequence[Attack], known: Mapping[int, Sequence[float]]) -> tuple[str, ...]:
    kept, removed = ([one for one in found if one.reason == reason] for reason in (KEEPING, REMOVING))
    solved, left = (sum(one.is_solved for one in ours) for ours in (kept, removed))
    exact = max(count for count, errors in known.items() if np.median(errors) < RIGHT)
    return (
        f"With earlier results in the book, {solved} of {many(len(kept), 'erasure')} are computed back, contract and "
        "price, without a key and without a guess. At the old optimum the score of all quotes is zero, so that of the "
        "quotes that stay is minus the row of the erased one times its residual.",
        f"With earlier results removed, {left} of {len(removed)} are.",
        f"Results that left the book stay with those who have them. Where the contracts are known, up to {exact} "
        "prices follow from five parameters; beyond that the equations leave them as unknown as their noise. Standard "
        "errors and the RMSE are six more numbers. A book therefore warns if fewer than twelve quotes are erased "
        "together.",
    )
