"""Two and three processes at once on one book, any of them killed at any moment: what was acknowledged is there.

Every entry that a process was told of is in the ledger, under the number it was told, by it and for what it did;
nothing else is there but what a killed process was about to be told; and the whole book verifies.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import strikeout as so
from tests.laws.clerks import A_DAY, MODEL, VERBS, Clerk, quotes

ROUNDS = 6
FEW, PIECE = 12, 100
# What a writer may be told when another was faster, or when nothing is left to do. Anything else is a defect.
REFUSALS = {"refused", "busy", "unidentified", "unknown-id", "nothing-meant"}
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="processes are forked here to be killed in milliseconds"
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A folder with a small calibrated book, of which every interleaving takes a copy."""
    folder = tmp_path_factory.mktemp("begun")
    with so.Book.create(folder / "a.book", who="before") as book:
        book.import_quotes(quotes(0, 4 * A_DAY))
        book.calibrate(MODEL, starts=1, panel=None)
        book.forget(ids=["q000001", "q000002"])
    return folder


class Office:
    """Some clerks; one that is killed is replaced by another of a new name."""

    def __init__(self) -> None:
        self._hired = 0
        self.clerks: list[Clerk] = []

    def staffed(self, count: int) -> list[Clerk]:
        while len(self.clerks) < count:
            self._hired += 1
            self.clerks.append(Clerk(f"clerk {self._hired}"))
        return self.clerks[:count]

    def killed(self, clerk: Clerk) -> None:
        self.clerks.remove(clerk)
        clerk.kill()


@pytest.fixture
def office() -> Iterator[Office]:
    # New clerks for every test: if one fails, answers to its last round would be taken for those to the next.
    made = Office()
    yield made
    for clerk in made.clerks:
        clerk.gone()


def interleaved(office: Office, begun: Path, folder: Path, seed: int) -> tuple[int, int]:
    """One book through some rounds of verbs sent to all clerks at once; how many were acknowledged and killed."""
    draw = random.Random(seed)
    shutil.copytree(begun, folder)
    book, acknowledged, doubtful, kills = folder / "a.book", [], set(), 0
    count, number = draw.choice((2, 2, 3)), 1000 * (seed % 1000)
    closing = [draw.choice((0.0, 0.5, 1.0)) for _ in range(count)]  # a notebook, something between, a command line
    for _ in range(ROUNDS):
        asked = []
        for clerk, often in zip(office.staffed(count), closing, strict=True):
            if draw.random() < 0.8:
                number += 1
                clerk.ask(draw.choice(VERBS), book, number, then_close=draw.random() < often)
                asked.append(clerk)
        if asked and draw.random() < 0.25:
            victim = asked.pop(draw.randrange(len(asked)))
            time.sleep(draw.uniform(0, 0.08))
            doubtful.add((victim.name, victim.busy_with))
            office.killed(victim)
            kills += 1
        for clerk in asked:
            verb, told = clerk.busy_with, clerk.answer()
            assert told.code in {"", *REFUSALS}, f"seed {seed}, {verb}: {told.sentence}"
            acknowledged += [(entry, clerk.name, what) for entry, what in told.entries]
            if verb == "erase" and told.code == "busy":  # erased, but a reader keeps old bytes in the log
                doubtful.add((clerk.name, "erase"))
    for clerk in office.clerks:
        clerk.ask("close", book, number)
    for clerk in office.clerks:
        assert clerk.answer().code == ""
    with so.Book.open(book) as held:
        log = held.log()
        found = {(entry.number, entry.who, entry.what) for entry in log}
        assert [entry.number for entry in log] == list(range(1, len(log) + 1)), f"seed {seed}"
        lost = [one for one in acknowledged if tuple(one) not in found]
        assert lost == [], f"seed {seed}: acknowledged and not there: {lost}"
        others = {(who, what) for number, who, what in found - set(acknowledged) if who != "before"}
        spelt = {"plan and apply": "forget", "rotate": "rotate key"}
        searched = {(who, "residue") for who, verb in doubtful if verb == "erase"}
        assert others <= searched | {(who, spelt.get(verb, verb)) for who, verb in doubtful}, f"seed {seed}"
        checked = held.verify()
        assert checked.holds, f"seed {seed}: {checked.summary()}"
    for path in folder.parent.glob("* copied"):
        shutil.rmtree(path)
    shutil.rmtree(folder)
    return len(acknowledged), kills


def test_processes_that_interleave_lose_nothing_they_acknowledged(office, begun, tmp_path):
    done = [interleaved(office, begun, tmp_path / "now", seed) for seed in range(FEW)]
    assert sum(acknowledged for acknowledged, _ in done) > FEW  # they did get work done
    assert sum(kills for _, kills in done) > 2


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(20))
def test_processes_that_interleave_lose_nothing_in_two_thousand_books(office, begun, tmp_path, piece):
    seeds = range(FEW + PIECE * piece, FEW + PIECE * (piece + 1))
    done = [interleaved(office, begun, tmp_path / "now", seed) for seed in seeds]
    acknowledged, kills = (sum(counts) for counts in zip(*done, strict=True))
    print(f"{len(done)} interleavings, {acknowledged} entries acknowledged, {kills} processes killed")  # pytest -rP
    assert acknowledged > PIECE
    assert kills > 2
