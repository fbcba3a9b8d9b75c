"""The exact state of every cluster of quotes: curvature and score in integers, added and subtracted without rounding.

The clustered errors of one step follow from these (``calibration.standard_errors.step_errors``). A strike-out changes
the states of the clusters that lose quotes, so the errors are those of quotes that were never seen, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from strikeout.statistics.footprints import Footprints
from strikeout.statistics.groups import column_of
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.system import Group, rank

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

States = Mapping[Group, NormalEquations]


def cluster_states(quotes: Quotes, footprints: Footprints, label: str) -> States:
    """Return the state of every cluster, in the order of their names; clusters in which no quote counts have none.

    Args:
        footprints: of these quotes, in their order.

    Raises:
        UsageError: the quotes have no such label or column.
    """
    column = np.asarray(column_of(quotes, label))
    names, number = np.unique(column.astype(str) if column.dtype.kind == "O" else column, return_inverse=True)
    rows = np.split(np.argsort(number.ravel(), kind="stable"), np.cumsum(np.bincount(number.ravel()))[:-1])
    states = {name: footprints.total(at) for name, at in zip(names.tolist(), rows, strict=True)}
    return {name: states[name] for name in sorted(states, key=rank) if states[name].count}


def states_without(states: States, quotes: Quotes, footprints: Footprints, label: str, ids: ArrayLike) -> States:
    """Return the states once quotes are struck out: other clusters than theirs are the same objects.

    Args:
        quotes, footprints: of before.

    Raises:
        UnknownIdError: an id without a footprint, or one given twice.
    """
    lost = cluster_states(quotes[footprints.places(ids)], footprints.only(ids), label)
    left = {name: state - lost[name] if name in lost else state for name, state in states.items()}
    return {name: state for name, state in left.items() if state.count}
