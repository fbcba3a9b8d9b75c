"""A calibration as text, HTML and plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from strikeout.calibration.latent_prior import Prior
from strikeout.calibration.latent_test import latent_test, one_value
from strikeout.calibration.panels import AUTO, counted_groups
from strikeout.calibration.smiles import has_smiles, smile_records, smile_table
from strikeout.tables import Table, cell_text
from strikeout.text import as_lines, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.statistics.system import Group

HEADINGS = ("parameter", "value", "standard error", "if independent", "identified")
Facts = list[tuple[str, str]]


def summary(calibration: Calibration) -> str:
    """Return a table of the parameters, then the latent path, the fit, the search and the warnings, one per line."""
    facts = _facts(calibration)
    if not calibration.is_panel:
        dates = latent_test(calibration)
        facts += [] if dates is None else [(dates.latent, str(dates))]
    lines = (smile_table(calibration) if has_smiles(calibration) else _table(calibration)).to_text().splitlines()
    width = max(len(name) for name, _ in facts)
    lines += ["", *(f"{name:<{width}}  {value}" for name, value in facts)]
    lines += [f"warning: {sentence}" for sentence in calibration.warnings]
    return as_lines(lines)


def report(calibration: Calibration) -> str:
    """Return the summary, every group, every start, and every step of the best one."""
    lines = _path_lines(calibration) if calibration.is_panel else []
    return "\n".join([summary(calibration), as_lines([*lines, *_search_lines(calibration)])])


def html(calibration: Calibration) -> str:
    """Return the summary for a notebook."""
    # A fact without a name continues the one before.
    items = [f"{name}: {value}" if name else value for name, value in _facts(calibration)]
    table = smile_table(calibration) if has_smiles(calibration) else _table(calibration)
    return table_html(table, items, warnings=calibration.warnings)


def table_html(table: Table, facts: Sequence[str] = (), *, warnings: Sequence[str] = ()) -> str:
    """Return a table as HTML, with facts and then warnings as a list below it."""
    rows = [[cell_text(cell) for cell in row] for row in table.rows]
    return html_table(table.headings, rows, facts, warnings=warnings)


def html_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], facts: Sequence[str] = (), *, warnings: Sequence[str] = ()
) -> str:
    """Return a table of plain text as HTML, with facts and then warnings as a list below it.

    >>> html_table(("a",), [("<1",)])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    items = [escape(fact) for fact in facts] + [f"<strong>{escape(warning)}</strong>" for warning in warnings]
    below = f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _facts(calibration: Calibration) -> Facts:
    if not calibration.is_panel:
        return fit_facts(calibration)
    assert calibration.panel is not None
    assert calibration.latent_name is not None
    values = list(calibration.latent.values())
    known = sorted(error for error in calibration.latent_standard_errors.values() if isfinite(error))
    middle = f"; median standard error {known[len(known) // 2]:.2g}" if known else ""
    path = f"{many(len(values), 'value')}, one per {calibration.panel}: {min(values):.4g} to {max(values):.4g}{middle}"
    return [(calibration.latent_name, path), *one_value_facts(calibration, "panel=None"), *fit_facts(calibration)]


def one_value_facts(calibration: Calibration, remedy: str) -> Facts:
    """Return what one value for all groups of a panel would cost, and the remedy if "auto" chose the panel."""
    found = one_value(calibration) if calibration.is_panel else None
    if found is None:
        return []
    is_auto = calibration.settings.panel == AUTO
    chosen = f" (a value each since there are several dates; {remedy} for one)" if is_auto else ""
    return [("", f"{found.cost()}{chosen}")]


