"""The regimes of a panel by date: a value."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.summary import finite, table_html
from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats
from strikeout.statistics.system import Group
from strikeout.tables import Cell, Table, number
from strikeout.text import as_lines, many


@dataclass(frozen=True)
class RegimeStart:
    """The end of one start; a log-likelihood of not-a-number if a regime lost all its dates."""

    log_likelihood: float
    rounds: int
    converged: bool


@dataclass(frozen=True, eq=False, repr=False)
class RegimePath:
    """The regimes of a panel, numbered from 1 in the order of their first switching parameter.

    Attributes:
        parameters: the shared parameters of every regime.
        standard_errors: given the regimes of the dates; they take dates to be independent.
        smoothed: probability of each regime by date, given all dates; one column per regime.
        filtered: the same, given the date and those before it.
        transitions: probability of each regime on the next date (columns), by the regime of a date (rows).
        latent: the latent parameter of every date in its most probable regime.
        noise: variance between dates, in units of the cost per switching parameter; ``noise_within`` that of a weighted
            residual within dates. Their ratio is how far dates disagree beyond the noise of their quotes.
        log_likelihood: of the switching parameters that each date would have on its own; comparable between counts.
        estimated: the number of parameters behind it.
        starts: the end of every start.
    """

    groups: tuple[Group, ...]
    label: str
    latent_name: str
    switching: tuple[str, ...]
    parameters: tuple[dict[str, float], ...]
    standard_errors: tuple[dict[str, float], ...]
    smoothed: Floats
    filtered: Floats
    transitions: Floats
    latent: dict[Group, float]
    noise: float
    noise_within: float
    log_likelihood: float
    estimated: int
    converged: bool
    starts: tuple[RegimeStart, ...]
    model: str

    @property
    def count(self) -> int:
        """The number of regimes."""
        return len(self.parameters)

    @property
    def regimes(self) -> dict[Group, int]:
        """The most probable regime of every date, given all dates."""
        return {group: int(r) + 1 for group, r in zip(self.groups, np.argmax(self.smoothed, axis=1), strict=True)}

    @property
    def durations(self) -> tuple[float, ...]:
        """How many dates each regime lasts on average; infinite if it is never left."""
        return tuple(1.0 / (1.0 - x) if x < 1.0 else inf for x in np.diagonal(self.transitions).tolist())

    @property
    def bic(self) -> float:
        """Schwarz's criterion over dates: lower is better. It compares counts of regimes on the same panel."""
        return float(elementary.log(float(len(self.groups)))) * self.estimated - 2.0 * self.log_likelihood

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per date: the regime, its probabilities, and the latent parameter.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library.
        """
        from strikeout.tables import frame_from

        return frame_from(self.columns(), library)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of ``to_frame``."""
        return {
            self.label: np.array(self.groups),
            "regime": np.array(list(self.regimes.values())),
            **{f"smoothed_{r + 1}": self.smoothed[:, r] for r in range(self.count)},
            **{f"filtered_{r + 1}": self.filtered[:, r] for r in range(self.count)},
            self.latent_name: np.array(list(self.latent.values())),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None."""
        return {
            "count": self.count,
            "switching": list(self.switching),
            "by": self.label,
            "parameters": [dict(each) for each in self.parameters],
            "standard_errors": [{name: finite(x) for name, x in each.items()} for each in self.standard_errors],
            "transitions": self.transitions.tolist(),
            "durations": [finite(x) for x in self.durations],
            "noise": self.noise,
            "noise_within": self.noise_within,
            "log_likelihood": self.log_likelihood,
            "bic": self.bic,
            "converged": self.converged,
            "starts": [
                {"log_likelihood": finite(one.log_likelihood), "rounds": one.rounds, "converged": one.converged}
                for one in self.starts
            ],
            "dates": {name: column.tolist() for name, column in self.columns().items()},
        }

    def parameter_table(self) -> Table:
        """Return one row per switching parameter: its value and standard error in each regime."""
        heads = ["parameter"]
        for r in range(self.count):
            heads += [f"regime {r + 1}", "standard error"]
        rows: list[list[Cell]] = []
        for name in self.parameters[0]:
            row: list[Cell] = [name]
            for values, errors in zip(self.parameters, self.standard_errors, strict=True):
                row += [number(values[name]), number(errors[name], ".2g")]
            rows.append(row)
        return Table(heads, rows, numbers=range(1, len(heads)), whole=(0,))

    def table(self) -> Table:
        """Return one row per date."""
        columns = self.columns()
        rows: list[tuple[Cell, ...]] = [
            (
                str(group),
                number(int(columns["regime"][t]), "d"),
                *(number(float(p), ".3f") for p in self.smoothed[t]),
                number(self.latent[group]),
            )
            for t, group in enumerate(self.groups)
        ]
        heads = (self.label, "regime", *(f"P(regime {r + 1})" for r in range(self.count)), self.latent_name)
        return Table(heads, rows, numbers=range(1, len(heads)), whole=(0,))

    def facts(self) -> list[str]:
        """Return what the regimes are as a whole, in sentences."""
        lines = [f"{many(self.count, 'regime')} of {', '.join(self.switching)} over {many(len(self.groups), 'date')}"]
        if self.count > 1:
            counts = [list(self.regimes.values()).count(r + 1) for r in range(self.count)]
            lasting = [f"{x:.3g}" if x < 100 * len(self.groups) else "all" for x in self.durations]
            lines += [
                f"dates by regime: {', '.join(map(str, counts))}; a regime lasts {', '.join(lasting)} dates on average",
            ]
        return [
            *lines,
            f"log-likelihood {self.log_likelihood:.6g}, BIC {self.bic:.6g} (lower is better)",
            f"dates disagree {np.sqrt(self.noise / self.noise_within):.3g} times as much as independent quotes would",
            "standard errors are given the regimes, and take dates to be independent",
            *([] if self.converged else ["NOT converged: do not rely on it"]),
        ]

    def summary(self) -> str:
        """Return the facts, the parameters of every regime, and one line per date."""
        tables = (self.parameter_table(), self.table())
        return as_lines([*self.facts(), *(line for table in tables for line in ["", *table.to_text().splitlines()])])

    def __repr__(self) -> str:
        return f"<RegimePath of {many(self.count, 'regime')} over {many(len(self.groups), 'date')}>"

    def _repr_html_(self) -> str:
        return table_html(self.parameter_table(), self.facts())
