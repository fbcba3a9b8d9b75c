"""An attacker reads a book's file, without its key, and wants a quote that was erased.

At parameters that were fitted to the quote the score of all quotes is zero, so the score of those that stay is minus
the row of the erased one times its residual. `computing_back` solves that for contract and price.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.canonical import canonical
from strikeout.assurance.provenance import with_reading
from strikeout.errors import RefusedError
from strikeout.paper.experiments.erasure import KINDS, SHOWN, attack
from strikeout.store.entry import Entry
from strikeout.store.residue import needles_of_numbers, scan
from strikeout.store.store import PAGE_KINDS, SHARD_DATA
from tests.raising import raises

BY_NAME = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
ABOUT_DATA = ("licence", "subject-request")


@BY_NAME
def test_an_erasure_that_is_about_the_data_leaves_nothing_to_compute_the_quotes_from(tmp_path, kind):
    reason = ABOUT_DATA[KINDS.index(kind) % 2]
    assert not attack(kind, tmp_path, seed=1, reason=reason).is_solved


@BY_NAME
def test_an_erasure_for_another_reason_keeps_what_they_can_be_computed_from(tmp_path, kind):
    """The control: the attack works, so that the test above shows something."""
    assert attack(kind, tmp_path, seed=3, reason="bad-feed").is_solved


def test_an_erasure_without_a_reason_keeps_what_they_can_be_computed_from(tmp_path):
    assert attack(KINDS[0], tmp_path, seed=3, reason=None).is_solved


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHOWN, ids=[kind.name for kind in SHOWN])
def test_none_of_two_hundred_random_erasures_is_computed_back(tmp_path, kind):
    """Fifty of each kind."""
    reasons = {seed: ABOUT_DATA[seed % 2] for seed in range(100, 150)}
    done = [attack(kind, tmp_path, seed=seed, reason=reason) for seed, reason in reasons.items()]
    assert [one.seed for one in done if one.is_solved] == []


# --- what a book keeps does not depend on the erased quotes ----------------------------------------------------------


def by_step(book: so.Book, gone: list[str]) -> None:
    """The quotes leave by one step, whose certificate names the reference; the reference is then found anew."""
    change = book.forget(ids=gone, tolerance=0.3, reason="test")
    assert change.after.step is not None, "no step was taken"
    book.calibrate()


def by_two_steps(book: so.Book, gone: list[str]) -> None:
    """A step after they left, from the reference that still knew them."""
    book.forget(ids=gone, reason="test")
    change = book.forget(ids=book.quotes().ids[:1], tolerance=0.3, reason="test")
    assert change.after.step is not None, "no step was taken"


def by_their_own_step(book: so.Book, gone: list[str]) -> None:
    """They came after the reference was fitted, and left by a step that was judged with them."""
    change = book.forget(ids=gone, tolerance=0.9, reason="test")
    assert change.after.step is not None, "no step was taken"


def by_forgetting(book: so.Book, gone: list[str]) -> None:
    book.forget(ids=gone, tolerance=1e-9, reason="test")  # no step is that good: the exact road


def stay(book: so.Book, gone: list[str]) -> None:
    """They are held until they are erased."""
    assert book.status().set_aside == 0, gone


HISTORIES = {
    "held": (None, stay),
    "set aside": (None, by_forgetting),
    "a step": (None, by_step),
    "a later step": (None, by_two_steps),
    "a step after they came": ({"late": True}, by_their_own_step),
    "moments": ({"through": "moments", "panel": None}, stay),
    "panel": ({"panel": "date"}, stay),
    "robust": ({"loss": "huber", "panel": None}, stay),
    "smiles": ({"model": so.SVI(), "panel": None, "starts": 1}, stay),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_what_a_book_keeps_is_the_same_whatever_the_erased_quotes_were(tmp_path, name):
    """Stronger than any attack: two books whose histories differ in nothing but the contracts and prices that are
    erased keep the same. Keyed digests, and what is signed or chained over them, say nothing without the key."""
    settings, leave = HISTORIES[name]
    first, second = (kept(tmp_path / f"{n}.book", settings, leave, shift) for n, shift in enumerate((0.0, 0.02)))
    assert first == second


def test_for_another_reason_what_a_book_keeps_depends_on_the_erased_quotes(tmp_path):
    """The control: the comparison above sees results that were fitted to them."""
    nothing = HISTORIES["held"][1]
    first, second = (kept(tmp_path / f"{n}.book", None, nothing, x, "error") for n, x in enumerate((0.0, 0.02)))
    assert first != second


def kept(path: Path, settings: dict | None, leave, shift: float, reason: str = "subject-request") -> dict:
    """All that a book without its key holds after three quotes were erased: contracts and prices moved by a share."""
    quotes = so.synthetic.random_quotes(240, maturities=6, seed=5)
    quotes = so.Quotes(
        ids=quotes.ids,
        contracts=quotes.contracts,
        observed=quotes.observed,
        labels={"date": np.array([f"2024-01-{2 + i % 3:02d}" for i in range(len(quotes))])},
    )
    rows = np.isin(np.arange(len(quotes)), (107, 157, 207))  # they come after the first calibration
    c = quotes.contracts
    moved = so.Contracts(
        forward=c.forward,
        strike=np.where(rows, c.strike * (1.0 + shift), c.strike),
        expiry=c.expiry,
        discount=c.discount,
        is_call=c.is_call,
    )
    observed = np.where(rows, quotes.observed * (1.0 - 2.0 * shift), quotes.observed)
    quotes = so.Quotes(ids=quotes.ids, contracts=moved, observed=observed, labels=dict(quotes.labels))
    gone = quotes.ids[rows].tolist()
    with so.Book.create(path, who="ann", clock=lambda: datetime(2024, 3, 1, tzinfo=UTC)) as book:
        book.import_quotes(quotes[:100])
        book.calibrate(panel=None, starts=1)
        how = {"panel": None, **(settings or {})}
        is_late = how.pop("late", False)
        book.import_quotes(quotes[100:].without(gone if is_late else []))
        book.calibrate(**how, fresh=True)
        if is_late:
            book.learn(quotes.only(gone))
        leave(book, gone)
        done = book.erase(ids=gone, reason=reason)
        assert done.residue == 0
        assert book.verify().holds, book.verify().summary()
        store = book.snapshot().store
        shards = store.shards()
        return {
            "quotes": [str(column) for column in columns(store.quotes(struck=None))],
            "struck": store.struck(),
            "shards": shards,
            "left": [store.shard_data(shard, what) for shard in shards for what in SHARD_DATA],
            "entries": [unkeyed(entry) for entry in book.log()],
            **{kind: {n: page(store, kind, n) for n in store.pages(kind)} for kind in PAGE_KINDS},
        }


def page(store, kind: str, name: str) -> object:
    """A page; of the keyed commitments to erased quotes how many there are, and no signature over keyed digests."""
    data = store.page(kind, name)
    if kind == "certificate":
        return {field: value for field, value in json.loads(data).items() if field != "signed"}
    return len(json.loads(data)) if kind == "erased" else data


def columns(quotes: so.Quotes) -> list[list]:
    c = quotes.contracts
    whole = (quotes.ids, c.forward, c.strike, c.expiry, c.discount, c.is_call, quotes.observed, quotes.weight)
    return [column.tolist() for column in (*whole, quotes.labels["date"])]


def unkeyed(entry: Entry) -> dict:
    """An entry without what is keyed, or follows from that."""
    plain = entry.to_json()
    for name in ("touched", "certificate", "previous", "signature", "public"):
        plain[name] = bool(plain[name])
    return {**plain, "digests": sorted(plain["digests"])}


# --- where else the numbers could be ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_panel", [False, True])
def test_no_number_of_a_calibration_that_knew_them_is_in_any_file(tmp_path, is_panel):
    quotes = so.synthetic.panel_quotes(12, seed=4) if is_panel else so.paper.quotes("small", seed=4)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        old = book.calibrate(panel="date" if is_panel else None).after
        book.plan_path.write_bytes(book.plan_forget(ids=quotes.ids[5:6]).to_bytes())
        request = book.request("erase", ids=quotes.ids[:2])
        book.export(tmp_path / "out.csv")
        needles = needles_of_numbers("result", old.numbers(), retained=quotes)
        assert scan(sorted(tmp_path.iterdir()), needles), "the search itself finds nothing"
        done = book.erase(ids=quotes.ids[:2], reason="licence")
        assert (done.residue, done.results_kept) == (0, 0)
        assert done.change.before is None, "parameters before and after are two equations"
        assert book.requests()[0].number == request.number
    assert scan(sorted(tmp_path.iterdir()), needles) == []


def test_the_ledger_names_no_certificate_by_a_digest_that_a_guess_can_be_compared_with(tmp_path):
    """Whoever holds the other quotes adds a guess, strikes out what was struck out, and has the certificate."""
    quotes = so.paper.quotes("small", seed=8)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
        change = book.forget(ids=quotes.ids[:3])
        book.erase(ids=quotes.ids[9:10], reason="subject-request")
        rows = [entry.to_bytes() for entry in book.log()]
        assert book.verify().holds
    unread = so.forget(so.calibrate(quotes, so.Heston()), ids=quotes.ids[:3]).certificate
    known = change.certificate.reading["settings"]  # they are in the ledger, whose reader guesses
    guessed = with_reading(unread, quotes.without(quotes.ids[:3]), layout="book", settings=known)
    assert guessed.digest() == change.certificate.digest(), "the guess is right, so a plain digest would show it"
    assert not [row for row in rows if guessed.digest().encode() in row]


def test_calibrations_from_before_the_quotes_came_and_from_after_they_left_stay(tmp_path):
    quotes = so.paper.quotes("small", seed=8)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes[:300])
        before = book.calibrate(panel=None).after
        book.import_quotes(quotes[300:])
        book.calibrate()
        after = book.forget(ids=quotes.ids[400:402]).after
        book.erase(ids=quotes.ids[400:402], reason="licence")
        assert [version.entry for version in book.snapshot().versions] == [before.entry, after.entry]
        assert book.snapshot().versions[0] == before
        assert book.status().version == after
        assert book.verify().holds, book.verify().summary()


def test_a_calibration_that_an_erasure_removed_and_one_that_vanished_are_told_apart(tmp_path):
    quotes = so.paper.quotes("small", seed=8)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        old = book.calibrate(panel=None).after
        new = book.erase(ids=quotes.ids[:1], reason="licence").change.after
        with book.snapshot().session.store.writing() as store:
            store.put("calibration", f"{old.entry:09d}", canonical(old.to_plain()))
        assert any("an erasure removed it" in reason for reason in book.verify().reasons)
        with book.snapshot().session.store.writing() as store:
            store.remove("calibration", f"{old.entry:09d}")
            store.remove("calibration", f"{new.entry:09d}")
        assert any(f"The calibration of entry {new.entry} is missing" in reason for reason in book.verify().reasons)


def test_a_book_whose_last_calibration_went_is_calibrated_again_as_it_was_asked(tmp_path):
    quotes = so.synthetic.random_quotes(60, maturities=3, seed=2)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None, loss="huber", starts=2)
        done = book.erase(ids=quotes.ids[4:], reason="subject-request")
        assert done.change is None
        assert (book.status().version, book.status().is_current) == (None, False)
        assert book.verify().holds, book.verify().summary()
        more, ids = so.synthetic.random_quotes(80, maturities=4, seed=7), [f"n{i}" for i in range(80)]
        book.import_quotes(so.Quotes(ids=ids, contracts=more.contracts, observed=more.observed))
        again = book.calibrate().after
        assert (again.options["loss"], again.options["starts"]) == ("huber", 2)
        assert book.verify().holds, book.verify().summary()


@pytest.mark.parametrize("setting", ["starts", "fixed"])
def test_results_that_were_given_back_as_settings_do_not_outlive_the_erasure(tmp_path, setting):
    """Starts are asked for again with every calibration: these would keep the parameters of before."""
    quotes = so.paper.quotes("small", seed=8)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        old = dict(book.calibrate(panel=None).after.parameters)
        given = {"starts": old, "fixed": {"mean_reversion": old["mean_reversion"]}}[setting]
        book.calibrate(**{setting: given})
        for yes in (False, True):
            with raises(RefusedError, mentions={"starts"}):
                (book.erase if yes else book.plan_erase)(ids=quotes.ids[:1], reason="licence")
        assert book.plan_erase(ids=quotes.ids[:1], reason="bad-feed").results_kept == 2
        book.calibrate(panel=None, fresh=True)
        assert book.erase(ids=quotes.ids[:1], reason="licence").residue == 0
        needles = needles_of_numbers("result", list(old.values()), retained=quotes)
    assert scan(sorted(tmp_path.iterdir()), needles) == []


def test_a_parameter_that_is_fixed_does_not_stop_an_erasure(tmp_path):
    quotes = so.paper.quotes("small", seed=8)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None, fixed={"mean_reversion": 1.98765432}, bounds={"correlation": (-0.5123456, 0.0)})
        book.calibrate(loss="huber")
        assert book.erase(ids=quotes.ids[:1], reason="licence").residue == 0
