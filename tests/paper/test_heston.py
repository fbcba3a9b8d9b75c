"""PaperHeston is a Model, and its name tells two schemes apart."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.errors import ParameterError, UsageError
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.paper import heston as paper_scheme
from strikeout.paper.heston import Heston as PaperHeston
from strikeout.quotes.contracts import Contracts
from tests.raising import raises

TRUTH = {
    "mean_reversion": 2.0,
    "long_variance": 0.06,
    "vol_of_vol": 0.30,
    "correlation": -0.6,
    "initial_variance": 0.06,
}
CONTRACTS = Contracts(
    forward=100.0,
    strike=[80.0, 95.0, 100.0, 105.0, 120.0],
    expiry=[0.12, 0.12, 0.24, 0.24, 0.36],
    discount=0.99,
    is_call=[True, False, True, False, True],
)


def test_it_is_a_model():
    assert isinstance(PaperHeston(), Model)


def test_parameters_by_name_and_by_order_give_the_same_bits():
    vector = PaperHeston().parameters.vector(TRUTH)
    assert PaperHeston().price(TRUTH, CONTRACTS).tobytes() == PaperHeston().price(vector, CONTRACTS).tobytes()


def test_prices_are_those_of_the_kernel_in_the_paper_s_order_of_parameters():
    columns = (CONTRACTS.forward, CONTRACTS.strike, CONTRACTS.expiry, CONTRACTS.discount, CONTRACTS.is_call)
    expected = paper_scheme.price([2.0, 0.06, 0.30, -0.6, 0.06], *columns, u_max=50.0, nodes=180)
    assert PaperHeston(U_max=50.0, N_u=180).price(TRUTH, CONTRACTS).tobytes() == expected.tobytes()


def test_the_paper_s_scheme_and_ours_agree_where_the_mesh_suffices():
    found, jacobian = PaperHeston().linearize(TRUTH, CONTRACTS)
    expected, gradient = Heston().linearize(TRUTH, CONTRACTS)
    # 1e-11 of the forward is the error of the cut at u_max = 120 at these parameters and 30 days.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * 100)
    # Central differences of relative step 1e-4: their square, times a forward of 100.
    np.testing.assert_allclose(jacobian, gradient, rtol=0, atol=1e-8 * 100)


@pytest.mark.parametrize("other", [{"U_max": 50.0}, {"N_u": 180}, {"step": 1e-5}])
def test_the_name_changes_with_the_scheme(other: dict[str, float]):
    assert PaperHeston(**other).name != PaperHeston().name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "facts"),
    [
        ({"N_u": 181}, {"N_u": 181}),
        ({"N_u": 0}, {"N_u": 0}),
        ({"U_max": -1.0}, {"name": "U_max", "value": -1.0}),
        ({"step": 0.0}, {"name": "step", "value": 0.0}),
    ],
)
def test_a_scheme_that_cannot_work_is_refused(wrong: dict[str, float], facts: dict[str, object]):
    with raises(UsageError, **facts):
        PaperHeston(**wrong)  # type: ignore[arg-type]


def test_an_unknown_parameter_is_refused_by_name():
    with raises(ParameterError, unknown=["kappa"]):
        PaperHeston().price({"kappa": 1.0}, CONTRACTS)
