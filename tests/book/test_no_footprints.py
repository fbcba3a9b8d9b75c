"""A book without footprints says why, in status, in verify and on the path of a step; and takes them when it can."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.book.state_store import MissingFootprints
from strikeout.errors import UsageError
from strikeout.quotes.quotes import join

PANEL = so.synthetic.panel_quotes(3, seed=3)
FIRST = PANEL[PANEL.labels["date"] == "2024-01-02"]
UNDATED = so.Quotes(
    ids=np.char.add("x", FIRST.ids),
    contracts=FIRST.contracts,
    observed=FIRST.observed,
    labels={**FIRST.labels, "date": np.full(len(FIRST), "")},
)
LATER = "date > '2024-01-02'"
EDGE = {"mean_reversion": 6.0, "long_variance": 0.06, "vol_of_vol": 1.2, "correlation": -0.6, "initial_variance": 1e-8}


@pytest.fixture
def book(tmp_path):
    with so.Book.create(tmp_path / "a.book") as made:
        yield made


def said(book: so.Book) -> MissingFootprints:
    """Why there are none, after seeing that status and verify say the same."""
    status, audit = book.status(), book.verify()
    assert audit.holds, audit.summary()
    found = next(check for check in audit.checks if check.name == "STATES")
    why = status.no_footprints
    assert status.shard_sentence.endswith(f"no footprints are kept: {why.clause}")
    assert (found.holds, found.found) == (None, f"The book keeps no footprints: {why.clause}.")
    return why


def keeps(book: so.Book, quotes: so.Quotes) -> bool:
    """Whether footprints are kept, and are those of these quotes."""
    linearization = book.snapshot().linearization
    audit = book.verify()
    assert audit.holds, audit.summary()
    found = so.states.footprints_of(quotes, linearization.model, linearization.references[""]).total()
    return linearization.system.reduced() == found and book.status().no_footprints is None


def test_a_book_that_is_not_calibrated_says_that(book):
    assert said(book) is MissingFootprints.NOT_CALIBRATED


def test_a_book_through_moments_says_that_and_a_panel_keeps_some(book):
    book.import_quotes(PANEL)
    book.calibrate(through="moments", panel=None)
    assert said(book) is MissingFootprints.MOMENTS
    book.calibrate(through="auto", panel="date")
    assert (book.status().no_footprints, book.status().groups) == (None, 3)


def forget(book):
    book.forget(where=LATER)


def restore(book):  # the quotes without a date come back to a panel, which then is none
    book.learn(UNDATED)
    book.forget(ids=UNDATED.ids)
    assert book.status().version.panel == "date"
    book.restore()


@pytest.mark.parametrize(
    ("verb", "left"),
    [
        (forget, FIRST),
        (lambda book: book.erase(where=LATER), FIRST),
        (lambda book: book.roll(window=1), PANEL[PANEL.labels["date"] == "2024-01-04"]),
        (lambda book: book.learn(UNDATED), join(PANEL, UNDATED)),
        (restore, join(PANEL, UNDATED)),
    ],
    ids=["forget", "erase", "roll", "learn", "restore"],
)
def test_a_panel_that_becomes_plain_takes_footprints_with_the_verb(book, verb, left):
    book.import_quotes(PANEL)
    book.calibrate()
    assert book.status().version.panel == "date"
    verb(book)
    assert book.status().version.panel is None
    assert keeps(book, left)


def test_a_reference_that_is_erased_is_named_and_the_next_verb_takes_another(book):
    book.import_quotes(FIRST)
    book.calibrate()
    book.forget(ids=FIRST.ids[:2])
    book.erase(ids=FIRST.ids[:2])
    assert said(book) is MissingFootprints.ERASED
    path = book.plan_forget(ids=FIRST.ids[2:3], tolerance=0.5).path[0]
    assert path == f"downdate passed over: the book keeps no footprints: {MissingFootprints.ERASED.clause}"
    book.forget(ids=FIRST.ids[2:3])
    assert keeps(book, FIRST[3:])


def test_a_reference_where_the_model_ends_is_named_and_no_share_of_noise_is_promised(book):
    book.import_quotes(so.synthetic.random_quotes(400, maturities=6, seed=0, theta=EDGE, noise=0.01))
    assert book.calibrate().after.converged
    assert said(book) is MissingFootprints.AT_BOUNDARY
    with pytest.raises(UsageError) as refused:
        book.calibrate(perturb=1e-3)
    assert refused.value.arguments == {"perturb"}


def test_a_quote_too_large_for_the_grid_is_not_named_and_what_is_left_without_it_has_footprints(book):
    weight = np.ones(len(FIRST))
    weight[4] = 1e30
    heavy = so.Quotes(
        ids=FIRST.ids, contracts=FIRST.contracts, observed=FIRST.observed, weight=weight, labels=FIRST.labels
    )
    book.import_quotes(heavy)
    book.calibrate()
    assert said(book) is MissingFootprints.TOO_LARGE
    book.erase(ids=FIRST.ids[4:5])
    assert keeps(book, FIRST.without(FIRST.ids[4:5]))


def test_an_erasure_that_leaves_no_calibration_says_why_there_are_none(book):
    book.import_quotes(FIRST)
    book.calibrate()
    done = book.erase(ids=FIRST.ids[3:])
    assert done.change is None
    assert book.status().no_footprints is MissingFootprints.ERASED


@pytest.mark.parametrize(
    ("asked", "remedies"),
    [
        ({"through": "moments", "panel": None}, {"perturb", "through", "panel"}),
        ({"panel": "date"}, {"perturb", "panel"}),
    ],
)
def test_noise_on_footprints_that_are_not_kept_is_refused_with_the_way_to_keep_some(book, asked, remedies):
    book.import_quotes(PANEL)
    with pytest.raises(UsageError) as refused:
        book.calibrate(perturb=1e-3, **asked)
    assert refused.value.arguments == remedies
