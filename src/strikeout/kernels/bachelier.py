"""Bachelier's formula for European options on a forward that moves normally, and its vega.

    F, K, T, D   forward, strike, years to expiry, discount factor
    sigma        volatility in units of the forward, per square root of a year
    s, d         sigma sqrt(T); |F - K| / s, how far out of the money

Bachelier (1900). Every option is priced through its out-of-the-money twin, so that small prices keep their digits.
Elementwise: a row never depends on its neighbours. Nothing raises: the result is not-a-number if there is no answer.
"""

from __future__ import annotations

import numpy as np

from strikeout.kernels.arrays import Floats, Mask
from strikeout.kernels.normal import SQRT_HALF, density, erfcx_right

SQRT_HALF_PI = 1.2533141373155003


def price(F: Floats, K: Floats, T: Floats, sigma: Floats, D: Floats, is_call: Mask) -> Floats:
    """``D ((F - K) N(d) + s n(d))`` for a call; the intrinsic value where sigma is zero."""
    with np.errstate(all="ignore"):
        s = np.where(sigma >= 0.0, sigma * np.sqrt(T), np.nan)
        d = np.where(s > 0.0, np.abs(F - K) / s, np.where(s == 0.0, np.inf, np.nan))
        # n(d) - d N(-d) with the size n(d) taken out: of the two terms only the ratio cancels.
        tail = density(d) * np.maximum(1.0 - np.minimum(d, 1e8) * SQRT_HALF_PI * erfcx_right(SQRT_HALF * d), 0.0)
        twin = np.where(np.isinf(d), 0.0, s * tail)
        away = np.where(is_call, F - K, K - F)
        return np.asarray(D * (np.maximum(away, 0.0) + twin))


def vega(F: Floats, K: Floats, T: Floats, sigma: Floats, D: Floats) -> Floats:
    """``D sqrt(T) n(d)``: how much the price rises per unit of volatility."""
    with np.errstate(all="ignore"):
        s = np.where(sigma >= 0.0, sigma * np.sqrt(T), np.nan)
        d = np.abs(F - K) / s
        return np.asarray(D * np.sqrt(T) * np.where((s == 0.0) & (F == K), density(0.0), density(d)))
