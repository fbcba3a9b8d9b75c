"""A certificate beside the retained quotes it is checked against: every claim computed again from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from strikeout.assurance.audit import audited
from strikeout.assurance.build import ROUNDING, build_of, difference
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.stationarity import next_step
from strikeout.calibration.calibrate import LOSSES, calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.choosing import Choice, chosen, weights_for
from strikeout.calibration.identifiability import INFLATION, undetermined
from strikeout.errors import UsageError
from strikeout.kernels.symmetric import inverse, length
from strikeout.models.heston import Heston
from strikeout.models.model import Model, ParameterSpace
from strikeout.models.named import recognised
from strikeout.quotes.forwards import is_derived, refitted
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.basis import Basis
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.losses import Huber, Squared, noise_variance
from strikeout.statistics.moments import Moments, moments_of
from strikeout.statistics.objective import Residual, objective_of
from strikeout.statistics.weights import Weighting
from strikeout.wording import agreeing, many


class Case:
    """A certificate beside the quotes it is checked against."""

    def __init__(
        self, certificate: Certificate, retained: Quotes, model: Model | None, weights: Weighting | None
    ) -> None:
        self.certificate, self.how = certificate, certificate.objective
        # A forward that came with the quotes might still know one that is gone; what is left of its slice does not.
        self.book = refitted(retained, is_derived(retained))
        self.select = cast(Choice, self.how.get("select", "all"))
        self.retained = chosen(self.book, self.select)
        contracts = self._contracts()
        self.asked = model_of(certificate, contracts, model)
        suited = getattr(self.asked, "suited", None)
        self.model: Model = self.asked if suited is None else suited(contracts)
        if self.model.name != certificate.model:
            raise UsageError(f"The certificate is of the model {certificate.model!r}; this is {self.model.name!r}.")
        self.space = self._space()
        if tuple(sorted(certificate.parameters)) != tuple(sorted(self.space.names)):
            raise UsageError(f"The certificate names other parameters than {', '.join(self.space.names)}.")
        self.names = self.space.names
        self.theta = [float.fromhex(certificate.parameters[name]) for name in self.names]
        self.residual = cast(Residual, self.how["residual"])
        self.weights = weights_for(self.retained, self.book, weights_of_claim(self.how, weights))
        self.fixed = numbers_of(self.how["fixed"] or {})
        self.bounds = {
            name: (float.fromhex(low), float.fromhex(high)) for name, (low, high) in (self.how["bounds"] or {}).items()
        }

    def _contracts(self) -> Any:
        """What the form of the model is chosen by."""
        return self.retained.contracts

    def _space(self) -> ParameterSpace:
        """The parameters that the certificate names."""
        return self.model.parameters

    def count(self) -> tuple[bool, str]:
        counts = self.certificate.counts
        objective, _ = objective_of(self.retained, residual=self.residual, weights=self.weights)
        if counts["before"] - counts["forgotten"] != counts["retained"]:
            return False, f"{counts['before']} less {counts['forgotten']} is not {counts['retained']}."
        here = len(objective) if self.select == "all" else len(self.book)
        if here != counts["retained"]:
            return False, f"The certificate is of {counts['retained']:,} retained quotes; here are {here:,}."
        return True, f"{many(here, 'quote')} {agreeing(here, 'is', 'are')} retained."

    def state(self) -> tuple[bool, str]:
        claimed = self.certificate.state["digest"]
        rebuilt = self._moments() if self.certificate.state["kind"] == "moments" else self._audit()
        found = rebuilt.digest()
        same = found == claimed
        if same:
            return True, f"Rebuilt from the quotes, the state is {found[:12]}."
        return self._by_rounding(
            False,
            f"Rebuilt from the quotes, the state is {found[:12]}; the certificate has {str(claimed)[:12]}. It was "
            "made from other quotes, or something of the forgotten ones is still in it.",
        )

    def step(self) -> tuple[bool, str]:
        claim = self.certificate.claims["STEP"]
        reference = numbers_of(self.certificate.state["reference"])
        free = [self.names.index(name) for name in claim["free"]]
        found = [reference[name] for name in self.names]
        for i, change in zip(free, self._audit().step(ridge=claim["ridge"], free=free), strict=True):
            found[i] += change
        return self._by_rounding(*self._compared(found, "one step from the reference on these quotes gives"))

    def optimum(self) -> tuple[bool, str]:
        tolerance = float.fromhex(self.certificate.claims["OPTIMUM"]["tolerance"])
        outside = self._outside()
        if outside:
            return False, outside
        objective, _ = objective_of(self.retained, residual=self.residual, weights=self.weights)
        threshold = self.how["threshold"]
        loss = LOSSES[self.how["loss"]] if threshold is None else Huber(float.fromhex(threshold))
        objective = objective.with_loss(loss)
        system = linearize(objective, self.model, self.theta)
        free = [i for i, name in enumerate(self.names) if name not in {*self.fixed, *self.how["on_bound"]}]
        H = [[system.rows[i][j] for j in free] for i in free]
        freedom = system.count - len(free)
        if freedom <= 0:
            return False, f"Too few quotes are left to tell: {system.count:,} for {len(free)} free parameters."
        variance = system.cost / freedom
        if not isinstance(loss, Squared):
            difference, _ = rows(objective, self.model, np.array(self.theta))
            variance = noise_variance(loss, objective.root_weight * difference, len(free))
        lost = self._unidentified(H, free, variance) or self._inseparable(system, free)
        if lost:
            return False, f"The quotes do not determine {', '.join(lost)}."
        for name in self.how["on_bound"]:
            i = self.names.index(name)
            pull = system.rows[-1][i]
            if pull > 0.0 if self.theta[i] == self._least(name) else pull < 0.0:
                return False, f"{name} is on its bound {self.theta[i]:g}, and the quotes pull it back inside."
        # Parameter by parameter, as tolerances are asked for; the joint length can be many times that.
        apart = max(map(abs, next_step(system, free=free, variance=variance)), default=0.0)
        moved = f"The next step moves no parameter by more than {apart:.3g} standard errors"
        if apart <= tolerance or length(H, [system.rows[-1][i] for i in free]) <= objective.rounding:
            return True, f"{moved}; {tolerance:g} is claimed. Identified.{self._as_asked()}"
        return False, f"{moved}; the certificate claims {tolerance:g}."

    def never_seen(self) -> tuple[bool, str]:
        source: Any = self.retained
        weighting: dict[str, Any] = {"weights": self.weights}
        if self.certificate.claims["NEVER_SEEN"].get("source") == "moments":
            source, weighting = self._moments(), {}
        found = self._calibrated(source, weighting)
        if not found.converged:
            return False, f"Calibrated alone, these quotes give no answer: {found.termination}."
        same, sentence = self._compared(
            [found.parameters[name] for name in self.names], "calibrating these quotes alone gives"
        )
        return self._by_build(same, sentence)

    def _by_build(self, same: bool, sentence: str) -> tuple[bool, str]:
        """Bits are claimed of one build: where they differ, the reader must know of another one."""
        apart = difference(self.certificate.build, build_of(self.model.name))
        return same, sentence if same or not apart else f"{sentence} {apart}"

    def _by_rounding(self, same: bool, sentence: str) -> tuple[bool, str]:
        """A state follows from prices alone, and those of NumPy from what it rounds by; no search has a part in it."""
        here, there = build_of(self.model.name), self.certificate.build
        is_alike = all(here.get(name) == there.get(name) for name in ROUNDING)
        return (same, sentence) if is_alike else self._by_build(same, sentence)

    def _calibrated(self, source: Any, weighting: dict[str, Any]) -> Calibration:
        starts = self.how["starts"]
        asked: dict[str, Any] = {
            "bounds": self.bounds or None,
            "fixed": self.fixed or None,
            "feller": self.how["feller"],
            "starts": starts
            if isinstance(starts, int)
            else numbers_of(starts)
            if isinstance(starts, Mapping)
            else [numbers_of(start) for start in starts],
        }
        if isinstance(source, Quotes):
            asked |= {"residual": self.residual, "loss": self.how["loss"]}
        found: Calibration = calibrate(source, self.asked, **asked, **weighting)
        return found

    def _moments(self) -> Moments:
        """On the basis the certificate names, as in "chebyshev/scattered-32x12-1"."""
        _, expiries, nodes = self.certificate.state["basis"].replace("/", "-").split("-")[:3]
        sizes_of = dict(zip(("nodes", "expiry_nodes"), map(int, nodes.split("x")), strict=False))
        return moments_of(self.retained, weights=self.weights, basis=Basis(expiries, **sizes_of))

    def _audit(self) -> Any:
        reference = self.certificate.state.get("reference")
        at = self.model.parameters.starts[0] if reference is None else numbers_of(reference)
        return audited(self.retained, self.model, at, residual=self.residual, weights=self.weights)

    def _compared(self, found: list[float], how: str) -> tuple[bool, str]:
        for name, claimed, value in zip(self.names, self.theta, found, strict=True):
            if value.hex() != claimed.hex():
                return False, f"{name} is {claimed!r} in the certificate, but {how} {value!r}."
        return True, f"Bit for bit: {how} these parameters.{self._as_asked()}"

    def _as_asked(self) -> str:
        """What was laid down and not found from the quotes: the certificate says so, and the reader must know."""
        fixed = ", ".join(f"{name} = {self.fixed[name]:g}" for name in self.names if name in self.fixed)
        bounded = ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in self.bounds.items())
        asked = " and ".join(filter(None, (fixed, bounded)))
        return f" Given, not found: {asked}." if asked else ""

    def _outside(self) -> str | None:
        limits = self.space.lower, self.space.upper
        for name, value, low, high in zip(self.names, self.theta, *limits, strict=True):
            least, most = self.bounds.get(name, (float(low), float(high)))
            if not least <= value <= most:
                return f"{name} is {value:g}, outside its bounds [{least:g}, {most:g}]."
            ends = (least, most) if name in self.bounds else (least,) if name in self.space.edges else ()
            if name in self.how["on_bound"] and value not in ends:
                return f"{name} is said to end on a bound that was asked for, and {value:g} is none."
            if name in self.fixed and value != self.fixed[name]:
                return f"{name} was fixed at {self.fixed[name]:g}, and is {value:g}."
        return None

    def _inseparable(self, system: Linearization, free: list[int]) -> list[str]:
        """Where a parameter ended at an edge of the model, those that the others can imitate, itself included."""
        found = sorted({*free, *(self.names.index(name) for name in self.how["on_bound"] if name not in self.bounds)})
        H = [[system.rows[i][j] for j in found] for i in found]
        unscaled, most = inverse(H), getattr(self.model, "inflation", INFLATION)
        return [self.names[i] for n, i in enumerate(found) if not unscaled[n][n] * H[n][n] < most]

    def _least(self, name: str) -> float:
        return self.bounds[name][0] if name in self.bounds else float(self.space.lower[self.names.index(name)])

    def _unidentified(self, H: list[list[float]], free: list[int], variance: float) -> list[str]:
        most = getattr(self.model, "inflation", INFLATION)
        return undetermined(self.space, self.theta, H, kept=free, noise_variance=variance, inflation=most)


def model_of(certificate: Certificate, contracts: Any, model: Model | None) -> Model:
    """The model given, or one of ours as the name tells it: in the form that suits these contracts, if that is its."""
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
    if how["weights"] != "own":
        return cast(Weighting, how["weights"])
    if given is None:
        raise UsageError("The calibration was given weights of its own: give them again with weights=, by id.")
    return given


def numbers_of(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: float.fromhex(text) for name, text in texts.items()}
