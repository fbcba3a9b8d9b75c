"""A look is cheap, honest and changes nothing."""

from __future__ import annotations

from math import inf, isinf

import numpy as np
import pytest

import strikeout as so
from strikeout.cli.demo_data import two_feeds, with_bad_days
from strikeout.errors import RefusedError, UnknownIdError, UsageError

BOOK = so.paper.quotes("small", seed=7)
CALIBRATION = so.calibrate(BOOK, so.Heston())
SOME = BOOK.ids[::13]


def test_a_look_is_within_its_stated_error_of_what_forgetting_does():
    look, done = so.preview(CALIBRATION, ids=SOME), so.forget(CALIBRATION, ids=SOME)
    errors = done.calibration.standard_errors
    apart = max(abs(look.parameters[name] - value) / errors[name] for name, value in done.parameters.items())
    assert 0.0 < apart <= look.error < 0.05
    assert look.operator == "downdate"
    assert (look.count, look.retained, look.refusal) == (len(SOME), 540 - len(SOME), None)
    assert f"leaves {540 - len(SOME)}" in look.sentence


def test_a_notebook_shows_where_the_parameters_would_go_and_how_sure_that_is():
    look = so.preview(CALIBRATION, ids=SOME)
    shown = look._repr_html_()
    assert shown.count("<tr>") == 6
    assert f"<td>{look.parameters['correlation']:.6g}</td><td>{look.moved['correlation']:.3g}</td>" in shown
    assert look.sentence in shown


def test_a_summary_has_a_line_for_every_parameter_and_ends_with_the_sentence():
    look = so.preview(CALIBRATION, ids=SOME)
    lines = look.summary().splitlines()
    assert [line.split()[0] for line in lines[1:6]] == list(look.parameters)
    assert lines[4].split()[1:] == [f"{look.parameters['correlation']:.6g}", f"{look.moved['correlation']:.3g}"]
    assert lines[-1] == look.sentence


def test_a_look_at_what_would_be_refused_says_so_and_does_not_raise():
    look = so.preview(CALIBRATION, where="expiry_days = 60")
    assert isinf(look.error)
    assert "would be refused" in look.sentence
    with pytest.raises(RefusedError) as refused:
        so.forget(CALIBRATION, where="expiry_days = 60")
    assert type(look.refusal) is type(refused.value)
    assert look.refusal.facts == refused.value.facts  # it is the refusal of forget itself
    assert "mean_reversion" in str(look.refusal)


def test_a_look_at_a_bad_day_of_the_demo_refuses_nothing_since_forget_does_not():
    """At the fit to the bad days a parameter looks free; the others determine it."""
    arrived, _ = with_bad_days(two_feeds(so.paper.quotes("large")))
    calibration = so.calibrate(arrived, so.Heston())
    assert calibration.unidentified == ("mean_reversion",)
    worst = so.influence(calibration, by=["date", "source"]).condition(0)
    look, done = so.preview(calibration, where=worst), so.forget(calibration, where=worst)
    assert look.refusal is None
    assert look.parameters == done.parameters


def test_a_look_that_cannot_tell_says_so():
    """Half the days are a tenth off: the robust reference is torn, and one step goes too far to say anything."""
    days = BOOK.labels["day"]
    spoilt = so.calibrate(BOOK.with_observed(np.where(days < 40, 0.9 * BOOK.observed, BOOK.observed)), so.Heston())
    look = so.preview(spoilt, where="day < 40")
    assert look.error == inf
    assert look.refusal is None
    assert "too far for one step" in look.sentence


@pytest.mark.parametrize("options", [{"loss": "huber"}, {"feller": "enforce"}])
def test_where_a_step_cannot_stand_for_the_answer_the_look_is_the_answer(options):
    calibration = so.calibrate(BOOK, so.Heston(), **options)
    look = so.preview(calibration, ids=SOME)
    assert look.error == 0.0
    assert look.parameters == so.forget(calibration, ids=SOME).parameters
    assert "known exactly" in look.sentence


def test_a_look_at_moments_is_the_answer_too():
    made = so.calibrate(so.states.moments_of(BOOK), so.Heston())
    look = so.preview(made, quotes=BOOK.only(SOME))
    assert (look.operator, look.error, look.count) == ("resolve", 0.0, len(SOME))
    refused = so.preview(made, quotes=BOOK[5:])
    assert refused.refusal is not None


def test_a_look_at_a_quote_too_large_for_a_footprint_is_the_answer():
    observed = BOOK.observed.copy()
    observed[100] = 1e9
    spoilt = so.calibrate(BOOK.with_observed(observed), so.Heston())
    look = so.preview(spoilt, ids=[BOOK.ids[100]])
    assert look.parameters == so.calibrate(BOOK.without([BOOK.ids[100]]), so.Heston()).parameters


def test_a_look_at_nothing_is_the_calibration():
    look = so.preview(CALIBRATION, ids=[])
    assert look.parameters == CALIBRATION.parameters
    assert look.error == 0.0


def test_what_is_no_request_is_refused_as_by_forget():
    with pytest.raises(UnknownIdError):
        so.preview(CALIBRATION, ids=["nobody"])
    with pytest.raises(UsageError, match="exactly one of"):
        so.preview(CALIBRATION)
    assert isinstance(so.preview(CALIBRATION, where="1").refusal, RefusedError)
