"""Check the claims of a certificate: each is recomputed from the retained quotes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from strikeout.assurance.build import ROUNDING, build_of, difference
from strikeout.assurance.certificate import Certificate, Claim
from strikeout.assurance.independent_state import IndependentState, independent_block
from strikeout.assurance.optimality import Optimality, Question, question, weights_of_rows
from strikeout.calibration.calibrate import fit
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.calibration.panels import grouped, latent_of, shared_space
from strikeout.calibration.settings import FREE, Choice, Settings, chosen, weights_for
from strikeout.calibration.starts import STARTS
from strikeout.errors import StrikeoutError, UsageError
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.models.named import recognised
from strikeout.quotes.forwards import is_derived, refitted
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.losses import loss_with
from strikeout.statistics.moments import Basis, Moments, moments_of
from strikeout.statistics.objective import Residual, Weighting, objective_of, weights_of
from strikeout.statistics.schur import shared_schema
from strikeout.statistics.system import WHOLE, Group
from strikeout.text import agreeing, many

FARTHEST = 1.0  # standard errors: parameters farther from an optimum are not called one, whatever a certificate claims
NEARLY = 1e-3  # standard errors: parameters that are nearer to each other differ as builds that round differently do
DEFAULT = Settings()

Found = tuple[bool, str]


class ClaimChecker:
    """The checks of one certificate against the retained quotes.

    A certificate of a panel is of shared parameters and one latent parameter per group, in the order of the groups.
    """

    def __init__(
        self, certificate: Certificate, retained: Quotes, model: Model | None, weights: Weighting | None
    ) -> None:
        self.certificate, self.how = certificate, certificate.objective
        self.panel = self.how.get("panel")
        # A forward that was given with the quotes might depend on one that is struck out; a refitted one does not.
        self.book = refitted(retained, is_derived(retained))
        self.select = cast(Choice, self.how["select"])
        self.retained = chosen(self.book, self.select)
        self.rows = {WHOLE: np.arange(len(self.retained))}
        if self.panel is not None:
            self.rows = grouped(self.retained, self.panel["label"])
        largest = max(self.rows.values(), key=len, default=None)
        contracts = self.retained.contracts
        if self.panel is not None and largest is not None:  # groups are priced one by one
            contracts = contracts[largest]
        self.asked = model_of(certificate, contracts, model)
        suited = getattr(self.asked, "suited", None)
        self.model: Model = self.asked if suited is None else suited(contracts)
        if self.model.name != certificate.model:
            raise UsageError(f"The certificate is of the model {certificate.model!r}; this is {self.model.name!r}.")
        self.latent_name = None if self.panel is None else self._latent_name(self.panel["latent"])
        self.space = shared_space(self.model, self.latent_name)
        self.names = self.space.names
        self.residual = cast(Residual, self.how["residual"])
        self.weights = weights_for(self.retained, self.book, weights_of_claim(self.how, weights))
        self.fixed = numbers_of(self.how.get("fixed", {}))
        self.on_bound = numbers_of(self.how.get("on_bound", {}))
        self.bounds = {
            name: (float.fromhex(low), float.fromhex(high)) for name, (low, high) in self.how.get("bounds", {}).items()
        }
        self.theta = [float.fromhex(certificate.parameters[name]) for name in self.names if certificate.parameters]
        if certificate.parameters:
            self._check_parameters()

    def _latent_name(self, claimed: str) -> str:
        if latent_of(self.model) != claimed:
            raise UsageError(
                f"The certificate is of one {claimed} per group; the model's own is {latent_of(self.model)}."
            )
        return claimed

    @cached_property
    def groups(self) -> list[Group]:
        """The groups that have a quote that counts, in their order; of a plain certificate the one of all quotes."""
        if self.panel is None:
            return [WHOLE]
        weight, _ = weights_of(self.retained, self.weights)
        if not weight.any():
            raise UsageError("None of the retained quotes counts, so there is no group.")
        return [group for group, rows in self.rows.items() if weight[rows].any()]

    @cached_property
    def latent(self) -> dict[Group, float]:
        """The claimed latent parameter of every group; empty for a plain certificate."""
        if self.panel is None:
            return {}
        claimed = self.certificate.latent
        if len(self.groups) != len(claimed):
            label = self.panel["label"]
            raise UsageError(
                f"The certificate has {len(claimed):,} groups of {label}; the quotes {len(self.groups):,}."
            )
        return dict(zip(self.groups, map(float.fromhex, claimed), strict=True))

    @cached_property
    def held(self) -> list[Group]:
        """The groups whose latent parameter is claimed to be held."""
        return [] if self.panel is None else [self.groups[n] for n in self.panel["held"]]

    def _check_parameters(self) -> None:
        """Raise UsageError if nothing is left for the quotes to determine, or the objective names what is not there."""
        if sorted(self.certificate.parameters) != sorted(self.names):
            raise UsageError(f"The certificate names other parameters than {', '.join(self.names)}.")
        for what, named in (("fixes", self.fixed), ("bounds", self.bounds), ("holds on a bound", self.on_bound)):
            odd = sorted(named.keys() - set(self.model.parameters.names))
            if odd:
                raise UsageError(f"The certificate {what} {', '.join(odd)}, which is not a parameter of the model.")
        if not set(self.names) - self.fixed.keys() - self.on_bound.keys():
            raise UsageError(
                "Every parameter of the certificate is fixed or held on a bound: the quotes determine none of them."
            )

    def count(self) -> Found:
        retained = self.certificate.counts["retained"]
        here = len(self.book)
        if self.select == "all":
            here = len(objective_of(self.retained, residual=self.residual, weights=self.weights)[0])
        if here != retained:
            return False, f"The certificate is of {retained:,} retained quotes; here are {here:,}."
        return True, f"{many(here, 'quote')} {agreeing(here, 'is', 'are')} retained."

    def state(self) -> Found:
        claimed, found = self.certificate.state, self._described_state()
        if found["digest"] != claimed["digest"]:
            return self._by_rounding(
                False,
                f"Rebuilt from the quotes, the state is {found['digest'][:12]}; the certificate has "
                f"{claimed['digest'][:12]}. It was made from other quotes, or something of the forgotten ones is still "
                "in it.",
            )
        for part, value in found.items():
            if claimed[part] != value:
                return False, f"Rebuilt from the quotes, the {part} of the state is {value}, not {claimed[part]}."
        return True, f"Rebuilt from the quotes, the state is {found['digest'][:12]}."

    def step(self) -> Found:
        state = self.certificate.state
        shared, latents = self._rebuild().step(free=self._free())
        reference = numbers_of(state["reference"])
        moved = [reference[name] + change for name, change in zip(self.names, shared, strict=True)]
        begun = map(float.fromhex, state.get("latent_reference", []))
        followed = [at + change for at, change in zip(begun, latents, strict=True)]
        return self._by_rounding(*self._compared(moved, followed, "one step from the reference on these quotes gives"))

    def optimum(self) -> Found:
        tolerance = self.certificate.tolerance or 0.0
        if not 0.0 <= tolerance <= FARTHEST:
            return False, (
                f"The certificate claims {tolerance:g} standard errors, and what is more than {FARTHEST:g} from the "
                "optimum is not called one."
            )
        outside = self._outside()
        if outside:
            return False, outside
        return self._judged(self._optimality(), tolerance)

    def never_seen(self) -> Found:
        found = self._own if self.how["starts"] == STARTS else self._calibrated(self._starts())
        if not found.converged:
            return False, f"Calibrated alone, these quotes give no answer: {found.termination}."
        how = "calibrating these quotes alone gives"
        values = [found.parameters[name] for name in self.names]
        same, sentence = self._compared(values, list(found.latent.values()), how)
        if not same:
            return self._by_build(False, f"{sentence}{self._apart(found)}")
        differs = self._differs(found)
        if differs:
            return False, f"{differs} by calibrating these quotes alone."
        beaten = self._beaten(self._optimality()) if found is not self._own else None
        return (False, beaten) if beaten else (True, sentence)

    def _differs(self, found: Calibration) -> str | None:
        """Return what else differs between a calibration of the quotes and the certificate; None if nothing."""
        if self.panel is not None:
            held = [n for n, group in enumerate(found.latent) if group in found.latent_on_bound]
            if held != self.panel["held"]:
                claimed = many(len(self.panel["held"]), "group")
                return f"The {self.latent_name} of {claimed} is held in the certificate, but of {len(held):,}"
        threshold = None if found.threshold is None else found.threshold.hex()
        if self.how["threshold"] != threshold:
            return f"The threshold of the loss is {self.how['threshold']} in the certificate, but {threshold}"
        if self.on_bound != dict(found.on_bound):
            return f"On a bound are {_listed(self.on_bound)} in the certificate, but {_listed(found.on_bound)}"
        return None

    def laid_down(self) -> tuple[str, ...]:
        """Return what the issuer chose and the quotes did not determine, as clauses; nothing of a calibration by
        default."""
        how, starts = self.how, self.how.get("starts", STARTS)
        several = "of the issuer's own" if isinstance(starts, list | dict) else f"of the model's own, not {STARTS}"
        count = starts if isinstance(starts, int) else 1 if isinstance(starts, dict) else len(starts)
        limit, every = how.get("threshold"), self.model.parameters.names
        clauses = (
            *(f"{name} is fixed at {self.fixed[name]:g}" for name in every if name in self.fixed),
            *(f"{name} is kept in [{x[0]:g}, {x[1]:g}]" for name in every if (x := self.bounds.get(name))),
            *(f"{name} is held on its bound {self.on_bound[name]:g}" for name in every if name in self.on_bound),
            how["residual"] != DEFAULT.residual and f"residuals are of {how['residual']}",
            how["weights"] != DEFAULT.weights and f"weights are {how['weights']!r}",
            how["select"] != DEFAULT.select and f"only the quotes count that select={how['select']!r} leaves",
            limit is not None
            and f"large residuals count less (loss {how['loss']!r}, threshold {float.fromhex(limit):g})",
            how.get("feller", False) and "Feller's condition is enforced",
            self.panel is not None
            and "prior" in self.panel
            and f"the path of the panel has a prior (latent {self.panel['prior']!r})",
            starts != STARTS and f"the search begins at {many(count, 'start')} {several}",
        )
        return tuple(clause for clause in clauses if clause)

    def stated(self) -> tuple[str, ...]:
        """Return what the certificate states and no retained quote can confirm, as clauses."""
        c = self.certificate
        builds = difference(c.build, build_of(self.model.name))
        return (
            f"{many(c.counts['forgotten'], 'quote')} forgotten, by {c.operator}, with {c.software}",
            builds.removesuffix(".") or "made by this very build",
        )

    def _described_state(self) -> dict[str, Any]:
        """Return the state of the retained quotes, described as a certificate describes it."""
        if self.certificate.state["kind"] == "moments":
            moments = self._moments()
            return {
                "kind": "moments",
                "digest": moments.digest(),
                "count": len(moments),
                "basis": moments.basis.name,
            }
        state = self._rebuild()
        found = {"digest": state.digest(), "count": sum(block.count for block in state.blocks.values())}
        schema = state.first.schema
        if self.latent_name is None:
            return {"kind": "normal equations", **found, "schema": schema.digest()}
        shared = shared_schema(schema, self.latent_name).digest()
        return {"kind": "panel", **found, "groups": len(state.blocks), "schema": shared}

    def _judged(self, found: Optimality, tolerance: float) -> Found:
        if found.spare <= 0:
            left = f"{found.count:,} for {many(found.free, 'free parameter')}"
            return False, f"Too few quotes are left: {left}."
        if found.undetermined:
            return False, f"The quotes do not determine {', '.join(found.undetermined)}."
        if found.pulled:
            return (
                False,
                f"{', '.join(found.pulled)} is claimed to be held on a bound, and the quotes pull it back inside.",
            )
        moved = f"The next step moves no parameter by more than {found.apart:.3g} standard errors"
        if not found.is_within(tolerance):
            return False, f"{moved}; the certificate claims {tolerance:g}."
        beaten = self._beaten(found)
        rounding = "" if found.apart <= tolerance else ", or a step below rounding, as this one is"
        return (False, beaten) if beaten else (True, f"{moved}; {tolerance:g} is claimed{rounding}. Identified.")

    def _beaten(self, found: Optimality) -> str | None:
        """Return a sentence if the model's own starts lead to a valley far below; None if they do not."""
        try:
            best = self._question.cost(self._own.parameters, self._own.latent)
        except StrikeoutError:
            return None
        if not found.is_above(best):
            return None
        return f"From the model's own starts these quotes reach a cost of {best:.4g}; here it is {found.cost:.4g}."

    @cached_property
    def _question(self) -> Question:
        """The optimum that the certificate claims, with its loss."""
        limit = self.how.get("threshold")
        return question(
            self.retained,
            self.model,
            {group: self.rows[group] for group in self.groups},
            residual=self.residual,
            weights=self.weights,
            loss=loss_with(self.how.get("loss", "squared"), None if limit is None else float.fromhex(limit)),
            latent=self.latent_name,
            rest={"fixed": self.fixed, "bounds": self.bounds},
        )

    def _optimality(self) -> Optimality:
        shared = dict(zip(self.names, self.theta, strict=True))
        return self._question.optimality(shared, self.latent, on_bound=self.on_bound, held=self.held)

    @cached_property
    def _own(self) -> Calibration:
        """The retained quotes calibrated from the model's own starts."""
        return self._calibrated(STARTS)

    def _starts(self) -> Any:
        starts = self.how["starts"]
        if isinstance(starts, int):
            return starts
        return numbers_of(starts) if isinstance(starts, dict) else [numbers_of(start) for start in starts]

    def _calibrated(self, starts: Any) -> Calibration:
        feller: Any = "enforce" if self.how.get("feller") else "warn"
        how = Settings(bounds=self.bounds or None, fixed=self.fixed or None, feller=feller, starts=starts)
        if self.certificate.claims.get(Claim.NEVER_SEEN.name, {}).get("source") == "moments":
            return calibrate_moments(self._moments(), self.asked, how)
        how = replace(how, residual=self.residual, loss=self.how["loss"], weights=self.weights)
        if self.panel is not None:
            how = replace(how, panel=self.panel["label"], latent=self.panel.get("prior", FREE))
        return fit(self.retained, self.asked, **how.keywords())

    def _moments(self) -> Moments:
        """Return moments on the basis the certificate names, as in "chebyshev/scattered-32x12-1"."""
        _, expiries, nodes = self.certificate.state["basis"].replace("/", "-").split("-")[:3]
        sizes_of = dict(zip(("nodes", "expiry_nodes"), map(int, nodes.split("x")), strict=False))
        return moments_of(self.retained, weights=self.weights, basis=Basis(expiries, **sizes_of))

    def _rebuild(self) -> IndependentState:
        """Rebuild the state of the retained quotes at the reference that the certificate names."""
        reference = self.certificate.state.get("reference")
        latents = self.certificate.state.get("latent_reference", [])
        blocks = {}
        for number, group in enumerate(self.groups):
            at: Any = self.model.parameters.starts[0]
            if reference is not None:
                own = {} if self.latent_name is None else {self.latent_name: float.fromhex(latents[number])}
                at = {**numbers_of(reference), **own}
            some, weights = self.retained, self.weights
            if self.panel is not None:
                some, weights = self.retained[self.rows[group]], weights_of_rows(self.weights, self.rows[group])
            block = independent_block(some, self.model, at, residual=self.residual, weights=weights)
            if self.panel is None or block.count or any(block.sums):
                blocks[group] = block
        held = frozenset() if reference is None else frozenset(self.held)
        return IndependentState(self.latent_name, blocks, held)

    def _free(self) -> list[int]:
        """Return numbers of the parameters that a step moves: all that are not fixed."""
        return [i for i, name in enumerate(self.names) if name not in self.fixed]

    def _compared(self, shared: list[float], latents: list[float], how: str) -> Found:
        for name, claimed, value in zip(self.names, self.theta, shared, strict=True):
            if value.hex() != claimed.hex():
                return False, f"{name} is {claimed!r} in the certificate, but {how} {value!r}."
        for number, (claimed, value) in enumerate(zip(self.latent.values(), latents, strict=True), 1):
            if value.hex() != claimed.hex():
                name = f"{self.latent_name} of group {number:,}"
                return False, f"{name} is {claimed!r} in the certificate, but {how} {value!r}."
        also = "" if self.panel is None else f", and the {self.latent_name} of {len(latents):,} groups"
        return True, f"Bit for bit: {how} these parameters{also}."

    def _apart(self, found: Any) -> str:
        """That parameters differ by no more than rounding makes, which another build may have done."""
        errors = found.standard_errors
        moves = [
            abs(found.parameters[name] - value) / errors[name]
            for name, value in zip(self.names, self.theta, strict=True)
            if errors[name] > 0.0
        ]
        most = max(moves, default=0.0)
        if most > NEARLY:
            return ""
        return f" They are within {max(most, 1e-16):.0e} standard errors of each other, as far as builds may differ."

    def _by_build(self, same: bool, sentence: str) -> Found:
        """Add how the builds differ if the bits do: bits are claimed of one build."""
        apart = difference(self.certificate.build, build_of(self.model.name))
        return same, sentence if same or not apart else f"{sentence} {apart}"

    def _by_rounding(self, same: bool, sentence: str) -> Found:
        """Add how the builds differ, comparing only the parts that affect rounding: a state depends on prices alone."""
        here, there = build_of(self.model.name), self.certificate.build
        is_alike = all(here.get(name) == there.get(name) for name in (*ROUNDING, "kernel"))
        return (same, sentence) if is_alike else self._by_build(same, sentence)

    def _outside(self) -> str | None:
        limits = self.space.lower, self.space.upper
        for name, value, low, high in zip(self.names, self.theta, *limits, strict=True):
            least, most = self.bounds.get(name, (float(low), float(high)))
            if not least <= value <= most:
                return f"{name} is {value:g}, outside its bounds [{least:g}, {most:g}]."
            ends = (least, most) if name in self.bounds else (least,) if name in self.space.edges else ()
            if name in self.on_bound and not (value == self.on_bound[name] and value in ends):
                return f"{name} is claimed to end on a bound that was asked for, and {value:g} is not one."
            if name in self.fixed and value != self.fixed[name]:
                return f"{name} was fixed at {self.fixed[name]:g}, and is {value:g}."
        return self._latent_outside()

    def _latent_outside(self) -> str | None:
        if self.latent_name is None:
            return None
        space, k = self.model.parameters, self.model.parameters.names.index(self.latent_name)
        low, high = self.bounds.get(self.latent_name, (float(space.lower[k]), float(space.upper[k])))
        for number, value in enumerate(self.latent.values(), 1):
            if not low <= value <= high:
                return f"{self.latent_name} of group {number:,} is {value:g}, outside its bounds [{low:g}, {high:g}]."
        if self.latent_name in self.bounds:
            return None
        ends = (low, high)[self.latent_name in space.edges :]  # bounds of the model's own beyond which more may lie
        for group in self.held:
            if self.latent[group] in ends:
                return f"{self.latent_name} is claimed to end on a bound of the model that is not one of its edges."
        return None


