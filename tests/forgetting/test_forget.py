"""The door: what it answers by default, what it takes for speed, and what it refuses."""

from __future__ import annotations

import copy
import html
import re

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnidentifiedError, UnknownIdError, UsageError
from strikeout.forgetting.forget import OPERATORS
from tests.raising import raises

BOOK = so.paper.quotes("small", seed=7)
CALIBRATION = so.calibrate(BOOK, so.Heston())
SOME = BOOK.ids[::13]
QUIET = so.synthetic.random_quotes(540, maturities=4, seed=5, noise=1e-6)  # every price has an implied volatility


def same(one: so.results.Calibration, other: so.results.Calibration) -> bool:
    """Every number of the two, and what they know of their quotes."""
    return one.to_dict() == other.to_dict() and one.state.digest() == other.state.digest()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "huber"},
        {"residual": "implied_vol"},
        {"weights": "vega"},
        {"weights": "relative"},
        {"weights": np.linspace(0.5, 2.0, len(BOOK))},
        {"weights": np.where(np.arange(len(BOOK)) % 5, 1.0, 0.0)},
        {"fixed": {"mean_reversion": 2.0}},
        {"bounds": {"vol_of_vol": (0.05, 0.6)}},
        {"feller": "enforce"},
        {"starts": 1},
        {"starts": [{**dict(so.Heston().parameters.named([3.0, 0.05, 0.5, -0.3, 0.05]))}]},
    ],
    ids=lambda options: ", ".join(options) or "default",
)
def test_forgetting_equals_never_having_seen_with_every_setting(options):
    weights = options.get("weights")
    book = QUIET if "residual" in options or isinstance(weights, str) else BOOK
    some = book.ids[::13]
    calibration = so.calibrate(book, so.Heston(), **options)
    forgetting = so.forget(calibration, ids=some)
    retained = book.without(some)
    if isinstance(weights, np.ndarray):
        options = {**options, "weights": weights[~np.isin(book.ids, some)]}
    fresh = so.calibrate(retained, so.Heston(), **options)
    assert forgetting.parameters == fresh.parameters
    assert same(forgetting.calibration, fresh)
    assert forgetting.calibration.settings == fresh.settings
    assert forgetting.operator == "recalibrate"


def test_the_weight_of_a_forgotten_quote_is_forgotten_too():
    calibration = so.calibrate(BOOK, so.Heston(), weights=np.linspace(0.5, 2.0, len(BOOK)))
    kept = so.forget(calibration, ids=SOME).calibration.settings.weights
    assert set(kept) == set(BOOK.without(SOME).ids)


def test_the_model_is_chosen_for_what_is_retained_not_for_what_was_there():
    """1,200 scattered quotes are priced by panels, the 900 that are left expiry by expiry: as a fresh start would."""
    book = so.synthetic.random_quotes(1200, maturities=1200, seed=3)
    calibration = so.calibrate(book, so.Heston())
    assert calibration.model.expiries == "scattered"
    forgetting = so.forget(calibration, ids=book.ids[:300])
    assert forgetting.calibration.model.expiries == "shared"
    assert same(forgetting.calibration, so.calibrate(book[300:], so.Heston()))


def test_nothing_of_the_calibration_given_changes():
    before = copy.deepcopy(CALIBRATION.to_dict())
    so.forget(CALIBRATION, ids=SOME)
    assert CALIBRATION.to_dict() == before
    assert len(CALIBRATION.quotes) == 540


def test_ids_a_condition_and_the_quotes_themselves_mean_the_same():
    named = so.forget(CALIBRATION, ids=BOOK.ids[BOOK.labels["day"] == 8].tolist())
    asked = so.forget(CALIBRATION, where="day = 8")
    given = so.forget(CALIBRATION, quotes=BOOK[BOOK.labels["day"] == 8])
    assert named.ids.tolist() == asked.ids.tolist() == given.ids.tolist()
    assert named.parameters == asked.parameters == given.parameters
    assert so.forget(CALIBRATION, ids=str(BOOK.ids[3])).count == 1


@pytest.mark.parametrize("nothing", [{"ids": []}, {"where": "day > 1000"}, {"quotes": BOOK[:0]}])
def test_forgetting_nothing_is_the_identity(nothing):
    forgetting = so.forget(CALIBRATION, **nothing)
    assert forgetting.calibration is CALIBRATION
    assert forgetting.parameters == CALIBRATION.parameters
    assert forgetting.count == 0


