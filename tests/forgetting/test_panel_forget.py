"""Striking quotes and whole days out of a panel: what is left is what a fresh panel of the rest gives."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnidentifiedError, UnknownIdError, UsageError
from strikeout.forgetting.downdate import downdate
from tests.raising import raises

BOOK = so.synthetic.panel_quotes(days=12, seed=3)
dates = BOOK.labels["date"].astype(str)
days = sorted(set(dates.tolist()))
PANEL = so.calibrate(BOOK, so.Heston(), panel="date")
DAY = BOOK.ids[dates == days[4]]
SOME = BOOK.ids[::13]  # from every day, a quote or two


def same(one, other) -> bool:
    """Every number of the two, and what they know of their quotes."""
    return one.to_dict() == other.to_dict() and one.state.digest() == other.state.digest()


@cache
def fresh_without(ids: tuple[str, ...]):
    return so.calibrate(BOOK.without(list(ids)), so.Heston(), panel="date")


def apart(answer, optimum) -> float:
    """The worst parameter's distance, shared or latent, in standard errors of the optimum."""
    shared = [abs(answer.parameters[n] - v) / optimum.standard_errors[n] for n, v in optimum.parameters.items()]
    latent = [abs(answer.latent[g] - v) / optimum.latent_standard_errors[g] for g, v in optimum.latent.items()]
    return max(shared + latent)


def test_a_forgotten_day_takes_its_latent_parameter_along():
    done = so.forget(PANEL, where=f"date = '{days[4]}'")
    assert done.ids.tolist() == DAY.tolist()
    assert done.dropped == (days[4],)
    assert days[4] not in done.latent
    assert len(done.latent) == len(days) - 1
    assert done.latent == done.calibration.latent
    assert done.operator == "recalibrate"


@pytest.mark.parametrize(
    "gone", [DAY, SOME, BOOK.ids[:1], BOOK.ids[dates > days[6]]], ids=["day", "some", "one", "half"]
)
def test_forgetting_equals_never_having_seen(gone):
    done = so.forget(PANEL, ids=gone)
    fresh = fresh_without(tuple(gone.tolist()))
    assert done.parameters == fresh.parameters
    assert done.latent == fresh.latent
    assert same(done.calibration, fresh)
    assert not same(PANEL, fresh)


@pytest.mark.parametrize(
    "options",
    [
        {"residual": "implied_vol"},
        {"weights": "vega"},
        {"weights": np.linspace(0.5, 2.0, len(BOOK))},
        {"weights": np.where(dates == days[2], 0.0, 1.0)},
        {"fixed": {"mean_reversion": 2.0}},
        {"bounds": {"initial_variance": (0.01, 0.0877)}},
        {"feller": "enforce"},
        {"starts": 1},
    ],
    ids=lambda options: ", ".join(options),
)
def test_forgetting_equals_never_having_seen_with_every_setting(options):
    panel = so.calibrate(BOOK, so.Heston(), panel="date", **options)
    done = so.forget(panel, ids=[*DAY, *SOME[:3]])
    weights = options.get("weights")
    if isinstance(weights, np.ndarray):
        options = {**options, "weights": weights[~np.isin(BOOK.ids, done.ids)]}
    fresh = so.calibrate(BOOK.without(done.ids), so.Heston(), panel="date", **options)
    assert same(done.calibration, fresh)
    assert done.calibration.settings == fresh.settings


def test_the_states_of_days_that_lose_nothing_are_taken_over_not_built_again():
    after = so.forget(PANEL, ids=[*DAY, BOOK.ids[0]]).calibration
    touched = {days[0], days[4]}
    for day in after.groups:
        is_same = after.state.blocks[day] is PANEL.state.blocks[day]
        assert is_same == (day not in touched), day
    assert same(after, fresh_without((*DAY.tolist(), str(BOOK.ids[0]))))


def test_a_state_that_cannot_be_built_before_does_not_stand_in_the_way_of_forgetting():
    """A price of two hundred million is beyond the grid: the very quote to strike out."""
    prices = BOOK.observed.copy()
    prices[20] = 2e8
    absurd = so.calibrate(BOOK.with_observed(prices), so.Heston(), panel="date")
    with raises(RefusedError, column="residual", ids=["d0001-60-80"], largest=2097152.0):
        absurd.state  # noqa: B018
    done = so.forget(absurd, ids=BOOK.ids[20:21])
    assert same(done.calibration, fresh_without((str(BOOK.ids[20]),)))
    assert done.calibration.known is None


