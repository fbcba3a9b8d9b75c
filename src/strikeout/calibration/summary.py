"""A calibration as sentences, text, HTML and plain values: all that plain ones and panels have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from strikeout.calibration.constancy import constancy
from strikeout.calibration.notebook import html_table
from strikeout.wording import as_lines

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import AnyCalibration

HEADINGS = ("parameter", "value", "standard error", "identified")
Facts = Sequence[tuple[str, str]]


def summary(calibration: Calibration) -> str:
    """A table of the parameters, then the fit, the search and the warnings, one fact a line."""
    facts = fit_facts(calibration)
    dates = constancy(calibration)
    if dates is not None:
        facts.append((dates.latent, str(dates)))
    return told(calibration, facts)


def report(calibration: Calibration) -> str:
    """The summary, every start, and every step of the best one."""
    return "\n".join([summary(calibration), as_lines(search_lines(calibration))])


def html(calibration: Calibration) -> str:
    """The summary for a notebook."""
    return shown(calibration, fit_facts(calibration))


def told(calibration: AnyCalibration, facts: Facts) -> str:
    """The table of the parameters, these facts, and the warnings."""
    rows = [HEADINGS, *_parameters(calibration)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}".rstrip()
        for row in rows
    ]
    width = max(len(name) for name, _ in facts)
    lines += ["", *(f"{name:<{width}}  {value}" for name, value in facts)]
    lines += [f"warning: {sentence}" for sentence in calibration.warnings]
    return as_lines(lines)


def shown(calibration: AnyCalibration, facts: Facts) -> str:
    """The same as HTML."""
    items = [f"{name}: {value}" if name else value for name, value in facts]  # one without a name says more
    return html_table(HEADINGS, _parameters(calibration), items, warnings=calibration.warnings)


def search_lines(calibration: AnyCalibration) -> list[str]:
    """Every start, and every step of the best one."""
    lines = ["", "starts"]
    for number, start in enumerate(calibration.starts, 1):
        values = "  ".join(f"{name}={value:.6g}" for name, value in start.parameters.items())
        lines.append(f"  {number}  cost {start.cost:.8g} after {start.evaluations} evaluations: {start.termination}")
        lines.append(f"     {values}")
    lines += ["", "steps of the best start"]
    lines.append(f"  {'':>3}  {'cost':>14}  {'gradient / SE':>13}  {'damping':>8}  parameters")
    for number, step in enumerate(calibration.history):
        values = "  ".join(f"{value:.6g}" for value in step.parameters.values())
        lines.append(f"  {number:>3}  {step.cost:>14.8g}  {step.gradient:>13.2e}  {step.damping:>8.1e}  {values}")
    return lines


def fit_facts(calibration: AnyCalibration, *, counting: str = "", of: str = "") -> list[tuple[str, str]]:
    """How good the fit is and how the search ended; ``counting`` says more of the quotes, ``of`` of the curvature."""
    facts = [
        ("status", str(calibration.termination)),
        ("quotes", counted(calibration) + counting),
        ("RMSE", rmse_of(calibration)),
        ("objective", f"{calibration.residual} residuals, {calibration.loss} loss, weights {calibration.weights}"),
        ("condition", f"{calibration.condition:.3g} (scaled curvature{of})"),
        ("starts", f"{calibration.agreement} of {len(calibration.starts)} ended here"),
    ]
    ratio = calibration.feller_ratio
    if ratio is not None and calibration.feller != "ignore":
        binds = calibration.feller == "enforce" and ratio < 1.0 + 1e-9
        says = "enforced, and binding" if binds else "met" if ratio >= 1.0 else "not met"
        facts.append(("Feller ratio", f"{ratio:.3g} ({says})"))
    return facts


def rmse_of(calibration: AnyCalibration) -> str:
    """How far the model is from the quotes, and in what: moments know only the residuals that were weighted."""
    if calibration.moments is None and calibration.quotes is not None:
        return calibration.fit_errors.sentence
    return rmse_text(calibration.rmse, weights="none" if calibration.moments is None else calibration.weights)


def rmse_text(rmse: float, *, weights: str, is_of_price: bool = True) -> str:
    """A root mean square of residuals with its unit, and the weights that have a part in it.

    >>> rmse_text(0.0123, weights="none"), rmse_text(0.0123, weights="vega")
    ('0.0123 in price', '0.0123 in price, weighted (vega)')
    """
    return f"{rmse:.4g}{' in price' if is_of_price else ''}{'' if weights == 'none' else f', weighted ({weights})'}"


def counted(calibration: AnyCalibration) -> str:
    """How many quotes count, and of how many where some do not."""
    count = f"{calibration.count:,}"
    if calibration.settings.select == "all":
        return count
    return f"{count} out of the money, of {calibration.size:,}"


def identified(calibration: AnyCalibration, name: str) -> str:
    """How well the quotes determine a parameter."""
    if name in calibration.fixed:
        return "fixed"
    if name in calibration.on_bound:
        return f"on its bound {calibration.on_bound[name]:g}"
    share = calibration.relative_errors[name]
    if name in calibration.unidentified:
        return f"free within {share:.3g} times its value" if share > 1.0 else "free: not separable from the others"
    if share > 1.0 and name in calibration.model.parameters.edges:
        most = calibration.parameters[name] + 2.0 * calibration.standard_errors[name]
        return f"zero within its error: below {most:.2g}"
    return f"within {share:.2g} of its value" if isfinite(share) else "no standard error"


def warnings(calibration: AnyCalibration, more: Sequence[str]) -> tuple[str, ...]:
    """What a user must not overlook, in sentences; ``more`` are those that only this kind of calibration has."""
    found = [] if calibration.converged else [f"{calibration.termination}."]
    found += [
        f"{name} is {calibration.identifiability[name]}: quote more expiries and strikes, or fix it."
        for name in calibration.unidentified
    ]
    found += [
        f"{name} is on its bound {bound:g}; it has no standard error, and the others hold given it."
        for name, bound in calibration.on_bound.items()
    ]
    found += more
    ratio = calibration.feller_ratio
    if calibration.feller == "warn" and ratio is not None and ratio < 1.0:
        found.append(f"Feller's condition is not met (ratio {ratio:.3g}, needs 1): the variance can touch zero.")
    if len(calibration.starts) > 1 and calibration.agreement == 1:
        found.append(f"Only 1 of {len(calibration.starts)} starts ended here; the optimum may not be the only one.")
    return tuple(found)


def to_dict(calibration: AnyCalibration) -> dict[str, Any]:
    """Everything but the quotes and the model as plain values for JSON; a number that does not exist is None."""
    return {
        "model": calibration.model.name,
        "parameters": plain(calibration.parameters),
        "standard_errors": plain(calibration.standard_errors),
        "relative_errors": plain(calibration.relative_errors),
        "identifiability": dict(calibration.identifiability),
        "unidentified": list(calibration.unidentified),
        "on_bound": plain(calibration.on_bound),
        "fixed": plain(calibration.fixed),
        "rmse": _number(calibration.rmse),
        "fit_errors": None if calibration.moments is not None else calibration.fit_errors.to_dict(),
        "cost": _number(calibration.cost),
        "count": calibration.count,
        "converged": calibration.converged,
        "termination": str(calibration.termination),
        "termination_code": calibration.termination.name.lower(),
        "condition": _number(calibration.condition),
        "feller_ratio": _number(calibration.feller_ratio),
        "residual": calibration.residual,
        "weights": calibration.weights,
        "loss": calibration.loss,
        "select": calibration.settings.select,
        "threshold": _number(calibration.threshold),
        "agreement": calibration.agreement,
        "starts": [
            {
                "parameters": plain(start.parameters),
                "cost": _number(start.cost),
                "termination": str(start.termination),
                "evaluations": start.evaluations,
                "agrees": start.agrees,
            }
            for start in calibration.starts
        ],
        "warnings": list(calibration.warnings),
    }


def plain(values: Mapping[Any, float]) -> dict[str, float | None]:
    """By name, for JSON: a number that does not exist is None."""
    return {str(name): _number(value) for name, value in values.items()}


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _parameters(calibration: AnyCalibration) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, value in calibration.parameters.items():
        error = calibration.standard_errors[name]
        standard = f"{error:.2g}" if isfinite(error) else "-"
        rows.append((name, f"{value:.6g}", standard, calibration.identifiability[name]))
    return rows