def test_a_tolerance_takes_the_step_where_it_is_certified_and_says_so():
    fresh = so.calibrate(BOOK.without(SOME), so.Heston())
    quick = so.forget(CALIBRATION, ids=SOME, tolerance=0.05)
    assert quick.operator == "downdate"
    assert quick.path[0].startswith("downdate: one step misses the optimum by at most")
    errors = [abs(quick.parameters[n] - fresh.parameters[n]) / fresh.standard_errors[n] for n in fresh.parameters]
    assert max(errors) <= quick.step_error.error <= 0.05
    assert same(quick.calibration, fresh)


def test_a_tolerance_too_small_for_one_step_gets_the_exact_answer_and_the_reason():
    forgetting = so.forget(CALIBRATION, ids=SOME, tolerance=1e-7)
    assert forgetting.operator == "recalibrate"
    assert [sentence.split()[0] for sentence in forgetting.path] == ["downdate", "recalibrate:"]
    assert same(forgetting.calibration, so.calibrate(BOOK.without(SOME), so.Heston()))


@pytest.mark.parametrize(
    ("options", "why"), [({"loss": "huber"}, "robust loss"), ({"feller": "enforce"}, "Feller's condition")]
)
def test_what_a_step_cannot_stand_for_is_passed_over_with_its_reason(options, why):
    calibration = so.calibrate(BOOK, so.Heston(), **options)
    forgetting = so.forget(calibration, ids=SOME, tolerance=0.1)
    assert why in forgetting.path[0]
    assert forgetting.parameters == so.calibrate(BOOK.without(SOME), so.Heston(), **options).parameters
    with raises(UsageError, mentions={"operator"}):
        so.forget(calibration, ids=SOME, operator="downdate")


def test_a_quote_too_large_for_a_footprint_can_still_be_forgotten():
    """A sentinel of 1e9 in place of a price: no grid holds it, so there is no step; a fresh start never sees it."""
    observed = BOOK.observed.copy()
    observed[100] = 1e9
    spoilt = so.calibrate(BOOK.with_observed(observed), so.Heston())
    forgetting = so.forget(spoilt, ids=[BOOK.ids[100]], tolerance=0.1)
    assert "too large to have a footprint" in forgetting.path[0]
    assert same(forgetting.calibration, so.calibrate(BOOK.without([BOOK.ids[100]]), so.Heston()))


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_can_be_asked_for_by_name(operator):
    fresh = so.calibrate(BOOK.without(SOME), so.Heston())
    forgetting = so.forget(CALIBRATION, ids=SOME, operator=operator)
    assert forgetting.operator == operator
    assert forgetting.path[-1].startswith(f"{operator}:")
    errors = [abs(forgetting.parameters[n] - fresh.parameters[n]) / fresh.standard_errors[n] for n in fresh.parameters]
    # One step: what it certifies. Two passes: rounding. Moments: their interpolation error, far below 1e-4 here. The
    # paper's step claims nothing; on clean random deletions it is within 0.1.
    limit = {"refine": 1e-6, "resolve": 1e-4, "recalibrate": 0.0, "paper": 0.1}.get(operator)
    assert max(errors) <= (forgetting.step_error.error if limit is None else limit)
    assert same(forgetting.calibration, fresh)


def test_moments_do_not_stand_for_what_they_do_not_hold():
    for options in ({"residual": "implied_vol"}, {"loss": "huber"}):
        calibration = so.calibrate(QUIET, so.Heston(), **options)
        with raises(UsageError, mentions={"operator"}):
            so.forget(calibration, ids=QUIET.ids[:9], operator="resolve")


def test_moments_know_fellers_condition():
    calibration = so.calibrate(BOOK, so.Heston(), feller="enforce")
    fresh = so.calibrate(BOOK.without(SOME), so.Heston(), feller="enforce")
    found = so.forget(calibration, ids=SOME, operator="resolve").parameters
    # The interpolation error of the moments on this book, far below a ten-thousandth of a standard error.
    assert found == pytest.approx(fresh.parameters, rel=1e-6)


