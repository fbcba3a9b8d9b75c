"""From rows to quotes, rule by rule: the table of counts that belongs in a paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from strikeout.errors import UsageError
from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.issues import Issues

FORMATS = ("text", "markdown", "latex", "csv")
REPEATED = "Q201"  # no fault, but the row is not counted twice


@dataclass(frozen=True)
class Step:
    """One rule's line: how many rows it took out, how many were left then, and how many it flagged that stay in."""

    code: str
    name: str
    removed: int
    left: int
    flagged: int


@dataclass(frozen=True)
class Screening:
    """How many rows came in, what each rule did in turn, how many quotes are left.

    A row that several rules reject is counted once, under the first of them in the order of codes. A row that several
    rules flag is counted by each; one that any rule takes out is flagged by none. Rules with nothing to count have no
    line.

    ``print(reading.screening.table("markdown"))`` is the table to paste.
    """

    rows: int
    steps: tuple[Step, ...]
    left: int
    unchecked: Mapping[str, str]  # rules that were not run, and why

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain values, for JSON."""
        steps = [asdict(step) for step in self.steps]
        return {"rows": self.rows, "steps": steps, "left": self.left, "unchecked": dict(self.unchecked)}

    def table(self, form: str = "text") -> str:
        """The table as "text", "markdown", "latex" (booktabs) or "csv".

        Raises:
            UsageError: another form is asked for.
        """
        if form not in FORMATS:
            raise UsageError(f"A table can be {', '.join(FORMATS)}; {form!r} was asked for.")
        lines = [("", "rows in", "", f"{self.rows:,}", "")]
        lines += [
            (step.code, step.name, _number(step.removed), _number(step.left, step.removed), _number(step.flagged))
            for step in self.steps
        ]
        lines.append(("", "quotes left", "", f"{self.left:,}", ""))
        heads = ("code", "rule", "removed", "left", "flagged")
        return {"text": _text, "markdown": _markdown, "latex": _latex, "csv": _csv}[form](heads, lines)


Line = tuple[str, str, str, str, str]


def screening_of(issues: Issues, rows: int, unchecked: Mapping[str, str]) -> Screening:
    """The counts of a table of so many rows with these issues; and which rules were not run, and why."""
    frame = issues.frame
    takes_out = pl.col("is_rejected") | (pl.col("code") == REPEATED)
    first = frame.filter(takes_out).group_by("at").agg(pl.col("code").min())
    removed = dict(first.group_by("code").len().iter_rows())
    stays = ~pl.col("at").is_in(first["at"].implode())
    flagged = dict(frame.filter(~takes_out & stays).group_by("code").agg(pl.col("at").n_unique()).iter_rows())
    return screening_by(removed, flagged, rows, unchecked)


def screening_by(
    removed: Mapping[str, int], flagged: Mapping[str, int], rows: int, unchecked: Mapping[str, str]
) -> Screening:
    """The counts where it is known how many rows each rule removed and flagged."""
    steps, left = [], rows
    for code in sorted(removed.keys() | flagged.keys()):
        left -= removed.get(code, 0)
        steps.append(Step(code, RULES[code].name, removed.get(code, 0), left, flagged.get(code, 0)))
    return Screening(rows, tuple(steps), left, unchecked)


def _number(count: int, unless_zero: int | None = None) -> str:
    shown = count if unless_zero is None else unless_zero
    return f"{count:,}" if shown else ""


def _text(heads: Line, lines: list[Line]) -> str:
    widths = [max(len(line[column]) for line in (heads, *lines)) for column in range(5)]
    told = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (heads, *lines)
    ]
    return "\n".join(told)


def _markdown(heads: Line, lines: list[Line]) -> str:
    rows = [heads, ("---", "---", "---:", "---:", "---:"), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _latex(heads: Line, lines: list[Line]) -> str:
    body = [" & ".join(line).replace(",", "{,}") + r" \\" for line in lines]
    return "\n".join(
        [r"\begin{tabular}{llrrr}", r"\toprule", " & ".join(heads) + r" \\", r"\midrule", *body, r"\bottomrule",
         r"\end{tabular}"]
    )  # fmt: skip


def _csv(heads: Line, lines: list[Line]) -> str:
    plain = [(c, f'"{name}"' if "," in name else name, *(n.replace(",", "") for n in rest)) for c, name, *rest in lines]
    return "\n".join(",".join(row) for row in (heads, *plain))
