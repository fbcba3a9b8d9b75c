"""American options under Black-Scholes dynamics: prices, vegas and implied volatilities, arrays in and arrays out.

The asset pays a continuous yield; rates and yields may be negative. Each option is solved alone, so its bits do not
depend on the other options of a call. Method and accuracy: docs/explanation/american-options.md.
"""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels import american, black, elementary
from strikeout.kernels.arrays import Floats, Mask
from strikeout.quotes.dividends import Dividends as Dividends
from strikeout.quotes.exercise import to_european as to_european

ACCURACY, FINEST = 1e-8, 1e-10  # of spot


class Option(TypedDict):
    """Options and their market, as keywords of the functions below: numbers or arrays, which broadcast.

    ``spot`` and ``strike`` are prices above zero in one currency, ``expiry`` years above zero, ``rate`` and
    ``dividend_yield`` continuously compounded per year, negative ones too; ``is_call`` is true for a call, false for a
    put.
    """

    spot: ArrayLike
    strike: ArrayLike
    expiry: ArrayLike
    rate: ArrayLike
    dividend_yield: ArrayLike
    is_call: ArrayLike


def price(*, volatility: ArrayLike, accuracy: float = ACCURACY, **option: Unpack[Option]) -> Floats:
    """Return the price of each American option.

    Args:
        volatility: per year, 0.2 for 20 %; above zero.
        accuracy: the error allowed, as a share of spot: 1e-8, or 1e-10 in about ten times the time.
        option: ``spot``, ``strike``, ``expiry``, ``rate``, ``dividend_yield`` and ``is_call``; see ``Option``.

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
    columns, calls, shape = _columns(option, volatility=volatility)
    found: Floats = american.prices(columns, calls, fine=_is_fine(accuracy), vega=False)[0].reshape(shape)
    return found


def vega(*, volatility: ArrayLike, accuracy: float = ACCURACY, **option: Unpack[Option]) -> Floats:
    """Return how much the price of each American option rises per unit of volatility (1.0, not a percentage point).

    A central difference over 1e-4 of the volatility, on the same nodes at both ends. 0 if exercising now is optimal.

    Args:
        volatility: this and the other arguments as for ``price``.

    Raises:
        UsageError: as for ``price``.
    """
    columns, calls, shape = _columns(option, volatility=volatility)
    found: Floats = american.prices(columns, calls, fine=_is_fine(accuracy), vega=True)[2].reshape(shape)
    return found


def implied_volatility(*, price: ArrayLike, accuracy: float = ACCURACY, **option: Unpack[Option]) -> Floats:
    """Return the volatility at which each American option has its price.

    Args:
        price: of the option, in the currency of ``spot``.
        accuracy: this and the other arguments as for ``price()``.

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
    columns, calls, shape = _columns(option, price=price)
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


def _columns(option: Option, **last: ArrayLike) -> tuple[list[Floats], Mask, tuple[int, ...]]:
    """Return the numbers as contiguous columns of one length, in the order of ``Option``, the flag of calls, and the
    shape they have together."""
    if option.keys() != Option.__annotations__.keys():
        wrong = sorted(option.keys() ^ Option.__annotations__.keys())
        raise TypeError(f"missing or unknown: {', '.join(wrong)}. Give {', '.join((*Option.__annotations__, *last))}.")
    given: dict[str, Any] = {**{name: option[name] for name in Option.__annotations__}, **last}  # type: ignore[literal-required]
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in given.items():
        try:
            arrays[name] = np.asarray(value, None if name == "is_call" else np.float64)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name}: expected numbers, got {type(value).__name__}.", argument=name) from error
    calls = arrays.pop("is_call")
    if calls.dtype != np.bool_:
        raise UsageError(f"is_call: expected true or false, got {calls.dtype}.", argument="is_call")
    try:
        together = np.broadcast_arrays(*arrays.values(), calls)
    except ValueError as error:
        shapes = {name: array.shape for name, array in (*arrays.items(), ("is_call", calls))}
        raise UsageError(
            "The arguments have shapes that do not broadcast: "
            + ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            + ". Give arrays of one length, or single numbers.",
            shapes=shapes,
        ) from error
    *columns, flags = (np.ascontiguousarray(array).reshape(-1) for array in together)
    return columns, flags, together[0].shape