@pytest.mark.parametrize("operator", ["downdate", "refine"])
def test_a_forced_answer_outside_the_bounds_that_were_asked_for_is_refused(operator):
    at = CALIBRATION.parameters["mean_reversion"]
    tight = so.calibrate(BOOK, so.Heston(), bounds={"mean_reversion": (at - 1e-4, at + 1e-4)})
    with raises(RefusedError, mentions={"operator"}, count=420, outside=["mean_reversion"]):
        so.forget(tight, where="day < 20", operator=operator)


def test_a_forced_refinement_of_what_is_not_determined_is_refused():
    large = so.calibrate(so.paper.quotes("large", seed=42), so.Heston())
    with pytest.raises(RefusedError):
        so.forget(large, where="expiry_days > 40", operator="refine")


def test_the_three_roads_to_one_step_give_the_same_bits_through_the_door():
    found = [so.forget(CALIBRATION, ids=SOME, operator=name) for name in ("downdate", "restep", "recompute")]
    assert found[0].parameters == found[1].parameters == found[2].parameters
    assert len({one.step.equations.digest() for one in found}) == 1


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "exactly one of"),
        ({"ids": SOME, "where": "day = 1"}, "exactly one of"),
        ({"ids": SOME, "operator": "magic"}, "'magic' is unknown"),
        ({"ids": SOME, "operator": "downdate", "tolerance": 0.1}, "not both"),
        ({"ids": SOME, "tolerance": 0.0}, "above zero"),
        ({"ids": SOME, "tolerance": float("nan")}, "above zero"),
        ({"where": "dya = 1"}, "no such column"),
        ({"ids": [3, 4]}, "never row numbers"),
        ({"quotes": so.states.moments_of(BOOK[:5])}, "made from quotes"),
    ],
)
def test_a_call_that_makes_no_sense_is_answered_with_what_would(asked, says):
    with pytest.raises(UsageError, match=says):
        so.forget(CALIBRATION, **asked)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"ids": ["nobody"]}, UnknownIdError, "The id given is not among"),
        ({"ids": [BOOK.ids[0], BOOK.ids[1], BOOK.ids[0]]}, UnknownIdError, "more than once"),
        ({"where": "1"}, RefusedError, "All 540 quotes"),
        ({"where": "expiry_days = 60"}, RefusedError, "mean_reversion ran into 0.001"),
        ({"ids": BOOK.ids[4:]}, UnidentifiedError, "4 quotes"),
    ],
)
def test_what_cannot_be_answered_honestly_is_refused_with_exit_code_three(asked, error, says):
    before = CALIBRATION.to_dict()
    for how in ({}, {"tolerance": 0.5}, {"operator": "downdate"}, {"operator": "recalibrate"}):
        with pytest.raises(error) as refused:
            so.forget(CALIBRATION, **asked, **how)
        assert refused.value.exit_code == 3
        if how != {"operator": "downdate"}:
            assert says in refused.value.sentence
    assert CALIBRATION.to_dict() == before


def test_a_remainder_that_leaves_a_parameter_free_is_refused_by_its_name():
    large = so.calibrate(so.paper.quotes("large", seed=42), so.Heston())
    for how in ({}, {"tolerance": 0.5}, {"operator": "downdate"}):
        with pytest.raises(UnidentifiedError) as refused:
            so.forget(large, where="expiry_days > 40", **how)
        assert "mean_reversion" in refused.value.unidentified
        assert "no longer determine the parameters: mean_reversion" in refused.value.sentence


def test_a_remainder_that_ends_on_the_models_own_bounds_is_refused_with_the_bound():
    with raises(
        RefusedError, mentions={"bounds"}, count=270, on_bound={"mean_reversion": 0.001, "long_variance": 0.0001}
    ) as refused:
        so.forget(CALIBRATION, where="expiry_days = 60")
    assert refused.value.on_bound["mean_reversion"] == 0.001


def test_the_certificate_of_every_operator_holds_and_claims_what_it_may():
    retained = BOOK.without(SOME)
    claims = {}
    for operator in OPERATORS:
        certificate = so.forget(CALIBRATION, ids=SOME, operator=operator).certificate
        assert so.verify(certificate, retained).holds, operator
        claims[operator] = {claim.name for claim in certificate.claimed()}
    assert claims["recalibrate"] == {"STATE", "OPTIMUM", "NEVER_SEEN"}
    assert claims["downdate"] == claims["restep"] == claims["recompute"] == {"STATE", "STEP", "OPTIMUM"}
    assert "NEVER_SEEN" not in claims["refine"] | claims["resolve"]


