"""The fast order is the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from strikeout.quotes import names
from strikeout.quotes.names import sorted_rows, sorted_rows_twin

FEW = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, 1.0 + 2**-51, -3.5, 1e-300, 1e300])
COLUMNS = st.integers(1, 60).flatmap(lambda n: st.tuples(*[arrays.arrays(float, n, elements=FEW)] * 3))


@given(COLUMNS)
def test_rows_are_in_the_order_of_a_plain_sort_by_columns(columns):
    first, second, tie = columns
    plain = np.lexsort((tie, second, first))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "FEW", 1)
        patch.setattr(names, "A_HANDFUL", 0)
        assert (sorted_rows(first, second, tie) == plain).all()
        assert (sorted_rows_twin(first, second, tie) == plain).all()
    assert (sorted_rows(first, second, tie) == plain).all()


@pytest.mark.parametrize("sort", [sorted_rows, sorted_rows_twin], ids=["used", "twin"])
@pytest.mark.parametrize("groups", [1, 3, 1000, 20_000])
def test_many_rows_as_well(groups, sort, monkeypatch):
    rng = np.random.default_rng(groups)
    first, second = rng.integers(0, groups, 20_000) / 7.0, rng.normal(size=20_000)
    second[rng.integers(0, 20_000, 5_000)] = second[0]
    assert (sort(first, second) == np.lexsort((second, first))).all()
    assert (sort(first[::2], second[::2]) == np.lexsort((second[::2], first[::2]))).all()  # not contiguous
    monkeypatch.setattr(names, "FEWEST_BITS", 64)  # the general sort says the same
    assert (sort(first, second) == np.lexsort((second, first))).all()
