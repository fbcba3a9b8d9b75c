"""The calibration of a panel as text, as HTML and as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any

from strikeout.calibration.summary import HEADINGS

if TYPE_CHECKING:
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.statistics.panel_state import Group

NAMED = 3  # groups a sentence names before it counts the rest


def identified(panel: PanelCalibration, name: str) -> str:
    """How well the quotes determine a shared parameter."""
    if name in panel.fixed:
        return "fixed"
    if name in panel.on_bound:
        return f"on its bound {panel.on_bound[name]:g}"
    share = panel.relative_errors[name]
    if name in panel.unidentified:
        return f"free within {share:.3g} times its value" if share > 1.0 else "free: not separable from the others"
    return f"within {share:.2g} of its value" if isfinite(share) else "no standard error"


def latent_identified(panel: PanelCalibration, group: Group) -> str:
    """How well the quotes of a group determine its latent parameter."""
    if group in panel.latent_on_bound:
        return f"on its bound {panel.latent_on_bound[group]:g}"
    value, error = panel.latent[group], panel.latent_standard_errors[group]
    if not isfinite(error):
        return "free: no quote there moves with it"
    share = error / abs(value) if value else float("inf")
    if share > 1.0:
        return f"free within {share:.3g} times its value"
    if panel.counts[group] == 1:
        return f"within {share:.2g} of its value, by 1 quote, which says nothing of the shared parameters"
    return f"within {share:.2g} of its value"


def warnings(panel: PanelCalibration) -> tuple[str, ...]:
    """What a user must not overlook, in sentences."""
    latent, found = panel.latent_name, []
    if not panel.converged:
        found.append(str(panel.termination) + ".")
    found += [
        f"{name} is {panel.identifiability[name]}: quote more expiries and strikes, or fix it."
        for name in panel.unidentified
    ]
    found += [
        f"{name} is on its bound {bound:g}; it has no standard error, and the others hold given it."
        for name, bound in panel.on_bound.items()
    ]
    held = list(panel.latent_on_bound)
    if held:
        found.append(
            f"{latent} is on its bound in {_named(held)}: it has no standard error there, and the rest holds given it."
        )
    free = [group for group in panel.groups if panel.latent_identifiability[group].startswith("free")]
    if free:
        found.append(f"{latent} is free within its own size in {_named(free)}: quote more there, or leave them out.")
    alone = [group for group in panel.groups if panel.counts[group] == 1]
    if alone:
        found.append(f"1 quote is all there is in {_named(alone)}: it fixes {latent} there and says nothing else.")
    ratio = panel.feller_ratio
    if panel.feller == "warn" and ratio is not None and ratio < 1.0:
        found.append(f"Feller's condition is not met (ratio {ratio:.3g}, needs 1): the variance can touch zero.")
    if len(panel.starts) > 1 and panel.agreement == 1:
        found.append(f"Only 1 of {len(panel.starts)} starts ended here; the optimum may not be the only one.")
    return tuple(found)


def summary(panel: PanelCalibration) -> str:
    """A table of the shared parameters, then the latent path, the fit, the search and the warnings."""
    rows = [HEADINGS, *_parameters(panel)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}".rstrip()
        for row in rows
    ]
    facts = _facts(panel)
    width = max(len(name) for name, _ in facts)
    lines += ["", *(f"{name:<{width}}  {value}" for name, value in facts)]
    lines += [f"warning: {sentence}" for sentence in panel.warnings]
    return "\n".join(lines)


def report(panel: PanelCalibration) -> str:
    """The summary, every group, every start, and every step of the best one."""
    width = max(len(str(group)) for group in panel.groups)
    lines = [summary(panel), "", f"{panel.latent_name} by {panel.panel}"]
    for group, value in panel.latent.items():
        error = panel.latent_standard_errors[group]
        shown = f"{error:.2g}" if isfinite(error) else "-"
        sentence = panel.latent_identifiability[group]
        lines.append(f"  {group!s:<{width}}  {value:>10.6g}  {shown:>8}  {panel.counts[group]:>6,} quotes  {sentence}")
    lines += ["", "starts"]
    for number, start in enumerate(panel.starts, 1):
        values = "  ".join(f"{name}={value:.6g}" for name, value in start.parameters.items())
        lines.append(f"  {number}  cost {start.cost:.8g} after {start.evaluations} evaluations: {start.termination}")
        lines.append(f"     {values}")
    lines += ["", "steps of the best start"]
    lines.append(f"  {'':>3}  {'cost':>14}  {'gradient / SE':>13}  {'damping':>8}  parameters")
    for number, step in enumerate(panel.history):
        values = "  ".join(f"{value:.6g}" for value in step.parameters.values())
        lines.append(f"  {number:>3}  {step.cost:>14.8g}  {step.gradient:>13.2e}  {step.damping:>8.1e}  {values}")
    return "\n".join(lines)


def html(panel: PanelCalibration) -> str:
    """The summary for a notebook."""
    head = "".join(f"<th>{name}</th>" for name in HEADINGS)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in _parameters(panel))
    facts = "".join(f"<li>{escape(name)}: {escape(value)}</li>" for name, value in _facts(panel))
    said = "".join(f"<li><strong>{escape(sentence)}</strong></li>" for sentence in panel.warnings)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{facts}{said}</ul>"


def to_dict(panel: PanelCalibration) -> dict[str, Any]:
    """Everything but the quotes and the model as plain values for JSON; a number that does not exist is None."""
    return {
        "model": panel.model.name,
        "panel": panel.panel,
        "parameters": _plain(panel.parameters),
        "standard_errors": _plain(panel.standard_errors),
        "relative_errors": _plain(panel.relative_errors),
        "identifiability": dict(panel.identifiability),
        "unidentified": list(panel.unidentified),
        "on_bound": _plain(panel.on_bound),
        "fixed": _plain(panel.fixed),
        "latent": {
            "name": panel.latent_name,
            "values": _plain(panel.latent),
            "standard_errors": _plain(panel.latent_standard_errors),
            "identifiability": {str(group): text for group, text in panel.latent_identifiability.items()},
            "on_bound": _plain(panel.latent_on_bound),
            "counts": {str(group): count for group, count in panel.counts.items()},
        },
        "rmse": _number(panel.rmse),
        "cost": _number(panel.cost),
        "count": panel.count,
        "converged": panel.converged,
        "termination": panel.termination.value,
        "termination_code": panel.termination.name.lower(),
        "condition": _number(panel.condition),
        "feller_ratio": _number(panel.feller_ratio),
        "residual": panel.residual,
        "weights": panel.weights,
        "loss": panel.loss,
        "agreement": panel.agreement,
        "starts": [
            {
                "parameters": _plain(start.parameters),
                "cost": _number(start.cost),
                "termination": start.termination.value,
                "evaluations": start.evaluations,
                "agrees": start.agrees,
            }
            for start in panel.starts
        ],
        "warnings": list(panel.warnings),
    }


def _parameters(panel: PanelCalibration) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, value in panel.parameters.items():
        error = panel.standard_errors[name]
        rows.append((name, f"{value:.6g}", f"{error:.2g}" if isfinite(error) else "-", panel.identifiability[name]))
    return rows


def _facts(panel: PanelCalibration) -> list[tuple[str, str]]:
    values = list(panel.latent.values())
    known = sorted(error for error in panel.latent_standard_errors.values() if isfinite(error))
    middle = f"; median standard error {known[len(known) // 2]:.2g}" if known else ""
    span = f"{min(values):.4g} to {max(values):.4g}"
    facts = [
        (
            panel.latent_name,
            f"{len(values):,} values, one a {panel.panel}: {span}{middle}",
        ),
        ("status", str(panel.termination)),
        ("quotes", f"{panel.count:,} in {len(values):,} groups of {panel.panel}"),
        ("RMSE", f"{panel.rmse:.4g} in price"),
        ("objective", f"{panel.residual} residuals, {panel.loss} loss, weights {panel.weights}"),
        ("condition", f"{panel.condition:.3g} (scaled curvature of the shared parameters)"),
    ]
    ratio = panel.feller_ratio
    if ratio is not None and panel.feller != "ignore":
        binds = panel.feller == "enforce" and ratio < 1.0 + 1e-9
        says = "enforced, and binding" if binds else "met" if ratio >= 1.0 else "not met"
        facts.append(("Feller ratio", f"{ratio:.3g} ({says})"))
    facts.append(("starts", f"{panel.agreement} of {len(panel.starts)} ended here"))
    return facts


def _named(groups: list[Any]) -> str:
    shown = ", ".join(map(str, groups[:NAMED]))
    rest = len(groups) - NAMED
    return f"{len(groups)} group{'s' if len(groups) > 1 else ''} ({shown}{f' and {rest} more' if rest > 0 else ''})"


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _plain(values: Mapping[Any, float]) -> dict[str, float | None]:
    return {str(name): _number(value) for name, value in values.items()}
