"""A panel's certificate beside the retained quotes it is checked against: every claim again, group by group."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.audit import audited
from strikeout.assurance.case import Case, numbers_of
from strikeout.assurance.panel_arrow import arrow_errors, arrow_solve, reduced
from strikeout.assurance.panel_audit import PanelAudit
from strikeout.calibration.panel_groups import grouped, latent_of, shared_space
from strikeout.errors import UsageError
from strikeout.kernels.symmetric import length
from strikeout.models.model import ParameterSpace
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from strikeout.statistics.panel_state import Group
from strikeout.statistics.weights import Weighting, weights_of
from strikeout.wording import many

Floats = NDArray[np.float64]


class PanelCase(Case):
    """A certificate of shared parameters and one latent parameter a group, in the order of the groups."""

    def _contracts(self) -> Any:
        """Of the largest group: groups are priced one by one."""
        self.panel = self.how["panel"]
        rows = grouped(self.retained, self.panel["label"])
        self.rows = rows
        return self.retained.contracts[max(rows.values(), key=len)] if rows else self.retained.contracts

    def _space(self) -> ParameterSpace:
        if latent_of(self.model) != self.panel["latent"]:
            raise UsageError(
                f"The certificate is of one {self.panel['latent']} a group; the model's own is {latent_of(self.model)}."
            )
        return shared_space(self.model)

    @cached_property
    def latent(self) -> dict[Group, float]:
        """The claimed latent parameter of every group that has a quote that counts."""
        weight, _ = weights_of(self.retained, self.weights)
        groups = [group for group, rows in self.rows.items() if weight[rows].any()]
        claimed = self.certificate.latent
        if len(groups) != len(claimed):
            label = self.panel["label"]
            raise UsageError(f"The certificate has {len(claimed):,} groups of {label}; the quotes {len(groups):,}.")
        return dict(zip(groups, map(float.fromhex, claimed), strict=True))

    @cached_property
    def held(self) -> list[Group]:
        """The groups whose latent parameter is said to be held."""
        groups = list(self.latent)
        return [groups[n] for n in self.panel["held"]]

    def step(self) -> tuple[bool, str]:
        claim, state = self.certificate.claims["STEP"], self.certificate.state
        if claim["ridge"] != "none":
            raise UsageError(f"A panel is stepped without a ridge; the certificate has {claim['ridge']!r}.")
        shared, latents = self._audit().step(free=[self.names.index(name) for name in claim["free"]])
        reference = numbers_of(state["reference"])
        moved = [reference[name] + change for name, change in zip(self.names, shared, strict=True)]
        begun = map(float.fromhex, state["latent_reference"])
        followed = [at + change for at, change in zip(begun, latents, strict=True)]
        return self._by_rounding(*self._both(moved, followed, "one step from the reference on these quotes gives"))

    def optimum(self) -> tuple[bool, str]:
        tolerance = float.fromhex(self.certificate.claims["OPTIMUM"]["tolerance"])
        outside = self._outside() or self._latents_outside()
        if outside:
            return False, outside
        systems, rounding = self._systems()
        k = self.model.parameters.names.index(self.panel["latent"])
        places = [i for i in range(len(self.model.parameters)) if i != k]
        free = [n for n, name in enumerate(self.names) if name not in {*self.fixed, *self.how["on_bound"]}]
        order = [*(places[n] for n in free), k]
        H = np.array([s.curvature for s in systems])[np.ix_(range(len(systems)), order, order)]
        G = np.array([s.score for s in systems])[:, order]
        held = np.array([group in self.held for group in self.latent])
        loose = int(np.count_nonzero(~held & ~(H[:, -1, -1] > 0.0)))
        if loose:
            return False, f"The quotes of {many(loose, 'group')} do not determine {self.panel['latent']} there."
        freedom = sum(s.count for s in systems) - len(free) - int(np.count_nonzero(~held))
        if freedom <= 0:
            return False, "There are no more quotes than parameters."
        variance = sum(s.cost for s in systems) / freedom
        whole = reduced(H, held).tolist()
        lost = self._unidentified(whole, free, variance)
        if lost:
            return False, f"The quotes do not determine {', '.join(lost)}."
        pulled = self._pulled_back(systems, places)
        if pulled:
            return False, pulled
        steps, errors = arrow_solve(H, G, held), arrow_errors(H, held, sqrt(variance))
        with np.errstate(divide="ignore", invalid="ignore"):  # no noise, no errors: then rounding decides, below
            shares = np.abs(np.concatenate([steps[0] / errors[0], (steps[1] / errors[1])[~held]]))
        apart = float(np.max(shares, initial=0.0))
        moved = f"The next step moves no parameter, shared or of a group, by more than {apart:.3g} standard errors"
        moves = np.where(held, 0.0, G[:, -1]) / np.where(held, 1.0, H[:, -1, -1])
        score = (G[:, :-1] - H[:, :-1, -1] * moves[:, None]).sum(axis=0)
        if apart <= tolerance or length(whole, score.tolist()) <= rounding:
            return True, f"{moved}; {tolerance:g} is claimed. Identified.{self._as_asked()}"
        return False, f"{moved}; the certificate claims {tolerance:g}."

    def never_seen(self) -> tuple[bool, str]:
        found = self._calibrated(self.retained, {"weights": self.weights, "panel": self.panel["label"]})
        if not found.converged:
            return False, f"Calibrated alone, these quotes give no answer: {found.termination}."
        latents = list(found.latent.values())  # type: ignore[attr-defined]
        shared = [found.parameters[name] for name in self.names]
        return self._by_build(*self._both(shared, latents, "calibrating these quotes alone gives"))

    def _both(self, shared: list[float], latents: list[float], how: str) -> tuple[bool, str]:
        same, sentence = self._compared(shared, how)
        if not same:
            return same, sentence
        for number, (claimed, value) in enumerate(zip(self.latent.values(), latents, strict=True), 1):
            if value.hex() != claimed.hex():
                name = f"{self.panel['latent']} of group {number:,}"
                return False, f"{name} is {claimed!r} in the certificate, but {how} {value!r}."
        return True, f"{sentence[:-1]}, and the {self.panel['latent']} of {len(latents):,} groups."

    def _audit(self) -> PanelAudit:
        reference = self.certificate.state.get("reference")
        latents = self.certificate.state.get("latent_reference", [])
        groups, first = list(self.latent), self.model.parameters.starts[0]
        parts = {}
        for number, group in enumerate(groups):
            at: Any = first
            if reference is not None:
                at = {**numbers_of(reference), self.panel["latent"]: float.fromhex(latents[number])}
            rows = self.rows[group]
            part = audited(self.retained[rows], self.model, at, residual=self.residual, weights=self._weights_of(rows))
            if part.count or any(part.sums):
                parts[group] = part
        held = frozenset() if reference is None else frozenset(self.held)
        return PanelAudit(self.panel["latent"], parts, held)

    def _systems(self) -> tuple[list[Linearization], float]:
        """Every group linearized at the claimed parameters; and the rounding of their residuals."""
        systems, squares, name = [], 0.0, self.panel["latent"]
        shared = dict(zip(self.names, self.theta, strict=True))
        for group, value in self.latent.items():
            rows = self.rows[group]
            theta = [shared.get(each, value) if each != name else value for each in self.model.parameters.names]
            objective, _ = objective_of(self.retained[rows], residual=self.residual, weights=self._weights_of(rows))
            systems.append(linearize(objective, self.model, theta))
            squares += objective.rounding * objective.rounding
        return systems, sqrt(squares)

    def _weights_of(self, rows: NDArray[np.intp]) -> Weighting:
        """A rule or weights by id are for any quotes; an array has one number a quote."""
        given = self.weights
        return np.asarray(given, float)[rows] if isinstance(given, np.ndarray | list | tuple) else given

    def _latents_outside(self) -> str | None:
        k = self.model.parameters.names.index(self.panel["latent"])
        own = float(self.model.parameters.lower[k]), float(self.model.parameters.upper[k])
        low, high = self.bounds.get(self.panel["latent"], own)
        for number, value in enumerate(self.latent.values(), 1):
            if not low <= value <= high:
                return (
                    f"{self.panel['latent']} of group {number:,} is {value:g}, outside its bounds [{low:g}, {high:g}]."
                )
        return None

    def _pulled_back(self, systems: list[Linearization], places: list[int]) -> str | None:
        """The first parameter said to end on a bound that the quotes pull back inside; None where there is none."""
        for name in self.how["on_bound"]:
            n, total = self.names.index(name), 0.0
            for system in systems:
                total += system.rows[-1][places[n]]
            if total > 0.0 if self.theta[n] == self._least(name) else total < 0.0:
                return f"{name} is on its bound {self.theta[n]:g}, and the quotes pull it back inside."
        k = self.model.parameters.names.index(self.panel["latent"])
        own = float(self.model.parameters.lower[k]), float(self.model.parameters.upper[k])
        low, high = self.bounds.get(self.panel["latent"], own)
        for group, system in zip(self.latent, systems, strict=True):
            value, pull = self.latent[group], system.rows[-1][k]
            is_held = (value <= low and pull <= 0.0) or (value >= high and pull >= 0.0) or system.rows[k][k] == 0.0
            if group in self.held and not is_held:
                return f"The {self.panel['latent']} of a group is said to be held, and its quotes pull it inside."
        return None
