"""A book without power, at any write of any verb: it is that before or that after, it verifies, nothing is lost."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import strikeout as so
from strikeout.store.residue import Needles, needles_of, scan
from tests.store.books import bits
from tests.store.power import Recording, default_vfs, recorded

MOMENTS = 100  # of about 360 events
PLAIN = so.paper.quotes("small")
PANEL = so.synthetic.panel_quotes(8, seed=3)
Life = tuple[Recording, dict[int, Any], so.Quotes, so.Quotes]
pytestmark = pytest.mark.skipif(default_vfs() is None, reason="this Python hides the file calls of its SQLite")


def clock() -> datetime:
    return datetime(2024, 3, 1, tzinfo=UTC)


def holds(book: so.Book) -> tuple[Any, ...]:
    """What must be the same: the quotes held and set aside, and the parameters, to the bit."""
    status = book.status()
    return bits(book.quotes()), status.set_aside, status.erased, None if status.version is None else status.version


def lived(folder: Path, quotes: so.Quotes, *, panel: str | None = None, synchronous: str = "FULL") -> Life:
    """A book that goes through the verbs that write: the recording, what it held after each entry, what was erased
    and all the quotes there ever were. A panel ends as a plain book of one date."""
    dates = quotes.labels["date"]
    last = quotes.ids[dates != dates[-1]] if panel else quotes.ids[:3]
    first, later = quotes[: len(quotes) - 20], quotes[len(quotes) - 20 :]
    so.Book.create(folder / "a.book", who="desk", clock=clock).close()
    with recorded(folder) as recording, so.Book.open(folder / "a.book", who="desk", clock=clock) as book:
        book.snapshot().session.store._connection.execute(f"PRAGMA synchronous = {synchronous}")
        known = {1: holds(book)}
        recording.acknowledge(1)
        gone = quotes[40:52]
        for verb in (
            lambda: book.import_quotes(first),
            lambda: book.calibrate(panel=panel),
            lambda: book.forget(ids=first.ids[:9]),
            lambda: book.restore(),
            lambda: book.learn(later),
            lambda: book.forget(ids=gone.ids[:4]),
            lambda: book.erase(ids=gone.ids),
            lambda: book.forget(ids=[name for name in last.tolist() if name not in gone.ids]),
        ):
            verb()
            number = len(book.log())
            recording.acknowledge(number)
            known[number] = holds(book)
            if book.log()[-1].what == "residue":  # an erasure is two entries, and the second changes nothing
                known[number - 1] = known[number]
    return recording, known, gone, quotes


@pytest.fixture(scope="module", params=["plain", "panel"])
def life(request, tmp_path_factory) -> Life:
    asked = {"quotes": PLAIN} if request.param == "plain" else {"quotes": PANEL, "panel": "auto"}
    found = lived(tmp_path_factory.mktemp("life"), **asked)
    versions = [seen[-1] for seen in found[1].values() if seen[-1] is not None]
    assert [version.panel for version in versions][:-1] == [asked.get("panel") and "date"] * (len(versions) - 1)
    assert versions[-1].panel is None
    return found


def after_loss(recording: Recording, moment: int, folder: Path, seed: int) -> Path:
    """The book as a disk may hold it when the power goes at this moment."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, data in recording.disk(moment, random.Random(seed)).items():
        if not name.endswith("-shm"):  # memory shared by processes: gone with them
            (folder / name).touch(0o600)
            (folder / name).write_bytes(data)
    return folder / "a.book"


def moments(recording: Recording, count: int) -> list[int]:
    draw = random.Random(4)
    return [draw.randrange(1, len(recording.events) + 1) for _ in range(count)]


def needles_for(gone: so.Quotes, quotes: so.Quotes) -> Needles:
    return needles_of(gone, retained=quotes.without(gone.ids))


def test_without_power_at_any_moment_a_book_is_that_before_or_that_after_and_verifies(life, tmp_path):
    recording, known, gone, quotes = life
    met, needles, erasure = set(), needles_for(gone, quotes), max(known) - 2
    for seed, moment in enumerate(moments(recording, MOMENTS)):
        acknowledged = max(1, recording.acknowledged(moment))
        path = after_loss(recording, moment, tmp_path / "disk", seed)
        with so.Book.open(path, who="desk", clock=clock) as book:
            found = len(book.log())
            most = acknowledged + (2 if acknowledged == erasure - 1 else 1)
            assert acknowledged <= found <= most, f"event {moment}"
            assert holds(book) == known[found], f"event {moment}"
            audit = book.verify()
            assert audit.holds, f"event {moment}: {audit}"
            if found >= erasure:
                assert scan(book.snapshot().session.store.files(), needles) == []
            met.add(found - acknowledged)
    assert met >= {0, 1}  # losses fell before and after a commit that was not acknowledged yet


def test_what_an_acknowledged_erasure_took_is_on_no_disk_whatever_was_not_synced(life, tmp_path):
    recording, known, gone, quotes = life
    needles, erasure = needles_for(gone, quotes), max(known) - 2  # the entry of the erasure
    ends = [number for number, event in enumerate(recording.events) if event.what == "done"]
    before, after = ends[erasure - 2] + 1, ends[erasure - 1] + 1
    for seed, moment in enumerate([*range(after, len(recording.events) + 1)] * 3):
        after_loss(recording, moment, tmp_path / "disk", seed)
        assert scan(tmp_path.joinpath("disk").iterdir(), needles) == [], f"event {moment}"
    after_loss(recording, before, tmp_path / "disk", 0)
    assert scan(tmp_path.joinpath("disk").iterdir(), needles) != []  # it was there before


def test_every_acknowledged_entry_was_synced(life, tmp_path):
    recording, known, _, _ = life
    ends = [number for number, event in enumerate(recording.events) if event.what == "done"]
    for seed, end in enumerate(ends):
        with so.Book.open(after_loss(recording, end + 1, tmp_path / "disk", seed), who="desk", clock=clock) as book:
            found = len(book.log())
            assert found == recording.events[end].place
            assert holds(book) == known[found]


def test_the_simulation_sees_a_log_that_is_not_synced(tmp_path):
    folder = tmp_path / "life"
    folder.mkdir()
    recording, _, _, _ = lived(folder, PLAIN, synchronous="OFF")
    lost = 0
    for seed in range(20):
        end = random.Random(seed).choice([n for n, event in enumerate(recording.events) if event.what == "done"][1:])
        try:
            with so.Book.open(after_loss(recording, end + 1, tmp_path / "disk", seed), who="desk", clock=clock) as book:
                lost += len(book.log()) != recording.events[end].place
        except so.errors.StrikeoutError:
            lost += 1
    assert lost > 5
