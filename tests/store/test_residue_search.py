"""A search of a whole book: what was erased is found wherever it is planted, and what occurs by chance is no trace."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.quotes.forwards import as_given
from strikeout.store.residue import Needles, needles_of, needles_of_integers, needles_of_numbers, search_book
from strikeout.store.sqlite import SqliteStore
from strikeout.store.sqlite_layout import LayoutError, layout_of
from tests.store.books import quotes

PRICE = 12.3456789
EIGHT = np.float64(PRICE).tobytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.book"
    with SqliteStore.create(path) as store:
        with store.writing() as tx:
            tx.add(quotes(700))
            tx.put("setting", "long", b"x" * 9000)  # continues in other pages
            tx.put("state", "s", b'{"head":1}\n' + np.arange(2.0**40, 2.0**40 + 900).astype("<i8").tobytes())
        with store.writing() as tx:
            tx.erase(quotes(700).ids[600:])
    return path


def gaps(path: Path) -> list[tuple[int, int]]:
    data = path.read_bytes()
    return [tuple(gap) for gap in layout_of(lambda at, size: data[at : at + size], len(data)).gaps.tolist()]


def planted(path: Path, place: int, data: bytes) -> None:
    with path.open("rb+") as file:
        file.seek(place)
        file.write(data)


def searched(path: Path, needles: Needles, **asked: object):
    with SqliteStore.open(path) as store:
        return search_book(store, needles, **asked)


def test_a_book_after_an_erasure_is_clean_and_all_its_bytes_are_accounted_for(path):
    left, gone = quotes(700)[:600], quotes(700)[600:]
    found = searched(path, needles_of(gone, retained=left), erased=gone.ids.tolist())
    assert (found.traces, found.unaccounted, found.is_clean) == ((), 0, True)
    assert found.needles > 500


@pytest.mark.parametrize("which", range(4))
def test_a_number_in_bytes_that_belong_to_no_row_is_found(path, which):
    room = [gap for gap in gaps(path) if gap[1] - gap[0] >= 16]
    _, end = room[which * (len(room) - 1) // 3]
    planted(path, end - 9, EIGHT)
    (trace,) = searched(path, needles_of_numbers("observed", [PRICE])).traces
    assert (trace.what, trace.form, trace.value) == ("observed", "float64", repr(PRICE))
    assert f"{end - 9:,}" in trace.place
    assert searched(path, Needles({})).unaccounted == 8  # noticed even by a search that does not look for it


def test_numbers_that_straddle_retained_neighbours_are_coincidences(path):
    data = path.read_bytes()
    column = quotes(700).observed[:256].tobytes()
    begin = data.index(column[:64])
    odd = [data[begin + at : begin + at + 8] for at in (3, 13, 29)]
    needles = Needles(dict.fromkeys(odd, ("observed", "float64")))
    found = searched(path, needles)
    assert (found.traces, found.coincidences) == ((), 3)


def test_a_page_that_holds_an_erased_number_as_text_or_bytes_is_found(path):
    with SqliteStore.open(path) as store, store.writing() as tx:
        tx.put("setting", "forgotten", f'{{"price":{PRICE}}}'.encode())
        tx.put("request", "1", f'{{"price":"{PRICE.hex()}"}}'.encode())
        tx.put("setting", "raw", b"abc" + EIGHT)
    found = searched(path, needles_of_numbers("observed", [PRICE])).traces
    assert sorted((trace.form, trace.place.split(",")[0]) for trace in found) == [
        ("decimal text", "the page setting forgotten"),
        ("float64", "the page setting raw"),
        ("hexadecimal text", "the page request 1"),
    ]


def test_a_word_of_a_state_is_found_and_a_seam_of_two_is_not(path):
    words = np.array([2**40 + 5, 2**40 + 800])
    found = searched(path, needles_of_integers("state", words))
    assert [trace.place for trace in found.traces] == ["the page state s, word 6", "the page state s, word 801"]
    two = np.arange(2**40 + 5, 2**40 + 7).astype("<i8").tobytes()
    seam = np.frombuffer(two[3:11], "<i8")
    assert np.abs(seam[0]) > 2**32
    assert searched(path, needles_of_integers("state", seam)).traces == ()


def test_a_quote_that_was_not_erased_is_found_by_its_id(path):
    (trace,) = searched(path, Needles({}), erased=[str(quotes(700).ids[4])]).traces
    assert (trace.what, trace.value) == ("id", str(quotes(700).ids[4]))


def test_a_file_outside_the_book_is_searched(path, tmp_path):
    outside = tmp_path / "old.csv"
    outside.write_text(f"id,price\nx,{PRICE}\n")
    (trace,) = searched(path, needles_of_numbers("observed", [PRICE]), files=[outside]).traces
    assert trace.place == "old.csv, byte 11"


def test_progress_reaches_the_whole(path):
    seen: list[tuple[int, int]] = []
    searched(path, needles_of_numbers("observed", [PRICE]), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] >= path.stat().st_size


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_the_layout_of_any_sqlite_file_leaves_no_live_byte_in_a_gap(tmp_path, page):
    """Every value that SQLite returns is in bytes that the layout does not call a gap."""
    path = tmp_path / "x.sqlite"
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute(f"PRAGMA page_size = {page}")
    raw.execute("CREATE TABLE long (number INTEGER PRIMARY KEY, data BLOB)")
    raw.execute("CREATE TABLE named (id BLOB PRIMARY KEY, place INTEGER) WITHOUT ROWID")
    draw = np.random.default_rng(page)
    kept = [draw.bytes(int(draw.integers(1, 3 * page))) for _ in range(150)]
    raw.executemany("INSERT INTO long VALUES (?, ?)", enumerate(kept))
    names = [b"name-%05d-" % number + b"z" * int(draw.integers(0, page)) for number in range(300)]
    raw.executemany("INSERT INTO named VALUES (?, ?)", [(name, 7) for name in names])
    raw.execute("DELETE FROM long WHERE number % 3 = 1")
    raw.execute("DELETE FROM named WHERE id < ?", (b"name-00050",))
    raw.close()
    blank = bytearray(path.read_bytes())
    for begin, end in gaps(path):
        blank[begin:end] = bytes(end - begin)
    for trunk in range(32, 40):
        blank[trunk] = 0  # the list of freed pages, which are gaps
    path.write_bytes(blank)
    raw = sqlite3.connect(path)
    assert dict(raw.execute("SELECT number, data FROM long")) == {n: x for n, x in enumerate(kept) if n % 3 != 1}
    assert [name for (name,) in raw.execute("SELECT id FROM named ORDER BY id")] == sorted(names[50:])
    raw.close()


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0", b"x" * 4096])
def test_what_is_no_sqlite_file_has_no_layout(data):
    with pytest.raises(LayoutError):
        layout_of(lambda at, size: data[at : at + size], len(data))


TICKS = 0.05


def ticking(count: int, seed: int) -> so.Quotes:
    """Quotes at prices, spreads and strikes of few digits, as an exchange has them."""
    draw = np.random.default_rng(seed)
    strike = draw.integers(600, 900, count) * 5.0
    contracts = so.Contracts(
        forward=np.round(3800 + draw.random(count), 2), strike=strike, expiry=draw.integers(5, 60, count) / 365.0,
        discount=np.round(1 - draw.random(count) / 50, 4), is_call=draw.random(count) < 0.5,
    )  # fmt: skip
    mid = draw.integers(1, 4000, count) * TICKS / 2
    return so.Quotes(
        ids=[f"2022-05-{number % 28 + 1:02d}/{number}/SPX" for number in range(count)],
        contracts=contracts, observed=mid, spread=draw.integers(1, 40, count) * TICKS,
    )  # fmt: skip


def test_clean_erasures_of_tick_prices_raise_no_alarm(tmp_path):
    alarms, coincidences, book = [], 0, ticking(2000, 8)
    draw = np.random.default_rng(5)
    with so.Book.create(tmp_path / "ticks.book") as held:
        held.import_quotes(book)
        for _ in range(12):
            gone = draw.choice(held.quotes().ids, 40, replace=False)
            found = held.erase(ids=gone).search
            alarms += [*found.traces, *([found.unaccounted] if found.unaccounted else [])]
            coincidences += found.coincidences
    assert alarms == []
    with so.Book.open(tmp_path / "ticks.book") as held:
        assert held.residue().is_clean
        assert held.residue(book).is_clean
        assert [entry.counts["traces"] for entry in held.log() if entry.what == "residue"] == [0] * 14


def test_old_pointers_to_cells_are_accounted_for(path):
    begin, end = max(gaps(path), key=lambda gap: gap[1] - gap[0])
    planted(path, begin, b"".join(place.to_bytes(2, "big") for place in range(2570, 1000, -6)))
    assert searched(path, Needles({})).is_clean
    planted(path, end - 24, bytes(range(1, 21)))
    assert searched(path, Needles({})).unaccounted == 20


@pytest.mark.slow
def test_two_hundred_clean_erasures_of_market_quotes_raise_no_alarm(tmp_path, shared_data):
    """Every chain of the reference data that has 400 quotes or more, in a book of its own; the prices are ticks."""
    draw, erasures, alarms = np.random.default_rng(7), 0, []
    for path in sorted(shared_data("chains").glob("*.parquet")):
        try:
            market = as_given(so.inspect_quotes(path).quotes)[:6000]
        except so.errors.StrikeoutError:
            continue  # a surface without discounts is not a file of quotes
        if len(market) < 400:
            continue
        with so.Book.create(tmp_path / f"{path.stem}.book") as book:
            book.import_quotes(market)
            left = market.ids
            for _ in range(10):
                gone = draw.choice(left, int(draw.integers(1, 60)), replace=False)
                left = left[~np.isin(left, gone)]
                found = book.erase(ids=gone).search
                erasures += 1
                alarms += [] if found.is_clean else [(path.stem, found)]
    assert alarms == []
    assert erasures >= 200
