"""Books that learn and roll by certified steps, and the certificates of rolls."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.synthetic.heston_quotes import panel_quotes

PANEL = panel_quotes(10, seed=3)
DATES = np.unique(PANEL.labels["date"])
TOLERANCE = 0.05


def days(first: int, last: int) -> so.Quotes:
    return PANEL[np.isin(PANEL.labels["date"], DATES[first:last])]


@pytest.fixture
def book(tmp_path):
    made = so.Book.create(tmp_path / "online.book")
    made.import_quotes(days(0, 7))
    made.calibrate(so.Heston(), panel="date")
    return made


def exact(first: int, last: int) -> so.results.Calibration:
    return so.calibrate(days(first, last), so.Heston(), panel="date")


def apart(after, found: so.results.Calibration) -> float:
    shared = [abs(after.parameters[n] - v) / found.standard_errors[n] for n, v in found.parameters.items()]
    return max(
        [
            *shared,
            *(abs(after.latent[str(g)][0] - v) / found.latent_standard_errors[g] for g, v in found.latent.items()),
        ]
    )


def test_a_book_rolls_by_certified_steps_and_verifies(book):
    for n in range(2):
        change = book.roll(days(7 + n, 8 + n), window=7, tolerance=TOLERANCE)
        assert change.path[0].startswith("update:")
        assert change.after.step is not None
        assert apart(change.after, exact(1 + n, 8 + n)) <= TOLERANCE
        assert set(change.after.latent) == {str(date) for date in DATES[1 + n : 8 + n]}
        assert so.verify(change.certificate, days(1 + n, 8 + n)).holds
        assert not so.verify(change.certificate, days(n, 7 + n)).holds
    assert book.verify().holds, book.verify().summary()


def test_a_plain_calibration_of_a_book_after_steps_is_that_of_a_new_book(book):
    book.roll(days(7, 8), window=7, tolerance=TOLERANCE)
    book.learn(days(8, 9), tolerance=TOLERANCE)
    found = book.calibrate()
    assert dict(found.after.parameters) == exact(1, 9).parameters
    assert found.after.state == exact(1, 9).state.digest()


def test_a_book_learns_by_a_step_with_a_certificate(book):
    change = book.learn(days(7, 8), tolerance=TOLERANCE)
    assert change.after.step is not None
    assert apart(change.after, exact(0, 8)) <= TOLERANCE
    assert change.certificate.operator == "update"
    assert so.verify(change.certificate, days(0, 8)).holds
    assert change.after.state == exact(0, 8).state.digest()
    assert book.verify().holds, book.verify().summary()


def test_a_roll_that_no_step_is_certified_for_is_exact_and_certified(book):
    change = book.roll(days(7, 8), window=7, tolerance=1e-9)
    assert change.path[0].startswith("step passed over:")
    assert change.after.step is None
    assert dict(change.after.parameters) == exact(1, 8).parameters
    assert change.certificate.made["NEVER_SEEN"]
    assert change.certificate.counts == {"forgotten": len(days(0, 1)), "retained": len(days(1, 8))}
    assert so.verify(change.certificate, days(1, 8)).holds


def test_a_roll_without_a_tolerance_issues_a_certificate_too(book):
    change = book.roll(days(7, 8), window=7)
    assert change.certificate.made["NEVER_SEEN"]
    assert so.verify(book.certificate(change.entry), days(1, 8)).holds
    assert dict(change.after.parameters) == exact(1, 8).parameters


def test_forgetting_after_a_learnt_step_subtracts_the_learnt_day(book):
    book.learn(days(7, 8), tolerance=TOLERANCE)
    change = book.forget(ids=days(7, 8).ids.tolist(), tolerance=TOLERANCE, reason="bad-feed")
    assert change.after.step is not None
    assert change.after.state == exact(0, 7).state.digest()
    back = book.restore()
    assert dict(back.after.parameters) == exact(0, 8).parameters
    assert book.verify().holds, book.verify().summary()


def test_a_plain_book_learns_by_a_step(tmp_path):
    quotes = so.paper.quotes("small", seed=1)
    made = so.Book.create(tmp_path / "plain.book")
    made.import_quotes(quotes[:400])
    made.calibrate(so.Heston(), panel=None)
    change = made.learn(quotes[400:420], tolerance=TOLERANCE)
    assert change.after.step is not None
    found = so.calibrate(quotes[:420], so.Heston())
    assert max(abs(change.after.parameters[n] - v) / found.standard_errors[n] for n, v in found.parameters.items()) <= (
        TOLERANCE
    )
    assert so.verify(change.certificate, quotes[:420]).holds
    assert made.verify().holds, made.verify().summary()


def test_a_tolerance_that_is_no_number_above_zero_is_refused(book):
    with pytest.raises(UsageError):
        book.learn(days(7, 8), tolerance=0.0)
    assert len(book.quotes()) == len(days(0, 7))