def test_the_certificate_of_a_certified_step_claims_the_optimum_within_the_tolerance():
    certificate = so.forget(CALIBRATION, ids=SOME, tolerance=0.05).certificate
    assert {claim.name for claim in certificate.claimed()} == {"STATE", "STEP", "OPTIMUM"}
    assert so.verify(certificate, BOOK.without(SOME)).holds
    assert not so.verify(certificate, BOOK).holds


def test_a_calibration_from_moments_is_solved_from_the_subtracted_moments():
    made = so.calibrate(so.states.moments_of(BOOK), so.Heston())
    forgetting = so.forget(made, quotes=BOOK.only(SOME))
    fresh = so.calibrate(so.states.moments_of(BOOK.without(SOME)), so.Heston())
    assert forgetting.operator == "resolve"
    assert forgetting.parameters == fresh.parameters
    assert same(forgetting.calibration, fresh)
    assert so.forget(made, quotes=so.states.moments_of(BOOK.only(SOME))).parameters == fresh.parameters
    assert so.verify(forgetting.certificate, BOOK.without(SOME)).holds


def test_moments_name_no_quotes_and_say_what_they_need():
    made = so.calibrate(so.states.moments_of(BOOK), so.Heston())
    with pytest.raises(RefusedError, match="holds no quotes to find ids"):
        so.forget(made, ids=SOME)
    with raises(UsageError, mentions={"operator"}):
        so.forget(made, quotes=BOOK.only(SOME), operator="downdate")
    with raises(RefusedError, count=540):
        so.forget(made, quotes=BOOK)
    stranger = so.synthetic.random_quotes(5, maturities=1, seed=1)
    altered = BOOK.only(SOME).with_observed(BOOK.only(SOME).observed + 1.0)
    for never_in in (stranger, altered):
        with pytest.raises(UsageError, match="never in"):
            so.forget(made, quotes=never_in)


def test_a_notebook_shows_what_the_summary_says():
    forgetting = so.forget(CALIBRATION, ids=SOME)
    shown, said = forgetting._repr_html_(), forgetting.summary()
    cells = re.findall(r"<td>([^<]*)</td>", shown)
    assert cells == " ".join(line for line in said.splitlines()[1:6]).split()
    assert all(html.escape(sentence) in shown for sentence in forgetting.path)
    assert f"{len(SOME)} of {len(BOOK)} quotes" in shown


def test_the_summary_shows_before_after_and_the_path():
    shown = so.forget(CALIBRATION, ids=SOME).summary()
    assert "mean_reversion" in shown
    assert f"forgotten  {len(SOME)} of 540 quotes" in shown
    assert "recalibrate: the retained quotes" in shown


def test_every_operator_but_moments_takes_a_model_of_your_own():
    x = np.linspace(0.0, 3.0, 60)
    noise = 1e-3 * np.random.default_rng(5).standard_normal(60)
    quotes = so.Quotes.from_columns(ids=[f"q{i}" for i in range(60)], observed=2.0 * np.exp(-0.7 * x) + noise, x=x)
    model = so.custom_model("decay", parameters={"a": 1.0, "b": 1.0}, price=lambda a, b, x: a * np.exp(-b * x))
    calibration, some = so.calibrate(quotes, model), quotes.ids[::7]
    fresh = so.calibrate(quotes.without(some), model)
    assert same(so.forget(calibration, where="x < 0.5").calibration, so.calibrate(quotes[x >= 0.5], model))
    steps = [so.forget(calibration, ids=some, operator=name) for name in ("downdate", "restep", "recompute")]
    assert steps[0].parameters == steps[1].parameters == steps[2].parameters
    assert so.forget(calibration, ids=some, operator="refine").parameters == pytest.approx(fresh.parameters, rel=1e-8)
    quick = so.forget(calibration, ids=some, tolerance=0.05)
    errors = [abs(quick.parameters[n] - fresh.parameters[n]) / fresh.standard_errors[n] for n in fresh.parameters]
    assert quick.operator == "downdate"
    assert max(errors) <= quick.step_error.error
    with pytest.raises(UsageError, match="European options"):
        so.forget(calibration, ids=some, operator="resolve")
