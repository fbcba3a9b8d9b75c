"""A book keeps the footprint of every quote, the state of every shard and of the whole, in step with its quotes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.state_codec import ShardRows, encode_footprints
from strikeout.book import state_store
from strikeout.quotes.quotes import join
from strikeout.store.sqlite import SqliteStore
from tests.book.behind import entered

DATES = 3


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    """Three shards: 256, 256 and 88 quotes, on three dates."""
    return dated(so.synthetic.random_quotes(600, maturities=6, seed=7))


def dated(quotes: so.Quotes, *, first: int = 0, dates: int = DATES) -> so.Quotes:
    """Quotes with a date each, in turn: every shard has quotes of every date."""
    label = [f"2024-01-{2 + first + row % dates:02d}" for row in range(len(quotes))]
    return so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"date": label})


@pytest.fixture(params=[None, "date"], ids=["plain", "panel"])
def panel(request) -> str | None:
    return request.param


@pytest.fixture
def path(tmp_path: Path, quotes: so.Quotes, panel: str | None) -> Path:
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=panel)
    return tmp_path / "a.book"


@pytest.fixture
def book(path: Path):
    with so.Book.open(path) as opened:
        yield opened


def by_group(quotes: so.Quotes, panel: str | None) -> dict[str, so.Quotes]:
    if panel is None:
        return {"": quotes}
    labels = quotes.labels[panel].astype(str)
    return {str(group): quotes[labels == group] for group in np.unique(labels)}


def whole(book: so.Book) -> so.states.System:
    """What all shards leave behind together, as they are kept."""
    records = book.snapshot()
    linearization, store = records.linearization, records.store
    found = linearization.zero
    for shard in store.shards_with("states"):
        found = found + state_store.stored_state(store, linearization, shard)
    return found


def is_in_step(book: so.Book, quotes: so.Quotes) -> bool:
    """Whether all that is kept is what these quotes, and no others, leave behind at the reference of the book."""
    linearization = book.snapshot().linearization
    model, start = linearization.model, linearization.model.parameters.starts[0]
    found = {
        group: so.states.footprints_of(part, model, linearization.references[group]).total()
        for group, part in by_group(quotes, linearization.panel).items()
    }
    named = {
        group: so.states.footprints_of(part, model, start).total()
        for group, part in by_group(quotes, linearization.panel).items()
    }
    latent = linearization.latent
    same = whole(book) == linearization.system == so.states.System(found, latent)
    same &= linearization.start == so.states.System(named, latent)
    return bool(same) and book.status().version.state == linearization.start.digest()


def test_a_calibration_keeps_the_footprint_of_every_quote_and_the_state_of_every_shard(book, quotes, panel):
    records = book.snapshot()
    linearization, fresh = records.linearization, so.calibrate(quotes, so.Heston(), panel=panel)
    assert linearization.references == dict(fresh.references)
    assert records.store.shards_with("footprints") == records.store.shards_with("states") == (0, 1, 2)
    kept = [state_store.stored_rows(records.store, linearization, shard).rows for shard in range(3)]
    rows = {}
    for group, part in by_group(quotes, panel).items():
        found = so.states.footprints_of(part, linearization.model, linearization.references[group])
        rows |= dict(zip(part.ids.tolist(), found.rows, strict=True))
    assert np.array_equal(np.concatenate(kept), np.array([rows[name] for name in quotes.ids.tolist()]))
    assert is_in_step(book, quotes)
    assert book.status().groups == (None if panel is None else DATES)


def test_states_follow_every_verb_to_the_bit_at_the_reference_of_the_last_calibration(book, quotes):
    references = book.snapshot().linearization.references
    first = book.forget(ids=quotes.ids[::40])
    assert is_in_step(book, quotes.without(quotes.ids[::40]))
    book.forget(ids=quotes.ids[250:262])
    book.restore(first.entry)
    assert is_in_step(book, quotes.without(quotes.ids[250:262]))
    more = so.synthetic.random_quotes(20, maturities=6, seed=8)
    new = so.Quotes(ids=[f"n{n}" for n in range(20)], contracts=more.contracts, observed=more.observed)
    new = dated(new, first=1, dates=DATES)  # one date that the book does not have yet
    book.learn(new)
    assert is_in_step(book, join(quotes.without(quotes.ids[250:262]), new))
    kept = book.snapshot().linearization.references
    assert {group: kept[group] for group in references} == references
    assert book.verify().holds, book.verify().summary()


def test_a_date_that_is_forgotten_as_a_whole_comes_back_to_the_same_states(book, quotes):
    day = quotes.labels["date"] == "2024-01-03"
    before = book.snapshot().linearization.system
    change = book.forget(where="date = '2024-01-03'")
    assert is_in_step(book, quotes[~day])
    assert book.verify().holds, book.verify().summary()
    book.restore(change.entry)
    assert book.snapshot().linearization.system == before
    assert book.verify().holds, book.verify().summary()


def test_states_follow_a_roll_whose_file_has_dates_before_the_window_too(tmp_path, quotes):
    dates = np.repeat(["2024-01-02", "2024-01-03", "2024-01-04"], 200).astype(object)
    three = so.Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, labels={"date": dates})
    with so.Book.create(tmp_path / "r.book") as book:
        book.import_quotes(three[200:400])
        book.calibrate(panel=None)
        change = book.roll(three[np.r_[0:50, 400:600]], window=2)
        assert book.status().set_aside == 50
        assert is_in_step(book, three[200:])
        assert book.verify().holds, book.verify().summary()
        book.restore(change.entry)
        assert is_in_step(book, join(three[200:], three[:50]))
        assert book.verify().holds, book.verify().summary()
        gone = book.roll(window=2)
        assert is_in_step(book, three[200:]), gone


def test_what_is_set_aside_keeps_its_footprint_and_counts_in_no_state(book, quotes):
    linearization = book.snapshot().linearization
    book.forget(ids=quotes.ids[:1])
    rows = state_store.stored_rows(book.snapshot().store, linearization, 0)
    assert rows.has.all()
    assert state_store.stored_state(book.snapshot().store, linearization, 0).count == 255


def test_an_erasure_takes_every_footprint_with_it_and_finds_a_reference_without_the_quotes(book, quotes):
    before = book.snapshot().linearization.references
    rehearsal = book.plan_erase(ids=quotes.ids[:3])
    assert any("every footprint and state" in text for text in rehearsal.gone)
    assert book.erase(ids=quotes.ids[:3]).residue == 0
    assert book.snapshot().linearization.references != before
    assert is_in_step(book, quotes[3:])
    assert book.verify().holds, book.verify().summary()


def test_erasing_what_was_set_aside_after_the_reference_was_found_leaves_no_footprint_of_anything(book, quotes):
    book.forget(ids=quotes.ids[:3])
    assert book.erase(ids=quotes.ids[:3]).residue == 0
    assert book.snapshot().linearization is None
    assert book.snapshot().store.shards_with("footprints") == ()
    assert book.verify().holds, book.verify().summary()
    book.calibrate()
    assert is_in_step(book, quotes[3:])


def test_erasing_what_was_set_aside_before_the_reference_was_found_keeps_it(book, quotes):
    book.forget(ids=quotes.ids[:3])
    book.calibrate()
    references = book.snapshot().linearization.references
    assert book.erase(ids=quotes.ids[:3]).residue == 0
    assert book.snapshot().linearization.references == references
    assert is_in_step(book, quotes[3:])
    assert book.verify().holds, book.verify().summary()


def test_a_footprint_left_in_the_file_is_found_by_the_scan(book, quotes):
    records = book.snapshot()
    linearization = records.linearization
    rows = state_store.stored_rows(records.store, linearization, 0)
    page = encode_footprints(linearization.schema, rows)
    with entered(book) as store:
        store.put("setting", "somewhere", page)
    assert book.erase(ids=quotes.ids[:2]).residue > 0


def test_two_hundred_erasures_leave_no_footprint_and_no_old_state(tmp_path):
    """Eight books in four shards each, erased from 25 times: quotes held, and now and then quotes set aside before."""
    draw = np.random.default_rng(4)
    for number in range(8):
        pool = so.synthetic.random_quotes(200, maturities=3, seed=number)
        with so.Book.create(tmp_path / f"{number}.book") as book:
            for begin in range(0, 200, 50):
                book.import_quotes(pool[begin : begin + 50])
            book.calibrate(starts=1)
            for turn in range(25):
                gone = draw.choice(book.quotes().ids, int(draw.integers(1, 5)), replace=False)
                if turn % 5 == 0:
                    book.forget(ids=gone)
                assert book.erase(ids=gone).residue == 0, (number, turn)
                if turn % 5 == 0:
                    book.calibrate()
            assert book.verify().holds, book.verify().summary()


@pytest.mark.parametrize("what", ["footprints", "states"])
def test_a_shard_whose_footprints_or_state_were_changed_is_named(book, what):
    store = book.snapshot().store
    data = bytearray(store.shard_data(1, what))
    data[-48 if what == "footprints" else -24] ^= 1
    with book.snapshot().session.store.writing() as tx:
        tx.put_shard_data(1, what, bytes(data))
    found = {check.name: check for check in book.verify().checks}
    assert found["STORE"].holds
    assert found["STATES"].holds is False
    assert "not those of their quotes: 1 (1)." in found["STATES"].found


def test_a_flipped_byte_of_a_footprint_or_a_state_is_found_by_verify(path, tmp_path):
    """Sampled; every byte of the rows and their checksums is flipped in the tests of the store."""
    draw, flipped = np.random.default_rng(2), tmp_path / "flipped.book"
    with so.Book.open(path) as book:
        store = book.snapshot().store
        kept = [
            store.shard_data(0, "states"),
            store.shard_data(0, "footprints")[-4000:-40],
            book.snapshot().linearization.to_bytes()[-900:],
        ]
    whole = path.read_bytes()
    (tmp_path / "flipped.book.key").write_bytes((tmp_path / "a.book.key").read_bytes())
    (tmp_path / "flipped.book.key").chmod(0o600)
    for data in kept:
        begin = whole.index(data[:40])
        for place in draw.integers(begin, begin + 40, 6).tolist():
            changed = bytearray(whole)
            changed[place] ^= 1 << int(draw.integers(8))
            flipped.write_bytes(changed)
            with so.Book.open(flipped) as book:
                assert not book.verify().holds


def test_a_state_that_is_missing_or_a_sum_that_is_off_is_found(book):
    store, linearization = book.snapshot().store, book.snapshot().linearization
    state = store.shard_data(2, "states")
    with book.snapshot().session.store.writing() as tx:
        tx.remove_shard_data("states", [2])
    assert any(reason.startswith("STATES: Shards") for reason in book.verify().reasons)
    with book.snapshot().session.store.writing() as tx:
        tx.put_shard_data(2, "states", state)
        tx.put("state", "linearization", replace(linearization, system=linearization.zero).to_bytes())
    assert any(reason.startswith("STATES") for reason in book.verify().reasons)
    with book.snapshot().session.store.writing() as tx:
        tx.remove("state", "linearization")
    assert any(reason.startswith("STATES: Shards have footprints and states") for reason in book.verify().reasons)


def test_a_footprint_of_a_quote_that_the_book_does_not_hold_is_found(book):
    store, linearization = book.snapshot().store, book.snapshot().linearization
    rows = state_store.stored_rows(store, linearization, 2)
    more = ShardRows(np.append(rows.has, True), np.vstack([rows.rows, rows.rows[:1]]))
    with book.snapshot().session.store.writing() as tx:
        tx.put_shard_data(2, "footprints", encode_footprints(linearization.schema, more))
    assert "ERASED: Shard 2 has footprints of other quotes than it holds." in book.verify().reasons


def test_quotes_without_a_footprint_are_healed_through_their_shard(book, quotes):
    with entered(book) as tx:
        tx.remove_shard_data("footprints", [0, 1])
    book.forget(ids=quotes.ids[[3, 300, 590]])
    assert is_in_step(book, quotes.without(quotes.ids[[3, 300, 590]]))
    assert book.verify().holds, book.verify().summary()


def test_through_moments_no_footprint_is_kept(book):
    book.calibrate(through="moments", panel=None)
    assert (book.snapshot().linearization, book.snapshot().store.shards_with("states")) == (None, ())
    assert book.status().footprints is None
    assert {check.name: check.holds for check in book.verify().checks}["STATES"] is None


def test_status_and_doctor_name_the_shards_and_their_counts(book, path):
    status = book.status()
    assert dict(status.shards) == {0: 256, 1: 256, 2: 88}
    assert (status.footprints, status.reference, status.no_footprints) == (3, 3, None)
    book.close()
    from strikeout.store import diagnostics

    seen = {finding.name: finding for finding in diagnostics.book(path)}["shards"]
    assert (seen.is_well, seen.seen) == (True, "3: 0 (256), 1 (256), 2 (88); footprints of 3, states of 3")


@pytest.mark.parametrize("verb", [so.Book.calibrate, lambda book: book.forget(ids=book.quotes().ids[:2])])
def test_a_book_whose_states_are_lost_is_filled_by_the_next_verb(path, verb):
    with so.Book.open(path) as book, entered(book) as tx:
        state_store.clear_footprints(tx)
    with so.Book.open(path) as book:
        assert book.verify().holds, book.verify().summary()
        assert book.status().no_footprints is state_store.MissingFootprints.LOST
        verb(book)
        assert is_in_step(book, book.quotes())
        assert book.verify().holds, book.verify().summary()


def test_a_large_book_takes_its_reference_from_a_part_of_it():
    large = so.synthetic.random_quotes(20_000, maturities=8, seed=3)
    found = state_store.compute_footprints(so.calibrate(large, so.Heston()), entry=1)
    apart = [
        abs(found.linearization.references[""][name] / value - 1)
        for name, value in so.calibrate(large, so.Heston()).parameters.items()
    ]
    assert 0.0 < max(apart) < 1e-3
    assert found.linearization.system == found.footprints.system


def test_an_encrypted_book_shows_no_footprint_and_no_state(tmp_path, quotes, panel):
    with so.Book.create(tmp_path / "e.book", is_encrypted=True) as book:
        book.import_quotes(quotes)
        book.calibrate(panel=panel)
        linearization = book.snapshot().linearization
        rows = state_store.stored_rows(book.snapshot().store, linearization, 0).rows
        files = b"".join(path.read_bytes() for path in book.snapshot().session.store.files())
        assert rows[0].tobytes() not in files
        assert all(block.words.tobytes()[:24] not in files for block in linearization.system.blocks.values())
        assert book.erase(ids=quotes.ids[:2]).residue == 0
        assert is_in_step(book, quotes[2:])
        assert book.verify().holds, book.verify().summary()
    with SqliteStore.open(tmp_path / "e.book", key=None) as store:
        assert store.faults() == []
