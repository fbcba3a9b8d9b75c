"""Honest certificates of five kinds, for an attacker to rewrite."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import strikeout as so
from strikeout.assurance.certificate import Certificate


@dataclass(frozen=True)
class Issued:
    """A certificate, and the quotes it is to be checked against."""

    certificate: Certificate
    retained: so.Quotes


@cache
def issued(kind: str) -> Issued:
    """Returns an honest certificate of this kind."""
    if kind.startswith("panel"):
        panel = so.synthetic.panel_quotes(days=4, seed=11)
        gone = panel.ids[panel.labels["day"] == 2]
        before = so.calibrate(panel, so.Heston(), panel="date")
        how = {"tolerance": 0.5} if kind == "panel step" else {}
        return Issued(so.forget(before, ids=gone, **how).certificate, panel.without(gone))
    book = so.synthetic.random_quotes(120, maturities=4, seed=3)
    gone, kept = book.ids[:6], book[6:]
    if kind == "moments":
        done = so.forget(so.calibrate(so.states.moments_of(book), so.Heston()), quotes=book[:6])
        return Issued(done.certificate, kept)
    how = {"tolerance": 0.2} if kind == "step" else {}
    return Issued(so.forget(so.calibrate(book, so.Heston()), ids=gone, **how).certificate, kept)
