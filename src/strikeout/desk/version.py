"""A calibration as a book keeps it: the results with all their bits, how it was asked for, and what it knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

from strikeout.assurance.issuing import build_of
from strikeout.calibration.calibration import Calibration
from strikeout.desk.asking import Asking
from strikeout.errors import RefusedError


@dataclass(frozen=True)
class Version:
    """One calibration of the book. Old versions stay, as results; an erasure takes the digest of their state away."""

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

    @staticmethod
    def of(calibration: Calibration, *, entry: int) -> Version:
        """What is kept of a calibration.

        Raises:
            UsageError: its model or weights cannot be kept.
        """
        return Version(
            entry=entry,
            model=calibration.model.name,
            asking=Asking.of(calibration).to_plain(),
            parameters=dict(calibration.parameters),
            standard_errors=dict(calibration.standard_errors),
            rmse=calibration.rmse,
            count=calibration.count,
            converged=calibration.converged,
            termination=str(calibration.termination),
            state=state_of(calibration),
            build=build_of(),
        )

    def to_plain(self) -> dict[str, Any]:
        """For JSON; numbers as ``float.hex`` writes them."""
        return {
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
            }
        )

    def without_state(self) -> Version:
        """The results alone."""
        return replace(self, state=None)

    def agrees(self, calibration: Calibration) -> bool:
        """Whether a calibration has these parameters and this state, bit for bit."""
        return dict(self.parameters) == calibration.parameters and self.state == state_of(calibration)


def state_of(calibration: Calibration) -> str | None:
    """The digest of what a calibration knows of its quotes; None where a quote is too large to have one."""
    try:
        digest: str = calibration.state.digest()
    except RefusedError:
        return None
    return digest
