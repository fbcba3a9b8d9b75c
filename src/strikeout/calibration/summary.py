"""A calibration as text and as HTML."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import TYPE_CHECKING

from strikeout.calibration.constancy import constancy

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import PanelCalibration

HEADINGS = ("parameter", "value", "standard error", "identified")


def summary(calibration: Calibration) -> str:
    """A table of the parameters, then the fit, the search and the warnings, one fact a line."""
    rows = [HEADINGS, *_parameters(calibration)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}".rstrip()
        for row in rows
    ]
    facts = _facts(calibration)
    dates = constancy(calibration)
    if dates is not None:
        facts.append((dates.latent, str(dates)))
    width = max(len(name) for name, _ in facts)
    lines += ["", *(f"{name:<{width}}  {value}" for name, value in facts)]
    lines += [f"warning: {sentence}" for sentence in calibration.warnings]
    return "\n".join(lines)


def report(calibration: Calibration) -> str:
    """The summary, every start, and every step of the best one."""
    lines = [summary(calibration), "", "starts"]
    for number, start in enumerate(calibration.starts, 1):
        values = "  ".join(f"{name}={value:.6g}" for name, value in start.parameters.items())
        lines.append(f"  {number}  cost {start.cost:.8g} after {start.evaluations} evaluations: {start.termination}")
        lines.append(f"     {values}")
    lines += ["", "steps of the best start"]
    lines.append(f"  {'':>3}  {'cost':>14}  {'gradient / SE':>13}  {'damping':>8}  parameters")
    for number, step in enumerate(calibration.history):
        values = "  ".join(f"{value:.6g}" for value in step.parameters.values())
        lines.append(f"  {number:>3}  {step.cost:>14.8g}  {step.gradient:>13.2e}  {step.damping:>8.1e}  {values}")
    return "\n".join(lines)


def html(calibration: Calibration) -> str:
    """The summary for a notebook."""
    head = "".join(f"<th>{name}</th>" for name in HEADINGS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in _parameters(calibration)
    )
    facts = "".join(f"<li>{escape(name)}: {escape(value)}</li>" for name, value in _facts(calibration))
    warnings = "".join(f"<li><strong>{escape(sentence)}</strong></li>" for sentence in calibration.warnings)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{facts}{warnings}</ul>"


def _parameters(calibration: Calibration) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, value in calibration.parameters.items():
        error = calibration.standard_errors[name]
        shown = f"{error:.2g}" if isfinite(error) else "-"
        rows.append((name, f"{value:.6g}", shown, calibration.identifiability[name]))
    return rows


def _facts(calibration: Calibration) -> list[tuple[str, str]]:
    facts = [
        ("status", str(calibration.termination)),
        ("quotes", counted(calibration)),
        ("RMSE", f"{calibration.rmse:.4g} in price"),
        ("objective", f"{calibration.residual} residuals, {calibration.loss} loss, weights {calibration.weights}"),
        ("condition", f"{calibration.condition:.3g} (scaled curvature)"),
    ]
    ratio = calibration.feller_ratio
    if ratio is not None and calibration.feller != "ignore":
        binds = calibration.feller == "enforce" and ratio < 1.0 + 1e-9
        says = "enforced, and binding" if binds else "met" if ratio >= 1.0 else "not met"
        facts.append(("Feller ratio", f"{ratio:.3g} ({says})"))
    facts.append(("starts", f"{calibration.agreement} of {len(calibration.starts)} ended here"))
    return facts


def counted(calibration: Calibration | PanelCalibration) -> str:
    """How many quotes count, and of how many where some do not."""
    count = f"{calibration.count:,}"
    if calibration.settings.select == "all":
        return count
    return f"{count} out of the money, of {calibration.size:,}"