def test_a_tolerance_takes_the_step_where_it_is_certified():
    quick = so.forget(PANEL, ids=DAY, tolerance=0.05)
    assert quick.operator == "downdate"
    assert quick.step_error.error <= 0.05
    assert apart(quick, fresh_without(tuple(DAY.tolist()))) <= quick.step_error.error
    assert same(quick.calibration, fresh_without(tuple(DAY.tolist())))


def test_a_tolerance_that_no_step_keeps_is_answered_by_calibrating_anew():
    """A decimal shift on one day: the parameters were fitted to it, and one step from there is nowhere near."""
    bad = dates == days[4]
    shifted = so.calibrate(
        BOOK.with_observed(np.where(bad, 10.0 * BOOK.observed, BOOK.observed)), so.Heston(), panel="date"
    )
    done = so.forget(shifted, ids=DAY, tolerance=0.05)
    assert done.operator == "recalibrate"
    assert done.path[0].startswith("downdate passed over: ")
    assert same(done.calibration, fresh_without(tuple(DAY.tolist())))


@pytest.mark.parametrize("seed", range(12))
def test_the_predicted_error_of_a_step_is_within_a_fifth_of_the_true_one(seed):
    """Days and quotes at random out of noisy panels; below a millionth of a standard error rounding speaks too."""
    rng = np.random.default_rng(seed)
    book = so.synthetic.panel_quotes(days=8, seed=seed, noise=5e-3)
    panel = so.calibrate(book, so.Heston(), panel="date")
    on = book.labels["date"].astype(str)
    gone = book.ids[(on == rng.choice(panel.groups)) | (rng.random(len(book)) < 0.05)]
    step = so.forget(panel, ids=gone, operator="downdate")
    true = apart(step, so.calibrate(book.without(gone), so.Heston(), panel="date"))
    assert step.step_error.predicted == pytest.approx(true, rel=0.2, abs=1e-6)
    assert true <= step.step_error.error


def test_the_step_rebuilt_from_raw_quotes_has_the_same_bits():
    for gone in (DAY, SOME):
        downdated = so.forget(PANEL, ids=gone, operator="downdate")
        rebuilt = so.forget(PANEL, ids=gone, operator="restep")
        assert downdated.parameters == rebuilt.parameters
        assert downdated.latent == rebuilt.latent
        assert downdated.step.system == rebuilt.step.system
        assert downdated.step.system.digest() == rebuilt.step.system.digest()


def test_a_downdate_of_a_day_leaves_the_other_days_alone():
    step = downdate(PANEL.footprints, DAY)
    assert step.system.groups == tuple(day for day in days if day != days[4])
    assert all(step.system.blocks[day] is PANEL.system.blocks[day] for day in step.system.groups)
    fast = PANEL.system.step_without(days[4])
    assert step.parameters == fast.parameters
    assert step.latent == fast.latent


def test_fixed_parameters_stay_where_they_are_in_a_step():
    panel = so.calibrate(BOOK, so.Heston(), panel="date", fixed={"mean_reversion": 2.0})
    step = so.forget(panel, ids=DAY, operator="downdate")
    assert step.parameters["mean_reversion"] == 2.0
    fresh = so.calibrate(BOOK.without(DAY), so.Heston(), panel="date", fixed={"mean_reversion": 2.0})
    moved = {name: value for name, value in fresh.parameters.items() if name != "mean_reversion"}
    assert {name: step.parameters[name] for name in moved} == pytest.approx(moved, rel=1e-5)


def test_a_latent_parameter_on_its_bound_stays_there_in_a_step():
    panel = so.calibrate(BOOK, so.Heston(), panel="date", bounds={"initial_variance": (0.01, 0.0877)})
    held = [day for day in panel.latent_on_bound if day != days[4]]
    assert held
    step = so.forget(panel, ids=DAY, operator="downdate")
    assert all(step.latent[day] == 0.0877 for day in held)
    assert so.verify(step.certificate, BOOK.without(DAY)).holds
    done = so.forget(panel, ids=DAY)
    assert so.verify(done.certificate, BOOK.without(DAY)).holds


def test_restoring_changes_no_bit():
    done = so.forget(PANEL, ids=DAY)
    assert so.restore(done) is PANEL
    assert same(so.restore(done, done.calibration), PANEL)
    later = so.forget(done.calibration, ids=SOME[~np.isin(SOME, DAY)])
    gone = SOME[~np.isin(SOME, DAY)]
    assert same(so.restore(done, later.calibration), fresh_without(tuple(gone.tolist())))


