"""Verification confirms what is so, and catches every fake we could think of."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.independent_state import independent_block
from strikeout.assurance.issue import Answer, issue
from strikeout.forgetting.forget import forget
from strikeout.statistics.moments import Basis, moments_of
from strikeout.statistics.system import System
from strikeout.store.signing import verify
from tests.calibration.smile_model import Smile
from tests.calibration.smile_model import book as smile_book


@pytest.fixture(scope="module")
def case():
    """A book, a calibration of all of it, the retained quotes, and the calibration of those."""
    book = so.paper.quotes("small", seed=21)
    gone = book.ids[10:40]
    kept = book.without(gone)
    return book, so.calibrate(book, so.Heston()), kept, so.calibrate(kept, so.Heston())


@pytest.fixture(scope="module")
def certificate(case):
    _, before, _, after = case
    return issue(before, Answer(after.parameters, "recalibrate"), after=after)


def stepped(case, left, *, tolerance=0.1):
    """A certificate of one step from these normal equations."""
    before = case[1]
    step = dict(zip(left.schema.parameters, left.schema.reference + left.step(), strict=True))
    return issue(before, Answer(step, "downdate", tolerance=tolerance), system=System.of(left))


@pytest.fixture(scope="module")
def one_step(case):
    book, before, kept, _ = case
    gone = book.ids[~np.isin(book.ids, kept.ids)]
    footprints = before.footprints.whole
    return stepped(case, footprints.total().less(footprints, footprints.places(gone)), tolerance=0.1)


def without_search(certificate):
    """The same with no claim of a search, as a refinement would have it."""
    claims = {name: facts for name, facts in certificate.claims.items() if name != "NEVER_SEEN"}
    asked = {name: x for name, x in certificate.objective.items() if name not in ("starts", "feller", "threshold")}
    obstacles = {**certificate.obstacles, "NEVER_SEEN": "NO_CALIBRATION"}
    return replace(certificate, claims=claims, obstacles=obstacles, objective=asked, operator="refine")


def failed(verification):
    return {check.name for check in verification.checks if check.holds is False}


def test_an_honest_certificate_holds_and_has_no_reasons(case, certificate, one_step):
    for made in (certificate, one_step, certificate.to_bytes()):
        found = verify(made, case[2])
        assert found.holds, found.summary()
        assert found
        assert found.reasons == ()
    assert {check.name: check.holds for check in verify(certificate, case[2]).checks} == {
        "SIGNATURE": None, "COUNT": True, "STATE": True, "STEP": None, "OPTIMUM": True, "NEVER_SEEN": True,
    }  # fmt: skip
    assert verify(certificate, case[2]).headline == (
        "Verified: the state is right, the parameters follow from the retained quotes, the parameters are an optimum."
    )


def test_the_order_of_the_retained_quotes_does_not_matter(case, certificate, one_step):
    shuffled = case[2][np.random.default_rng(0).permutation(len(case[2]))]
    assert verify(certificate, shuffled).holds
    assert verify(one_step, shuffled).holds


def test_a_fake_forget_that_kept_everything_is_caught(case, certificate):
    _, before, kept, _ = case
    fake = issue(before, Answer(before.parameters, "recalibrate"), after=before)
    fake = replace(fake, counts=certificate.counts, state={**fake.state, "count": len(kept)})
    found = verify(fake, kept)
    assert not found.holds
    assert failed(found) == {"STATE", "OPTIMUM", "NEVER_SEEN"}
    assert any("other quotes" in reason for reason in found.reasons)


def test_a_fake_that_took_only_the_number_away_is_caught(case):
    """The right count over the sums of the whole book."""
    _, before, kept, _ = case
    whole = before.footprints.whole.total()
    fake = stepped(case, type(whole)(whole.schema, whole.words, len(kept)))
    assert failed(verify(fake, kept)) == {"STATE", "STEP", "OPTIMUM"}


def test_a_wrong_sign_is_caught(case):
    _, before, kept, _ = case
    gone = before.footprints.whole.without(kept.ids).total()
    doubled = before.footprints.whole.total() + gone
    fake = stepped(case, type(doubled)(doubled.schema, doubled.words, len(kept)))
    assert failed(verify(fake, kept)) == {"STATE", "STEP", "OPTIMUM"}


def test_a_wrong_set_of_the_same_size_is_caught(case):
    book, before, kept, _ = case
    others = book.without(book.ids[100:130])
    after = so.calibrate(others, so.Heston())
    fake = issue(before, Answer(after.parameters, "recalibrate"), after=after)
    assert fake.counts["retained"] == len(kept)
    assert failed(verify(fake, kept)) == {"STATE", "OPTIMUM", "NEVER_SEEN"}
    assert failed(verify(stepped(case, before.footprints.whole.only(others.ids).total()), kept)) == {
        "STATE",
        "STEP",
        "OPTIMUM",
    }


def test_a_single_quote_too_many_is_caught(case, certificate):
    book, _, kept, _ = case
    assert "COUNT" in failed(verify(certificate, kept.without(kept.ids[:1])))
    assert {"COUNT", "STATE", "NEVER_SEEN"} <= failed(verify(certificate, book))


def test_a_stale_state_is_caught(case, certificate):
    """One retained price was corrected since, by a hundredth of a cent."""
    kept = case[2]
    observed = kept.observed.copy()
    observed[5] += 1e-4
    assert {"STATE", "NEVER_SEEN"} <= failed(verify(certificate, kept.with_observed(observed)))


@pytest.mark.parametrize("name", ["mean_reversion", "correlation"])
def test_a_parameter_altered_in_its_last_bit_is_caught(case, certificate, one_step, name):
    for made, claim in ((certificate, "NEVER_SEEN"), (one_step, "STEP")):
        bit = np.nextafter(made.values()[name], np.inf).item()
        altered = replace(made, parameters={**made.parameters, name: bit.hex()})
        found = verify(altered, case[2])
        assert failed(found) == {claim}
        assert name in found.reasons[0]


def test_parameters_a_standard_error_away_are_no_optimum(case, certificate):
    _, _, kept, after = case
    moved = after.parameters["correlation"] + after.standard_errors["correlation"]
    altered = replace(certificate, parameters={**certificate.parameters, "correlation": moved.hex()})
    assert {"OPTIMUM", "NEVER_SEEN"} == failed(verify(altered, kept))
    outside = replace(certificate, parameters={**certificate.parameters, "correlation": (0.9995).hex()})
    reasons = verify(outside, kept).reasons
    assert any("outside its bounds" in reason for reason in reasons)


def test_altered_bytes_are_caught(case, certificate):
    data = certificate.to_bytes()
    found = verify(data.replace(b'"forgotten":30', b'"forgotten":31'), case[2])
    assert not found.holds
    assert "changed since" in found.reasons[0]
    assert not verify(b"", case[2]).holds


def test_a_certificate_that_claims_nothing_does_not_hold(case, certificate):
    bare = {name: certificate.objective[name] for name in ("weights", "residual", "select")}
    silent = replace(
        certificate,
        claims={},
        obstacles=dict.fromkeys(certificate.made, "FAR"),
        parameters={},
        state={},
        objective=bare,
    )
    found = verify(silent, case[2])
    assert not found.holds
    assert found.reasons == ("The certificate claims nothing.",)


@pytest.mark.parametrize("count", [1, 4, 5])
def test_an_optimum_is_not_told_from_as_few_quotes_as_parameters(case, certificate, count):
    found = {check.name: check for check in verify(certificate, case[2][:count]).checks}
    assert found["OPTIMUM"].holds is False
    assert found["OPTIMUM"].found == f"Too few quotes are left: {count} for 5 free parameters."


def test_nothing_is_raised_whatever_is_asked(case, certificate, one_step):
    kept = case[2]
    half = {**certificate.claims, "OPTIMUM": {}}
    for made in (
        replace(certificate, objective={}),
        replace(certificate, state={}),
        replace(certificate, claims={}),
        replace(certificate, claims=half),
        replace(certificate, model="sabr/numpy-1"),
        replace(certificate, model="heston/native"),
        replace(certificate, parameters={}),
        replace(certificate, build={"numpy": object()}),
        replace(one_step, state={**one_step.state, "reference": {}}),
        None,
    ):
        found = verify(made, kept)
        assert not found.holds
        assert found.reasons
    for quotes in (None, kept[:0], kept[:3], smile_book()):
        assert not verify(certificate, quotes).holds


@pytest.mark.parametrize(
    ("seed", "count", "maturities", "left", "noise"),
    [(746498, 86, 5, 11, 1e-4), (267257, 46, 36, 8, 1e-4), (542123, 46, 17, 9, 1e-3)],
)
def test_a_step_within_its_tolerance_is_confirmed_where_few_quotes_are_left(seed, count, maturities, left, noise):
    """A tolerance is a parameter's own standard errors. The joint length of the next step is up to 1.09 in these books,
    while no parameter is off by more than 0.03."""
    book = so.synthetic.random_quotes(count, maturities=maturities, seed=seed, noise=noise)
    done = forget(so.calibrate(book, so.Heston()), ids=book.ids[left:], tolerance=0.05)
    assert done.operator == "downdate"
    found = verify(done.certificate, book[:left])
    assert found.holds, found.reasons
    tighter = {"tolerance": (1e-4).hex()}
    fake = replace(done.certificate, claims={**done.certificate.claims, "OPTIMUM": tighter})
    assert failed(verify(fake, book[:left])) == {"OPTIMUM"}


def test_what_was_laid_down_and_not_found_is_said(case, certificate):
    """Stale parameters under the name of fixed ones: what is claimed of the rest is true, so it must be told."""
    _, before, kept, _ = case
    stale = {name: before.parameters[name] for name in list(before.parameters)[:4]}
    after = so.calibrate(kept, so.Heston(), fixed=stale)
    made = issue(after, Answer(after.parameters, "recalibrate"), after=after)
    found = verify(made, kept)
    assert found.holds
    assert found.laid_down == tuple(f"{name} is fixed at {value:g}" for name, value in stale.items())
    assert verify(certificate, kept).laid_down == ()


def test_what_is_no_certificate_is_said_in_a_word(case):
    for thing in ("certificate.json", None, 3):
        assert verify(thing, case[2]).reasons == (
            f"BYTES: A certificate or the bytes of one are needed; got {type(thing).__name__}.",
        )


def test_an_optimum_the_quotes_do_not_determine_is_not_confirmed(case, certificate):
    """One expiry: the model fits it well, and mean reversion runs into the model's own bound, or is free."""
    book, before, _, _ = case
    kept = book[book.contracts.expiry == book.contracts.expiry.min()]
    after = so.calibrate(kept, so.Heston())
    made = without_search(certificate)
    made = replace(
        made,
        counts={"forgotten": len(book) - len(kept), "retained": len(kept)},
        parameters={name: value.hex() for name, value in after.parameters.items()},
        state=issue(before, Answer(after.parameters, "recalibrate"), after=after).state,
        objective={**made.objective, "on_bound": {name: value.hex() for name, value in after.on_bound.items()}},
    )
    assert after.on_bound
    found = verify(made, kept)
    assert failed(found) == {"OPTIMUM"}
    assert "bound that was asked for" in found.reasons[0]
    found = verify(replace(made, objective={**made.objective, "on_bound": {}}), kept)
    assert failed(found) == {"OPTIMUM"}
    assert "do not determine" in found.reasons[0]


