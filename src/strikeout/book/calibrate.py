"""Calibrate the quotes of a book; what is not given is as the last time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from strikeout.book.commit import EntryFacts, Result, commit, take_footprints
from strikeout.book.records import Snapshot, Why
from strikeout.book.results import Change
from strikeout.book.spec import NAMING, Asked, CalibrationSpec, as_the_last_time, calibrate_from
from strikeout.book.state_store import MissingFootprints, StateUpdate
from strikeout.book.version import perturbed
from strikeout.calibration.calibrate import check_one_underlying, named_in_full
from strikeout.calibration.panels import AUTO
from strikeout.calibration.settings import Settings, settings_of
from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.text import Argument

COUNTING = {"model", "panel", "select", "weights"}  # settings that decide how many quotes and parameters there are


@dataclass(frozen=True)
class Request:
    """What a calibration is asked with: what was given, and what is as the last time."""

    model: Model
    settings: Settings
    through: Asked
    noise: float
    is_repetition: bool = False  # nothing was given


def repeated_settings(
    last: Mapping[str, Any] | None, model: Model | None, given: Mapping[str, Any], *, fresh: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings that are as the last time, and those of the last time that another model drops.

    Another model has other parameters, so settings that may name parameters are dropped with it. Moments are not
    repeated if something is given that they may not support. Nothing is repeated with ``fresh``.
    """
    if last is None or fresh:
        return {}, {}
    asked = _given(given)
    repeated = as_the_last_time(last, given=asked, model=model)
    whole = repeated if model is None else as_the_last_time(last, given=asked, model=None)
    return repeated, {name: value for name, value in whole.items() if name in NAMING and name not in repeated}


def request_of(
    last: Mapping[str, Any] | None,
    held: Quotes,
    model: Model | None,
    given: Mapping[str, Any],
    repeated: Mapping[str, Any],
) -> Request:
    """Return what to calibrate with: what is given, else what is repeated, else defaults."""
    asked = _given(given)
    if last is not None and repeated and model is None and not asked:
        spec = CalibrationSpec.from_plain(last)
        return Request(spec.model, spec.settings, last["source"]["asked"], perturbed(last), is_repetition=True)
    how = {**repeated, **asked}
    chosen: Model = how.pop("model", None) or model or Heston()
    through, noise = how.pop("through", "auto"), how.pop("perturb", 0.0)
    how = named_in_full(chosen, how)
    return Request(chosen, settings_of(held, **{**Settings(panel=AUTO).keywords(), **how}), through, noise)


def in_words(value: Any) -> str:
    """Return the value of a setting in a word or two."""
    if isinstance(value, Mapping):
        return ", ".join(value)
    if isinstance(value, tuple):
        return f"{len(value)} given"
    return "none" if value is None else str(getattr(value, "name", value)).partition("/")[0]


def _given(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in ("through", "perturb") or value is not None}


def calibrate(
    seen: Snapshot,
    model: Model | None = None,
    *,
    fresh: bool = False,
    reason: Why = None,
    progress: Any = None,
    **given: Any,
) -> Change:
    """Calibrate the quotes held and keep the result; see ``Book.calibrate``."""
    held = seen.quotes
    if not len(held):
        raise RefusedError("The book holds no quotes. Import some first.")
    if not given.pop("pool", False):
        check_one_underlying(held)
    repeated, dropped = repeated_settings(seen.options, model, given, fresh=fresh)
    try:
        result = _result(seen, request_of(seen.options, held, model, given, repeated), progress=progress)
    except (UsageError, RefusedError) as error:
        if not any(_is_part(name, error) for name in repeated):
            raise
        raise error.extended(
            f" As the last time: {', '.join(f'{name} {in_words(repeated[name])}' for name in sorted(repeated))}. With ",
            Argument("fresh", True),
            ", what is not given is at its default.",
        ) from error
    with seen.session.writing(seen.position) as book:
        change = commit(book, seen, EntryFacts("calibrate", reason), result)
    return replace(change, repeated=repeated, dropped=dropped)


def _result(seen: Snapshot, request: Request, *, progress: Any) -> Result:
    model, settings = request.model, request.settings
    CalibrationSpec(model, settings).to_plain()  # refuses what a book cannot keep, before the work is done
    found, source = calibrate_from(model, settings, request.through, seen.quotes, entry=seen.next, progress=progress)
    follow = take_footprints(seen, found, noise=request.noise)
    if request.noise and not request.is_repetition:
        _refuse_unperturbed(follow, source.through, request.noise)
    return Result(follow, found, source=source, noise=request.noise, added=seen.quotes)


def _refuse_unperturbed(follow: StateUpdate, through: str, noise: float) -> None:
    """Raise UsageError if noise was asked for and the book keeps no footprints to put it on."""
    if follow.footprints is None:
        raise UsageError(
            Argument("perturb", noise),
            f": the book is calibrated from {through} and keeps no footprints. Give ",
            Argument("perturb", 0),
            ", or ",
            Argument("through", "quotes"),
            " and ",
            Argument("panel", None),
            ".",
        )
    if isinstance(follow.footprints, MissingFootprints):
        raise UsageError(
            Argument("perturb", noise),
            f": no footprints are kept: {follow.footprints.clause}. Give ",
            Argument("perturb", 0),
            *((", or ", Argument("panel", None)) if follow.footprints is MissingFootprints.PERTURBED_PANEL else ()),
            ".",
            missing=follow.footprints,
        )


def _is_part(setting: str, error: UsageError | RefusedError) -> bool:
    """Return whether a setting of the last time may have caused an error: the error mentions it, or there are too few
    quotes for the parameters and the setting decides how many there are of either."""
    return setting in error.arguments or (isinstance(error, UnidentifiedError) and setting in COUNTING)
