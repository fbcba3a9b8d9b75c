"""American options under Black-Scholes dynamics: prices, vegas and implied volatilities, arrays in and arrays out.

The asset pays a continuous yield; rates and yields may be negative. Each option is solved alone, so its bits do not
depend on the other options of a call. Method and accuracy: docs/explanation/american-options.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels import american, black, elementary
from strikeout.kernels.arrays import Floats, Mask
from strikeout.quotes.dividends import Dividends as Dividends
from strikeout.quotes.exercise import to_european as to_european

ACCURACY, FINEST = 1e-8, 1e-10  # of spot


def price(
    *,
    spot: ArrayLike,
    strike: ArrayLike,
    expiry: ArrayLike,
    rate: ArrayLike,
    dividend_yield: ArrayLike,
    volatility: ArrayLike,
    is_call: ArrayLike,
    accuracy: float = ACCURACY,
) -> Floats:
    """Return the price of each American option.

    Args:
        spot: price of the asset, above zero.
        strike: above zero, in the currency of ``spot``.
        expiry: years to expiry, above zero.
        rate: continuously compounded, per year; may be negative.
        dividend_yield: likewise.
        volatility: per year, 0.2 for 20 %; above zero.
        is_call: true for a call, false for a put.
        accuracy: the error allowed, as a share of spot: 1e-8, or 1e-10 in about ten times the time.

    Returns:
        One price per option, of the shape the arguments broadcast to. Not-a-number if an argument is outside its
        range, or if the exercise boundary was not found.

    Raises:
        UsageError: the arguments do not broadcast to one shape, are not numbers, or ``accuracy`` is below 1e-10.

    >>> import numpy as np
    >>> market = {"spot": 100, "expiry": 1, "rate": 0.05, "dividend_yield": 0.02}
    >>> np.round(price(strike=[90, 100], volatility=0.25, is_call=False, **market), 6)
    array([4.36504 , 8.565229])
    """
    columns, calls, shape = _columns(
        is_call,
        spot=spot,
        strike=strike,
        expiry=expiry,
        rate=rate,
        dividend_yield=dividend_yield,
        volatility=volatility,
    )
    found: Floats = american.prices(columns, calls, fine=_is_fine(accuracy), vega=False)[0].reshape(shape)
    return found


def vega(
    *,
    spot: ArrayLike,
    strike: ArrayLike,
    expiry: ArrayLike,
    rate: ArrayLike,
    dividend_yield: ArrayLike,
    volatility: ArrayLike,
    is_call: ArrayLike,
    accuracy: float = ACCURACY,
) -> Floats:
    """Return how much the price of each American option rises per unit of volatility (1.0, not a percentage point).

    A central difference over 1e-4 of the volatility, on the same nodes at both ends. 0 if exercising now is optimal.

    Args:
        spot: this and the other arguments as for ``price``.

    Raises:
        UsageError: as for ``price``.
    """
    columns, calls, shape = _columns(
        is_call,
        spot=spot,
        strike=strike,
        expiry=expiry,
        rate=rate,
        dividend_yield=dividend_yield,
        volatility=volatility,
    )
    found: Floats = american.prices(columns, calls, fine=_is_fine(accuracy), vega=True)[2].reshape(shape)
    return found


def implied_volatility(
    *,
    price: ArrayLike,
    spot: ArrayLike,
    strike: ArrayLike,
    expiry: ArrayLike,
    rate: ArrayLike,
    dividend_yield: ArrayLike,
    is_call: ArrayLike,
    accuracy: float = ACCURACY,
) -> Floats:
    """Return the volatility at which each American option has its price.

    Args:
        price: of the option, in the currency of ``spot``.
        spot: this and the other arguments as for ``price()``.

    Returns:
        Not-a-number if no volatility gives the price. That includes a price at or below what exercising now pays: then
        every volatility below some level gives the same price.

    Raises:
        UsageError: as for ``price()``.

    >>> found = implied_volatility(
    ...     price=8.565229, spot=100, strike=100, expiry=1, rate=0.05, dividend_yield=0.02, is_call=False
    ... )
    >>> round(float(found), 6)
    0.25
    """
    columns, calls, shape = _columns(
        is_call, spot=spot, strike=strike, expiry=expiry, rate=rate, dividend_yield=dividend_yield, price=price
    )
    S, K, T, r, q, P = columns
    with np.errstate(all="ignore"):
        forward, discount = S * elementary.exp((r - q) * T), elementary.exp(-r * T)
        start = black.implied_volatility(P, forward, K, T, discount, calls)
    found = american.volatilities(P, [S, K, T, r, q, start], calls, fine=_is_fine(accuracy))
    return found.reshape(shape)


def _is_fine(accuracy: float) -> bool:
    if not accuracy >= FINEST:
        raise UsageError(
            f"accuracy: expected {FINEST:g} of spot or more, got {accuracy!r}. Leave it out for {ACCURACY:g}.",
            accuracy=accuracy,
        )
    return accuracy < ACCURACY


def _columns(is_call: ArrayLike, **numbers: ArrayLike) -> tuple[list[Floats], Mask, tuple[int, ...]]:
    """Return the arguments as contiguous columns of one length, and the shape they have together."""
    arrays: list[NDArray[Any]] = []
    for name, given in numbers.items():
        try:
            arrays.append(np.asarray(given, np.float64))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name}: expected numbers, got {type(given).__name__}.", argument=name) from error
    calls = np.asarray(is_call)
    if calls.dtype != np.bool_:
        raise UsageError(f"is_call: expected true or false, got {calls.dtype}.", argument="is_call")
    try:
        together = np.broadcast_arrays(*arrays, calls)
    except ValueError as error:
        shapes = {name: array.shape for name, array in zip((*numbers, "is_call"), (*arrays, calls), strict=True)}
        raise UsageError(
            "The arguments have shapes that do not broadcast: "
            + ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            + ". Give arrays of one length, or single numbers.",
            shapes=shapes,
        ) from error
    *columns, flags = (np.ascontiguousarray(array).reshape(-1) for array in together)
    return columns, flags, together[0].shape