def test_a_bound_the_quotes_pull_away_from_is_no_optimum(case):
    """The truth, 0.3, is inside these bounds; the certificate says the search ended on one of them."""
    kept = case[2]
    for bounds, end in (((0.25, 0.5), 0.25), ((0.1, 0.35), 0.35)):
        at = so.calibrate(kept, so.Heston(), fixed={"vol_of_vol": end})
        inside = so.calibrate(kept, so.Heston(), bounds={"vol_of_vol": bounds})
        made = issue(inside, Answer(inside.parameters, "recalibrate"), after=inside)
        assert verify(made, kept).holds
        fake = replace(
            made,
            parameters={name: value.hex() for name, value in at.parameters.items()},
            objective={**made.objective, "on_bound": {"vol_of_vol": end.hex()}},
        )
        found = verify(fake, kept)
        assert failed(found) == {"OPTIMUM", "NEVER_SEEN"}
        assert "pull it back inside" in found.reasons[0]


SETTINGS = [
    {"loss": "huber"},
    {"residual": "implied_vol", "weights": "none"},
    {"weights": "vega"},
    {"fixed": {"mean_reversion": 2.5}},
    {"bounds": {"vol_of_vol": (0.05, 0.25)}},
    {"feller": "enforce"},
    {"starts": 1},
    {"starts": {"mean_reversion": 3.0, "long_variance": 0.05, "vol_of_vol": 0.5, "correlation": -0.3,
                "initial_variance": 0.05}},
]  # fmt: skip


