"""Contracts: what they refuse, and the order pricing goes through them in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from strikeout.errors import UsageError
from strikeout.quotes.contracts import Contracts
from tests.raising import raises


def some(**changes: object) -> Contracts:
    columns = {"forward": 100.0, "strike": [110.0, 90.0, 100.0], "expiry": [0.5, 0.5, 0.25], "discount": 0.5}
    return Contracts(**{**columns, "is_call": [True, False, True], **changes})  # type: ignore[arg-type]


def test_one_value_stands_for_all_and_every_column_is_read_only() -> None:
    contracts = some()
    assert contracts.forward.tolist() == [100.0] * 3
    with pytest.raises(ValueError, match="read-only"):
        contracts.strike[0] = 1.0


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"forward": [1.0, 2.0]}, {"lengths": {"forward": 2, "strike": 3, "expiry": 3, "is_call": 3}}),
        ({"strike": [1.0, -2.0, 3.0]}, {"column": "strike", "row": 1}),
        ({"expiry": [0.0, 1.0, 1.0]}, {"column": "expiry", "row": 0}),
        ({"discount": np.nan}, {"column": "discount", "row": 0}),
        ({"forward": np.inf}, {"column": "forward", "row": 0}),
        ({"strike": [[1.0, 2.0, 3.0]]}, {"lengths": {"expiry": 3, "is_call": 3}}),
    ],
)
def test_contracts_that_cannot_be_are_refused_with_the_row(changes: dict[str, object], facts: dict[str, Any]) -> None:
    with raises(UsageError, **facts):
        some(**changes)


def test_slices_go_by_expiry_then_log_moneyness_whatever_the_order_given() -> None:
    slices = some().slices
    assert slices.order.tolist() == [2, 1, 0]
    assert slices.expiries.tolist() == [0.25, 0.5]
    assert slices.offsets.tolist() == [0, 1, 3]
    assert slices.k.tolist() == np.log([1.0, 0.9, 1.1]).tolist()


def test_the_intrinsic_value_is_discounted_and_never_below_zero() -> None:
    contracts = some(strike=[90.0, 110.0, 110.0], is_call=[True, False, True])
    assert contracts.intrinsic.tolist() == [5.0, 5.0, 0.0]
    assert contracts.scale.tolist() == [50.0] * 3


def test_rows_are_picked_by_number_mask_or_slice() -> None:
    contracts = some()
    assert contracts[[2, 0]].strike.tolist() == [100.0, 110.0]
    assert contracts[contracts.is_call].strike.tolist() == [110.0, 100.0]
    assert len(contracts[:0]) == len(contracts[[]]) == 0
    assert [one.strike.tolist() for one in contracts] == [[110.0], [90.0], [100.0]]


def test_panels_go_by_panel_of_expiry_then_scaled_moneyness_whatever_the_order_given():
    rng = np.random.default_rng(3)
    expiry = np.exp(rng.uniform(-4.0, 1.0, 200))
    strike = np.where(rng.random(200) < 0.3, 100.0, rng.uniform(50.0, 200.0, 200))  # ties at the money
    given = Contracts(forward=100.0, strike=strike, expiry=expiry, discount=1.0, is_call=True)
    mixed = rng.permutation(200)
    panels, again = given.panels, given[mixed].panels
    assert panels.t is not None
    assert again.t is not None
    assert (np.abs(panels.t) <= 1.0 + 1e-12).all()
    assert (again.k == panels.k).all()
    assert (again.t == panels.t).all()
    assert (given.expiry[panels.order] == given[mixed].expiry[again.order]).all()
    for begin, end in zip(panels.offsets[:-1], panels.offsets[1:], strict=True):
        assert (np.diff(panels.k[begin:end]) >= 0.0).all()
