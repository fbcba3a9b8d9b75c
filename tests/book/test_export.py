"""Results for other programs: all that a version says, and what each digest of a state is of."""

from __future__ import annotations

import json

import pytest

import strikeout as so
from strikeout.book.results import Change


@pytest.fixture(scope="module")
def quotes():
    return so.paper.quotes("small")


@pytest.fixture
def book(tmp_path, quotes):
    with so.Book.create(tmp_path / "a.book") as made:
        made.import_quotes(quotes)
        yield made


def exported(book: so.Book):
    return json.loads(book.export(book.path.with_suffix(".json")).read_text(encoding="utf-8"))


def stepped(book: so.Book, quotes: so.Quotes) -> Change:
    book.calibrate(panel=None)
    return book.forget(ids=quotes.ids[:3], tolerance=0.5)


def test_an_export_after_a_step_says_how_near_the_optimum_it_is_and_by_which_road(book, quotes):
    stepped(book, quotes)
    found = exported(book)
    assert found["tolerance"] == 0.5
    assert (found["fitted_from"]["through"], found["fitted_from"]["reason"]) == ("quotes", "few quotes")
    assert found["panel"] is None
    assert found == {
        "book": book.status().book,
        "entry": 4,
        "current": True,
        **book.status().version.to_dict(),
    }


def test_an_export_of_a_panel_says_what_was_decided_and_has_the_path(book):
    version = book.calibrate().after
    found = exported(book)
    assert (found["panel"]["asked"], found["panel"]["label"], found["panel"]["groups"]) == ("auto", "date", 90)
    assert found["latent"] == {group: value for group, (value, _) in version.latent.items()}
    assert found["latent_standard_errors"] == {group: error for group, (_, error) in version.latent.items()}
    assert found["tolerance"] is None


def test_the_digests_of_a_step_and_of_its_certificate_each_say_what_they_are_of(book, quotes):
    change = stepped(book, quotes)
    assert change.certificate.state["digest"] != change.after.state
    assert exported(book)["state_of"] == "the quotes at the model's first start"
    assert "of the retained quotes at the reference of the step" in change.certificate.summary()
    assert change.after.state == so.calibrate(book.quotes(), so.Heston()).state.digest()
    exact = book.forget(ids=quotes.ids[3:5])
    assert exact.certificate.state["digest"] == exact.after.state
    assert "of the retained quotes at the model's first start" in exact.certificate.summary()


def test_the_state_of_moments_and_of_a_panel_is_named_too(book, quotes):
    assert book.calibrate().after.state_of == "the quotes by date at the model's first start"
    book.calibrate(through="moments", panel=None)
    gone = book.forget(ids=quotes.ids[:3])
    assert gone.after.state_of == "the moments of the quotes"
    assert "of the moments of the retained quotes" in gone.certificate.summary()
    assert gone.after.without_state().state_of is None
