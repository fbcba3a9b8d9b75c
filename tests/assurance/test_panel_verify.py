"""Certificates of panels: what is so is confirmed from the retained quotes, and every fake we could think of is not."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.independent_state import IndependentState, independent_block
from strikeout.assurance.issue import Answer, issue
from strikeout.calibration.panels import grouped
from strikeout.store.signing import verify

BOOK = so.synthetic.panel_quotes(days=10, seed=11)
PANEL = so.calibrate(BOOK, so.Heston(), panel="date")
GONE = BOOK.ids[BOOK.labels["day"] == 4]
KEPT = BOOK.without(GONE)
DONE = so.forget(PANEL, ids=GONE)
STEP = so.forget(PANEL, ids=GONE, tolerance=0.1)


def failed(verification):
    return {check.name for check in verification.checks if check.holds is False}


def bit(text: str) -> str:
    """The next double."""
    return np.nextafter(float.fromhex(text), np.inf).item().hex()


def test_an_honest_certificate_holds_whatever_the_order_of_the_quotes():
    shuffled = KEPT[np.random.default_rng(0).permutation(len(KEPT))]
    for certificate in (DONE.certificate, STEP.certificate):
        for made in (certificate, certificate.to_bytes()):
            for quotes in (KEPT, shuffled):
                assert verify(made, quotes).holds, verify(made, quotes).summary()
    assert {claim.name for claim in DONE.certificate.claimed()} == {"STATE", "OPTIMUM", "NEVER_SEEN"}
    assert {claim.name for claim in STEP.certificate.claimed()} == {"STATE", "STEP", "OPTIMUM"}


def test_no_date_and_no_id_is_in_a_certificate():
    for certificate in (DONE.certificate, STEP.certificate):
        text = certificate.to_bytes().decode()
        assert not [date for date in set(BOOK.labels["date"].tolist()) if date in text]
        assert not [name for name in BOOK.ids.tolist() if name in text]
        assert Certificate.from_bytes(certificate.to_bytes()) == certificate


def test_a_plain_certificate_is_written_as_before():
    """No word of latent parameters where there are none: the bytes and digests of old certificates stay."""
    plain = so.calibrate(so.paper.quotes("small"), so.Heston())
    content = so.forget(plain, where="day = 3").certificate.to_bytes()
    assert b'"latent"' not in content
    assert b'"panel"' not in content


def test_a_fake_forget_that_kept_everything_is_caught():
    whole = issue(PANEL, Answer(PANEL.parameters, "recalibrate", PANEL.latent), after=PANEL)
    shorter = {g: v for g, v in PANEL.latent.items() if g in DONE.latent}
    fake = replace(whole, counts=DONE.certificate.counts, latent=tuple(value.hex() for value in shorter.values()))
    assert failed(verify(fake, KEPT)) == {"STATE", "OPTIMUM", "NEVER_SEEN"}
    assert failed(verify(whole, KEPT)) == {"COUNT", "STATE", "OPTIMUM", "NEVER_SEEN"}


def test_a_wrong_day_and_a_wrong_quote_are_caught():
    other_day = BOOK.without(BOOK.ids[BOOK.labels["day"] == 5])
    other_quote = BOOK.without([*GONE[1:], BOOK.ids[0]])
    for quotes in (other_day, other_quote, BOOK):
        for certificate in (DONE.certificate, STEP.certificate):
            assert not verify(certificate, quotes).holds


def test_the_value_of_one_retained_price_is_noticed():
    prices = KEPT.observed.copy()
    prices[5] += 1e-4
    assert {"STATE", "NEVER_SEEN"} <= failed(verify(DONE.certificate, KEPT.with_observed(prices)))
    assert {"STATE", "STEP"} <= failed(verify(STEP.certificate, KEPT.with_observed(prices)))


def test_a_quote_moved_to_another_day_is_noticed():
    """The same prices and contracts; only the day of one of them is another's."""
    dates = KEPT.labels["date"].copy()
    dates[0] = dates[-1]
    moved = so.Quotes(
        ids=KEPT.ids,
        contracts=KEPT.contracts,
        observed=KEPT.observed,
        weight=KEPT.weight,
        spread=KEPT.spread,
        labels={**KEPT.labels, "date": dates},
    )
    assert {"STATE", "OPTIMUM", "NEVER_SEEN"} <= failed(verify(DONE.certificate, moved))


@pytest.mark.parametrize(("done", "claim"), [(DONE, "NEVER_SEEN"), (STEP, "STEP")], ids=["recalibrate", "downdate"])
def test_a_shared_or_latent_parameter_altered_in_its_last_bit_is_caught(done, claim):
    made = done.certificate
    shared = replace(made, parameters={**made.parameters, "correlation": bit(made.parameters["correlation"])})
    latent = replace(made, latent=(*made.latent[:3], bit(made.latent[3]), *made.latent[4:]))
    swapped = replace(made, latent=(made.latent[1], made.latent[0], *made.latent[2:]))
    assert failed(verify(shared, KEPT)) == {claim}
    assert failed(verify(latent, KEPT)) == {claim}
    assert "initial_variance of group 4" in verify(latent, KEPT).reasons[0]
    assert {claim, "OPTIMUM"} <= failed(verify(swapped, KEPT))


