"""What the summary of a panel says beyond that of a plain calibration: its latent path, group by group."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from strikeout.calibration import summary as plain_summary
from strikeout.calibration.constancy import one_value
from strikeout.calibration.panel_choice import AUTO
from strikeout.calibration.panel_groups import counted_groups
from strikeout.wording import as_lines, many

if TYPE_CHECKING:
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.statistics.system import Group

NAMED = 3  # groups a sentence names before it counts the rest


def latent_identified(panel: PanelCalibration, group: Group) -> str:
    """How well the quotes of a group determine its latent parameter."""
    if group in panel.latent_on_bound:
        return f"on its bound {panel.latent_on_bound[group]:g}"
    value, error = panel.latent[group], panel.latent_standard_errors[group]
    if not isfinite(error):
        return "free: no quote there moves with it"
    share = error / abs(value) if value else float("inf")
    if is_latent_free(panel, group):
        return f"free within {share:.3g} times its value"
    if panel.counts[group] == 1:
        return f"within {share:.2g} of its value, by 1 quote, which says nothing of the shared parameters"
    return f"within {share:.2g} of its value"


def is_latent_free(panel: PanelCalibration, group: Group) -> bool:
    """Return whether the standard error of a group's latent parameter exceeds the parameter itself."""
    if group in panel.latent_on_bound:
        return False
    return not panel.latent_standard_errors[group] <= abs(panel.latent[group])


def warnings(panel: PanelCalibration) -> tuple[str, ...]:
    """What a user must not overlook, in sentences."""
    latent, found = panel.latent_name, []
    held = list(panel.latent_on_bound)
    if held:
        found.append(
            f"{latent} is on its bound in {_named(held)}: it has no standard error there, and the rest holds given it."
        )
    free = [group for group in panel.groups if is_latent_free(panel, group)]
    if free:
        found.append(f"{latent} is free within its own size in {_named(free)}: quote more there, or leave them out.")
    alone = [group for group in panel.groups if panel.counts[group] == 1]
    if alone:
        found.append(f"1 quote is all there is in {_named(alone)}: it fixes {latent} there and says nothing else.")
    return plain_summary.warnings(panel, found)


def summary(panel: PanelCalibration) -> str:
    """A table of the shared parameters, then the latent path, the fit, the search and the warnings."""
    return plain_summary.told(panel, _facts(panel))


def report(panel: PanelCalibration) -> str:
    """The summary, every group, every start, and every step of the best one."""
    width = max(len(str(group)) for group in panel.groups)
    lines = ["", f"{panel.latent_name} by {panel.panel}"]
    for group, value in panel.latent.items():
        error = panel.latent_standard_errors[group]
        shown = f"{error:.2g}" if isfinite(error) else "-"
        sentence = panel.latent_identifiability[group]
        lines.append(f"  {group!s:<{width}}  {value:>10.6g}  {shown:>8}  {panel.counts[group]:>6,} quotes  {sentence}")
    return "\n".join([summary(panel), as_lines([*lines, *plain_summary.search_lines(panel)])])


def html(panel: PanelCalibration) -> str:
    """The summary for a notebook."""
    return plain_summary.shown(panel, _facts(panel))


def to_dict(panel: PanelCalibration) -> dict[str, Any]:
    """Everything but the quotes and the model as plain values for JSON; a number that does not exist is None."""
    return {
        **plain_summary.to_dict(panel),
        "panel": panel.panel,
        "latent": {
            "name": panel.latent_name,
            "values": plain_summary.plain(panel.latent),
            "standard_errors": plain_summary.plain(panel.latent_standard_errors),
            "identifiability": {str(group): text for group, text in panel.latent_identifiability.items()},
            "on_bound": plain_summary.plain(panel.latent_on_bound),
            "counts": {str(group): count for group, count in panel.counts.items()},
        },
    }


def _facts(panel: PanelCalibration) -> list[tuple[str, str]]:
    values = list(panel.latent.values())
    known = sorted(error for error in panel.latent_standard_errors.values() if isfinite(error))
    middle = f"; median standard error {known[len(known) // 2]:.2g}" if known else ""
    path = f"{many(len(values), 'value')}, one a {panel.panel}: {min(values):.4g} to {max(values):.4g}{middle}"
    fit = plain_summary.fit_facts(
        panel, counting=f", of {counted_groups(len(values), panel.panel)}", of=" of the shared parameters"
    )
    return [(panel.latent_name, path), *one_value_facts(panel, "panel=None"), *fit]


def one_value_facts(panel: PanelCalibration, remedy: str) -> list[tuple[str, str]]:
    """What one value for all groups would cost, and how to have it where nobody asked for a panel."""
    found = one_value(panel)
    if found is None:
        return []
    chosen = f" (a value each since there are several dates; {remedy} for one)" if panel.settings.panel == AUTO else ""
    return [("", f"{found.cost()}{chosen}")]


def _named(groups: list[Any]) -> str:
    shown = ", ".join(map(str, groups[:NAMED]))
    rest = len(groups) - NAMED
    return f"{many(len(groups), 'group')} ({shown}{f' and {rest} more' if rest > 0 else ''})"
