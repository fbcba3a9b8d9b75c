"""Erasing: a rehearsal changes nothing; the real thing leaves no byte, whatever held the quotes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.book import erasure
from strikeout.book.import_quotes import PER_QUOTE, returned
from strikeout.book.state_store import stored_rows
from strikeout.errors import RefusedError, UnknownIdError, UsageError
from strikeout.store.entry import ReasonCode
from strikeout.store.residue import needles_of, scan
from tests.raising import raises

EARLY = "date < '2024-01-10'"


@pytest.fixture(scope="module")
def quotes():
    """Prices with all their digits, so that each can be looked for."""
    return so.synthetic.random_quotes(120, maturities=6, seed=3)


@pytest.fixture
def book(tmp_path, quotes):
    with so.Book.create(tmp_path / "a.book", who="ann") as made:
        made.import_quotes(quotes)
        made.calibrate()
        yield made


def hits(folder, quotes, gone):
    """Where a number or name of these quotes is found in any file of the folder."""
    retained = quotes[~np.isin(quotes.ids, gone)]
    return scan(sorted(folder.rglob("*")), needles_of(quotes.only(gone), retained=retained))


def test_a_rehearsal_changes_nothing_and_says_what_goes_and_what_stays(book, quotes):
    before = book.status()
    told = book.plan_erase(ids=quotes.ids[:5])
    assert book.status() == before
    assert (told.entry, told.count, told.held, told.residue) == (None, 5, 5, None)
    assert "would be erased" in told.summary()
    assert told.results_kept == 1
    assert any("can be computed back" in text for text in told.stays)


def test_nothing_of_an_erased_quote_is_found_in_any_file(book, quotes, tmp_path):
    gone = quotes.ids[10:20]
    book.forget(ids=gone[:5])
    book.export(tmp_path / "copy.csv")
    book.plan_path.write_bytes(book.plan_forget(ids=gone[5:]).to_bytes())
    assert hits(tmp_path, quotes, gone), "the search itself finds nothing"
    done = book.erase(ids=gone, reason="licence")
    assert (done.count, done.held, done.residue) == (10, 5, 0)
    assert hits(tmp_path, quotes, gone) == []
    assert not (tmp_path / "copy.csv").exists()
    assert not book.plan_path.exists()


def test_what_is_left_never_saw_the_erased_quotes(book, quotes):
    done = book.erase(ids=quotes.ids[:7])
    never = so.calibrate(quotes[7:], so.Heston())
    assert dict(book.status().version.parameters) == never.parameters
    assert book.status().version.state == never.state.digest()
    assert so.verify(done.change.certificate, quotes[7:]).holds
    assert book.verify().holds, book.verify().summary()


def test_for_a_reason_that_is_not_about_the_data_states_and_certificates_go_and_parameters_stay(book, quotes):
    first = book.forget(ids=quotes.ids[:3])
    old = first.before, first.after
    second = book.forget(ids=quotes.ids[3:6])
    book.erase(ids=quotes.ids[3:6])
    versions = book.snapshot().versions
    assert [dict(v.parameters) for v in versions[:2]] == [dict(v.parameters) for v in old]
    assert [v.state is None for v in versions] == [True, True, False]
    with raises(RefusedError, entry=4, known=[5]):
        book.certificate(first.entry)
    assert book.certificate(second.entry) == second.certificate
    assert book.verify().holds, book.verify().summary()


def test_of_two_forgets_erased_together_nothing_from_before_the_second_stays(book, quotes):
    first = book.forget(ids=quotes.ids[:3])
    second = book.forget(ids=quotes.ids[3:6])
    book.erase(ids=quotes.ids[:6])
    assert [version.state is None for version in book.snapshot().versions] == [True, True, False]
    with raises(RefusedError, entry=4, known=[5]):
        book.certificate(first.entry)
    assert book.certificate(second.entry) == second.certificate


def test_an_erased_quote_that_returns_is_refused_under_any_name_and_at_any_price(book, quotes):
    gone = quotes.ids[:4]
    book.erase(ids=gone)
    back = book.import_quotes(quotes)
    assert (back.imported, back.erased) == (0, tuple(gone.tolist()))
    repriced = quotes[:4].with_observed(quotes.observed[:4] + 1.0)
    assert book.import_quotes(repriced).erased == tuple(gone.tolist())
    c = quotes.contracts[:4]
    renamed = so.Quotes(
        ids=["w", "x", "y", "z"], contracts=c, observed=quotes.observed[:4], labels=dict(quotes[:4].labels)
    )
    assert book.import_quotes(renamed).erased == ("w", "x", "y", "z")
    both = so.Quotes(ids=["w"], contracts=c[:1], observed=[1.0])
    assert book.import_quotes(both).imported == 1


def labelled(quotes: so.Quotes, names: list[str], **labels: str) -> so.Quotes:
    """The first quotes under other names and with these labels only."""
    count = len(names)
    columns = {name: [text] * count for name, text in labels.items()}
    return so.Quotes(ids=names, contracts=quotes.contracts[:count], observed=quotes.observed[:count], labels=columns)


DAY, OTHER = "2030-05-02", "2031-01-01"


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [
        ({"date": DAY, "source": "x"}, {"date": DAY, "source": "y"}, True),
        ({"date": DAY, "source": "x"}, {"date": DAY}, True),
        ({"date": DAY, "source": "x"}, {"source": "y"}, True),
        ({"date": DAY, "source": "x"}, {}, True),
        ({"date": DAY}, {"date": DAY, "desk": "z"}, True),
        ({}, {"date": DAY}, True),
        ({"date": DAY}, {"date": OTHER}, False),  # the same price on another day is another quote
    ],
)
def test_an_erased_quote_is_refused_whatever_its_labels_but_its_date(tmp_path, quotes, before, after, is_refused):
    with so.Book.create(tmp_path / "labels.book") as book:
        book.import_quotes(labelled(quotes, list("abcdefgh"), **before))
        book.erase(ids=["a", "b", "c"])
        again = book.import_quotes(labelled(quotes, ["x", "y", "z"], **after))
        assert (again.erased, again.imported) == ((("x", "y", "z"), 0) if is_refused else ((), 3))
        assert book.verify().holds


def two_sources(path: Path, quotes: so.Quotes, labels: dict[str, str]) -> so.Book:
    """A book of the same three quotes from the sources a and b; those of a are erased."""
    book = so.Book.create(path)
    book.import_quotes(labelled(quotes, ["a1", "a2", "a3"], source="a", **labels))
    book.import_quotes(labelled(quotes, ["b1", "b2", "b3"], source="b", **labels))
    book.erase(where="source = 'a'")
    return book


DATED_OR_NOT = pytest.mark.parametrize("labels", [{}, {"date": DAY}], ids=["undated", "dated"])


@DATED_OR_NOT
def test_a_quote_that_another_source_has_too_stays_and_is_not_taken_for_the_erased_one(tmp_path, quotes, labels):
    with two_sources(tmp_path / "two.book", quotes, labels) as book:
        assert book.verify().holds, book.verify().summary()
        assert book.residue().is_clean
        again = book.import_quotes(labelled(quotes, ["b1", "b2", "b3"], source="b", **labels))
        assert (again.imported, again.erased) == (0, ())
        own_copy = labelled(quotes, ["a1", "b1"], **labels)
        assert book.residue(own_copy).is_clean  # b1 is in the book, and not searched for


@DATED_OR_NOT
@pytest.mark.parametrize("after", [{"source": "c"}, {}, {"source": "c", "date": DAY}], ids=str)
def test_an_erased_quote_is_refused_under_any_label_though_another_source_has_it_too(tmp_path, quotes, labels, after):
    with two_sources(tmp_path / "two.book", quotes, labels) as book:
        assert book.import_quotes(labelled(quotes, ["c1", "c2", "c3"], **after)).erased == ("c1", "c2", "c3")
        assert book.import_quotes(labelled(quotes, ["a1", "a2", "a3"], **after)).erased == ("a1", "a2", "a3")
        book.erase(ids=["b1"])  # now no source has it
        assert book.import_quotes(labelled(quotes, ["c1", "b1"], **after)).erased == ("c1", "b1")
        assert book.verify().holds, book.verify().summary()


@DATED_OR_NOT
def test_a_quote_that_is_back_beside_one_of_another_source_is_named(tmp_path, quotes, labels):
    """The guard at the door passed by: commitments know b1 as another source's quote, and c1 as nobody's."""
    with two_sources(tmp_path / "two.book", quotes, labels) as book:
        there, seen = labelled(quotes, ["b1", "b2", "b3"], **labels), book.snapshot()
        assert returned(there, seen.erased, seen.commit).tolist() == [False, False, False]
        there = labelled(quotes, ["b1", "b2", "c1"], **labels)
        assert returned(there, seen.erased, seen.commit).tolist() == [False, False, True]
        both = so.Quotes(
            ids=["b1", "c1"],
            contracts=quotes.contracts[[0, 0]],
            observed=quotes.observed[[0, 0]],
            labels={name: [text] * 2 for name, text in labels.items()},
        )
        assert returned(both, seen.erased, seen.commit).tolist() == [True, True]  # one of them; which, cannot be told


@DATED_OR_NOT
def test_the_number_of_commitments_does_not_reveal_that_another_source_had_the_quote(tmp_path, quotes, labels):
    with two_sources(tmp_path / "two.book", quotes, labels) as both, so.Book.create(tmp_path / "one.book") as one:
        one.import_quotes(labelled(quotes, ["a1", "a2", "a3"], source="a", **labels))
        one.erase(ids=["a1", "a2", "a3"])
        assert len(both.snapshot().erased) == len(one.snapshot().erased) == 3 * PER_QUOTE


def test_a_restore_brings_back_what_was_not_erased(book, quotes):
    change = book.forget(ids=quotes.ids[:6])
    book.erase(ids=quotes.ids[:2])
    assert book.restore(change.entry).touched == 4
    assert dict(book.status().version.parameters) == so.calibrate(quotes[2:], so.Heston()).parameters


def test_quotes_are_erased_even_where_the_rest_gives_no_calibration(book, quotes):
    done = book.erase(ids=quotes.ids[3:], reason="subject-request")
    assert (done.change, done.residue) == (None, 0)
    assert not book.status().is_current
    assert book.quotes().ids.tolist() == quotes.ids[:3].tolist()
    assert book.verify().holds, book.verify().summary()
    book.erase(ids=quotes.ids[:3])
    assert book.status().held == 0
    assert book.verify().holds, book.verify().summary()


def test_what_nobody_can_mean_is_refused(book, quotes):
    for words, error in [
        ({}, UsageError),
        ({"ids": quotes.ids[:1], "where": "strike > 0"}, UsageError),
        ({"ids": ["nobody"]}, UnknownIdError),
        ({"where": "strike < 0"}, RefusedError),
    ]:
        with pytest.raises(error):
            book.erase(**words)
    assert book.status().entries == 3


def test_the_ledger_names_no_quote_and_no_number_of_one(book, quotes):
    book.forget(ids=quotes.ids[:3], reason="bad-feed")
    book.erase(ids=quotes.ids[:5], reason="licence")
    text = json.dumps([entry.to_json() for entry in book.log()])
    assert not [name for name in quotes.ids.tolist() if name in text]
    assert not [price for price in quotes.observed.tolist() if repr(price)[:8] in text]


def test_an_erased_quote_put_back_behind_the_ledgers_back_is_found(book, quotes):
    book.erase(ids=quotes.ids[:1])
    with book.snapshot().session.store.writing() as store:
        store.add(quotes[:1])
    reasons = book.verify().reasons
    assert any(reason.startswith("ERASED: 1 quote that was erased") for reason in reasons)
    assert any(reason.startswith("COUNTS") for reason in reasons)


def test_a_rehearsal_promises_a_calibration_only_where_the_rest_gives_one_and_the_deed_says_which(book, quotes):
    rehearsal = book.plan_erase(ids=quotes.ids[3:])
    assert any("refitted without them if the retained quotes determine one" in text for text in rehearsal.gone)
    done = book.erase(ids=quotes.ids[3:])
    assert done.change is None
    assert not any("is refitted" in text for text in done.gone)
    assert not any("computed again without them" in text for text in done.gone)
    assert any("the retained quotes determine none" in text for text in done.gone)
    assert any("the next calibration computes them again" in text for text in done.gone)


def test_an_erasure_that_calibrates_says_so(book, quotes):
    done = book.erase(ids=quotes.ids[:3])
    assert done.change is not None
    assert any(text.endswith("from the calibration, which is refitted without them") for text in done.gone)
    assert any(text.endswith("they are computed again without them") for text in done.gone)


def test_an_erasure_from_a_book_that_is_not_calibrated_or_not_current_promises_none(tmp_path, quotes):
    with so.Book.create(tmp_path / "b.book") as bare:
        bare.import_quotes(quotes[:-3])
        assert any(
            "from the book, which was never calibrated" in text for text in bare.plan_erase(ids=quotes.ids[:3]).gone
        )
        bare.calibrate()
        bare.import_quotes(quotes[-3:])
        done = bare.erase(ids=quotes.ids[:3])
        assert done.change is None
        assert any("whose calibration was not current and stays so" in text for text in done.gone)


def test_what_goes_and_stays_of_one_quote_and_of_a_book_without_calibration_is_said_rightly(tmp_path, book, quotes):
    one = book.plan_erase(ids=quotes.ids[:1])
    assert one.gone[1].startswith("1 quote from the calibration, which is refitted without it if")
    book.forget(ids=quotes.ids[:1])
    assert book.plan_erase(ids=quotes.ids[:3]).gone[1].startswith("2 of them from the calibration")
    with so.Book.create(tmp_path / "never.book") as never:
        never.import_quotes(quotes)
        told = never.erase(ids=quotes.ids[:1])
        assert told.gone[1] == "1 quote from the book, which was never calibrated"
        assert not any("calibrations" in text for text in told.stays)
        assert "1 refused, for it was erased" in never.import_quotes(quotes[:1]).sentence


# --- what stays, and who can compute with it -------------------------------------------------------------------------


@pytest.mark.parametrize("reason", sorted(ReasonCode))
def test_results_of_before_stay_only_for_reasons_that_are_not_about_the_data_and_the_rehearsal_says_so(
    book, quotes, reason
):
    told, done = (verb(ids=quotes.ids[:5], reason=reason) for verb in (book.plan_erase, book.erase))
    is_about_data = reason in ("licence", "subject-request")
    assert told.results_kept == done.results_kept == (0 if is_about_data else 1)
    assert any("can be computed back" in text for text in (*told.stays, *done.stays)) is not is_about_data
    assert all(any("can be computed back" in text for text in one.beyond) for one in (told, done))
    assert [version.entry for version in book.snapshot().versions] == ([4] if is_about_data else [3, 4])
    assert book.log()[-2].counts.get("first result removed") == (2 if is_about_data else None)
    assert book.verify().holds, book.verify().summary()


def test_of_a_book_that_was_never_calibrated_nothing_can_be_computed_back(tmp_path, quotes):
    with so.Book.create(tmp_path / "bare.book") as bare:
        bare.import_quotes(quotes)
        told = bare.plan_erase(ids=quotes.ids[:1])
    assert (told.results_kept, told.warnings) == (0, ())
    assert not any("computed back" in text for text in (*told.stays, *told.beyond))


@pytest.mark.parametrize(
    ("smallest", "count", "warned"), [(12, 11, True), (12, 12, False), (3, 2, True), (3, 3, False)]
)
def test_a_book_warns_when_fewer_quotes_go_than_its_smallest_erasure(tmp_path, quotes, smallest, count, warned):
    with so.Book.create(tmp_path / "k.book", smallest_erasure=smallest) as made:
        made.import_quotes(quotes)
        made.calibrate(panel=None)
    with so.Book.open(tmp_path / "k.book") as again:
        for yes in (False, True):
            assert (
                bool((again.erase if yes else again.plan_erase)(ids=quotes.ids[:count], reason="licence").warnings)
                is warned
            )


def test_quotes_of_a_panel_are_counted_by_date_and_those_of_a_smile_by_expiry(tmp_path):
    """Each date, or expiry, has parameters of its own: a single quote of it is one unknown to one equation."""
    quotes = so.synthetic.panel_quotes(20, seed=3)
    days, years = quotes.labels["date"].astype(str), quotes.contracts.expiry
    each_day = [quotes.ids[days == day][0] for day in np.unique(days)]
    one_day = quotes.ids[days == days[0]]
    one_expiry = quotes.ids[years == years[0]][:12]
    other = quotes.ids[years != years[0]][:1]
    with so.Book.create(tmp_path / "k.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
        assert book.plan_erase(ids=each_day).warnings == ()
        book.calibrate(panel="date")
        assert any("1 quote of one date is erased" in text for text in book.plan_erase(ids=each_day).warnings)
        assert book.plan_erase(ids=one_day).warnings == ()
    with so.Book.create(tmp_path / "s.book") as book:
        book.import_quotes(quotes)
        book.calibrate(so.SVI(), panel=None, starts=1)
        assert book.plan_erase(ids=one_expiry).warnings == ()
        assert any("of one expiry" in text for text in book.plan_erase(ids=[*one_expiry, *other]).warnings)


@pytest.mark.parametrize("smallest", [0, -1, 2.5, True, "12"])
def test_a_smallest_erasure_that_is_no_number_of_quotes_is_refused(tmp_path, smallest):
    with pytest.raises(UsageError, match="smallest_erasure"):
        so.Book.create(tmp_path / "k.book", smallest_erasure=smallest)
    assert not list(tmp_path.iterdir())


def test_a_copy_that_was_moved_is_listed_as_not_found(tmp_path, quotes):
    with so.Book.create(tmp_path / "m.book") as book:
        book.import_quotes(quotes)
        book.export(tmp_path / "copy.csv")
        (tmp_path / "copy.csv").rename(tmp_path / "elsewhere.csv")
        for verb in (book.plan_erase, book.erase):
            listed = [line for line in verb(ids=quotes.ids[:20]).beyond if "copy.csv" in line]
            assert len(listed) == 1, verb
    assert (tmp_path / "elsewhere.csv").exists()


@pytest.mark.parametrize("verb", ["erase", "plan_erase", "request erase", "request forget"])
def test_a_condition_that_every_quote_matches_needs_a_confirmation(book, verb):
    name, *what = verb.split()
    act = getattr(book, name)
    before = book.status()
    with raises(UsageError, mentions={"where", "all_quotes"}, count=120, where="strike > 0") as refused:
        act(*what, where="strike > 0")
    assert refused.value.facts["count"] == 120
    assert book.status() == before
    done = act(*what, where="strike > 0", all_quotes=True)
    assert done.count == 120


def test_ids_need_no_confirmation(book, quotes):
    assert book.plan_erase(ids=quotes.ids).count == 120


ERASE_IN_ANOTHER_PROCESS = "import sys, strikeout as so; so.Book.open(sys.argv[1]).erase(ids=sys.argv[2:])"


def test_an_erasure_that_another_process_overtakes_is_refused_whatever_it_had_read(book, quotes, monkeypatch):
    def overtaken(store, linearization, shard):
        found = stored_rows(store, linearization, shard)
        monkeypatch.undo()
        # It commits, and then waits in vain for this read to end before it empties the log.
        subprocess.run(
            [sys.executable, "-c", ERASE_IN_ANOTHER_PROCESS, str(book.path), *quotes.ids[5:7]],
            check=False,
            stderr=subprocess.DEVNULL,
        )
        return found

    monkeypatch.setattr(erasure, "stored_rows", overtaken)
    before = len(book.log())
    with raises(RefusedError, found=before + 1):
        book.erase(ids=quotes.ids[:5])
    assert [entry.what for entry in book.log()[before:]] == ["erase"]
    assert book.verify().holds, book.verify().summary()
