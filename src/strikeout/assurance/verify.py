"""Checking a certificate against the retained quotes: everything is computed again, nothing is taken on trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any, cast

import numpy as np

from strikeout.assurance.audit import audited
from strikeout.assurance.certificate import Certificate, Claim
from strikeout.assurance.indicator import sizes
from strikeout.assurance.issuing import build_of
from strikeout.assurance.stationarity import next_step
from strikeout.assurance.verification import Check, Verification
from strikeout.calibration.calibrate import LOSSES, calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.choosing import Choice, chosen, weights_for
from strikeout.calibration.identifiability import FREE, INFLATION
from strikeout.calibration.yardstick import JITTER
from strikeout.errors import StrikeoutError, UsageError
from strikeout.kernels.symmetric import inverse, length
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.forwards import is_derived, refitted
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.basis import Basis
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.losses import Huber, Squared, noise_variance
from strikeout.statistics.moments import Moments, moments_of
from strikeout.statistics.objective import Residual, objective_of
from strikeout.statistics.weights import Weighting

# What a check on foreign input may meet; each becomes a reason, since a verification raises nothing.
FAILURES = (StrikeoutError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


def verify(
    certificate: Certificate | bytes, retained: Quotes, *, model: Model | None = None, weights: Weighting | None = None
) -> Verification:
    """Every claim of a certificate, computed again from the retained quotes alone. Never imports an operator.

    Forwards that the quotes say were derived are derived again.

    The state is rebuilt in whole numbers; the step is solved from that; the gradient is taken at the parameters; the
    quotes are calibrated from cold starts. Whoever holds the retained quotes can run it.

    Args:
        certificate: or its bytes. The objective it names (weights, loss, what was fixed or bounded) is taken from it,
            and what was fixed or bounded is said with each claim that rests on it.
        model: needed where the certificate's is none of ours, which its name cannot bring back.
        weights: needed where the calibration was given weights of its own: by id, or in the order of the quotes.

    Raises:
        Nothing for what the certificate or the quotes hold: what cannot be checked does not hold, with the reason.
    """
    if not isinstance(retained, Quotes):
        found = f"Quotes are needed to verify against; got {type(retained).__name__}."
        return Verification((Check("BYTES", False, found),))
    if not isinstance(certificate, Certificate | bytes):
        found = f"A certificate or the bytes of one are needed; got {type(certificate).__name__}."
        return Verification((Check("BYTES", False, found),))
    try:  # through its bytes, whatever it came as: what cannot be written was never issued
        certificate = Certificate.from_bytes(certificate if isinstance(certificate, bytes) else certificate.to_bytes())
    except FAILURES as error:
        return Verification((Check("BYTES", False, _sentence(error)),))
    try:
        case = _Case(certificate, retained, model, weights)
    except FAILURES as error:
        return Verification((Check("OBJECTIVE", False, _sentence(error)),))
    checks = [
        _judged("COUNT", case.count),
        *(
            _judged(claim.name, check) if certificate.claims[claim.name]["claimed"] else _unclaimed(certificate, claim)
            for claim, check in (
                (Claim.STATE, case.state),
                (Claim.STEP, case.step),
                (Claim.OPTIMUM, case.optimum),
                (Claim.NEVER_SEEN, case.never_seen),
            )
        ),
    ]
    return Verification(tuple(checks))


class _Case:
    """A certificate beside the quotes it is checked against."""

    def __init__(
        self, certificate: Certificate, retained: Quotes, model: Model | None, weights: Weighting | None
    ) -> None:
        self.certificate, self.how = certificate, certificate.objective
        # A forward that came with the quotes might still know one that is gone; what is left of its slice does not.
        self.book = refitted(retained, is_derived(retained))
        self.select = cast(Choice, self.how.get("select", "all"))
        self.retained = chosen(self.book, self.select)
        self.asked = _model(certificate, self.retained, model)
        suited = getattr(self.asked, "suited", None)
        self.model = self.asked if suited is None else suited(self.retained.contracts)
        if self.model.name != certificate.model:
            raise UsageError(f"The certificate is of the model {certificate.model!r}; this is {self.model.name!r}.")
        if tuple(sorted(certificate.parameters)) != tuple(sorted(self.model.parameters.names)):
            raise UsageError(f"The certificate names other parameters than {', '.join(self.model.parameters.names)}.")
        self.names = self.model.parameters.names
        self.theta = [float.fromhex(certificate.parameters[name]) for name in self.names]
        self.residual = cast(Residual, self.how["residual"])
        self.weights = weights_for(self.retained, self.book, _weights(self.how, weights))
        self.fixed = _numbers(self.how["fixed"] or {})
        self.bounds = {
            name: (float.fromhex(low), float.fromhex(high)) for name, (low, high) in (self.how["bounds"] or {}).items()
        }

    def count(self) -> tuple[bool, str]:
        counts = self.certificate.counts
        objective, _ = objective_of(self.retained, residual=self.residual, weights=self.weights)
        if counts["before"] - counts["forgotten"] != counts["retained"]:
            return False, f"{counts['before']} less {counts['forgotten']} is not {counts['retained']}."
        here = len(objective) if self.select == "all" else len(self.book)
        if here != counts["retained"]:
            return False, f"The certificate is of {counts['retained']:,} retained quotes; here are {here:,}."
        return True, f"{counts['retained']:,} quotes are retained."

    def state(self) -> tuple[bool, str]:
        claimed = self.certificate.state["digest"]
        rebuilt = self._moments() if self.certificate.state["kind"] == "moments" else self._audit()
        found = rebuilt.digest()
        same = found == claimed
        return same, (
            f"Rebuilt from the quotes, the state is {found[:12]}."
            if same
            else f"Rebuilt from the quotes, the state is {found[:12]}; the certificate has {str(claimed)[:12]}. It was "
            "made from other quotes, or something of the forgotten ones is still in it."
        )

    def step(self) -> tuple[bool, str]:
        claim = self.certificate.claims["STEP"]
        reference = _numbers(self.certificate.state["reference"])
        free = [self.names.index(name) for name in claim["free"]]
        found = [reference[name] for name in self.names]
        for i, change in zip(free, self._audit().step(ridge=claim["ridge"], free=free), strict=True):
            found[i] += change
        return self._compared(found, "one step from the reference on these quotes gives")

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
        variance = system.cost / (system.count - len(free))
        if not isinstance(loss, Squared):
            difference, _ = rows(objective, self.model, np.array(self.theta))
            variance = noise_variance(loss, objective.root_weight * difference, len(free))
        lost = self._unidentified(H, free, variance)
        if lost:
            return False, f"The quotes do not determine {', '.join(lost)}."
        for name in self.how["on_bound"]:
            i, lower = self.names.index(name), self.bounds[name][0]
            pull = system.rows[-1][i]
            if pull > 0.0 if self.theta[i] == lower else pull < 0.0:
                return False, f"{name} is on its bound {self.theta[i]:g}, and the quotes pull it back inside."
        # Parameter by parameter, as tolerances are asked for; the joint length can be many times that.
        apart = max(map(abs, next_step(system, free=free, variance=variance)), default=0.0)
        moved = f"The next step moves no parameter by more than {apart:.3g} standard errors"
        if apart <= tolerance or length(H, [system.rows[-1][i] for i in free]) <= JITTER * objective.magnitude:
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
        here = build_of()
        if not same and here != self.certificate.build:
            sentence += f" The builds differ: {_listed(self.certificate.build)} there, {_listed(here)} here."
        return same, sentence

    def _calibrated(self, source: Any, weighting: dict[str, Any]) -> Calibration:
        starts = self.how["starts"]
        asked: dict[str, Any] = {
            "bounds": self.bounds or None,
            "fixed": self.fixed or None,
            "feller": self.how["feller"],
            "starts": starts
            if isinstance(starts, int)
            else _numbers(starts)
            if isinstance(starts, Mapping)
            else [_numbers(start) for start in starts],
        }
        if isinstance(source, Quotes):
            asked |= {"residual": self.residual, "loss": self.how["loss"]}
        return calibrate(source, self.asked, **asked, **weighting)

    def _moments(self) -> Moments:
        """On the basis the certificate names, as in "chebyshev/scattered-32x12-1"."""
        _, expiries, nodes = self.certificate.state["basis"].replace("/", "-").split("-")[:3]
        sizes_of = dict(zip(("nodes", "expiry_nodes"), map(int, nodes.split("x")), strict=False))
        return moments_of(self.retained, weights=self.weights, basis=Basis(expiries, **sizes_of))

    def _audit(self) -> Any:
        reference = self.certificate.state.get("reference")
        at = self.model.parameters.starts[0] if reference is None else _numbers(reference)
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
        space = self.model.parameters
        for name, value, low, high in zip(self.names, self.theta, space.lower, space.upper, strict=True):
            least, most = self.bounds.get(name, (float(low), float(high)))
            if not least <= value <= most:
                return f"{name} is {value:g}, outside its bounds [{least:g}, {most:g}]."
            if name in self.how["on_bound"] and (name not in self.bounds or value not in (least, most)):
                return f"{name} is said to end on a bound that was asked for, and {value:g} is none."
            if name in self.fixed and value != self.fixed[name]:
                return f"{name} was fixed at {self.fixed[name]:g}, and is {value:g}."
        return None

    def _unidentified(self, H: list[list[float]], free: list[int], variance: float) -> list[str]:
        unscaled, size = inverse(H), sizes(self.model.parameters, self.theta)
        most = getattr(self.model, "inflation", INFLATION)
        return [
            self.names[i]
            for n, i in enumerate(free)
            if not unscaled[n][n] * H[n][n] < most or not sqrt(variance * unscaled[n][n]) <= FREE * size[i]
        ]


def _judged(name: str, check: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(name, *check())
    except FAILURES as error:
        return Check(name, False, f"It cannot be checked: {_sentence(error)}")


def _unclaimed(certificate: Certificate, claim: Claim) -> Check:
    return Check(claim.name, None, certificate.claims[claim.name]["support"])


def _model(certificate: Certificate, retained: Quotes, model: Model | None) -> Model:
    """The model given, or Heston as the name tells it: in the form that suits the quotes, where that is the name's."""
    if model is not None:
        return model
    kind, _, form = certificate.model.partition("/")
    parts = form.split("-")
    if kind != "heston" or len(parts) != 3 or parts[0] not in ("native", "numpy"):
        raise UsageError(f"The certificate's model {certificate.model!r} is none of ours: give it with model=.")
    kernel = cast(Any, parts[0])
    free = Heston(kernel=kernel)
    return free if free.suited(retained.contracts).name == certificate.model else Heston(kernel, cast(Any, parts[1]))


def _weights(how: Mapping[str, Any], given: Weighting | None) -> Weighting:
    if how["weights"] != "own":
        return cast(Weighting, how["weights"])
    if given is None:
        raise UsageError("The calibration was given weights of its own: give them again with weights=, by id.")
    return given


def _numbers(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: float.fromhex(text) for name, text in texts.items()}


def _listed(build: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(build.items()))


def _sentence(error: BaseException) -> str:
    return error.sentence if isinstance(error, StrikeoutError) else f"{type(error).__name__}: {error}"