def test_a_latent_parameter_a_standard_error_away_is_no_optimum():
    day = DONE.calibration.groups[2]
    moved = DONE.latent[day] + DONE.calibration.latent_standard_errors[day]
    made = DONE.certificate
    altered = replace(made, latent=(*made.latent[:2], moved.hex(), *made.latent[3:]))
    assert failed(verify(altered, KEPT)) == {"OPTIMUM", "NEVER_SEEN"}
    outside = replace(made, latent=(*made.latent[:2], (30.0).hex(), *made.latent[3:]))
    assert any("outside its bounds" in reason for reason in verify(outside, KEPT).reasons)


def test_a_latent_parameter_said_to_be_held_where_it_is_not_is_no_optimum():
    made = DONE.certificate
    panel = {**made.objective["panel"], "held": [3]}
    found = verify(replace(made, objective={**made.objective, "panel": panel}), KEPT)
    assert failed(found) == {"OPTIMUM", "NEVER_SEEN"}
    assert "claimed to be held" in found.reasons[0]


def test_nothing_is_raised_whatever_is_asked():
    made = DONE.certificate
    how = made.objective
    for fake in (
        replace(made, latent=()),
        replace(made, latent=("x",)),
        replace(made, latent=made.latent[:-1]),
        replace(made, objective={**how, "panel": {}}),
        replace(made, objective={**how, "panel": {**how["panel"], "label": "desk"}}),
        replace(made, objective={**how, "panel": {**how["panel"], "latent": "correlation"}}),
        replace(made, objective={**how, "panel": {**how["panel"], "held": [99]}}),
        replace(made, objective={name: value for name, value in how.items() if name != "panel"}),
        replace(made, state={}),
        replace(STEP.certificate, state={**STEP.certificate.state, "latent_reference": []}),
    ):
        found = verify(fake, KEPT)
        assert not found.holds
        assert found.reasons
    for quotes in (None, KEPT[:0], KEPT[:3], so.paper.quotes("small")):
        assert not verify(made, quotes).holds


@pytest.mark.parametrize(
    "asked",
    [
        {"residual": "implied_vol", "weights": "none"},
        {"weights": "vega"},
        {"fixed": {"mean_reversion": 2.0}},
        {"bounds": {"vol_of_vol": (0.05, 0.25)}},
        {"bounds": {"initial_variance": (0.01, max(DONE.latent.values()) - 1e-4)}},  # the highest day is held there
        {"feller": "enforce"},
        {"starts": 1},
    ],
    ids=str,
)
def test_certificates_hold_however_the_panel_was_asked_for(asked):
    panel = so.calibrate(BOOK, so.Heston(), panel="date", **asked)
    made = so.forget(panel, ids=GONE).certificate
    found = verify(made.to_bytes(), KEPT)
    assert found.holds, found.summary()
    assert "NEVER_SEEN" in {claim.name for claim in made.claimed()}
    assert not verify(made, BOOK).holds


def test_weights_of_ones_own_have_to_be_given_again():
    weight = np.linspace(1.0, 2.0, len(BOOK))
    panel = so.calibrate(BOOK, so.Heston(), panel="date", weights=weight)
    made = so.forget(panel, ids=GONE).certificate
    by_id = dict(zip(BOOK.ids.tolist(), weight.tolist(), strict=True))
    assert verify(made, KEPT, weights=by_id).holds
    assert verify(made, KEPT, weights=weight[~np.isin(BOOK.ids, GONE)]).holds
    assert "weights=" in verify(made, KEPT).reasons[0]


def test_the_audit_in_whole_numbers_finds_the_states_and_the_step_of_the_operators():
    """Fractions of Python integers against the packed integers of the state, every digest and every bit."""
    state, rows = PANEL.footprints.system, grouped(BOOK, "date")
    parts = {
        day: independent_block(BOOK[rows[day]], PANEL.model, PANEL.theta(day), residual="price", weights="given")
        for day in PANEL.groups
    }
    audit = IndependentState("initial_variance", parts)
    assert audit.digest() == state.digest()
    shared, latents = audit.step(free=[0, 1, 2, 3])
    step = state.step()
    assert shared == step.change.tolist()
    assert latents == step.latent_changes.tolist()
    held = IndependentState("initial_variance", parts, frozenset(PANEL.groups[:2]))
    assert held.digest() != audit.digest()


def test_verifying_a_panel_never_imports_an_operator():
    code = (
        "import sys, strikeout as so\n"
        "from strikeout.assurance.issue import Answer, issue\n"
        "from strikeout.store.signing import verify\n"
        "book = so.synthetic.panel_quotes(days=4, seed=1)\n"
        "before, after = (so.calibrate(q, so.Heston(), panel='date') for q in (book, book[15:]))\n"
        "made = issue(before, Answer(after.parameters, 'recalibrate', after.latent), after=after)\n"
        "assert verify(made.to_bytes(), book[15:]).holds\n"
        "assert not [name for name in sys.modules if 'forgetting' in name]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
