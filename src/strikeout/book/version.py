"""A calibration as a book stores it: the results with all their bits, the options, and the digest of its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, isnan, nan
from typing import Any, cast

from strikeout.assurance.build import build_of
from strikeout.book.spec import CalibrationSpec, FitSource
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.latent_test import LatentTest, one_value
from strikeout.calibration.panels import AUTO, LABEL, counted_groups, panel_choice
from strikeout.calibration.panels import latent_of as latent_parameter
from strikeout.calibration.standard_errors import Basis, StandardErrors
from strikeout.errors import RefusedError, UsageError


@dataclass(frozen=True)
class Version:
    """One calibration of the book. Earlier versions stay, as results, until quotes they included are erased: for a
    reason about the data the whole version is removed, for another the digest of its state, its latent path and the
    error of its source (see ``erasure``).

    ``latent`` is the path of a panel: value and standard error by the text of the group.
    """

    entry: int  # of the ledger
    model: str
    options: Mapping[str, Any]
    parameters: Mapping[str, float]
    standard_errors: Mapping[str, float]
    rmse: float
    count: int
    converged: bool
    termination: str
    state: str | None  # digest of the state; None if a quote is too large for one, or once it was erased
    build: Mapping[str, str]
    errors: Mapping[str, Any]  # in the unit that was asked for, and its basis
    latent: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    kind: Mapping[str, Any] | None = None  # for several dates: see ``kind_of``
    step: Mapping[str, Any] | None = None  # of one step: the entry of its reference, and the tolerance

    @staticmethod
    def of(
        calibration: Calibration,
        *,
        entry: int,
        source: FitSource,
        perturb: float = 0.0,
        is_of_dates: bool = False,
    ) -> Version:
        """Return what is stored of a calibration.

        Args:
            source: whether it was made from quotes or from moments, and why.
            is_of_dates: whether the quotes behind moments have several dates, which moments do not record.
            perturb: the share of noise on footprints, whenever the book stores some.
        """
        options = CalibrationSpec.of(calibration).to_plain()
        options |= {"source": source.to_plain()}
        options |= {"perturb": float(perturb).hex()} if perturb else {}
        return Version(
            entry=entry,
            model=calibration.model.name,
            options=options,
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
            errors=errors_of(calibration.errors),
        )

    @property
    def printed_errors(self) -> dict[str, float]:
        """Standard errors in the unit that was asked for."""
        return {name: nan if text is None else float.fromhex(text) for name, text in self.errors["values"]}

    @property
    def errors_sentence(self) -> str:
        """What the standard errors take to be independent."""
        return Basis.from_plain(self.errors["basis"]).sentence

    @property
    def fit_source(self) -> FitSource:
        """Whether it was calibrated from quotes or from moments, and why."""
        return FitSource.of(self.options)

    @property
    def state_of(self) -> str | None:
        """What the digest in ``state`` is of, in words; None if there is none.

        For one step too it is the state of a fresh calibration, not the one the step was solved from: that is at
        another reference, and its digest is in the certificate of the step.
        """
        if self.state is None:
            return None
        if self.options["through"] == "moments":
            return "the moments of the quotes"
        by = "" if self.panel is None else f" by {self.panel}"
        return f"the quotes{by} at the model's first start"

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON; numbers as ``float.hex`` writes them."""
        plain = {
            "entry": self.entry,
            "model": self.model,
            "options": dict(self.options),
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
            "errors": dict(self.errors),
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
            "errors": {"standard_errors": _finite(self.printed_errors), "sentence": self.errors_sentence},
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
        """Return the path of a panel for JSON: group, value and standard error."""
        return [[g, value.hex(), None if isnan(error) else error.hex()] for g, (value, error) in self.latent.items()]

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Version:
        """Return what ``to_plain`` wrote."""
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
        return None if self.kind is None else cast("str | None", self.kind["label"])

    @property
    def described_model(self) -> str:
        """The model, and whether its latent parameter has one value per group: what two versions may differ in."""
        model = self.model.partition("/")[0]
        return model if self.panel is None else f"{model} and a latent parameter for every {self.panel}"

    def latent_facts(self, *, one_value: str) -> list[tuple[str, str]]:
        """Return whether the latent parameter has one value per date, why, and the cost of another choice; by its name.

        Args:
            one_value: how the reader asks for a plain calibration.
        """
        kind = self.kind
        if kind is None:
            return []
        name, is_default = kind["latent"], self.options.get("panel") == AUTO
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
        groups = len(self.latent) if self.kind is None else self.kind["groups"]
        return f"one for each of {counted_groups(groups, self.panel or LABEL)}"

    def numbers(self) -> tuple[float, ...]:
        """Return every finite number that was computed: parameters, standard errors, RMSE, latent path."""
        path = [number for pair in self.latent.values() for number in pair]
        errors = (*self.standard_errors.values(), *self.printed_errors.values())
        found = (*self.parameters.values(), *errors, self.rmse, *path)
        return tuple(number for number in found if isfinite(number))

    def without_state(self) -> Version:
        """Return the results alone, which are about the whole book."""
        return replace(self.without_error(), state=None, latent={})

    def without_error(self) -> Version:
        """Return the version without the error of moments, which was measured on every quote."""
        return replace(self, options={**self.options, "source": self.fit_source.unmeasured().to_plain()})

    @property
    def tolerance(self) -> float | None:
        """The standard errors within which one step was certified; None of a calibration."""
        return None if self.step is None else float.fromhex(self.step["tolerance"])

    def agrees(self, calibration: Calibration) -> bool:
        """Return whether a calibration has these parameters, this path and this state, bit for bit.

        For one step only the state is compared, and only if the model has the same form: for fewer quotes another form
        may be chosen, which a step does not do.
        """
        if self.step is not None:
            return self.model != calibration.model.name or self.state == state_of(calibration)
        path = {group: value for group, (value, _) in self.latent.items()}
        same = dict(self.parameters) == calibration.parameters and self.state == state_of(calibration)
        return same and path == {group: value for group, (value, _) in latent_of(calibration).items()}


def perturbed(options: Mapping[str, Any]) -> float:
    """Return the share of noise on footprints in the options of a calibration."""
    return float.fromhex(options.get("perturb", "0x0p+0"))


def kind_of(calibration: Calibration) -> dict[str, Any] | None:
    """Return the decision for several dates: label and latent parameter of a panel and the cost of one value; for a
    plain calibration that might have been a panel, the reason; None if there was nothing to decide."""
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
    """Return the decision for moments of quotes of several dates; None if the quotes could not form a panel either.

    The number of dates is left out: to count them is to read every quote.
    """
    try:
        name = latent_parameter(calibration.asked)
    except UsageError:
        return None
    if calibration.settings.panel != AUTO or name in (calibration.settings.fixed or {}):
        return None
    remedy = "calibrate it again" if source.asked == "auto" else "calibrate it through quotes"
    return {"label": None, "latent": name, "why": f"moments do not record dates; {remedy} for one per date"}


def errors_of(found: StandardErrors) -> dict[str, Any]:
    """Return standard errors and their basis for JSON."""
    values = [[name, None if isnan(value) else value.hex()] for name, value in found.standard_errors.items()]
    return {"basis": found.basis.to_plain(), "values": values}


def latent_of(calibration: Calibration) -> dict[str, tuple[float, float]]:
    """Return the path of a panel by the text of the group, with standard errors; empty for a plain calibration."""
    if calibration.panel is None:
        return {}
    errors = calibration.latent_standard_errors
    return {str(group): (value, errors[group]) for group, value in calibration.latent.items()}


def state_of(calibration: Calibration) -> str | None:
    """Return the digest of the state of a calibration; None if a quote is too large for one."""
    try:
        digest: str = calibration.state.digest()
    except RefusedError:
        return None
    return digest


def _described_path(version: Version) -> dict[str, Any]:
    """Return the latent parameters of a panel by group, and their standard errors; empty for a plain calibration."""
    if not version.latent:
        return {}
    values = {group: value for group, (value, _) in version.latent.items()}
    errors = _finite({group: error for group, (_, error) in version.latent.items()})
    return {"latent": values, "latent_standard_errors": errors}


def _described_kind(version: Version) -> dict[str, Any] | None:
    """Return what was asked and decided about a panel; None if there was nothing to decide."""
    if version.kind is None:
        return None
    asked, kind = version.options.get("panel"), dict(version.kind)
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
