"""The paper "Selective Forgetting in Option Calibration": its pricer, its quotes, its operators, its experiments."""

from strikeout.paper.cache import Cache as Cache
from strikeout.paper.cache import Update as Update
from strikeout.paper.cache import fast as fast
from strikeout.paper.cache import recompute as recompute
from strikeout.paper.cache import relinearize as relinearize
from strikeout.paper.cache import retrain as retrain
from strikeout.paper.heston import Heston as Heston
from strikeout.paper.sets import quotes as quotes
from strikeout.synthetic.heston_quotes import TRUTH as TRUTH

__all__ = ["TRUTH", "Cache", "Heston", "Update", "fast", "quotes", "recompute", "relinearize", "retrain"]