def test_learning_equals_having_had_them_from_the_beginning():
    first = so.calibrate(BOOK[dates < days[8]], so.Heston(), panel="date")
    assert same(so.learn(first, BOOK[dates >= days[8]]), PANEL)
    assert so.learn(first, BOOK[:0]) is first
    with raises(UsageError, ids=["d0000-30-80"]):
        so.learn(PANEL, BOOK[:1])


def test_a_window_rolls_on_without_touching_the_days_that_stay():
    window = so.calibrate(BOOK[dates < days[8]], so.Heston(), panel="date")
    rolled = so.roll(window, BOOK[dates == days[8]], where=f"date = '{days[0]}'")
    assert rolled.groups == tuple(days[1:9])
    assert all(rolled.state.blocks[day] is window.state.blocks[day] for day in days[1:8])
    assert same(rolled, so.calibrate(BOOK[(dates > days[0]) & (dates <= days[8])], so.Heston(), panel="date"))
    assert same(rolled, so.learn(so.forget(window, where=f"date = '{days[0]}'").calibration, BOOK[dates == days[8]]))


def test_a_correction_of_a_quote_is_not_mistaken_for_the_quote():
    """Same id, same day, another price: the day is touched, and its state is built anew."""
    one = BOOK[:1]
    corrected = one.with_observed(one.observed + 1e-3)
    rolled = so.roll(PANEL, corrected, forget=one.ids)
    prices = BOOK.observed.copy()
    prices[0] += 1e-3
    assert same(rolled, so.calibrate(BOOK.with_observed(prices), so.Heston(), panel="date"))


def test_nothing_of_the_calibration_given_changes():
    before, digest = copy.deepcopy(PANEL.to_dict()), PANEL.state.digest()
    so.forget(PANEL, ids=SOME)
    so.forget(PANEL, ids=SOME, operator="downdate")
    assert PANEL.to_dict() == before
    assert PANEL.state.digest() == digest


def test_forgetting_nothing_is_the_identity():
    done = so.forget(PANEL, where="day > 1000")
    assert done.calibration is PANEL
    assert done.latent == PANEL.latent
    assert done.count == 0


def test_a_preview_tells_where_the_shared_parameters_go_and_changes_nothing():
    look = so.preview(PANEL, ids=DAY)
    assert look.operator == "downdate"
    assert look.parameters == so.forget(PANEL, ids=DAY, operator="downdate").parameters
    assert look.retained == len(BOOK) - len(DAY)
    refused = so.preview(PANEL, where="expiry_years > 0.13")
    assert refused.refusal is not None or refused.error == float("inf")
    assert so.preview(PANEL, where="1").refusal.code == "refused"


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"where": "1"}, RefusedError, "All 180 quotes"),
        ({"ids": ["nobody"]}, UnknownIdError, "not among"),
        ({"ids": SOME, "operator": "resolve"}, UsageError, "moments have one state for all groups"),
        ({"ids": SOME, "operator": "magic"}, UsageError, "'magic' is unknown"),
        ({"ids": SOME, "operator": "downdate", "tolerance": 0.1}, UsageError, "not both"),
        ({"quotes": so.states.moments_of(BOOK[:5])}, UsageError, "made from quotes"),
        ({"ids": BOOK.ids[4:]}, UnidentifiedError, "4 quotes of 1 date"),
    ],
)
def test_what_makes_no_sense_or_cannot_be_answered_is_refused_with_a_sentence(asked, error, says):
    with pytest.raises(error, match=says):
        so.forget(PANEL, **asked)


def test_what_is_left_of_a_panel_must_determine_its_parameters():
    """One expiry cannot tell mean reversion from long variance, on however many days."""
    for how in ({}, {"tolerance": 0.5}, {"operator": "downdate"}):
        with pytest.raises(RefusedError):
            so.forget(PANEL, where="expiry_years > 0.13", **how)


def test_enforced_fellers_condition_takes_no_step():
    panel = so.calibrate(BOOK, so.Heston(), panel="date", feller="enforce")
    with raises(UsageError, mentions={"operator"}):
        so.forget(panel, ids=DAY, operator="downdate")
    assert so.forget(panel, ids=DAY, tolerance=0.5).operator == "recalibrate"


