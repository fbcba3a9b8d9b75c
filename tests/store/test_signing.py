"""Certificates of a book are signed with its key, and verify checks whose key that was."""

from __future__ import annotations

from dataclasses import replace

import pytest

import strikeout as so

OTHER = "0" * 64


@pytest.fixture(scope="module")
def issued(tmp_path_factory):
    """A certificate issued in a book, the quotes it retains, and the public key of the book."""
    quotes = so.synthetic.random_quotes(80, maturities=4, seed=3)
    with so.Book.create(tmp_path_factory.mktemp("signed") / "x.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
        book.forget(ids=quotes.ids[:3], reason="bad-feed")
        last = book.log()[-1]
        return book.certificate(last.number), quotes[3:], last.public


def signature(found: so.results.Verification) -> bool | None:
    return next(check.holds for check in found.checks if check.name == "SIGNATURE")


def test_the_key_of_the_book_is_recognised(issued):
    certificate, retained, public = issued
    found = so.verify(certificate, retained, key=public)
    assert found.holds
    assert signature(found) is True


def test_another_key_and_no_signature_are_refused(issued):
    certificate, retained, public = issued
    for made, key in ((certificate, OTHER), (replace(certificate, signed=None), public)):
        found = so.verify(made, retained, key=key)
        assert not found.holds
        assert signature(found) is False


@pytest.mark.parametrize("changed", [{"entry": 99}, {"signature": "0" * 128}])
def test_a_signature_for_another_entry_or_of_nobody_is_refused(issued, changed):
    certificate, retained, public = issued
    forged = replace(certificate, signed={**certificate.signed, **changed})
    assert signature(so.verify(forged, retained, key=public)) is False


def test_changed_counts_break_the_signature(issued):
    certificate, retained, public = issued
    counts = {**certificate.counts, "forgotten": certificate.counts["forgotten"] + 5}
    assert signature(so.verify(replace(certificate, counts=counts), retained, key=public)) is False


def test_an_unsigned_certificate_is_said_to_be_unsigned(issued):
    certificate, retained, _ = issued
    assert signature(so.verify(replace(certificate, signed=None), retained)) is None