def fit_facts(calibration: Calibration) -> Facts:
    """Return how good the fit is and how the search ended."""
    counting = of = ""
    if calibration.panel is not None:
        counting = f", of {counted_groups(len(calibration.latent), calibration.panel)}"
        of = " of the shared parameters"
    facts = [
        ("status", str(calibration.termination)),
        ("quotes", counted(calibration) + counting),
        ("RMSE", rmse_of(calibration)),
        ("objective", f"{calibration.residual} residuals, {calibration.loss} loss, weights {calibration.weights}"),
        ("errors", calibration.errors.sentence),
        ("condition", f"{calibration.condition:.3g} (scaled curvature{of})"),
        ("starts", f"{calibration.agreement} of {len(calibration.starts)} ended here"),
    ]
    prior = Prior.asked(calibration.settings.latent) if calibration.is_panel else None
    facts += [] if prior is None else [("prior", prior.sentence)]
    ratio = calibration.feller_ratio
    if ratio is not None and calibration.feller != "ignore":
        binds = calibration.feller == "enforce" and ratio < 1.0 + 1e-9
        met = "enforced, and binding" if binds else "met" if ratio >= 1.0 else "not met"
        facts.append(("Feller ratio", f"{ratio:.3g} ({met})"))
    return facts


def _path_lines(calibration: Calibration) -> list[str]:
    """Return one line per group of a panel."""
    width = max(len(str(group)) for group in calibration.groups)
    lines = ["", f"{calibration.latent_name} by {calibration.panel}"]
    for group, value in calibration.latent.items():
        error, count = calibration.latent_standard_errors[group], calibration.counts[group]
        shown = f"{error:.2g}" if isfinite(error) else "-"
        sentence = calibration.latent_identifiability[group]
        lines.append(f"  {group!s:<{width}}  {value:>10.6g}  {shown:>8}  {count:>6,} quotes  {sentence}")
    return lines


def _search_lines(calibration: Calibration) -> list[str]:
    """Return every start, and every step of the best one."""
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


def rmse_of(calibration: Calibration) -> str:
    """Return the root mean square error with its unit; moments give the weighted one only."""
    if calibration.moments is None and calibration.quotes is not None:
        return calibration.fit_errors.sentence
    return rmse_text(calibration.rmse, weights="none" if calibration.moments is None else calibration.weights)


def rmse_text(rmse: float, *, weights: str, is_of_price: bool = True) -> str:
    """Return a root mean square of residuals with its unit, and the weights it depends on.

    >>> rmse_text(0.0123, weights="none"), rmse_text(0.0123, weights="vega")
    ('0.0123 in price', '0.0123 in price, weighted (vega)')
    """
    return f"{rmse:.4g}{' in price' if is_of_price else ''}{'' if weights == 'none' else f', weighted ({weights})'}"


def counted(calibration: Calibration) -> str:
    """Return how many quotes count, and of how many if some do not."""
    count = f"{calibration.count:,}"
    if calibration.settings.select == "all":
        return count
    return f"{count} out of the money, of {calibration.size:,}"


def identified(calibration: Calibration, name: str) -> str:
    """Return how well the quotes determine a parameter."""
    if name in calibration.fixed:
        return "fixed"
    if name in calibration.on_bound:
        return f"on its bound {calibration.on_bound[name]:g}"
    share = calibration.relative_errors[name]
    ratio = calibration.errors.ratios.get(name, nan)
    share *= ratio if isfinite(ratio) else 1.0
    if name in calibration.unidentified:
        return f"free within {share:.3g} times its value" if share > 1.0 else "free: not separable from the others"
    if share > 1.0 and name in calibration.model.parameters.edges:
        most = calibration.parameters[name] + 2.0 * calibration.errors.standard_errors[name]
        return f"zero within its error: below {most:.2g}"
    if share > 1.0:
        return f"not determined: its error is {share:.2g} times its value"
    return f"within {share:.2g} of its value" if isfinite(share) else "no standard error"


