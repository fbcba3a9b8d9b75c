"""What is no calibration, no quotes or the whole book gets a sentence, and too few quotes get no answer."""

from __future__ import annotations

import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from tests.raising import raises

QUOTES = so.paper.quotes("small")
CALIBRATION = so.calibrate(QUOTES, so.Heston())


@pytest.mark.parametrize("what", [QUOTES, "heston", None])
def test_only_a_calibration_can_forget(what):
    with pytest.raises(UsageError, match="struck out of is a calibration"):
        so.forget(what, ids=[])


def test_only_quotes_can_be_learnt():
    with raises(UsageError, kind="int"):
        so.learn(CALIBRATION, 3)


def test_only_a_forgetting_can_be_restored_and_only_into_a_calibration():
    with raises(UsageError, kind="Calibration"):
        so.restore(CALIBRATION)
    with raises(UsageError, kind="Quotes"):
        so.restore(so.forget(CALIBRATION, ids=QUOTES.ids[:3]), QUOTES)


def test_a_look_at_forgetting_everything_tells_the_refusal():
    look = so.preview(CALIBRATION, ids=QUOTES.ids)
    assert look.refusal is not None
    assert look.refusal.code == "refused"
    with pytest.raises(RefusedError):
        so.forget(CALIBRATION, ids=QUOTES.ids)


@pytest.mark.parametrize("seed", [17, 22, 26])  # books whose step leads inside the bounds, so that only this refuses it
@pytest.mark.parametrize("operator", ["restep", "downdate", "recompute"])
def test_as_many_quotes_as_parameters_are_refused_by_every_operator(seed, operator):
    book = so.synthetic.random_quotes(28, maturities=15, seed=seed)
    calibration = so.calibrate(book, so.Heston())
    kept = set(book.ids[seed % 20 : seed % 20 + 5])
    with pytest.raises(RefusedError):
        so.forget(calibration, ids=[name for name in book.ids if name not in kept], operator=operator)
