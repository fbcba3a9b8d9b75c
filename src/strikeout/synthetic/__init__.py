"""Quotes with known parameters: random sets, panels, and sample files in a vendor's layout."""

from strikeout.synthetic.heston_quotes import TRUTH as TRUTH
from strikeout.synthetic.heston_quotes import panel_quotes as panel_quotes
from strikeout.synthetic.heston_quotes import random_quotes as random_quotes
from strikeout.synthetic.heston_quotes import regime_quotes as regime_quotes
from strikeout.synthetic.sample_files import write_sample as write_sample

__all__ = ["TRUTH", "panel_quotes", "random_quotes", "regime_quotes", "write_sample"]