def latent_identified(calibration: Calibration, group: Group) -> str:
    """Return how well the quotes of a group determine its latent parameter."""
    if group in calibration.latent_on_bound:
        return f"on its bound {calibration.latent_on_bound[group]:g}"
    value, error = calibration.latent[group], calibration.latent_standard_errors[group]
    if not isfinite(error):
        return "free: no quote there moves with it"
    share = error / abs(value) if value else float("inf")
    if is_latent_free(calibration, group):
        return f"free within {share:.3g} times its value"
    if calibration.counts[group] == 1:
        return f"within {share:.2g} of its value, by 1 quote, which does not affect the shared parameters"
    return f"within {share:.2g} of its value"


def is_latent_free(calibration: Calibration, group: Group) -> bool:
    """Return whether the standard error of a group's latent parameter exceeds the parameter itself."""
    if group in calibration.latent_on_bound:
        return False
    return not calibration.latent_standard_errors[group] <= abs(calibration.latent[group])


def to_dict(calibration: Calibration) -> dict[str, Any]:
    """Return everything but the quotes and the model as plain values for JSON; a missing number is None."""
    panel = {} if not calibration.is_panel else {"panel": calibration.panel, "latent": _latent(calibration)}
    return {
        "model": calibration.model.name,
        "parameters": plain(calibration.parameters),
        "standard_errors": plain(calibration.standard_errors),
        "relative_errors": plain(calibration.relative_errors),
        "errors": calibration.errors.to_dict(),
        "identifiability": dict(calibration.identifiability),
        "unidentified": list(calibration.unidentified),
        "on_bound": plain(calibration.on_bound),
        "fixed": plain(calibration.fixed),
        "rmse": finite(calibration.rmse),
        "fit_errors": None if calibration.moments is not None else calibration.fit_errors.to_dict(),
        "cost": finite(calibration.cost),
        "count": calibration.count,
        "converged": calibration.converged,
        "termination": str(calibration.termination),
        "termination_code": calibration.termination.name.lower(),
        "condition": finite(calibration.condition),
        "feller_ratio": finite(calibration.feller_ratio),
        "residual": calibration.residual,
        "weights": calibration.weights,
        "loss": calibration.loss,
        "select": calibration.settings.select,
        "threshold": finite(calibration.threshold),
        "agreement": calibration.agreement,
        "starts": [
            {
                "parameters": plain(start.parameters),
                "cost": finite(start.cost),
                "termination": str(start.termination),
                "evaluations": start.evaluations,
                "agrees": start.agrees,
            }
            for start in calibration.starts
        ],
        **({"smiles": smile_records(calibration)} if has_smiles(calibration) else {}),
        "warnings": list(calibration.warnings),
        **panel,
    }


def _latent(calibration: Calibration) -> dict[str, Any]:
    return {
        "name": calibration.latent_name,
        "prior": calibration.settings.latent,
        "values": plain(calibration.latent),
        "standard_errors": plain(calibration.latent_standard_errors),
        "identifiability": {str(group): text for group, text in calibration.latent_identifiability.items()},
        "on_bound": plain(calibration.latent_on_bound),
        "counts": {str(group): count for group, count in calibration.counts.items()},
    }


def plain(values: Mapping[Any, float]) -> dict[str, float | None]:
    """Return numbers by name for JSON; a missing number is None."""
    return {str(name): finite(value) for name, value in values.items()}


def finite(value: float | None) -> float | None:
    """Return a number for JSON; None if it does not exist.

    >>> finite(1.5), finite(float("nan"))
    (1.5, None)
    """
    return value if value is not None and isfinite(value) else None


def _table(calibration: Calibration) -> Table:
    return Table(HEADINGS, _parameters(calibration), numbers=(1, 2, 3))


def _parameters(calibration: Calibration) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, value in calibration.parameters.items():
        pair = calibration.errors.standard_errors[name], calibration.standard_errors[name]
        shown = (f"{error:.2g}" if isfinite(error) else "-" for error in pair)
        rows.append((name, f"{value:.6g}", *shown, calibration.identifiability[name]))
    return rows
