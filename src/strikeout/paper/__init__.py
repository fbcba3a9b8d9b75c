"""The paper "Selective Forgetting in Option Calibration": its pricer, its quotes, its operators, its experiments."""

from strikeout.paper.heston import Heston as Heston
from strikeout.paper.sets import quotes as quotes

__all__ = ["Heston", "quotes"]
