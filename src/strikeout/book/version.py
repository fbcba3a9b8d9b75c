"""A calibration as a book keeps it: the results with all their bits, how it was asked for, and what it knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, isnan, nan
from typing import Any, cast

from strikeout.assurance.build import build_of
from strikeout.book.fit_source import FitSource
from strikeout.book.spec import Asking
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.latent_test import LatentTest, one_value
from strikeout.calibration.panels import AUTO, LABEL, counted_groups, panel_choice
from strikeout.calibration.panels import latent_of as latent_parameter
from strikeout.errors import RefusedError, UsageError


@dataclass(frozen=True)
class Version:
    """One calibration of the book. Old versions stay, as results, until quotes they knew are erased: for a reason that
    is about the data the whole version goes, for another the digest of its state, its latent path and the error of its
    source (see ``erasing``).

    ``latent`` is the path of a panel: value and standard error by the text of the group.
    """

    entry: int  # of the ledger, with which it came
    model: str
    asking: Mapping[str, Any]
    parameters: Mapping[str, float]
    standard_errors: Mapping[str, float]
    rmse: float
    count: int
    converged: bool
    termination: str
    state: str | None  # digest of the state; None where a quote is too large for one, or once it was erased
    build: Mapping[str, str]
    latent: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    kind: Mapping[str, Any] | None = None  # of a book of several dates: see ``kind_of``
    step: Mapping[str, Any] | None = None  # of one step: the entry of its reference, and the tolerance it was taken to

    @staticmethod
    def of(
        calibration: Calibration,
        *,
        entry: int,
        source: FitSource,
        perturb: float = 0.0,
        is_of_dates: bool = False,
    ) -> Version:
        """What is kept of a calibration.

        Args:
            source: whether it was made from quotes or from moments, and why.
            is_of_dates: whether the quotes behind moments are of several dates, which these cannot tell.
            perturb: the share of noise that was asked for, on footprints of the book whenever it keeps some.

        Raises:
            UsageError: its model or weights cannot be kept.
        """
        asking = Asking.of(calibration).to_plain()
        asking |= {"source": source.to_plain()}
        asking |= {"perturb": float(perturb).hex()} if perturb else {}
        return Version(
            entry=entry,
            model=calibration.model.name,
            asking=asking,
            parameters=dict(calibration.parameters),
            standard_errors=dict(calibration.standard_errors),
            rmse=calibration.rmse,
            count=calibration.count,
            converged=calibration.converged,
            termination=str(calibration.termination),
            state=state_of(calibration),
            build=build_of(calibration.model.name),
            latent=latent_of(calibration),
            kind=of_moments(calibration, source) if is_of_dates else kind_of(calibration),
        )

    @property
    def fit_source(self) -> FitSource:
        """Whether it was calibrated from quotes or from moments, and why."""
        return FitSource.of(self.asking)

    @property
    def state_of(self) -> str | None:
        """What the digest in ``state`` is of, in words; None where there is none.

        Of one step too it is the state a fresh calibration would have, and not the one the step was solved from: that
        is taken at another reference, and its digest is in the certificate of the step.
        """
        if self.state is None:
            return None
        if self.asking["through"] == "moments":
            return "the moments of the quotes"
        by = "" if self.panel is None else f" by {self.panel}"
        return f"the quotes{by} at the model's first start"

    @property
    def perturb(self) -> float:
        """The share of noise on footprints of the book, whether it keeps some just now or not."""
        return perturbed(self.asking)

    def to_plain(self) -> dict[str, Any]:
        """For JSON; numbers as ``float.hex`` writes them."""
        plain = {
            "entry": self.entry,
            "model": self.model,
            "asking": dict(self.asking),
            "parameters": [[name, value.hex()] for name, value in self.parameters.items()],  # in the model's order
            "standard_errors": [
                [name, None if isnan(value) else value.hex()] for name, value in self.standard_errors.items()
            ],
            "rmse": self.rmse.hex(),
            "count": self.count,
            "converged": self.converged,
            "termination": self.termination,
            "state": self.state,
            "build": dict(self.build),
        }
        plain |= {} if self.kind is None else {"kind": dict(self.kind)}
        plain |= {} if self.step is None else {"step": dict(self.step)}
        return {**plain, "latent": self.plain_latent()} if self.latent else plain

    def to_dict(self) -> dict[str, Any]:
        """Return everything in it as plain values for JSON; a number that does not exist is None.

        The results are first. ``state_of`` names what the digest in ``state`` is of, ``fitted_from`` what it was
        calibrated from, ``tolerance`` how close to the optimum one step was certified, ``panel`` what was decided.
        """
        return {
            "model": self.model,
            "parameters": dict(self.parameters),
            "standard_errors": _finite(self.standard_errors),
            "rmse": self.rmse,
            "count": self.count,
            "converged": self.converged,
            "termination": self.termination,
            "state": self.state,
            "state_of": self.state_of,
            "fitted_from": _described_source(self),
            "tolerance": self.tolerance,
            **_described_path(self),
            "panel": _described_kind(self),
        }

    def plain_latent(self) -> list[list[str | None]]:
        """The path of a panel for JSON: group, value and standard error."""
        return [[g, value.hex(), None if isnan(error) else error.hex()] for g, (value, error) in self.latent.items()]

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Version:
        """What ``to_plain`` wrote."""
        return Version(
            **{
                **plain,
                "parameters": {name: float.fromhex(text) for name, text in plain["parameters"]},
                "standard_errors": {
                    name: nan if text is None else float.fromhex(text) for name, text in plain["standard_errors"]
                },
                "rmse": float.fromhex(plain["rmse"]),
                "latent": {
                    group: (float.fromhex(value), nan if error is None else float.fromhex(error))
                    for group, value, error in plain.get("latent", ())
                },
            }
        )

    @property
    def panel(self) -> str | None:
        """The label of a panel; None of a plain calibration."""
        if self.kind is not None:
            return cast("str | None", self.kind["label"])
        return str(self.asking["panel"]) if self.latent else None  # as older versions kept it

    @property
    def asked_in_words(self) -> str:
        """The model, and whether its latent parameter has a value a group: what two versions may differ in."""
        model = self.model.partition("/")[0]
        return model if self.panel is None else f"{model} and a latent parameter for every {self.panel}"

    def latent_facts(self, *, one_value: str) -> list[tuple[str, str]]:
        """Whether the latent parameter has a value a date, why, and what another choice would mean; by its name.

        Args:
            one_value: how a plain calibration is asked for where this is read.
        """
        kind = self.kind
        if kind is None:
            return [("latent", f"{self._span()}{self.each}")] if self.latent else []
        name, is_default = kind["latent"], self.asking.get("panel") == AUTO
        if kind["label"] is None:
            dates = counted_groups(kind["groups"], LABEL) if "groups" in kind else "several dates"
            return [(name, f"one value for {dates}: {kind['why']}")]
        why = f" (the default for several quote dates; {one_value} for one value)" if is_default else ""
        facts = [(name, f"{self._span()}{self.each}{why}")]
        if "factor" in kind:
            cost = LatentTest(name, kind["groups"], float.fromhex(kind["ratio"]), float.fromhex(kind["factor"]))
            facts.append(("", cost.cost()))
        return facts

    def _span(self) -> str:
        values = [value for value, _ in self.latent.values()]
        return f"{min(values):.6g} to {max(values):.6g}, " if values else ""

    @property
    def each(self) -> str:
        """For how many groups a panel has a latent parameter, in words."""
        count = len(self.latent) if self.kind is None else self.kind["groups"]
        return f"one for each of {counted_groups(count, self.panel or LABEL)}"

    def numbers(self) -> tuple[float, ...]:
        """Every number that was computed: parameters, standard errors, RMSE, latent path; those that are finite."""
        path = [number for pair in self.latent.values() for number in pair]
        found = (*self.parameters.values(), *self.standard_errors.values(), self.rmse, *path)
        return tuple(number for number in found if isfinite(number))

    def without_state(self) -> Version:
        """The results alone, which are about the whole book."""
        return replace(self.without_error(), state=None, latent={})

    def without_error(self) -> Version:
        """Without how far moments were from the quotes, which was measured with every one of these."""
        return replace(self, asking={**self.asking, "source": self.fit_source.unmeasured().to_plain()})

    @property
    def tolerance(self) -> float | None:
        """Standard errors within which one step was certified; None of a calibration, which is the optimum itself."""
        return None if self.step is None else float.fromhex(self.step["tolerance"])

    def agrees(self, calibration: Calibration) -> bool:
        """Whether a calibration has these parameters, this path and this state, bit for bit.

        Of one step only the state, and that only where the model has the same form: with fewer quotes it may suit them
        in another, which a step does not look for.
        """
        if self.step is not None:
            return self.model != calibration.model.name or self.state == state_of(calibration)
        path = {group: value for group, (value, _) in self.latent.items()}
        same = dict(self.parameters) == calibration.parameters and self.state == state_of(calibration)
        return same and path == {group: value for group, (value, _) in latent_of(calibration).items()}


def perturbed(asking: Mapping[str, Any]) -> float:
    """The share of noise on footprints that a calibration was asked for with."""
    return float.fromhex(asking.get("perturb", "0x0p+0"))


def kind_of(calibration: Calibration) -> dict[str, Any] | None:
    """What was decided where there are several dates: the label and the latent parameter of a panel, and what one
    value would cost it; of a plain calibration that might have been one, why it is not."""
    if calibration.is_panel:
        found = one_value(calibration)
        decided = {"label": calibration.panel, "latent": calibration.latent_name, "groups": len(calibration.latent)}
        return decided if found is None else {**decided, "ratio": found.ratio.hex(), "factor": found.factor.hex()}
    if calibration.settings.panel != AUTO or calibration.moments is not None:
        return None
    choice = panel_choice(calibration.book.labels.get(LABEL), calibration.asked, calibration.settings)
    if not choice.why:
        return None
    return {"label": None, "latent": latent_parameter(calibration.asked), "groups": choice.dates, "why": choice.why}


def of_moments(calibration: Calibration, source: FitSource) -> dict[str, Any] | None:
    """As ``kind_of``, of a calibration made from the moments of quotes of several dates; None where it could be no
    panel from its quotes either. How many dates there are is not said: to count them is to read every quote."""
    try:
        name = latent_parameter(calibration.asked)
    except UsageError:
        return None
    if calibration.settings.panel != AUTO or name in (calibration.settings.fixed or {}):
        return None
    remedy = "calibrate it again" if source.asked == "auto" else "calibrate it through quotes"
    return {"label": None, "latent": name, "why": f"moments know no dates; {remedy} for one a date"}


def latent_of(calibration: Calibration) -> dict[str, tuple[float, float]]:
    """The path of a panel by the text of the group, with standard errors; empty for a plain calibration."""
    if calibration.panel is None:
        return {}
    errors = calibration.latent_standard_errors
    return {str(group): (value, errors[group]) for group, value in calibration.latent.items()}


def state_of(calibration: Calibration) -> str | None:
    """The digest of what a calibration knows of its quotes; None where a quote is too large to have one."""
    try:
        digest: str = calibration.state.digest()
    except RefusedError:
        return None
    return digest


def _described_path(version: Version) -> dict[str, Any]:
    """The latent parameters of a panel by group, and their standard errors; nothing of a plain calibration."""
    if not version.latent:
        return {}
    values = {group: value for group, (value, _) in version.latent.items()}
    errors = _finite({group: error for group, (_, error) in version.latent.items()})
    return {"latent": values, "latent_standard_errors": errors}


def _described_kind(version: Version) -> dict[str, Any] | None:
    """Of a book of several dates, what was asked and decided of a panel; None where there was nothing to decide."""
    if version.kind is None:
        return None
    asked, kind = version.asking.get("panel"), dict(version.kind)
    known = _finite({name: float.fromhex(kind.pop(name)) for name in ("ratio", "factor") if name in kind})
    cost = {"one_value": {"misfit_times": known["factor"], "gain_over_noise": known["ratio"]}} if known else {}
    return {"asked": asked, **kind, **cost}


def _described_source(version: Version) -> dict[str, Any]:
    """Return whether a book was calibrated from quotes or moments, and why."""
    source = version.fit_source
    how = {"through": source.through, "asked": source.asked, "reason": source.reason.value, "count": source.count}
    measured = None if source.error is None else source.entry
    return {**how, "error": source.error, "measured": measured, "sentence": source.sentence}


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if isfinite(value) else None for name, value in numbers.items()}
