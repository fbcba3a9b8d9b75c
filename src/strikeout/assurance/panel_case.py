"""A panel's certificate beside the retained quotes it is checked against: every claim again, group by group."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from strikeout.assurance.audit import audited
from strikeout.assurance.case import Case, Found, numbers_of
from strikeout.assurance.optimality import Optimality
from strikeout.assurance.panel_audit import PanelAudit
from strikeout.assurance.panel_optimality import Systems, panel_optimality, systems_at, weights_of_rows
from strikeout.calibration.panel_groups import grouped, latent_of, shared_space
from strikeout.errors import UsageError
from strikeout.models.model import ParameterSpace
from strikeout.statistics.schur import shared_schema
from strikeout.statistics.system import Group
from strikeout.statistics.weights import weights_of
from strikeout.wording import many


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
    def groups(self) -> list[Group]:
        """The groups that have a quote that counts, in their order."""
        weight, _ = weights_of(self.retained, self.weights)
        if not weight.any():
            raise UsageError("None of the retained quotes counts, so there is no group.")
        return [group for group, rows in self.rows.items() if weight[rows].any()]

    @cached_property
    def latent(self) -> dict[Group, float]:
        """The claimed latent parameter of every group."""
        claimed = self.certificate.latent
        if len(self.groups) != len(claimed):
            label = self.panel["label"]
            raise UsageError(
                f"The certificate has {len(claimed):,} groups of {label}; the quotes {len(self.groups):,}."
            )
        return dict(zip(self.groups, map(float.fromhex, claimed), strict=True))

    @cached_property
    def held(self) -> list[Group]:
        """The groups whose latent parameter is said to be held."""
        return [self.groups[n] for n in self.panel["held"]]

    def step(self) -> Found:
        state = self.certificate.state
        shared, latents = self._audit().step(free=self._free())
        reference = numbers_of(state["reference"])
        moved = [reference[name] + change for name, change in zip(self.names, shared, strict=True)]
        begun = map(float.fromhex, state["latent_reference"])
        followed = [at + change for at, change in zip(begun, latents, strict=True)]
        return self._by_rounding(*self._both(moved, followed, "one step from the reference on these quotes gives"))

    def _differs(self, found: Any) -> str | None:
        held = [n for n, group in enumerate(found.latent) if group in found.latent_on_bound]
        if held != self.panel["held"]:
            said = many(len(self.panel["held"]), "group")
            return f"The {self.panel['latent']} of {said} is held in the certificate, but of {len(held):,}"
        return super()._differs(found)

    def _rebuilt(self) -> dict[str, Any]:
        audit = self._audit()
        schema = shared_schema(next(iter(audit.parts.values())).schema, self.panel["latent"])
        return {
            "kind": "panel",
            "digest": audit.digest(),
            "count": sum(part.count for part in audit.parts.values()),
            "groups": len(audit.parts),
            "schema": schema.digest(),
        }

    def _compared_to(self, found: Any, how: str) -> Found:
        return self._both([found.parameters[name] for name in self.names], list(found.latent.values()), how)

    def _both(self, shared: list[float], latents: list[float], how: str) -> Found:
        also = f", and the {self.panel['latent']} of {len(latents):,} groups"
        same, sentence = self._compared(shared, how, also=also)
        if not same:
            return same, sentence
        for number, (claimed, value) in enumerate(zip(self.latent.values(), latents, strict=True), 1):
            if value.hex() != claimed.hex():
                name = f"{self.panel['latent']} of group {number:,}"
                return False, f"{name} is {claimed!r} in the certificate, but {how} {value!r}."
        return True, sentence

    def _audit(self) -> PanelAudit:
        reference = self.certificate.state.get("reference")
        latents = self.certificate.state.get("latent_reference", [])
        parts = {}
        for number, group in enumerate(self.groups):
            at: Any = self.model.parameters.starts[0]
            if reference is not None:
                at = {**numbers_of(reference), self.panel["latent"]: float.fromhex(latents[number])}
            rows = self.rows[group]
            weights = weights_of_rows(self.weights, rows)
            part = audited(self.retained[rows], self.model, at, residual=self.residual, weights=weights)
            if part.count or any(part.sums):
                parts[group] = part
        held = frozenset() if reference is None else frozenset(self.held)
        return PanelAudit(self.panel["latent"], parts, held)

    def _systems(self, shared: dict[str, float], latent: dict[Group, float]) -> Systems:
        how = {"residual": self.residual, "weights": self.weights}
        return systems_at(self.retained, self.rows, self.model, shared, latent, **how)

    def _optimality(self) -> Optimality:
        shared = dict(zip(self.names, self.theta, strict=True))
        return panel_optimality(
            self._systems(shared, self.latent),
            self.model,
            shared,
            self.latent,
            fixed=self.fixed,
            on_bound=self.on_bound,
            held=self.held,
            bounds=self.bounds,
        )

    def _cost_of(self, found: Any) -> float:
        return self._systems(found.parameters, found.latent).cost

    def _by_group(self) -> dict[str, Any]:
        return {"panel": self.panel["label"]}

    def _outside(self) -> str | None:
        outside = super()._outside()
        if outside:
            return outside
        k = self.model.parameters.names.index(self.panel["latent"])
        own = float(self.model.parameters.lower[k]), float(self.model.parameters.upper[k])
        low, high = self.bounds.get(self.panel["latent"], own)
        for number, value in enumerate(self.latent.values(), 1):
            if not low <= value <= high:
                return (
                    f"{self.panel['latent']} of group {number:,} is {value:g}, outside its bounds [{low:g}, {high:g}]."
                )
        return None