@pytest.mark.parametrize("asked", SETTINGS, ids=str)
def test_certificates_hold_however_the_calibration_was_asked_for(asked):
    book = so.synthetic.random_quotes(300, maturities=5, seed=2)
    kept = book[20:]
    before, after = so.calibrate(book, so.Heston(), **asked), so.calibrate(kept, so.Heston(), **asked)
    made = issue(before, Answer(after.parameters, "recalibrate"), after=after)
    found = verify(made.to_bytes(), kept)
    assert found.holds, found.summary()
    assert "NEVER_SEEN" in {claim.name for claim in made.claimed()}
    assert not verify(made, book[:280]).holds


@pytest.mark.parametrize("how", [{}, {"weights": "vega"}, {"basis": Basis("scattered", 24, 10)}], ids=str)
def test_a_calibration_made_from_moments_is_verified_from_the_quotes(how):
    book = so.synthetic.random_quotes(400, maturities=6, seed=9)
    whole, gone = moments_of(book, **how), moments_of(book[:40], **how)
    before, after = so.calibrate(whole, so.Heston()), so.calibrate(whole - gone, so.Heston())
    made = issue(before, Answer(after.parameters, "resolve"), after=after)
    assert {claim.name for claim in made.claimed()} == {"STATE", "OPTIMUM", "NEVER_SEEN"}
    assert verify(made.to_bytes(), book[40:]).holds
    assert {"STATE", "NEVER_SEEN"} <= failed(verify(made, book[:360]))


