"""Whether a model keeps its promises, in sentences its author can act on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.models import conformance
from strikeout.models.characteristic import CharacteristicModel
from strikeout.models.model import Model, ParameterSpace
from strikeout.quotes.contracts import Contracts, Features
from strikeout.text import as_lines

POINTS = 12  # inside the bounds, beside the starts


@dataclass(frozen=True)
class Finding:
    """One promise, whether it is kept, and a sentence with the evidence."""

    promise: str
    holds: bool
    sentence: str

    def __str__(self) -> str:
        return f"{'kept  ' if self.holds else 'BROKEN'}  {self.promise}: {self.sentence}"


@dataclass(frozen=True)
class ModelCheck:
    """What ``check_model`` found. ``holds`` where every promise is kept."""

    model: str
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The promises that are not kept."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def summary(self) -> str:
        """Return the verdict, then one line a promise."""
        verdict = "keeps every promise" if self.holds else f"breaks {len(self.broken)} of {len(self.findings)} promises"
        return as_lines([f"{self.model} {verdict}.", *map(str, self.findings)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        findings = [{"promise": f.promise, "holds": f.holds, "sentence": f.sentence} for f in self.findings]
        return {"model": self.model, "holds": self.holds, "findings": findings}

    def __str__(self) -> str:
        return self.summary()


def check_model(model: Model, contracts: Contracts | Features | None = None, *, points: int = POINTS) -> ModelCheck:
    """Holds a model to what calibration and forgetting rely on; raises nothing for what the model does.

    Shapes, bounds and starts, the same bits from the same call, rows that do not look at each other, numbers inside the
    bounds, derivatives against differences, for option contracts the bounds of no arbitrage and put-call parity, for a
    characteristic function whether a finer and longer line gives the same prices.

    Args:
        contracts: to price; 36 calls and puts from a week to three years where not given. A model of named columns
            needs rows of its own, as ``quotes.contracts`` of a book has them.
        points: how many places inside the bounds are tried, beside the starts.

    Raises:
        UsageError: what is given is not a model, or a model of named columns comes without rows.

    >>> from strikeout.models.heston import Heston
    >>> check_model(Heston()).holds
    True
    """
    if isinstance(model, type) or not isinstance(getattr(model, "parameters", None), ParameterSpace):
        raise UsageError(f"check_model takes a model, such as Heston(); got {model!r}.")
    if contracts is None:
        if hasattr(model, "features"):
            raise UsageError(f"{model.name} takes named columns: give rows to check it on, as quotes.contracts.")
        contracts = _usual()
    if not len(contracts):
        raise UsageError("check_model: no rows to check the model on. Give at least one.")
    found = [_asked("bounds and starts", lambda: conformance.space(model))]
    if not found[0].holds:
        return ModelCheck(model.name, tuple(found))
    try:
        suited = getattr(model, "suited", None)
        model = model if suited is None else suited(contracts)
    except conformance.FAILURES as error:  # a user's model may refuse rows that it would mix
        return ModelCheck(model.name, (*found, Finding("suited to these rows", False, str(error))))
    theta, rows = np.array(model.parameters.starts[0], float), contracts
    tests: list[tuple[str, Callable[[], str | None]]] = [
        ("shapes", lambda: conformance.shapes(model, theta, rows)),
        ("determinism", lambda: conformance.determinism(model, theta, rows)),
        ("one price", lambda: conformance.one_price(model, theta, rows)),
        ("row independence", lambda: conformance.row_independence(model, theta, rows)),
        ("gradient", lambda: _every_start(model, lambda start: conformance.gradient(model, start, rows))),
    ]
    if isinstance(contracts, Contracts):
        options = contracts
        tests.append(
            ("no arbitrage", lambda: _every_start(model, lambda start: conformance.no_arbitrage(model, start, options)))
        )
        if isinstance(model, CharacteristicModel):
            of_function, places = model, np.vstack([model.parameters.starts, conformance.inside_points(model, points)])
            tests.append(("inversion", lambda: conformance.inversion(of_function, places, options)))
    shape = _asked(*tests[0])
    found.append(shape)
    if shape.holds:
        found += [_asked(name, test) for name, test in tests[1:]]
        found.append(Finding("finite", *conformance.finite(model, conformance.inside_points(model, points), rows)))
    return ModelCheck(model.name, tuple(found))


KEPT = {
    "bounds and starts": "every start lies inside the bounds.",
    "shapes": "one price per row, one derivative per row and parameter.",
    "determinism": "the same call gives the same bits.",
    "one price": "price and linearize agree to the bit.",
    "row independence": "a row gives the same bits alone, among others and in any order.",
    "gradient": "derivatives agree with differences of prices at every start.",
    "no arbitrage": "prices keep to their bounds, calls and puts to parity.",
    "inversion": "a finer and longer line gives the same prices.",
}


def _asked(promise: str, test: Callable[[], str | None]) -> Finding:
    try:
        wrong = test()
    except conformance.FAILURES as error:
        wrong = f"it cannot be checked: {type(error).__name__}: {error}"
    return Finding(promise, wrong is None, KEPT[promise] if wrong is None else wrong)


def _every_start(model: Model, test: Callable[[Any], str | None]) -> str | None:
    found = (test(np.array(start, float)) for start in model.parameters.starts)
    return next((wrong for wrong in found if wrong is not None), None)


def _usual() -> Contracts:
    strikes = np.array([60.0, 80.0, 90.0, 97.0, 100.0, 103.0, 110.0, 125.0, 150.0])
    years = np.array([1.0 / 52.0, 0.25, 1.0, 3.0])
    expiry = np.repeat(years, len(strikes))
    return Contracts(
        forward=100.0 * elementary.exp(0.01 * expiry),
        strike=np.tile(strikes, len(years)),
        expiry=expiry,
        discount=elementary.exp(-0.02 * expiry),
        is_call=np.arange(len(expiry)) % 2 == 0,
    )
