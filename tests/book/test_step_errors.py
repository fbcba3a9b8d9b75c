"""A book prints the errors of a step in its unit, from the exact states of clusters that it keeps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.assurance.state_codec import StateKind
from strikeout.book import state_store
from strikeout.book.version import errors_of
from strikeout.calibration.standard_errors import Basis, Reason, Unit
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.system import WHOLE
from tests.book.behind import entered

PLAIN, PANEL = so.paper.quotes("small"), so.synthetic.panel_quotes(12, seed=4, noise=0.002)
KINDS = pytest.mark.parametrize(("quotes", "panel"), [(PLAIN, None), (PANEL, "date")], ids=["plain", "panel"])
TOLERANCE = 0.9


def day_of(quotes: so.Quotes, n: int) -> so.Quotes:
    dates = quotes.labels["date"]
    return quotes[dates == np.unique(dates)[n]]


def made(path: Path, quotes: so.Quotes, *, panel=None, is_encrypted=False, **how) -> so.Book:
    book = so.Book.create(path, is_encrypted=is_encrypted)
    book.import_quotes(quotes)
    book.calibrate(so.Heston(), panel=panel, starts=1, **how)
    return book


def basis_of(version) -> Basis:
    return Basis.from_plain(version.errors["basis"])


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["open", "encrypted"])
@KINDS
@pytest.mark.parametrize("errors", ["auto", "cluster:date", "jackknife:date"])
def test_errors_of_a_step_have_the_bits_of_those_in_memory(tmp_path, quotes, panel, errors, is_encrypted):
    """Quotes are imported in another order than that of the calibration in memory."""
    order, few = np.random.default_rng(5).permutation(len(quotes)), day_of(quotes, 3).ids[:4]
    memory = so.calibrate(quotes, so.Heston(), panel=panel, errors=errors, starts=1)
    with made(tmp_path / "a.book", quotes[order], panel=panel, errors=errors, is_encrypted=is_encrypted) as book:
        after = book.forget(ids=few, tolerance=TOLERANCE).after
        alone = so.forget(memory, ids=few, tolerance=TOLERANCE)
        assert alone.operator == "downdate"
        assert after.step is not None
        assert after.printed_errors == alone.errors.standard_errors
        assert after.errors == errors_of(alone.errors)
        assert basis_of(after).unit is (Unit.JACKKNIFE if "jackknife" in errors else Unit.CLUSTER)
        assert after.printed_errors != dict(after.standard_errors)
        assert after.errors_sentence == alone.errors.basis.sentence
        assert book.verify().holds, book.verify().summary()


@KINDS
def test_a_day_that_is_learnt_and_forgotten_is_a_cluster(tmp_path, quotes, panel):
    newest, count = day_of(quotes, -1), len(np.unique(quotes.labels["date"]))
    with made(tmp_path / "a.book", quotes.without(newest.ids), panel=panel, errors="cluster:date") as book:
        how = {"panel": panel, "errors": "cluster:date", "starts": 1}
        memory = so.calibrate(quotes.without(newest.ids), so.Heston(), **how)
        there = book.learn(newest, tolerance=TOLERANCE).after
        assert there.errors == errors_of(so.learn(memory, newest, tolerance=TOLERANCE).errors)
        back = book.forget(ids=newest.ids, tolerance=TOLERANCE).after
        assert (there.step is None, back.step is None) == (False, False)
        assert (basis_of(there).clusters, basis_of(back).clusters) == ((count,), (count - 1,))
        assert book.verify().holds, book.verify().summary()


def test_steps_that_follow_each_other_have_the_errors_of_one(tmp_path):
    few = day_of(PLAIN, 3).ids[:3]
    with made(tmp_path / "a.book", PLAIN) as book:
        for name in few:
            after = book.forget(ids=[name], tolerance=TOLERANCE).after
        memory = so.calibrate(PLAIN, so.Heston(), panel=None, starts=1)
        assert after.errors == errors_of(so.forget(memory, ids=few, tolerance=TOLERANCE).errors)


def test_the_states_of_the_clusters_are_those_of_their_quotes_and_sum_to_that_of_the_book(tmp_path):
    day = day_of(PLAIN, 3)
    date = str(day.labels["date"][0])
    with made(tmp_path / "a.book", PLAIN) as book:
        before = book.snapshot().linearization.clusters
        book.forget(ids=day.ids[:2])  # an exact answer; its states stay at the reference of before
        kept = book.snapshot().linearization
        assert [name for name, state in kept.clusters.items() if before[name] != state] == [date]
        assert NormalEquations.total(kept.clusters.values()) == kept.system.blocks[WHOLE]
        book.erase(ids=day.ids)
        assert date not in book.snapshot().linearization.clusters
        assert book.verify().holds, book.verify().summary()


def test_a_state_of_a_cluster_that_was_altered_is_found(tmp_path):
    with made(tmp_path / "a.book", PLAIN) as book:
        kept = book.snapshot().linearization
        first, second, *_ = kept.clusters
        swapped = {**kept.clusters, first: kept.clusters[second], second: kept.clusters[first]}
        with entered(book) as tx:
            tx.put("state", StateKind.LINEARIZATION.value, replace(kept, clusters=swapped).to_bytes())
        assert "STATES" in {check.name for check in book.verify().checks if check.holds is False}


def test_errors_of_a_step_that_were_altered_are_found(tmp_path):
    with made(tmp_path / "a.book", PLAIN) as book:
        book.forget(ids=day_of(PLAIN, 3).ids[:2], tolerance=TOLERANCE)
        records = book.snapshot()
        version, first = records.version, next(iter(records.version.parameters))
        values = [[name, (0.5).hex() if name == first else text] for name, text in version.errors["values"]]
        altered = replace(version, errors={**version.errors, "values": values})
        with records.session.store.writing() as tx:
            tx.put("calibration", tx.now.pages("calibration")[-1], canonical(altered.to_plain()))
        assert {"PARAMETERS", "VERSIONS"} <= {check.name for check in book.verify().checks if check.holds is False}


def test_other_clusters_are_kept_once_they_are_the_usual_ones(tmp_path):
    """A plain book is clustered by date, and by expiry once one date is left."""
    quotes = so.synthetic.random_quotes(600, maturities=6, seed=7)
    dates = ["2024-01-02" if row < 500 else "2024-01-03" for row in range(len(quotes))]
    two = so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"date": dates})
    with made(tmp_path / "a.book", two) as book:
        assert book.snapshot().linearization.unit.label == "date"
        book.forget(where="date = '2024-01-03'")
        kept = book.snapshot().linearization
        assert kept.unit.label == "expiry"
        assert len(kept.clusters) == 6
        assert book.verify().holds, book.verify().summary()


def test_a_book_keeps_the_states_of_some_clusters_only(tmp_path, monkeypatch):
    monkeypatch.setattr(state_store, "MOST_CLUSTERS", 11)
    with made(tmp_path / "a.book", PLAIN, errors="cluster:date") as book:
        assert book.snapshot().linearization.clusters == {}
        after = book.forget(ids=day_of(PLAIN, 3).ids[:2], tolerance=TOLERANCE).after
        assert basis_of(after).reason is Reason.MANY_CLUSTERS
        assert after.printed_errors == pytest.approx(dict(after.standard_errors), rel=1e-12)
        assert book.verify().holds, book.verify().summary()


def test_a_perturbed_book_keeps_no_exact_states_of_clusters(tmp_path):
    with made(tmp_path / "a.book", PLAIN, perturb=1e-3) as book:
        assert book.snapshot().linearization.noise
        assert book.snapshot().linearization.clusters == {}