def model_of(certificate: Certificate, contracts: Any, model: Model | None) -> Model:
    """Return the model given, or the built-in one of this name, in the form that suits these contracts."""
    if model is not None:
        return model
    kind, _, form = certificate.model.partition("/")
    parts = form.split("-")
    if kind != "heston" and (found := recognised(certificate.model, contracts)) is not None:
        return found
    if kind != "heston" or len(parts) != 3 or parts[0] not in ("native", "numpy"):
        raise UsageError(f"The certificate's model {certificate.model!r} is none of ours: give it with model=.")
    kernel = cast(Any, parts[0])
    free = Heston(kernel=kernel)
    return free if free.suited(contracts).name == certificate.model else Heston(kernel, cast(Any, parts[1]))


def weights_of_claim(how: Mapping[str, Any], given: Weighting | None) -> Weighting:
    """Return the weights that a certificate names, or those given where it names none."""
    if how["weights"] != "own":
        return cast(Weighting, how["weights"])
    if given is None:
        raise UsageError("The calibration was given weights of its own: give them again with weights=, by id.")
    return given


def numbers_of(texts: Mapping[str, str]) -> dict[str, float]:
    """Return numbers by name, from their hexadecimal texts."""
    return {name: float.fromhex(text) for name, text in texts.items()}


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in values.items()) or "none"