@pytest.mark.parametrize("asked", [
    {}, {"tolerance": 0.1}, *({"operator": name} for name in ("downdate", "restep", "recompute", "resolve", "refine"))
], ids=str)  # fmt: skip
def test_the_certificate_of_every_operator_holds_for_the_retained_quotes_and_no_others(case, asked):
    book, before, kept, _ = case
    gone = book.ids[~np.isin(book.ids, kept.ids)]
    made = forget(before, ids=gone, **asked).certificate
    assert verify(made.to_bytes(), kept).holds, verify(made, kept).summary()
    assert {claim.name for claim in made.claimed()} & {"STEP", "OPTIMUM", "NEVER_SEEN"}
    assert not verify(made, book).holds
    assert not verify(made, book.without(book.ids[100:130])).holds


def test_a_step_with_a_fixed_parameter_is_verified_as_it_was_solved(case):
    book, _, kept, _ = case
    gone = book.ids[~np.isin(book.ids, kept.ids)]
    made = forget(so.calibrate(book, so.Heston(), fixed={"mean_reversion": 2.0}), ids=gone, tolerance=0.5).certificate
    found = verify(made, kept)
    assert "STEP" in made.claims
    assert found.holds, found.summary()
    assert found.laid_down == ("mean_reversion is fixed at 2",)
    free = verify(replace(made, objective={**made.objective, "fixed": {}}), kept)
    assert failed(free) == {"STEP", "OPTIMUM"}


def test_a_model_of_ones_own_and_weights_of_ones_own_have_to_be_given_again():
    book = smile_book(noise=1e-3)
    weight = dict(zip(book.ids.tolist(), np.linspace(1.0, 2.0, len(book)).tolist(), strict=True))
    kept = book[2:]
    before, after = (so.calibrate(quotes, Smile(), weights=weight) for quotes in (book, kept))
    made = issue(before, Answer(after.parameters, "recalibrate"), after=after)
    assert "q0" not in made.to_bytes().decode()
    assert verify(made, kept, model=Smile(), weights=weight).holds
    assert "model=" in verify(made, kept, weights=weight).reasons[0]
    assert "weights=" in verify(made, kept, model=Smile()).reasons[0]
    others = dict.fromkeys(weight, 1.0)
    assert "STATE" in failed(verify(made, kept, model=Smile(), weights=others))
    assert "of the model" in verify(made, kept, model=Smile(name="another"), weights=weight).reasons[0]


@pytest.mark.parametrize("asked", [{}, {"residual": "implied_vol"}, {"weights": "vega"}], ids=str)
def test_the_audit_in_whole_numbers_finds_the_state_of_the_calibration(asked):
    book = so.synthetic.random_quotes(120, maturities=4, seed=5)
    calibration = so.calibrate(book, so.Heston(), **asked)
    how = {"residual": "price", "weights": "given", **asked}
    start = calibration.model.parameters.starts[0]
    audit = independent_block(book, calibration.model, start, **how)
    assert audit.digest() == calibration.state.digest()
    assert audit.matrix() == calibration.state.reduced().system().rows
    assert independent_block(book[1:], calibration.model, start, **how).digest() != audit.digest()


def test_verifying_never_imports_an_operator():
    code = (
        "import sys, strikeout as so\n"
        "from strikeout.assurance.issue import Answer, issue\n"
        "from strikeout.store.signing import verify\n"
        "book = so.paper.quotes('small')\n"
        "before, after = so.calibrate(book, so.Heston()), so.calibrate(book[9:], so.Heston())\n"
        "made = issue(before, Answer(after.parameters, 'recalibrate'), after=after)\n"
        "assert verify(made.to_bytes(), book[9:]).holds\n"
        "assert not [name for name in sys.modules if 'forgetting' in name]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
