"""A calibration of a book as plain values, for JSON: one spelling, whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from strikeout.book.version import Version


def described_version(version: Version) -> dict[str, Any]:
    """Everything a version says, as plain values; a number that does not exist is None.

    The results come first. ``state_of`` says what the digest in ``state`` is of, ``fitted_from`` through what it was
    calibrated, ``tolerance`` how near the optimum one step was certified to be, ``panel`` what was decided of a panel.
    """
    return {
        "model": version.model,
        "parameters": dict(version.parameters),
        "standard_errors": _finite(version.standard_errors),
        "rmse": version.rmse,
        "count": version.count,
        "converged": version.converged,
        "termination": version.termination,
        "state": version.state,
        "state_of": version.state_of,
        "fitted_from": described_source(version),
        "tolerance": version.tolerance,
        **described_path(version),
        "panel": described_kind(version),
    }


def described_path(version: Version) -> dict[str, Any]:
    """The latent parameters of a panel by group, and their standard errors; nothing of a plain calibration."""
    if not version.latent:
        return {}
    values = {group: value for group, (value, _) in version.latent.items()}
    errors = _finite({group: error for group, (_, error) in version.latent.items()})
    return {"latent": values, "latent_standard_errors": errors}


def described_kind(version: Version) -> dict[str, Any] | None:
    """Of a book of several dates, what was asked and decided of a panel; None where there was nothing to decide."""
    if version.kind is None:
        return None
    asked, kind = version.asking.get("panel"), dict(version.kind)
    known = _finite({name: float.fromhex(kind.pop(name)) for name in ("ratio", "factor") if name in kind})
    cost = {"one_value": {"misfit_times": known["factor"], "gain_over_noise": known["ratio"]}} if known else {}
    return {"asked": asked, **kind, **cost}


def described_source(version: Version) -> dict[str, Any]:
    """Return whether a book was calibrated from quotes or moments, and why."""
    source = version.fit_source
    how = {"through": source.through, "asked": source.asked, "reason": source.reason.value, "count": source.count}
    measured = None if source.error is None else source.entry
    return {**how, "error": source.error, "measured": measured, "sentence": source.sentence}


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if isfinite(value) else None for name, value in numbers.items()}
