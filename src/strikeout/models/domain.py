"""Check parameters against the domain of a model."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import ParameterError
from strikeout.models.model import ParameterSpace, Theta

Floats = NDArray[np.float64]
Domain = Mapping[str, tuple[float, float]]


def inside(space: ParameterSpace, theta: Theta, domain: Domain) -> Floats:
    """Return the parameters as an array in the order of the space, each strictly between the two ends of its domain.

    ``domain`` goes by name; ``vol_of_vol`` speaks for ``vol_of_vol[0.5]`` too.

    Raises:
        ParameterError: a parameter is missing, unknown, not finite or outside its domain.

    >>> space = ParameterSpace(("vol",), np.array([0.01]), np.array([3.0]), np.array([[0.2]]))
    >>> inside(space, {"vol": 0.3}, {"vol": (0.0, inf)})
    array([0.3])
    """
    vector = space.vector(theta)
    for name, value in zip(space.names, vector.tolist(), strict=True):
        low, high = domain.get(name.partition("[")[0], (-inf, inf))
        if not low < value < high:
            need = f"above {low:g}" if high == inf else f"between {low:g} and {high:g}"
            raise ParameterError(f"{name} is {value:g}; it must be {need}.", parameter=name, value=value)
    return vector
