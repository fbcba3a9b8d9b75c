"""What the README promises of Heston's prices, held by numbers that come with the project: nothing else is needed."""

from __future__ import annotations

import json
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from strikeout.models.heston import Heston
from strikeout.paper.heston import Heston as PaperHeston
from tests.kernels.kernel_choice import each_kernel, values
from tests.reference.make_heston_corners import FILE, SLICES, rows

CORNERS: list[dict[str, Any]] = json.loads(FILE.read_text())["slices"]
each_corner = pytest.mark.parametrize("corner", CORNERS, ids=lambda corner: corner["name"])


def expected(corner: dict[str, Any]) -> np.ndarray:
    """As ``values`` gives them: the value and its five derivatives, a column a strike."""
    return np.array(corner["values"], float).T


def found_by(model: Any, corner: dict[str, Any]) -> np.ndarray:
    return values(model, corner["theta"], corner["expiry"], corner["log_strikes"])


@each_kernel
@each_corner
@pytest.mark.parametrize("expiries", ["shared", "scattered"])
def test_a_corner_is_right_to_1e_11_in_price_and_1e_9_in_every_sensitivity(corner, expiries, kernel):
    """By the 20 digits of an integral with another line, another rule and another arithmetic than the kernels'."""
    off = np.abs(found_by(Heston(kernel, expiries), corner) - expected(corner))
    assert off[0].max() <= 1e-11  # worst measured: 1.2e-13
    assert off[1:].max() <= 1e-9  # worst measured: 1.5e-11, of derivatives up to 1.9


def test_the_corners_would_show_a_scheme_that_is_merely_good():
    """The paper's small mesh is off by more than a billionth in most of them."""
    scheme = PaperHeston(U_max=50.0, N_u=180)
    off = [np.abs(found_by(scheme, corner)[0] - expected(corner)[0]).max() for corner in CORNERS]
    assert np.mean(np.array(off) > 1e-9) > 0.5


def test_the_numbers_are_those_of_the_script_beside_them():
    """All slices are listed, and the first is computed again; ``--check`` of the script computes every one."""
    assert [(c["name"], c["theta"], c["expiry"], c["log_strikes"]) for c in CORNERS] == [tuple(s) for s in SLICES]
    first = CORNERS[0]
    with mp.workdps(45):
        again = rows(first["theta"], first["expiry"], first["log_strikes"], points=30, first="0.3")
        apart = max(
            abs(x - mp.mpf(text))
            for row, texts in zip(again, first["values"], strict=True)
            for x, text in zip(row, texts, strict=True)
        )
    assert apart < 1e-19
