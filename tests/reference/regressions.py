"""NIST's and R's nonlinear regressions as models and books of our own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import strikeout as so

WORDS = ("exp", "sin", "cos", "log", "sqrt", "arctan")

# R's formulas name their columns otherwise than the files' own columns are named.
R_COLUMNS = {"Time": "t", "time": "t", "conc": "c", "S": "c", "Km": "K"}


@dataclass(frozen=True, eq=False)
class Regression:
    """A published problem: its function, its book, its starts, and what the file says about the answers."""

    name: str
    names: tuple[str, ...]
    formula: str
    quotes: so.Quotes
    starts: tuple[dict[str, float], ...]
    case: dict[str, Any]

    def model(self, start: int = -1) -> Any:
        """Its function as a model that begins at one of its starts; the last is the nearest to the answer."""
        return so.custom_model(self.name, parameters=self.starts[start], price=self.price)

    @property
    def price(self) -> Any:
        """Its function, as NumPy computes it."""
        return self.written_with(np)

    def written_with(self, library: Any) -> Any:
        """Its function, with the words of NumPy or of jax.numpy."""
        words = {name: getattr(library, name) for name in WORDS} | {"pi": np.pi}
        return eval(f"lambda {', '.join((*self.names, *self.quotes.contracts.names))}: {self.formula}", words)

    @property
    def answer(self) -> np.ndarray:
        """The optimum on all rows, to at least 15 digits."""
        return numbers(self.case["computed_here"]["full_fit"])

    def deletions(self) -> list[tuple[str, list[int], np.ndarray, np.ndarray]]:
        """What to call it, the rows taken away, one Gauss-Newton step from ``answer``, and the new optimum."""
        found = self.case["computed_here"]
        singles = zip(found["leave_one_out_one_gauss_newton_step"], found["leave_one_out_refit"], strict=True)
        out = [(f"row {row}", [row], numbers(step), numbers(refit)) for row, (step, refit) in enumerate(singles)]
        for name, rows in found.get("deletion_sets", {}).items():
            if rows["converged"]:
                out.append((name, rows["deleted"], numbers(rows["one_step"]), numbers(rows["refit"])))
        return out


def numbers(texts: list[str]) -> np.ndarray:
    return np.array([float(text) for text in texts])


@lru_cache
def nist(path: Path) -> Regression:
    """One of NIST's problems; the first start is far, the second near."""
    case = json.loads(path.read_text())
    names = tuple(f"b{i}" for i in range(1, case["p"] + 1))
    columns = dict(zip(case["columns"], np.array(case["data"], float).T, strict=True))
    y = columns.pop("y")
    starts = tuple(dict(zip(names, case[key], strict=True)) for key in ("start1", "start2"))
    observed = np.log(y) if case["response"] == "log(y)" else y
    return _regression(case, names, case["model"].partition("[")[0], columns, observed, starts)


@lru_cache
def r(path: Path) -> Regression:
    """One of R's problems. Its file starts at the optimum; we start a tenth away."""
    case = json.loads(path.read_text())
    names, columns = tuple(case["parameters"]), dict(zip(case["columns"], np.array(case["x"], float), strict=True))
    formula = case["model"].partition("~")[2]
    for theirs, ours in R_COLUMNS.items():
        formula = re.sub(rf"\b{theirs}\b", ours, formula)
    start = {name: 1.1 * value for name, value in zip(names, case["start"], strict=True)}
    return _regression(case, names, formula, columns, np.array(case["y"], float), (start,))


def _regression(
    case: dict[str, Any],
    names: tuple[str, ...],
    formula: str,
    columns: dict[str, np.ndarray],
    observed: np.ndarray,
    starts: tuple[dict[str, float], ...],
) -> Regression:
    ids = [f"row {row}" for row in range(len(observed))]
    quotes = so.Quotes.from_columns(ids, observed, weight=case.get("weights"), **columns)
    return Regression(case["name"], names, formula, quotes, starts, case)