def test_the_summary_names_the_days_that_went():
    shown = so.forget(PANEL, ids=DAY).summary()
    assert f"11 of 12 left; {days[4]} removed whole" in shown
    assert "forgotten  15 of 180 quotes" in shown
    assert "the states of 11 of 11 groups are those of before" in shown


def test_any_label_makes_a_panel_and_can_be_forgotten():
    panel = so.calibrate(BOOK, so.Heston(), panel="day")
    done = so.forget(panel, where="day = 3")
    assert done.dropped == (3,)
    assert same(done.calibration, so.calibrate(BOOK[BOOK.labels["day"] != 3], so.Heston(), panel="day"))
    assert so.verify(done.certificate, BOOK[BOOK.labels["day"] != 3]).holds


def test_a_label_of_numbers_makes_the_same_panel_after_a_csv_has_made_it_text(tmp_path):
    """Twelve days, so that 10 comes before 9 as text. State and certificate are of the days, not of their type."""
    so.write_quotes(BOOK, tmp_path / "book.csv")
    read = so.read_quotes(tmp_path / "book.csv")
    assert read.labels["day"].dtype != BOOK.labels["day"].dtype
    typed, text = (so.calibrate(quotes, so.Heston(), panel="day") for quotes in (BOOK, read))
    assert [str(day) for day in typed.groups] == list(text.groups) == [str(day) for day in range(12)]
    assert same(typed, text)
    done = so.forget(typed, where="day = 9")
    kept = BOOK.without(done.ids)
    so.write_quotes(kept, tmp_path / "kept.csv")
    assert so.verify(done.certificate, so.read_quotes(tmp_path / "kept.csv")).holds
    assert so.verify(done.certificate, kept).holds


def relabelled(book, row, **labels):
    """The quote of one row, with other labels and nothing else changed."""
    one = book[[row]]
    columns = {name: np.array([labels[name]] if name in labels else column) for name, column in one.labels.items()}
    return so.Quotes(
        ids=one.ids, contracts=one.contracts, observed=one.observed, weight=one.weight, spread=one.spread,
        labels=columns,
    )  # fmt: skip


@pytest.mark.parametrize("row", [0, 100])
def test_a_quote_rolled_to_another_day_changes_both_days_and_no_third(row):
    """Only its label differs: what it says is what it said."""
    other = days[7] if dates[row] != days[7] else days[8]
    rolled = so.roll(PANEL, relabelled(BOOK, row, date=other), forget=BOOK.ids[[row]])
    fresh = so.calibrate(rolled.book, so.Heston(), panel="date")
    assert same(rolled, fresh)
    assert rolled.counts[other] == PANEL.counts[other] + 1
    assert set(rolled.known.groups) == set(days) - {dates[row], other}
    other_label = so.roll(PANEL, relabelled(BOOK, row, source="elsewhere"), forget=BOOK.ids[[row]])
    assert set(other_label.known.groups) == set(days)  # no label but the panel's own reaches a number


def test_a_day_that_leads_out_of_the_models_bounds_is_named_in_the_refusal():
    fixed, top = {"mean_reversion": 2.0, "long_variance": 0.06, "correlation": -0.6}, so.Heston().parameters.upper[4]
    prices, _ = so.Heston().linearize({**fixed, "vol_of_vol": 0.3, "initial_variance": top}, BOOK.contracts)
    wild = np.where(dates == days[5], 1.02 * prices, BOOK.observed)
    flat = np.where(dates == days[7], BOOK.contracts.intrinsic, wild)  # no variance at all: that is an answer
    panel = so.calibrate(BOOK.with_observed(flat), so.Heston(), panel="date", fixed=fixed, starts=1)
    assert panel.latent_on_bound == {days[5]: top, days[7]: 1e-8}
    with raises(RefusedError, mentions={"bounds"}, count=165, on_bound={}) as refused:
        so.forget(panel, ids=DAY)
    assert days[7] not in str(refused.value)


def test_a_refusal_on_the_way_from_a_panel_to_one_value_says_that_this_is_why():
    book = so.synthetic.panel_quotes(6, seed=1)
    few = book[np.sort(np.random.default_rng(0).permutation(len(book))[:20])]
    panel = so.calibrate(few, so.Heston(), panel="auto")
    assert panel.is_panel
    with raises(RefusedError, mentions={"fixed", "panel"}, count=19, unidentified=["mean_reversion"]):
        so.forget(panel, ids=few.ids[:1])
    asked = so.calibrate(few, so.Heston(), panel="date")
    assert so.forget(asked, ids=few.ids[:1]).calibration.converged
