"""A certificate beside the retained quotes it is checked against: every claim computed again from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

from strikeout.assurance.audit import audited
from strikeout.assurance.build import ROUNDING, build_of, difference
from strikeout.assurance.certificate import Certificate, Claim
from strikeout.assurance.optimality import Optimality, optimality
from strikeout.calibration.calibrate import LOSSES, calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.choosing import Choice, chosen, weights_for
from strikeout.calibration.settings import STARTS, Settings
from strikeout.errors import StrikeoutError, UsageError
from strikeout.models.heston import Heston
from strikeout.models.model import Model, ParameterSpace
from strikeout.models.named import recognised
from strikeout.quotes.forwards import is_derived, refitted
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.basis import Basis
from strikeout.statistics.linearize import linearize
from strikeout.statistics.losses import Huber
from strikeout.statistics.moments import Moments, moments_of
from strikeout.statistics.objective import Objective, Residual, objective_of
from strikeout.statistics.weights import Weighting
from strikeout.wording import agreeing, many

FARTHEST = 1.0  # standard errors: parameters farther from an optimum are not called one, whatever a certificate claims
NEARLY = 1e-3  # standard errors: parameters that are nearer to each other differ as builds that round differently do
DEFAULT = Settings()

Found = tuple[bool, str]


class Case:
    """A certificate beside the quotes it is checked against."""

    def __init__(
        self, certificate: Certificate, retained: Quotes, model: Model | None, weights: Weighting | None
    ) -> None:
        self.certificate, self.how = certificate, certificate.objective
        # A forward that came with the quotes might still know one that is gone; what is left of its slice does not.
        self.book = refitted(retained, is_derived(retained))
        self.select = cast(Choice, self.how["select"])
        self.retained = chosen(self.book, self.select)
        contracts = self._contracts()
        self.asked = model_of(certificate, contracts, model)
        suited = getattr(self.asked, "suited", None)
        self.model: Model = self.asked if suited is None else suited(contracts)
        if self.model.name != certificate.model:
            raise UsageError(f"The certificate is of the model {certificate.model!r}; this is {self.model.name!r}.")
        self.space = self._space()
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
            self._refuse_what_is_no_question()

    def _contracts(self) -> Any:
        """What the form of the model is chosen by."""
        return self.retained.contracts

    def _space(self) -> ParameterSpace:
        """The parameters that the certificate names."""
        return self.model.parameters

    def _refuse_what_is_no_question(self) -> None:
        """Raise UsageError if nothing is left for the quotes to determine, or the objective names what is not there."""
        if sorted(self.certificate.parameters) != sorted(self.names):
            raise UsageError(f"The certificate names other parameters than {', '.join(self.names)}.")
        for what, named in (("fixes", self.fixed), ("bounds", self.bounds), ("holds on a bound", self.on_bound)):
            odd = sorted(named.keys() - set(self.model.parameters.names))
            if odd:
                raise UsageError(f"The certificate {what} {', '.join(odd)}, which is no parameter of the model.")
        if not set(self.names) - self.fixed.keys() - self.on_bound.keys():
            raise UsageError(
                "Every parameter of the certificate is fixed or held on a bound: the quotes determine none of them."
            )

    def count(self) -> Found:
        retained = self.certificate.counts["retained"]
        here = len(self._objective) if self.select == "all" else len(self.book)
        if here != retained:
            return False, f"The certificate is of {retained:,} retained quotes; here are {here:,}."
        return True, f"{many(here, 'quote')} {agreeing(here, 'is', 'are')} retained."

    def state(self) -> Found:
        claimed, found = self.certificate.state, self._rebuilt()
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
        reference = numbers_of(self.certificate.state["reference"])
        found, free = [reference[name] for name in self.names], self._free()
        for i, change in zip(free, self._audit().step(free=free), strict=True):
            found[i] += change
        return self._by_rounding(*self._compared(found, "one step from the reference on these quotes gives"))

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
        same, sentence = self._compared_to(found, how)
        if not same:
            return self._by_build(False, f"{sentence}{self._apart(found)}")
        differs = self._differs(found)
        if differs:
            return False, f"{differs} by calibrating these quotes alone."
        beaten = self._beaten(self._optimality()) if found is not self._own else None
        return (False, beaten) if beaten else (True, sentence)

    def _differs(self, found: Any) -> str | None:
        """What else a calibration of the quotes finds otherwise than the certificate has it; None if nothing."""
        threshold = None if found.threshold is None else found.threshold.hex()
        if self.how["threshold"] != threshold:
            return f"Huber's threshold is {self.how['threshold']} in the certificate, but {threshold}"
        if self.on_bound != dict(found.on_bound):
            return f"On a bound are {_listed(self.on_bound)} in the certificate, but {_listed(found.on_bound)}"
        return None

    def laid_down(self) -> tuple[str, ...]:
        """What the issuer chose and the quotes did not determine, as clauses; nothing of a calibration by default."""
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
            limit is not None and f"large residuals count less (Huber's loss beyond {float.fromhex(limit):g})",
            how.get("feller", False) and "Feller's condition is enforced",
            starts != STARTS and f"the search begins at {many(count, 'start')} {several}",
        )
        return tuple(clause for clause in clauses if clause)

    def stated(self) -> tuple[str, ...]:
        """What the certificate says and no retained quote can confirm, as clauses."""
        c = self.certificate
        builds = difference(c.build, build_of(self.model.name))
        return (
            f"{many(c.counts['forgotten'], 'quote')} forgotten, by {c.operator}, with {c.software}",
            builds.removesuffix(".") or "made by this very build",
        )

    def _rebuilt(self) -> dict[str, Any]:
        """The state of the retained quotes, described as a certificate describes it."""
        if self.certificate.state["kind"] == "moments":
            moments = self._moments()
            return {
                "kind": "moments",
                "digest": moments.digest(),
                "count": len(moments),
                "basis": moments.basis.name,
            }
        audit = self._audit()
        return {
            "kind": "normal equations",
            "digest": audit.digest(),
            "count": audit.count,
            "schema": audit.schema.digest(),
        }

    def _judged(self, found: Optimality, tolerance: float) -> Found:
        if found.spare <= 0:
            left = f"{found.count:,} for {many(found.free, 'free parameter')}"
            return False, f"Too few quotes are left to tell: {left}."
        if found.undetermined:
            return False, f"The quotes do not determine {', '.join(found.undetermined)}."
        if found.pulled:
            return (
                False,
                f"{', '.join(found.pulled)} is said to be held on a bound, and the quotes pull it back inside.",
            )
        moved = f"The next step moves no parameter by more than {found.apart:.3g} standard errors"
        if not found.is_within(tolerance):
            return False, f"{moved}; the certificate claims {tolerance:g}."
        beaten = self._beaten(found)
        return (False, beaten) if beaten else (True, f"{moved}; {tolerance:g} is claimed. Identified.")

    def _beaten(self, found: Optimality) -> str | None:
        """That the model's own starts lead to a valley far below; None where they do not, or lead nowhere."""
        try:
            best = self._cost_of(self._own)
        except StrikeoutError:
            return None
        if not found.is_above(best):
            return None
        return f"From the model's own starts these quotes reach a cost of {best:.4g}; here it is {found.cost:.4g}."

    def _cost_of(self, found: Calibration) -> float:
        """The cost of a calibration in the objective of the certificate."""
        return linearize(self._posed, self.model, [found.parameters[name] for name in self.names]).cost

    @cached_property
    def _objective(self) -> Objective:
        return objective_of(self.retained, residual=self.residual, weights=self.weights)[0]

    @cached_property
    def _posed(self) -> Objective:
        """The objective with the loss of the certificate."""
        limit = self.how.get("threshold")
        return self._objective.with_loss(LOSSES["squared"] if limit is None else Huber(float.fromhex(limit)))

    def _optimality(self) -> Optimality:
        return optimality(
            self._posed, self.model, self.theta, fixed=self.fixed, on_bound=self.on_bound, bounds=self.bounds
        )

    @cached_property
    def _own(self) -> Any:
        """The retained quotes calibrated from the model's own starts."""
        return self._calibrated(STARTS)

    def _starts(self) -> Any:
        starts = self.how["starts"]
        if isinstance(starts, int):
            return starts
        return numbers_of(starts) if isinstance(starts, dict) else [numbers_of(start) for start in starts]

    def _calibrated(self, starts: Any) -> Any:
        asked: dict[str, Any] = {
            "bounds": self.bounds or None,
            "fixed": self.fixed or None,
            "feller": "enforce" if self.how.get("feller") else "warn",
            "starts": starts,
        }
        if self.certificate.claims.get(Claim.NEVER_SEEN.name, {}).get("source") == "moments":
            return calibrate(self._moments(), self.asked, **asked)
        asked |= {"residual": self.residual, "loss": self.how["loss"], "weights": self.weights}
        return calibrate(self.retained, self.asked, **asked, **self._by_group())

    def _by_group(self) -> dict[str, Any]:
        return {}

    def _moments(self) -> Moments:
        """On the basis the certificate names, as in "chebyshev/scattered-32x12-1"."""
        _, expiries, nodes = self.certificate.state["basis"].replace("/", "-").split("-")[:3]
        sizes_of = dict(zip(("nodes", "expiry_nodes"), map(int, nodes.split("x")), strict=False))
        return moments_of(self.retained, weights=self.weights, basis=Basis(expiries, **sizes_of))

    def _audit(self) -> Any:
        reference = self.certificate.state.get("reference")
        at = self.model.parameters.starts[0] if reference is None else numbers_of(reference)
        return audited(self.retained, self.model, at, residual=self.residual, weights=self.weights)

    def _free(self) -> list[int]:
        """Numbers of the parameters that a step moves: all that are not fixed."""
        return [i for i, name in enumerate(self.names) if name not in self.fixed]

    def _compared_to(self, found: Any, how: str) -> Found:
        return self._compared([found.parameters[name] for name in self.names], how)

    def _compared(self, found: list[float], how: str, *, also: str = "") -> Found:
        for name, claimed, value in zip(self.names, self.theta, found, strict=True):
            if value.hex() != claimed.hex():
                return False, f"{name} is {claimed!r} in the certificate, but {how} {value!r}."
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
        """Bits are claimed of one build: where they differ, the reader must know of another one."""
        apart = difference(self.certificate.build, build_of(self.model.name))
        return same, sentence if same or not apart else f"{sentence} {apart}"

    def _by_rounding(self, same: bool, sentence: str) -> Found:
        """A state follows from prices alone, and those from what they are rounded by; no search has a part in it."""
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
                return f"{name} is said to end on a bound that was asked for, and {value:g} is none."
            if name in self.fixed and value != self.fixed[name]:
                return f"{name} was fixed at {self.fixed[name]:g}, and is {value:g}."
        return None


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
    """The weights that a certificate names, or those given where it names none."""
    if how["weights"] != "own":
        return cast(Weighting, how["weights"])
    if given is None:
        raise UsageError("The calibration was given weights of its own: give them again with weights=, by id.")
    return given


def numbers_of(texts: Mapping[str, str]) -> dict[str, float]:
    """Numbers by name, from their hexadecimal texts."""
    return {name: float.fromhex(text) for name, text in texts.items()}


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in values.items()) or "none"
