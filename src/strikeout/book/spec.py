"""The model and settings of a book's calibration, as plain values that reproduce it to the bit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from strikeout.calibration.calibrate import fit
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import AUTO
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError, UsageError
from strikeout.models.expiries import label
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.models.named import MODELS, described, remade
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments, moments_of
from strikeout.text import Argument

Through = Literal["quotes", "moments"]
NAMING = ("bounds", "fixed", "starts")  # settings that may name parameters
UNKNOWN_TO_MOMENTS = {"loss", "residual", "select", "panel"}


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
        """Return the calibration of these quotes; ``options`` change no bit, such as ``progress``.

        Raises:
            UsageError: an invalid setting, or one that moments do not support.
            RefusedError: the quotes give no calibration, or lack what it needs.
        """
        if self.through == "moments" and isinstance(source, Quotes):
            source = moments_of(source, weights=self.settings.weights)
        return fit(source, self.model, **self.settings.keywords(), **options)

    def to_plain(self) -> dict[str, Any]:
        """Return names, whole numbers and text; other numbers as ``float.hex`` writes them, so that no bit is lost.

        Raises:
            UsageError: not a model, not a built-in one, or weights by id: a file could not reproduce these.
        """
        model, how = self.model, self.settings
        named = described(model)
        if not isinstance(getattr(model, "name", None), str):
            raise UsageError(f"calibrate takes a model, such as Heston(); got {model!r}.")
        if named is None:
            raise UsageError(
                f"A book stores its model by name, and {model.name!r} is not built in. Use Heston() or another "
                "built-in model, or calibrate without a book."
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
        return plain if how.panel is None else {**plain, "panel": how.panel}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> CalibrationSpec:
        """Return what ``to_plain`` wrote.

        Raises:
            RefusedError: the book was calibrated with a model that this version lacks.
            UsageError: with a kernel that is not installed here.
        """
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

    Raises:
        RefusedError: the options are of a model that this version lacks.

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
