"""A certificate has one form, says what it claims and what not, and gives nothing of the forgotten quotes away."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.certificate import Certificate, Claim
from strikeout.assurance.issue import Answer, issue
from strikeout.errors import UsageError
from strikeout.statistics.system import System
from tests.raising import raises


@pytest.fixture(scope="module")
def case():
    """A book, a calibration of all of it, the forgotten ids, and the calibration of the rest."""
    book = so.paper.quotes("small", seed=8)
    gone = book.ids[[3, 17, 200, 311]]
    return book, so.calibrate(book, so.Heston()), gone, so.calibrate(book.without(gone), so.Heston())


@pytest.fixture(scope="module")
def certificate(case):
    _, before, _, after = case
    return issue(before, Answer(after.parameters, "recalibrate"), after=after)


@pytest.fixture(scope="module")
def one_step(case):
    """As a downdate answers: the state at the reference, subtracted, and one step from there."""
    _, before, gone, _ = case
    left = before.footprints.whole.total().less(before.footprints.whole, before.footprints.whole.places(gone))
    step = dict(zip(left.schema.parameters, left.schema.reference + left.step(), strict=True))
    return issue(before, Answer(step, "downdate", tolerance=0.1), system=System.of(left))


def test_a_certificate_comes_back_from_its_bytes(certificate, one_step):
    for made in (certificate, one_step):
        again = Certificate.from_bytes(made.to_bytes())
        assert again == made
        assert again.digest() == made.digest()
    assert certificate.digest() != one_step.digest()


def test_the_bytes_are_json_with_sorted_keys_no_spaces_and_no_floating_point_number(certificate):
    data = certificate.to_bytes()

    def refuse(text):
        raise AssertionError(f"a floating-point number in a certificate: {text}")

    content = json.loads(data, parse_float=refuse, parse_constant=refuse)
    assert json.dumps(content, sort_keys=True, separators=(",", ":")).encode() == data


def test_the_parameters_are_kept_to_the_last_bit(case, certificate):
    assert certificate.values() == case[3].parameters


def test_nothing_of_the_forgotten_quotes_is_in_it_but_their_number(case, certificate, one_step):
    book, before, gone, _ = case
    for made in (certificate, one_step):
        text = made.to_bytes().decode()
        assert made.counts == {"forgotten": 4, "retained": 536}
        assert made.before == 540
        assert not [name for name in book.ids if str(name) in text]
        numbers = np.concatenate([book.only(gone).observed, book.only(gone).contracts.strike]).tolist()
        assert not [x for x in numbers if x.hex() in text or repr(x) in text]
        # The difference of the states before and after is the forgotten quotes.
        assert before.state.digest() not in text
        assert before.footprints.whole.total().digest() not in text


def test_a_calibration_of_the_retained_supports_all_but_the_step(certificate):
    assert certificate.claimed() == (Claim.STATE, Claim.OPTIMUM, Claim.NEVER_SEEN)


def test_one_step_supports_state_and_step_and_an_optimum_only_to_a_tolerance(one_step):
    assert one_step.claimed() == (Claim.STATE, Claim.STEP, Claim.OPTIMUM)
    assert float.fromhex(one_step.claims["OPTIMUM"]["tolerance"]) == 0.1
    assert any("reference" in sentence for sentence in one_step.not_claimed)


def test_parameters_other_than_the_calibrations_are_not_claimed_never_seen(case):
    _, before, _, after = case
    other = {**after.parameters, "correlation": np.nextafter(after.parameters["correlation"], 0.0)}
    made = issue(before, Answer(other, "refine"), after=after)
    assert made.claimed() == (Claim.STATE, Claim.OPTIMUM)
    far = {**after.parameters, "correlation": after.parameters["correlation"] + after.standard_errors["correlation"]}
    assert issue(before, Answer(far, "refine"), after=after).claimed() == (Claim.STATE,)


def test_a_calibration_that_did_not_converge_is_no_optimum():
    book = so.paper.quotes("small")
    one_expiry = book[book.contracts.expiry == book.contracts.expiry.min()]
    after = so.calibrate(one_expiry, so.Heston())
    assert not after.converged
    made = issue(so.calibrate(book, so.Heston()), Answer(after.parameters, "recalibrate"), after=after)
    assert made.claimed() == (Claim.STATE,)


def test_every_altered_byte_is_noticed(certificate):
    data = certificate.to_bytes()
    accepted = []
    for place in range(len(data)):
        altered = bytearray(data)
        altered[place] = ord("0") if altered[place] != ord("0") else ord("1")
        try:
            Certificate.from_bytes(bytes(altered))
        except UsageError:
            continue
        accepted.append(place)
    assert accepted == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff", "not JSON"),
        (b"[]", "format is None"),
        (b'{"format":"strikeout certificate 1"}', "format is 'strikeout certificate 1'"),
        (b'{"format":"strikeout certificate 2"}', "missing or unknown"),
        (b'{"format":["strikeout certificate 2"]}', "format is no text, but list"),
    ],
)
def test_bytes_that_are_no_certificate_are_refused_with_what_they_are(data, says):
    with pytest.raises(UsageError, match=says):
        Certificate.from_bytes(data)


def test_the_same_content_written_another_way_is_refused(certificate):
    pretty = json.dumps(json.loads(certificate.to_bytes()), indent=2).encode()
    with pytest.raises(UsageError, match="changed since"):
        Certificate.from_bytes(pretty)


def test_a_resealed_certificate_of_another_shape_is_refused(certificate):
    odd = replace(certificate, counts={"forgotten": -4, "retained": 544})
    with raises(UsageError, field="counts"):
        Certificate.from_bytes(odd.to_bytes())


def test_the_summary_names_every_claim_and_what_is_not_claimed(certificate):
    text = certificate.summary()
    for claim in Claim:
        assert claim.name in text
    assert "backups" in text
    assert "4 of 540 quotes struck out" in text
    assert certificate.digest() in text
    assert "NEVER_SEEN" in certificate._repr_html_()
    assert "claims STATE, OPTIMUM, NEVER_SEEN" in repr(certificate)


def test_nothing_to_claim_from_is_refused(case):
    with pytest.raises(UsageError, match="after"):
        issue(case[1], Answer(case[1].parameters, "none"))


@pytest.mark.parametrize("model", [so.SABR(), so.SVI(), so.SSVI(), so.BlackScholes(expiries="quoted")])
def test_an_expiry_that_went_took_its_parameters_along_and_the_certificate_is_of_the_others(model):
    T = np.repeat([0.1, 0.5, 1.0], 12)
    k = np.tile(np.linspace(-0.4, 0.4, 12), 3) * np.sqrt(T)
    contracts = so.Contracts(forward=100.0, strike=100.0 * np.exp(k), expiry=T, discount=1.0, is_call=k >= 0.0)
    seen = so.Heston().price([2.0, 0.06, 0.5, -0.6, 0.05], contracts) + 0.005 * np.cos(7.0 * np.arange(36))
    book = so.Quotes(ids=[f"q{i}" for i in range(36)], contracts=contracts, observed=seen)
    done = so.forget(so.calibrate(book, model), ids=book.ids[T == 0.5])
    assert set(done.certificate.values()) == set(done.parameters)
    assert not any("[0.5]" in name for name in done.parameters)
    assert so.verify(done.certificate, book[T != 0.5]).holds
    assert not so.verify(done.certificate, book).holds
