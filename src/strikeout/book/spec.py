"""How a book is calibrated, as plain values that reproduce it to the bit: model, settings, and quotes or moments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Any, Literal, cast, get_args

import numpy as np

from strikeout.assurance.issue import THROUGH_MOMENTS
from strikeout.calibration.calibrate import fit
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.from_moments import interpolation_error
from strikeout.calibration.panels import AUTO, chosen_panel
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError, StrikeoutError, UsageError
from strikeout.forgetting.evidence import Unsupported, unsupported
from strikeout.models.expiries import label
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.models.named import MODELS, described, remade
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Basis, Moments, moments_of
from strikeout.text import Argument, many

Through = Literal["quotes", "moments"]
NAMING = ("bounds", "fixed", "starts")  # settings that may name parameters
UNKNOWN_TO_MOMENTS = {"loss", "residual", "select", "panel", "latent"}


@dataclass(frozen=True)
class CalibrationSpec:
    """A model, the settings it is calibrated with, and whether through the quotes themselves or through their moments.

    >>> from strikeout.models.heston import Heston
    >>> CalibrationSpec.from_plain(CalibrationSpec(Heston(), Settings(starts=2)).to_plain()).settings.starts
    2
    """

    model: Model
    settings: Settings
    through: Through = "quotes"

    def __post_init__(self) -> None:
        if self.through not in get_args(Through):
            raise UsageError(
                Argument("through", self.through), f" is unknown. Use one of {', '.join(get_args(Through))}."
            )
        if self.through == "moments" and self.settings.panel not in (None, AUTO):
            raise UsageError(
                Argument("panel", self.settings.panel),
                " needs the quotes: moments do not record which group a quote was in. Give ",
                Argument("panel", None),
                " for one value, or ",
                Argument("through", "quotes"),
                " for the panel.",
            )
        if self.through == "moments" and self.settings.select != "all":
            raise UsageError(
                Argument("select", self.settings.select),
                " selects among quotes, which moments do not distinguish. Give ",
                Argument("through", "quotes"),
                ", or import only the quotes to be used.",
            )

    @staticmethod
    def of(calibration: Calibration) -> CalibrationSpec:
        """Return the model and settings of a calibration."""
        through: Through = "quotes" if calibration.moments is None else "moments"
        return CalibrationSpec(calibration.asked, calibration.settings, through)

    def calibrate(self, source: Quotes | Moments, **options: Any) -> Calibration:
        """Return the calibration of these quotes; ``options`` change no bit, such as ``progress``."""
        if self.through == "moments" and isinstance(source, Quotes):
            source = moments_of(source, weights=self.settings.weights)
        return fit(source, self.model, **self.settings.keywords(), **options)

    def to_plain(self) -> dict[str, Any]:
        """Return names, whole numbers and text; other numbers as ``float.hex`` writes them, so that no bit is lost."""
        model, how = self.model, self.settings
        named = described(model)
        if not isinstance(getattr(model, "name", None), str):
            raise UsageError(f"calibrate takes a model, such as Heston(); got {model!r}.")
        if named is None:
            raise UsageError(
                f"A book stores its model by name, and {model.name!r} is not built in. Use Heston() or another "
                "built-in model, or calibrate without a book.",
                model=model.name,
            )
        if not isinstance(how.weights, str):
            raise UsageError(
                "A book stores the rule for its weights, not weights beside its quotes. Import the quotes with a "
                'column weight, and leave weights at "given".'
            )
        plain: dict[str, Any] = {
            "through": self.through,
            "model": named,
            "weights": how.weights,
            "residual": how.residual,
            "loss": how.loss,
            "bounds": None
            if how.bounds is None
            else {name: [float(end).hex() for end in ends] for name, ends in how.bounds.items()},
            "fixed": None if how.fixed is None else _hex(how.fixed),
            "feller": how.feller,
            "select": how.select,
            "starts": how.starts
            if isinstance(how.starts, int)
            else [_hex(cast(Mapping[str, float], start)) for start in _listed(how.starts)],
        }
        errors = how.errors if isinstance(how.errors, str) else list(how.errors)
        plain |= {} if errors == Settings.errors else {"errors": errors}
        plain |= {"latent": how.latent} if how.has_prior else {}
        return plain if how.panel is None else {**plain, "panel": how.panel}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> CalibrationSpec:
        """Return what ``to_plain`` wrote."""
        how = dict(plain)
        if plain["model"]["name"] not in MODELS:
            raise RefusedError(f"The book is calibrated with {plain['model']['name']!r}, which this version lacks.")
        del how["model"]
        how.pop("source", None)  # facts of a version
        how.pop("perturb", None)
        through = how.pop("through")
        if how["bounds"] is not None:
            how["bounds"] = {name: (_float(low), _float(high)) for name, (low, high) in how["bounds"].items()}
        if how["fixed"] is not None:
            how["fixed"] = _numbers(how["fixed"])
        if not isinstance(how["starts"], int):
            how["starts"] = tuple(_numbers(start) for start in how["starts"])
        return CalibrationSpec(remade(plain["model"]), Settings(**how), through)


def without_expiries(plain: Mapping[str, Any], labels: Collection[str]) -> dict[str, Any]:
    """Return options without the expiries of these labels: none of their parameters is bounded, fixed or started, and
    a model with given expiries has the others.

    >>> from strikeout.models.sabr import SABR
    >>> asked = CalibrationSpec(SABR(), Settings(fixed={"alpha[0.25]": 0.2, "alpha[0.5]": 0.2})).to_plain()
    >>> without_expiries(asked, {"[0.25]"})["fixed"].keys()
    dict_keys(['alpha[0.5]'])
    """

    def others(named: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in named.items() if not name.endswith(tuple(labels))}

    found = dict(plain)
    for setting in ("bounds", "fixed"):
        found[setting] = None if plain[setting] is None else others(plain[setting]) or None
    if not isinstance(plain["starts"], int):
        found["starts"] = [others(start) for start in plain["starts"]]
    years = plain["model"].get("expiries")
    if isinstance(years, list):
        kept = [text for text in years if label(_float(text)) not in labels]
        found["model"] = {**plain["model"], "expiries": kept or "quoted"}
    return found


def given_numbers(plain: Mapping[str, Any] | None) -> set[float]:
    """Return the numbers in options: bounds, fixed parameters, starts, expiries of the model; empty for None."""
    if plain is None:
        return set()
    texts = [text for ends in (plain["bounds"] or {}).values() for text in ends]
    texts += [*(plain["fixed"] or {}).values()]
    texts += [] if isinstance(plain["starts"], int) else [text for start in plain["starts"] for text in start.values()]
    years = plain["model"].get("expiries")
    return {_float(text) for text in (*texts, *(years if isinstance(years, list) else ()))}


def as_the_last_time(plain: Mapping[str, Any], *, given: Mapping[str, Any], model: Model | None) -> dict[str, Any]:
    """Return the options that differ from the defaults of a book, as keywords of ``Book.calibrate``; not what is given.

    Another model has other parameters, so settings that may name parameters are left out with it. Moments are left out
    if something is given that they may not support.

    >>> from strikeout.models.heston import Heston
    >>> last = CalibrationSpec(Heston(), Settings(loss="huber", select="otm", panel="auto")).to_plain()
    >>> as_the_last_time(last, given={"select": "all"}, model=Heston())
    {'loss': 'huber'}
    """
    last, defaults = CalibrationSpec.from_plain(plain), Settings(panel=AUTO).keywords()
    kept = {name: value for name, value in last.settings.keywords().items() if value != defaults[name]}
    if model is None:
        kept |= {} if plain["model"] == described(Heston()) else {"model": last.model}
    elif (described(model) or {}).get("name") != plain["model"]["name"]:
        kept = {name: value for name, value in kept.items() if name not in NAMING}
    asked = plain["source"]["asked"] if "source" in plain else "auto"  # what was asked, not what "auto" chose
    if asked != "auto" and not (asked == "moments" and UNKNOWN_TO_MOMENTS & {*given}):
        kept["through"] = asked
    if "perturb" in plain:
        kept["perturb"] = _float(plain["perturb"])
    return {name: value for name, value in kept.items() if name not in given}


def _listed(starts: Any) -> Sequence[Any]:
    return [starts] if isinstance(starts, Mapping) else list(starts)


def _float(text: str) -> float:
    return float.fromhex(text)


def _hex(numbers: Mapping[str, float]) -> dict[str, str]:
    return {name: float(value).hex() for name, value in numbers.items()}


def _numbers(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: float.fromhex(text) for name, text in texts.items()}


Asked = Literal["auto", "quotes", "moments"]
FEWEST = 10_000  # quotes; below, forgetting from quotes takes no longer than writing the result to disk
FARTHEST = THROUGH_MOMENTS / 2  # standard errors from the optimum of the quotes: half of what certificates then claim


class SourceReason(StrEnum):
    """Why a book is calibrated from its quotes or from their moments; the values are kept in books."""

    REQUESTED = "requested"
    REPRESENTED = "represented"  # "auto": moments represent the quotes
    PANEL = "panel"
    FORMER_PANEL = "former panel"
    OBJECTIVE = "objective"
    SELECTION = "selection"
    FEW_QUOTES = "few quotes"
    MANY_NODES = "many nodes"
    DERIVED_FORWARDS = "derived forwards"
    OFF_GRID = "off grid"
    UNSUPPORTED = "unsupported"
    NO_FIT = "no fit"
    NOT_CONVERGED = "not converged"
    TOO_FAR = "too far"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class FitSource:
    """What a calibration of a book was made from, what was asked for, and why.

    A forget or a learn keeps the source without measuring again: to measure is to read every quote. An erasure keeps a
    source, so none of its facts may identify a quote.
    """

    through: Through
    asked: Asked
    reason: SourceReason
    error: float | None = None  # distance of the optimum of the quotes from that of the moments, in standard errors
    entry: int | None = None  # of the ledger, in which the source was chosen and its facts measured
    count: int | None = None  # quotes held then, or quotes that moments cannot represent (OFF_GRID)
    nodes: int | None = None  # of the moments (MANY_NODES)

    @property
    def sentence(self) -> str:
        """The source in a line."""
        why = "as asked" if self.asked == self.through else self._reason()
        when = "" if self.entry is None else f" (entry {self.entry})"
        if self.through == "moments":
            far = "an unknown distance" if self.error is None else f"{self.error:.2g} standard errors"
            return f"moments: {why}; {far} from the optimum of the quotes{'' if self.error is None else when}"
        measured = self.reason is SourceReason.TOO_FAR and self.error is not None
        return f"quotes: {why}" + (f": {self.error:.2g}{when}" if measured else "")

    def _reason(self) -> str:
        when = "" if self.entry is None else f" in entry {self.entry}"
        quotes = many(self.count or 0, "quote")
        held = f"{quotes}{when}"
        some = "some of the quotes" if self.count is None else held
        return {
            SourceReason.REQUESTED: "as asked",
            SourceReason.REPRESENTED: f"moments represent the {held}",
            SourceReason.PANEL: "moments do not support panels",
            SourceReason.FORMER_PANEL: "as before, when the book was a panel",
            SourceReason.OBJECTIVE: "moments support squared price residuals only",
            SourceReason.SELECTION: "moments cannot select among quotes",
            SourceReason.FEW_QUOTES: f"{held}, fewer than {FEWEST:,}",
            SourceReason.MANY_NODES: f"moments have {self.nodes or 0:,} nodes, no fewer than the {held}",
            SourceReason.DERIVED_FORWARDS: "forwards are derived from other quotes, and moments cannot be refitted",
            SourceReason.OFF_GRID: f"moments cannot represent {some}: off the grid, or too large",
            SourceReason.UNSUPPORTED: "moments do not support this model or these settings",
            SourceReason.NO_FIT: "no calibration is found from moments",
            SourceReason.NOT_CONVERGED: "from moments the search does not converge",
            SourceReason.TOO_FAR: f"moments would be off by more than {FARTHEST:g} standard errors",
            SourceReason.UNMEASURED: "the error of moments cannot be measured",
        }[self.reason]

    def unmeasured(self) -> FitSource:
        """Return the source without what was measured on quotes that are erased now."""
        return replace(self, error=None, count=None if self.reason is SourceReason.OFF_GRID else self.count)

    def onward(self, after: Calibration) -> FitSource:
        """Return the source of the next calibration, whatever the number of quotes is then."""
        if after.is_panel:
            return replace(self, reason=SourceReason.PANEL)
        return replace(self, reason=SourceReason.FORMER_PANEL) if self.reason is SourceReason.PANEL else self

    def to_plain(self) -> dict[str, Any]:
        """Return it for JSON; the error as ``float.hex`` writes it."""
        error = None if self.error is None else self.error.hex()
        facts = {"error": error, "entry": self.entry, "count": self.count, "nodes": self.nodes}
        return {"asked": self.asked, "reason": self.reason.value, **facts}

    @staticmethod
    def of(options: Mapping[str, Any]) -> FitSource:
        """Return the source of a version, from how it was asked for."""
        plain = options["source"]
        error = None if plain["error"] is None else float.fromhex(plain["error"])
        facts = (error, plain["entry"], plain["count"], plain["nodes"])
        return FitSource(options["through"], plain["asked"], SourceReason(plain["reason"]), *facts)


def calibrate_from(
    model: Model, settings: Settings, asked: Asked, held: Quotes, *, entry: int | None = None, **options: Any
) -> tuple[Calibration, FitSource]:
    """Calibrate the quotes of a book from the source that was asked for; with "auto", from the one that suits.

    "auto" takes moments if the book is large and nothing is lost: ``FEWEST`` quotes or more, more quotes than nodes of
    the moments, no derived forwards, squared price residuals, and an optimum within ``FARTHEST`` standard errors of
    that of the quotes, measured. Otherwise it takes the quotes.

    Args:
        entry: of the ledger, which the calibration will have.
        options: those that change no bit, such as ``progress``.
    """
    if asked not in get_args(Asked):
        raise UsageError(Argument("through", asked), f" is unknown. Use one of {', '.join(get_args(Asked))}.")
    if asked == "moments":
        found = CalibrationSpec(model, settings, "moments").calibrate(held, **options)
        return found, FitSource("moments", asked, SourceReason.REQUESTED, _error_of(found, held), entry)
    if asked == "quotes":
        source = FitSource("quotes", asked, SourceReason.REQUESTED, None, entry)
        return CalibrationSpec(model, settings).calibrate(held, **options), source
    source = preferred_source(model, settings, held, entry=entry)
    if source.through == "moments":
        try:
            found = CalibrationSpec(model, settings, "moments").calibrate(held, **options)
            source = replace(source, error=_error_of(found, held))
            reason = _unusable(found, source.error)
            if reason is None:
                return found, source
            source = replace(source, through="quotes", reason=reason)
        except StrikeoutError as error:
            source = _refused(source, error)
    return CalibrationSpec(model, settings).calibrate(held, **options), source


def preferred_source(model: Model, settings: Settings, held: Quotes, *, entry: int | None = None) -> FitSource:
    """Return the source that "auto" tries first for these quotes and settings."""
    count, nodes = len(held), None
    reason = _unsupported(model, settings, held)
    if reason is None:
        cells, _ = Basis().cells(held.contracts)
        nodes = len(np.unique(cells, axis=0)) * Basis().size
        reason = None if nodes < count else SourceReason.MANY_NODES
    if reason is None:
        return FitSource("moments", "auto", SourceReason.REPRESENTED, None, entry, count)
    return FitSource("quotes", "auto", reason, None, entry, count, nodes)


def _unsupported(model: Model, settings: Settings, held: Quotes) -> SourceReason | None:
    """Return why moments cannot be the source: a book from moments forgets by ``resolve``, so it must support that."""
    reason = unsupported("resolve", settings, is_panel=chosen_panel(held, model, settings) is not None)
    if reason is not None:
        return SourceReason.PANEL if reason is Unsupported.PANEL else SourceReason.OBJECTIVE
    if settings.select != "all":
        return SourceReason.SELECTION
    if len(held) < FEWEST:
        return SourceReason.FEW_QUOTES
    return SourceReason.DERIVED_FORWARDS if is_derived(held).any() else None


def _unusable(found: Calibration, error: float | None) -> SourceReason | None:
    if not found.converged:
        return SourceReason.NOT_CONVERGED
    if error is None:
        return SourceReason.UNMEASURED
    return SourceReason.TOO_FAR if error > FARTHEST else None


def _refused(source: FitSource, error: StrikeoutError) -> FitSource:
    """Return why moments were refused, without naming a quote."""
    if "ids" in error.facts:
        return replace(source, through="quotes", reason=SourceReason.OFF_GRID, count=len(error.ids))
    reason = SourceReason.UNSUPPORTED if isinstance(error, UsageError) else SourceReason.NO_FIT
    return replace(source, through="quotes", reason=reason)


def _error_of(found: Calibration, held: Quotes) -> float | None:
    """Measure the interpolation error; None if there is no such number."""
    try:
        error = interpolation_error(found, held)
    except (StrikeoutError, ArithmeticError, ValueError):  # nothing is determined, or nothing is left over
        return None
    return error if isfinite(error) else None
