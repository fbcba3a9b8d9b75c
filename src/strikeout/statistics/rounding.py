"""How finely one residual is known: what no search can look beneath."""

from __future__ import annotations

# Rounding of a model's price relative to discount * forward. A pricing kernel that chooses its nodes by theta jumps by
# about this much; so do volatilities near the money.
JITTER = 1e-13
# Rounding of a plain formula relative to its value, and of any price relative to discount * forward: a dozen operations
# of half a unit in the last place each.
PLAIN = 16.0 * 2.0**-52
# A volatility is known to the rounding of its price over its vega. A vega below this share of discount * forward counts
# as this share: one quote far out in the wings is not to excuse all the others.
FLATTEST = 1e-8
