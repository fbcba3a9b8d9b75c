"""What every test may lean on: the same examples every time, and the reference data where it is there."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"

# `ci` draws the same examples on every machine and every run. To look for new ones:
# python3 go.py test tests/laws --hypothesis-profile explore
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")

# A shell may start programs in the background with interrupts ignored. Tests send interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """The path of a file of the reference data, as ``shared_data("reference/heston_prices.json")``.

    A test that asks for data that is not on this machine is skipped, and says which.
    """

    def path(name: str) -> Path:
        if not (DATA / name).exists():
            pytest.skip(f"the reference data {name} is not in ../shared/data beside the repository")
        return DATA / name

    return path


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT
